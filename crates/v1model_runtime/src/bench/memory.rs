//! Times a switch on batches of frames in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ir::Program;
use switch::{DropSite, Egress, Frame, FrameMut, PortId, Time};
use traffic_gen::Generator;
use v1model::{Config, Executor, PathCount, Probe, Switch};

use super::histogram::Histogram;
use super::sampler;
use super::watcher::Watcher;

/// Number of packets in a batch, which is timed as a whole.
pub const BATCH: usize = 32;

/// Number of ports; in memory all of v1model's are connected.
const PORTS: u32 = v1model::DROP_PORT;

/// Headroom in front of a frame, in bytes, for headers that a program adds.
const ROOM: usize = 256;

/// Creates a switch with all ports of v1model.
pub fn switch(program: &Arc<Program>, executor: Executor, probe: Option<Probe>) -> Result<Switch, v1model::LoadError> {
    let config = Config { ports: (0..PORTS).map(PortId).collect(), seed: 1, executor, ..Config::default() };
    match probe {
        Some(probe) => Switch::probed(program.clone(), config, probe),
        None => Switch::new(program.clone(), config),
    }
}

/// The execution mode of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// Without instrumentation.
    None,
    /// By machine code that reports its position.
    Probed,
    /// By the interpreter, which reports its position.
    Watched,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After this time, which includes the benchmark's own work.
    Time(Duration),
    /// After this number of packets, rounded up to whole batches.
    Packets(u64),
}

/// The measured times.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Number of packets passed to the switch.
    pub packets: u64,
    /// Time that the switch worked on them, in nanoseconds.
    pub ns: f64,
    /// Duration of each batch, in picoseconds a packet.
    pub batches: Histogram,
}

impl Measured {
    /// Returns the nanoseconds a packet that `percent` percent of the batches do not exceed.
    pub fn percentile_ns(&self, percent: f64) -> f64 {
        self.batches.percentile(percent) as f64 / 1000.0
    }

    /// Returns the nanoseconds a packet in the median batch: the time without disturbance.
    pub fn median_ns(&self) -> f64 {
        self.percentile_ns(50.0)
    }

    /// Adds the values of another measurement.
    pub fn merge(&mut self, other: &Measured) {
        self.packets += other.packets;
        self.ns += other.ns;
        self.batches.merge(&other.batches);
    }

    /// Returns the mean nanoseconds a packet, including all disturbance.
    pub fn mean_ns(&self) -> f64 {
        self.ns / self.packets.max(1) as f64
    }
}

/// Number of packets by their outcome in the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets passed to the switch.
    pub sent: u64,
    /// Packets that left by a port.
    pub forwarded: u64,
    /// Packets and copies that were dropped.
    pub dropped: u64,
    /// Packets sent to the control plane.
    pub to_controller: u64,
    /// Packets that wait in queues.
    pub waiting: u64,
    /// Packets made by multicast and cloning, beyond those that were sent.
    pub copies: u64,
    /// The reasons and places of drops.
    pub drops: Vec<DropSite>,
    /// Packets by the path they took, from the fastest path to the slowest.
    pub paths: Vec<PathCount>,
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

    fn truncate(&mut self, length: usize) {
        self.buffer.truncate(self.start.saturating_add(length));
    }
}

/// Frames that arrive on a port, collected until they form a batch.
struct Waiting {
    port: u32,
    slots: Vec<Slot>,
    filled: usize,
}

/// A switch and its traffic.
pub struct Bench {
    switch: Switch,
    generator: Generator,
    instrumentation: Instrumentation,
    waiting: Vec<Waiting>,
    frame: Vec<u8>,
    started: Instant,
    /// Cost of reading the clock, in nanoseconds.
    clock_ns: f64,
    sent: u64,
    left: u64,
    controller: u64,
    departed: Vec<Egress>,
}

impl Bench {
    /// Creates a benchmark of a switch with this traffic.
    pub fn new(switch: Switch, generator: Generator, instrumentation: Instrumentation) -> Bench {
        Bench {
            switch,
            generator,
            instrumentation,
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

    /// Generates frames until one port has a whole batch. Returns its index in `waiting`.
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

    /// Runs a batch and returns the time that the switch took, in nanoseconds.
    fn batch(&mut self) -> f64 {
        let at = self.fill();
        let Waiting { port, slots, .. } = &mut self.waiting[at];
        let now = Time::from_ns(self.started.elapsed().as_nanos() as u64);
        let port = PortId(*port);
        self.departed.clear();
        let ns = match self.instrumentation {
            Instrumentation::None => {
                let begin = Instant::now();
                self.switch.step_in_place(now, port, slots, &mut self.departed);
                (begin.elapsed().as_nanos() as f64 - self.clock_ns).max(0.0)
            }
            Instrumentation::Probed => {
                let begin = Instant::now();
                sampler::with(sampler::Sampler::enter);
                self.switch.step_in_place(now, port, slots, &mut self.departed);
                sampler::with(sampler::Sampler::leave);
                begin.elapsed().as_nanos() as f64
            }
            Instrumentation::Watched => {
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
        let notifications = self.switch.take_notifications();
        self.controller += notifications
            .iter()
            .filter(|notification| matches!(notification, switch::Notification::PacketIn { .. }))
            .count() as u64;
        ns
    }

    /// Runs batches up to a limit. From time to time it calls `tick` with the fraction of the limit that is done, from
    /// 0 to 1.
    pub fn run(&mut self, limit: Limit, tick: &mut dyn FnMut(f64, &Measured)) -> Measured {
        let mut measured = Measured::default();
        let begin = Instant::now();
        let mut batches = 0u32;
        loop {
            let ns = self.batch();
            measured.packets += BATCH as u64;
            measured.ns += ns;
            measured.batches.add((ns * 1000.0 / BATCH as f64) as u64);
            batches += 1;
            let is_due = matches!(limit, Limit::Packets(packets) if measured.packets >= packets);
            // Interpreted batches take long, others do not; in both cases the clock is read often enough.
            if !is_due && !batches.is_multiple_of(16) {
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

    /// Returns the counts so far.
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
            paths: self.switch.path_counts(),
        }
    }
}

/// Returns the cost of two consecutive clock readings, in nanoseconds.
fn clock_ns() -> f64 {
    let once = || Instant::now().elapsed().as_nanos() as f64;
    let mut costs: Vec<f64> = (0..1001).map(|_| once()).collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
