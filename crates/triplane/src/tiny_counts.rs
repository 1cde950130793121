//! Counts of tiny packet programs, in the summary of a run and the status of a lab.

use serde_json::{Value, json};

use crate::output::{counted, grouped};

/// The programs of packets that arrived at a switch, over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinyCounts {
    /// Executed programs, including those that ended early.
    executed: u64,
    /// Malformed programs, and programs with a wrong checksum.
    refused: u64,
    /// Programs beyond the limit of executions.
    limited: u64,
}

impl TinyCounts {
    /// Adds up the counters `port.N.tpp.…` of a switch.
    pub fn of<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> TinyCounts {
        let mut counts = TinyCounts::default();
        for (name, value) in counters {
            let result = name.strip_prefix("port.").and_then(|rest| rest.split_once(".tpp."));
            match result {
                Some((_, "executed")) => counts.executed += value,
                Some((_, "refused")) => counts.refused += value,
                Some((_, "limited")) => counts.limited += value,
                _ => {}
            }
        }
        counts
    }

    /// Returns a line about the programs; `None` if there were none.
    pub fn line(&self) -> Option<String> {
        let TinyCounts { executed, refused, limited } = *self;
        if executed + refused + limited == 0 {
            return None;
        }
        let mut line = counted(executed as usize, "tiny packet program executed", "tiny packet programs executed");
        for (count, what) in [(refused, "refused as damaged"), (limited, "beyond the limit of executions")] {
            if count > 0 {
                line += &format!(", {} {what}", grouped(count));
            }
        }
        Some(line)
    }

    /// Returns the counts as JSON.
    pub fn json(&self) -> Value {
        json!({ "executed": self.executed, "refused": self.refused, "limited": self.limited })
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
            ("queue.1.0.tpp.executed", 1),
        ];
        let counts = TinyCounts::of(counters);
        assert_eq!(counts.json(), json!({ "executed": 1_234, "refused": 2, "limited": 7 }));
        let line = "1,234 tiny packet programs executed, 2 refused as damaged, 7 beyond the limit of executions";
        assert_eq!(counts.line().as_deref(), Some(line));
        let one = TinyCounts::of([("port.1.tpp.executed", 1)]);
        assert_eq!(one.line().as_deref(), Some("1 tiny packet program executed"));
        assert_eq!(TinyCounts::of([("port.1.rx.packets", 5)]).line(), None);
    }
}
