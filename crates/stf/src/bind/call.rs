//! Binds action calls: names to parameters, values to their widths.

use bits::Bits;
use diagnostics::Diagnostic;
use diagnostics::names::nearest;
use engine::ActionCall;
use ir::{Action, ActionId};

use super::Binder;
use crate::script::{ActionCallText, Word};

impl Binder<'_> {
    /// Binds a call of one of `actions`, which belong to the table or profile `owner`.
    pub(super) fn call(&mut self, call: &ActionCallText, actions: &[ActionId], owner: &str) -> Option<ActionCall> {
        let program = self.program;
        let all: Vec<_> = actions.iter().map(|id| (*id, program.actions[*id].name.as_str())).collect();
        let id = self.find_in(&call.action, "action", Some(owner), &all)?;
        let action = &program.actions[id];
        let mut args: Vec<Option<Bits>> = vec![None; action.params.len()];
        for (position, (name, value)) in call.args.iter().enumerate() {
            let at = match name {
                Some(name) => self.parameter(action, name)?,
                None if position < args.len() => position,
                None => {
                    let message = format!("`{}` has no parameter for this value", action.name);
                    return self.error("stf-value", value.span, message);
                }
            };
            if args[at].is_some() {
                let message = format!("`{}` has a value already", action.params[at].name);
                return self.error("stf-value", name.as_ref().map_or(value.span, |name| name.span), message);
            }
            args[at] = Some(self.value(value, program.slots[action.params[at].slot].width)?);
        }
        for (param, arg) in action.params.iter().zip(&args) {
            if arg.is_none() {
                let message = format!("`{}` requires a value for `{}`", action.name, param.name);
                return self.error("stf-value", call.action.span, message);
            }
        }
        Some(ActionCall { action: id, args: args.into_iter().flatten().collect() })
    }

    /// Returns the index of the parameter with this name.
    fn parameter(&mut self, action: &Action, name: &Word) -> Option<usize> {
        let found = action.params.iter().position(|param| param.name == name.text);
        if found.is_none() {
            let message = format!("`{}` has no parameter `{}`", action.name, name.text);
            let diagnostic = Diagnostic::error("stf-unknown", name.span, message);
            self.diagnostics.push(match nearest(&name.text, action.params.iter().map(|param| param.name.as_str())) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic,
            });
        }
        found
    }
}
