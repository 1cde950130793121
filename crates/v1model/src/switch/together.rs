//! Processes batches: up to 32 packets run together, in place, and leave together.

use engine::{Dependency, Now, Requested};
use jit::{DeferredRequest, UnitOutcome, WaitingOfPacket};
use switch::{DropReason, Egress, Frame, FrameMut, PRIORITIES, PortId};

use super::Switch;
use super::in_place::{InPlace, KeptStart, PacketOutput, PassResult, ReceivedPacket};
use super::packet::Leaving;
use super::paths::{Path, PathReason};
use super::state::{MAX_KEPT_START, Machine, requests_hold, result, unit};
use super::tally::BatchTally;

/// Frames that run together.
pub(super) struct FrameGroup<'l> {
    /// Index of the first frame in the batch.
    pub first: usize,
    /// The step at which egress begins.
    pub whole: usize,
    pub came: ReceivedPacket<'l>,
    pub tally: &'l mut BatchTally,
    pub output: &'l mut Vec<Egress>,
}

/// Memory for what packets of a batch cause.
pub(super) struct GroupMemory<'m> {
    /// Copies that leave, in order, until they are moved to the output.
    pub made: &'m mut Vec<Frame>,
    /// The state of a packet during its further passes.
    pub again: &'m mut jit::Packet,
    pub moved: &'m mut MovedFrames,
}

/// The packets of a batch as received, if they are kept.
pub(super) struct Originals<'m> {
    bytes: &'m mut [u8],
    /// The end of each packet in `bytes`.
    ends: &'m [usize],
    /// The starts of packets, and the number of bytes of each, if only these are kept.
    starts: Option<(&'m mut [KeptStart; jit::BATCH], usize)>,
}

/// Keeps this number of bytes at the start of a packet, or all of a shorter one.
#[inline(always)]
fn keep_start(kept: &mut KeptStart, packet: &[u8], bytes: usize) {
    const PIECE: usize = MAX_KEPT_START / 4;
    if bytes < 2 * PIECE || packet.len() < bytes {
        let bytes = bytes.min(packet.len());
        return kept[..bytes].copy_from_slice(&packet[..bytes]);
    }
    // Copying pieces that may overlap needs no call.
    for at in [0, PIECE, bytes - 2 * PIECE, bytes - PIECE] {
        let piece: [u8; PIECE] = *packet[at..].first_chunk().expect("the packet has these bytes");
        *kept[at..].first_chunk_mut().expect("there is room for these bytes") = piece;
    }
}

impl Originals<'_> {
    /// Returns a packet or its start, with more bytes than a short packet has; no bytes if it is not kept.
    pub fn of(&mut self, number: usize) -> &mut [u8] {
        if let Some((starts, bytes)) = &mut self.starts {
            return &mut starts[number][..*bytes];
        }
        let begin = number.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        self.ends.get(number).map_or(&mut [][..], |end| &mut self.bytes[begin..*end])
    }
}

/// A packet of a batch with the requests that it set aside.
pub(super) struct WaitingPacket<'m> {
    pub requests: WaitingOfPacket<'m>,
    /// The packet as received, if it is kept.
    pub original: &'m mut [u8],
}

/// Copies a packet that a batch has done.
pub(super) fn output_copy(batch: &jit::Batch<'_>, number: usize) -> Vec<u8> {
    batch.output_copy(number).expect("a batch goes on only behind what leaves from its buffer")
}

/// Digests and truncations of packets of a batch that have not been carried out.
pub(super) struct Deferred<'d> {
    rest: &'d mut [DeferredRequest],
}

impl Deferred<'_> {
    /// Removes and returns the next request, if it is one of a packet, made before step `until`.
    #[inline(always)]
    fn next(&mut self, number: usize, until: usize) -> Option<Requested> {
        let next = self.rest.first()?;
        if next.packet != number || next.step >= until {
            return None;
        }
        let (next, rest) = std::mem::take(&mut self.rest).split_first_mut()?;
        self.rest = rest;
        Some(std::mem::replace(&mut next.request, Requested::Truncate(0)))
    }

    /// Forgets what a packet requested and does not get.
    fn skip(&mut self, number: usize) {
        while self.next(number, usize::MAX).is_some() {}
    }
}

/// Frames that moved in their buffers.
pub(super) struct MovedFrames {
    /// New starts, and one more; 0 for all others.
    starts: [usize; jit::BATCH],
    is_any: bool,
    /// Frames to truncate, and their lengths.
    cuts: Vec<(usize, usize)>,
}

impl MovedFrames {
    /// Truncates a frame, unless `max_bytes` is the maximum.
    pub fn cut(&mut self, number: usize, max_bytes: u32) {
        if max_bytes < u32::MAX {
            self.cuts.push((number, max_bytes as usize));
        }
    }

    #[inline(always)]
    pub fn set(&mut self, number: usize, start: usize) {
        self.starts[number] = start + 1;
        self.is_any = true;
    }

    /// Writes the new positions to the frames.
    fn apply<L: FrameMut>(self, frames: &mut [L]) {
        if self.is_any {
            let all = frames.iter_mut().zip(self.starts).filter(|(_, start)| *start > 0);
            all.for_each(|(frame, start)| frame.set_start(start - 1));
        }
        for (number, length) in self.cuts {
            frames[number].truncate(length);
        }
    }
}

impl Switch {
    /// Runs up to 32 frames together, so that their lookups share the memory latency.
    pub(super) fn run_together<L: FrameMut>(
        &mut self,
        machine: &Machine,
        frames: &mut [L],
        lent: &mut InPlace,
        group: &mut FrameGroup<'_>,
    ) {
        let InPlace { packet, again, originals, ends, starts, made, deferred: list, waiting, depending } = lent;
        originals.clear();
        ends.clear();
        let (standard, came) = (self.layout.standard, group.came);
        let now = Now { ns: came.at.as_ns() };
        let mut moved = MovedFrames { starts: [0; jit::BATCH], is_any: false, cuts: Vec::new() };
        let mut batch = machine.compiled.batch(unit::WHOLE, packet);
        batch.set_slot_to(standard.ingress_port, u64::from(came.by.0));
        if let Some(slot) = standard.ingress_global_timestamp {
            batch.set_slot_to(slot, came.at.as_us());
        }
        let (mut bytes, mut next_start) = (0, starts.iter_mut());
        group.tally.received[0] += frames.len() as u64;
        group.output.reserve(frames.len());
        batch.extend(frames.iter_mut().map(|frame| {
            let (room, start) = frame.headroom();
            bytes += (room.len() - start) as u64;
            if let Some(bytes) = machine.kept_start {
                keep_start(next_start.next().expect("a batch has at most 32 frames"), &room[start..], bytes);
            } else if machine.keeps_original {
                originals.extend_from_slice(&room[start..]);
                ends.push(originals.len());
            }
            (room, start)
        }));
        group.tally.received[1] += bytes;
        let mut next = 0;
        while next < batch.len() {
            let jit::Progress { done, stopped } = batch.run(&mut self.objects, now);
            next = done.end + usize::from(stopped);
            batch.take_deferred(list);
            batch.take_waiting(waiting);
            self.objects.take_inline_dependencies(depending);
            let mut deferred = Deferred { rest: list };
            let mut memory = GroupMemory { made, again, moved: &mut moved };
            let starts = machine.kept_start.map(|bytes| (&mut **starts, bytes));
            let mut originals = Originals { bytes: originals, ends, starts };
            let mut requests = waiting.by_packet();
            if !done.is_empty() {
                self.paths.add(Path::Batched, None, done.len() as u64);
                let ended = batch.finished_all(done.clone());
                self.prefetch_counters(ended.map(|ended| PortId(ended.result(result::EGRESS_PORT) as u32)));
            }
            if !depending.is_empty() {
                // Nothing is set aside in programs with rows.
                let mut depending = depending.iter().peekable();
                for (number, ended) in done.clone().zip(batch.finished_all(done.clone())) {
                    let row = depending.next_if(|next| next.packet == number).map(|next| next.dependency);
                    self.continue_pass(row);
                    let max_bytes = self.carry_out_deferred(&mut deferred, number, usize::MAX, came);
                    let copy = || output_copy(&batch, number);
                    let must_hold = row.as_ref().is_some_and(Dependency::must_wait);
                    self.finish(number, ended, (copy, max_bytes, must_hold), group, memory.moved);
                }
                debug_assert!(depending.peek().is_none(), "each dependency is of a packet that has finished");
                self.leave_pass();
            } else if waiting.is_empty() {
                for (number, ended) in done.clone().zip(batch.finished_all(done.clone())) {
                    let max_bytes = self.carry_out_deferred(&mut deferred, number, usize::MAX, came);
                    let copy = || output_copy(&batch, number);
                    self.finish(number, ended, (copy, max_bytes, false), group, memory.moved);
                }
            } else {
                for number in done.clone() {
                    let packet = WaitingPacket { requests: requests.take(number), original: originals.of(number) };
                    self.finish_waiting(machine, &mut batch, packet, &mut deferred, &mut memory, group);
                }
            }
            if stopped {
                let packet = WaitingPacket { requests: requests.take(done.end), original: originals.of(done.end) };
                self.finish_stopped(&mut batch, packet, &mut deferred, &mut memory, group);
            }
        }
        drop(batch);
        moved.apply(frames);
    }

    /// Finishes the packet at which a batch stopped, with what it requested on the way.
    fn finish_stopped(
        &mut self,
        batch: &mut jit::Batch<'_>,
        WaitingPacket { requests, original }: WaitingPacket<'_>,
        deferred: &mut Deferred<'_>,
        memory: &mut GroupMemory<'_>,
        group: &mut FrameGroup<'_>,
    ) {
        let number = requests.packet();
        let (whole, outcome) = (group.whole, batch.finished(number).outcome());
        let came = ReceivedPacket { original, ..group.came };
        let mut lent = batch.stopped();
        let mut output = PacketOutput::new(group.output, memory.made, group.first + number);
        if let Some(rows) = &mut self.rows {
            rows.parked.begin_of_group(number);
        }
        if self.rows.is_some() && !self.end_batched_pass(&mut lent, outcome, came, &mut output) {
            self.count_path(output.path, PathReason::Resilient);
            return deferred.skip(number);
        }
        self.count_parser_error(lent.parser_error());
        let result = match outcome {
            // A packet that fails in ingress requests nothing; in egress, what ingress requested remains.
            UnitOutcome::Failed(step, _) if step < whole => {
                self.after_whole(&mut lent, outcome, whole, came, &mut output)
            }
            UnitOutcome::Stopped(step) if step < whole => {
                output.max_bytes = self.carry_out_deferred(deferred, number, usize::MAX, came);
                lent.return_requests(requests.all());
                self.after_whole(&mut lent, outcome, whole, came, &mut output)
            }
            _ => {
                output.max_bytes = self.carry_out_deferred(deferred, number, whole, came);
                if let Some((session, keep, kept)) = requests.clone_before(whole) {
                    self.clone_waiting((session, keep, kept), came, &mut output);
                }
                if requests_hold(outcome, whole) {
                    let max_bytes = self.carry_out_deferred(deferred, number, usize::MAX, came);
                    output.max_bytes = output.max_bytes.min(max_bytes);
                }
                match (outcome, requests.recirculation_from(whole)) {
                    (UnitOutcome::Done(_), Some((keep, _))) => {
                        self.recirculate_moved(&mut lent, keep, came, &mut output)
                    }
                    _ => self.after_whole(&mut lent, outcome, whole, came, &mut output),
                }
            }
        };
        let left = self.complete(&mut lent, result, came, &mut output);
        self.leave_pass();
        self.count_path(output.path, PathReason::Stopped);
        let max_bytes = output.max_bytes;
        deferred.skip(number);
        if let Some(start) = left {
            memory.moved.set(number, start);
            memory.moved.cut(number, max_bytes);
        }
    }

    /// Sends the digests that a packet requested before step `until`. Returns the length to which it is truncated.
    /// `deferred` has what it and later packets requested, in order; what was carried out is removed.
    #[inline(always)]
    pub(super) fn carry_out_deferred(
        &mut self,
        deferred: &mut Deferred<'_>,
        number: usize,
        until: usize,
        came: ReceivedPacket<'_>,
    ) -> u32 {
        let mut max_bytes = u32::MAX;
        while let Some(request) = deferred.next(number, until) {
            match request {
                Requested::Truncate(bytes) => max_bytes = max_bytes.min(bytes),
                Requested::Digest(digest, values) => self.send_digest(digest, values, came.at),
                _ => unreachable!("only digests and truncations are deferred"),
            }
        }
        max_bytes
    }

    /// Counts a packet that ran with others, and sends it, or holds it if it must wait.
    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        number: usize,
        ended: jit::FinishedPacket<'_>,
        (copy, max_bytes, must_hold): (impl FnOnce() -> Vec<u8>, u32, bool),
        group: &mut FrameGroup<'_>,
        moved: &mut MovedFrames,
    ) {
        let standard = self.layout.standard;
        group.tally.parser_errors += u64::from(self.is_parser_error(ended.parser_error()));
        let dropped = if let UnitOutcome::Stopped(step) = ended.outcome() { Some(step) } else { None };
        let site = standard.drop_site.map_or(0, |_| ended.result(result::DROP_SITE) as u32);
        if dropped.is_some_and(|step| step < group.whole) {
            return self.tally_dropped(group.tally, DropReason::IngressProgram, site);
        }
        let port = PortId(ended.result(result::EGRESS_PORT) as u32);
        let priority = standard.priority.map_or(0, |_| ended.result(result::PRIORITY) as usize).min(PRIORITIES - 1);
        let is_clear = self.tally_queued(group.tally, port, priority) && !must_hold;
        if dropped.is_some() {
            return self.tally_dropped(group.tally, DropReason::EgressProgram, site);
        }
        match ended.output_start() {
            Some(start) if is_clear && (ended.room() - start).min(max_bytes as usize) <= self.config.max_frame => {
                let length = ended.room() - start;
                group.tally.sent(length.min(max_bytes as usize));
                if start != ended.input_start() {
                    moved.set(number, start);
                }
                if length > max_bytes as usize {
                    moved.cut(number, max_bytes);
                }
                group.output.push(Egress::InPlace { index: group.first + number, port });
            }
            start => {
                // A packet that a batch has done is held, goes to the control plane, or is dropped.
                let mut made = Vec::new();
                let mut output = PacketOutput::new(group.output, &mut made, group.first + number);
                output.max_bytes = max_bytes;
                let leaving = Leaving { port, at: group.came.at, depth: 0 };
                if let PassResult::Left(start) = self.leave(start, ended.room(), copy, leaving, &mut output) {
                    moved.set(number, start);
                }
            }
        }
    }
}
