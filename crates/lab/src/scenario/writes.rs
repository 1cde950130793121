//! Reads changes of entries from a file.

use diagnostics::Span;
use toml::de::DeTable;

use super::Write;
use crate::read::document::Reader;
use crate::topology::{Node, Topology};

impl Reader<'_> {
    /// Reads the change of entries in one TOML table.
    pub(super) fn write(&mut self, table: &DeTable<'_>, span: Span, topology: &Topology) -> Option<Write> {
        self.known(table, "a write", &["at", "switch", "delete", "entries"]);
        for (key, example) in [("at", "at = \"1s\""), ("switch", "switch = \"s1\"")] {
            if self.get(table, key).is_none() {
                self.wrong(span, format!("a write needs a time and a switch: {example}"));
            }
        }
        let (delete, entries) = (self.text(table, "delete"), self.text(table, "entries"));
        if delete.is_none() && entries.is_none() {
            self.wrong(
                span,
                "a write needs entries to insert or delete: entries = \"new.json\", delete = \"old.json\"",
            );
        }
        let at = self.parsed(table, "at");
        let switch = match self.text(table, "switch").map(|name| (name, self.place(name, topology))) {
            Some((_, Some(Node::Switch(switch)))) => Some(switch),
            Some(((name, span), Some(Node::Host(_)))) => {
                self.wrong(span, format!("`{name}` is a host and has no entries"));
                None
            }
            _ => None,
        };
        let [delete, entries] = [delete, entries].map(|file| file.map(|(name, _)| name.to_owned()));
        Some(Write { at: at?, switch: switch?, delete, entries, span })
    }
}
