//! Packets run where they lie: the common case without a copy, an allocation or a queue.
//!
//! A packet that is parsed, gets one port from ingress whose queues hold nothing up, passes egress and is deparsed never
//! leaves the memory of the driver it came in by. Wherever it turns out to be less common (something is asked for, it is
//! multicast, has to wait, outgrew its room) a copy of it with all its state goes on from there as any other packet of the
//! switch. So which way a packet goes shows in nothing but time.

use engine::Now;
use jit::{InPlacePacket, UnitOutcome};
use switch::{Device, DropReason, Egress, Frame, FrameMut, PRIORITIES, PortId, Time};

use super::Switch;
use super::ingress::judge;
use super::packet::{Instance, Leaving, Packet};
use super::state::{Machine, Slots, State, result, unit};

/// What is lent to one packet after the other.
#[derive(Debug)]
pub(super) struct InPlace {
    packet: jit::Packet,
    /// The packet as it came in, for programs that may ask for it.
    original: Vec<u8>,
    /// What left otherwise than in place.
    made: Vec<Frame>,
}

impl InPlace {
    pub fn new(machine: &Machine) -> InPlace {
        InPlace { packet: machine.compiled.packet(Vec::new()), original: Vec::new(), made: Vec::new() }
    }
}

/// What became of a packet.
enum Fate {
    /// It leaves by this port from where it lies; it begins here.
    Leaves(PortId, usize),
    /// It was dropped, or given to the control plane.
    Gone,
    /// Whatever came of it is in [`InPlace::made`] or waits.
    Elsewhere,
}

/// How a packet came.
#[derive(Clone, Copy)]
struct Came<'a> {
    at: Time,
    by: PortId,
    /// The packet as it came in, for programs that may ask for it.
    original: &'a [u8],
    /// The step that egress begins with, if one unit can do all.
    whole: Option<usize>,
}

/// What one batch received in place.
#[derive(Default)]
struct Tally {
    frames: u64,
    bytes: u64,
}

/// Frames that run together.
struct Lane<'l> {
    /// The number of the first in the batch that was lent.
    first: usize,
    /// The step that egress begins with.
    whole: usize,
    came: Came<'l>,
    tally: &'l mut Tally,
    output: &'l mut Vec<Egress>,
}

impl Lane<'_> {
    /// Notes what became of a frame. Where it begins now goes to `begins`, and one more.
    #[inline]
    fn note(&mut self, number: usize, fate: Fate, made: &mut Vec<Frame>, begins: &mut [usize; jit::BATCH]) {
        match fate {
            Fate::Leaves(port, at) => {
                begins[number] = at + 1;
                self.output.push(Egress::InPlace { index: self.first + number, port });
            }
            Fate::Gone => {}
            Fate::Elsewhere => self.output.extend(made.drain(..).map(Egress::Owned)),
        }
    }
}

impl Switch {
    /// Takes frames that came in by a port, in order, as [`Device::step`] does, but where they lie. Appends what leaves now
    /// to `output`, in the order it leaves: frames of the batch, changed in place, and others. Frames of the batch that
    /// are not named there are done with, and hold anything.
    pub fn step_in_place<L: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [L], output: &mut Vec<Egress>) {
        let (Some(machine), Some(mut lent)) = (self.machine.clone(), self.in_place.take()) else {
            return self.step_copied(now, port, batch, output);
        };
        self.step(now, &mut Vec::new(), &mut lent.made);
        output.extend(lent.made.drain(..).map(Egress::Owned));
        // Passes are only counted where there can be more than two.
        let direct = self.ports.is_up(port) && self.config.max_work >= 2;
        let whole = machine.egress_begins.filter(|_| self.queues.are_all_open());
        let lengths = self.config.min_frame..=self.config.max_frame;
        let mut tally = Tally::default();
        let mut number = 0;
        while number < batch.len() {
            if let (true, Some(whole), false) = (direct, whole, machine.keeps_original) {
                let frames = &mut batch[number..];
                let is_odd = |frame: &mut L| {
                    let (room, start) = frame.headroom();
                    !lengths.contains(&(room.len() - start))
                };
                let most = frames.len().min(jit::BATCH);
                let count = frames[..most].iter_mut().position(is_odd).unwrap_or(most);
                if count > 0 {
                    let came = Came { at: now, by: port, original: &[], whole: Some(whole) };
                    let mut lane = Lane { first: number, whole, came, tally: &mut tally, output };
                    self.run_together(&machine, &mut frames[..count], &mut lent, &mut lane);
                    number += count;
                    continue;
                }
            }
            let frame = &mut batch[number];
            let (room, start) = frame.headroom();
            let length = room.len() - start;
            if !direct || !lengths.contains(&length) {
                let data = room[start..].to_vec();
                self.take(now, Frame { port, data }, &mut lent.made);
                output.extend(lent.made.drain(..).map(Egress::Owned));
                number += 1;
                continue;
            }
            tally.frames += 1;
            tally.bytes += length as u64;
            if machine.keeps_original {
                lent.original.clear();
                lent.original.extend_from_slice(&room[start..]);
            }
            let InPlace { packet, original, made } = &mut lent;
            let came = Came { at: now, by: port, original, whole };
            let work = |lent: &mut InPlacePacket<'_>| self.pass(lent, came, made);
            match machine.compiled.in_place(packet, room, start, work) {
                Fate::Leaves(port, at) => {
                    frame.set_start(at);
                    output.push(Egress::InPlace { index: number, port });
                }
                Fate::Gone => {}
                Fate::Elsewhere => output.extend(made.drain(..).map(Egress::Owned)),
            }
            number += 1;
        }
        self.ports.count_many_rx(&mut self.registry, port, tally.frames, tally.bytes);
        self.in_place = Some(lent);
    }

    /// Runs up to 32 frames together, so that their lookups share the wait for memory.
    fn run_together<L: FrameMut>(
        &mut self,
        machine: &Machine,
        frames: &mut [L],
        lent: &mut InPlace,
        lane: &mut Lane<'_>,
    ) {
        let InPlace { packet, made, .. } = lent;
        let (standard, came) = (self.layout.standard, lane.came);
        let now = Now { ns: came.at.as_ns() };
        let mut begins = [0; jit::BATCH];
        let mut batch = machine.compiled.batch(unit::WHOLE, packet);
        batch.set_slot_to(standard.ingress_port, u64::from(came.by.0));
        if let Some(slot) = standard.ingress_global_timestamp {
            batch.set_slot_to(slot, came.at.as_us());
        }
        lane.tally.frames += frames.len() as u64;
        batch.extend(frames.iter_mut().map(|frame| {
            let (room, start) = frame.headroom();
            lane.tally.bytes += (room.len() - start) as u64;
            (room, start)
        }));
        let mut next = 0;
        while next < batch.len() {
            let jit::Progress { done, stopped } = batch.run(&mut self.objects, now);
            next = done.end + usize::from(stopped);
            for (number, ended) in done.clone().zip(batch.finished_all(done.clone())) {
                let copy =
                    || batch.output_copy(number).expect("a batch goes on only behind what leaves from its buffer");
                let fate = self.ended(ended, copy, lane, made);
                lane.note(number, fate, made, &mut begins);
            }
            if stopped {
                let outcome = batch.finished(done.end).outcome();
                let lent = batch.stopped();
                self.count_parser_error(lent.parser_error());
                let fate = self.after_whole(&lent, outcome, lane.whole, came, made);
                drop(lent);
                lane.note(done.end, fate, made, &mut begins);
            }
        }
        drop(batch);
        for (frame, begin) in frames.iter_mut().zip(begins) {
            if begin > 0 {
                frame.set_start(begin - 1);
            }
        }
    }

    /// What becomes of a packet that came to its end with others.
    fn ended(
        &mut self,
        ended: jit::FinishedPacket<'_>,
        copy: impl FnOnce() -> Vec<u8>,
        lane: &Lane<'_>,
        made: &mut Vec<Frame>,
    ) -> Fate {
        let standard = self.layout.standard;
        self.count_parser_error(ended.parser_error());
        let dropped = if let UnitOutcome::Stopped(step) = ended.outcome() { Some(step) } else { None };
        let site = standard.drop_site.map_or(0, |_| ended.result(result::DROP_SITE) as u32);
        if dropped.is_some_and(|step| step < lane.whole) {
            return self.drop_for(site, DropReason::IngressProgram);
        }
        let port = PortId(ended.result(result::EGRESS_PORT) as u32);
        let priority = standard.priority.map_or(0, |_| ended.result(result::PRIORITY) as usize).min(PRIORITIES - 1);
        self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
        if dropped.is_some() {
            return self.drop_for(site, DropReason::EgressProgram);
        }
        let leaving = Leaving { port, at: lane.came.at, depth: 0 };
        self.leave(ended.output_start(), ended.room(), copy, leaving, made)
    }

    /// The same without machine code: every frame is copied.
    fn step_copied<L: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [L], output: &mut Vec<Egress>) {
        let mut made = Vec::new();
        let frames = batch.iter_mut().map(|frame| {
            let (room, start) = frame.headroom();
            Frame { port, data: room[start..].to_vec() }
        });
        self.step(now, &mut frames.collect(), &mut made);
        output.extend(made.into_iter().map(Egress::Owned));
    }

    /// The whole way of one packet.
    fn pass(&mut self, lent: &mut InPlacePacket<'_>, came: Came<'_>, made: &mut Vec<Frame>) -> Fate {
        let standard = self.layout.standard;
        let now = Now { ns: came.at.as_ns() };
        lent.set_slot_to(standard.ingress_port, u64::from(came.by.0));
        lent.set(standard.ingress_global_timestamp, came.at.as_us());
        let Some(egress_begins) = came.whole else { return self.pass_in_two(lent, came, made) };
        let outcome = lent.run(unit::WHOLE, &mut self.objects, now);
        self.count_parser_error(lent.parser_error());
        self.after_whole(lent, outcome, egress_begins, came, made)
    }

    /// What becomes of a packet that the whole unit ran on.
    fn after_whole(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        egress_begins: usize,
        came: Came<'_>,
        made: &mut Vec<Frame>,
    ) -> Fate {
        match outcome {
            UnitOutcome::Failed(step, _) | UnitOutcome::Stopped(step) if step < egress_begins => {
                self.ends_with_ingress(lent, outcome, came, made).unwrap_or(Fate::Gone)
            }
            _ => {
                let port = PortId(lent.number(self.layout.standard.egress_port) as u32);
                let priority = self.priority(lent);
                self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
                self.ends_with_egress(lent, outcome, Leaving { port, at: came.at, depth: 0 }, came, made)
            }
        }
    }

    /// The same with a look at the queues between ingress and egress.
    fn pass_in_two(&mut self, lent: &mut InPlacePacket<'_>, came: Came<'_>, made: &mut Vec<Frame>) -> Fate {
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

    /// What became of a packet with the end of ingress; `None` if it goes on to egress at once.
    fn ends_with_ingress(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        came: Came<'_>,
        made: &mut Vec<Frame>,
    ) -> Option<Fate> {
        if let Some(fate) = self.failed(outcome, true) {
            return Some(fate);
        }
        let standard = self.layout.standard;
        let is_plain = !lent.has_requests() && standard.mcast_grp.is_none_or(|slot| lent.number(slot) == 0);
        let spec = lent.number(standard.egress_spec) as u32;
        if is_plain && spec == self.config.drop_port {
            return Some(self.dropped_by_program(lent, DropReason::IngressProgram));
        }
        if is_plain && self.queues.is_open(PortId(spec), self.priority(lent)) {
            return None;
        }
        let packet = detached(lent, came);
        self.work_left = self.config.max_work - 1;
        self.after_ingress(packet, came.at, &mut ());
        self.drive(came.at, made, &mut ());
        Some(Fate::Elsewhere)
    }

    /// What became of a packet with the end of egress, which goes on to the deparser by itself if nothing is asked for and
    /// the packet is not dropped.
    fn ends_with_egress(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        leaving: Leaving,
        came: Came<'_>,
        made: &mut Vec<Frame>,
    ) -> Fate {
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
        Fate::Elsewhere
    }

    /// A deparsed packet leaves, which begins at `start` in its buffer of `room` bytes, or has to be copied.
    fn leave(
        &mut self,
        start: Option<usize>,
        room: usize,
        copy: impl FnOnce() -> Vec<u8>,
        leaving: Leaving,
        made: &mut Vec<Frame>,
    ) -> Fate {
        let port = leaving.port;
        let copy = if start.is_none() || self.config.cpu_port == Some(port) { Some(copy()) } else { None };
        let length = copy.as_ref().map_or_else(|| room - start.unwrap_or(0), Vec::len);
        if let Some(reason) = self.obstacle(port, length) {
            self.drops.count(&mut self.registry, reason, 0);
            return Fate::Gone;
        }
        self.ports.count_tx(&mut self.registry, port, length);
        match (start, copy) {
            (_, Some(data)) if self.config.cpu_port == Some(port) => {
                self.hand_up(data, leaving.at);
                Fate::Gone
            }
            (Some(start), _) => Fate::Leaves(port, start),
            (None, data) => {
                made.push(Frame { port, data: data.unwrap_or_default() });
                Fate::Elsewhere
            }
        }
    }

    /// Drops a packet that did not come to the end of a unit.
    fn failed(&mut self, outcome: UnitOutcome, in_ingress: bool) -> Option<Fate> {
        let (UnitOutcome::Done(ending) | UnitOutcome::Failed(_, ending)) = outcome else { return None };
        let (reason, site) = judge(ending, in_ingress).err()?;
        self.drops.count(&mut self.registry, reason, site);
        Some(Fate::Gone)
    }

    fn dropped_by_program(&mut self, lent: &InPlacePacket<'_>, reason: DropReason) -> Fate {
        let site = self.layout.standard.drop_site.map_or(0, |slot| lent.number(slot) as u32);
        self.drop_for(site, reason)
    }

    /// Drops a packet for something that the program does at a place.
    fn drop_for(&mut self, site: u32, reason: DropReason) -> Fate {
        self.drops.count(&mut self.registry, reason, site);
        Fate::Gone
    }
}

/// A packet of the switch's own that goes on where the lent one stands.
#[cold]
fn detached(lent: &InPlacePacket<'_>, came: Came<'_>) -> Box<Packet> {
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
