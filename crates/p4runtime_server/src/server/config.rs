//! Handles pipeline requests (specification chapters 14 and 15).

use p4runtime_proto::v1;
use switch::SwitchControl;

use super::{ConfigAction, ConfigPlan, PipelineState, Server};
use crate::arbitration::{Admission, Outbox};
use crate::caller::Caller;
use crate::pipeline::Pipeline;
use crate::shadow::ShadowState;
use crate::status::{Refusal, Status};
use crate::store::{PipelineChanges, StoreChanges};

impl Server {
    /// Admits a request to set a pipeline.
    ///
    /// # Errors
    /// The status of the call.
    pub(crate) fn begin_config(
        &mut self,
        request: v1::SetForwardingPipelineConfigRequest,
        caller: &Caller,
    ) -> Result<(Admission, ConfigPlan), Status> {
        caller.check_pipeline()?;
        caller.check_role(&request.role)?;
        #[expect(deprecated, reason = "reports the use of a deprecated field")]
        let role_id = request.role_id;
        let admission =
            self.arbitration.admit(request.device_id, role_id, &request.role, request.election_id.as_ref())?;
        let plan = if self.arbitration.access_of(&admission).may_push_pipeline() {
            self.config_plan(request)
        } else {
            Err(Refusal::denied("the role's config does not allow setting the pipeline"))
        };
        match plan {
            Ok(plan) => Ok((admission, plan)),
            Err(refusal) => {
                self.arbitration.done(admission, &mut Outbox::new());
                Err(refusal.into())
            }
        }
    }

    fn config_plan(&self, request: v1::SetForwardingPipelineConfigRequest) -> Result<ConfigPlan, Refusal> {
        use v1::set_forwarding_pipeline_config_request::Action;
        let action = match Action::try_from(request.action) {
            Ok(Action::Verify) => ConfigAction::Verify,
            Ok(Action::VerifyAndSave) => ConfigAction::Save,
            Ok(Action::VerifyAndCommit) => ConfigAction::Commit,
            Ok(Action::ReconcileAndCommit) => ConfigAction::Reconcile,
            Ok(Action::Commit) if request.config.is_some() => {
                return Err(Refusal::invalid("COMMIT takes no config; it commits the saved one"));
            }
            Ok(Action::Commit) if self.saved.is_none() => {
                return Err(Refusal::not_found("no config is saved; use VERIFY_AND_SAVE to save one"));
            }
            Ok(Action::Commit) => return Ok(ConfigPlan::CommitSaved),
            Ok(Action::Unspecified) | Err(_) => return Err(Refusal::invalid("the request has no action")),
        };
        let config = request.config.ok_or_else(|| Refusal::invalid("the config is missing"))?;
        Ok(ConfigPlan::Compile(Box::new(config), action))
    }

    /// Saves a pipeline for a later commit, with the switch that will run it.
    pub(crate) fn save(&mut self, pipeline: Pipeline, switch: Box<dyn SwitchControl>) {
        let shadow = ShadowState::of(&pipeline.schema, &*switch);
        if let Some(kept) = &mut self.changes {
            kept.saved = shadow.all(&pipeline.config);
        }
        self.saved = Some((PipelineState::new(pipeline, shadow), switch));
    }

    /// Removes the saved pipeline, to commit it.
    pub(crate) fn take_saved(&mut self) -> Option<(Pipeline, ShadowState, Box<dyn SwitchControl>)> {
        self.saved.take().map(|(state, switch)| (state.pipeline, state.shadow, switch))
    }

    /// Returns updates that write the present contents again.
    pub(crate) fn replay(&self) -> Vec<v1::Update> {
        self.state().map(|state| state.shadow.replay()).unwrap_or_default()
    }

    /// Makes a pipeline the running one.
    pub(crate) fn committed(&mut self, pipeline: Pipeline, shadow: ShadowState) {
        self.saved = None;
        self.digests.clear();
        if let Some(kept) = &mut self.changes {
            *kept = StoreChanges { committed: shadow.all(&pipeline.config), saved: PipelineChanges::gone() };
        }
        self.mirror = self.new_mirror(pipeline.program());
        self.committed = Some(PipelineState::new(pipeline, shadow));
    }

    /// Completes a request to set a pipeline.
    pub(crate) fn finish_config(&mut self, admission: Admission, outbox: &mut Outbox) {
        self.arbitration.done(admission, outbox);
    }

    /// Handles `GetForwardingPipelineConfig`.
    ///
    /// # Errors
    /// `NOT_FOUND` for another device, `PERMISSION_DENIED` if the caller may not read the program.
    pub fn pipeline_config(
        &self,
        request: &v1::GetForwardingPipelineConfigRequest,
        caller: &Caller,
    ) -> Result<v1::GetForwardingPipelineConfigResponse, Status> {
        use v1::get_forwarding_pipeline_config_request::ResponseType;
        self.arbitration.check_device(request.device_id)?;
        let wanted = ResponseType::try_from(request.response_type)
            .map_err(|_| Refusal::invalid(format!("unknown response_type {}", request.response_type)))?;
        let has_program = matches!(wanted, ResponseType::All | ResponseType::DeviceConfigAndCookie);
        caller.check_pipeline_read(has_program)?;
        let Ok(state) = self.state() else { return Ok(v1::GetForwardingPipelineConfigResponse { config: None }) };
        let sent = &state.pipeline.config;
        let info = matches!(wanted, ResponseType::All | ResponseType::P4infoAndCookie);
        let config = v1::ForwardingPipelineConfig {
            p4info: sent.p4info.clone().filter(|_| info),
            p4_device_config: if has_program { sent.p4_device_config.clone() } else { Vec::new() },
            cookie: sent.cookie,
        };
        Ok(v1::GetForwardingPipelineConfigResponse { config: Some(config) })
    }
}
