//! Reads changes of entries and of memory servers from a file.

use diagnostics::Span;
use toml::de::DeTable;

use super::{ServerChange, Write};
use crate::read::document::Reader;
use crate::topology::{Node, Topology};

impl Reader<'_> {
    /// Reads the change of entries in one TOML table.
    pub(super) fn write(&mut self, table: &DeTable<'_>, span: Span, topology: &Topology) -> Option<Write> {
        self.known(table, "a write", &["at", "switch", "delete", "entries", "add", "remove"]);
        for (key, example) in [("at", "at = \"1s\""), ("switch", "switch = \"s1\"")] {
            if self.get(table, key).is_none() {
                self.wrong(span, format!("a write needs a time and a switch: {example}"));
            }
        }
        let (delete, entries) = (self.text(table, "delete"), self.text(table, "entries"));
        let named = [self.text(table, "add"), self.text(table, "remove")];
        let changes = usize::from(delete.is_some() || entries.is_some()) + named.iter().flatten().count();
        match changes {
            0 => self.wrong(
                span,
                "a write needs entries to insert or delete: entries = \"new.json\", delete = \"old.json\"; or a memory \
                 server that joins or leaves: add = \"m3\", remove = \"m1\"",
            ),
            1 => {}
            _ => self.wrong(span, "a write changes entries, or adds or removes one memory server: write several"),
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
        let [added, removed] = named.map(|name| name.and_then(|name| self.memory_server(name, switch, topology)));
        let server = added.map(ServerChange::Add).or(removed.map(ServerChange::Remove));
        let [delete, entries] = [delete, entries].map(|file| file.map(|(name, _)| name.to_owned()));
        Some(Write { at: at?, switch: switch?, delete, entries, server, span })
    }

    /// Returns the memory server with a name, if it is at a link of the switch.
    fn memory_server(
        &mut self,
        (name, span): (&str, Span),
        switch: Option<usize>,
        topology: &Topology,
    ) -> Option<usize> {
        let host = match self.place((name, span), topology)? {
            Node::Host(host) => host,
            Node::Switch(_) => {
                self.wrong(span, format!("`{name}` is a switch, and not a memory server"));
                return None;
            }
        };
        let is_server = |switch| topology.memory_servers(switch).iter().any(|(_, server)| *server == host);
        if switch.is_some_and(|switch| !is_server(switch)) {
            self.wrong(span, format!("`{name}` is not a memory server at a link of this switch"));
            return None;
        }
        Some(host)
    }
}
