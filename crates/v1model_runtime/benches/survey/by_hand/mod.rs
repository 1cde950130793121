//! Compares programs in the switch with hand-written Rust that has the same outputs and the same counters of ports,
//! queues and drops. Outputs and counters are compared before anything is measured.

mod copies;
mod router;

use switch::{Egress, Frame, PortId, Registry};
use v1model::DROP_PORT;

use crate::load::{self, Loaded};
use crate::measure::{self, InputBatch, Side, Slot, Timer, WholeSwitch};

/// A hand-written program: changes the frames of a batch in place and appends what leaves, as the switch does.
pub trait ByHand {
    fn run(&mut self, port: PortId, frames: &mut [Slot], left: &mut Vec<Egress>);

    fn counters(&self) -> &Counters;
}

/// Counters of a port: frames and bytes, and frames in its first queue.
#[derive(Clone, Copy, Debug, Default)]
struct PortCounters {
    received: [u64; 2],
    sent: [u64; 2],
    queued: u64,
}

/// The counters of a hand-written program.
#[derive(Debug)]
pub struct Counters {
    ports: Vec<PortCounters>,
    dropped: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters { ports: vec![PortCounters::default(); DROP_PORT as usize], dropped: 0 }
    }
}

impl Counters {
    /// Counts the frames of a batch.
    fn receive(&mut self, port: PortId, frames: &[Slot]) {
        let counters = &mut self.ports[port.0 as usize].received;
        counters[0] += frames.len() as u64;
        counters[1] += frames.iter().map(|frame| frame.bytes().len() as u64).sum::<u64>();
    }

    /// Counts a frame that passes the queue of a port and leaves.
    #[inline]
    fn send(&mut self, port: u32, bytes: usize) {
        let counters = &mut self.ports[port as usize];
        counters.queued += 1;
        counters.sent[0] += 1;
        counters.sent[1] += bytes as u64;
    }

    /// Counts a frame that passes the queue of a port, and no more.
    #[inline]
    fn queue(&mut self, port: u32) {
        self.ports[port as usize].queued += 1;
    }

    /// Panics unless the switch has counted the same.
    fn compare(&self, registry: &Registry) {
        let value = |name: &str| registry.get(name).unwrap_or(0);
        for (port, counters) in self.ports.iter().enumerate() {
            let rx = ["packets", "bytes"].map(|unit| value(&format!("port.{port}.rx.{unit}")));
            let tx = ["packets", "bytes"].map(|unit| value(&format!("port.{port}.tx.{unit}")));
            let queued = value(&format!("queue.{port}.0.packets"));
            assert_eq!((rx, tx, queued), (counters.received, counters.sent, counters.queued), "port {port}");
        }
        let dropped: u64 =
            ["ingress.program", "egress.program"].map(|reason| value(&format!("drop.{reason}"))).iter().sum();
        assert_eq!(dropped, self.dropped);
    }
}

/// A comparison.
struct Comparison {
    name: &'static str,
    bound: f64,
    /// Prepares both sides.
    prepare: Box<dyn FnOnce() -> (Loaded, Box<dyn ByHand>)>,
}

/// Makes and prints the comparisons that are chosen by name.
pub fn compare(is_chosen: impl Fn(&str) -> bool) {
    let all = || router::comparisons().chain(copies::comparisons());
    let chosen = all().filter(|comparison| is_chosen("by-hand") || is_chosen(comparison.name));
    let mut heading = Some(
        "| whole switch beside hand-written Rust | switch, ns | by hand, ns | ratio | bound |\n|---|---|---|---|---|",
    );
    for Comparison { name, bound, prepare } in chosen {
        heading.take().into_iter().for_each(|heading| println!("{heading}"));
        let (loaded, by_hand) = prepare();
        let (switch_ns, hand_ns, ratio) = measure_both(loaded, by_hand);
        println!("| {name} | {switch_ns:.1} | {hand_ns:.1} | **{ratio:.2}** | {bound} |");
    }
}

/// A hand-written program, and what has left it.
struct HandSide {
    by_hand: Box<dyn ByHand>,
    left: Vec<Egress>,
}

impl Side for HandSide {
    fn run(&mut self, port: PortId, frames: &mut [Slot]) {
        self.by_hand.run(port, frames, &mut self.left);
    }

    fn rest(&mut self) {
        self.left.clear();
    }
}

/// Returns the nanoseconds a packet of the whole switch and of the hand-written program, and their ratio.
fn measure_both(loaded: Loaded, by_hand: Box<dyn ByHand>) -> (f64, f64, f64) {
    let batches = measure::batches(loaded.frames);
    let (mut whole, mut hand) = (WholeSwitch::new(loaded.switch), HandSide { by_hand, left: Vec::new() });
    check(&mut whole, &mut hand, &batches);
    let (hand_ns, switch_ns, ratio) = measure::alternate(&batches, &mut hand, &mut whole);
    (switch_ns, hand_ns, ratio)
}

/// Returns what leaves as frames.
fn frames_of(slots: &[Slot], left: &[Egress]) -> Vec<Frame> {
    let frame = |egress: &Egress| match egress {
        Egress::Owned(frame) => frame.clone(),
        Egress::InPlace { index, port } => Frame { port: *port, data: slots[*index].bytes().to_vec() },
    };
    left.iter().map(frame).collect()
}

/// Panics unless both sides send the same frames by the same ports, in the same order, and count the same.
fn check(whole: &mut WholeSwitch, hand: &mut HandSide, batches: &[InputBatch]) {
    let mut timers = [Timer::default(), Timer::default()];
    let mut all = 0;
    for (port, frames) in batches {
        let [ours, theirs] = &mut timers;
        let (ours, theirs) = (ours.fill(frames), theirs.fill(frames));
        whole.run(PortId(*port), ours);
        hand.run(PortId(*port), theirs);
        all += whole.left.len();
        assert_eq!(frames_of(ours, &whole.left), frames_of(theirs, &hand.left));
        whole.rest();
        hand.rest();
    }
    assert!(all > 0, "some frames leave");
    hand.by_hand.counters().compare(whole.switch.borrow().registry());
}

/// Prepares a program of the survey with entries.
fn loaded(program: &str, entries: &str, traffic: &str) -> Loaded {
    let mut switch = load::switch(&load::program(program));
    if !entries.is_empty() {
        load::fill(&mut switch, entries);
    }
    Loaded { switch, frames: load::traffic(traffic, 1 << 13) }
}
