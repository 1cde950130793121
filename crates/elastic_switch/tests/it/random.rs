//! Random packets, changes, losses and restarts, against a model.

use std::collections::BTreeMap;

use rng::SplitMix64;
use switch::Time;
use v1model::Executor;

use crate::rig::{Rig, RigSettings};

/// The values that an entry had, with the times from which it had them. `0xffff` stands for none.
#[derive(Default)]
pub struct History(pub BTreeMap<u16, Vec<(Time, u16)>>);

impl History {
    pub fn set(&mut self, key: u16, at: Time, value: u16) {
        self.0.entry(key).or_default().push((at, value));
    }

    /// Whether the entry of a key had a value at some time of an interval.
    pub fn had(&self, key: u16, value: u16, (from, to): (Time, Time)) -> bool {
        let all = self.0.get(&key).map(Vec::as_slice).unwrap_or_default();
        let mut since = (Time::ZERO, 0xffff);
        for next in all {
            if since.1 == value && next.0 >= from && since.0 <= to {
                return true;
            }
            since = *next;
        }
        since.1 == value && since.0 <= to
    }
}

/// Draws the properties of a run.
pub fn draw(seed: u64, random: &mut SplitMix64) -> RigSettings {
    RigSettings {
        program: RigSettings::default().program,
        executor: if seed.is_multiple_of(2) { Executor::Interpreter } else { Executor::Jit },
        in_place: random.below(2) == 0,
        servers: 1 + random.below(3) as usize,
        spares: 0,
        entries: 512,
        cache: random.below(4) as u32,
        loss_per_mille: [0, 10, 50][random.below(3) as usize],
        is_reordered: random.below(2) == 0,
        max_parked: [8, 4096][random.below(2) as usize],
        seed,
        answers_on: None,
        // READs that meet no free link are drops that the test counts.
        read_rate: [None, None, Some(50_000_000)][random.below(3) as usize],
    }
}

/// Packets and writes of a run, and the entries that the tables had at each time.
pub struct Traffic {
    /// Keys are below this number.
    pub keys: u64,
    pub one: History,
    pub two: History,
    /// Times and keys of the packets, by their numbers.
    arrivals: Vec<(Time, u16)>,
}

impl Traffic {
    pub fn new(keys: u64) -> Traffic {
        Traffic { keys, one: History::default(), two: History::default(), arrivals: Vec::new() }
    }

    /// Sends a packet.
    pub fn send(&mut self, rig: &mut Rig, random: &mut SplitMix64) {
        let key = random.below(self.keys) as u16;
        self.arrivals.push((rig.now, key));
        rig.send(self.arrivals.len() as u16 - 1, key);
    }

    /// Writes or deletes an entry of a table.
    pub fn write(&mut self, rig: &mut Rig, random: &mut SplitMix64) {
        let (key, is_deleted) = (random.below(self.keys) as u16, random.below(4) == 0);
        let value = random.below(self.keys) as u16;
        let (name, history) = if random.below(2) == 0 { ("one", &mut self.one) } else { ("two", &mut self.two) };
        history.set(key, rig.now, if is_deleted { 0xffff } else { value });
        rig.write(name, key, if is_deleted { &[] } else { std::slice::from_ref(&value) });
    }

    /// Checks that each packet ended once, with values of a moment between its arrival and its departure.
    pub fn check(&self, seed: u64, rig: &Rig) {
        let reasons = ["no-server", "no-answer", "queue-full", "links-busy"];
        let dropped: u64 = reasons.iter().map(|reason| rig.dropped(&format!("table.{reason}"))).sum();
        assert_eq!(rig.left.len() as u64 + dropped, self.arrivals.len() as u64, "seed {seed}: each packet ends once");
        for (left, request) in &rig.left {
            let (arrived, key) = self.arrivals[usize::from(request.id)];
            let whole = (arrived, *left);
            assert!(self.one.had(key, request.first, whole), "seed {seed}: {request:?} of {whole:?}");
            assert!(self.two.had(request.first, request.second, whole), "seed {seed}: {request:?} of {whole:?}");
        }
    }
}

fn run(seed: u64) {
    let mut random = SplitMix64::new(seed);
    let settings = draw(seed, &mut random);
    let mut rig = Rig::new(settings);
    rig.run_ms(random.below(30));
    let mut traffic = Traffic::new(1 + random.below(12));
    for _ in 0..400 {
        match random.below(20) {
            0..=11 => traffic.send(&mut rig, &mut random),
            12..=16 => traffic.write(&mut rig, &mut random),
            17 => rig.run_until(rig.now.after_ns(random.below(100_000))),
            18 => {
                let server = random.below(settings.servers as u64) as usize;
                rig.set_port_up(server, random.below(3) > 0);
                rig.run_until(rig.now.after_ns(random.below(100_000)));
            }
            _ => {
                let server = random.below(settings.servers as u64) as usize;
                rig.set_running(server, random.below(3) > 0);
                rig.run_ms(random.below(20));
            }
        }
    }
    for server in 0..settings.servers {
        rig.set_running(server, true);
        rig.set_port_up(server, true);
    }
    // Longer than a server is held down after its port flapped.
    rig.run_ms(62_000);
    assert!(rig.switch.counts().iter().all(|counts| counts.is_settled), "seed {seed}: {:?}", rig.switch.counts());
    traffic.check(seed, &rig);
    let mut last: BTreeMap<u16, u16> = BTreeMap::new();
    let mut numbers: Vec<u32> = Vec::new();
    for (_, request) in &rig.left {
        let (_, key) = traffic.arrivals[usize::from(request.id)];
        if !traffic.one.0.contains_key(&key) {
            // Without changes nothing could make a packet wait for another key than the one before it.
            let before = last.insert(key, request.id);
            assert!(before.is_none_or(|before| before < request.id), "seed {seed}: {request:?} after {before:?}");
        }
        numbers.push(request.number);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..rig.left.len() as u32), "seed {seed}: each packet is numbered once");
}

#[test]
fn answers_are_those_of_a_moment_between_arrival_and_departure() {
    (0..150).for_each(run);
}
