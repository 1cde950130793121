//! Generates programs of a given size, to see how the time to compile them grows.

use std::fmt::Write;

/// The size of a generated program.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Tables of ingress, applied one after the other, each with four actions.
    pub tables: usize,
    /// Headers after Ethernet, IPv4 and the ports: parsed in a chain, emitted, and set by every fourth table.
    pub headers: usize,
}

/// Fields of keys and actions, with their widths.
const FIELDS: [(&str, u32); 5] =
    [("ipv4.src", 32), ("ipv4.dst", 32), ("ports.src", 16), ("ports.dst", 16), ("ethernet.dst", 48)];

const HEADERS: &str = "#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<8> version_ihl; bit<8> tos; bit<16> total_length; bit<16> identification; bit<16> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header ports_t { bit<16> src; bit<16> dst; bit<32> rest; }
header option_t { bit<16> next; bit<48> data; }
struct metadata_t {}
";

const PARSER: &str = "parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x800: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { 6: ports; 17: ports; default: accept; }
    }
";

const REST: &str = "control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply {} }
control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }
";

/// Returns the text of a program of this size.
pub fn program(size: Size) -> String {
    let (mut members, mut states, mut emits) = (String::new(), String::new(), String::new());
    for at in 0..size.headers {
        let next = if at + 1 < size.headers { format!("option{}", at + 1) } else { "accept".to_owned() };
        line(&mut members, format_args!("    option_t option{at};"));
        line(&mut emits, format_args!("        packet.emit(hdr.option{at});"));
        line(
            &mut states,
            format_args!(
                "    state option{at} {{\n        packet.extract(hdr.option{at});\n        \
                 transition select(hdr.option{at}.next) {{ 1: {next}; default: accept; }}\n    }}"
            ),
        );
    }
    let first = if size.headers > 0 { "option0" } else { "accept" };
    let (tables, applied) = tables(size);
    format!(
        "{HEADERS}struct headers_t {{\n    ethernet_t ethernet;\n    ipv4_t ipv4;\n    ports_t ports;\n{members}}}\n\
         {PARSER}    state ports {{ packet.extract(hdr.ports); transition {first}; }}\n{states}}}\n{REST}\
         control MainIngress(inout headers_t hdr, inout metadata_t meta,\n                    \
         inout standard_metadata_t standard_metadata) {{\n{tables}    apply {{\n        \
         standard_metadata.egress_spec = 2;\n        if (hdr.ports.isValid()) {{\n{applied}        }}\n    }}\n}}\n\
         control MainDeparser(packet_out packet, in headers_t hdr) {{\n    apply {{\n        \
         packet.emit(hdr.ethernet);\n        packet.emit(hdr.ipv4);\n        packet.emit(hdr.ports);\n{emits}    }}\n}}\n\
         V1Switch(MainParser(), NoVerify(), MainIngress(), NoEgress(), NoUpdate(), MainDeparser()) main;\n"
    )
}

/// Returns the declarations of the tables and the statements that apply them.
fn tables(size: Size) -> (String, String) {
    let mut declarations = "    action drop() { mark_to_drop(standard_metadata); }\n".to_owned();
    let mut applied = String::new();
    for at in 0..size.tables {
        let field = |offset: usize| FIELDS[(at * 7 + offset) % FIELDS.len()];
        let kind = if at % 3 == 0 { "ternary" } else { "exact" };
        let keys: String = (0..1 + at % 3).map(|key| format!("hdr.{}: {kind}; ", field(key * 2).0)).collect();
        let (set, width) = match size.headers {
            headers if headers > 0 && at % 4 == 0 => (format!("option{}.data", at / 4 % headers), 48),
            _ => (field(3).0.to_owned(), field(3).1),
        };
        line(
            &mut declarations,
            format_args!(
                "    action set{at}(bit<{width}> value) {{ hdr.{set} = value; }}\n    \
                 action mark{at}(bit<8> tos) {{\n        hdr.ipv4.tos = tos;\n        \
                 hdr.ipv4.identification = hdr.ipv4.identification + 1;\n    }}\n    table t{at} {{\n        \
                 key = {{ {keys}}}\n        actions = {{ set{at}; mark{at}; drop; NoAction; }}\n        \
                 default_action = NoAction();\n    }}"
            ),
        );
        line(&mut applied, format_args!("            t{at}.apply();"));
    }
    (declarations, applied)
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes everything");
}
