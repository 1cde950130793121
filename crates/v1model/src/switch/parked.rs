//! Keeps packets that wait for rows, and runs them when their rows have come.
//!
//! Packets that wait for an entry of an `@elastic` table at the start of their way are kept as frames. Those whose
//! answers have come run together, like a batch that a port received.

use std::collections::{BTreeMap, VecDeque};

use engine::StateRow;
use switch::{Egress, Frame, FrameMut, PortId, Time};

use super::Switch;
use super::in_place::{InPlace, ReceivedPacket};
use super::packet::{Leaving, Work};
use super::state::Machine;
use super::tally::BatchTally;
use super::together::FrameGroup;
use super::waiting;

/// Bytes before a frame that waits: as many as programs usually add.
const HEADROOM: usize = 128;

/// Maximum number of buffers that are kept for reuse.
const MAX_SPARE: usize = 1024;

/// A received frame that waits, and then runs in place.
#[derive(Debug)]
pub(super) struct ParkedFrame {
    buffer: Vec<u8>,
    start: usize,
    /// The port that received it.
    by: PortId,
}

impl FrameMut for ParkedFrame {
    fn headroom(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.start)
    }

    fn set_start(&mut self, start: usize) {
        self.start = start;
    }

    fn truncate(&mut self, length: usize) {
        self.buffer.truncate(self.start.saturating_add(length));
    }
}

/// A packet that waits for a row, as it was before the pass that needs it.
#[derive(Debug)]
pub(super) enum ParkedPacket {
    /// A pass.
    Work(Work),
    /// A frame that a port received.
    Frame(ParkedFrame),
}

/// Packets that wait for rows, and those whose rows have come.
#[derive(Debug, Default)]
pub(super) struct ParkedPackets {
    max: usize,
    count: usize,
    /// Number of the first group that is an `@elastic` table.
    first_elastic: u32,
    by_row: BTreeMap<StateRow, VecDeque<ParkedPacket>>,
    /// By group and index of the row, for `@elastic` tables. Indices are reused, so these lists are short.
    of_tables: Vec<Vec<VecDeque<ParkedPacket>>>,
    /// Packets whose rows have come, or do not exist, with these rows.
    resumed: VecDeque<(StateRow, ParkedPacket)>,
    /// The row for which the packet that runs now has waited.
    pub origin: Option<StateRow>,
    /// The same for frames that run together, by their indices.
    origins: Vec<StateRow>,
    /// Memory for frames that run together, and what leaves.
    together: Vec<ParkedFrame>,
    left: Vec<Egress>,
    spare: Vec<Vec<u8>>,
}

impl ParkedPackets {
    /// Creates an empty set of at most `max` packets. Groups from `first_elastic` on are `@elastic` tables.
    pub fn new(max: usize, first_elastic: usize) -> ParkedPackets {
        ParkedPackets { max, first_elastic: first_elastic as u32, ..ParkedPackets::default() }
    }

    /// Whether a row is an entry of an `@elastic` table.
    pub fn is_elastic(&self, row: StateRow) -> bool {
        row.group >= self.first_elastic
    }

    /// Returns the number of packets that wait.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether one more packet may wait.
    pub fn has_room(&self) -> bool {
        self.count < self.max
    }

    fn list(&self, row: StateRow) -> Option<&VecDeque<ParkedPacket>> {
        match row.group.checked_sub(self.first_elastic) {
            None => self.by_row.get(&row),
            Some(table) => self.of_tables.get(table as usize)?.get(row.index as usize),
        }
    }

    fn list_mut(&mut self, row: StateRow) -> &mut VecDeque<ParkedPacket> {
        let Some(table) = row.group.checked_sub(self.first_elastic) else { return self.by_row.entry(row).or_default() };
        let (table, index) = (table as usize, row.index as usize);
        if self.of_tables.len() <= table {
            self.of_tables.resize_with(table + 1, Vec::new);
        }
        let lists = &mut self.of_tables[table];
        if lists.len() <= index {
            lists.resize_with(index + 1, VecDeque::new);
        }
        &mut lists[index]
    }

    /// Returns the number of packets that wait for a row.
    pub fn of_row(&self, row: StateRow) -> usize {
        self.list(row).map_or(0, VecDeque::len)
    }

    /// Returns the rows for which packets wait.
    pub fn rows(&self) -> Vec<StateRow> {
        let of_table = |(table, lists): (usize, &Vec<VecDeque<ParkedPacket>>)| {
            let group = self.first_elastic + table as u32;
            let waits = lists.iter().enumerate().filter(|(_, list)| !list.is_empty());
            waits.map(|(index, _)| StateRow { group, index: index as u64 }).collect::<Vec<_>>()
        };
        let of_tables = self.of_tables.iter().enumerate().flat_map(of_table);
        self.by_row.keys().copied().chain(of_tables).collect()
    }

    /// Parks a packet. Returns whether it is the first one of its row.
    pub fn park(&mut self, row: StateRow, packet: ParkedPacket) -> bool {
        let list = self.list_mut(row);
        list.push_back(packet);
        let is_first = list.len() == 1;
        self.count += 1;
        is_first
    }

    /// Removes the packet that has waited longest for a row.
    pub fn take_first(&mut self, row: StateRow) -> Option<ParkedPacket> {
        if self.of_row(row) == 0 {
            return None;
        }
        let list = self.list_mut(row);
        let packet = list.pop_front();
        if list.is_empty() && !self.is_elastic(row) {
            self.by_row.remove(&row);
        }
        self.count -= 1;
        packet
    }

    /// Lets the packets that wait for a row run next.
    pub fn resume(&mut self, row: StateRow) {
        while let Some(packet) = self.take_first(row) {
            self.resume_packet(row, packet);
        }
    }

    /// Lets a packet that has waited for a row run next.
    pub fn resume_packet(&mut self, row: StateRow, packet: ParkedPacket) {
        self.resumed.push_back((row, packet));
    }

    /// Makes a frame of these parts.
    pub fn frame(&mut self, parts: [&[u8]; 2], by: PortId) -> ParkedFrame {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(HEADROOM, 0);
        parts.into_iter().for_each(|part| buffer.extend_from_slice(part));
        ParkedFrame { buffer, start: HEADROOM, by }
    }

    /// Keeps the memory of a frame for others.
    pub fn reuse(&mut self, frame: ParkedFrame) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(frame.buffer);
        }
    }

    /// Begins to process a packet of a group of frames: those of a group that did not wait have no origins.
    pub fn begin_of_group(&mut self, number: usize) {
        self.origin = self.origins.get(number).copied();
    }

    /// Moves frames whose rows have come, of one port and at most as many as run together, to the group.
    fn take_group(&mut self) {
        while self.together.len() < jit::BATCH {
            let Some((row, ParkedPacket::Frame(frame))) = self.resumed.front() else { return };
            if self.together.first().is_some_and(|first| first.by != frame.by) {
                return;
            }
            self.origins.push(*row);
            if let Some((_, ParkedPacket::Frame(frame))) = self.resumed.pop_front() {
                self.together.push(frame);
            }
        }
    }
}

impl Switch {
    /// Returns the pass with which a packet that has waited begins.
    pub(super) fn work_of(&mut self, packet: ParkedPacket, now: Time) -> Work {
        match packet {
            ParkedPacket::Work(Work::Ingress(packet, _)) => Work::Ingress(packet, now),
            ParkedPacket::Work(Work::Egress(packet, leaving)) => Work::Egress(packet, Leaving { at: now, ..leaving }),
            ParkedPacket::Frame(frame) => {
                let packet = self.packet(frame.buffer[frame.start..].to_vec(), frame.by, None, &mut ());
                if let Some(rows) = &mut self.rows {
                    rows.parked.reuse(frame);
                }
                Work::Ingress(packet, now)
            }
        }
    }

    /// Returns the next pass whose row has come, or does not exist.
    pub(super) fn next_resumed(&mut self, now: Time) -> Option<Work> {
        let rows = self.rows.as_mut()?;
        rows.parked.origin = None;
        let (row, packet) = rows.parked.resumed.pop_front()?;
        rows.parked.origin = Some(row);
        Some(self.work_of(packet, now))
    }

    /// Runs the packets whose rows have come, or do not exist, in their order: frames together, and others alone.
    pub(super) fn run_resumed(&mut self, now: Time, output: &mut Vec<Frame>) {
        if self.rows.as_ref().is_none_or(|rows| rows.parked.resumed.is_empty()) {
            return;
        }
        let requests_wait = self.machine.as_ref().is_some_and(|machine| machine.requests_wait);
        let least_work = if requests_wait { waiting::MIN_WORK } else { 2 };
        if self.config.max_work < least_work || !self.queues.are_all_open() {
            // The caller runs them one by one.
            return;
        }
        let Some(machine) = self.machine.clone() else { return };
        let Some(mut lent) = self.in_place.take() else { return };
        loop {
            if let Some(rows) = &mut self.rows {
                rows.parked.take_group();
            }
            if self.rows.as_ref().is_some_and(|rows| !rows.parked.together.is_empty()) {
                self.run_frames(now, &machine, &mut lent, output);
                continue;
            }
            let Some(work) = self.next_resumed(now) else { break };
            self.work_left = self.config.max_work;
            self.work.push_back(work);
            while let Some(work) = self.work.pop_front() {
                self.run_work(work, output, &mut ());
            }
        }
        self.in_place = Some(lent);
    }

    /// Runs the frames of the group together.
    fn run_frames(&mut self, now: Time, machine: &Machine, lent: &mut InPlace, output: &mut Vec<Frame>) {
        let Some(rows) = &mut self.rows else { return };
        let (mut frames, mut left) = (std::mem::take(&mut rows.parked.together), std::mem::take(&mut rows.parked.left));
        let whole = machine.egress_begins;
        let alone = Some(whole).filter(|_| !machine.is_whole_batched_only);
        let by = frames[0].by;
        let came = ReceivedPacket { at: now, by, original: &[], whole: alone, queues_open: true, passes: 0 };
        let mut tally = BatchTally::default();
        // They were counted when they came.
        self.paths.suspend(true);
        let mut group = FrameGroup { first: 0, whole, came, tally: &mut tally, output: &mut left };
        self.run_together(machine, &mut frames, lent, &mut group);
        self.paths.suspend(false);
        tally.received = [0; 2];
        self.count_batch(&tally, by);
        for egress in left.drain(..) {
            output.push(match egress {
                Egress::Owned(frame) => frame,
                Egress::InPlace { index, port } => {
                    let frame = &frames[index];
                    Frame { port, data: frame.buffer[frame.start..].to_vec() }
                }
            });
        }
        let Some(rows) = &mut self.rows else { return };
        let parked = &mut rows.parked;
        frames.drain(..).for_each(|frame| parked.reuse(frame));
        parked.origins.clear();
        parked.origin = None;
        (parked.together, parked.left) = (frames, left);
    }
}
