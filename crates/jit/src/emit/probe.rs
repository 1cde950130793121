//! Calls of a measuring probe whenever a part of a unit has ended.

use cranelift_codegen::ir::{AbiParam, InstBuilder, types};
use cranelift_module::Module;
use ir::BodyId;

use super::Emit;
use crate::{Probe, ProbedPart};

/// The probe of a unit.
#[derive(Clone, Copy)]
pub(super) struct UnitProbe {
    probe: Probe,
    /// The body that is being generated, or the last one if its end has not been reported.
    pub(super) body: Option<BodyId>,
}

impl<'a, 'f> Emit<'a, 'f> {
    /// Makes the code call `probe`, if there is one.
    pub(crate) fn with_probe(mut self, probe: Option<Probe>) -> Self {
        self.probed = probe.map(|probe| UnitProbe { probe, body: None });
        self
    }

    /// Begins a body; the part before it has ended.
    pub(super) fn probe_body(&mut self, body: Option<BodyId>) {
        self.probe_rest();
        if let Some(probed) = &mut self.probed {
            probed.body = body;
        }
    }

    /// Reports the end of the current stretch of a body.
    pub(super) fn probe_rest(&mut self) {
        if let Some(body) = self.probed.and_then(|probed| probed.body) {
            self.probe(ProbedPart::Body(body));
        }
    }

    /// Reports that the current scope exits; if it is an action's, that ends its table too.
    pub(super) fn probe_exit(&mut self) {
        if let Some(return_site) = self.versions.scope(self.scope).return_site {
            let (table, ..) = self.applied(return_site);
            self.probe(ProbedPart::Table(table));
        }
    }

    /// Reports the end of a part.
    pub(super) fn probe(&mut self, part: ProbedPart) {
        let Some(UnitProbe { probe, .. }) = self.probed else { return };
        let mut signature = self.module.make_signature();
        signature.params.push(AbiParam::new(types::I64));
        let signature = self.b.import_signature(signature);
        let (address, number) = (self.number(probe as usize as u64), self.number(part.number()));
        self.b.ins().call_indirect(signature, address, &[number]);
    }
}
