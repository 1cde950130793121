//! Reads faults from a file, and draws random ones from the seed.

use diagnostics::{Diagnostic, Span};
use toml::de::DeTable;

use super::{Planned, RandomFaults};
use crate::random::Random;
use crate::read::document::Reader;
use crate::sim::Fault;
use crate::topology::{Delay, Node, Topology};

const KEYS: [&str; 15] = [
    "at",
    "crash",
    "restart",
    "suspend",
    "resume",
    "down",
    "up",
    "partition",
    "heal",
    "slow",
    "by",
    "skew",
    "offset",
    "behind",
    "drift_ppm",
];

/// A fault of a host or switch, with its time.
type Told = (Delay, Node, Fault);

impl Reader<'_> {
    /// Reads the faults of one table.
    pub(super) fn fault(&mut self, table: &DeTable<'_>, span: Span, topology: &Topology) -> Vec<Planned> {
        self.known(table, "a fault", &KEYS);
        for (word, of) in [("by", "slow"), ("offset", "skew"), ("behind", "skew"), ("drift_ppm", "skew")] {
            if let (Some((_, span)), None) = (self.get(table, word), self.get(table, of)) {
                self.wrong(span, format!("`{word}` has no effect without `{of}`"));
            }
        }
        let Some(at) = self.parsed::<Delay>(table, "at") else {
            if self.get(table, "at").is_none() {
                self.wrong(span, "a fault needs a time: at = \"500ms\"");
            }
            return Vec::new();
        };
        let before = self.diagnostics.error_count();
        let mut told = Vec::new();
        for (key, fault) in [
            ("crash", Fault::Crash),
            ("restart", Fault::Restart),
            ("suspend", Fault::Suspend),
            ("resume", Fault::Resume),
        ] {
            for name in self.names(table, key).unwrap_or_default() {
                told.extend(self.place(name, topology).map(|node| (at, node, fault)));
            }
        }
        for (key, up) in [("down", false), ("up", true)] {
            let Some(names) = self.names(table, key) else { continue };
            let nodes: Vec<_> = names.iter().filter_map(|name| self.place(*name, topology)).collect();
            let [one, other] = nodes[..] else {
                self.wrong(span, format!("a link must have two ends: {key} = [\"s1\", \"s2\"]"));
                continue;
            };
            let joins = |ends: [Node; 2]| ends == [one, other] || ends == [other, one];
            let found = links(topology, at, up, joins);
            if found.is_empty() {
                self.wrong(
                    span,
                    format!("there is no link between `{}` and `{}`", topology.name(one), topology.name(other)),
                );
            }
            told.extend(found);
        }
        for (key, up) in [("partition", false), ("heal", true)] {
            let Some(names) = self.names(table, key) else { continue };
            let side: Vec<_> = names.iter().filter_map(|name| self.place(*name, topology)).collect();
            told.extend(links(topology, at, up, |ends| side.contains(&ends[0]) != side.contains(&ends[1])));
        }
        for name in self.names(table, "slow").unwrap_or_default() {
            let by: Delay = self.parsed(table, "by").unwrap_or_default();
            told.extend(self.host(name, "can be slow", topology).map(|node| (at, node, Fault::Slow(by.as_ns()))));
        }
        for name in self.names(table, "skew").unwrap_or_default() {
            let ahead = self.parsed::<Delay>(table, "offset").unwrap_or_default().as_ns() as i64;
            let behind = self.parsed::<Delay>(table, "behind").unwrap_or_default().as_ns() as i64;
            let drift_ppb = i64::from(self.integer(table, "drift_ppm", 0..=1_000_000).unwrap_or(0)) * 1_000;
            let skew = Fault::Skew { offset_ns: ahead - behind, drift_ppb };
            told.extend(self.host(name, "can have clock skew", topology).map(|node| (at, node, skew)));
        }
        if told.is_empty() && self.diagnostics.error_count() == before {
            self.wrong(span, "a fault needs an event: crash = \"s1\", down = [\"s1\", \"s2\"], …");
        }
        told.into_iter().map(|(at, node, fault)| Planned { at, node, fault, span }).collect()
    }

    /// Resolves the host of a fault that only hosts can have.
    fn host(&mut self, (name, span): (&str, Span), what: &str, topology: &Topology) -> Option<Node> {
        let node = self.place((name, span), topology)?;
        if let Node::Switch(_) = node {
            self.wrong(span, format!("`{name}` is a switch; only hosts {what}"));
        }
        Some(node)
    }

    /// Warns of an event at or after the end of the scenario.
    pub(super) fn in_time(&mut self, table: &DeTable<'_>, at: Delay, duration: Delay) {
        if at >= duration
            && let Some((_, span)) = self.get(table, "at")
        {
            let message = format!("this never happens: the scenario ends at {duration}");
            self.diagnostics.push(Diagnostic::warning("after-the-end", span, message));
        }
    }
}

/// Returns the link-up or link-down faults for both ends of the links that `meant` selects.
fn links(topology: &Topology, at: Delay, up: bool, meant: impl Fn([Node; 2]) -> bool) -> Vec<Told> {
    let links = topology.links.iter().filter(|link| meant(link.ends.map(|end| end.node)));
    let told = |port| if up { Fault::LinkUp(port) } else { Fault::LinkDown(port) };
    links.flat_map(|link| link.ends.map(|end| (at, end.node, told(end.port)))).collect()
}

/// Draws random faults from a seed, in the order of time. A switch or link that is already down is skipped.
pub fn draw(faults: RandomFaults, topology: &Topology, duration: Delay, seed: u64) -> Vec<Planned> {
    let mut random = Random::new(seed, 3);
    let mut told: Vec<Told> = Vec::new();
    let switches = if faults.crashes { topology.switches.len() } else { 0 };
    let cables = if faults.links { topology.links.len() } else { 0 };
    let mut back = vec![0; switches + cables];
    let mut now = 0_u64;
    if back.is_empty() {
        return Vec::new();
    }
    loop {
        now = now.saturating_add(random.exponential_ns(faults.every.as_ns() as f64).max(1));
        let lasts = random.exponential_ns(faults.lasts.as_ns() as f64).max(1);
        let which = random.below(back.len() as u64) as usize;
        if now >= duration.as_ns() {
            let planned = |(at, node, fault)| Planned { at, node, fault, span: Span::default() };
            return told.into_iter().map(planned).collect();
        }
        if back[which] > now {
            continue;
        }
        back[which] = now.saturating_add(lasts).saturating_add(1);
        let (begins, ends) = (Delay::from_ns(now), Delay::from_ns(now.saturating_add(lasts)));
        if which < switches {
            told.push((begins, Node::Switch(which), Fault::Crash));
            told.push((ends, Node::Switch(which), Fault::Restart));
        } else {
            for end in topology.links[which - switches].ends {
                told.push((begins, end.node, Fault::LinkDown(end.port)));
                told.push((ends, end.node, Fault::LinkUp(end.port)));
            }
        }
    }
}
