//! Paths of packets, as their tiny packet programs recorded them, and policies that they must follow.

use std::collections::BTreeMap;

use switch::Time;
use toml::de::DeTable;

use super::minion::{MinionPacket, MinionResult};
use crate::read::document::Reader;
use crate::topology::{Delay, Node, Topology};

/// The word with the number of a switch.
const SWITCH_ID: &str = "Switch:ID";

/// The packets of some traffic that took one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// Index of the host that sent them, if it is known.
    pub from: Option<usize>,
    /// Index of the host to which they were sent, likewise.
    pub to: Option<usize>,
    /// Numbers of the switches that they passed, in this order.
    pub switches: Vec<u32>,
    /// Number of packets.
    pub packets: u64,
    /// Time at which the first of them arrived.
    pub first: Time,
    /// Time at which the last of them arrived.
    pub last: Time,
}

impl MinionResult {
    /// Returns the numbers of the switches that a packet passed; `None` if its program does not record them.
    pub fn path(&self, packet: &MinionPacket) -> Option<Vec<u32>> {
        let word = self.words.iter().position(|word| word == SWITCH_ID)?;
        packet.hops.iter().map(|hop| hop.get(word).copied()).collect()
    }

    /// Returns the paths of all packets, ordered by hosts and the time of the first packet.
    pub fn paths(&self) -> Vec<PathRecord> {
        let mut records = BTreeMap::<_, PathRecord>::new();
        for packet in &self.packets {
            let Some(switches) = self.path(packet) else { continue };
            let (from, to, at) = (packet.from, packet.to, packet.at);
            let new = PathRecord { from, to, switches: switches.clone(), packets: 0, first: at, last: at };
            let record = records.entry((from, to, switches)).or_insert(new);
            (record.packets, record.last) = (record.packets + 1, at);
        }
        let mut paths: Vec<PathRecord> = records.into_values().collect();
        paths.sort_by_key(|path| (path.from, path.to, path.first));
        paths
    }
}

/// A condition on the paths of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPolicy {
    /// Indices of switches that each packet must pass, in this order; others may be between them.
    pub passes: Vec<usize>,
    /// Indices of switches that no packet may pass.
    pub avoids: Vec<usize>,
    /// Only packets that arrived at this time or later.
    pub after: Delay,
    /// Only packets that arrived before this time.
    pub before: Delay,
}

/// The number of a switch with this index.
fn number(switch: usize) -> u32 {
    u32::try_from(switch + 1).unwrap_or(u32::MAX)
}

impl PathPolicy {
    /// Whether a path follows the policy.
    fn permits(&self, path: &[u32]) -> bool {
        let mut rest = path.iter();
        let passes = self.passes.iter().all(|switch| rest.any(|passed| *passed == number(*switch)));
        passes && !self.avoids.iter().any(|switch| path.contains(&number(*switch)))
    }

    /// Returns the number of packets that took other paths, with a text that describes the first of them; NaN if no
    /// packet recorded its path.
    pub fn strays(&self, minion: Option<&MinionResult>, topology: &Topology) -> (String, f64) {
        let during = Time::from_ns(self.after.as_ns())..Time::from_ns(self.before.as_ns());
        let packets = minion.into_iter().flat_map(|minion| minion.packets.iter().map(move |packet| (minion, packet)));
        let packets = packets.filter(|(_, packet)| during.contains(&packet.at));
        let (mut count, mut first) = (f64::NAN, String::new());
        for (minion, packet) in packets {
            let Some(path) = minion.path(packet) else { continue };
            count = if count.is_nan() { 0.0 } else { count };
            if !self.permits(&path) {
                count += 1.0;
                if first.is_empty() {
                    first = format!(" (first at {} by {})", packet.at, switch_names(&path, topology));
                }
            }
        }
        (first, count)
    }
}

/// Returns the names of switches: `s1, s3, s4`.
pub fn switch_names(path: &[u32], topology: &Topology) -> String {
    let name = |number: &u32| {
        let switch = number.checked_sub(1).and_then(|at| topology.switches.get(at as usize));
        switch.map_or(number.to_string(), |switch| switch.name.clone())
    };
    if path.is_empty() { "no switch".to_owned() } else { path.iter().map(name).collect::<Vec<_>>().join(", ") }
}

impl Reader<'_> {
    /// Reads the policy of an expectation; `None` if it has none.
    pub(super) fn path_policy(&mut self, table: &DeTable<'_>, topology: &Topology) -> Option<PathPolicy> {
        let [passes, avoids] = ["passes", "avoids"].map(|key| self.names(table, key));
        if passes.is_none() && avoids.is_none() {
            return None;
        }
        let [passes, avoids] = [passes, avoids].map(|names| {
            let mut switches = Vec::new();
            for (name, span) in names.unwrap_or_default() {
                match self.place((name, span), topology) {
                    Some(Node::Switch(switch)) => switches.push(switch),
                    Some(Node::Host(_)) => self.wrong(span, format!("`{name}` is a host: paths consist of switches")),
                    None => {}
                }
            }
            switches
        });
        let after = self.parsed(table, "after").unwrap_or_default();
        Some(PathPolicy { passes, avoids, after, before: self.parsed(table, "before").unwrap_or(Delay::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_passed_in_their_order() {
        let policy = |passes: &[usize], avoids: &[usize]| PathPolicy {
            passes: passes.to_vec(),
            avoids: avoids.to_vec(),
            after: Delay::default(),
            before: Delay::MAX,
        };
        // Numbers are one more than indices.
        assert!(policy(&[0, 2], &[]).permits(&[1, 2, 3]) && !policy(&[2, 0], &[]).permits(&[1, 2, 3]));
        assert!(policy(&[1, 1], &[]).permits(&[2, 1, 2]) && !policy(&[1, 1], &[]).permits(&[2, 1]));
        assert!(policy(&[], &[3]).permits(&[1, 2, 3]) && !policy(&[], &[1]).permits(&[1, 2, 3]));
    }

    #[test]
    fn packets_are_counted_by_path() {
        let packet = |at, hops: &[u32]| MinionPacket {
            at: Time::from_ns(at),
            from: Some(0),
            to: Some(1),
            status: wire::tpp::Status::NONE,
            hops: hops.iter().map(|switch| vec![9, *switch]).collect(),
        };
        let packets = vec![packet(1, &[1, 2]), packet(2, &[1, 3]), packet(5, &[1, 2])];
        let words = ["Queue:ID", SWITCH_ID].map(str::to_owned).to_vec();
        let minion = MinionResult { words, packets, ..MinionResult::default() };
        let paths: Vec<_> = minion.paths().into_iter().map(|path| (path.switches, path.packets, path.last)).collect();
        assert_eq!(paths, [(vec![1, 2], 2, Time::from_ns(5)), (vec![1, 3], 1, Time::from_ns(2))]);
        let policy =
            PathPolicy { passes: vec![], avoids: vec![2], after: Delay::from_ns(2), before: Delay::from_ns(5) };
        assert_eq!(policy.strays(Some(&minion), &Topology::default()).1, 1.0);
        let without = MinionResult { words: Vec::new(), ..minion };
        assert!(policy.strays(Some(&without), &Topology::default()).1.is_nan());
        assert!(policy.strays(None, &Topology::default()).1.is_nan());
    }
}
