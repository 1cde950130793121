//! Checks that `@elastic` marks only tables whose entries READs of remote memory can find.

use diagnostics::{Diagnostic, Span};
use ir::{ELASTIC, TableId};
use p4::typed::{self, Annotations};

use crate::lowering::Lowering;

/// Places of an elastic table in the program.
pub(crate) struct ElasticSpans {
    table: TableId,
    annotation: Span,
    keys: Vec<Span>,
}

impl Lowering<'_> {
    /// Reports `@elastic` before something that is no table.
    pub(crate) fn refuse_elastic(&mut self, annotations: &Annotations) {
        if let Some(annotation) = annotations.iter().find(|annotation| &*annotation.name == ELASTIC) {
            let message = "only the entries of a table can lie in the memory of servers";
            let help = "write @elastic before a table";
            self.error(Diagnostic::error("elastic", annotation.span, message).help(help));
        }
    }

    /// Notes that a table is elastic.
    pub(crate) fn note_elastic_table(&mut self, id: TableId, table: &typed::Table) {
        if let Some(annotation) = table.annotations.iter().find(|annotation| &*annotation.name == ELASTIC) {
            let keys = table.keys.iter().filter(|key| &*key.match_kind != "selector").map(|key| key.span).collect();
            self.elastic.push(ElasticSpans { table: id, annotation: annotation.span, keys });
        }
    }

    /// Reports mistakes in the annotations.
    pub(crate) fn check_elastic(&mut self) {
        let Err(mistakes) = self.ir.elastic_tables() else { return };
        for mistake in mistakes {
            let places = self.elastic.iter().find(|places| places.table == mistake.table);
            let key = |places: &ElasticSpans| mistake.key.and_then(|at| places.keys.get(at).copied());
            let span = places.map_or(Span::default(), |places| key(places).unwrap_or(places.annotation));
            let mut finding = Diagnostic::error("elastic", span, mistake.message).help(mistake.help);
            if mistake.key.is_some() {
                finding = finding.label("a READ of consecutive cells has to find the entry");
            }
            self.error(finding);
        }
    }
}
