//! Counts of tiny packet programs and of packets with INT: in the summary of a run, the status of a lab, and the
//! results of a simulation.

use serde_json::{Value, json};

use crate::output::{counted, grouped};

/// The programs and the packets with INT that arrived at a switch, over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinyCounts {
    /// Executed programs, including those that ended early.
    executed: u64,
    /// Malformed programs, and programs with a wrong checksum.
    refused: u64,
    /// Programs beyond the limit of executions.
    limited: u64,
    /// Programs that were taken out of packets at the edge.
    stripped: u64,
    int: IntCounts,
}

/// Packets with INT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IntCounts {
    /// The metadata of the switch were added.
    inserted: u64,
    /// A sink restored the packet.
    removed: u64,
    /// No hops remained, or the stack had no room.
    exceeded: u64,
    /// The packet would have exceeded the MTU.
    mtu: u64,
    /// Malformed headers.
    refused: u64,
    /// Beyond the limit.
    limited: u64,
}

impl TinyCounts {
    /// Adds up the counters `port.N.tpp.…` and `port.N.int.…` of a switch.
    pub fn of<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> TinyCounts {
        let mut counts = TinyCounts::default();
        for (name, value) in counters {
            let parts = name.strip_prefix("port.").and_then(|rest| rest.split_once('.'));
            let sum = match parts.and_then(|(_, rest)| rest.split_once('.')) {
                Some(("tpp", "executed")) => &mut counts.executed,
                Some(("tpp", "refused")) => &mut counts.refused,
                Some(("tpp", "limited")) => &mut counts.limited,
                Some(("tpp", "stripped")) => &mut counts.stripped,
                Some(("int", "inserted")) => &mut counts.int.inserted,
                Some(("int", "removed")) => &mut counts.int.removed,
                Some(("int", "exceeded")) => &mut counts.int.exceeded,
                Some(("int", "mtu")) => &mut counts.int.mtu,
                Some(("int", "refused")) => &mut counts.int.refused,
                Some(("int", "limited")) => &mut counts.int.limited,
                _ => continue,
            };
            *sum += value;
        }
        counts
    }

    /// Returns lines about the programs and the packets with INT; none where there were none.
    pub fn lines(&self) -> Vec<String> {
        let TinyCounts { executed, refused, limited, stripped, int } = *self;
        let rest = |first: String, counts: &[(u64, &str)]| {
            let named = counts.iter().filter(|(count, _)| *count > 0);
            named.fold(first, |line, (count, what)| line + &format!(", {} {what}", grouped(*count)))
        };
        let mut lines = Vec::new();
        if executed + refused + limited + stripped > 0 {
            let first = counted(executed as usize, "tiny packet program executed", "tiny packet programs executed");
            let others = [
                (refused, "refused as damaged"),
                (limited, "beyond the limit of executions"),
                (stripped, "taken out at the edge"),
            ];
            lines.push(rest(first, &others));
        }
        let IntCounts { inserted, removed, exceeded, mtu, refused, limited } = int;
        if inserted + removed + exceeded + mtu + refused + limited > 0 {
            let first = counted(inserted as usize, "packet with INT got metadata", "packets with INT got metadata");
            let others = [
                (removed, "restored by a sink"),
                (exceeded, "without room for a hop"),
                (mtu, "at the MTU"),
                (refused, "malformed"),
                (limited, "beyond the limit"),
            ];
            lines.push(rest(first, &others));
        }
        lines
    }

    /// Whether some program or packet was not handled as its sender meant.
    pub fn has_losses(&self) -> bool {
        let int = self.int;
        self.refused + self.limited + int.exceeded + int.mtu + int.refused + int.limited > 0
    }

    /// Returns the counts of programs as JSON.
    pub fn json(&self) -> Value {
        let TinyCounts { executed, refused, limited, stripped, .. } = *self;
        json!({ "executed": executed, "refused": refused, "limited": limited, "stripped": stripped })
    }

    /// Returns the counts of packets with INT as JSON.
    pub fn int_json(&self) -> Value {
        let IntCounts { inserted, removed, exceeded, mtu, refused, limited } = self.int;
        json!({
            "inserted": inserted, "removed": removed, "exceeded": exceeded, "mtu": mtu, "refused": refused,
            "limited": limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ports_are_added_up() {
        let counters = [
            ("port.1.rx.packets", 100),
            ("port.1.tpp.executed", 1_200),
            ("port.2.tpp.executed", 34),
            ("port.2.tpp.refused", 2),
            ("port.511.tpp.limited", 7),
            ("port.1.tpp.stripped", 3),
            ("port.2.tpp.stripped", 6),
            ("queue.1.0.tpp.executed", 1),
            ("port.1.int.mtu", 3),
            ("port.2.int.mtu", 4),
            ("port.2.int.limited", 5),
        ];
        let counts = TinyCounts::of(counters);
        assert_eq!(counts.json(), json!({ "executed": 1_234, "refused": 2, "limited": 7, "stripped": 9 }));
        let line = "1,234 tiny packet programs executed, 2 refused as damaged, 7 beyond the limit of executions, \
                    9 taken out at the edge";
        let int = "0 packets with INT got metadata, 7 at the MTU, 5 beyond the limit";
        assert_eq!((counts.lines(), counts.has_losses()), (vec![line.to_owned(), int.to_owned()], true));
        let one = TinyCounts::of([("port.1.tpp.executed", 1), ("port.1.int.inserted", 1), ("port.1.int.removed", 2)]);
        let int = "1 packet with INT got metadata, 2 restored by a sink";
        assert_eq!(one.lines(), ["1 tiny packet program executed", int]);
        assert_eq!((one.has_losses(), &one.int_json()["removed"]), (false, &json!(2)));
        assert!(TinyCounts::of([("port.1.rx.packets", 5)]).lines().is_empty());
        for name in ["tpp.refused", "tpp.limited", "int.exceeded", "int.mtu", "int.refused", "int.limited"] {
            assert!(TinyCounts::of([(&*format!("port.1.{name}"), 1)]).has_losses(), "{name}");
        }
    }
}
