//! Tests random networks of complete switches and stores: packets look up tables that the stores fill, over a network
//! that loses, repeats and delays datagrams, with switches that restart and are cut off. The answers must not
//! contradict each other. `TRIPLANE_RESILIENT_NETWORKS=2000` runs more networks, and `TRIPLANE_RESILIENT_NETWORK=17`
//! only that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::RowState;
use rng::SplitMix64;
use switch::{Frame, PortId, SwitchControl, Time};
use v1model::Executor;

use crate::rig::{Rig, RigFaults, TABLES};

const FORWARD: u8 = 0;
const REVERSE: u8 = 1;
const INSIDE: u8 = 2;
const OUTSIDE: u8 = 3;
const TWICE: u8 = 4;
const NONE: u16 = 0xffff;

/// Number of networks of a normal test.
const NETWORKS: u64 = 40;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Question {
    at: Time,
    operation: u8,
    key: u8,
    value: u16,
}

impl Question {
    fn frame(self, id: u32) -> Frame {
        let [high, low] = self.value.to_be_bytes();
        Frame::new(1, [&[self.operation, self.key, high, low][..], &id.to_be_bytes(), &[0; 8]].concat())
    }
}

/// A row that packets have seen.
#[derive(Clone, Copy, Debug)]
struct SeenRow {
    /// The start of the time for which it is known to exist, until `until`.
    since: Time,
    until: Time,
}

impl SeenRow {
    /// Whether it exists during all of an interval.
    fn spans(&self, from: Time, to: Time) -> bool {
        self.since < from && to < self.until
    }
}

/// The packets that were sent, and the rows that they have seen.
#[derive(Default)]
struct Judge {
    /// Idle time of rows, if they age.
    idle_ns: Option<u64>,
    questions: BTreeMap<u32, Question>,
    answered: BTreeSet<u32>,
    /// The number of each key.
    numbers: BTreeMap<u8, (u16, SeenRow)>,
    /// The keys that were seen inside.
    inside: BTreeMap<u8, SeenRow>,
    asked_inside: BTreeSet<u8>,
    asked_numbers: BTreeSet<u8>,
}

impl Judge {
    fn ask(&mut self, question: Question) -> Frame {
        let id = self.questions.len() as u32;
        match question.operation {
            INSIDE => _ = self.asked_inside.insert(question.key),
            FORWARD => _ = self.asked_numbers.insert(question.key),
            _ => {}
        }
        self.questions.insert(id, question);
        question.frame(id)
    }

    /// Judges the outputs that have left.
    fn judge(&mut self, rig: &mut Rig) {
        for (at, switch, frame) in std::mem::take(&mut rig.left) {
            let data = &frame.data;
            let id = u32::from_be_bytes([data[4], data[5], data[6], data[7]]);
            let value = u16::from_be_bytes([data[2], data[3]]);
            let question = self.questions[&id];
            let what = format!("{question:?} has {value} at switch {switch}, {at:?}");
            assert!(self.answered.insert(id), "answered twice: {what}");
            self.judge_answer(at, question, value, &what);
        }
    }

    /// Records that a packet, sent at one time and answered at another, has seen a row.
    fn seen(&self, known: Option<SeenRow>, asked_at: Time, at: Time) -> SeenRow {
        let until = self.idle_ns.map_or(Time::from_ns(u64::MAX), |idle_ns| asked_at.after_ns(idle_ns));
        match known.filter(|known| at < known.until) {
            Some(known) => SeenRow { since: known.since, until: known.until.max(until) },
            // It may be a new row.
            None => SeenRow { since: at, until },
        }
    }

    /// Records that a key was seen with a number. Neither may have been seen with another one recently.
    fn seen_number(&mut self, key: u8, number: u16, (asked_at, at): (Time, Time), what: &str) {
        let lives = |(_, row): &(u16, SeenRow)| at < row.until;
        let known = self.numbers.get(&key).copied();
        assert!(known.filter(lives).is_none_or(|known| known.0 == number), "the number has changed: {what}");
        let other = self.numbers.iter().find(|(other, (taken, _))| **other != key && *taken == number);
        let other = other.map(|(key, known)| (*key, *known));
        assert!(!other.is_some_and(|(_, known)| lives(&known)), "given twice: {what}");
        other.iter().for_each(|(other, _)| _ = self.numbers.remove(other));
        let row = self.seen(known.filter(|known| known.0 == number).map(|known| known.1), asked_at, at);
        self.numbers.insert(key, (number, row));
    }

    fn seen_inside(&mut self, key: u8, asked_at: Time, at: Time) {
        let row = self.seen(self.inside.get(&key).copied(), asked_at, at);
        self.inside.insert(key, row);
    }

    fn judge_answer(&mut self, at: Time, question: Question, value: u16, what: &str) {
        let Question { at: asked_at, operation, key, value: number } = question;
        let known_inside = |key: u8| self.inside.get(&key).is_some_and(|known| known.spans(asked_at, at));
        match operation {
            FORWARD => self.seen_number(key, value, (asked_at, at), what),
            REVERSE if value == NONE => {
                let owner = self.numbers.values().find(|(other, _)| *other == number);
                assert!(!owner.is_some_and(|(_, known)| known.spans(asked_at, at)), "a false miss: {what}");
            }
            REVERSE => {
                let [inverse, found] = value.to_be_bytes();
                assert!(inverse == !found && self.asked_numbers.contains(&found), "no such key: {what}");
                self.seen_number(found, number, (asked_at, at), what);
            }
            INSIDE => {
                assert_eq!(value, 1, "{what}");
                self.seen_inside(key, asked_at, at);
            }
            OUTSIDE if value == NONE => assert!(!known_inside(key), "a false miss: {what}"),
            OUTSIDE => {
                assert!(self.asked_inside.contains(&key), "nobody made the row: {what}");
                self.seen_inside(key, asked_at, at);
            }
            _ => {
                assert!(value == 2 || !(known_inside(key) && known_inside(key + 1)), "a false miss: {what}");
                assert!(value != NONE || !known_inside(key + 1), "a false miss of the second row: {what}");
            }
        }
    }
}

/// Returns the rows that a switch may own, by group and key.
fn rows(keys: u8) -> Vec<(u32, Vec<u8>)> {
    let of_key = |key: u8| [(0, vec![key, !key]), (2, vec![key])];
    let numbers = (100..164_u16).map(|number| (1, number.to_be_bytes().to_vec()));
    (0..=keys).flat_map(of_key).chain(numbers).collect()
}

fn state(rig: &Rig, switch: u32, (group, key): &(u32, Vec<u8>)) -> Option<RowState> {
    let objects = rig.switches[&switch].objects();
    objects.row_with_key(*group, key).map(|row| objects.row_state(row))
}

struct Network {
    rig: Rig,
    random: SplitMix64,
    judge: Judge,
    keys: u8,
    is_shaped: bool,
    starts: u64,
}

impl Network {
    fn draw(seed: u64) -> Network {
        let mut random = SplitMix64::new(seed);
        let mut rig = Rig::with_program(TABLES, 1 + random.below(3) as u32);
        rig.faults = RigFaults {
            random: SplitMix64::new(seed ^ 99),
            loss: random.below(20),
            duplication: random.below(20),
            jitter_ns: random.pick(&[(1, 0), (3, 60_000)]),
            executor: random.pick(&[(1, Executor::Interpreter), (2, Executor::Jit)]),
            in_place: random.percent(50),
            max_parked: random.pick(&[(1, 4), (1, 16), (2, 4096)]),
            ..RigFaults::default()
        };
        let (keys, is_shaped) = (3 + random.below(30) as u8, random.percent(33));
        let mut judge = Judge::default();
        let idle_ms = SplitMix64::new(seed ^ 7).pick(&[(1, 0), (1, 1), (2, 4)]);
        if idle_ms > 0 {
            let text = std::fs::read_to_string(TABLES).expect("the program can be read");
            let text = text.replace("pool = \"", &format!("idle = \"{idle_ms}ms\", pool = \""));
            rig.set_program(
                &text.replace("group = \"flows\", add", &format!("group = \"flows\", idle = \"{idle_ms}ms\", add")),
            );
            judge.idle_ns = Some(idle_ms * 1_000_000);
        }
        let mut network = Network { rig, random, judge, keys, is_shaped, starts: 100 };
        (1..=2).for_each(|switch| network.start(switch));
        network
    }

    fn start(&mut self, switch: u32) {
        self.starts += 1;
        self.rig.start(switch, self.starts);
        if self.is_shaped {
            let running = self.rig.switches.get_mut(&switch).expect("it has started");
            running.set_port_rate(PortId(3), Some(1000));
            running.set_port_rate(PortId(2), Some(1_000_000));
        }
    }

    fn run_for(&mut self, ns: u64) {
        self.rig.run_until(self.rig.now.after_ns(ns));
        self.judge.judge(&mut self.rig);
    }

    fn send(&mut self, switch: u32, packets: &[(u8, u8, u16)]) {
        let at = self.rig.now;
        let ask = |(operation, key, value): &(u8, u8, u16)| {
            self.judge.ask(Question { at, operation: *operation, key: *key, value: *value })
        };
        let frames = packets.iter().map(ask).collect();
        self.rig.send(switch, frames);
        self.judge.judge(&mut self.rig);
    }

    fn packet(&mut self) -> (u8, u8, u16) {
        let operation = self.random.below(5) as u8;
        let key = self.random.below(u64::from(self.keys)) as u8;
        let known: Vec<u16> = self.judge.numbers.values().map(|(number, _)| *number).collect();
        let number = match operation {
            REVERSE if self.random.percent(50) && !known.is_empty() => {
                known[self.random.below(known.len() as u64) as usize]
            }
            REVERSE => 100 + self.random.below(64) as u16,
            _ => 0,
        };
        (operation, key, number)
    }

    /// Sends packets while there are faults.
    fn run_faults(&mut self) {
        for _ in 0..400 {
            let pause_ns = 1 + self.random.below(60_000);
            self.run_for(pause_ns);
            let switch = 1 + self.random.below(2) as u32;
            match self.random.below(200) {
                0 => self.rig.cut_off(switch),
                1..=3 => self.rig.open(),
                4 => self.start(switch),
                _ => {}
            }
            let packets: Vec<_> = (0..1 + self.random.below(6)).map(|_| self.packet()).collect();
            let switch = 1 + self.random.below(2) as u32;
            self.send(switch, &packets);
            for row in rows(self.keys) {
                let owns = |switch| state(&self.rig, switch, &row) == Some(RowState::Owned);
                assert!(!owns(1) && !owns(2), "{row:?} is only read");
            }
        }
    }

    /// Ends all faults: every packet must be answered, and no state may be left.
    fn run_healed(&mut self) {
        self.rig.open();
        (self.rig.faults.loss, self.rig.faults.duplication) = (0, 0);
        self.run_for(60_000_000);
        for switch in [1, 2] {
            for key in 0..self.keys {
                let operation = [OUTSIDE, FORWARD, INSIDE, TWICE][usize::from(key) % 4];
                let id = self.judge.questions.len() as u32;
                self.send(switch, &[(operation, key, 0)]);
                self.run_for(60_000_000);
                assert!(self.judge.answered.contains(&id), "no answer: switch {switch}, {operation}, key {key}");
            }
        }
        self.run_for(200_000_000);
        for switch in [1, 2] {
            let absent =
                rows(self.keys).into_iter().find(|row| state(&self.rig, switch, row) == Some(RowState::Absent));
            assert_eq!(absent, None, "switch {switch} waits for a row without a packet");
        }
        if self.judge.idle_ns.is_some() {
            assert!(self.rig.rows().iter().all(|rows| *rows == 0), "rows are left: {:?}", self.rig.rows());
            let known: usize = (1..=2).map(|switch| self.known(switch)).sum();
            assert_eq!(known, 0, "switches know rows that are gone");
        }
    }

    /// Returns the number of rows that a switch has, asks for or gives back.
    fn known(&self, switch: u32) -> usize {
        rows(self.keys).iter().filter(|row| state(&self.rig, switch, row).is_some()).count()
    }
}

/// Runs a network. Returns the numbers of packets and of answers.
fn run(seed: u64) -> (usize, usize) {
    let result = std::panic::catch_unwind(|| {
        let mut network = Network::draw(seed);
        network.run_faults();
        network.run_healed();
        (network.judge.questions.len(), network.judge.answered.len())
    });
    result.unwrap_or_else(|failure| {
        eprintln!("TRIPLANE_RESILIENT_NETWORK={seed} cargo test -p resilient_switch random_networks");
        std::panic::resume_unwind(failure)
    })
}

#[test]
fn answers_of_random_networks_do_not_contradict_each_other() {
    let seed = testing::number("TRIPLANE_RESILIENT_NETWORK", u64::MAX);
    let seeds = match seed {
        u64::MAX => 0..testing::number("TRIPLANE_RESILIENT_NETWORKS", NETWORKS),
        seed => seed..seed + 1,
    };
    let (asked, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    testing::seed::for_each(seeds, |seed| {
        let (more_asked, more_answered) = run(seed);
        asked.fetch_add(more_asked, Ordering::Relaxed);
        answered.fetch_add(more_answered, Ordering::Relaxed);
        true
    });
    let (asked, answered) = (asked.into_inner(), answered.into_inner());
    println!("{answered} of {asked} packets were answered");
    assert!(answered * 5 > asked);
}
