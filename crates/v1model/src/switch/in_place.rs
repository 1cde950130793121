//! Implements the fast path: packets are processed in place, without a copy, an allocation or a queue. Packets that run
//! in batches are in [`super::together`]; here are those that run alone, or need more work.
//!
//! A packet that is parsed, gets one egress port whose queues delay nothing, passes egress and is deparsed never
//! leaves the driver's memory. In all other cases (an action is requested, the packet is multicast, must wait, or
//! outgrows its headroom) a copy with all its state continues on the slow path like any other packet of the switch.
//! The two paths differ only in time.

use engine::Now;
use jit::{InPlacePacket, UnitOutcome};
use switch::{Device, DropReason, Egress, Frame, FrameMut, PRIORITIES, PortId, Time};

use super::Switch;
use super::ingress::judge;
use super::packet::{Instance, Leaving, Packet};
use super::paths::{Path, PathReason};
use super::state::{Machine, Slots, State, unit};
use super::tally::BatchTally;
use super::together::FrameGroup;

/// Scratch state that is reused for each packet.
#[derive(Debug)]
pub(super) struct InPlace {
    pub packet: jit::Packet,
    /// The packets as received, one after the other, for programs that may request them, and the end of each.
    pub originals: Vec<u8>,
    pub ends: Vec<usize>,
    /// Frames that left on the slow path.
    pub made: Vec<Frame>,
}

impl InPlace {
    pub fn new(machine: &Machine) -> InPlace {
        let packet = machine.compiled.packet(Vec::new());
        InPlace { packet, originals: Vec::new(), ends: Vec::new(), made: Vec::new() }
    }
}

/// The result of a packet.
pub(super) enum PacketResult {
    /// It leaves in place by this port; its frame starts at this offset.
    Leaves(PortId, usize),
    /// It was dropped, or sent to the control plane.
    Gone,
    /// It was copied for this reason. Its results are in [`InPlace::made`] or wait.
    Elsewhere(PathReason),
}

/// A received packet.
#[derive(Clone, Copy)]
pub(super) struct ReceivedPacket<'a> {
    pub at: Time,
    pub by: PortId,
    /// The packet as received, for programs that may request it.
    pub original: &'a [u8],
    /// The step at which egress begins, if one unit can run everything.
    pub whole: Option<usize>,
}

impl Switch {
    /// Processes frames that arrived on a port, in order, like [`Device::step`], but in place. Appends what leaves
    /// now to `output`, in the order in which it leaves: frames of the batch, changed in place, and others. Frames of
    /// the batch that `output` does not name hold unspecified bytes afterwards.
    pub fn step_in_place<L: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [L], output: &mut Vec<Egress>) {
        let (Some(machine), Some(mut lent)) = (self.machine.clone(), self.in_place.take()) else {
            return self.step_copied(now, port, batch, output);
        };
        self.step(now, &mut Vec::new(), &mut lent.made);
        output.extend(lent.made.drain(..).map(Egress::Owned));
        // Passes are counted only where there can be more than two.
        let direct = self.ports.is_up(port) && self.config.max_work >= 2;
        let whole = machine.egress_begins.ok().filter(|_| self.queues.are_all_open());
        let alone = self.why_alone(&machine);
        let lengths = self.config.min_frame..=self.config.max_frame;
        let mut tally = BatchTally::default();
        let mut number = 0;
        while number < batch.len() {
            if let (true, Some(whole)) = (direct, whole) {
                let frames = &mut batch[number..];
                let is_odd = |frame: &mut L| {
                    let (room, start) = frame.headroom();
                    !lengths.contains(&(room.len() - start))
                };
                let most = frames.len().min(jit::BATCH);
                let count = frames[..most].iter_mut().position(is_odd).unwrap_or(most);
                if count > 0 {
                    let came = ReceivedPacket { at: now, by: port, original: &[], whole: Some(whole) };
                    let mut group = FrameGroup { first: number, whole, came, tally: &mut tally, output };
                    self.run_together(&machine, &mut frames[..count], &mut lent, &mut group);
                    number += count;
                    continue;
                }
            }
            let frame = &mut batch[number];
            let (room, start) = frame.headroom();
            let length = room.len() - start;
            if !direct || !lengths.contains(&length) {
                let data = room[start..].to_vec();
                let reason = if direct { PathReason::FrameLength } else { PathReason::PortDown };
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
            let came = ReceivedPacket { at: now, by: port, original: originals, whole };
            let work = |lent: &mut InPlacePacket<'_>| self.pass(lent, came, made);
            let result = machine.compiled.in_place(packet, room, start, work);
            self.count_path(&result, alone);
            match result {
                PacketResult::Leaves(port, at) => {
                    frame.set_start(at);
                    output.push(Egress::InPlace { index: number, port });
                }
                PacketResult::Gone => {}
                PacketResult::Elsewhere(_) => output.extend(made.drain(..).map(Egress::Owned)),
            }
            number += 1;
        }
        self.count_batch(&tally, port);
        self.in_place = Some(lent);
    }

    /// Returns the reason for which packets run alone where they do not run in batches.
    fn why_alone(&self, machine: &Machine) -> PathReason {
        match machine.egress_begins {
            Err(reason) => PathReason::Split(reason),
            Ok(_) => PathReason::Rate,
        }
    }

    /// Counts a packet that did not complete in a batch; `alone` is the reason if it was not copied.
    pub(super) fn count_path(&mut self, result: &PacketResult, alone: PathReason) {
        match *result {
            PacketResult::Elsewhere(reason) => self.paths.add(Path::Copied, Some(reason), 1),
            PacketResult::Leaves(..) | PacketResult::Gone => self.paths.add(Path::Single, Some(alone), 1),
        }
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

    /// Runs one packet through the whole pipeline.
    fn pass(&mut self, lent: &mut InPlacePacket<'_>, came: ReceivedPacket<'_>, made: &mut Vec<Frame>) -> PacketResult {
        let standard = self.layout.standard;
        let now = Now { ns: came.at.as_ns() };
        lent.set_slot_to(standard.ingress_port, u64::from(came.by.0));
        lent.set(standard.ingress_global_timestamp, came.at.as_us());
        let Some(egress_begins) = came.whole else { return self.pass_in_two(lent, came, made) };
        let outcome = lent.run(unit::WHOLE, &mut self.objects, now);
        self.count_parser_error(lent.parser_error());
        self.after_whole(lent, outcome, egress_begins, came, made)
    }

    /// Returns the result of a packet that ran in the unit for the whole pipeline.
    pub(super) fn after_whole(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        egress_begins: usize,
        came: ReceivedPacket<'_>,
        made: &mut Vec<Frame>,
    ) -> PacketResult {
        match outcome {
            UnitOutcome::Failed(step, _) | UnitOutcome::Stopped(step) if step < egress_begins => {
                self.ends_with_ingress(lent, outcome, came, made).unwrap_or(PacketResult::Gone)
            }
            _ => {
                let port = PortId(lent.number(self.layout.standard.egress_port) as u32);
                let priority = self.priority(lent);
                self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
                self.ends_with_egress(lent, outcome, Leaving { port, at: came.at, depth: 0 }, came, made)
            }
        }
    }

    /// Runs one packet in two units, with a check of the queues between ingress and egress.
    fn pass_in_two(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        came: ReceivedPacket<'_>,
        made: &mut Vec<Frame>,
    ) -> PacketResult {
        let standard = self.layout.standard;
        let now = Now { ns: came.at.as_ns() };
        let outcome = lent.run(unit::INGRESS, &mut self.objects, now);
        self.count_parser_error(lent.parser_error());
        if let Some(fate) = self.ends_with_ingress(lent, outcome, came, made) {
            return fate;
        }
        lent.set(standard.instance_type, Instance::Normal as u64);
        lent.set(standard.enq_timestamp, came.at.as_us());
        lent.set(standard.enq_qdepth, 0);
        let port = PortId(lent.number(standard.egress_spec) as u32);
        let priority = self.priority(lent);
        self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
        let leaving = Leaving { port, at: came.at, depth: 0 };
        let length = (lent.length() + lent.header_bytes()).saturating_sub(lent.measured_bytes());
        self.prepare(lent, length, leaving);
        let outcome = lent.run(unit::EGRESS, &mut self.objects, now);
        self.ends_with_egress(lent, outcome, leaving, came, made)
    }

    fn priority(&self, lent: &InPlacePacket<'_>) -> usize {
        self.layout.standard.priority.map_or(0, |slot| lent.number(slot) as usize).min(PRIORITIES - 1)
    }

    /// Returns the result of a packet after ingress; `None` if it continues to egress at once.
    fn ends_with_ingress(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        came: ReceivedPacket<'_>,
        made: &mut Vec<Frame>,
    ) -> Option<PacketResult> {
        if let Some(fate) = self.failed(outcome, true) {
            return Some(fate);
        }
        let standard = self.layout.standard;
        let is_plain = !lent.has_requests() && standard.mcast_grp.is_none_or(|slot| lent.number(slot) == 0);
        let spec = lent.number(standard.egress_spec) as u32;
        if is_plain && spec == self.layout.drop_port {
            return Some(self.dropped_by_program(lent, DropReason::IngressProgram));
        }
        if is_plain && self.queues.is_open(PortId(spec), self.priority(lent)) {
            return None;
        }
        let reason = match is_plain {
            true => PathReason::Queued,
            false if lent.has_requests() => PathReason::Requested,
            false => PathReason::Multicast,
        };
        let packet = detached(lent, came);
        self.work_left = self.config.max_work - 1;
        self.after_ingress(packet, came.at, &mut ());
        self.drive(came.at, made, &mut ());
        Some(PacketResult::Elsewhere(reason))
    }

    /// Returns the result of a packet after egress, which runs the deparser directly if no action is requested and
    /// the packet is not dropped.
    fn ends_with_egress(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        leaving: Leaving,
        came: ReceivedPacket<'_>,
        made: &mut Vec<Frame>,
    ) -> PacketResult {
        if let Some(fate) = self.failed(outcome, false) {
            return fate;
        }
        if let UnitOutcome::Done(_) = outcome {
            return self.leave(lent.output_start(), lent.room(), || lent.output_copy(), leaving, made);
        }
        if !lent.has_requests() {
            return self.dropped_by_program(lent, DropReason::EgressProgram);
        }
        let packet = detached(lent, came);
        self.work_left = self.config.max_work - 2;
        self.after_egress(packet, leaving, false, made, &mut ());
        self.drive(came.at, made, &mut ());
        PacketResult::Elsewhere(PathReason::Requested)
    }

    /// Sends a deparsed packet that starts at `start` in its buffer of `room` bytes, or copies it if it must be.
    pub(super) fn leave(
        &mut self,
        start: Option<usize>,
        room: usize,
        copy: impl FnOnce() -> Vec<u8>,
        leaving: Leaving,
        made: &mut Vec<Frame>,
    ) -> PacketResult {
        let port = leaving.port;
        let copy = if start.is_none() || self.config.cpu_port == Some(port) { Some(copy()) } else { None };
        let length = copy.as_ref().map_or_else(|| room - start.unwrap_or(0), Vec::len);
        if let Some(reason) = self.obstacle(port, length) {
            self.drops.count(&mut self.registry, reason, 0);
            return PacketResult::Gone;
        }
        self.ports.count_tx(&mut self.registry, port, length);
        match (start, copy) {
            (_, Some(data)) if self.config.cpu_port == Some(port) => {
                self.hand_up(data, leaving.at);
                PacketResult::Gone
            }
            (Some(start), _) => PacketResult::Leaves(port, start),
            (None, data) => {
                made.push(Frame { port, data: data.unwrap_or_default() });
                PacketResult::Elsewhere(PathReason::Moved)
            }
        }
    }

    /// Drops a packet that did not complete a unit.
    fn failed(&mut self, outcome: UnitOutcome, in_ingress: bool) -> Option<PacketResult> {
        let (UnitOutcome::Done(ending) | UnitOutcome::Failed(_, ending)) = outcome else { return None };
        let (reason, site) = judge(ending, in_ingress).err()?;
        self.drops.count(&mut self.registry, reason, site);
        Some(PacketResult::Gone)
    }

    fn dropped_by_program(&mut self, lent: &InPlacePacket<'_>, reason: DropReason) -> PacketResult {
        let site = self.layout.standard.drop_site.map_or(0, |slot| lent.number(slot) as u32);
        self.drop_for(site, reason)
    }

    /// Drops a packet because of a statement of the program.
    fn drop_for(&mut self, site: u32, reason: DropReason) -> PacketResult {
        self.drops.count(&mut self.registry, reason, site);
        PacketResult::Gone
    }
}

/// Makes an owned packet with the state of the packet in place.
#[cold]
fn detached(lent: &InPlacePacket<'_>, came: ReceivedPacket<'_>) -> Box<Packet> {
    Box::new(Packet {
        state: State::Compiled(Box::new(lent.detach())),
        original: came.original.to_vec(),
        ingress_port: came.by,
        passes: 0,
        max_bytes: u32::MAX,
        class_of_service: 0,
        parsed_bytes: lent.measured_bytes(),
        trace: 0,
        pass: 0,
    })
}
