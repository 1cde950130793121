//! Updates of counters by products and differences. A rule for each expected value shows it by the port that a packet
//! leaves by.

use crate::subscribe::run_rules;
use crate::support::{Directory, run, triplane};

const FORMAT: &str = "#include <v1model.p4>
header item_t { @query_field_exact(\"kind\") bit<8> kind; @query_field(\"size\") bit<8> size; @query_field(\"wide\") bit<64> wide; }
header extra_t { @query_field(\"extra\") bit<8> extra; }
@query_counter(volume)
@query_counter(turnover)
@query_counter(spread)
struct headers_t { item_t item; extra_t extra; }
struct metadata_t { bit<1> unused; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.item);
        transition select(hdr.item.kind) { 9: extra; default: accept; }
    }
    state extra { packet.extract(hdr.extra); transition accept; }
}
";

/// Runs packets (kind, size, wide) and returns the numbers of packets that leave by ports 2 and 3.
fn run_packets(rules: &str, packets: &[(u8, u8, u64)]) -> [usize; 2] {
    let directory = Directory::new();
    let format = directory.write("items.p4", FORMAT);
    let frames: Vec<Vec<u8>> = packets
        .iter()
        .map(|(kind, size, wide)| [&[*kind, *size][..], &wide.to_be_bytes(), &[5; 20]].concat())
        .collect();
    let got = run_rules(&format, rules, &[], &frames, &[2, 3]);
    [got[0].len(), got[1].len()]
}

/// Checks that a counter has a value after some packets: the next packet, of kind 0, leaves by port 2.
#[track_caller]
fn leaves(updates: &str, packets: &[(u8, u8, u64)], counter: &str, value: u64) {
    let rules = format!(
        "{updates}\nkind == 0 and {counter} == {value} : fwd(2)\nkind == 0 and {counter} != {value} : fwd(3)\n"
    );
    let packets = [packets, &[(0, 0, 0)]].concat();
    assert_eq!(run_packets(&rules, &packets), [1, 0], "{updates}: {counter} == {value}");
}

#[test]
fn operands_are_products_and_differences() {
    const MAX: u64 = u64::MAX;
    leaves("kind == 1 : turnover += size * wide", &[(1, 3, 50), (1, 2, 10)], "turnover", 170);
    leaves("kind == 1 : turnover <- size * wide", &[(1, 2, MAX / 2), (1, 2, 1)], "turnover", 2);
    leaves("kind == 1 : turnover <- size * wide", &[(1, 2, MAX / 2)], "turnover", MAX - 1);
    leaves("kind == 1 : turnover <- size * wide", &[(1, 2, MAX / 2 + 1)], "turnover", MAX);
    leaves("kind == 1 : turnover <- wide * wide", &[(1, 0, MAX)], "turnover", MAX);
    leaves("kind == 1 : spread <- wide - size", &[(1, 20, 50)], "spread", 30);
    leaves("kind == 1 : spread <- size - wide", &[(1, 20, 50)], "spread", 0);
    leaves("kind == 1 : spread <- 100 - size", &[(1, 20, 0)], "spread", 80);
    leaves("kind == 1 : spread <- size - 7", &[(1, 5, 0)], "spread", 0);
    leaves("kind == 1 : volume += 5\nkind == 2 : volume <- volume * 3", &[(1, 0, 0), (2, 0, 0)], "volume", 15);
    leaves(
        "kind == 1 : volume += 9\nkind == 2 : volume <- max(volume, size * 2)",
        &[(1, 0, 0), (2, 7, 0)],
        "volume",
        14,
    );
    leaves("kind == 1 : volume -= size - 2\nkind == 2 : volume <- 50", &[(2, 0, 0), (1, 9, 0)], "volume", 43);
}

#[test]
fn counters_in_operands_have_their_values_before_the_message() {
    let all = "kind == 1 : volume <- wide; turnover <- volume * 2; spread <- 100 - volume";
    let packets = [(1, 0, 10), (1, 0, 40)];
    leaves(all, &packets, "volume", 40);
    leaves(all, &packets, "turnover", 20);
    leaves(all, &packets, "spread", 90);
    // Also if the other counter's update comes from another rule.
    leaves("kind == 1 : volume <- wide\nwide > 1 : spread <- volume", &packets, "spread", 10);
}

#[test]
fn a_field_of_an_absent_header_updates_nothing() {
    let rules = "kind == 9 : volume <- 3 * extra\nkind == 8 : volume <- 3 * extra\nkind == 7 : volume <- extra - 1";
    leaves(rules, &[(9, 0, 0), (8, 0, 0), (7, 0, 0)], "volume", 15);
}

#[test]
fn updates_are_compared_and_shown_with_both_terms() {
    let directory = Directory::new();
    let format = directory.write("items.p4", FORMAT);
    let written = |name: &str, rule: &str| directory.write(name, format!("kind == 1 : {rule}\n"));
    let diff = |one: &str, other: &str| {
        let (entries, program) = (directory.path("e.json"), directory.path("p.p4"));
        let rules = written("a.sub", one);
        run(&mut triplane(&["subscribe", "compile", &format, &rules, "-o", &entries, "--program", &program])).ok();
        run(&mut triplane(&["subscribe", "diff", &format, &entries, &written("b.sub", other)])).code
    };
    for rule in ["volume += size * wide", "volume <- size - turnover", "volume <- turnover * 3", "volume -= 7 - size"] {
        assert_eq!(diff(rule, rule), Some(0), "{rule}");
    }
    for (one, other) in [
        ("volume += size * wide", "volume += size - wide"),
        ("volume += size * wide", "volume += size"),
        ("volume += size * 3", "volume += size * 4"),
        ("volume <- turnover * 3", "volume <- spread * 3"),
    ] {
        assert_eq!(diff(one, other), Some(1), "{one} and {other}");
    }
    let shown = run(&mut triplane(&[
        "subscribe",
        "explain",
        &format,
        &written("a.sub", "volume += size * wide"),
        "--message",
        "kind=1",
    ]));
    assert!(shown.ok().stdout.contains("volume <- volume + size * wide"));
}
