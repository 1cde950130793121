//! Calls: arguments, and the effects of actions and tables.

use super::super::state::{AbstractValue, FlowState};
use super::expr::TrackedPart;
use super::{Flow, whole};
use crate::ast::{Direction, StructKind};
use crate::typed::{ActionId, Arg, Builtin, Call, Callee, Param, TableId, Type};

impl Flow<'_, '_, '_> {
    pub(super) fn call(&mut self, call: &Call, state: &mut FlowState) {
        let program = self.program;
        match &call.callee {
            Callee::Function(id) => self.arguments(call, &directions(&program.functions[*id].params), None, state),
            Callee::Action(id) => {
                let params: Vec<Direction> = program.actions[*id].params.iter().map(|param| param.direction).collect();
                self.arguments(call, &params, None, state);
                let effect = self.effect(*id);
                self.spend(state);
                state.apply(&effect);
            }
            Callee::Table(id) => self.table(*id, state),
            Callee::ExternFn(id, _) => {
                let params: Vec<Direction> = program.extern_fns[*id].params.iter().map(|(_, way)| *way).collect();
                self.arguments(call, &params, None, state);
            }
            Callee::Method { of, method, object, .. } => {
                self.read(object, state);
                let Some(decl) = program.externs[*of].methods.get(*method) else { return };
                let params: Vec<Direction> = decl.params.iter().map(|(_, way)| *way).collect();
                let is_extract = &*decl.name == "extract" && &*program.externs[*of].name == "packet_in";
                self.arguments(call, &params, is_extract.then_some(AbstractValue::ON), state);
            }
            Callee::Apply(object) => {
                let params = match &object.ty {
                    Type::Parser(id) => directions(&program.parsers[*id].params),
                    Type::Control(id) => directions(&program.controls[*id].params),
                    _ => vec![Direction::InOut; call.args.len()],
                };
                self.arguments(call, &params, None, state);
            }
            Callee::Builtin(method, object) => {
                let part = self.part(object);
                match (method, part) {
                    (Builtin::SetValid, TrackedPart::Header(path)) => state.set(&path, AbstractValue::ON),
                    (Builtin::SetInvalid, TrackedPart::Header(path)) => state.set(&path, AbstractValue::OFF),
                    (Builtin::SetValid | Builtin::SetInvalid, _) => self.write(object, AbstractValue::UNKNOWN, state),
                    (Builtin::PushFront(_) | Builtin::PopFront(_), _) => {
                        self.write(object, AbstractValue::UNKNOWN, state)
                    }
                    (Builtin::IsValid | Builtin::Size, _) => {}
                }
            }
        }
    }

    /// Reads and then writes the arguments, according to the parameters' directions. `header` is the state of an `out`
    /// header afterwards, if known.
    fn arguments(&mut self, call: &Call, params: &[Direction], header: Option<AbstractValue>, state: &mut FlowState) {
        let way = |at: usize| params.get(at).copied().unwrap_or(Direction::None);
        for (at, arg) in call.args.iter().enumerate() {
            let Arg::Expr(e) = arg else { continue };
            match way(at) {
                Direction::None | Direction::In => self.read(e, state),
                Direction::InOut if self.is_scalar(&e.ty) => self.read(e, state),
                Direction::InOut | Direction::Out => {}
            }
        }
        for (at, arg) in call.args.iter().enumerate() {
            let Arg::Expr(e) = arg else { continue };
            if matches!(way(at), Direction::Out | Direction::InOut) {
                let may = match header {
                    Some(may) if self.header_kind(&e.ty) == Some(StructKind::Header) => may,
                    _ if self.is_scalar(&e.ty) => AbstractValue::ON,
                    _ => AbstractValue::UNKNOWN,
                };
                self.write(e, may, state);
            }
        }
    }

    fn table(&mut self, id: TableId, state: &mut FlowState) {
        let table = &self.program.tables[id];
        for key in &table.keys {
            self.read(&key.expr, state);
        }
        if table.actions.is_empty() {
            return;
        }
        let before = self.fork(state);
        let mut after = FlowState::dead();
        for action in &table.actions {
            if self.is_exhausted() {
                return;
            }
            let mut inner = self.fork(&before);
            for arg in &action.args {
                if let Arg::Expr(e) = arg {
                    self.quiet += 1;
                    self.write(e, AbstractValue::UNKNOWN, &mut inner);
                    self.quiet -= 1;
                }
            }
            let effect = self.effect(action.action);
            inner.apply(&effect);
            self.meet(&mut after, &inner);
        }
        *state = after;
    }

    /// Returns the effect of an action as a function of the state before it.
    fn effect(&mut self, id: ActionId) -> FlowState {
        if let Some(effect) = self.effects.get(&id) {
            return effect.clone();
        }
        let program = self.program;
        let mut state = FlowState::default();
        let exits = std::mem::replace(&mut self.exits, FlowState::dead());
        let loops = std::mem::take(&mut self.loops);
        self.quiet += 1;
        self.body(&program.actions[id].body, &mut state);
        // The action's parameters are unknown outside of it.
        program.actions[id].params.iter().for_each(|param| state.forget(&whole(param.var)));
        self.quiet -= 1;
        self.exits = exits;
        self.loops = loops;
        self.effects.insert(id, state.clone());
        state
    }
}

fn directions(params: &[Param]) -> Vec<Direction> {
    params.iter().map(|param| param.direction).collect()
}
