//! Determines whether a packet may use the rows of a group in several passes.

use std::collections::BTreeSet;

use super::ResilientGroup;
use crate::{BodyId, Op, Program, RegisterId, Request};

impl Program {
    /// Whether each packet uses the registers of a group in one pass only: in ingress or in egress, and no packet
    /// passes twice. Otherwise, a packet may read a row in a pass that cannot be undone, and write it in a later one. A
    /// clone made in egress passes egress again, with the values that its original has read.
    pub fn uses_group_in_one_pass(&self, group: &ResilientGroup) -> bool {
        let in_egress = self.blocks.get("egress").is_some_and(|body| self.uses_any(*body, &group.registers));
        let is_repeat = |op: &Op| match op {
            Op::Request(Request::Resubmit(_) | Request::Recirculate(_)) => true,
            Op::Request(Request::Clone { ingress: false, .. }) => in_egress,
            _ => false,
        };
        let mut ops = self.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.instrs);
        !self.uses_group_twice(group) && !ops.any(|instr| is_repeat(&instr.op))
    }

    /// Whether both ingress and egress use the registers of a group.
    pub(super) fn uses_group_twice(&self, group: &ResilientGroup) -> bool {
        let uses = |block: &str| self.blocks.get(block).is_some_and(|body| self.uses_any(*body, &group.registers));
        uses("ingress") && uses("egress")
    }

    /// Whether a body, or an action that it may run, reads or writes one of these arrays.
    fn uses_any(&self, body: BodyId, registers: &[RegisterId]) -> bool {
        let (mut seen, mut left) = (BTreeSet::new(), vec![body]);
        while let Some(body) = left.pop() {
            if !seen.insert(body) {
                continue;
            }
            for instr in self.bodies[body].blocks.values().flat_map(|block| &block.instrs) {
                match &instr.op {
                    Op::RegisterRead(_, register, _) | Op::RegisterWrite(register, ..)
                        if registers.contains(register) =>
                    {
                        return true;
                    }
                    Op::Apply { table, .. } => {
                        let actions = &self.tables[*table].actions;
                        left.extend(actions.iter().map(|entry| self.actions[entry.action].body));
                    }
                    _ => {}
                }
            }
        }
        false
    }
}
