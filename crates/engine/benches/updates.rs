//! Cost of table updates for concurrent lookups: workers read a table of a million exact entries while the control
//! plane changes it.
//!
//! Run `cargo bench -p engine --bench updates`. It prints memory per entry with one copy and with two, lookups per
//! second during 0, 10 K and 100 K changes per second, and lookups per second of one worker and of two.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bits::Bits;
use diagnostics::{Diagnostics, SourceMap};
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program, TableId};

const ENTRIES: u64 = 1_000_000;
/// Number of lookups per batch, after which a worker pins the newest version.
const BATCH: u64 = 32;
/// Minimum number of changes that are published together; a late writer publishes all that are due.
const TOGETHER: u64 = 100;
const MAX_TOGETHER: u64 = 5_000;
const ROUND: Duration = Duration::from_millis(700);
const ROUNDS: usize = 7;

const PROGRAM: &str = "program v1model
errors { NoError PacketTooShort NoMatch StackOutOfBounds HeaderTooShort ParserTimeout ParserInvalidArgument }
metadata a: 64
metadata b: 40
argument set.v: 32
action set(v: set.v) body set
table flows {
  key a: exact 64 = a
  key b: exact 40 = b
  action set
  default set(0x0:32)
  size 2000000
}
action_body set {
  block x:
    return
}
";

fn program() -> Program {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("updates.ir", PROGRAM);
    ir::parse(&map, file, &mut diagnostics).unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)))
}

/// Returns the key of a flow: as random as a hash, as wide as a 5-tuple.
fn words(flow: u64) -> [u64; 2] {
    [rng::SplitMix64::new(flow).next_u64(), flow & 0xff_ffff_ffff]
}

fn entry(program: &Program, flow: u64, value: u64) -> TableEntry {
    let [a, b] = words(flow);
    let keys = vec![KeyValue::Exact(Bits::new(a.into(), 64)), KeyValue::Exact(Bits::new(b.into(), 40))];
    let action = program.actions.keys().next().expect("the program has an action");
    TableEntry::new(keys, 0, action, vec![Bits::new(value.into(), 32)])
}

/// Returns the resident set size of this process in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("statm has numbers");
    pages * 4096
}

/// Looks up flows until `stop` is set. Returns the number of lookups.
fn read(objects: &mut Objects, program: &Program, table: TableId, seed: u64, stop: &AtomicBool) -> u64 {
    let (mut count, mut random) = (0, seed);
    while !stop.load(Relaxed) {
        objects.pin();
        for _ in 0..BATCH {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = words((random >> 33) % ENTRIES);
            let found = objects.apply_words(table, &program.tables[table], &key, 64, 0);
            black_box(found.map(|(record, _)| record[0]));
        }
        count += BATCH;
    }
    count
}

/// Statistics of a writer.
#[derive(Default)]
struct UpdateStats {
    changes: u64,
    waited: u64,
}

/// Changes entries at a rate, many at once: one is deleted and inserted again, the others are modified.
fn write(owner: &mut Objects, program: &Program, table: TableId, rate: u64, stop: &AtomicBool) -> UpdateStats {
    let mut written = UpdateStats::default();
    let begin = Instant::now();
    let mut flow = 0;
    while !stop.load(Relaxed) {
        let due = Duration::from_nanos(written.changes * 1_000_000_000 / rate);
        if let Some(early) = due.checked_sub(begin.elapsed()) {
            std::thread::sleep(early.min(Duration::from_millis(5)));
            continue;
        }
        if !owner.is_clear() {
            written.waited += 1;
            std::thread::yield_now();
            continue;
        }
        let owed = begin.elapsed().as_nanos() as u64 * rate / 1_000_000_000 - written.changes;
        let count = owed.clamp(TOGETHER, MAX_TOGETHER);
        for at in 0..count {
            flow = (flow + 7919) % ENTRIES;
            let new = entry(program, flow, written.changes & 0xffff_ffff);
            if at == 0 {
                owner.delete(table, &new.keys, 0).expect("the flow is there");
                owner.insert(table, new).expect("the flow is not there");
            } else {
                owner.modify(table, new).expect("the flow is there");
            }
        }
        owner.publish();
        written.changes += count;
    }
    written
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let program = program();
    let table = program.table_named("flows").expect("the program has its table");
    let before = resident();
    let mut owner = Objects::new(&program);
    let begin = Instant::now();
    for flow in 0..ENTRIES {
        owner.insert(table, entry(&program, flow, flow)).expect("there is room");
    }
    let filled = begin.elapsed();
    let one = resident() - before;
    let mut workers: Vec<Objects> = (0..2).map(|_| owner.worker()).collect();
    workers.iter_mut().for_each(|worker| _ = worker.pin());
    let begin = Instant::now();
    owner.modify(table, entry(&program, 0, 1)).expect("the flow is there");
    let copied = begin.elapsed();
    owner.publish();
    workers.iter_mut().for_each(Objects::rest);
    let two = resident() - before;
    let each = |bytes: u64| bytes as f64 / ENTRIES as f64;
    println!("{ENTRIES} exact entries, keys of 104 bits, one argument of 32 bits");
    println!("  inserted alone              {:>8.0} ns an entry", filled.as_nanos() as f64 / ENTRIES as f64);
    println!("  memory alone                {:>8.0} bytes an entry", each(one));
    println!("  memory with workers         {:>8.0} bytes an entry (two copies)", each(two));
    println!("  the copy, once              {:>8.0} ms", copied.as_secs_f64() * 1e3);

    let rates = [0, 10_000, 100_000];
    let mut lookups = rates.map(|_| Vec::new());
    let mut changes = rates.map(|_| Vec::new());
    let copies = owner.copies_made();
    let (mut waited, mut single, mut double) = (0, Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        for (at, rate) in rates.into_iter().enumerate() {
            let stop = AtomicBool::new(false);
            let (reader, _) = workers.split_first_mut().expect("there are two");
            std::thread::scope(|scope| {
                let begin = Instant::now();
                let reading = scope.spawn(|| read(reader, &program, table, round, &stop));
                let writing = (rate > 0).then(|| scope.spawn(|| write(&mut owner, &program, table, rate, &stop)));
                std::thread::sleep(ROUND);
                stop.store(true, Relaxed);
                let seconds = begin.elapsed().as_secs_f64();
                lookups[at].push(reading.join().expect("the reader ends") as f64 / seconds / 1e6);
                let written = writing.map(|writing| writing.join().expect("the writer ends")).unwrap_or_default();
                changes[at].push(written.changes as f64 / seconds);
                waited += written.waited;
            });
            workers[0].rest();
        }
        for (count, into) in [(1, &mut single), (2, &mut double)] {
            let stop = AtomicBool::new(false);
            let done: u64 = std::thread::scope(|scope| {
                let threads: Vec<_> = workers[..count]
                    .iter_mut()
                    .zip(1..)
                    .map(|(worker, seed)| {
                        let (program, stop) = (&program, &stop);
                        scope.spawn(move || read(worker, program, table, seed * 77 + round, stop))
                    })
                    .collect();
                std::thread::sleep(ROUND);
                stop.store(true, Relaxed);
                threads.into_iter().map(|thread| thread.join().expect("the reader ends")).sum()
            });
            into.push(done as f64 / ROUND.as_secs_f64() / 1e6);
            workers.iter_mut().for_each(Objects::rest);
        }
    }
    let quiet = median(&mut lookups[0]);
    for (at, rate) in rates.into_iter().enumerate() {
        let (lookups, changes) = (median(&mut lookups[at]), median(&mut changes[at]));
        println!(
            "  one reader, {rate:>6} changes/s  {lookups:>8.2} M lookups/s ({:.2} of quiet), {changes:.0} made",
            lookups / quiet
        );
    }
    println!("  the writer found a version in use {waited} times; copies made: {}", owner.copies_made() - copies);
    let (single, double) = (median(&mut single), median(&mut double));
    println!("  one worker {single:.2}, two workers {double:.2} M lookups/s ({:.2} times)", double / single);
}
