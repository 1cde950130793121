//! Holds outputs until the writes that they depend on are acknowledged.

use std::collections::{BTreeMap, VecDeque};

use engine::{Dependency, StateRow};
use switch::{HeldOutput, Output};

/// The outputs that wait, by row.
#[derive(Debug, Default)]
pub(crate) struct HeldOutputs {
    rows: BTreeMap<StateRow, HeldRow>,
    outputs: usize,
    bytes: usize,
}

/// Writes of a row that are not acknowledged, and the outputs that wait for them.
#[derive(Debug, Default)]
struct HeldRow {
    /// Writes in order: the switch's number of writes with this one, and the number that the stores know.
    pending: VecDeque<(u64, u64)>,
    /// Outputs in order.
    outputs: VecDeque<HeldOutput>,
}

/// Returns the memory that an output takes, in bytes.
fn size(output: &HeldOutput) -> usize {
    let data = match &output.output {
        Output::Frame(frame) => frame.data.len(),
        Output::Notification(_) => 0,
    };
    data + size_of::<HeldOutput>()
}

impl HeldOutputs {
    /// Returns the number of outputs that wait.
    pub fn len(&self) -> usize {
        self.outputs
    }

    /// Returns the memory of the outputs that wait, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a write, which has the stores' number `seq`. `writes` counts all writes of the switch.
    pub fn wrote(&mut self, row: StateRow, writes: u64, seq: u64) {
        let held = self.rows.entry(row).or_default();
        // Values are absolute: one acknowledgement covers several writes, and outputs wait from the first on.
        if held.pending.back().is_none_or(|(_, last)| *last < seq) {
            held.pending.push_back((writes, seq));
        }
    }

    /// Whether an output must wait.
    pub fn must_wait(&self, dependency: Dependency) -> bool {
        let pending = self.rows.get(&dependency.row).and_then(|held| held.pending.front());
        pending.is_some_and(|(writes, _)| *writes <= dependency.writes)
    }

    /// Holds an output that must wait.
    pub fn hold(&mut self, output: HeldOutput) {
        (self.outputs, self.bytes) = (self.outputs + 1, self.bytes + size(&output));
        self.rows.entry(output.dependency.row).or_default().outputs.push_back(output);
    }

    /// Notes that the stores know the writes of a row up to `seq`, or will never know them. Returns the outputs that
    /// waited for these, in order.
    pub fn settle(&mut self, row: StateRow, seq: u64) -> Vec<Output> {
        let Some(held) = self.rows.get_mut(&row) else { return Vec::new() };
        while held.pending.front().is_some_and(|(_, pending)| *pending <= seq) {
            held.pending.pop_front();
        }
        let first = held.pending.front().map_or(u64::MAX, |(writes, _)| *writes);
        let mut settled = Vec::new();
        while held.outputs.front().is_some_and(|output| output.dependency.writes < first) {
            let output = held.outputs.pop_front().expect("there is one");
            (self.outputs, self.bytes) = (self.outputs - 1, self.bytes - size(&output));
            settled.push(output.output);
        }
        if held.pending.is_empty() {
            self.rows.remove(&row);
        }
        settled
    }

    /// Whether writes of a row are not acknowledged.
    pub fn is_pending(&self, row: StateRow) -> bool {
        self.rows.get(&row).is_some_and(|held| !held.pending.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use switch::Frame;

    use super::*;

    const ROW: StateRow = StateRow { group: 0, index: 1 };

    fn output(writes: u64) -> HeldOutput {
        let frame = Frame::new(writes as u32, vec![0; 10]);
        HeldOutput { dependency: Dependency { row: ROW, writes }, output: Output::Frame(frame) }
    }

    fn ports(outputs: Vec<Output>) -> Vec<u32> {
        let port = |output| match output {
            Output::Frame(frame) => frame.port.0,
            Output::Notification(_) => unreachable!("only frames are held here"),
        };
        outputs.into_iter().map(port).collect()
    }

    #[test]
    fn an_output_waits_for_the_writes_before_it_only() {
        let mut held = HeldOutputs::default();
        held.wrote(ROW, 3, 10);
        held.wrote(ROW, 5, 11);
        held.wrote(ROW, 6, 11);
        let depends = |writes| Dependency { row: ROW, writes };
        let waits: Vec<bool> = [2, 3, 9].map(|writes| held.must_wait(depends(writes))).to_vec();
        assert_eq!(waits, [false, true, true]);
        [3, 4, 5, 6].into_iter().for_each(|writes| held.hold(output(writes)));
        assert_eq!((held.len(), held.bytes() > 40), (4, true));
        assert_eq!(ports(held.settle(ROW, 9)), [0; 0]);
        assert_eq!(ports(held.settle(ROW, 10)), [3, 4]);
        assert!(held.is_pending(ROW) && !held.must_wait(depends(4)));
        assert_eq!(ports(held.settle(ROW, 11)), [5, 6]);
        assert_eq!((held.is_pending(ROW), held.len(), held.bytes()), (false, 0, 0));
        assert_eq!(ports(held.settle(ROW, 11)), [0; 0], "an acknowledgement that comes twice releases once");
    }
}
