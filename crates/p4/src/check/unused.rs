//! Warnings of what is declared and never used: variables, actions and tables.

use std::collections::HashSet;

use source::{Diagnostic, Span};

use super::{Checker, VarKind};
use crate::typed::{ActionId, TableId, VarId};

/// What expressions, statements and tables referred to.
#[derive(Default)]
pub(super) struct Used {
    pub(super) vars: HashSet<VarId>,
    pub(super) actions: HashSet<ActionId>,
    pub(super) tables: HashSet<TableId>,
}

impl Checker<'_> {
    /// A generic declaration is checked several times; one use in one of them is enough, for the place is the same.
    pub(super) fn warn_of_unused(&mut self) {
        let used_places: HashSet<Span> = self
            .used
            .vars
            .iter()
            .map(|var| self.out.vars[*var].span)
            .chain(self.used.actions.iter().map(|action| self.out.actions[*action].span))
            .chain(self.used.tables.iter().map(|table| self.out.tables[*table].span))
            .collect();
        let mut found: Vec<(Span, String)> = Vec::new();
        for (id, var) in &self.out.vars {
            let is_local = matches!(self.var_kinds.get(&id), Some(VarKind::Local));
            if is_local && !used_places.contains(&var.span) {
                found.push((var.span, format!("variable `{}` is never used", var.name)));
            }
        }
        for action in self.out.actions.values().filter(|action| &*action.name != "NoAction") {
            let quiet = action.annotations.iter().any(|annotation| &*annotation.name == "noWarn");
            if !quiet && !used_places.contains(&action.span) {
                found.push((action.span, format!("action `{}` is never used", action.local_name)));
            }
        }
        for table in self.out.tables.values() {
            if !used_places.contains(&table.span) {
                found.push((table.span, format!("table `{}` is never applied", table.local_name)));
            }
        }
        found.sort();
        for (span, message) in found {
            self.error(Diagnostic::warning("unused", span, message));
        }
    }
}
