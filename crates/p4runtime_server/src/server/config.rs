//! Handles pipeline requests and restores stored pipelines (specification chapters 14 and 15).

use std::collections::BTreeSet;

use p4runtime_proto::v1;
use switch::SwitchControl;

use super::{ConfigAction, ConfigPlan, PipelineState, Server};
use crate::arbitration::{Admission, Outbox};
use crate::caller::Caller;
use crate::pipeline::Pipeline;
use crate::shadow::ShadowState;
use crate::status::{Refusal, Status};
use crate::store::{PipelineChanges, StoreChanges};
use crate::translate::{EntityTranslator, Overlay};

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

impl Server {
    /// Restores a running pipeline: applies its stored updates to `switch`, which was just built for it. Also returns
    /// the updates that no longer fit.
    #[must_use]
    pub fn with_restored(
        mut self,
        pipeline: Pipeline,
        updates: &[v1::Update],
        switch: &mut dyn SwitchControl,
    ) -> (Server, LostUpdates) {
        let (shadow, lost) = restore(&pipeline, &self.settings.ports, updates, switch);
        self.committed = Some(PipelineState::new(pipeline, shadow));
        (self, lost)
    }

    /// Restores a pipeline that was saved and not committed. `switch` will run it after the commit.
    #[must_use]
    pub fn with_saved(
        mut self,
        pipeline: Pipeline,
        updates: &[v1::Update],
        mut switch: Box<dyn SwitchControl>,
    ) -> (Server, LostUpdates) {
        let (shadow, lost) = restore(&pipeline, &self.settings.ports, updates, &mut *switch);
        self.saved = Some((PipelineState::new(pipeline, shadow), switch));
        (self, lost)
    }
}

/// Restores the stored contents of a switch that was just built.
fn restore(
    pipeline: &Pipeline,
    ports: &BTreeSet<u32>,
    updates: &[v1::Update],
    switch: &mut dyn SwitchControl,
) -> (ShadowState, LostUpdates) {
    // The program's own entries that were deleted are not among the updates.
    let mut all = ShadowState::of(&pipeline.schema, switch).replay();
    all.retain(|update| matches!(entity_of(update), Some(v1::entity::Entity::TableEntry(it)) if !it.is_default_action));
    all.iter_mut().for_each(|update| update.r#type = v1::update::Type::Delete.into());
    all.extend_from_slice(updates);
    write_again(pipeline, ports, &all, switch)
}

fn entity_of(update: &v1::Update) -> Option<&v1::entity::Entity> {
    update.entity.as_ref()?.entity.as_ref()
}

/// Updates that could not be restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostUpdates {
    /// Number of updates.
    pub count: usize,
    /// Error message of the first.
    pub first: String,
}

/// Writes the contents of one pipeline to a switch that runs another.
///
/// # Errors
/// `INVALID_ARGUMENT`, naming the first update that does not fit.
pub(crate) fn reconcile(
    pipeline: &Pipeline,
    ports: &BTreeSet<u32>,
    updates: &[v1::Update],
    switch: &mut dyn SwitchControl,
) -> Result<ShadowState, Refusal> {
    match write_again(pipeline, ports, updates, switch) {
        (shadow, LostUpdates { count: 0, .. }) => Ok(shadow),
        (_, LostUpdates { count, first }) => Err(Refusal::invalid(format!(
            "{count} of {} entities do not fit the new program; the first: {first}",
            updates.len()
        ))),
    }
}

/// Applies updates to a switch that was just built.
fn write_again(
    pipeline: &Pipeline,
    ports: &BTreeSet<u32>,
    updates: &[v1::Update],
    switch: &mut dyn SwitchControl,
) -> (ShadowState, LostUpdates) {
    let schema = &pipeline.schema;
    let mut shadow = ShadowState::of(schema, switch);
    let mut lost = LostUpdates::default();
    for update in updates {
        let mut translator = EntityTranslator { schema, shadow: &shadow, ports, overlay: Overlay::default() };
        let written = translator.update(update).and_then(|planned| {
            match planned.op.clone().run(switch) {
                Ok(_) => Ok(planned.change),
                // The program's own entries exist already, and may have been modified.
                Err(engine::EntryError::Duplicate) => {
                    let again = v1::Update { r#type: v1::update::Type::Modify.into(), ..update.clone() };
                    let planned = translator.update(&again)?;
                    let run = planned.op.run(switch);
                    run.map(|_| planned.change).map_err(|error| Refusal::from_engine_error(&error, &planned.subject))
                }
                Err(error) => Err(Refusal::from_engine_error(&error, &planned.subject)),
            }
        });
        match written {
            Ok(change) => shadow.apply(change),
            Err(refusal) => {
                if lost.count == 0 {
                    lost.first = refusal.message;
                }
                lost.count += 1;
            }
        }
    }
    (shadow, lost)
}
