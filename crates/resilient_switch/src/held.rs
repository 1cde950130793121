//! Holds outputs until the writes that they depend on are acknowledged.

use std::collections::{HashMap, VecDeque};

use bits::Bits;
use engine::{Dependency, StateRow};
use foldhash::fast::RandomState;
use switch::{HeldOutput, Notification, Output};

/// Number of settled rows whose memory is kept, beside as many as have pending writes.
const MAX_SETTLED: usize = 1024;
/// Maximum capacity of the queues of such a row.
const MAX_SETTLED_CAPACITY: usize = 16;

/// The outputs that wait, by row.
#[derive(Debug, Default)]
pub(crate) struct HeldOutputs {
    /// Rows with pending writes, and settled ones: many are written again soon.
    rows: HashMap<StateRow, HeldRow, RandomState>,
    /// Number of rows with pending writes.
    pending_rows: usize,
    outputs: usize,
    bytes: usize,
    /// Number of the current step.
    step: u64,
}

/// Writes of a row that are not acknowledged, and the outputs that wait for them.
#[derive(Debug, Default)]
struct HeldRow {
    /// Writes in order: the switch's number of writes with this one, and the number that the stores know.
    pending: VecDeque<(u64, u64)>,
    /// Outputs in order.
    outputs: VecDeque<HeldOutput>,
    /// The last step that wrote the row.
    step: u64,
}

/// A row that a packet has written.
#[derive(Debug)]
pub(crate) struct WrittenRow<'h> {
    row: &'h mut HeldRow,
    pending_rows: &'h mut usize,
}

impl WrittenRow<'_> {
    /// Notes a write, which has the stores' number `seq`. `writes` counts all writes of the switch.
    pub fn wrote(&mut self, writes: u64, seq: u64) {
        *self.pending_rows += usize::from(self.row.pending.is_empty());
        // Values are absolute: one acknowledgement covers several writes, and outputs wait from the first on.
        if self.row.pending.back().is_none_or(|(_, last)| *last < seq) {
            self.row.pending.push_back((writes, seq));
        }
    }

    /// Whether writes are not acknowledged.
    pub fn is_pending(&self) -> bool {
        !self.row.pending.is_empty()
    }
}

/// The result of holding an output that depends on a row.
#[derive(Debug)]
pub(crate) enum HoldResult {
    /// It waits.
    Held,
    /// It leaves: the stores know all writes that it depends on.
    Leaves(Output),
    /// It must wait, and there is no memory for it.
    Full(Output),
}

/// Returns the memory that an output takes, in bytes.
fn size(output: &HeldOutput) -> usize {
    let data = match &output.output {
        Output::Frame(frame) => frame.data.len(),
        Output::Notification(Notification::PacketIn { data, .. }) => data.len(),
        Output::Notification(Notification::IntReport { report, .. }) => report.len(),
        Output::Notification(Notification::Digest { values, .. }) => values.len() * size_of::<Bits>(),
        Output::Notification(Notification::IdleTimeout { .. }) => 0,
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

    /// Begins a step of the switch.
    pub fn begin_step(&mut self) {
        self.step += 1;
        if self.rows.len() > 2 * self.pending_rows + MAX_SETTLED {
            self.rows.retain(|_, held| !held.pending.is_empty());
        }
    }

    /// Returns a row that a packet of the step has written, to note the write; `None` if it has been returned in this
    /// step.
    pub fn first_write(&mut self, row: StateRow) -> Option<WrittenRow<'_>> {
        let held = self.rows.entry(row).or_default();
        let is_first = std::mem::replace(&mut held.step, self.step) != self.step;
        is_first.then_some(WrittenRow { row: held, pending_rows: &mut self.pending_rows })
    }

    /// Holds an output, if it must wait and the outputs take less than `max_bytes` of memory.
    pub fn hold(&mut self, output: HeldOutput, max_bytes: usize) -> HoldResult {
        let Dependency { row, writes } = output.dependency;
        let pending = |held: &&mut HeldRow| held.pending.front().is_some_and(|(first, _)| *first <= writes);
        let Some(held) = self.rows.get_mut(&row).filter(pending) else { return HoldResult::Leaves(output.output) };
        if self.bytes >= max_bytes {
            return HoldResult::Full(output.output);
        }
        (self.outputs, self.bytes) = (self.outputs + 1, self.bytes + size(&output));
        held.outputs.push_back(output);
        HoldResult::Held
    }

    /// Records that the writes of a row up to `seq` are acknowledged or abandoned. Appends the outputs that
    /// waited for these, in order. Returns whether no write is pending any more.
    pub fn settle(&mut self, row: StateRow, seq: u64, settled: &mut Vec<Output>) -> bool {
        let Some(held) = self.rows.get_mut(&row).filter(|held| !held.pending.is_empty()) else { return true };
        while held.pending.front().is_some_and(|(_, pending)| *pending <= seq) {
            held.pending.pop_front();
        }
        let first = held.pending.front().map_or(u64::MAX, |(writes, _)| *writes);
        while held.outputs.front().is_some_and(|output| output.dependency.writes < first) {
            let output = held.outputs.pop_front().expect("there is one");
            (self.outputs, self.bytes) = (self.outputs - 1, self.bytes - size(&output));
            settled.push(output.output);
        }
        let is_settled = held.pending.is_empty();
        if is_settled {
            debug_assert!(held.outputs.is_empty(), "outputs wait for pending writes only");
            self.pending_rows -= 1;
            if held.outputs.capacity().max(held.pending.capacity()) > MAX_SETTLED_CAPACITY {
                self.rows.remove(&row);
            }
        }
        is_settled
    }

    /// Removes and returns all outputs.
    pub fn take_all(&mut self) -> Vec<Output> {
        let mut rows: Vec<(StateRow, HeldRow)> = std::mem::take(self).rows.into_iter().collect();
        rows.sort_unstable_by_key(|(row, _)| *row);
        rows.into_iter().flat_map(|(_, held)| held.outputs).map(|held| held.output).collect()
    }
}

#[cfg(test)]
mod tests {
    use ir::DigestId;
    use switch::{Frame, PortId, Time};

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

    /// Notes writes of one row in steps of their own.
    fn writing(writes: &[(u64, u64)]) -> HeldOutputs {
        let mut held = HeldOutputs::default();
        for (writes, seq) in writes {
            held.begin_step();
            held.first_write(ROW).expect("it is the first of the step").wrote(*writes, *seq);
            assert!(held.first_write(ROW).is_none(), "a row is written once in a step");
        }
        held
    }

    /// Settles the writes of the row up to this one. Returns the ports of the outputs, and whether no write is pending.
    fn settle(held: &mut HeldOutputs, seq: u64) -> (Vec<u32>, bool) {
        let mut settled = Vec::new();
        let is_settled = held.settle(ROW, seq, &mut settled);
        (ports(settled), is_settled)
    }

    #[test]
    fn an_output_waits_for_the_writes_before_it_only() {
        let mut held = writing(&[(3, 10), (5, 11), (6, 11)]);
        let leaves = |held: &mut HeldOutputs, writes| matches!(held.hold(output(writes), 1000), HoldResult::Leaves(_));
        assert!(leaves(&mut held, 2));
        let held_now = [3, 4, 5, 6].map(|writes| !leaves(&mut held, writes));
        assert_eq!((held_now, held.len(), held.bytes() > 40), ([true; 4], 4, true));
        assert_eq!(settle(&mut held, 9), (vec![], false));
        assert_eq!(settle(&mut held, 10), (vec![3, 4], false));
        assert!(leaves(&mut held, 4));
        assert_eq!(settle(&mut held, 11), (vec![5, 6], true));
        assert_eq!((held.len(), held.bytes()), (0, 0));
        assert_eq!(settle(&mut held, 11), (vec![], true), "an acknowledgement that comes twice releases once");
        assert!(leaves(&mut held, 9));
    }

    #[test]
    fn notifications_take_memory() {
        let mut held = writing(&[(1, 1)]);
        let packet_in = Notification::PacketIn { port: PortId(1), data: vec![0; 5_000], time: Time::ZERO };
        let digest =
            Notification::Digest { digest: DigestId::from_u32(0), values: vec![Bits::new(0, 8); 9], time: Time::ZERO };
        for (notification, bytes) in [(packet_in, 5_000), (digest, 5_000 + 9 * size_of::<Bits>())] {
            let dependency = Dependency { row: ROW, writes: 1 };
            held.hold(HeldOutput { dependency, output: Output::Notification(notification) }, 10_000);
            assert!((bytes..bytes + 1_000).contains(&held.bytes()), "{} instead of {bytes}", held.bytes());
        }
    }

    #[test]
    fn outputs_without_memory_are_given_back() {
        let mut held = writing(&[(1, 1)]);
        assert!(matches!(held.hold(output(1), 1), HoldResult::Held));
        assert!(matches!(held.hold(output(1), 1), HoldResult::Full(_)));
        assert_eq!(settle(&mut held, 1), (vec![1], true));
    }

    #[test]
    fn settled_rows_are_forgotten_when_they_are_many() {
        let row = |index| StateRow { group: 0, index };
        let mut held = writing(&[(1, 1)]);
        // Their writes cost no request.
        (0..MAX_SETTLED as u64 + 1).for_each(|index| assert!(!held.first_write(row(2 + index)).unwrap().is_pending()));
        held.begin_step();
        assert_eq!((held.rows.len(), held.pending_rows), (MAX_SETTLED + 2, 1));
        held.first_write(row(0)).expect("it is the first of the step");
        held.begin_step();
        assert_eq!((held.rows.len(), held.pending_rows), (1, 1));
        assert_eq!(settle(&mut held, 1), (vec![], true));
        assert_eq!((held.rows.len(), held.pending_rows), (1, 0));
    }
}
