//! Measures the cost of resilient state in memory: example programs without their annotations, and with them at a
//! switch that owns all rows. Batches of 32 frames in place; both alternate, and the ratio is the median of the ratios
//! of a turn.
//!
//! `cargo bench -p resilient_switch --bench rows`, with parts of names to select lines

mod applications;
mod replicated;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bits::Bits;
use engine::{ActionSpec, TableEntry};
use ir::KeyValue;
use switch::{Egress, HeadroomBuf, PacketSwitch, PortId, SwitchControl, Time};
use v1model::Switch;

use replicated::{HEADROOM, Replicated, restore, switch, without_annotations};

const TURNS: usize = 101;
/// Batches of a turn. A turn with writes has fewer, so that it is not longer than a time slice of the scheduler.
const BATCHES: usize = 256;
const WRITE_BATCHES: usize = 16;
const BATCH: usize = 32;
const READ: u8 = 0;
const ADD: u8 = 2;

const KEY_VALUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/key-value/store.p4");
const NAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/nat/nat.p4");
const CLIENT: u32 = 0x0a00_0001;
const SERVER: u32 = 0xc000_0201;
const PUBLIC: u32 = 0xc000_02fe;

/// Returns a switch of `examples/nat` with its two sides, port 1 inside and port 2 outside.
fn translator(change: impl Fn(&str) -> String) -> Switch {
    let mut translator = switch(NAT, change);
    let program = Arc::clone(translator.program());
    let (table, sides) = program.tables.iter().find(|(_, table)| table.name.ends_with("sides")).expect("it has sides");
    for (port, action) in [(1, 0), (2, 1)] {
        let values = [(3 - port, 9), (7, 48), (8, 48), (u64::from(PUBLIC), 32)];
        let args = values.map(|(value, width)| Bits::new(value.into(), width)).to_vec();
        let key = vec![KeyValue::Exact(Bits::new(port.into(), 9))];
        let entry = TableEntry::new(key, 0, sides.actions[action].action, args);
        translator.objects_mut().insert(table, entry).expect("the entry is right");
    }
    translator
}

/// Copies the entries of these tables, one for each frame, from another switch to a program without annotations.
fn copy_entries(tables: &[&str], from: &Switch, to: &mut Switch) {
    for name in tables {
        let find = |switch: &Switch| {
            let mut named = switch.program().tables.iter().filter(|(_, table)| table.name.ends_with(name));
            named.next().expect("the program has the table").0
        };
        let (source, target) = (find(from), find(to));
        let entries: Vec<TableEntry> = from.objects().entries(source).map(|installed| installed.entry).collect();
        assert_eq!(entries.len(), BATCH);
        for entry in entries {
            to.objects_mut().insert(target, entry).expect("the tables are alike");
        }
    }
}

/// Returns segments of 32 connections between an address inside and a server outside.
fn segments(ports: &[(u16, u16)], (source, destination): (u32, u32)) -> Vec<HeadroomBuf> {
    let segment = |(from, to): &(u16, u16)| {
        let mut ip =
            [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0][..], &source.to_be_bytes(), &destination.to_be_bytes()]
                .concat();
        let sum = ip.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        let mut frame =
            [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &ip, &ports, &[0; 8], &[0x50, 0x10, 1, 0, 0, 0, 0, 0]]
                .concat();
        frame.resize(60, 0);
        HeadroomBuf::new(&frame, HEADROOM)
    };
    ports.iter().map(segment).collect()
}

/// Returns frames with requests for 32 keys.
fn requests(operation: u8) -> Vec<HeadroomBuf> {
    let request = |key: u8| {
        let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6, operation, 0, key, 0, 0, 0, 1];
        data.resize(60, 0);
        HeadroomBuf::new(&data, HEADROOM)
    };
    (0..BATCH as u8).map(request).collect()
}

/// Returns nanoseconds a packet of one turn of this many batches.
fn turn(batches: usize, mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..batches).for_each(|_| work());
    begin.elapsed().as_nanos() as f64 / (BATCH * batches) as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the same frames through a program without annotations, with them but without stores, and with stores. Prints a
/// row of the table.
fn compare(
    name: &str,
    bound: &str,
    fresh: &[HeadroomBuf],
    (plain, alone, replicated): (&mut Switch, Option<&mut Switch>, &mut Replicated),
    port: PortId,
) {
    let mut wanted = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    if wanted.peek().is_some() && !wanted.any(|part| name.contains(&part)) {
        return;
    }
    let now = Time::from_us(1);
    let mut batch = fresh.to_vec();
    replicated.store_time = Duration::ZERO;
    replicated.switch.step_in_place(now, port, &mut fresh.to_vec(), &mut Vec::new());
    replicated.exchange(now);
    let writes = replicated.store_time > Duration::ZERO;
    let mut left: Vec<Egress> = Vec::new();
    let mut figures: [Vec<f64>; 5] = Default::default();
    let mut alone = alone;
    let batches = if writes { WRITE_BATCHES } else { BATCHES };
    for _ in 0..TURNS {
        let one = turn(batches, || {
            restore(&mut batch, fresh);
            left.clear();
            plain.step_in_place(now, port, &mut batch, &mut left);
            assert_eq!(black_box(&left).len(), BATCH);
        });
        let unowned = alone.as_mut().map(|alone| {
            turn(batches, || {
                restore(&mut batch, fresh);
                left.clear();
                alone.step_in_place(now, port, &mut batch, &mut left);
                assert_eq!(black_box(&left).len(), BATCH);
            })
        });
        replicated.store_time = Duration::ZERO;
        let other = turn(batches, || {
            restore(&mut batch, fresh);
            left.clear();
            replicated.switch.step_in_place(now, port, &mut batch, &mut left);
            assert_eq!(replicated.exchange(now) + black_box(&left).len(), BATCH);
        });
        let unowned = unowned.map(|unowned| unowned / one);
        let own = other - replicated.store_time.as_nanos() as f64 / (BATCH * batches) as f64;
        for (list, value) in figures.iter_mut().zip([one, other, other / one, unowned.unwrap_or(f64::NAN), own]) {
            list.push(value);
        }
    }
    let [plain_ns, resilient_ns, ratio, unowned, own_ns] = figures.each_mut().map(|list| median(list));
    println!("| {name} | {plain_ns:.1} | {resilient_ns:.1} | **{ratio:.2}** | {bound} |");
    if writes {
        println!("| {name}: without the store's time | {plain_ns:.1} | {own_ns:.1} | {:.2} | |", own_ns / plain_ns);
    }
    if alone.is_some() {
        println!("| the same program without stores | | | {unowned:.2} | |");
    }
}

/// Fetches the rows of frames. Returns the frames that left.
fn warm_up(replicated: &mut Replicated, fresh: &[HeadroomBuf], port: PortId) {
    let (mut batch, mut left) = (fresh.to_vec(), Vec::new());
    replicated.switch.step_in_place(Time::from_us(1), port, &mut batch, &mut left);
    let came = replicated.exchange(Time::from_us(1)) + left.len();
    assert_eq!(came, BATCH, "{}", replicated.switch.registry().to_json());
}

fn main() {
    println!("| | plain, ns | resilient, ns | ratio | bound |\n|---|---|---|---|---|");
    let mut plain = switch(KEY_VALUE, without_annotations);
    let mut alone = switch(KEY_VALUE, str::to_owned);
    let mut replicated = Replicated::new(switch(KEY_VALUE, str::to_owned));
    for (name, operation, bound) in [("read of an owned row", READ, "1.05"), ("write, with its store", ADD, "")] {
        let fresh = requests(operation);
        warm_up(&mut replicated, &fresh, PortId(1));
        compare(name, bound, &fresh, (&mut plain, Some(&mut alone), &mut replicated), PortId(1));
    }
    let mut replicated = Replicated::new(translator(str::to_owned));
    let outward: Vec<(u16, u16)> = (0..BATCH as u16).map(|number| (40_000 + number, 80)).collect();
    let outward = segments(&outward, (CLIENT, SERVER));
    warm_up(&mut replicated, &outward, PortId(1));
    // The numbers are the keys of the return direction.
    let table = replicated.switch.program().tables.iter().find(|(_, table)| table.name.ends_with("outbound"));
    let table = table.expect("the program has it").0;
    let numbers = replicated.switch.objects().entries(table).map(|installed| match installed.entry.action {
        ActionSpec::Direct(call) => (80, call.args[0].low_u64() as u16),
        _ => unreachable!("entries of the stores have actions of their own"),
    });
    let inward = segments(&numbers.collect::<Vec<_>>(), (SERVER, PUBLIC));
    warm_up(&mut replicated, &inward, PortId(2));
    let mut plain = translator(without_annotations);
    copy_entries(&["outbound", "inbound"], replicated.switch.inner(), &mut plain);
    compare("NAT, from inside", "1.03", &outward, (&mut plain, None, &mut replicated), PortId(1));
    compare("NAT, from outside", "1.03", &inward, (&mut plain, None, &mut replicated), PortId(2));
    for application in applications::all() {
        let mut replicated = Replicated::new(application.switch(str::to_owned));
        let mut plain = application.switch(without_annotations);
        for (number, fresh) in application.warm_up.iter().enumerate() {
            warm_up(&mut replicated, fresh, PortId(1));
            if number == 0 {
                copy_entries(application.tables, replicated.switch.inner(), &mut plain);
            }
            plain.step_in_place(Time::from_us(1), PortId(1), &mut fresh.clone(), &mut Vec::new());
        }
        let (name, bound) = (application.name, application.bound);
        compare(name, bound, &application.frames, (&mut plain, None, &mut replicated), PortId(1));
    }
}
