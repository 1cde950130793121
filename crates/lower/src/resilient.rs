//! Checks `@resilient`: it belongs to registers and tables, and those of a group have to agree.

use diagnostics::{Diagnostic, Span};
use ir::{RESILIENT, ResilientObject, TableId};
use p4::typed::Annotations;

use crate::arch::Object;
use crate::lowering::Lowering;

impl Lowering<'_> {
    /// Records that an object is resilient, or reports the reason for which it cannot be.
    pub(crate) fn note_resilient(&mut self, object: &Object, annotations: &Annotations, declared: Span) {
        let Some(annotation) = annotations.iter().find(|annotation| &*annotation.name == RESILIENT) else {
            let is_quiet = annotations.iter().any(|annotation| &*annotation.name == "noWarn");
            if let (Object::Register(id), false) = (object, is_quiet) {
                self.unannotated.push((*id, declared));
            }
            return;
        };
        let span = annotation.span;
        let (kind, why) = match object {
            Object::Register(id) => return self.resilient.push((ResilientObject::Register(*id), span)),
            Object::Counter(_) => ("counter", "packets only add to it, so no switch owns its values"),
            Object::Meter(_) => ("meter", "its state depends on the clock of the switch that it runs on"),
            _ => ("extern object", "it has no state that could be replicated"),
        };
        self.error(
            Diagnostic::error("resilient", span, format!("a {kind} cannot be resilient: {why}"))
                .help("keep the state in a register with @resilient"),
        );
    }

    /// Records that a table is resilient.
    pub(crate) fn note_resilient_table(&mut self, id: TableId, annotations: &Annotations) {
        if let Some(annotation) = annotations.iter().find(|annotation| &*annotation.name == RESILIENT) {
            self.resilient.push((ResilientObject::Table(id), annotation.span));
        }
    }

    /// Reports mistakes in the annotations.
    pub(crate) fn check_resilient(&mut self) {
        let Err(mistakes) = self.ir.resilient_groups() else { return };
        for mistake in mistakes {
            let place = self.resilient.iter().find(|(id, _)| *id == mistake.object);
            let span = place.map_or(Span::default(), |(_, span)| *span);
            self.error(Diagnostic::error("resilient", span, mistake.message));
        }
    }
}
