//! Translates actions with their arguments (specification 9.1.2).

use engine::ActionCall;
use p4runtime_proto::v1;

use super::EntityTranslator;
use super::matching::{parse_value, print_value};
use crate::schema::Schema;
use crate::status::Refusal;

impl EntityTranslator<'_> {
    /// Translates an action and its arguments. Also returns them in canonical form.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the action is not one of `allowed`, or parameters are missing, unknown or given twice;
    /// `OUT_OF_RANGE` for values that do not fit.
    pub(super) fn call(
        &self,
        action: &v1::Action,
        allowed: &[u32],
        owner: &str,
    ) -> Result<(ActionCall, v1::Action), Refusal> {
        let choices = || format!("the actions of {owner} are {}", self.schema.action_names(allowed));
        if !allowed.contains(&action.action_id) {
            let name = self.schema.action_name(action.action_id);
            return Err(Refusal::invalid(format!("action {name} is not allowed; {}", choices())));
        }
        let schema = self.schema.action(action.action_id)?;
        let Some(ir) = schema.ir else {
            return Err(Refusal::unimplemented(format!("no table of the program has action {}", schema.name)));
        };
        let about = |refusal: Refusal| refusal.about(&format!("action {}", schema.name));
        if let Some(unknown) = action.params.iter().find(|it| !schema.params.iter().any(|p| p.id == it.param_id)) {
            let params: Vec<_> = schema.params.iter().map(|param| format!("{} `{}`", param.id, param.name)).collect();
            let params = if params.is_empty() { "none".to_owned() } else { params.join(", ") };
            return Err(about(Refusal::invalid(format!(
                "there is no parameter {}; the parameters are {params}",
                unknown.param_id
            ))));
        }
        let mut args = Vec::with_capacity(schema.params.len());
        let mut params = Vec::with_capacity(schema.params.len());
        for param in &schema.params {
            let mut given = action.params.iter().filter(|it| it.param_id == param.id);
            let (Some(it), None) = (given.next(), given.next()) else {
                return Err(about(Refusal::invalid(format!(
                    "parameter {} (id {}, {} bits) is missing or given twice",
                    param.name, param.id, param.width
                ))));
            };
            let value = parse_value(param, &it.value).map_err(|refusal| {
                let message = format!("parameter {} has {}", param.name, refusal.message);
                about(Refusal { message, ..refusal })
            })?;
            params.push(v1::action::Param { param_id: param.id, value: print_value(param, &value) });
            args.push(value);
        }
        Ok((ActionCall { action: ir, args }, v1::Action { action_id: action.action_id, params }))
    }
}

/// Converts an action of the program to the controller's form.
pub(crate) fn print_call(schema: &Schema, call: &ActionCall) -> v1::Action {
    let action = schema.action_ids.get(&call.action).and_then(|id| schema.actions.get(id));
    let Some(action) = action else { return v1::Action::default() };
    let param = |(param, value): (&crate::schema::FieldSchema, &bits::Bits)| v1::action::Param {
        param_id: param.id,
        value: print_value(param, value),
    };
    v1::Action { action_id: action.id, params: action.params.iter().zip(&call.args).map(param).collect() }
}
