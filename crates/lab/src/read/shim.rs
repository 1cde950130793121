//! Reads the rules of the hosts' shims.

use diagnostics::{Diagnostic, Diagnostics, Span};
use toml::de::{DeTable, DeValue};

use super::document::Reader;
use crate::topology::{Host, HostShim, Node, ShimRule, TinyAccess, Topology};

/// A list of such rules.
const EXAMPLE: &str = "[\"queues.tpp to 10.0.0.0/8 tcp\"]";

/// The value of `shim`.
pub(super) enum ShimValue {
    /// `true`.
    Default,
    /// `false`.
    None,
    /// A table.
    Own(HostShim),
}

impl Reader<'_> {
    /// `shim = false`, `true`, or `{ insert = ["FILE to PREFIX"], policy = "FILE" }`.
    pub(super) fn shim(&mut self, table: &DeTable<'_>, tpp: TinyAccess) -> Option<ShimValue> {
        let (value, span) = self.get(table, "shim")?;
        if let Some(has_shim) = value.as_bool() {
            return Some(if has_shim { ShimValue::Default } else { ShimValue::None });
        }
        let Some(shim) = value.as_table() else {
            self.wrong(span, format!("`shim` must be true or false, or a table: {{ insert = {EXAMPLE} }}"));
            return None;
        };
        self.known(shim, "a shim", &["insert", "policy"]);
        let insert = self.rules(shim);
        if tpp == TinyAccess::Off && !insert.is_empty() {
            self.wrong(span, format!("`insert` has no effect without {} below [defaults]", super::toml::TPP_ON));
        }
        let policy = self.text(shim, "policy").map(|(name, span)| (name.to_owned(), span));
        Some(ShimValue::Own(HostShim { insert, policy }))
    }

    fn rules(&mut self, shim: &DeTable<'_>) -> Vec<ShimRule> {
        let Some((value, span)) = self.get(shim, "insert") else { return Vec::new() };
        let texts: Option<Vec<(&str, Span)>> = match value {
            DeValue::String(text) => Some(vec![(text, span)]),
            DeValue::Array(list) => {
                list.iter().map(|text| Some((text.get_ref().as_str()?, self.span(text.span())))).collect()
            }
            _ => None,
        };
        let Some(texts) = texts else {
            self.wrong(span, format!("`insert` must be a list of rules: {EXAMPLE}"));
            return Vec::new();
        };
        let mut rules = Vec::new();
        for (text, span) in texts {
            self.showable(text, span);
            match text.parse() {
                Err(mistake) => self.wrong(span, format!("`{}`: {mistake}", text.escape_debug())),
                Ok(rule) => rules.push(ShimRule { text: text.to_owned(), rule, span }),
            }
        }
        rules
    }
}

/// Warns of hosts without a shim to which rules send programs: they drop such packets.
pub(super) fn check(topology: &Topology, diagnostics: &mut Diagnostics) {
    let strips = |at: usize| {
        topology.uplink(at).is_some_and(|end| match end.node {
            Node::Switch(switch) => topology.switches[switch].edge.strip.contains(&end.port),
            Node::Host(_) => false,
        })
    };
    let bare: Vec<&Host> = topology
        .traffic_hosts()
        .into_iter()
        .filter(|at| topology.hosts[*at].lacks_shim && !strips(*at))
        .map(|at| &topology.hosts[at])
        .collect();
    let mut warned: Vec<Span> = Vec::new();
    for rule in topology.hosts.iter().flat_map(|host| &host.shim.insert) {
        // Hosts share the rules of `[defaults]`.
        if warned.contains(&rule.span) {
            continue;
        }
        let is_reached = |host: &&&Host| {
            let prefix = rule.rule.filter.destination;
            host.address.is_some_and(|(address, _)| prefix.is_none_or(|prefix| prefix.contains(address.into())))
        };
        if let Some(host) = bare.iter().find(is_reached) {
            warned.push(rule.span);
            let message = format!("`{}` has no shim, and drops packets with the program of this rule", host.name);
            let help = "restrict the rule with `to PREFIX`, or write tpp_strip = [PORT] for the port of its switch";
            diagnostics.push(Diagnostic::warning("shim", rule.span, message).help(help));
        }
    }
}
