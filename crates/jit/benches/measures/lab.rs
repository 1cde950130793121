//! Shared parts of the measures: programs from P4 source, the units of a switch, packets, and interleaved measurement.

use std::cell::Cell;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use compiler::Source;
use engine::{Interpreter, Now, Objects, PacketState, TableEntry};
use ir::{BodyId, KeyValue, Program, TableId};
use jit::{FinishedPacket, NativeProgram, Plan, Progress, Speed, Step, Unit, UnitOutcome};

/// Number of packets in a batch.
pub const BATCH: usize = 32;
/// The port of a packet that is dropped.
pub const NOWHERE: u16 = 511;

/// The output of a packet: its offset in the buffer, and its port.
pub type Output = (usize, u16);

/// A hand-written program: gets a batch of incoming packets and reports the output of each.
pub trait ByHand: FnMut(&mut [Vec<u8>], &mut [Output; BATCH]) {}

impl<F: FnMut(&mut [Vec<u8>], &mut [Output; BATCH])> ByHand for F {}

/// Compiles P4 source, which can include programs of `benches/programs`.
pub fn compile_p4(name: &str, text: &str) -> Arc<Program> {
    let include_dirs = [programs().into()];
    let source = Source { include_dirs: &include_dirs, ..Source::new(name, text) };
    Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir)
}

/// Compiles a program of `benches/programs`.
pub fn p4_program(name: &str) -> Arc<Program> {
    let path = format!("{}/{name}", programs());
    let text = std::fs::read_to_string(Path::new(&path)).expect("the program is there");
    compile_p4(&path, &text)
}

fn programs() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs")
}

/// Returns the plan of a switch for a packet with one output port: all blocks from parser to deparser as one unit, with
/// the work between ingress and egress for a packet that is not held up.
pub fn plan(program: &Program) -> Plan {
    let body = |role: &str| Step::Run(program.blocks[role]);
    let slot = |name: &str| program.slot_named(&format!("standard_metadata.{name}"));
    let needed = |name: &str| slot(name).expect("a v1model program");
    let visible = [
        "ingress_port",
        "egress_spec",
        "egress_port",
        "instance_type",
        "packet_length",
        "mcast_grp",
        "ingress_global_timestamp",
        "egress_global_timestamp",
        "parser_error",
    ];
    let mut steps: Vec<Step> = slot("packet_length").map(Step::LengthTo).into_iter().collect();
    steps.push(body("parser"));
    steps.extend(slot("parser_error").map(Step::ErrorTo));
    steps.extend([body("verify_checksum"), body("ingress"), Step::StopIfRequested]);
    steps.extend(slot("mcast_grp").map(|group| Step::StopUnless(group, 0)));
    steps.extend([
        Step::DropIf(needed("egress_spec"), u64::from(NOWHERE)),
        Step::Copy(needed("egress_port"), needed("egress_spec")),
        Step::Set(needed("egress_spec"), 0),
        body("egress"),
        Step::StopIfRequested,
        Step::DropIf(needed("egress_spec"), u64::from(NOWHERE)),
        body("compute_checksum"),
        body("deparser"),
    ]);
    let results = Some(vec![needed("egress_port")]);
    Plan {
        units: vec![Unit { steps, fresh: true, results, ..Unit::default() }],
        visible: Some(visible.into_iter().filter_map(slot).collect()),
        given: ["ingress_port", "ingress_global_timestamp"].into_iter().filter_map(slot).collect(),
        deparser: None,
    }
}

/// Returns a table by its name in the program.
pub fn table(program: &Program, name: &str) -> TableId {
    let ending = format!(".{name}");
    let mut found = program.tables.iter().filter(|(_, table)| table.name.ends_with(&ending) || table.name == name);
    found.next().expect("the table is there").0
}

/// Creates an entry with the table's first action.
pub fn entry(program: &Program, table: TableId, keys: Vec<KeyValue>, args: &[(u128, u32)]) -> TableEntry {
    let action = program.tables[table].actions[0].action;
    let args = args.iter().map(|(value, width)| bits::Bits::new(*value, *width)).collect();
    TableEntry::new(keys, 0, action, args)
}

/// A program with packets of one length.
pub struct Case {
    pub program: Arc<Program>,
    pub objects: Objects,
    pub load: Load,
    pub ingress_port: u64,
}

/// Incoming packets.
pub struct Load {
    /// Packets, one after the other.
    pub packets: Vec<u8>,
    pub length: usize,
    /// Headroom in bytes in front of a packet in its buffer.
    pub room: usize,
    next: Cell<usize>,
}

/// Results in nanoseconds per packet.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub compiled: f64,
    pub by_hand: f64,
    pub interpreted: f64,
    /// Medians over the rounds of the ratios compiled to hand-written, and interpreted to compiled.
    pub ratio: f64,
    pub faster: f64,
}

pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Reads a number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Returns the number of interleaved rounds: `ROUNDS`, or 101. Many short rounds are more robust against other load on
/// the machine than a few long ones.
pub fn rounds() -> usize {
    number("ROUNDS", 101)
}

/// Returns the number of packets per round: `PACKETS`, or 8192; the interpreter gets a sixteenth of that.
fn packets_a_round() -> usize {
    number("PACKETS", 1 << 13)
}

/// Buffers that receive packets in turn, like the rings of an interface.
struct Ring {
    buffers: Vec<Vec<u8>>,
    sent: [Output; BATCH],
    at: usize,
}

impl Load {
    /// Creates a load of 64-byte packets that lie one after the other, with `room` bytes of headroom on arrival.
    pub fn new(packets: Vec<u8>, room: usize) -> Load {
        Load { packets, length: 64, room, next: Cell::new(0) }
    }

    fn count(&self) -> usize {
        self.packets.len() / self.length / BATCH * BATCH
    }

    fn ring(&self) -> Ring {
        let buffers = vec![vec![0; self.room + self.length]; 8 * BATCH];
        Ring { buffers, sent: [(0, 0); BATCH], at: 0 }
    }

    /// Times `work`, which receives batch after batch of incoming packets.
    fn timed(&self, packets: usize, mut work: impl FnMut(&mut [Vec<u8>], &mut [Output; BATCH])) -> f64 {
        let mut ring = self.ring();
        let all = self.count();
        // Every round continues where the previous one stopped, so that all packets are used.
        let (mut next, mut done) = (self.next.get(), 0);
        let begin = Instant::now();
        while done < packets {
            let batch = &mut ring.buffers[ring.at..ring.at + BATCH];
            for (number, buffer) in batch.iter_mut().enumerate() {
                let fresh = &self.packets[(next + number) * self.length..][..self.length];
                let fresh: &[u8; 64] = fresh.try_into().expect("packets have 64 bytes");
                buffer[self.room..].copy_from_slice(fresh);
            }
            work(batch, &mut ring.sent);
            black_box(&ring.sent);
            ring.at = (ring.at + BATCH) % ring.buffers.len();
            next = (next + BATCH) % all;
            done += BATCH;
        }
        self.next.set(next);
        begin.elapsed().as_nanos() as f64 / done as f64
    }
}

impl Case {
    /// Returns the nanoseconds for copying a packet into its buffer, which all sides do.
    pub fn renewing_ns(&self) -> f64 {
        median((0..rounds()).map(|_| self.load.timed(packets_a_round(), |_, _| {})).collect())
    }

    fn compiled_ns(&mut self, compiled: &NativeProgram, packets: usize) -> f64 {
        let mut runner = Runner::new(compiled, self.load.room, self.ingress_port);
        self.load.timed(packets, |batch, sent| runner.run(&mut self.objects, batch, sent))
    }

    fn interpreted_ns(&mut self, packets: usize) -> f64 {
        let roles: Vec<BodyId> = ["parser", "verify_checksum", "ingress", "egress", "compute_checksum", "deparser"]
            .map(|role| self.program.blocks[role])
            .to_vec();
        let program = self.program.clone();
        let mut state = PacketState::new(&program, Vec::new());
        let ingress_port = program.slot_named("standard_metadata.ingress_port").expect("a v1model program");
        let begin = Instant::now();
        for number in 0..packets {
            let at = number % self.load.count() * self.load.length;
            let at = (at + self.load.next.get() * self.load.length) % (self.load.count() * self.load.length);
            state.reset(&program, self.load.packets[at..at + self.load.length].to_vec());
            state.set_slot_to(ingress_port, self.ingress_port);
            for body in &roles {
                Interpreter::run(&program, &mut self.objects, *body, &mut state, Now { ns: 0 }, &mut ());
            }
            black_box(state.finish());
        }
        begin.elapsed().as_nanos() as f64 / packets as f64
    }

    /// Panics unless machine code and `by_hand` process packets identically.
    fn check(&mut self, compiled: &NativeProgram, by_hand: &mut impl ByHand) {
        let (mut ours, mut theirs) = (self.load.ring(), self.load.ring());
        let mut runner = Runner::new(compiled, self.load.room, self.ingress_port);
        let mut left = 0;
        for first in (0..self.load.count().min(4096)).step_by(BATCH) {
            for ring in [&mut ours, &mut theirs] {
                for (number, buffer) in ring.buffers[..BATCH].iter_mut().enumerate() {
                    let fresh = &self.load.packets[(first + number) * self.load.length..][..self.load.length];
                    buffer[self.load.room..].copy_from_slice(fresh);
                }
            }
            runner.run(&mut self.objects, &mut ours.buffers[..BATCH], &mut ours.sent);
            by_hand(&mut theirs.buffers[..BATCH], &mut theirs.sent);
            for number in 0..BATCH {
                let ((our_start, our_port), (start, port)) = (ours.sent[number], theirs.sent[number]);
                assert_eq!(our_port, port, "packet {}", first + number);
                if port != NOWHERE {
                    left += 1;
                    let (a, b) = (&ours.buffers[number][our_start..], &theirs.buffers[number][start..]);
                    assert_eq!(a, b, "packet {}", first + number);
                }
            }
        }
        assert!(left > 0, "some packets leave");
    }

    /// Measures all sides in turns.
    pub fn measure(&mut self, mut by_hand: impl ByHand) -> Figures {
        let compiled = NativeProgram::new(&self.program, &plan(&self.program), Speed::Run).expect("it compiles");
        self.check(&compiled, &mut by_hand);
        let (mut fast, mut hand, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds() {
            fast.push(self.compiled_ns(&compiled, packets_a_round()));
            hand.push(self.load.timed(packets_a_round(), &mut by_hand));
            slow.push(self.interpreted_ns(packets_a_round() / 16));
        }
        let each = |a: &[f64], b: &[f64]| median(a.iter().zip(b).map(|(a, b)| a / b).collect());
        Figures {
            ratio: each(&fast, &hand),
            faster: each(&slow, &fast),
            compiled: median(fast),
            by_hand: median(hand),
            interpreted: median(slow),
        }
    }

    /// Returns the nanoseconds of machine code alone.
    pub fn alone(&mut self) -> f64 {
        let compiled = NativeProgram::new(&self.program, &plan(&self.program), Speed::Run).expect("it compiles");
        median((0..rounds()).map(|_| self.compiled_ns(&compiled, packets_a_round())).collect())
    }
}

/// Returns the result of a packet as a switch reads it: if it leaves, its offset and its port.
#[inline(always)]
fn way_out(ended: FinishedPacket<'_>) -> Output {
    match (ended.outcome(), ended.output_start()) {
        (UnitOutcome::Done(_), Some(start)) => (start, ended.result(0) as u16),
        _ => (0, NOWHERE),
    }
}

/// Runs batches through machine code.
struct Runner<'a> {
    compiled: &'a NativeProgram,
    packet: jit::Packet,
    room: usize,
    ingress_port: (ir::SlotId, u64),
}

impl<'a> Runner<'a> {
    fn new(compiled: &'a NativeProgram, room: usize, ingress_port: u64) -> Self {
        let slot = compiled.program().slot_named("standard_metadata.ingress_port").expect("a v1model program");
        Runner { compiled, packet: compiled.packet(Vec::new()), room, ingress_port: (slot, ingress_port) }
    }

    fn run(&mut self, objects: &mut Objects, batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]) {
        let now = Now { ns: 0 };
        let mut packets = self.compiled.batch(0, &mut self.packet);
        packets.set_slot_to(self.ingress_port.0, self.ingress_port.1);
        let (count, room) = (batch.len(), self.room);
        packets.extend(batch.iter_mut().map(|buffer| (&mut **buffer, room)));
        let mut next = 0;
        while next < count {
            let Progress { done, stopped } = packets.run(objects, now);
            next = done.end + usize::from(stopped);
            for (sent, ended) in sent[done.clone()].iter_mut().zip(packets.finished_all(done.clone())) {
                *sent = way_out(ended);
            }
            if stopped {
                sent[done.end] = way_out(packets.finished(done.end));
            }
        }
    }
}
