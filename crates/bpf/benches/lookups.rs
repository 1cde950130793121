//! Measures lookups of P4 tables in the kernel beside those of the kernel's own maps. Run
//! `cargo bench -p bpf --bench lookups` as root.
//!
//! Each row is the median of rounds that take turns. A lookup is what a program takes longer with it than without. Keys
//! are pseudorandom, all are in the table, and the memory of the tables is larger than the first cache.

#[path = "shared/mod.rs"]
mod shared;

use std::io;

use bits::Bits;
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

/// Draws a key as [`MapLookups`] does. `KEY` and `APPLY` are replaced.
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
    action lost() { std.egress_spec = 1; }
    table entries {
        key = { meta.key: KIND; }
        actions = { found; lost; }
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

fn load(map: Option<LookupMap>) -> io::Result<InKernel> {
    let is_lpm = map == Some(LookupMap::Prefixes);
    let apply = if map.is_some() { "entries.apply();" } else { "if (meta.key == 1) { lost(); } else { found(); }" };
    let text = SOURCE.replace("KIND", if is_lpm { "lpm" } else { "exact" });
    let text = text.replace("LAST", if is_lpm { "drawn[31:24]" } else { "8w0" }).replace("APPLY", apply);
    InKernel::load(&shared::compile(&text), 2, |program: &Program, objects: &mut Objects| {
        if let (Some(map), Some(table)) = (map, program.table_named("I.entries")) {
            let found = program.tables[table].actions[0].action;
            for number in 0..1 << BITS {
                let key = Bits::new(lookup_key(number).into(), 32);
                let key = if map == LookupMap::Prefixes { KeyValue::Lpm(key, 24) } else { KeyValue::Exact(key) };
                let entry = TableEntry::new(vec![key], 0, found, Vec::new());
                objects.insert(table, entry).expect("there is room");
            }
        }
    })
}

/// Returns the nanoseconds of a run.
fn time(program: &KernelProgram) -> io::Result<f64> {
    let (verdict, _) = program.run(&FRAME)?;
    assert_eq!(verdict, FOUND, "every key is in the table");
    shared::time(program, &FRAME, RUNS)
}

fn main() -> io::Result<()> {
    const MAPS: [Option<LookupMap>; 3] = [None, Some(LookupMap::Exact), Some(LookupMap::Prefixes)];
    let ours = MAPS.iter().map(|map| load(*map)).collect::<io::Result<Vec<_>>>();
    let Some(ours) = shared::or_skip(ours)? else { return Ok(()) };
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
    for (name, at) in [("exact key; hash map", 1), ("prefixes; LPM_TRIE", 2)] {
        let (p4, map) = (lookup(at, 0), lookup(at + 3, 3));
        println!("{name:<28} {p4:>10.1} {map:>10.1} {:>7.2}", p4 / map);
    }
    println!("without a lookup: {:.1} and {:.1} ns", median(times[0].clone()), median(times[3].clone()));
    Ok(())
}
