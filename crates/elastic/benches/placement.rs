//! Measures insertions per second into a table of ten million entries, the switch memory that they need, and the cost
//! of a lookup.
//!
//! ```text
//! cargo bench -p elastic --bench placement [ENTRIES]
//! ```
//!
//! *overflow* computes the smallest stash, as a share of the entries. *place* is only the search for cells. *write* is
//! an accepted write through the complete state machine: ledger, overlay, placement, a WRITE with its check, its
//! acknowledgement. *lookup* is a lookup without a cached entry: a READ, and the check of its answer. The feature
//! `mutants` is on in benchmarks.

use std::hint::black_box;
use std::time::{Duration, Instant};

use elastic::ElasticMutation;
use elastic::admission::{CacheConfig, SketchConfig};
use elastic::cell::{CellForm, CellSecret};
use elastic::keys::KeyForm;
use elastic::layout::{LayoutKind, TableLayout};
use elastic::placement::{EntryId, PlacementMap, PlacementRule, expected_overflow, least_stash};
use elastic::record::{ActionForm, RecordForm};
use elastic::routes::{MemoryServer, ServerId, UnmeteredLinks};
use elastic::table::{ElasticTable, EntryKey, LookupOutcome, TableConfig, TableEffect, TableLimits};
use rng::SplitMix64;

/// Measures the processor time of this thread, or the elapsed time where Linux does not count it. Other load on the
/// machine changes it less.
struct Stopwatch {
    start: Instant,
    cpu: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch { start: Instant::now(), cpu: Stopwatch::cpu() }
    }

    fn cpu() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    fn seconds(&self) -> f64 {
        let cpu = self.cpu.and_then(|start| Some(Stopwatch::cpu()? - start));
        cpu.unwrap_or_else(|| self.start.elapsed()).as_secs_f64()
    }
}

const SECRET: CellSecret = CellSecret { k0: 1, k1: 2 };

fn main() {
    let entries = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(10_000_000);
    overflow();
    for (window, load) in [(8, 675), (16, 850)] {
        place(entries, window, load);
        state_machine(entries, window, load);
    }
}

/// Prints the load at which one entry in a thousand finds no cell, and the share at load 0.5.
fn overflow() {
    for window in [4, 8, 16, 32] {
        let row = |distance| {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..20 {
                let middle = (low + high) / 2.0;
                if expected_overflow(middle, window, distance) < 0.001 { low = middle } else { high = middle }
            }
            (low, expected_overflow(0.5, window, distance) * 100.0)
        };
        let ((load, half), (buckets, buckets_half)) = (row(1), row(window / 2));
        println!(
            "overflow w={window:2}: 0.1 % at {load:.3} and {buckets:.3}; at 0.5 {half:.4} and {buckets_half:.4} %"
        );
    }
}

fn place(entries: u32, window: u32, load: u32) {
    let kind = LayoutKind::Windows { cells: window };
    let layout = TableLayout::new(kind, CellForm::new(13, 7), 1, TableLayout::cells_for(entries, load));
    let mut map = PlacementMap::new(layout.clone(), PlacementRule::default(), 1);
    let mut random = SplitMix64::new(1);
    let homes: Vec<u32> = (0..entries).map(|_| layout.home(random.next_u64())).collect();
    let start = Stopwatch::start();
    for (id, home) in homes.iter().enumerate() {
        black_box(map.insert(EntryId(id as u32), *home));
    }
    let seconds = start.seconds();
    let least = least_stash(&homes, layout.cells(), window).expect("the load is below 1");
    let (counts, stashed) = (map.counts(), map.stashed());
    println!(
        "place   w={window:2} load .{load}: {:9.0} inserts/s, {:.2} moves and {:.1} visited cells an insert",
        f64::from(entries) / seconds,
        counts.moves as f64 / f64::from(entries),
        counts.visited as f64 / f64::from(entries)
    );
    println!(
        "        stash {stashed} (least {least}, expected {:.0}), cut off {}, {:.2} B an entry",
        expected_overflow(f64::from(load) / 1000.0, window, 1) * f64::from(entries),
        counts.cut_off,
        map.memory_bytes() as f64 / f64::from(entries)
    );
    // The last percent is inserted into a nearly full table, and costs most.
    let last = entries / 100;
    let mut map = PlacementMap::new(layout.clone(), PlacementRule::default(), 1);
    for (id, home) in homes.iter().enumerate().take((entries - last) as usize) {
        map.insert(EntryId(id as u32), *home);
    }
    let start = Stopwatch::start();
    for (id, home) in homes.iter().enumerate().skip((entries - last) as usize) {
        black_box(map.insert(EntryId(id as u32), *home));
    }
    println!("        last percent: {:9.0} inserts/s", f64::from(last) / start.seconds());
}

/// A table whose server executes everything at once.
struct Served {
    table: ElasticTable<u32>,
    memory: Vec<u8>,
    hits: u64,
}

impl Served {
    fn serve(&mut self) {
        while let Some(effect) = self.table.next_event() {
            match effect {
                TableEffect::Read { address, bytes, token, .. } => {
                    let start = address as usize;
                    let bytes = &self.memory[start..start + bytes as usize];
                    self.table.completed(token, bytes, &mut UnmeteredLinks);
                }
                TableEffect::Write { address, data, token, .. } => {
                    let start = address as usize;
                    self.memory[start..start + data.len()].copy_from_slice(&data);
                    self.table.completed(token, &[], &mut UnmeteredLinks);
                }
                TableEffect::Distrust { .. } => unreachable!("its memory keeps what was written"),
                TableEffect::Answer { outcome, .. } => self.hits += u64::from(outcome != LookupOutcome::Miss),
            }
        }
    }
}

fn key(number: u32) -> [u8; 13] {
    let mut key = [0; 13];
    key[..4].copy_from_slice(&number.to_be_bytes());
    key
}

fn state_machine(entries: u32, window: u32, load: u32) {
    let action = ActionForm { parameter_bits: vec![32, 16], is_default_only: false };
    let config = TableConfig {
        table: 1,
        keys: KeyForm::Exact { bytes: 13 },
        records: RecordForm::new(vec![action]),
        layout: LayoutKind::Windows { cells: window },
        rule: PlacementRule::default(),
        cells: TableLayout::cells_for(entries, load),
        entries,
        replicas: 1,
        first_epoch: 1,
        sketch: SketchConfig::default(),
        cache: CacheConfig { entries: 0, threshold: u16::MAX },
        limits: TableLimits::default(),
        mutation: ElasticMutation::default(),
    };
    let mut table = ElasticTable::new(config, SECRET);
    let bytes = table.layout().copy_bytes(table.layout().cells());
    table.set_servers(&[MemoryServer { id: ServerId(0), base: 0, bytes }]).expect("there is room");
    table.server_up(ServerId(0), &mut UnmeteredLinks);
    let mut served = Served { table, memory: vec![0; bytes as usize], hits: 0 };
    let start = Stopwatch::start();
    while !served.table.is_settled() {
        served.table.work(10_000);
        served.serve();
    }
    let cells = f64::from(served.table.layout().cells());
    println!("fill    {:9.0} empty cells/s", cells / start.seconds());
    let start = Stopwatch::start();
    for number in 0..entries {
        let record = [0, 10, 0, 0, 1, 0, 80];
        served.table.insert(EntryKey { bytes: &key(number), prefix_length: None }, &record).expect("there is room");
        if number % 32 == 31 {
            served.table.work(u32::MAX);
            served.serve();
        }
    }
    while !served.table.is_settled() {
        served.table.work(u32::MAX);
        served.serve();
    }
    println!("write   {:9.0} inserts/s", f64::from(entries) / start.seconds());
    let mut random = SplitMix64::new(2);
    let lookups = 2_000_000;
    let start = Stopwatch::start();
    for packet in 0..lookups {
        let key = key(random.below(u64::from(entries)) as u32);
        black_box(served.table.lookup(&key, packet, &mut UnmeteredLinks));
        served.serve();
    }
    let nanoseconds = start.seconds() * 1e9 / f64::from(lookups);
    let counts = served.table.counts();
    assert_eq!(counts.reads + counts.local, u64::from(lookups), "one READ, or the stash, for each lookup");
    assert_eq!(served.hits + counts.local, u64::from(lookups), "each key has an entry");
    println!("lookup  {nanoseconds:9.0} ns, with a copy of {} B", served.table.layout().read_bytes());
    println!("        {lookups} hits: {} READs, {} answered from the stash", counts.reads, counts.local);
    let bytes = served.table.placement().memory_bytes() as f64 / f64::from(entries);
    println!("memory  {bytes:9.2} B an entry beside the ledger");
}
