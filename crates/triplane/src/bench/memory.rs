//! A switch on batches of frames in memory, timed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::traffic_gen::Generator;
use ir::Program;
use switch::{DropSite, Egress, Frame, FrameMut, PortId, Time};
use v1model::{Config, Executor, Probe, Switch};

use super::histogram::Histogram;
use super::parts::Watcher;
use super::sampler;

/// Packets of a batch: what is timed at once.
pub const BATCH: usize = 32;

/// The port numbers that v1model has; in memory all of them are connected.
const PORTS: u32 = 511;

/// Bytes before a frame, for headers that a program adds.
const ROOM: usize = 256;

/// A switch with all ports there can be.
pub fn switch(program: &Arc<Program>, executor: Executor, probe: Option<Probe>) -> Result<Switch, v1model::LoadError> {
    let config = Config { ports: (0..PORTS).map(PortId).collect(), seed: 1, executor, ..Config::default() };
    match probe {
        Some(probe) => Switch::probed(program.clone(), config, probe),
        None => Switch::new(program.clone(), config),
    }
}

/// How packets are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As they always are.
    Plain,
    /// By machine code that tells where it is.
    Probed,
    /// By the interpreter, which tells where it is.
    Watched,
}

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// For so long, all that the benchmark does itself included.
    Time(Duration),
    /// For so many packets, and what is left of the last batch.
    Packets(u64),
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Packets that were given to the switch.
    pub packets: u64,
    /// How long the switch worked on them.
    pub ns: f64,
    /// How long each batch took, in picoseconds a packet.
    pub batches: Histogram,
}

impl Measured {
    /// Nanoseconds a packet in so many of a hundred batches, or less.
    pub fn percentile_ns(&self, percent: f64) -> f64 {
        self.batches.percentile(percent) as f64 / 1000.0
    }

    /// Nanoseconds a packet, in the median of batches: what it takes where nothing else disturbs.
    pub fn median_ns(&self) -> f64 {
        self.percentile_ns(50.0)
    }

    /// Adds what another measured.
    pub fn merge(&mut self, other: &Measured) {
        self.packets += other.packets;
        self.ns += other.ns;
        self.batches.merge(&other.batches);
    }

    /// Nanoseconds a packet, on average, with whatever disturbed.
    pub fn mean_ns(&self) -> f64 {
        self.ns / self.packets.max(1) as f64
    }
}

/// What the switch did with packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets given to it.
    pub sent: u64,
    /// Packets that left by a port.
    pub forwarded: u64,
    /// Packets and copies that were dropped.
    pub dropped: u64,
    /// Packets given to the control plane.
    pub to_controller: u64,
    /// Packets that wait in queues.
    pub waiting: u64,
    /// Packets made by multicast and cloning, beyond those that were sent.
    pub copies: u64,
    /// By which reason and where packets were dropped.
    pub drops: Vec<DropSite>,
}

/// A frame of a batch.
struct Slot {
    buffer: Vec<u8>,
    start: usize,
}

impl FrameMut for Slot {
    fn headroom(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.start)
    }

    fn set_start(&mut self, start: usize) {
        self.start = start;
    }
}

/// Frames that come in on a port, until they are a batch.
struct Waiting {
    port: u32,
    slots: Vec<Slot>,
    filled: usize,
}

/// A switch and its traffic.
pub struct Bench {
    switch: Switch,
    generator: Generator,
    way: Way,
    waiting: Vec<Waiting>,
    frame: Vec<u8>,
    started: Instant,
    /// What reading the clock costs, in nanoseconds.
    clock_ns: f64,
    sent: u64,
    left: u64,
    controller: u64,
    departed: Vec<Egress>,
}

impl Bench {
    /// A switch that gets this traffic.
    pub fn new(switch: Switch, generator: Generator, way: Way) -> Bench {
        Bench {
            switch,
            generator,
            way,
            waiting: Vec::new(),
            frame: Vec::new(),
            started: Instant::now(),
            clock_ns: clock_ns(),
            sent: 0,
            left: 0,
            controller: 0,
            departed: Vec::new(),
        }
    }

    /// Fills frames until there is a batch for one port. Returns its place in `waiting`.
    fn fill(&mut self) -> usize {
        loop {
            let port = self.generator.next(&mut self.frame);
            let found = self.waiting.iter().position(|waiting| waiting.port == port);
            let at = found.unwrap_or_else(|| {
                let slots = (0..BATCH).map(|_| Slot { buffer: Vec::new(), start: 0 }).collect();
                self.waiting.push(Waiting { port, slots, filled: 0 });
                self.waiting.len() - 1
            });
            let waiting = &mut self.waiting[at];
            let slot = &mut waiting.slots[waiting.filled];
            slot.buffer.clear();
            slot.buffer.resize(ROOM, 0);
            slot.buffer.extend_from_slice(&self.frame);
            slot.start = ROOM;
            waiting.filled += 1;
            if waiting.filled == BATCH {
                waiting.filled = 0;
                return at;
            }
        }
    }

    /// Runs a batch; how long the switch took, in nanoseconds.
    fn batch(&mut self) -> f64 {
        let at = self.fill();
        let Waiting { port, slots, .. } = &mut self.waiting[at];
        let now = Time::from_ns(self.started.elapsed().as_nanos() as u64);
        let port = PortId(*port);
        self.departed.clear();
        let ns = match self.way {
            Way::Plain => {
                let begin = Instant::now();
                self.switch.step_in_place(now, port, slots, &mut self.departed);
                (begin.elapsed().as_nanos() as f64 - self.clock_ns).max(0.0)
            }
            Way::Probed => {
                let begin = Instant::now();
                sampler::with(sampler::Sampler::enter);
                self.switch.step_in_place(now, port, slots, &mut self.departed);
                sampler::with(sampler::Sampler::leave);
                begin.elapsed().as_nanos() as f64
            }
            Way::Watched => {
                let frames = slots.iter().map(|slot| Frame { port, data: slot.buffer[slot.start..].to_vec() });
                let (mut frames, mut output) = (frames.collect(), Vec::new());
                let begin = Instant::now();
                sampler::with(sampler::Sampler::enter);
                self.switch.step_recorded(now, &mut frames, &mut output, &mut Watcher::default());
                sampler::with(sampler::Sampler::leave);
                self.left += output.len() as u64;
                begin.elapsed().as_nanos() as f64
            }
        };
        self.sent += BATCH as u64;
        self.left += self.departed.len() as u64;
        let told = self.switch.take_notifications();
        self.controller +=
            told.iter().filter(|told| matches!(told, switch::Notification::PacketIn { .. })).count() as u64;
        ns
    }

    /// Runs batches up to a limit. `tick` is told now and then how much of it is done, from 0 to 1.
    pub fn run(&mut self, limit: Limit, tick: &mut dyn FnMut(f64, &Measured)) -> Measured {
        let mut measured = Measured::default();
        let begin = Instant::now();
        let mut looked = 0u32;
        loop {
            let ns = self.batch();
            measured.packets += BATCH as u64;
            measured.ns += ns;
            measured.batches.add((ns * 1000.0 / BATCH as f64) as u64);
            looked += 1;
            let is_due = matches!(limit, Limit::Packets(packets) if measured.packets >= packets);
            // Interpreted batches take long, others do not: the clock is looked at in both cases often enough.
            if !is_due && !looked.is_multiple_of(16) {
                continue;
            }
            let done = match limit {
                Limit::Time(time) => begin.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-9),
                Limit::Packets(packets) => measured.packets as f64 / packets.max(1) as f64,
            };
            if done >= 1.0 {
                return measured;
            }
            tick(done, &measured);
        }
    }

    /// What the switch did so far.
    pub fn counts(&self) -> Counts {
        let registry = self.switch.registry();
        let value = |name: &str| registry.get(name).unwrap_or(0);
        let drops = self.switch.drop_sites();
        let clones = value("clone.ingress.packets") + value("clone.egress.packets");
        let replicas = value("multicast.replicas").saturating_sub(value("multicast.packets"));
        Counts {
            sent: self.sent,
            forwarded: self.left,
            dropped: drops.iter().map(|site| site.packets).sum(),
            to_controller: self.controller,
            waiting: self.switch.waiting() as u64,
            copies: clones + replicas,
            drops,
        }
    }
}

/// What it costs to read the clock twice with nothing between.
fn clock_ns() -> f64 {
    let once = || Instant::now().elapsed().as_nanos() as f64;
    let mut costs: Vec<f64> = (0..1001).map(|_| once()).collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
