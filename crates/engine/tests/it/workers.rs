//! Packets on several threads, with shared state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::world::World;
use bits::Bits;
use engine::{CounterValue, Ending, Interpreter, MeterConfig, Now, Objects, PacketState, TableEntry};
use ir::{KeyValue, Program};

const PROGRAM: &str = "
metadata addr: 32
metadata i: 32
metadata one: 32
metadata two: 32
metadata wide: 200
metadata word: 48
metadata colour: 8
argument first.v: 32
argument second.v: 32

register words: 48 size 1000
register wides: 200 size 1000
counter c: packets_and_bytes size 600
counter dc: packets_and_bytes direct
meter m: packets size 3
meter dm: packets direct

action first(v: first.v) body first
action second(v: second.v) body second

table one {
  key k: exact 32 = addr
  action first
  default first(0x0:32)
  size 4096
}
table two {
  key k: lpm 32 = addr
  action second
  default second(0x0:32)
  size 4096
}
table counted {
  key k: exact 32 = addr
  action first
  default first(0x0:32)
  counter dc
  idle_timeout
}
table metered {
  key k: exact 32 = addr
  action first
  default first(0x0:32)
  meter dm
}

control both {
  block b:
    apply one
    apply two
    return
}
control tally {
  block b:
    apply counted
    count c[i]
    return
}
control increment {
  block b:
    read words[i] -> word
    word = word + 0x1:48
    write words[i] = word
    return
}
control increment_alone {
  block b:
    begin_atomic
    begin_atomic
    read words[i] -> word
    end_atomic
    word = word + 0x1:48
    write words[i] = word
    branch word[0:0] == 0x1:1 -> odd else even
  block odd:
    end_atomic
    return
  block even:
    exit
}
control put {
  block b:
    write wides[i] = wide
    return
}
control get {
  block b:
    read wides[i] -> wide
    return
}
control police {
  block b:
    execute_meter m[i] -> colour
    return
}
control police_entry {
  block b:
    apply metered
    read_meter dm -> colour
    return
}
action_body first {
  block b:
    one = first.v
    return
}
action_body second {
  block b:
    two = second.v
    return
}
";

/// One worker, with a packet of ten bytes.
struct Worker<'a> {
    program: &'a Program,
    objects: Objects,
    state: PacketState,
    now_ns: u64,
}

impl<'a> Worker<'a> {
    fn new(program: &'a Program, objects: Objects) -> Worker<'a> {
        Worker { program, objects, state: PacketState::new(program, vec![0; 10]), now_ns: 0 }
    }

    fn set(&mut self, slot: &str, value: u64) {
        self.state.set_slot_to(self.program.slot_named(slot).expect("the slot is there"), value);
    }

    fn get(&self, slot: &str) -> Bits {
        self.state.slot(self.program.slot_named(slot).expect("the slot is there")).clone()
    }

    fn run(&mut self, body: &str) {
        let (body, _) = self.program.bodies.iter().find(|(_, it)| it.name == body).expect("the body is there");
        let now = Now { ns: self.now_ns };
        let ending = Interpreter::run(self.program, &mut self.objects, body, &mut self.state, now, &mut ());
        assert!(matches!(ending, Ending::Return | Ending::Exit), "{ending:?}");
    }
}

fn key(value: u64) -> Vec<KeyValue> {
    vec![KeyValue::Exact(Bits::new(value.into(), 32))]
}

fn entry(world: &World, key: Vec<KeyValue>, action: &str, value: u64) -> TableEntry {
    TableEntry::new(key, 0, world.action(action), vec![Bits::new(value.into(), 32)])
}

/// Addresses of tables are valid as long as the revision is the same.
#[test]
fn every_change_gives_another_revision() {
    let mut world = World::new(PROGRAM);
    let one = world.table("one");
    let mut seen = vec![0];
    let mut is_new = |objects: &Objects| {
        let revision = objects.revision();
        assert_eq!(revision, objects.revision(), "nothing has changed");
        assert!(!seen.contains(&revision), "{revision} is another's, or what is before all");
        seen.push(revision);
    };
    is_new(&world.objects);
    is_new(&World::new(PROGRAM).objects);
    world.objects.insert(one, entry(&world, key(1), "first", 1)).unwrap();
    is_new(&world.objects);
    let mut worker = world.objects.worker();
    for value in 2..5 {
        worker.pin();
        let before = worker.revision();
        world.objects.modify(one, entry(&world, key(1), "first", value)).unwrap();
        is_new(&world.objects);
        assert_eq!(worker.revision(), before, "a worker's version stays");
        world.objects.publish();
        worker.pin();
        assert_ne!(worker.revision(), before, "there is another version");
    }
    world.objects.delete(one, &key(1), 0).unwrap();
    is_new(&world.objects);
}

/// A control batch writes the same data to two tables and to the default actions. Packets see all of a batch or
/// nothing, and the same version within a batch of packets.
#[test]
fn no_packet_sees_half_of_a_control_batch() {
    const KEYS: u64 = 64;
    let mut world = World::new(PROGRAM);
    let program = world.program.clone();
    let (one, two) = (world.table("one"), world.table("two"));
    let workers: Vec<Objects> = (0..2).map(|_| world.objects.worker()).collect();
    let (done, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for objects in workers {
            let (program, done, seen) = (&program, &done, &seen);
            scope.spawn(move || {
                let mut worker = Worker::new(program, objects);
                let mut last = 0;
                while !done.load(Relaxed) {
                    seen.fetch_add(u64::from(worker.objects.pin()), Relaxed);
                    let mut versions = Vec::new();
                    for at in 0..32 {
                        worker.set("addr", (last + at * 7) % KEYS);
                        worker.run("both");
                        let (one, two) = (worker.get("one").low_u64(), worker.get("two").low_u64());
                        assert_eq!(one, two, "the two tables are of one version");
                        versions.push(one >> 1);
                    }
                    versions.dedup();
                    assert!(versions.len() == 1 && versions[0] >= last, "{versions:?} after {last}");
                    last = versions[0];
                    if last % 17 == 0 {
                        worker.objects.rest();
                    }
                }
            });
        }
        let write = |world: &mut World, version: u64| {
            for at in 0..KEYS {
                // Half of the keys exist in each version; hits are odd.
                let there = world.objects.get(one, &key(at), 0).is_ok();
                let wanted = !(at + version).is_multiple_of(3);
                for (table, action) in [(one, "first"), (two, "second")] {
                    let entry = entry(world, key(at), action, version << 1 | 1);
                    match (there, wanted) {
                        (false, true) => world.objects.insert(table, entry).unwrap(),
                        (true, true) => world.objects.modify(table, entry).unwrap(),
                        (true, false) => world.objects.delete(table, &key(at), 0).unwrap(),
                        (false, false) => {}
                    }
                }
            }
            for (table, action) in [(one, "first"), (two, "second")] {
                let entry = entry(world, Vec::new(), action, version << 1);
                let engine::ActionSpec::Direct(call) = entry.action else { unreachable!() };
                world.objects.set_default_action(table, call).unwrap();
            }
            world.objects.publish();
        };
        let mut version = 0;
        while version < 500 || (seen.load(Relaxed) < 200 && version < 100_000) {
            version += 1;
            write(&mut world, version);
        }
        done.store(true, Relaxed);
    });
    assert!(seen.load(Relaxed) >= 200, "the workers saw too few versions");
}

#[test]
fn counters_of_workers_are_summed_by_entry() {
    let mut world = World::new(PROGRAM);
    let program = world.program.clone();
    let table = world.table("counted");
    let (counter, _) = program.counters.iter().next().unwrap();
    world.objects.insert(table, entry(&world, key(1), "first", 1)).unwrap();
    let objects: Vec<Objects> = (0..2).map(|_| world.objects.worker()).collect();
    let mut workers: Vec<Worker> = objects.into_iter().map(|objects| Worker::new(&program, objects)).collect();
    let hit = |worker: &mut Worker<'_>, times: u64, now_ns: u64| {
        worker.set("addr", 1);
        worker.set("i", 599);
        worker.now_ns = now_ns;
        (0..times).for_each(|_| worker.run("tally"));
    };
    for worker in &mut workers {
        assert!(worker.objects.pin() && !worker.objects.pin());
    }
    hit(&mut workers[0], 3, 70);
    hit(&mut workers[1], 4, 50);
    let counted = |world: &World| {
        let found = world.objects.get(table, &key(1), 0).unwrap();
        (found.counter, found.last_hit_ns)
    };
    let value = |packets: u64| CounterValue { packets, bytes: 10 * packets };
    assert_eq!(counted(&world), (value(7), 70));
    assert_eq!(world.objects.counter(counter, 599), Ok(value(7)));
    world.objects.set_entry_counter(table, &key(1), 0, value(100)).unwrap();
    world.objects.set_counter(counter, 599, value(2)).unwrap();
    hit(&mut workers[1], 1, 80);
    assert_eq!(counted(&world), (value(101), 80));
    assert_eq!(world.objects.counter(counter, 599), Ok(value(3)));

    // The successor of an entry starts at 0, although workers continue with the version that has the predecessor.
    world.objects.delete(table, &key(1), 0).unwrap();
    world.objects.insert(table, entry(&world, key(1), "first", 2)).unwrap();
    assert_eq!(counted(&world).0, value(0));
    hit(&mut workers[0], 5, 90);
    world.objects.publish();
    hit(&mut workers[0], 5, 90);
    assert_eq!(counted(&world), (value(0), 0));
    assert!(workers[0].objects.pin());
    hit(&mut workers[0], 2, 95);
    hit(&mut workers[1], 5, 99);
    assert_eq!(counted(&world), (value(2), 95));
    assert_eq!(world.objects.counter(counter, 599), Ok(value(20)));

    // The counts of a dropped worker remain, and its successor continues them.
    drop(workers);
    let mut next = Worker::new(&program, world.objects.worker());
    assert!(next.objects.pin());
    hit(&mut next, 1, 100);
    assert_eq!((counted(&world), world.objects.counter(counter, 599)), ((value(3), 100), Ok(value(21))));
}

#[test]
fn registers_lose_no_update_of_a_flow_and_are_never_torn() {
    const WORKERS: u64 = 3;
    const TIMES: u64 = 20_000;
    let mut world = World::new(PROGRAM);
    let program = world.program.clone();
    let workers: Vec<Objects> = (0..WORKERS).map(|_| world.objects.worker()).collect();
    std::thread::scope(|scope| {
        for (number, objects) in workers.into_iter().enumerate() {
            let program = &program;
            scope.spawn(move || {
                let mut worker = Worker::new(program, objects);
                worker.objects.pin();
                let wide = program.slot_named("wide").unwrap();
                for at in 0..TIMES {
                    // Cells of this worker's flows alternate with those of the others.
                    worker.set("i", (at % 10) * WORKERS + number as u64);
                    worker.run("increment");
                    // All workers write one wide cell, each a distinct pattern, and read a complete pattern of one of
                    // them.
                    worker.set("i", 999);
                    worker.state.set_slot(wide, Bits::from_be_bytes(&[number as u8 + 1; 25], 200));
                    worker.run("put");
                    worker.run("get");
                    let bytes = worker.get("wide").to_be_bytes();
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{bytes:x?}");
                }
            });
        }
    });
    let (words, _) = program.registers.iter().next().unwrap();
    for cell in 0..10 * WORKERS {
        assert_eq!(world.objects.register(words, cell).unwrap().low_u64(), TIMES / 10, "cell {cell}");
    }
}

#[test]
fn an_atomic_block_is_one_step_for_all_workers_and_ends_with_its_body() {
    const WORKERS: u64 = 3;
    const TIMES: u64 = 200_000;
    let mut world = World::new(PROGRAM);
    let program = world.program.clone();
    let together = std::sync::Barrier::new(WORKERS as usize);
    let mut workers: Vec<Objects> = (0..WORKERS).map(|_| world.objects.worker()).collect();
    // A worker that is dropped within a block does not lock others out.
    let mut gone = world.objects.worker();
    gone.begin_atomic();
    drop(gone);
    std::thread::scope(|scope| {
        for objects in workers.drain(..) {
            let (program, together) = (&program, &together);
            scope.spawn(move || {
                let mut worker = Worker::new(program, objects);
                worker.objects.pin();
                worker.set("i", 5);
                together.wait();
                (0..TIMES).for_each(|_| worker.run("increment_alone"));
            });
        }
    });
    let (words, _) = program.registers.iter().next().unwrap();
    assert_eq!(world.objects.register(words, 5).unwrap().low_u64(), WORKERS * TIMES);
}

/// A block that has read an element does not overwrite what a controller sets meanwhile.
#[test]
fn a_write_of_a_controller_waits_for_atomic_blocks() {
    let mut world = World::new(PROGRAM);
    let (words, _) = world.program.registers.iter().next().unwrap();
    let mut worker = world.objects.worker();
    let controller = &mut world.objects;
    for (value, fills) in [(77, false), (78, true)] {
        let has_read = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                worker.begin_atomic();
                let read = worker.register(words, 5).unwrap();
                has_read.wait();
                // Long enough for the other thread to write, if it does not wait.
                std::thread::sleep(std::time::Duration::from_millis(20));
                worker.set_register(words, 5, Bits::new(u128::from(read.low_u64()) + 1, 48)).unwrap();
                worker.end_atomic();
            });
            has_read.wait();
            let value = Bits::new(value, 48);
            let written =
                if fills { controller.fill_register(words, value) } else { controller.set_register(words, 5, value) };
            written.unwrap();
        });
        assert_eq!(u128::from(controller.register(words, 5).unwrap().low_u64()), value);
    }
}

#[test]
fn a_meter_gives_all_workers_together_what_it_gives_one() {
    const WORKERS: u64 = 3;
    const TIMES: u64 = 4_000;
    let mut world = World::new(PROGRAM);
    let program = world.program.clone();
    let (meter, _) = program.meters.iter().next().unwrap();
    let config = Some(MeterConfig { cir: 1, cbs: 1000, pir: 2, pbs: 1500 });
    let table = world.table("metered");
    world.objects.insert(table, entry(&world, key(1), "first", 1)).unwrap();
    // Rates are set after a worker exists.
    let worker = world.objects.worker();
    world.objects.configure_meters(meter, config).unwrap();
    world.objects.configure_entry_meter(table, &key(1), 0, config).unwrap();
    for body in ["police", "police_entry"] {
        let colours = [(); 3].map(|()| AtomicU64::new(0));
        std::thread::scope(|scope| {
            for objects in (0..WORKERS).map(|_| world.objects.worker()) {
                let (program, colours) = (&program, &colours);
                scope.spawn(move || {
                    let mut worker = Worker::new(program, objects);
                    worker.objects.pin();
                    worker.set("addr", 1);
                    worker.set("i", 2);
                    for _ in 0..TIMES {
                        worker.run(body);
                        colours[worker.get("colour").low_u64() as usize].fetch_add(1, Relaxed);
                    }
                });
            }
        });
        let colours = colours.map(AtomicU64::into_inner);
        assert_eq!(colours, [1000, 500, WORKERS * TIMES - 1500], "{body}");
    }
    drop(worker);
}

#[test]
fn random_numbers_of_workers_repeat_and_differ() {
    let program = World::new(PROGRAM).program;
    let numbers = |objects: &mut Objects| -> Vec<u64> {
        (0..8).map(|_| objects.random_between(&Bits::zero(64), &Bits::ones(64)).low_u64()).collect()
    };
    let run = |seed: u64| {
        let mut objects = Objects::new(&program);
        objects.seed(seed);
        let mut all: Vec<Vec<u64>> = (0..3).map(|_| numbers(&mut objects.worker())).collect();
        all.push(numbers(&mut objects));
        all
    };
    let first = run(7);
    assert_eq!(first, run(7));
    let mut alone = Objects::new(&program);
    alone.seed(7);
    assert_eq!(first[3], numbers(&mut alone), "the owner's numbers are those it has alone");
    let mut all: Vec<u64> = first.into_iter().chain(run(8)).flatten().collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * 4 * 8);
}

#[test]
fn alone_nothing_is_copied_and_with_workers_once() {
    let mut world = World::new(PROGRAM);
    let one = world.table("one");
    let insert = |world: &mut World, at: u64| {
        let entry = entry(world, key(at), "first", at);
        world.objects.insert(one, entry).unwrap();
        world.objects.publish();
    };
    (0..100).for_each(|at| insert(&mut world, at));
    assert_eq!(world.objects.copies_made(), 0);
    let mut worker = world.objects.worker();
    worker.pin();
    for at in 100..200 {
        assert!(at < 102 || world.objects.is_clear());
        insert(&mut world, at);
        assert_eq!(worker.entry_count(one), at as usize, "what is published is seen from the next batch on");
        worker.pin();
        assert_eq!(worker.entry_count(one), at as usize + 1);
    }
    assert_eq!(world.objects.copies_made(), 1);
    worker.rest();
    (200..300).for_each(|at| insert(&mut world, at));
    assert_eq!(world.objects.copies_made(), 1);
}

/// A load is announced, made and ended while a worker looks entries up.
#[test]
fn a_load_is_seen_like_single_insertions() {
    const MANY: u64 = 20_000;
    let text = PROGRAM.replace("size 4096", "size 65536");
    let (mut loaded, mut single) = (World::new(&text), World::new(&text));
    let table = loaded.table("two");
    let mut workers = [loaded.objects.worker(), single.objects.worker()];
    let assert_same = |worlds: [&mut World; 2], workers: &mut [Objects; 2]| {
        let keys: Vec<u64> = (0..MANY + 100).map(|at| (at * 0x9e37) << 8 & 0xffff_ffff | at & 3).collect();
        let mut found = [vec![0; keys.len()], vec![0; keys.len()]];
        for ((world, worker), found) in worlds.into_iter().zip(workers).zip(&mut found) {
            world.objects.publish();
            worker.pin();
            assert!(worker.find_batch(table, &keys, found));
        }
        assert_eq!(found[0], found[1]);
    };
    let insert = |world: &mut World, at: u64| {
        let site = at * 0x9e37;
        let (value, length) = if at.is_multiple_of(10) { (site >> 4 << 12, 20) } else { (site << 8, 24) };
        let prefix = vec![KeyValue::Lpm(Bits::new(u128::from(value & 0xffff_ffff), 32), length)];
        let entry = entry(world, prefix, "second", at);
        world.objects.insert(table, entry).is_ok()
    };
    loaded.objects.begin_load(table, MANY as usize);
    for at in 0..MANY {
        assert_eq!(insert(&mut loaded, at), insert(&mut single, at));
        if at % 9_000 == 0 {
            assert_same([&mut loaded, &mut single], &mut workers);
        }
    }
    assert_same([&mut loaded, &mut single], &mut workers);
    loaded.objects.finish_load(table);
    assert_same([&mut loaded, &mut single], &mut workers);
    for world in [&mut loaded, &mut single] {
        for installed in world.objects.entries(table).step_by(2).collect::<Vec<_>>() {
            world.objects.delete(table, &installed.entry.keys, 0).unwrap();
        }
    }
    assert_same([&mut loaded, &mut single], &mut workers);
    assert_eq!(loaded.objects.entry_count(table), single.objects.entry_count(table));
}
