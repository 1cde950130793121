//! Programs that need much code or memory: only packets that meet the large part are handed over.

use std::fmt::Write;
use std::sync::Arc;

use bits::Bits;
use bpf::{HandOverReason, KernelCode, KernelOptions};
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};

use crate::rig::{self, CPUS, Rig, Way};

/// Returns a program with these declarations of headers, fields of the headers, metadata, states and ingress.
fn program(headers: &str, fields: &str, metadata: &str, states: &str, ingress: &str) -> Arc<Program> {
    let emits: String = fields
        .split(';')
        .filter_map(|field| Some(format!("packet.emit(hdr.{});", field.split_whitespace().last()?)))
        .collect();
    let text = format!(
        "#include <core.p4>
#include <v1model.p4>
{headers}
struct headers_t {{ {fields} }}
struct metadata_t {{ {metadata} }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ {states} }}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ {ingress} }}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ {emits} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    );
    rig::compile_text(&text, None).unwrap_or_else(|| panic!("not a valid program:\n{text}"))
}

fn compile(program: &Program) -> KernelCode {
    let pipeline = v1model::kernel_pipeline(program).expect("a v1model program");
    bpf::compile(program, &pipeline, KernelOptions { cpus: CPUS, ports: 8 }).expect("a part runs in the kernel")
}

fn reasons(code: &KernelCode) -> Vec<HandOverReason> {
    code.hand_overs.iter().map(|one| one.reason).collect()
}

/// A table of exact keys and one of rules, of `size` entries each, and one whose prefix has no trie.
fn tables(size: u32) -> Arc<Program> {
    let ingress = format!(
        "
        action a(bit<32> n) {{ hdr.h.first = n; }}
        action b(bit<32> n) {{ hdr.h.second = n; }}
        table exacts {{
            key = {{ hdr.h.key: exact; }} actions = {{ a; NoAction; }} default_action = NoAction; size = {size};
        }}
        table rules {{
            key = {{ hdr.h.key: ternary; }} actions = {{ b; NoAction; }} default_action = NoAction; size = {size};
        }}
        table odds {{ key = {{ hdr.h.odd: lpm; }} actions = {{ NoAction; }} size = 10; }}
        apply {{
            exacts.apply();
            rules.apply();
            if (hdr.h.key == 0xffff) {{ odds.apply(); }}
            std.egress_spec = 3;
        }}"
    );
    let header = "header h_t { bit<16> key; bit<66> odd; bit<6> pad; bit<32> first; bit<32> second; }";
    program(header, "h_t h;", "", "state start { packet.extract(hdr.h); transition accept; }", &ingress)
}

fn packet(key: u16) -> Vec<u8> {
    [&key.to_be_bytes()[..], &[0; 37]].concat()
}

/// Inserts entries into a table, or deletes them.
fn change(table: &str, keys: std::ops::Range<u16>, is_insertion: bool) -> impl Fn(&Program, &mut Objects) {
    move |program, objects| {
        let id = program.table_named(table).expect("a table");
        let (is_rule, action) = (table == "I.rules", program.tables[id].actions[0].action);
        for key in keys.clone() {
            let (value, priority) = (Bits::new(key.into(), 16), if is_rule { i32::from(key) + 1 } else { 0 });
            let keys = match is_rule {
                // All match every key, so they are compared one by one.
                true => vec![KeyValue::Ternary(Bits::new(0, 16), Bits::new(0, 16))],
                false => vec![KeyValue::Exact(value)],
            };
            match is_insertion {
                true => {
                    let entry = TableEntry::new(keys, priority, action, vec![Bits::new(77, 32)]);
                    objects.insert(id, entry).expect("the switch has room");
                }
                false => objects.delete(id, &keys, priority).expect("it is there"),
            }
        }
    }
}

/// As many entries as make the region give each table less room than it requests.
const MANY: u32 = 4_000_000;

#[test]
fn a_table_that_cannot_be_searched_takes_no_room_from_others() {
    let room = |size| compile(&tables(size)).tables().map(|(_, entries)| entries).collect::<Vec<u32>>();
    assert_eq!(room(50_000), [50_000, 50_000, 10]);
    assert_eq!(room(100_000), [100_000, 65_536, 10]);
    assert!((1 << 18..MANY).contains(&room(MANY)[0]), "{:?}", room(MANY));
}

/// A table of a million entries, which are counted.
const COUNTED: &str = "
    direct_counter(CounterType.packets_and_bytes) hits;
    action a(bit<32> n) { hdr.h.first = n; hits.count(); }
    table counted {
        key = { hdr.h.key: exact; } actions = { a; } default_action = a(0); size = 0x100000; counters = hits;
    }
    apply { counted.apply(); std.egress_spec = 3; }";

#[test]
fn counts_of_a_million_entries_take_the_same_memory_on_any_number_of_processors() {
    const ENTRIES: u32 = 1 << 20;
    let state = "state start { packet.extract(hdr.h); transition accept; }";
    let program = program("header h_t { bit<32> key; bit<32> first; }", "h_t h;", "", state, COUNTED);
    let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
    let compiled = |cpus| bpf::compile(&program, &pipeline, KernelOptions { cpus, ports: 8 });
    let memory = |cpus| {
        let code = compiled(cpus).expect("it is not too large");
        assert_eq!(code.tables().map(|(_, entries)| entries).collect::<Vec<_>>(), [ENTRIES], "{cpus} processors");
        [code.layout.bytes(), code.layout.processor_bytes()]
    };
    let [[few, few_scratch], [many, many_scratch]] = [2, 1024].map(memory);
    // Records and counts of both copies are there, whatever the number of processors.
    assert!(few - few_scratch > 2 * ENTRIES * (8 * 2 + 16), "{few} bytes");
    assert_eq!(many_scratch, 512 * few_scratch);
    assert!((many - many_scratch).abs_diff(few - few_scratch) < bpf::PAGE_BYTES, "{few} and {many} bytes");
    let refused = compiled(1 << 20).expect_err("the scratch memory alone is too large");
    assert!(refused.to_string().contains("more than the 256 MiB that may be shared with the kernel"), "{refused}");
}

#[test]
fn a_full_table_that_is_nearly_emptied_is_searched_again() {
    let table = |name: &str| {
        format!(
            "table {name} {{
                key = {{ hdr.h.key: exact; }} actions = {{ a; NoAction; }} default_action = NoAction; size = {MANY};
            }}\n"
        )
    };
    let names: Vec<String> = (0..80).map(|number| format!("others{number}")).collect();
    let (tables, applies): (String, String) =
        names.iter().map(|name| (table(name), format!("{name}.apply(); "))).unzip();
    let ingress = format!(
        "action a(bit<32> n) {{ hdr.h.first = n; }}
        {} {tables}
        apply {{ exacts.apply(); if (hdr.h.first == 1) {{ {applies} }} std.egress_spec = 3; }}",
        table("exacts")
    );
    let state = "state start { packet.extract(hdr.h); transition accept; }";
    let program = program("header h_t { bit<16> key; bit<32> first; }", "h_t h;", "", state, &ingress);
    let mut rig = Rig::new(&program, |_, _| ());
    let capacity = rig.compiled.tables().next().expect("a table").1;
    let last = u16::try_from(capacity + 6).expect("the tables share the room");
    rig.change(change("I.exacts", 0..last, true)).expect("the gate stays open");
    assert!(rig.writer.full_table().is_some());
    rig.change(change("I.exacts", 0..last - 10, false)).expect("the gate stays open");
    for key in last - 10..last {
        assert!(matches!(rig.packet(0, &packet(key)), Way::Sent { .. }), "{key} of {capacity}");
    }
    assert_eq!(rig.writer.full_table(), None);
}

#[test]
fn rules_that_had_no_room_are_not_forgotten() {
    let mut rig = Rig::new(&tables(100_000), |_, _| ());
    rig.change(change("I.rules", 0..1100, true)).expect("the gate stays open");
    assert_eq!(rig.packet(0, &packet(1099)), Way::HandedOver);
    rig.change(change("I.rules", 0..1050, false)).expect("the gate stays open");
    for key in [5, 1050, 1099] {
        assert!(matches!(rig.packet(0, &packet(key)), Way::Sent { .. }));
    }
}

#[test]
fn values_that_are_too_wide_to_split_are_handed_over() {
    for width in [2048, 4096, 65_536] {
        let sums: String = (1..4).map(|number| format!("meta.x = meta.y + meta.x + {number};")).collect();
        let ingress = format!(
            "apply {{
                std.egress_spec = 3;
                if (std.ingress_port == 1) {{ {sums} if (meta.x == 9) {{ mark_to_drop(std); }} }}
            }}"
        );
        let metadata = format!("bit<{width}> x; bit<{width}> y;");
        let state = "state start { packet.extract(hdr.h); transition accept; }";
        let code = compile(&program("header h_t { bit<8> a; }", "h_t h;", &metadata, state, &ingress));
        assert!(code.can_forward && reasons(&code).contains(&HandOverReason::WideValue), "{:?}", reasons(&code));
    }
}

#[test]
fn many_wide_sums_hand_over_only_the_packets_that_need_them() {
    let mut metadata = String::new();
    (0..6).for_each(|number| _ = write!(metadata, "bit<256> x{number}; "));
    let sums: String = (0..60)
        .map(|number| format!("meta.x{} = meta.x0 + meta.x1 + meta.x2 + meta.x3 + meta.x4 + meta.x5;", number % 6))
        .collect();
    let ingress = format!(
        "apply {{ std.egress_spec = 3; if (hdr.h.a == 1) {{ {sums} if (meta.x0 == 0) {{ mark_to_drop(std); }} }} }}"
    );
    let state = "state start { packet.extract(hdr.h); transition accept; }";
    let program = program("header h_t { bit<8> a; }", "h_t h;", &metadata, state, &ingress);
    let mut rig = Rig::new(&program, |_, _| ());
    assert_eq!(rig.packet(0, &[1; 20]), Way::HandedOver);
    assert!(matches!(rig.packet(0, &[2; 20]), Way::Sent { .. }));
}

#[test]
fn a_parser_that_is_too_large_when_unrolled_hands_over_only_its_stacks() {
    for (size, statements) in [(30, 20), (200, 200)] {
        let work: String =
            (0..statements).map(|number| format!("meta.m = meta.m + hdr.s.last.v * {number};")).collect();
        let states = format!(
            "state start {{ transition select(packet.lookahead<bit<8>>()) {{ 0: one; 1: two; default: accept; }} }}
            state one {{ packet.extract(hdr.s.next); {work} transition start; }}
            state two {{ packet.extract(hdr.t.next); meta.m = meta.m + hdr.t.last.v; transition start; }}"
        );
        let header = "header s_t { bit<8> k; bit<16> v; }";
        let fields = format!("s_t[{size}] s; s_t[{size}] t;");
        let ingress = "apply { std.egress_spec = 3; if (meta.m == 7) { mark_to_drop(std); } }";
        let code = compile(&program(header, &fields, "bit<16> m;", &states, ingress));
        assert!(code.can_forward && reasons(&code).contains(&HandOverReason::Stack), "{:?}", reasons(&code));
    }
}
