//! Processes batches: up to 32 packets run together, in place, and leave together.

use engine::Now;
use jit::UnitOutcome;
use switch::{DropReason, Egress, FrameMut, PRIORITIES, PortId};

use super::Switch;
use super::in_place::{InPlace, PacketResult, ReceivedPacket};
use super::packet::Leaving;
use super::paths::{Path, PathReason};
use super::state::{Machine, result, unit};
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

/// New starts of frames that moved in their buffers, and one more; 0 for all others.
struct MovedFrames {
    starts: [usize; jit::BATCH],
    is_any: bool,
}

impl MovedFrames {
    #[inline(always)]
    fn set(&mut self, number: usize, start: usize) {
        self.starts[number] = start + 1;
        self.is_any = true;
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
        let InPlace { packet, originals, ends, made } = lent;
        originals.clear();
        ends.clear();
        let (standard, came) = (self.layout.standard, group.came);
        let now = Now { ns: came.at.as_ns() };
        let mut moved = MovedFrames { starts: [0; jit::BATCH], is_any: false };
        let mut batch = machine.compiled.batch(unit::WHOLE, packet);
        batch.set_slot_to(standard.ingress_port, u64::from(came.by.0));
        if let Some(slot) = standard.ingress_global_timestamp {
            batch.set_slot_to(slot, came.at.as_us());
        }
        let mut bytes = 0;
        group.tally.received[0] += frames.len() as u64;
        group.output.reserve(frames.len());
        batch.extend(frames.iter_mut().map(|frame| {
            let (room, start) = frame.headroom();
            bytes += (room.len() - start) as u64;
            if machine.keeps_original {
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
            self.paths.add(Path::Batched, None, done.len() as u64);
            for (number, ended) in done.clone().zip(batch.finished_all(done.clone())) {
                let copy =
                    || batch.output_copy(number).expect("a batch goes on only behind what leaves from its buffer");
                self.finish(number, ended, copy, group, &mut moved);
            }
            if stopped {
                let outcome = batch.finished(done.end).outcome();
                let lent = batch.stopped();
                self.count_parser_error(lent.parser_error());
                let begin = done.end.checked_sub(1).map_or(0, |before| ends.get(before).copied().unwrap_or(0));
                let original = ends.get(done.end).map_or(&[][..], |end| &originals[begin..*end]);
                let came = ReceivedPacket { original, ..came };
                let fate = self.after_whole(&lent, outcome, group.whole, came, made);
                drop(lent);
                self.count_path(&fate, PathReason::Stopped);
                match fate {
                    PacketResult::Leaves(port, at) => {
                        moved.set(done.end, at);
                        group.output.push(Egress::InPlace { index: group.first + done.end, port });
                    }
                    PacketResult::Gone => {}
                    PacketResult::Elsewhere(_) => group.output.extend(made.drain(..).map(Egress::Owned)),
                }
            }
        }
        drop(batch);
        if moved.is_any {
            let all = frames.iter_mut().zip(moved.starts).filter(|(_, start)| *start > 0);
            all.for_each(|(frame, start)| frame.set_start(start - 1));
        }
    }

    /// Counts a packet that ran with others, and sends it.
    #[inline(always)]
    fn finish(
        &mut self,
        number: usize,
        ended: jit::FinishedPacket<'_>,
        copy: impl FnOnce() -> Vec<u8>,
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
        let is_clear = self.tally_queued(group.tally, port, priority);
        if dropped.is_some() {
            return self.tally_dropped(group.tally, DropReason::EgressProgram, site);
        }
        match ended.output_start() {
            Some(start) if is_clear && ended.room() - start <= self.config.max_frame => {
                group.tally.sent(ended.room() - start);
                if start != ended.input_start() {
                    moved.set(number, start);
                }
                group.output.push(Egress::InPlace { index: group.first + number, port });
            }
            start => {
                let leaving = Leaving { port, at: group.came.at, depth: 0 };
                // A packet that a batch has done leaves in place, goes to the control plane, or is dropped.
                self.leave(start, ended.room(), copy, leaving, &mut Vec::new());
            }
        }
    }
}
