//! Warns about registers without `@resilient` in a program that annotates other state with it.
//!
//! A switch that takes over starts with zeros in such a register, so its packets are counted or forwarded differently.
//! Registers that packets only write are statistics for the control plane, and registers that packets only read are
//! configuration: neither is reported.

use std::collections::HashSet;

use diagnostics::{Diagnostic, Diagnostics, Span};
use ir::{LValue, Op, Program, RESILIENT, RegisterId};

use crate::lowering::Lowering;
use crate::passes::read_slots;

impl Lowering<'_> {
    /// Removes and returns the registers without `@resilient`, with the places of their declarations, if the program
    /// has state with it.
    pub(crate) fn take_unannotated(&mut self) -> Vec<(RegisterId, Span)> {
        let found = std::mem::take(&mut self.unannotated);
        if self.resilient.is_empty() { Vec::new() } else { found }
    }
}

/// Reports those of the registers that packets both read and write.
pub(crate) fn warn(program: &mut Program, unannotated: &[(RegisterId, Span)], diagnostics: &mut Diagnostics) {
    if unannotated.is_empty() {
        return;
    }
    let kept = kept_state(program);
    for (id, span) in unannotated.iter().filter(|(id, _)| kept.contains(id)) {
        let name = &program.registers[*id].name;
        let message = format!("packets read and write `{name}`, which is not @{RESILIENT}, although other state is");
        let help = format!(
            "annotate it with `@{RESILIENT}` or, if a switch that takes over may begin with zeros, with `@noWarn`"
        );
        diagnostics.push(
            Diagnostic::warning("unannotated-state", *span, message)
                .label("lost with the switch that it is on")
                .help(help),
        );
    }
}

/// Returns the registers that packets write, and whose elements they read and use.
fn kept_state(program: &mut Program) -> HashSet<RegisterId> {
    let used = read_slots(program);
    let is_used = |place: &LValue| match place {
        LValue::Slot(slot) => used.contains(slot),
        _ => true,
    };
    let (mut read, mut written) = (HashSet::new(), HashSet::new());
    let blocks = program.bodies.values().flat_map(|body| body.blocks.values());
    for instr in blocks.flat_map(|block| &block.instrs) {
        match &instr.op {
            Op::RegisterRead(place, register, _) if is_used(place) => _ = read.insert(*register),
            Op::RegisterWrite(register, ..) => _ = written.insert(*register),
            _ => {}
        }
    }
    read.intersection(&written).copied().collect()
}
