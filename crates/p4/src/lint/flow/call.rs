//! Calls: arguments, and what actions and tables leave behind.

use super::super::state::{May, State};
use super::expr::Place;
use super::{Flow, whole};
use crate::ast::{Direction, StructKind};
use crate::typed::{ActionId, Arg, Builtin, Call, Callee, Param, TableId, Type};

impl Flow<'_, '_, '_> {
    pub(super) fn call(&mut self, call: &Call, state: &mut State) {
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
                self.arguments(call, &params, is_extract.then_some(May::ON), state);
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
                let place = self.place(object);
                match (method, place) {
                    (Builtin::SetValid, Place::Header(path)) => state.set(&path, May::ON),
                    (Builtin::SetInvalid, Place::Header(path)) => state.set(&path, May::OFF),
                    (Builtin::SetValid | Builtin::SetInvalid, _) => self.write(object, May::UNKNOWN, state),
                    (Builtin::PushFront(_) | Builtin::PopFront(_), _) => self.write(object, May::UNKNOWN, state),
                    (Builtin::IsValid | Builtin::Size, _) => {}
                }
            }
        }
    }

    /// Arguments are read, and then written, as the parameters' directions say. `header` is what an `out` header is
    /// afterwards, if that is known.
    fn arguments(&mut self, call: &Call, params: &[Direction], header: Option<May>, state: &mut State) {
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
                    _ if self.is_scalar(&e.ty) => May::ON,
                    _ => May::UNKNOWN,
                };
                self.write(e, may, state);
            }
        }
    }

    fn table(&mut self, id: TableId, state: &mut State) {
        let table = &self.program.tables[id];
        for key in &table.keys {
            self.read(&key.expr, state);
        }
        if table.actions.is_empty() {
            return;
        }
        let before = self.fork(state);
        let mut after = State::dead();
        for action in &table.actions {
            if self.is_exhausted() {
                return;
            }
            let mut inner = self.fork(&before);
            for arg in &action.args {
                if let Arg::Expr(e) = arg {
                    self.quiet += 1;
                    self.write(e, May::UNKNOWN, &mut inner);
                    self.quiet -= 1;
                }
            }
            let effect = self.effect(action.action);
            inner.apply(&effect);
            self.meet(&mut after, &inner);
        }
        *state = after;
    }

    /// What an action leaves behind, told by what was there before.
    fn effect(&mut self, id: ActionId) -> State {
        if let Some(effect) = self.effects.get(&id) {
            return effect.clone();
        }
        let program = self.program;
        let mut state = State::default();
        let exits = std::mem::replace(&mut self.exits, State::dead());
        let loops = std::mem::take(&mut self.loops);
        self.quiet += 1;
        self.body(&program.actions[id].body, &mut state);
        // Nobody else knows the action's parameters.
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
