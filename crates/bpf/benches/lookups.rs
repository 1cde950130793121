//! Measures lookups of P4 tables in the kernel beside those of the kernel's own maps. Run
//! `cargo bench -p bpf --bench lookups` as root.
//!
//! Each row is the median of rounds that take turns. A lookup is what a program takes longer with it than without. Keys
//! are pseudorandom, all are in the table, and the memory of the tables is larger than the first cache. Entries have
//! the same action, or each one has an argument of its own.
//!
//! Then follow the times of writes to the P4 tables.

#[path = "shared/mod.rs"]
mod shared;

use std::io;
use std::time::Instant;

use bits::Bits;
use bpf::CountSink;
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use ports::KernelProgram;
use ports::load::{LookupMap, MapLookups, lookup_key};
use shared::{InKernel, ROUNDS, RUNS, median};

/// Tables have 2^17 entries.
const BITS: u32 = 17;
const FRAME: [u8; 64] = [7; 64];
/// `XDP_DROP`: the key was found.
const FOUND: u32 = 1;

/// Draws a key as [`MapLookups`] does. `KIND`, `LAST`, `ACTION` and `APPLY` are replaced.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct headers { }
struct metadata { bit<32> key; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<64>>(1) state;
    action found() { mark_to_drop(std); }
    action numbered(bit<32> number) { std.egress_spec = number[31:23]; }
    action lost() { std.egress_spec = 1; }
    table entries {
        key = { meta.key: KIND; }
        actions = { ACTION; lost; }
        default_action = lost();
        size = 131072;
    }
    apply {
        bit<64> drawn;
        state.read(drawn, 0);
        drawn = drawn * 1103515245 + 12345;
        state.write(0, drawn);
        bit<24> number = ((bit<24>) drawn[56:40]) * 10368889;
        meta.key = number ++ LAST;
        APPLY
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers hdr) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// A table of a program.
#[derive(Clone, Copy)]
struct Entries {
    map: LookupMap,
    /// Whether each entry has an argument of its own.
    have_arguments: bool,
}

impl Entries {
    fn key(self, number: u32) -> KeyValue {
        let key = Bits::new(lookup_key(number).into(), 32);
        if self.map == LookupMap::Prefixes { KeyValue::Lpm(key, 24) } else { KeyValue::Exact(key) }
    }

    fn entry(self, program: &Program, key: KeyValue, number: u32) -> TableEntry {
        let action = program.tables[program.table_named("I.entries").expect("a table")].actions[0].action;
        // The first nine bits are the port of drops.
        let argument = Bits::new((511 << 23 | number).into(), 32);
        TableEntry::new(vec![key], 0, action, if self.have_arguments { vec![argument] } else { Vec::new() })
    }
}

fn load(entries: Option<Entries>) -> io::Result<InKernel> {
    let map = entries.map(|entries| entries.map);
    let is_lpm = map == Some(LookupMap::Prefixes);
    let action = if entries.is_some_and(|entries| entries.have_arguments) { "numbered" } else { "found" };
    let apply = if map.is_some() { "entries.apply();" } else { "if (meta.key == 1) { lost(); } else { found(); }" };
    let text = SOURCE.replace("KIND", if is_lpm { "lpm" } else { "exact" });
    let text = text.replace("LAST", if is_lpm { "drawn[31:24]" } else { "8w0" }).replace("APPLY", apply);
    let text = text.replace("ACTION", action);
    InKernel::load(&shared::compile(&text), 2, |program: &Program, objects: &mut Objects| {
        if let (Some(entries), Some(table)) = (entries, program.table_named("I.entries")) {
            for number in 0..1 << BITS {
                let entry = entries.entry(program, entries.key(number), number);
                objects.insert(table, entry).expect("there is room");
            }
        }
    })
}

/// Returns the median of the microseconds that an update of one entry takes: of its removal and its return.
fn time_writes(kernel: &mut InKernel, entries: Entries, keys: impl Iterator<Item = KeyValue>) -> f64 {
    let table = kernel.source.table_named("I.entries").expect("a table");
    let mut times = Vec::new();
    for (number, key) in (0..).zip(keys) {
        for _ in 0..2 {
            let objects = kernel.switch.objects_mut();
            let keys = [key.clone()];
            match objects.get(table, &keys, 0).is_ok() {
                true => objects.delete(table, &keys, 0).expect("it is there"),
                false => {
                    let entry = entries.entry(&kernel.source, key.clone(), number);
                    objects.insert(table, entry).expect("there is room");
                }
            }
            let changes = objects.take_changes();
            let start = Instant::now();
            let updated = kernel.writer.update(
                kernel.region.words(),
                &kernel.source,
                kernel.switch.objects(),
                &changes,
                &mut NoCounts,
            );
            updated.expect("the entry fits");
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    median(times)
}
/// Ignores all counts.
struct NoCounts;

impl CountSink for NoCounts {}

/// Returns the nanoseconds of a run.
fn time(program: &KernelProgram) -> io::Result<f64> {
    let (verdict, _) = program.run(&FRAME)?;
    assert_eq!(verdict, FOUND, "every key is in the table");
    shared::time(program, &FRAME, RUNS)
}

fn main() -> io::Result<()> {
    const MAPS: [Option<LookupMap>; 3] = [None, Some(LookupMap::Exact), Some(LookupMap::Prefixes)];
    const TABLES: [(&str, LookupMap, bool); 4] = [
        ("exact key; hash map", LookupMap::Exact, false),
        ("the same, with arguments", LookupMap::Exact, true),
        ("prefixes; LPM_TRIE", LookupMap::Prefixes, false),
        ("the same, with arguments", LookupMap::Prefixes, true),
    ];
    let tables = TABLES.map(|(_, map, have_arguments)| Entries { map, have_arguments });
    let ours = [None].into_iter().chain(tables.map(Some)).map(load).collect::<io::Result<Vec<_>>>();
    let Some(mut ours) = shared::or_skip(ours)? else { return Ok(()) };
    let theirs = MAPS.iter().map(|map| MapLookups::load(*map, BITS)).collect::<io::Result<Vec<_>>>()?;
    let programs: Vec<&KernelProgram> =
        ours.iter().map(|one| &one.program).chain(theirs.iter().map(MapLookups::program)).collect();
    let mut times = vec![Vec::new(); programs.len()];
    for round in 0..=ROUNDS {
        for (program, times) in programs.iter().zip(&mut times) {
            let time = time(program)?;
            // The first round warms up.
            times.extend((round > 0).then_some(time));
        }
    }
    let lookup = |of: usize, without: usize| {
        let differences = times[of].iter().zip(&times[without]).map(|(with, without)| with - without);
        median(differences.collect())
    };
    println!("{:<28} {:>10} {:>10} {:>7}", "2^17 entries", "P4, ns", "map, ns", "ratio");
    for (at, (name, map, _)) in (1..).zip(TABLES) {
        let other = ours.len() + if map == LookupMap::Exact { 1 } else { 2 };
        let (p4, map) = (lookup(at, 0), lookup(other, ours.len()));
        println!("{name:<28} {p4:>10.1} {map:>10.1} {:>7.2}", p4 / map);
    }
    println!("without a lookup: {:.1} and {:.1} ns", median(times[0].clone()), median(times[ours.len()].clone()));
    println!("{:<28} {:>10} {:>10} {:>10} {:>10}", "writes, us", "at start", "one", "/8", "/0");
    for ((name, map, _), (table, entries)) in TABLES.into_iter().zip(ours[1..].iter_mut().zip(tables)) {
        let one = time_writes(table, entries, (0..500).map(|number| entries.key(number * 200)));
        let fill_us = table.fill.as_secs_f64() * 1e6 / f64::from(1 << BITS);
        print!("{name:<28} {fill_us:>10.2} {one:>10.2}");
        if map == LookupMap::Prefixes {
            for length in [8, 0] {
                // The table has no room for another entry.
                let table_id = table.source.table_named("I.entries").expect("a table");
                table.switch.objects_mut().delete(table_id, &[entries.key(1)], 0).ok();
                let prefix = KeyValue::Lpm(Bits::new(if length == 0 { 0 } else { 7 << 24 }, 32), length);
                print!(" {:>10.2}", time_writes(table, entries, std::iter::repeat_n(prefix, 20)));
            }
        }
        println!();
    }
    Ok(())
}
