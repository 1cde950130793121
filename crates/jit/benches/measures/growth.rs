//! Growth of costs with unused headers, entries, rules and program size.

use std::fmt::Write;
use std::time::Instant;

use engine::Objects;
use jit::{NativeProgram, Speed};
use rng::SplitMix64;

use crate::lab::{self, Case};
use crate::{l2, l3};

/// Builds a layer 2 switch whose packets have `count` additional headers, which it parses and emits.
fn with_headers(count: usize) -> Case {
    let (base, _) = l2::switch(10_000);
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs/l2.p4"));
    let mut text = text.expect("the program is there");
    let mut members = String::new();
    let (mut states, mut emits) = (String::new(), String::new());
    for at in 0..count {
        writeln!(members, "    option_t option{at};").expect("a string takes everything");
        writeln!(emits, "        packet.emit(hdr.option{at});").expect("a string takes everything");
        let next = if at + 1 < count { format!("option{}", at + 1) } else { "accept".into() };
        writeln!(
            states,
            "    state option{at} {{\n        packet.extract(hdr.option{at});\n        transition select(hdr.option{at}.next) {{\n            \
             1: {next};\n            default: accept;\n        }}\n    }}"
        )
        .expect("a string takes everything");
    }
    if count > 0 {
        text = text.replace("transition accept;\n    }\n}", &format!("transition option0;\n    }}\n{states}}}"));
    }
    text = text
        .replace("struct headers_t {\n    ethernet_t ethernet;\n", &format!(
            "header option_t {{\n    bit<16> next;\n    bit<48> data;\n}}\n\nstruct headers_t {{\n    ethernet_t ethernet;\n{members}"
        ))
        .replace("packet.emit(hdr.ethernet);\n", &format!("packet.emit(hdr.ethernet);\n{emits}"));
    let mut case = like(base, &text);
    for packet in case.load.packets.chunks_exact_mut(case.load.length) {
        for at in 0..count {
            packet[14 + at * 8..16 + at * 8].copy_from_slice(&[0, 1]);
        }
    }
    case
}

/// Builds another program with the same stations and packets.
fn like(base: Case, text: &str) -> Case {
    let program = lab::compile_p4("like.p4", text);
    let mut objects = Objects::new(&program);
    let table = lab::table(&program, "stations");
    for installed in base.objects.entries(lab::table(&base.program, "stations")) {
        let mut entry = installed.entry;
        if let engine::ActionSpec::Direct(call) = &mut entry.action {
            call.action = program.tables[table].actions[0].action;
        }
        objects.insert(table, entry).expect("the same entries fit");
    }
    Case { program, objects, load: base.load, ingress_port: 1 }
}

/// Builds a layer 2 switch that looks each packet's type up three times in a table of constant entries; `entries` is
/// the name of the table's list of entries, or `None` for no such table.
fn with_types(entries: Option<(&str, &str)>) -> Case {
    let (mut base, _) = l2::switch(10_000);
    for packet in base.load.packets.chunks_exact_mut(base.load.length) {
        packet[12..14].copy_from_slice(&[8, 0]);
    }
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs/l2.p4"));
    let mut text = text.expect("the program is there");
    if let Some((kind, entries)) = entries {
        let mut tables = "    action mark(bit<48> by) {\n        hdr.ethernet.src = by;\n    }\n".to_owned();
        for at in 0..3 {
            write!(
                tables,
                "    table types{at} {{\n        key = {{ hdr.ethernet.type: {kind}; }}\n        actions = {{ mark; NoAction; }}\n        \
                 const default_action = NoAction();\n        {entries} = {{\n            0x86dd: mark(1);\n            \
                 0x0806: mark(2);\n            0x8100: mark(3);\n            0x0800: mark({});\n        }}\n    }}\n",
                at + 4
            )
            .expect("a string takes everything");
        }
        text = text
            .replace("    apply {\n        if (standard", &format!("{tables}    apply {{\n        if (standard"))
            .replace("stations.apply();", "types0.apply(); types1.apply(); types2.apply(); stations.apply();");
    }
    like(base, &text)
}

pub fn fixed_tables() {
    let none = with_types(None).alone();
    println!("\nns a packet by three tables of four entries (layer 2 switch, {none:.1} ns without):");
    for kind in ["exact", "ternary"] {
        let (looked_up, compared) =
            (with_types(Some((kind, "entries"))).alone(), with_types(Some((kind, "const entries"))).alone());
        println!("  {kind:<8} looked up {looked_up:>6.1}   compared with {compared:>6.1}");
    }
}

pub fn unused_headers() {
    println!("\nns a packet by the headers that are parsed and not used (layer 2 switch, 10 K stations):");
    let mut first = None;
    for count in [0, 1, 2, 4, 6] {
        let ns = with_headers(count).alone();
        let first = *first.get_or_insert(ns);
        println!("  {count} headers {ns:>8.1} ns  {:>5.2} ns each", (ns - first) / count.max(1) as f64);
    }
}

pub fn entries() {
    println!("\nns a packet by the entries of a table (compiled, by hand, ratio):");
    for count in [1_000, 10_000, 100_000, 1_000_000] {
        let (mut case, by_hand) = l2::switch(count);
        let exact = case.measure(by_hand);
        drop(case);
        let (mut case, by_hand) = l3::router(count);
        let lpm = case.measure(by_hand);
        println!(
            "  {count:>9} exact {:>7.1} {:>7.1} {:>5.2}   lpm {:>7.1} {:>7.1} {:>5.2}",
            exact.compiled, exact.by_hand, exact.ratio, lpm.compiled, lpm.by_hand, lpm.ratio
        );
    }
}

pub fn rules() {
    println!("\nns a packet by the rules of an access list in front of 100 K routes (compiled, by hand, ratio):");
    for count in [100, 1_000, 10_000, 100_000] {
        let (mut case, by_hand) = l3::guarded_router(count);
        let figures = case.measure(by_hand);
        println!("  {count:>9} {:>7.1} {:>7.1} {:>5.2}", figures.compiled, figures.by_hand, figures.ratio);
    }
}

/// Returns a program with 30 tables of three actions each, one after the other, over the fields of IPv4.
fn thirty_tables() -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs/acl.p4"));
    let text = text.expect("the program is there");
    let mut rng = SplitMix64::new(30);
    let (mut tables, mut applied) = (String::new(), String::new());
    let fields = [("ipv4.src", 32), ("ipv4.dst", 32), ("ports.src", 16), ("ports.dst", 16), ("ethernet.dst", 48)];
    for at in 0..28 {
        let mut keys = String::new();
        for _ in 0..1 + rng.below(3) {
            let (field, _) = fields[rng.below(5) as usize];
            let kind = if at % 3 == 0 { "ternary" } else { "exact" };
            if !keys.contains(field) {
                writeln!(keys, "            hdr.{field}: {kind};").expect("a string takes everything");
            }
        }
        let (field, width) = fields[rng.below(5) as usize];
        write!(
            tables,
            "    action set{at}(bit<{width}> value) {{\n        hdr.{field} = value;\n    }}\n\n    action mark{at}(bit<8> tos) {{\n        \
             hdr.ipv4.tos = tos;\n        hdr.ipv4.identification = hdr.ipv4.identification + 1;\n    }}\n\n    table t{at} {{\n        \
             key = {{\n{keys}        }}\n        actions = {{ set{at}; mark{at}; drop; NoAction; }}\n        \
             default_action = NoAction();\n    }}\n\n"
        )
        .expect("a string takes everything");
        writeln!(applied, "            t{at}.apply();").expect("a string takes everything");
    }
    text.replace("    apply {\n        if (standard", &format!("{tables}    apply {{\n        if (standard"))
        .replace("            switch (rules", &format!("{applied}            switch (rules"))
}

pub fn compile_time() {
    let program = lab::compile_p4("thirty.p4", &thirty_tables());
    println!("\ncompile time of a program with {} tables:", program.tables.len());
    for speed in [Speed::Compile, Speed::Run] {
        let times = (0..lab::rounds()).map(|_| {
            let begin = Instant::now();
            std::hint::black_box(NativeProgram::new(&program, &lab::plan(&program), speed).expect("it compiles"));
            begin.elapsed().as_secs_f64() * 1000.0
        });
        let ms = lab::median(times.collect());
        println!("  for {speed:?}: {ms:.1} ms, at most 300: {}", crate::verdict(ms <= 300.0));
    }
}
