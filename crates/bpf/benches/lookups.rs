//! Measures lookups of P4 tables in the kernel beside those of the kernel's own maps. Run
//! `cargo bench -p bpf --bench lookups` as root.
//!
//! Each row is the median of rounds that take turns. A lookup is what a program takes longer with it than without. Keys
//! are pseudorandom, all are in the table, and the memory of the tables is larger than the first cache.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bits::Bits;
use bpf::asm::Links;
use bpf::{KernelCode, KernelOptions, PortState, RegionWriter};
use compiler::Source;
use engine::TableEntry;
use ir::{KeyValue, Program};
use ports::load::{LookupMap, MapLookups, lookup_key};
use ports::{KernelProgram, KernelRegion, RedirectMap};
use v1model::{Config, Switch, V1Model};

const ROUNDS: usize = 9;
const RUNS: u32 = 4_000_000;
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

/// A P4 program in the kernel.
struct InKernel {
    program: KernelProgram,
    /// Kept as the program uses them.
    _region: KernelRegion,
    _targets: [RedirectMap; 2],
}

fn compile(map: Option<LookupMap>) -> (Arc<Program>, KernelCode) {
    let is_lpm = map == Some(LookupMap::Prefixes);
    let apply = if map.is_some() { "entries.apply();" } else { "if (meta.key == 1) { lost(); } else { found(); }" };
    let text = SOURCE.replace("KIND", if is_lpm { "lpm" } else { "exact" });
    let text = text.replace("LAST", if is_lpm { "drawn[31:24]" } else { "8w0" }).replace("APPLY", apply);
    let (mut sources, mut diagnostics) = (diagnostics::SourceMap::new(), diagnostics::Diagnostics::new());
    let compiled = compiler::compile(&Source::new("lookups.p4", &text), &V1Model, &mut sources, &mut diagnostics);
    let program = Arc::new(compiled.expect("a valid program").ir);
    let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
    let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: 64, ports: 2 }).expect("it is small");
    (program, code)
}

impl InKernel {
    fn load(map: Option<LookupMap>) -> io::Result<InKernel> {
        let (program, code) = compile(map);
        let mut switch = Switch::new(program.clone(), Config::with_ports(2)).expect("a switch");
        if let (Some(map), Some(table)) = (map, program.table_named("I.entries")) {
            let found = program.tables[table].actions[0].action;
            for number in 0..1 << BITS {
                let key = Bits::new(lookup_key(number).into(), 32);
                let key = if map == LookupMap::Prefixes { KeyValue::Lpm(key, 24) } else { KeyValue::Exact(key) };
                let entry = TableEntry::new(vec![key], 0, found, Vec::new());
                switch.objects_mut().insert(table, entry).expect("there is room");
            }
        }
        let region = KernelRegion::new(code.layout.bytes())?;
        let state = PortState::Fast { device: 0, max_frame: 1514 };
        bpf::set_port(&code.layout, region.words(), 0, state, true);
        let mut writer = RegionWriter::new(&code.layout, |_| true);
        writer.fill(region.words(), &program, switch.objects()).expect("the entries fit");
        let (devices, sockets) = (RedirectMap::devices(1)?, RedirectMap::sockets(1)?);
        let links = Links {
            region: region.descriptor(),
            devices: devices.descriptor(),
            sockets: sockets.descriptor(),
            port: 0,
            has_local_senders: false,
        };
        let encoded = code.encode(&links, true).expect("code");
        let program = KernelProgram::load(&encoded).map_err(|rejected| rejected.error)?;
        Ok(InKernel { program, _region: region, _targets: [devices, sockets] })
    }
}

/// Returns the nanoseconds of a run.
fn time(program: &KernelProgram) -> io::Result<f64> {
    let (verdict, _) = program.run(&FRAME)?;
    assert_eq!(verdict, FOUND, "every key is in the table");
    let start = Instant::now();
    program.run_repeatedly(&FRAME, RUNS)?;
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(RUNS))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> io::Result<()> {
    const MAPS: [Option<LookupMap>; 3] = [None, Some(LookupMap::Exact), Some(LookupMap::Prefixes)];
    let ours = MAPS.iter().map(|map| InKernel::load(*map)).collect::<io::Result<Vec<_>>>();
    let ours = match ours {
        Ok(ours) => ours,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: needs root: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
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
