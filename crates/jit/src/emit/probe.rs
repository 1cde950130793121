//! Telling whoever measures which part of a unit has just ended.

use cranelift_codegen::ir::{AbiParam, InstBuilder, types};
use cranelift_module::Module;
use ir::BodyId;

use super::Emit;
use crate::{Part, Probe};

/// What is probed in a unit.
#[derive(Clone, Copy)]
pub(super) struct Probed {
    probe: Probe,
    /// The body that is being generated, or was last and has not been told of.
    pub(super) body: Option<BodyId>,
}

impl<'a, 'f> Emit<'a, 'f> {
    /// Makes the code call `probe`, if there is one.
    pub(crate) fn with_probe(mut self, probe: Option<Probe>) -> Self {
        self.probed = probe.map(|probe| Probed { probe, body: None });
        self
    }

    /// A body follows; what belongs to the one before has ended.
    pub(super) fn probe_body(&mut self, body: Option<BodyId>) {
        self.probe_rest();
        if let Some(probed) = &mut self.probed {
            probed.body = body;
        }
    }

    /// What is left of the body so far has ended.
    pub(super) fn probe_rest(&mut self) {
        if let Some(body) = self.probed.and_then(|probed| probed.body) {
            self.probe(Part::Body(body));
        }
    }

    /// The current scope exits; if it is an action's, that ends its table too.
    pub(super) fn probe_exit(&mut self) {
        if let Some(back) = self.versions.scope(self.scope).back {
            let (table, ..) = self.applied(back);
            self.probe(Part::Table(table));
        }
    }

    /// A part has ended.
    pub(super) fn probe(&mut self, part: Part) {
        let Some(Probed { probe, .. }) = self.probed else { return };
        let mut signature = self.module.make_signature();
        signature.params.push(AbiParam::new(types::I64));
        let signature = self.b.import_signature(signature);
        let (address, number) = (self.number(probe as usize as u64), self.number(part.number()));
        self.b.ins().call_indirect(signature, address, &[number]);
    }
}
