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
    }
}

fn run(seed: u64) {
    let mut random = SplitMix64::new(seed);
    let settings = draw(seed, &mut random);
    let mut rig = Rig::new(settings);
    let (mut one, mut two) = (History::default(), History::default());
    let mut arrivals: Vec<(Time, u16)> = Vec::new();
    rig.run_ms(random.below(30));
    let keys = 1 + random.below(12);
    for _ in 0..400 {
        match random.below(20) {
            0..=11 => {
                let key = random.below(keys) as u16;
                arrivals.push((rig.now, key));
                rig.send(arrivals.len() as u16 - 1, key);
            }
            12..=16 => {
                let (key, is_deleted) = (random.below(keys) as u16, random.below(4) == 0);
                let value = random.below(keys) as u16;
                let is_first = random.below(2) == 0;
                let history = if is_first { &mut one } else { &mut two };
                history.set(key, rig.now, if is_deleted { 0xffff } else { value });
                rig.write(
                    if is_first { "one" } else { "two" },
                    key,
                    if is_deleted { &[] } else { std::slice::from_ref(&value) },
                );
            }
            17..=18 => rig.run_until(rig.now.after_ns(random.below(100_000))),
            _ => {
                let server = random.below(settings.servers as u64) as usize;
                rig.set_running(server, random.below(3) > 0);
                rig.run_ms(random.below(20));
            }
        }
    }
    (0..settings.servers).for_each(|server| rig.set_running(server, true));
    rig.run_ms(2_000);
    let dropped: u64 =
        ["no-server", "no-answer", "queue-full"].iter().map(|reason| rig.dropped(&format!("table.{reason}"))).sum();
    assert_eq!(rig.left.len() as u64 + dropped, arrivals.len() as u64, "seed {seed}: each packet ends once");
    let mut last: BTreeMap<u16, u16> = BTreeMap::new();
    let mut numbers: Vec<u32> = Vec::new();
    for (left, request) in &rig.left {
        let (arrived, key) = arrivals[usize::from(request.id)];
        let whole = (arrived, *left);
        assert!(one.had(key, request.first, whole), "seed {seed}: {request:?} of {whole:?}");
        assert!(two.had(request.first, request.second, whole), "seed {seed}: {request:?} of {whole:?}");
        if !one.0.contains_key(&key) {
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
