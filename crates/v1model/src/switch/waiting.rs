//! Acts on requests that packets of a batch set aside: clones of packets as received, and further passes.
//!
//! Such a packet does not stop its batch. When all packets have run, the requests are carried out in the order of the
//! packets: a clone passes egress, then its packet leaves, or makes its next passes in its own buffer. Frames,
//! notifications and counts have the order of packets that run one after the other. Only the code of later packets has
//! run already, so requests wait only in programs whose packets do not see each other: see [`super::state`].

use jit::{InPlacePacket, PreservedSlots, UnitOutcome};
use switch::{DropReason, Egress, MAX_REPLICAS, PRIORITIES, PortId};

use super::Switch;
use super::copies::CloneInPlace;
use super::in_place::{PacketOutput, PassResult, ReceivedPacket};
use super::packet::{Instance, Work};
use super::paths::{Path, PathReason};
use super::state::{Machine, Slots, State, result};
use super::together::{Deferred, FrameGroup, GroupMemory, WaitingPacket, output_copy};

/// Minimum of [`crate::Config::max_work`] with which requests may wait: a packet is then never refused for the copies
/// of its clone, which go to the replicas of a session and of a group.
pub(super) const MIN_WORK: u32 = 2 * MAX_REPLICAS as u32 + 4;

/// A further pass of a packet of a batch.
struct NextPass<'w> {
    /// Index of the packet in the batch.
    number: usize,
    instance: Instance,
    keep: Option<u32>,
    kept: PreservedSlots<'w>,
    /// Offset in its buffer at which the packet begins.
    start: usize,
    /// The packet as received.
    original: &'w [u8],
}

/// The recirculation of a packet of a batch.
struct Recirculation<'w> {
    /// Index of the packet in the batch.
    number: usize,
    keep: Option<u32>,
    kept: PreservedSlots<'w>,
    /// Length to which the packet is truncated.
    max_bytes: u32,
}

impl Switch {
    /// Finishes a packet of a batch in which packets set requests aside. `deferred` has what it and later packets
    /// requested, in order.
    pub(super) fn finish_waiting(
        &mut self,
        machine: &Machine,
        batch: &mut jit::Batch<'_>,
        WaitingPacket { requests, original }: WaitingPacket<'_>,
        deferred: &mut Deferred<'_>,
        memory: &mut GroupMemory<'_>,
        group: &mut FrameGroup<'_>,
    ) {
        let number = requests.packet();
        let max_bytes = self.carry_out_deferred(deferred, number, group.whole, group.came);
        if let Some((session, keep, kept)) = requests.clone_before(group.whole) {
            let mut output = PacketOutput::new(group.output, memory.made, group.first + number);
            if machine.copies_pass && requests.resubmission_before(group.whole).is_none() {
                let clone = CloneInPlace { session, keep, kept, original: &mut *original };
                self.clone_in_place(machine, clone, memory.again, group.came, &mut output);
            } else {
                let came = ReceivedPacket { original, ..group.came };
                self.clone_waiting((session, keep, kept), came, &mut output);
            }
        } else {
            self.work_left = self.config.max_work - 1;
        }
        let came = ReceivedPacket { original, ..group.came };
        let ended = batch.finished(number);
        if let Some((keep, kept)) = requests.resubmission_before(group.whole) {
            group.tally.parser_errors += u64::from(self.is_parser_error(ended.parser_error()));
            if self.config.max_passes == 0 {
                return self.drops.count(&mut self.registry, DropReason::LoopLimit, 0);
            }
            self.registry.add(self.stats.resubmitted, 1);
            let (start, original) = (ended.input_start(), came.original);
            batch.buffer(number).0[start..].copy_from_slice(original);
            let pass = NextPass { number, instance: Instance::Resubmitted, keep, kept, start, original };
            return self.pass_again(machine, batch, pass, memory, group);
        }
        let max_bytes = max_bytes.min(self.carry_out_deferred(deferred, number, usize::MAX, came));
        match (ended.outcome(), requests.recirculation_from(group.whole)) {
            (UnitOutcome::Done(_), Some((keep, kept))) => {
                let recirculation = Recirculation { number, keep, kept, max_bytes };
                self.recirculate_waiting(machine, batch, recirculation, memory, group);
            }
            _ => self.finish(number, ended, (|| output_copy(batch, number), max_bytes, false), group, memory.moved),
        }
    }

    /// Clones a packet as received, and lets the clone pass egress at once. From then on, passes are counted.
    pub(super) fn clone_waiting(
        &mut self,
        (session, keep, kept): (u32, Option<u32>, PreservedSlots<'_>),
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) {
        output.counts_passes = true;
        self.work_left = self.config.max_work - 1;
        self.clone_original(session, keep, came, |state, items| state.keep_preserved(kept, items));
        self.run_pending(output);
    }

    /// Sends a packet that was deparsed in its buffer through the pipeline again.
    fn recirculate_waiting(
        &mut self,
        machine: &Machine,
        batch: &mut jit::Batch<'_>,
        recirculation: Recirculation<'_>,
        memory: &mut GroupMemory<'_>,
        group: &mut FrameGroup<'_>,
    ) {
        let Recirculation { number, keep, kept, max_bytes } = recirculation;
        let standard = self.layout.standard;
        let ended = batch.finished(number);
        group.tally.parser_errors += u64::from(self.is_parser_error(ended.parser_error()));
        let port = PortId(ended.result(result::EGRESS_PORT) as u32);
        let priority = standard.priority.map_or(0, |_| ended.result(result::PRIORITY) as usize).min(PRIORITIES - 1);
        self.tally_queued(group.tally, port, priority);
        self.work_left -= 1;
        if self.config.max_passes == 0 {
            return self.drops.count(&mut self.registry, DropReason::LoopLimit, 0);
        }
        let most = self.config.max_frame.min(max_bytes as usize);
        let Some(start) = ended.output_start().filter(|start| ended.room() - start <= most) else {
            let mut data = output_copy(batch, number);
            data.truncate(max_bytes as usize);
            return self.recirculate_copy(data, (keep, kept), memory, group);
        };
        self.registry.add(self.stats.recirculated, 1);
        let pass = NextPass { number, instance: Instance::Recirculated, keep, kept, start, original: &[] };
        self.pass_again(machine, batch, pass, memory, group);
    }

    /// Sends a copy of a packet that cannot stay in its buffer through the pipeline again.
    fn recirculate_copy(
        &mut self,
        data: Vec<u8>,
        (keep, kept): (Option<u32>, PreservedSlots<'_>),
        memory: &mut GroupMemory<'_>,
        group: &mut FrameGroup<'_>,
    ) {
        if data.len() > self.config.max_frame {
            return self.drops.count(&mut self.registry, DropReason::TooLong, 0);
        }
        self.registry.add(self.stats.recirculated, 1);
        let mut packet = self.packet(data, group.came.by, None, &mut ());
        packet.passes = 1;
        if let State::Compiled(state) = &mut packet.state {
            state.keep_preserved(kept, self.field_list(keep));
        }
        packet.state.set(self.layout.standard.instance_type, Instance::Recirculated as u64);
        self.work.push_back(Work::Ingress(packet, group.came.at));
        self.drive(group.came.at, memory.made, &mut ());
        group.output.extend(memory.made.drain(..).map(Egress::Owned));
    }

    /// Sends a packet through the pipeline again that could not be deparsed in its buffer.
    pub(super) fn recirculate_moved(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        keep: Option<u32>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        output.path = Some((Path::Single, PathReason::Moved));
        output.counts_passes = true;
        self.work_left = self.config.max_work - 2;
        let port = PortId(lent.result(result::EGRESS_PORT) as u32);
        let has_priority = self.layout.standard.priority.is_some();
        let priority = if has_priority { lent.result(result::PRIORITY) as usize } else { 0 };
        self.ports.count_enqueue(&mut self.registry, port, priority.min(PRIORITIES - 1), true, 0);
        self.recirculate_in_place(lent, keep, came, output)
    }

    /// Runs the further passes of a packet in its buffer.
    fn pass_again(
        &mut self,
        machine: &Machine,
        batch: &mut jit::Batch<'_>,
        pass: NextPass<'_>,
        memory: &mut GroupMemory<'_>,
        group: &mut FrameGroup<'_>,
    ) {
        let NextPass { number, instance, keep, kept, start, original } = pass;
        let came = ReceivedPacket { original, ..group.came };
        let mut output = PacketOutput::new(group.output, memory.made, group.first + number);
        output.counts_passes = true;
        let left = machine.compiled.in_place(memory.again, batch.buffer(number).0, start, |lent| {
            lent.keep_preserved(kept, self.field_list(keep));
            lent.set(self.layout.standard.instance_type, instance as u64);
            self.complete(lent, PassResult::Again, came, &mut output)
        });
        let max_bytes = output.max_bytes;
        if let Some(start) = left {
            memory.moved.set(number, start);
            memory.moved.cut(number, max_bytes);
        }
    }
}
