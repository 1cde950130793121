//! Implements the fast path: packets are processed in place, without a copy, an allocation or a queue. Packets that run
//! in batches are in [`super::together`]; here are those that run alone. [`super::actions`] carries out what packets in
//! place request.
//!
//! A packet that is parsed, gets one egress port whose queues delay nothing, passes egress and is deparsed never
//! leaves the driver's memory. If it must wait or outgrows its headroom, a copy with all its state continues on the
//! slow path like any other packet of the switch. So do its clones and replicas. The two paths differ only in time.

use engine::{InlineDependency, Now};
use jit::{DeferredRequest, InPlacePacket, UnitOutcome, WaitingRequests};
use switch::{Device, DropReason, Egress, Frame, FrameMut, PRIORITIES, PortId, Time};

use super::Switch;
use super::ingress::judge;
use super::packet::{Instance, Leaving, Work};
use super::parked::ParkedPacket;
use super::paths::{Path, PathReason};
use super::rows::is_refused;
use super::state::{MAX_KEPT_START, Machine, Slots, result, unit};
use super::tally::BatchTally;
use super::together::FrameGroup;
use super::waiting;

/// The start of a packet.
pub(super) type KeptStart = [u8; MAX_KEPT_START];

/// Scratch state that is reused for each packet.
#[derive(Debug)]
pub(super) struct InPlace {
    pub packet: jit::Packet,
    /// The same for further passes of packets of a batch.
    pub again: jit::Packet,
    /// The packets as received, one after the other, for programs that may request them, and the end of each.
    pub originals: Vec<u8>,
    pub ends: Vec<usize>,
    /// The starts of the packets of a batch, if these suffice.
    pub starts: Box<[KeptStart; jit::BATCH]>,
    /// Frames that left on the slow path.
    pub made: Vec<Frame>,
    /// The requests of the packets of a batch.
    pub deferred: Vec<DeferredRequest>,
    pub waiting: WaitingRequests,
    /// Packets of a batch whose outputs wait for rows.
    pub depending: Vec<InlineDependency>,
}

impl InPlace {
    pub fn new(machine: &Machine) -> InPlace {
        let packet = || machine.compiled.packet(Vec::new());
        InPlace {
            packet: packet(),
            again: packet(),
            originals: Vec::new(),
            ends: Vec::new(),
            starts: Box::new([[0; MAX_KEPT_START]; jit::BATCH]),
            made: Vec::new(),
            deferred: Vec::new(),
            waiting: WaitingRequests::default(),
            depending: Vec::new(),
        }
    }
}

/// The result of a pass of a packet.
pub(super) enum PassResult {
    /// It left in place; its frame starts at this offset, and is truncated to [`PacketOutput::max_bytes`].
    Left(usize),
    /// It was dropped, copied, or sent to the control plane.
    Gone,
    /// It passes through the pipeline again, in place.
    Again,
}

/// A packet in place.
#[derive(Clone, Copy)]
pub(super) struct ReceivedPacket<'a> {
    pub at: Time,
    pub by: PortId,
    /// The packet as received, for programs that may request it; only its start, for those whose packets wait for rows.
    pub original: &'a [u8],
    /// The step at which egress begins, if one unit can run everything outside a batch.
    pub whole: Option<usize>,
    /// Whether all queues are open, so that no copy waits.
    pub queues_open: bool,
    /// Number of times that it was resubmitted or recirculated.
    pub passes: u16,
}

/// The output of a packet in place, and what is recorded of it on the way.
pub(super) struct PacketOutput<'o> {
    pub output: &'o mut Vec<Egress>,
    /// Copies that leave, in order, until they are moved to `output`.
    pub made: &'o mut Vec<Frame>,
    /// Index of its frame in the batch.
    pub index: usize,
    /// The path that it took, and the reason, if it needed more than parser to deparser.
    pub path: Option<(Path, PathReason)>,
    /// Whether [`Switch::work_left`] counts the passes that it may still cause.
    pub counts_passes: bool,
    /// Length to which it is truncated.
    pub max_bytes: u32,
}

impl<'o> PacketOutput<'o> {
    pub fn new(output: &'o mut Vec<Egress>, made: &'o mut Vec<Frame>, index: usize) -> Self {
        PacketOutput { output, made, index, path: None, counts_passes: false, max_bytes: u32::MAX }
    }

    /// Moves the copies that have left to the output.
    pub fn flush(&mut self) {
        if !self.made.is_empty() {
            self.output.extend(self.made.drain(..).map(Egress::Owned));
        }
    }

    /// Records that the packet was copied.
    pub fn record_copy(&mut self, reason: PathReason) {
        self.counts_passes = true;
        self.path = Some((Path::Copied, self.path.map_or(reason, |(_, reason)| reason)));
    }
}

/// Whether all words are 0.
fn is_zero(words: &[u64]) -> bool {
    words.iter().all(|word| *word == 0)
}

impl Switch {
    /// Processes frames that arrived on a port, in order, like [`Device::step`], but in place. Appends what leaves
    /// now to `output`, in the order in which it leaves: frames of the batch, changed in place, and others. Frames of
    /// the batch that `output` does not name hold unspecified bytes afterwards.
    pub fn step_in_place<L: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [L], output: &mut Vec<Egress>) {
        if self.machine.is_none() || self.in_place.is_none() {
            return self.step_copied(now, port, batch, output);
        }
        let mut made = Vec::new();
        self.step(now, &mut Vec::new(), &mut made);
        output.extend(made.into_iter().map(Egress::Owned));
        let (Some(machine), Some(mut lent)) = (self.machine.clone(), self.in_place.take()) else { return };
        // Passes are counted only where there can be more than two.
        let direct = self.ports.is_up(port) && self.config.max_work >= 2;
        let whole = Some(machine.egress_begins).filter(|_| self.queues.are_all_open());
        let alone = whole.filter(|_| !machine.is_whole_batched_only);
        let received =
            ReceivedPacket { at: now, by: port, original: &[], whole: alone, queues_open: whole.is_some(), passes: 0 };
        let together = direct && !(machine.requests_wait && self.config.max_work < waiting::MIN_WORK);
        let lengths = self.config.min_frame..=self.config.max_frame;
        let marks = self.tiny.as_deref().map(|tiny| tiny.marks);
        let mut tally = BatchTally::default();
        let mut number = 0;
        while number < batch.len() {
            if let (true, Some(whole)) = (together, whole) {
                let frames = &mut batch[number..];
                let is_odd = |frame: &mut L| {
                    let (room, start) = frame.headroom();
                    let frame = &room[start..];
                    let is_marked = marks.is_some_and(|marks| marks.may_be_in(frame));
                    !lengths.contains(&frame.len()) || is_marked && self.has_tiny_program(port, frame)
                };
                let most = frames.len().min(jit::BATCH);
                let count = frames[..most].iter_mut().position(is_odd).unwrap_or(most);
                if count > 0 {
                    let mut group = FrameGroup { first: number, whole, came: received, tally: &mut tally, output };
                    self.run_together(&machine, &mut frames[..count], &mut lent, &mut group);
                    number += count;
                    continue;
                }
            }
            let frame = &mut batch[number];
            let (room, start) = frame.headroom();
            let length = room.len() - start;
            let has_program = self.has_tiny_program(port, &room[start..]);
            if !direct || !lengths.contains(&length) || has_program {
                let data = room[start..].to_vec();
                if has_program {
                    // The program may read the counts of the packets before it.
                    self.count_batch(&tally, port);
                    tally = BatchTally::default();
                }
                let reason = match (direct, has_program) {
                    (false, _) => PathReason::PortDown,
                    (true, true) => PathReason::TinyProgram,
                    (true, false) => PathReason::FrameLength,
                };
                self.paths.add(Path::Copied, Some(reason), 1);
                self.take(now, Frame { port, data }, &mut lent.made);
                output.extend(lent.made.drain(..).map(Egress::Owned));
                number += 1;
                continue;
            }
            tally.received[0] += 1;
            tally.received[1] += length as u64;
            lent.originals.clear();
            if machine.keeps_original {
                lent.originals.extend_from_slice(&room[start..]);
            }
            let InPlace { packet, originals, made, .. } = &mut *lent;
            let came = ReceivedPacket { original: originals, ..received };
            let mut packet_output = PacketOutput::new(output, made, number);
            let work = |lent: &mut InPlacePacket<'_>| {
                let result = self.pass(lent, came, &mut packet_output);
                let left = self.complete(lent, result, came, &mut packet_output);
                self.leave_pass();
                left
            };
            let left = machine.compiled.in_place(packet, room, start, work);
            self.count_path(packet_output.path, PathReason::Rate);
            let max_bytes = packet_output.max_bytes;
            if let Some(start) = left {
                frame.set_start(start);
                if max_bytes < u32::MAX {
                    frame.truncate(max_bytes as usize);
                }
            }
            number += 1;
        }
        self.count_batch(&tally, port);
        self.in_place = Some(lent);
    }

    /// Counts the path of a packet that did not complete in a batch. `alone` is the reason if nothing else is known.
    pub(super) fn count_path(&mut self, path: Option<(Path, PathReason)>, alone: PathReason) {
        let (path, reason) = path.unwrap_or((Path::Single, alone));
        self.paths.add(path, Some(reason), 1);
    }

    /// Processes a batch without machine code: every frame is copied.
    fn step_copied<L: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [L], output: &mut Vec<Egress>) {
        self.paths.add(Path::Copied, Some(PathReason::Interpreted), batch.len() as u64);
        let mut made = Vec::new();
        let frames = batch.iter_mut().map(|frame| {
            let (room, start) = frame.headroom();
            Frame { port, data: room[start..].to_vec() }
        });
        self.step(now, &mut frames.collect(), &mut made);
        output.extend(made.into_iter().map(Egress::Owned));
    }

    /// Runs the further passes of a packet, and then everything that it caused. Returns the start of its frame if it
    /// left in place; the caller truncates it to the length in `output`.
    pub(super) fn complete(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        mut result: PassResult,
        mut came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Option<usize> {
        while let PassResult::Again = result {
            came.passes += 1;
            self.work_left -= 1;
            result = self.pass(lent, came, output);
        }
        if output.counts_passes {
            if !self.work.is_empty() || !came.queues_open {
                self.drive(came.at, output.made, &mut ());
            }
            output.flush();
        }
        if let PassResult::Left(start) = result { Some(start) } else { None }
    }

    /// Runs one packet through the whole pipeline.
    fn pass(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let standard = self.layout.standard;
        let now = Now { ns: came.at.as_ns() };
        lent.set_slot_to(standard.ingress_port, u64::from(came.by.0));
        lent.set(standard.ingress_global_timestamp, came.at.as_us());
        self.objects.begin_pass(None);
        if let Some(egress_begins) = came.whole {
            let outcome = lent.run(unit::WHOLE, &mut self.objects, now);
            if !self.end_pass_in_place(lent, outcome, came, output) {
                return PassResult::Gone;
            }
            self.count_parser_error(lent.parser_error());
            return self.after_whole(lent, outcome, egress_begins, came, output);
        }
        let outcome = lent.run(unit::INGRESS, &mut self.objects, now);
        if !self.end_pass_in_place(lent, outcome, came, output) {
            return PassResult::Gone;
        }
        self.count_parser_error(lent.parser_error());
        match self.ends_with_ingress(lent, outcome, came, output) {
            Ok(leaving) => self.egress_in_place(lent, leaving, came, output),
            Err(result) => result,
        }
    }

    /// Returns the result of a packet that ran in the unit for the whole pipeline.
    pub(super) fn after_whole(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        outcome: UnitOutcome,
        egress_begins: usize,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        match outcome {
            UnitOutcome::Failed(step, _) | UnitOutcome::Stopped(step) if step < egress_begins => {
                match self.ends_with_ingress(lent, outcome, came, output) {
                    Ok(leaving) => self.egress_in_place(lent, leaving, came, output),
                    Err(result) => result,
                }
            }
            _ => {
                if output.counts_passes {
                    // The unit runs only if egress may run, too.
                    self.work_left -= 1;
                }
                let port = PortId(lent.result(result::EGRESS_PORT) as u32);
                let has_priority = self.layout.standard.priority.is_some();
                let priority = if has_priority { lent.result(result::PRIORITY) as usize } else { 0 };
                let priority = priority.min(PRIORITIES - 1);
                self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
                self.ends_with_egress(lent, outcome, Leaving { port, at: came.at, depth: 0 }, came, output)
            }
        }
    }

    /// Runs egress and deparser.
    fn egress_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        leaving: Leaving,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let before = self.rows.is_some().then(|| {
            self.objects.begin_pass(self.current_row());
            self.detached(lent, came, output)
        });
        let outcome = self.run_egress(lent, leaving);
        if let Some(before) = before {
            match self.objects.take_refusal().filter(|_| is_refused(outcome)) {
                Some(refusal) => {
                    output.record_copy(PathReason::Resilient);
                    self.refuse(refusal, Some(ParkedPacket::Work(Work::Egress(before, leaving))));
                    return PassResult::Gone;
                }
                None => {
                    self.recycle(before);
                    self.end_running_pass();
                }
            }
        }
        self.ends_with_egress(lent, outcome, leaving, came, output)
    }

    /// Runs the unit for egress and, unless an action is requested or the packet is dropped, the deparser.
    pub(super) fn run_egress(&mut self, lent: &mut InPlacePacket<'_>, leaving: Leaving) -> UnitOutcome {
        let length = self.length_in_egress(lent);
        self.prepare(lent, length, leaving);
        lent.run(unit::EGRESS, &mut self.objects, Now { ns: leaving.at.as_ns() })
    }

    /// Returns the length in bytes that a packet has in egress, with the headers that ingress added or removed; 0 if no
    /// machine code reads it.
    pub(super) fn length_in_egress(&self, lent: &InPlacePacket<'_>) -> usize {
        let length = if self.reads_length() { lent.length() + lent.header_bytes() } else { 0 };
        length.saturating_sub(lent.measured_bytes())
    }

    pub(super) fn priority(&self, lent: &InPlacePacket<'_>) -> usize {
        self.layout.standard.priority.map_or(0, |slot| lent.number(slot) as usize).min(PRIORITIES - 1)
    }

    /// Lets a packet pass the open queue of a port.
    pub(super) fn pass_queue(&mut self, lent: &mut InPlacePacket<'_>, port: PortId, at: Time) -> Leaving {
        let standard = self.layout.standard;
        lent.set(standard.enq_timestamp, at.as_us());
        lent.set(standard.enq_qdepth, 0);
        let priority = self.priority(lent);
        self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
        Leaving { port, at, depth: 0 }
    }

    /// Returns the departure of a packet that continues to egress at once, or the result of one that does not.
    fn ends_with_ingress(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        outcome: UnitOutcome,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        self.failed(outcome, true)?;
        let standard = self.layout.standard;
        let group = standard.mcast_grp.map_or(0, |slot| lent.number(slot) as u32);
        let port = lent.number(standard.egress_spec) as u32;
        let has_copies = group != 0 || standard.replicas.is_some_and(|slot| !is_zero(lent.slot_words(slot)));
        if lent.has_requests() || has_copies {
            return self.act_after_ingress(lent, group, came, output);
        }
        if port == self.layout.drop_port {
            return Err(self.dropped_by_program(lent, DropReason::IngressProgram));
        }
        lent.set(standard.instance_type, Instance::Normal as u64);
        if output.counts_passes || !self.queues.is_open(PortId(port), self.priority(lent)) {
            return self.enqueue_in_place(lent, PortId(port), PathReason::Queued, came, output);
        }
        Ok(self.pass_queue(lent, PortId(port), came.at))
    }

    /// Returns the result of a packet after egress, which runs the deparser directly if no action is requested and
    /// the packet is not dropped.
    fn ends_with_egress(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        outcome: UnitOutcome,
        leaving: Leaving,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        if let Err(result) = self.failed(outcome, false) {
            return result;
        }
        if let UnitOutcome::Done(_) = outcome {
            return self.leave_in_place(lent, leaving, output);
        }
        if lent.has_requests() {
            return self.act_after_egress(lent, leaving, came, output);
        }
        self.dropped_by_program(lent, DropReason::EgressProgram)
    }

    /// Sends a deparsed packet.
    pub(super) fn leave_in_place(
        &mut self,
        lent: &InPlacePacket<'_>,
        leaving: Leaving,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        self.leave(lent.output_start(), lent.room(), || lent.output_copy(), leaving, output)
    }

    /// Sends a deparsed packet that starts at `start` in its buffer of `room` bytes, or copies it if it must be.
    pub(super) fn leave(
        &mut self,
        start: Option<usize>,
        room: usize,
        copy: impl FnOnce() -> Vec<u8>,
        leaving: Leaving,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let (port, to_controller) = (leaving.port, self.config.cpu_port == Some(leaving.port));
        let max_bytes = output.max_bytes as usize;
        // Held outputs are copied from the driver's memory.
        let in_place = start.filter(|_| !to_controller && !self.must_hold());
        let mut data = if in_place.is_some() { Vec::new() } else { copy() };
        data.truncate(max_bytes);
        let length = in_place.map_or(data.len(), |start| (room - start).min(max_bytes));
        if let Some(reason) = self.obstacle(port, length) {
            self.drops.count(&mut self.registry, reason, 0);
            return PassResult::Gone;
        }
        self.ports.count_tx(&mut self.registry, port, length);
        output.flush();
        match in_place {
            Some(start) => {
                output.output.push(Egress::InPlace { index: output.index, port });
                return PassResult::Left(start);
            }
            None if to_controller => self.hand_up(data, leaving.at),
            None => {
                output.record_copy(PathReason::Moved);
                self.send(Frame { port, data }, output.made);
                output.flush();
            }
        }
        PassResult::Gone
    }

    /// Drops a packet that did not complete a unit.
    pub(super) fn failed(&mut self, outcome: UnitOutcome, in_ingress: bool) -> Result<(), PassResult> {
        let (UnitOutcome::Done(ending) | UnitOutcome::Failed(_, ending)) = outcome else { return Ok(()) };
        judge(ending, in_ingress).map_err(|(reason, site)| {
            self.drops.count(&mut self.registry, reason, site);
            PassResult::Gone
        })
    }

    pub(super) fn dropped_by_program(&mut self, lent: &InPlacePacket<'_>, reason: DropReason) -> PassResult {
        let site = self.layout.standard.drop_site.map_or(0, |slot| lent.number(slot) as u32);
        self.drops.count(&mut self.registry, reason, site);
        PassResult::Gone
    }
}
