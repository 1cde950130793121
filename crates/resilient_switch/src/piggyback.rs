//! Frames that travel with a write of their row, through the stores and back, instead of waiting in the switch.
//!
//! ```text
//!   outputs of a write:  port, 32 bits | length, 16 bits | frame | port | length | frame | …
//! ```
//!
//! Of a travelling frame, the switch keeps only port and length. They give the numbers of frames and bytes that were
//! not sent if the frames do not return, and identify the frames that return.

use std::collections::BTreeMap;

use engine::{RowWrite, StateRow};
use resilient::{CarriedOutputs, HoldMode};
use switch::{DropReason, Frame, HeldOutput, Output, PortId, RowSwitch};

use crate::ResilientSwitch;

/// Bytes of a frame's port and length.
const HEADER_BYTES: usize = 6;

/// Counts of frames that travelled with writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PiggybackCounts {
    /// Frames that were sent with a write.
    pub sent: u64,
    /// Frames that returned, and left.
    pub returned: u64,
    /// Frames that are lost: the request or its acknowledgement was lost or late, or the write was not applied.
    pub lost: u64,
}

/// A frame under way, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameRecord {
    port: PortId,
    length: u16,
}

/// The frames under way. At most one write of a row carries frames.
#[derive(Debug, Default)]
pub(crate) struct CarriedFrames {
    rows: BTreeMap<StateRow, (u64, Vec<FrameRecord>)>,
    pub counts: PiggybackCounts,
}

/// The frames that are to travel with a write: always the first ones that wait for it, so the order is kept.
#[derive(Debug)]
pub(crate) struct FrameBundle {
    /// The switch's number of the write. Outputs that depend on earlier ones do not wait for it.
    writes: u64,
    room: usize,
    is_closed: bool,
    bytes: Vec<u8>,
    frames: Vec<FrameRecord>,
}

impl FrameBundle {
    fn new(writes: u64, room: usize) -> FrameBundle {
        FrameBundle { writes, room, is_closed: false, bytes: Vec::new(), frames: Vec::new() }
    }

    /// Adds an output that waits for the write, and returns whether it travels. After one that does not, none does.
    fn take(&mut self, held: &HeldOutput) -> bool {
        if self.is_closed || held.dependency.writes < self.writes {
            return false;
        }
        let frame = match &held.output {
            Output::Frame(frame) if self.bytes.len() + HEADER_BYTES + frame.data.len() <= self.room => frame,
            Output::Frame(_) | Output::Notification(_) => {
                self.is_closed = true;
                return false;
            }
        };
        let length = frame.data.len() as u16;
        self.bytes.extend(frame.port.0.to_be_bytes());
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend(&frame.data);
        self.frames.push(FrameRecord { port: frame.port, length });
        true
    }

    /// Returns the outputs for the request; `None` if there are none.
    pub fn outputs(&self) -> Option<CarriedOutputs> {
        CarriedOutputs::new(&self.bytes)
    }
}

impl CarriedFrames {
    /// Records that the frames of a bundle travel with a write.
    pub fn sent(&mut self, row: StateRow, seq: u64, bundle: FrameBundle) {
        self.counts.sent += bundle.frames.len() as u64;
        self.rows.insert(row, (seq, bundle.frames));
    }

    /// Returns the frames that returned with a write; none if they are not those that left with it.
    pub fn returned(&mut self, row: StateRow, seq: u64, outputs: &CarriedOutputs) -> Vec<Frame> {
        let Some((_, records)) = self.rows.get(&row).filter(|(of, _)| *of == seq) else { return Vec::new() };
        let Some(frames) = read_frames(outputs.bytes(), records) else { return Vec::new() };
        self.counts.returned += frames.len() as u64;
        self.rows.remove(&row);
        frames
    }

    /// Removes and returns ports and lengths of the frames that are lost, now that the writes of a row up to `seq` are
    /// acknowledged or abandoned.
    pub fn lost(&mut self, row: StateRow, seq: u64) -> Vec<(PortId, u64)> {
        if self.rows.get(&row).is_none_or(|(of, _)| *of > seq) {
            return Vec::new();
        }
        let (_, records) = self.rows.remove(&row).unwrap_or_default();
        self.count_lost(records)
    }

    /// Removes and returns ports and lengths of all frames that are under way.
    pub fn take_all(&mut self) -> Vec<(PortId, u64)> {
        let records = std::mem::take(&mut self.rows).into_values().flat_map(|(_, records)| records).collect();
        self.count_lost(records)
    }

    fn count_lost(&mut self, records: Vec<FrameRecord>) -> Vec<(PortId, u64)> {
        self.counts.lost += records.len() as u64;
        records.into_iter().map(|record| (record.port, u64::from(record.length))).collect()
    }
}

/// Reads frames with exactly these ports and lengths.
fn read_frames(mut bytes: &[u8], records: &[FrameRecord]) -> Option<Vec<Frame>> {
    let mut frame = |record: &FrameRecord| {
        let (port, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let found = FrameRecord { port: PortId(u32::from_be_bytes(*port)), length: u16::from_be_bytes(*length) };
        let (data, rest) = rest.split_at_checked(usize::from(found.length))?;
        bytes = rest;
        (found == *record).then(|| Frame { port: found.port, data: data.to_vec() })
    };
    let frames: Option<Vec<Frame>> = records.iter().map(&mut frame).collect();
    frames.filter(|_| bytes.is_empty())
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Takes the frames out of `waiting` that can travel with the writes of a step, and returns them by row.
    pub(crate) fn bundle_frames(
        &self,
        writes: &[RowWrite],
        waiting: &mut Vec<HeldOutput>,
    ) -> BTreeMap<StateRow, FrameBundle> {
        if self.hold == HoldMode::Local || waiting.is_empty() {
            return BTreeMap::new();
        }
        // The first write of each row counts.
        let written: BTreeMap<StateRow, u64> = writes.iter().rev().map(|write| (write.row, write.writes)).collect();
        let bundle = |(row, writes): (&StateRow, &u64)| {
            let (id, values) = self.row_content(*row)?;
            let room = self.replica.room_for_outputs(&id, Some(&values));
            (room > 0).then(|| (*row, FrameBundle::new(*writes, room)))
        };
        let mut bundles: BTreeMap<StateRow, FrameBundle> = written.iter().filter_map(bundle).collect();
        waiting.retain(|held| !bundles.get_mut(&held.dependency.row).is_some_and(|bundle| bundle.take(held)));
        bundles
    }

    /// Counts lost frames as dropped, and no longer as sent.
    pub(crate) fn drop_carried(&mut self, lost: Vec<(PortId, u64)>, reason: DropReason) {
        for (port, bytes) in lost {
            self.inner.take_back_sent(port, &[(reason, 1)], bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::Dependency;
    use switch::Notification;

    use super::*;

    const ROW: StateRow = StateRow { group: 0, index: 1 };

    fn held(port: u32, writes: u64, length: usize) -> HeldOutput {
        let frame = Frame::new(port, vec![port as u8; length]);
        HeldOutput { dependency: Dependency { row: ROW, writes }, output: Output::Frame(frame) }
    }

    #[test]
    fn frames_travel_in_order_and_none_behind_one_that_stays() {
        let mut bundle = FrameBundle::new(5, 100);
        let taken = [held(1, 4, 10), held(2, 5, 60), held(3, 6, 29), held(4, 6, 28), held(5, 6, 1)];
        let taken: Vec<bool> = taken.iter().map(|held| bundle.take(held)).collect();
        // The first does not wait for the write, the third is a byte too long, and the others come after it.
        assert_eq!(taken, [false, true, false, false, false]);
        let mut carried = CarriedFrames::default();
        let outputs = bundle.outputs().expect("there is a frame");
        carried.sent(ROW, 9, bundle);
        assert_eq!(carried.returned(ROW, 8, &outputs), []);
        assert_eq!(carried.returned(ROW, 9, &outputs), [Frame::new(2, vec![2; 60])]);
        assert_eq!(carried.returned(ROW, 9, &outputs), [], "an acknowledgement that comes twice returns them once");
        assert_eq!(carried.counts, PiggybackCounts { sent: 1, returned: 1, lost: 0 });
    }

    #[test]
    fn notifications_stay() {
        let mut bundle = FrameBundle::new(1, 1000);
        let notification =
            Notification::Digest { digest: ir::DigestId::from_u32(0), values: Vec::new(), time: switch::Time::ZERO };
        let digest =
            HeldOutput { dependency: Dependency { row: ROW, writes: 1 }, output: Output::Notification(notification) };
        assert!(!bundle.take(&digest) && !bundle.take(&held(1, 1, 10)));
        assert_eq!(bundle.outputs(), None);
    }

    #[test]
    fn other_frames_than_those_that_left_are_lost() {
        let mut bundle = FrameBundle::new(1, 1000);
        assert!(bundle.take(&held(1, 1, 10)) && bundle.take(&held(2, 1, 20)));
        let outputs = bundle.outputs().expect("there are frames");
        let mut carried = CarriedFrames::default();
        carried.sent(ROW, 3, bundle);
        for change in 0..6 {
            let mut changed = outputs.bytes().to_vec();
            match change {
                0 => changed.truncate(20),
                1 => changed.push(0),
                at => changed[at] ^= 1,
            }
            assert_eq!(carried.returned(ROW, 3, &CarriedOutputs::new(&changed).unwrap()), []);
        }
        assert_eq!(carried.lost(ROW, 3), [(PortId(1), 10), (PortId(2), 20)]);
        assert_eq!((carried.lost(ROW, 3), carried.counts.lost), (vec![], 2));
    }
}
