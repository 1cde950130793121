//! Packets through the switch: it never panics, and every packet is accounted for.
//!
//! An input is text, a step a line, so that a failing one shrinks well and can be read:
//!
//! ```text
//! program examples/router/router.p4      or: generated 17
//! seed 4
//! entries 99 12                          twelve random entries that fit, from the seed 99
//! packet 1 0200000002fe...
//! wait 2000000                           nanoseconds
//! port 2 down
//! rate 1 1000                            packets a second
//! ```

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use ::switch::{Device, DropReason, Frame, MirrorSession, MulticastGroup, PortId, Time};
use bits::Bits;
use engine::{ActionCall, EntryError, TableEntry};
use ir::{KeyValue, MatchKind, Program};
use v1model::{Config, Switch};

use super::{FuzzTarget, Reached, frontend};
use crate::random::Random;
use crate::round_clock::compiling;
use crate::{corpus, program};

/// Number of ports of the switch; packets arrive at one more.
const PORTS: u32 = 4;
/// Copies of each multicast group. Groups have one size, so that the number of replicated packets follows from the
/// number of copies.
const REPLICAS: u32 = 3;

/// A switch that is run, with everything needed to account for its packets.
pub struct Run {
    switch: Switch,
    program: Arc<Program>,
    now: Time,
    received: u64,
    sent: u64,
}

impl Run {
    /// A switch with groups 1 and 2, mirror sessions 1 and 2 and no entries. `None` if the program is not for it.
    pub fn new(program: Arc<Program>, seed: u64) -> Option<Run> {
        let config = Config { seed, ..Config::with_ports(PORTS) };
        let mut switch = compiling(|| Switch::new(program.clone(), config)).ok()?;
        for id in 1..=2 {
            let ports = MulticastGroup::of_ports((0..REPLICAS).map(|port| port + id));
            assert!(switch.set_multicast_group(id, Some(ports)), "group {id} is fine");
            let session = MirrorSession::to_port(id);
            let session = if id == 1 { session } else { session.truncated(20) };
            assert!(switch.set_mirror_session(id, Some(session)), "session {id} is fine");
        }
        Some(Run { switch, program, now: Time::ZERO, received: 0, sent: 0 })
    }

    /// Writes random entries, default actions and register values, each of the right form.
    pub fn entries(&mut self, random: &mut Random, count: usize) {
        let tables: Vec<_> = self.program.tables.keys().collect();
        if tables.is_empty() {
            return;
        }
        for _ in 0..count {
            let id = *random.pick(&tables);
            let table = &self.program.tables[id];
            if table.actions.is_empty() || table.profile.is_some() {
                continue;
            }
            let chosen = random.pick(&table.actions);
            let params = &self.program.actions[chosen.action].params;
            let args: Vec<Bits> =
                params.iter().map(|param| value(self.program.slots[param.slot].width, random)).collect();
            if random.one_in(8) {
                let call = ActionCall { action: chosen.action, args };
                let result = self.switch.objects_mut().set_default_action(id, call);
                let allowed = !table.const_default && !chosen.table_only;
                assert!(result.is_ok() || !allowed, "a default action is refused: {result:?}");
                continue;
            }
            let kinds = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
            let needs_priority = |kind| matches!(kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
            let prioritised = table.keys.iter().any(|key| needs_priority(key.kind));
            let keys = kinds.map(|key| key_value(key.kind, key.width, key.signed, random)).collect();
            let priority = if prioritised { random.between(1, 1000) as i32 } else { 0 };
            let entry = TableEntry::new(keys, priority, chosen.action, args);
            match self.switch.objects_mut().insert(id, entry) {
                Ok(()) => {}
                Err(
                    EntryError::Full(_) | EntryError::Duplicate | EntryError::Keyless(_) | EntryError::ConstEntries(_),
                ) => {}
                Err(EntryError::RowEntries(_)) => assert!(table.is_resilient()),
                Err(EntryError::DefaultOnly(_)) => assert!(chosen.default_only),
                Err(error) => panic!("an entry of the right form is refused: {error}"),
            }
        }
    }

    /// Hands a packet in and lets the switch do all work that is due.
    pub fn packet(&mut self, port: u32, data: Vec<u8>) {
        self.received += 1;
        let mut output = Vec::new();
        self.switch.step(self.now, &mut vec![Frame::new(port, data)], &mut output);
        self.took(output);
    }

    /// Lets time pass.
    fn wait(&mut self, ns: u64) {
        self.now = self.now.after_ns(ns);
        let mut output = Vec::new();
        self.switch.step(self.now, &mut Vec::new(), &mut output);
        self.took(output);
        if let Some(next) = self.switch.next_event() {
            assert!(next > self.now, "the switch has something to do at {next} and did not do it at {}", self.now);
        }
    }

    fn took(&mut self, output: Vec<Frame>) {
        for frame in &output {
            assert!(frame.port.0 < PORTS, "a frame leaves by port {}, which does not exist", frame.port);
        }
        self.sent += output.len() as u64;
        self.account();
    }

    /// Asserts that every packet that came in or was made is sent, waiting, or counted as dropped.
    fn account(&self) {
        let registry = self.switch.registry();
        let count = |name: &str| registry.get(name).unwrap_or_else(|| panic!("there is no number `{name}`"));
        let dropped = |reason: &DropReason| count(&format!("drop.{}", reason.name()));
        let queued = registry.iter().filter(|(name, _)| name.starts_with("queue.") && name.ends_with(".depth"));
        let queued: u64 = queued.map(|(_, depth)| depth).sum();
        let all_drops: u64 = DropReason::ALL.iter().map(dropped).sum();

        // Clones and copies are counted when they are asked for; those that cannot be made are counted as dropped too.
        let clones = count("clone.ingress.packets") + count("clone.egress.packets");
        let replicas = count("multicast.replicas");
        let made = self.received + clones + replicas - count("multicast.packets");
        let gone = self.sent + count("notification.packets-in") + all_drops + queued;
        assert!(
            made == gone,
            "{made} packets came or were made, {gone} left, wait or were dropped:\n{}",
            registry.render()
        );
    }

    fn registry(&self) -> &::switch::Registry {
        self.switch.registry()
    }
}

/// A value, at an edge more often than not.
fn value(width: u32, random: &mut Random) -> Bits {
    match random.below(4) {
        0 => Bits::from_be_bytes(&random.bytes(width.div_ceil(8) as usize), width),
        1 => Bits::new(random.interesting().into(), width),
        _ => Bits::new(random.below(8) as u128, width),
    }
}

/// A key value that is valid for the kind: no bits outside a mask, ranges that begin before they end.
fn key_value(kind: MatchKind, width: u32, signed: bool, random: &mut Random) -> KeyValue {
    let bits = value(width, random);
    let masked = |value: &Bits, mask: &Bits| Bits::from_big(&(value.to_big() & mask.to_big()), width);
    match kind {
        MatchKind::Lpm => {
            let length = random.between(0, width);
            let mask = Bits::from_big(&(Bits::ones(width).to_big() >> (width - length) << (width - length)), width);
            KeyValue::Lpm(masked(&bits, &mask), length)
        }
        MatchKind::Ternary => {
            let mask = value(width, random);
            KeyValue::Ternary(masked(&bits, &mask), mask)
        }
        MatchKind::Range => {
            let other = value(width, random);
            // Signed numbers of one sign are ordered as unsigned ones are; of two, the negative comes first.
            let swap = if signed && bits.sign_bit() != other.sign_bit() {
                other.sign_bit()
            } else {
                other.to_big() < bits.to_big()
            };
            let (low, high) = if swap { (other, bits) } else { (bits, other) };
            KeyValue::Range(low, high)
        }
        MatchKind::Optional if random.one_in(3) => KeyValue::Any,
        _ => KeyValue::Exact(bits),
    }
}

/// Scripts of packets.
pub struct Packets {
    /// Programs of the repository that compile, by path.
    names: Vec<String>,
    /// Those and generated ones, compiled; `None` for those that do not.
    compiled: HashMap<String, Option<Arc<Program>>>,
    /// Packets that reached something.
    seeds: Vec<Vec<u8>>,
}

impl Packets {
    pub fn new() -> Packets {
        let mut this = Packets { names: Vec::new(), compiled: HashMap::new(), seeds: ordinary() };
        for path in corpus::files(".p4") {
            let name = path.strip_prefix(corpus::root()).unwrap_or(&path).display().to_string();
            if this.program(&format!("program {name}")).is_some() {
                this.names.push(name);
            }
        }
        assert!(!this.names.is_empty(), "no program of the repository compiles");
        this
    }

    /// The program that a line names.
    fn program(&mut self, line: &str) -> Option<Arc<Program>> {
        if let Some(known) = self.compiled.get(line) {
            return known.clone();
        }
        let text = match line.split_once(' ')? {
            ("program", path) if !path.contains("..") => std::fs::read(corpus::root().join(path)).ok()?,
            ("generated", seed) => program::generate(seed.parse().ok()?).into_bytes(),
            _ => return None,
        };
        let compiled = frontend::program(&String::from_utf8_lossy(&text)).map(Arc::new);
        if self.compiled.len() > 500 {
            self.compiled.clear();
        }
        self.compiled.insert(line.to_owned(), compiled.clone());
        compiled
    }

    fn packet(&self, random: &mut Random) -> Vec<u8> {
        let mut data = random.pick(&self.seeds).clone();
        match random.below(6) {
            0 => {
                let size = random.below(1600);
                return random.bytes(size);
            }
            1 => data.truncate(random.below(data.len() + 1)),
            2 => {
                for _ in 0..=random.below(8) {
                    crate::mutate::bytes(&mut data, random);
                }
            }
            3 => {
                let at = random.below(data.len().max(1));
                if let Some(byte) = data.get_mut(at) {
                    *byte = random.interesting() as u8;
                }
            }
            _ => {}
        }
        data.truncate(12_000);
        data
    }
}

/// Frames that hosts send: ARP, IPv4 with TCP and UDP and options, IPv6, VLAN tags.
fn ordinary() -> Vec<Vec<u8>> {
    let ethernet = |kind: &str| format!("0200000001fe020000000101{kind}");
    let ipv4 = "4500002e00010000401163bc0a0001010a000202";
    let texts = [
        ethernet("0806") + "00010800060400010200000001010a0001010000000000000a0001fe",
        ethernet("0800") + ipv4 + "04d2162e001a0000000102030405060708090a0b0c0d0e0f1011",
        ethernet("0800") + "46000030000100000006aabb0a0001010a000202010101000050c001000000010000000250020400beef0000",
        ethernet("8100") + "00640800" + ipv4 + "04d2162e001a0000",
        ethernet("86dd")
            + "6000000000081140fe800000000000000000000000000001fe80000000000000000000000000000204d2162e00080000",
        "00".repeat(64),
        "ff".repeat(64),
    ];
    let bytes = |text: &String| hex(text).expect("hexadecimal digits");
    texts.iter().map(bytes).collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    if text.len().is_multiple_of(2) { (0..text.len()).step_by(2).map(pair).collect() } else { None }
}

impl FuzzTarget for Packets {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let mut script = String::new();
        let _ = match random.below(2) {
            0 => writeln!(script, "program {}", random.pick(&self.names)),
            // Few different ones, so that most rounds need not compile.
            _ => {
                let block = random.below(16);
                writeln!(script, "generated {}", block * 4096 + random.below(64))
            }
        };
        let _ = writeln!(script, "seed {}", random.below(4));
        let _ = writeln!(script, "entries {} {}", random.next() % 1_000_000, random.below(30));
        for _ in 0..1 + random.below(24) {
            let _ = match random.below(16) {
                // A frame may cause thousands of passes each time a slow queue lets one of its copies go, so that long
                // waits are for switches without slow queues.
                0 if script.contains("rate") => writeln!(script, "wait {}", random.next() % 10_000_000),
                0 => writeln!(script, "wait {}", random.next() % 10_000_000_000),
                1 => {
                    let state = if random.one_in(2) { "down" } else { "up" };
                    writeln!(script, "port {} {state}", random.below(5))
                }
                2 => writeln!(script, "rate {} {}", random.below(5), random.below(2000)),
                _ => {
                    let digits: String = self.packet(random).iter().map(|byte| format!("{byte:02x}")).collect();
                    writeln!(script, "packet {} {digits}", random.below(PORTS as usize + 1))
                }
            };
        }
        script.into_bytes()
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let script = String::from_utf8_lossy(input).into_owned();
        let mut lines = script.lines();
        let first = lines.next().unwrap_or_default();
        let Some(program) = self.program(first) else { return reached.list() };
        let mut seed = 1;
        let mut run: Option<Run> = None;
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            if words[0] == "seed" {
                seed = number(1);
                continue;
            }
            let run = match &mut run {
                Some(run) => run,
                None => match Run::new(program.clone(), seed) {
                    Some(new) => run.insert(new),
                    None => return reached.list(),
                },
            };
            match words[0] {
                "entries" => run.entries(&mut Random::new(number(1)), number(2).min(1000) as usize),
                "packet" => {
                    if let Some(data) = words.get(2).and_then(|digits| hex(digits)) {
                        run.packet(number(1) as u32, data);
                    }
                }
                "wait" => run.wait(number(1)),
                "port" => {
                    run.switch.set_port_up(PortId(number(1) as u32), words.get(2) == Some(&"up"));
                }
                "rate" => run.switch.set_port_rate(PortId(number(1) as u32), Some(number(2)).filter(|rate| *rate > 0)),
                _ => {}
            }
        }
        if let Some(run) = run {
            for (name, value) in run.registry().iter().filter(|(_, value)| *value > 0) {
                reached.add((first, name, value.ilog2().min(4)));
            }
        }
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        let script = String::from_utf8_lossy(&input);
        let packets = script.lines().filter_map(|line| line.strip_prefix("packet ")?.split_once(' '));
        for data in packets.filter_map(|(_, digits)| hex(digits)).take(2) {
            crate::worker::remember(&mut self.seeds, data);
        }
    }
}
