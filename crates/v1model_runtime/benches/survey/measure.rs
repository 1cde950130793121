//! Times batches of frames in memory.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use switch::{Egress, FrameMut, PortId, Time};
use v1model::{PathCount, Switch};

use crate::load::Loaded;

/// Number of frames in a batch.
pub const BATCH: usize = 32;
/// Number of batches of each side in a round.
const BATCHES: usize = 64;
/// Free bytes in front of a frame.
const ROOM: usize = 256;

/// A frame in a buffer with headroom.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    buffer: Vec<u8>,
    start: usize,
}

impl Slot {
    fn fill(&mut self, frame: &[u8]) {
        self.buffer.resize(ROOM, 0);
        self.buffer.extend_from_slice(frame);
        self.start = ROOM;
    }

    /// Returns the frame.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
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

/// Frames that arrive on one port.
pub type InputBatch = (u32, Vec<Vec<u8>>);

/// Distributes frames over batches, each of one port and of up to 32 frames.
pub fn batches(frames: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Vec<InputBatch> {
    let mut batches: Vec<InputBatch> = Vec::new();
    for (port, frame) in frames {
        match batches.iter_mut().rev().find(|(of, batch)| *of == port && batch.len() < BATCH) {
            Some((_, batch)) => batch.push(frame),
            None => batches.push((port, vec![frame])),
        }
    }
    batches
}

/// Times batches, in turn, on one side of a comparison.
#[derive(Debug, Default)]
pub struct Timer {
    slots: Vec<Slot>,
    next: usize,
}

/// Returns the cost of two consecutive clock readings, in nanoseconds.
fn clock_ns() -> f64 {
    median((0..1001).map(|_| Instant::now().elapsed().as_nanos() as f64).collect())
}

pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

impl Timer {
    /// Copies a batch into the slots, and returns these.
    pub fn fill(&mut self, frames: &[Vec<u8>]) -> &mut [Slot] {
        self.slots.resize(BATCH, Slot::default());
        let slots = &mut self.slots[..frames.len()];
        slots.iter_mut().zip(frames).for_each(|(slot, frame)| {
            slot.buffer.clear();
            slot.fill(frame);
        });
        slots
    }

    /// Returns the median nanoseconds a packet over a round of batches that a side processes. Copying the frames into
    /// their buffers, and [`Side::rest`], are not included.
    fn round(&mut self, batches: &[InputBatch], side: &mut dyn Side) -> f64 {
        let clock_ns = clock_ns();
        let times = (0..BATCHES).map(|_| {
            let (port, frames) = &batches[self.next % batches.len()];
            self.next += 1;
            let slots = self.fill(frames);
            let begin = Instant::now();
            side.run(PortId(*port), slots);
            let ns = begin.elapsed().as_nanos() as f64;
            side.rest();
            (ns - clock_ns).max(0.0) / frames.len() as f64
        });
        median(times.collect())
    }
}

/// Returns the number of rounds.
fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(31)
}

/// One side of a comparison.
pub trait Side {
    /// Processes a batch.
    fn run(&mut self, port: PortId, frames: &mut [Slot]);

    /// Gives up the results, as a driver and a control plane would.
    fn rest(&mut self) {}
}

/// Times two sides in alternating rounds. Returns the medians of both and of their ratio, the second to the first.
pub fn alternate(batches: &[InputBatch], first: &mut dyn Side, second: &mut dyn Side) -> (f64, f64, f64) {
    let mut timers = [Timer::default(), Timer::default()];
    let [one, two] = &mut timers;
    let mut times = Vec::new();
    for round in 0..rounds() + 1 {
        let pair = (one.round(batches, first), two.round(batches, second));
        if round > 0 {
            times.push(pair);
        }
    }
    let ratio = median(times.iter().map(|(one, two)| two / one.max(1e-9)).collect());
    (median(times.iter().map(|pair| pair.0).collect()), median(times.iter().map(|pair| pair.1).collect()), ratio)
}

/// What was measured of a program.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Machine code of the whole pipeline alone; `None` if the program has none.
    pub unit_ns: Option<f64>,
    pub switch_ns: f64,
    /// The part of all packets that were dropped.
    pub dropped: f64,
    /// Milliseconds to compile the program to machine code.
    pub compile_ms: f64,
    pub paths: Vec<PathCount>,
}

impl Figures {
    /// Returns the time that the whole switch may take.
    pub fn bound_ns(&self) -> Option<f64> {
        Some(1.3 * self.unit_ns? + 15.0)
    }

    pub fn is_batched(&self) -> bool {
        self.paths.iter().all(|count| count.reason.is_none())
    }
}

/// A whole switch, and what has left it.
pub struct WholeSwitch {
    pub switch: Rc<RefCell<Switch>>,
    pub left: Vec<Egress>,
    started: Instant,
}

impl WholeSwitch {
    pub fn new(switch: Switch) -> WholeSwitch {
        WholeSwitch { switch: Rc::new(RefCell::new(switch)), left: Vec::new(), started: Instant::now() }
    }
}

/// Returns the time since a moment, as a switch takes it.
fn since(started: Instant) -> Time {
    Time::from_ns(started.elapsed().as_nanos() as u64)
}

impl Side for WholeSwitch {
    fn run(&mut self, port: PortId, frames: &mut [Slot]) {
        self.switch.borrow_mut().step_in_place(since(self.started), port, frames, &mut self.left);
    }

    fn rest(&mut self) {
        self.left.clear();
        drop(self.switch.borrow_mut().take_notifications());
    }
}

/// The machine code of a switch's program.
struct CodeAlone {
    switch: Rc<RefCell<Switch>>,
    started: Instant,
    is_there: bool,
}

impl Side for CodeAlone {
    fn run(&mut self, port: PortId, frames: &mut [Slot]) {
        let left = self.switch.borrow_mut().run_code_alone(since(self.started), port, frames);
        self.is_there = left.is_some();
    }
}

/// Measures a program: machine code alone and the whole switch in turns, on the same tables.
pub fn program(loaded: Loaded) -> Figures {
    let batches = batches(loaded.frames);
    let mut whole = WholeSwitch::new(loaded.switch);
    let mut code = CodeAlone { switch: Rc::clone(&whole.switch), started: whole.started, is_there: false };
    let (unit_ns, switch_ns, _) = alternate(&batches, &mut code, &mut whole);
    let switch = whole.switch.borrow();
    let paths = switch.path_counts();
    let all: u64 = paths.iter().map(|count| count.packets).sum();
    let dropped: u64 = switch.drop_sites().iter().map(|site| site.packets).sum();
    let unit_ns = code.is_there.then_some(unit_ns);
    Figures { unit_ns, switch_ns, dropped: dropped as f64 / all.max(1) as f64, compile_ms: 0.0, paths }
}
