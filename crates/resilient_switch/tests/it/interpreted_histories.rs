//! Judges histories of complete networks with the interpreter as specification: some order of the packets of a key, run
//! by one switch without annotations, explains every output. The program is that of `examples/key-value`.
//! `TRIPLANE_RESILIENT_HISTORIES=2000` runs more networks, and `TRIPLANE_RESILIENT_HISTORY=17` only that one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use compiler::Source;
use ir::RegisterId;
use resilient::HoldMode;
use resilient::history::{Invocation, Specification, Verdict, check};
use rng::SplitMix64;
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch, V1Model};

use crate::rig::{Rig, RigFaults};

const KEY_VALUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/key-value/store.p4");

/// Number of networks of a normal test.
const NETWORKS: u64 = 20;

/// Number of keys.
const KEYS: u16 = 3;

/// Maximum number of states that the search for an order visits.
const MAX_STATES: usize = 20_000;

/// Length of the headers. The number of the packet follows.
const HEADERS: usize = 25;

/// The operation that changes nothing.
const READ: u8 = 0;

/// The output of a packet: the port and the bytes.
type KeyValueOutput = (PortId, Vec<u8>);

/// The cells of a row, and a packet.
type KnownInput = (Vec<u64>, Vec<u8>);

/// The calls of a key.
type KeyHistory = Vec<Invocation<Vec<u8>, KeyValueOutput>>;

fn request(operation: u8, key: u16, value: u32, number: u32) -> Frame {
    let addresses = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
    let header = [&[0x88, 0xb6, operation][..], &key.to_be_bytes(), &value.to_be_bytes(), &[0; 4]].concat();
    Frame::new(1, [addresses, header, number.to_be_bytes().to_vec(), vec![0; 31]].concat())
}

fn number_of(data: &[u8]) -> u32 {
    u32::from_be_bytes(data[HEADERS..HEADERS + 4].try_into().expect("a packet of the test"))
}

/// A switch that runs the program without annotations, one packet at a time, in the interpreter.
struct InterpretedKey {
    key: u16,
    registers: Vec<RegisterId>,
    switch: RefCell<Switch>,
    known: RefCell<HashMap<KnownInput, (Vec<u64>, KeyValueOutput)>>,
}

impl InterpretedKey {
    fn new(key: u16) -> InterpretedKey {
        let text = std::fs::read_to_string(KEY_VALUE).expect("the program can be read");
        let plain = text.replace("@resilient[group = \"keys\"] ", "");
        assert!(!plain.contains('@'), "annotations are left");
        let program = Arc::new(compiler::expect_program(&Source::new("plain.p4", &plain), &V1Model).ir);
        let registers: Vec<RegisterId> = program.registers.keys().collect();
        assert_eq!(registers.len(), 2);
        let config = Config { executor: Executor::Interpreter, ..Config::with_ports(4) };
        let switch = RefCell::new(Switch::new(program, config).expect("the program fits the switch"));
        InterpretedKey { key, registers, switch, known: RefCell::default() }
    }

    fn run(&self, cells: &[u64], input: &[u8]) -> (Vec<u64>, KeyValueOutput) {
        let mut switch = self.switch.borrow_mut();
        let index = u64::from(self.key);
        for (register, cell) in self.registers.iter().zip(cells) {
            switch.objects_mut().set_register_word(*register, index, *cell);
        }
        let mut output = Vec::new();
        switch.step(Time::ZERO, &mut vec![Frame::new(1, input.to_vec())], &mut output);
        let cells = self.registers.iter().map(|register| switch.objects().register_word(*register, index)).collect();
        let Ok([frame]) = <[Frame; 1]>::try_from(output) else { panic!("a packet has one output") };
        (cells, (frame.port, frame.data))
    }
}

impl Specification for InterpretedKey {
    type State = Vec<u64>;
    type Input = Vec<u8>;
    type Output = KeyValueOutput;

    fn initial(&self) -> Vec<u64> {
        vec![0; self.registers.len()]
    }

    fn step(&self, state: &Vec<u64>, input: &Vec<u8>) -> (Vec<u64>, KeyValueOutput) {
        let known = (state.clone(), input.clone());
        let found = self.known.borrow().get(&known).cloned();
        let (after, output) = found.unwrap_or_else(|| self.run(state, input));
        assert!(!self.is_read(input) || after == *state, "a read has changed something");
        self.known.borrow_mut().insert(known, (after.clone(), output.clone()));
        (after, output)
    }

    fn is_read(&self, input: &Vec<u8>) -> bool {
        input[14] == READ
    }

    /// The second array counts the changes, and every output has the count.
    fn is_past(&self, state: &Vec<u64>, input: &Vec<u8>, (_, output): &KeyValueOutput) -> bool {
        let count = u32::from_be_bytes(output[21..HEADERS].try_into().expect("an answer"));
        state[1] + u64::from(!self.is_read(input)) > u64::from(count)
    }
}

/// A network of two switches and a chain, and the packets that its client has sent and received.
struct ObservedNetwork {
    rig: Rig,
    random: SplitMix64,
    starts: u64,
    /// Whether nothing is lost.
    is_calm: bool,
    /// Time of the history: each packet and each output has its own.
    time: u64,
    calls: Vec<Invocation<Vec<u8>, KeyValueOutput>>,
}

impl ObservedNetwork {
    fn draw(seed: u64, is_calm: bool) -> ObservedNetwork {
        let mut random = SplitMix64::new(seed);
        let mut rig = Rig::with_program(KEY_VALUE, 1 + random.below(3) as u32);
        let hold = if seed.is_multiple_of(2) { HoldMode::Piggyback } else { HoldMode::Local };
        rig.faults = RigFaults {
            hold,
            random: SplitMix64::new(seed ^ 99),
            loss: if is_calm { 0 } else { random.below(20) },
            duplication: random.below(20),
            jitter_ns: random.pick(&[(1, 0), (3, 60_000)]),
            executor: random.pick(&[(1, Executor::Interpreter), (2, Executor::Jit)]),
            in_place: random.percent(50),
            max_parked: random.pick(&[(1, 4), (2, 4096)]),
        };
        let mut network = ObservedNetwork { rig, random, starts: 100, is_calm, time: 0, calls: Vec::new() };
        (1..=2).for_each(|switch| network.start(switch));
        network
    }

    fn start(&mut self, switch: u32) {
        self.starts += 1;
        self.rig.start(switch, self.starts);
    }

    fn take_outputs(&mut self) {
        for (_, _, frame) in std::mem::take(&mut self.rig.left) {
            self.time += 1;
            let call = &mut self.calls[number_of(&frame.data) as usize];
            assert!(call.returned.is_none(), "two outputs of {call:?}");
            call.returned = Some(((frame.port, frame.data), self.time));
        }
    }

    fn send(&mut self, switch: u32) {
        let mut frames = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            self.time += 1;
            let operation = self.random.pick(&[(2, READ), (1, 1), (2, 2)]);
            let (key, value) = (self.random.below(u64::from(KEYS)) as u16, 1 + self.random.below(1 << 30) as u32);
            let frame = request(operation, key, value, self.calls.len() as u32);
            self.calls.push(Invocation { input: frame.data.clone(), called: self.time, returned: None });
            frames.push(frame);
        }
        self.rig.send(switch, frames);
        self.take_outputs();
    }

    fn run(&mut self) {
        for _ in 0..150 {
            let pause_ns = 1 + self.random.below(100_000);
            self.rig.run_until(self.rig.now.after_ns(pause_ns));
            self.take_outputs();
            let switch = 1 + self.random.below(2) as u32;
            match self.random.below(100) {
                _ if self.is_calm => {}
                0 => self.rig.cut_off(switch),
                1..=4 => self.rig.open(),
                5 => self.start(switch),
                _ => {}
            }
            let switch = 1 + self.random.below(2) as u32;
            self.send(switch);
        }
        self.rig.open();
        self.rig.run_until(self.rig.now.after_ns(60_000_000));
        self.take_outputs();
    }

    fn of_key(&self, key: u16) -> KeyHistory {
        self.calls.iter().filter(|call| call.input[15..17] == key.to_be_bytes()).cloned().collect()
    }
}

fn observe(seed: u64, is_calm: bool) -> ObservedNetwork {
    let mut network = ObservedNetwork::draw(seed, is_calm);
    network.run();
    network
}

#[test]
fn the_interpreter_explains_the_outputs_of_random_networks() {
    let seeds = match testing::number("TRIPLANE_RESILIENT_HISTORY", u64::MAX) {
        u64::MAX => 0..testing::number("TRIPLANE_RESILIENT_HISTORIES", NETWORKS),
        seed => seed..seed + 1,
    };
    let (packets, outputs, undecided) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    testing::seed::for_each(seeds.clone(), |seed| {
        let network = observe(seed, false);
        for key in 0..KEYS {
            let history = network.of_key(key);
            packets.fetch_add(history.len(), Ordering::Relaxed);
            outputs.fetch_add(history.iter().filter(|call| call.returned.is_some()).count(), Ordering::Relaxed);
            match check(&InterpretedKey::new(key), &history, MAX_STATES) {
                Verdict::Linearizable => {}
                Verdict::Undecided => _ = undecided.fetch_add(1, Ordering::Relaxed),
                Verdict::Violation => {
                    panic!("TRIPLANE_RESILIENT_HISTORY={seed} cargo test -p resilient_switch interpreted: key {key}")
                }
            }
        }
        true
    });
    let (packets, outputs, undecided) = (packets.into_inner(), outputs.into_inner(), undecided.into_inner());
    println!("{outputs} outputs of {packets} packets, {undecided} histories undecided");
    assert!(outputs * 4 > packets, "{outputs} of {packets}");
    assert!(undecided as u64 * 20 <= (seeds.end - seeds.start) * u64::from(KEYS), "{undecided} undecided");
}

#[test]
fn the_interpreter_does_not_explain_outputs_that_were_changed() {
    let history = observe(1, true).of_key(1);
    let program = InterpretedKey::new(1);
    assert_eq!(check(&program, &history, MAX_STATES), Verdict::Linearizable);
    let answered: Vec<usize> = (0..history.len()).filter(|at| history[*at].returned.is_some()).collect();
    let (first, last) = (answered[answered.len() / 4], answered[3 * answered.len() / 4]);
    let change = |what: &dyn Fn(&mut KeyHistory)| {
        let mut changed = history.clone();
        what(&mut changed);
        check(&program, &changed, MAX_STATES)
    };
    let output = |history: &KeyHistory, at: usize| history[at].returned.clone().expect("it was answered").0;
    let set = |history: &mut KeyHistory, at: usize, output| {
        history[at].returned.as_mut().expect("it was answered").0 = output;
    };
    // A value that was never written, another port, and an old answer to a new packet.
    let wrong_value = change(&|changed| {
        let (port, mut data) = output(changed, last);
        data[17] ^= 0x80;
        set(changed, last, (port, data));
    });
    let wrong_port = change(&|changed| {
        let (_, data) = output(changed, last);
        set(changed, last, (PortId(2), data));
    });
    let old_answer = change(&|changed| {
        let (port, mut data) = output(changed, last);
        data[17..HEADERS].copy_from_slice(&output(changed, first).1[17..HEADERS]);
        set(changed, last, (port, data));
    });
    assert_eq!([wrong_value, wrong_port, old_answer], [Verdict::Violation; 3]);
}
