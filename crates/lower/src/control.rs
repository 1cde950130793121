//! Lowers controls and the architecture's programmable blocks.

use ir::BodyKind;
use p4::typed::{Param, Var};

use crate::arch::{Block, BlockParam, Object};
use crate::instance::InstRef;
use crate::lowering::{Binding, Lowering};
use crate::value::Val;

impl<'a> Lowering<'a> {
    /// Lowers a control with bound parameters.
    pub(crate) fn control_body(&mut self, inst: InstRef) {
        let Some(control) = self.control_of(inst) else { return };
        self.declarations(inst, &control.locals);
        self.statements(&control.body);
    }

    /// Returns the run-time parameters of a parser or control.
    pub fn params_of(&self, val: &Val) -> Vec<&'a Var> {
        let params: &'a [Param] = match val {
            Val::Object(Object::Control(inst)) => self.control_of(*inst).map_or(&[], |control| &control.params),
            Val::Object(Object::Parser(inst)) => self.parser_of(*inst).map_or(&[], |parser| &parser.params),
            _ => &[],
        };
        params.iter().map(|param| &self.program.vars[param.var]).collect()
    }

    /// Lowers one of the architecture's blocks.
    pub(crate) fn programmable_block(&mut self, block: &Block) {
        let (inst, name, params, kind): (InstRef, _, &'a [Param], _) = match &block.object {
            Object::Control(inst) => match self.control_of(*inst) {
                Some(control) => (*inst, control.name.to_string(), &control.params, BodyKind::Control),
                None => return,
            },
            Object::Parser(inst) => match self.parser_of(*inst) {
                Some(parser) => (*inst, parser.name.to_string(), &parser.params, BodyKind::Parser),
                None => return,
            },
            _ => return,
        };
        for (param, role) in params.iter().zip(&block.params) {
            let binding = match role {
                BlockParam::Object(object) => Binding::Val(Val::Object(object.clone())),
                BlockParam::Shared(name) => {
                    let outer = self.at(self.program.vars[param.var].span);
                    let ty = self.program.vars[param.var].ty.clone();
                    let store = self.shared(name, &ty);
                    self.at(outer);
                    Binding::Store(store)
                }
            };
            self.env.insert(param.var, binding);
        }
        // One control may have two roles.
        let taken = self.ir.blocks.values().any(|body| self.ir.bodies[*body].name == name);
        let name = if taken { format!("{name}${}", block.role) } else { name };
        let body = self.with_body(name, kind, |cx| {
            cx.enter(inst, |cx| match kind {
                BodyKind::Parser => cx.parser_body(inst),
                _ => cx.control_body(inst),
            });
        });
        self.ir.blocks.insert(block.role.to_owned(), body);
    }
}
