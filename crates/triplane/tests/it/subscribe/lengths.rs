//! Formats whose packets say how many messages they have, and not how many bytes.

use crate::subscribe::run_rules;
use crate::support::{Directory, run, triplane};

/// A count, and messages of two bytes: a kind and a value. The stack holds three.
const FORMAT: &str = r#"#include <v1model.p4>
header head_t { bit<8> count; }
header entry_t { @query_field_exact("kind") bit<8> kind; bit<8> value; }
struct headers_t {
    head_t head;
    @query_messages[count = "head.count"]
    entry_t[3] entries;
}
struct metadata_t { bit<8> left; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition select(hdr.head.count) { 0: accept; 255: accept; 1 .. 3: entry; default: more; }
    }
    state more { meta.left = 3; transition entry; }
    state entry {
        packet.extract(hdr.entries.next);
        meta.left = meta.left - 1;
        transition select(meta.left) { 0: accept; default: entry; }
    }
}
"#;
const RULES: &str = "kind == 1 : fwd(2)\nkind == 2 : fwd(3)\n";

/// A packet with entries of these kinds, numbered by their values.
fn packet(kinds: &[u8], values: &[u8]) -> Vec<u8> {
    let entries = kinds.iter().zip(values).flat_map(|(kind, value)| [*kind, *value]);
    [kinds.len() as u8].into_iter().chain(entries).collect()
}

fn with_tail(mut packet: Vec<u8>) -> Vec<u8> {
    packet.extend([0xee; 20]);
    packet
}

#[test]
fn a_count_is_enough() {
    let directory = Directory::new();
    let format = directory.write("counted.p4", FORMAT);
    for shape in [&[][..], &["--groups"]] {
        let sent = [
            with_tail(packet(&[1, 2, 1], &[10, 11, 12])),
            with_tail(packet(&[2, 2], &[13, 14])),
            with_tail(packet(&[3], &[15])),
            // More than the stack holds.
            with_tail(packet(&[1, 1, 2, 1, 2], &[16, 17, 18, 19, 20])),
        ];
        let got = run_rules(&format, RULES, shape, &sent, &[2, 3]);
        let messages = |port: usize| {
            let entries = |frame: &Vec<u8>| {
                let entries = frame[1..].chunks(2).take(frame[0].into());
                entries.map(|entry| (entry[0], entry[1])).collect::<Vec<_>>()
            };
            got[port].iter().flat_map(entries).collect::<Vec<_>>()
        };
        assert_eq!(messages(0), [(1, 10), (1, 12), (1, 16), (1, 17), (1, 19)], "{shape:?}");
        assert_eq!(messages(1), [(2, 11), (2, 13), (2, 14), (2, 18), (2, 20)], "{shape:?}");
        // What is behind the last message leaves with it, and nothing else does.
        let tails = |port: usize| got[port].iter().filter(|frame| frame.ends_with(&[0xee; 20])).count();
        let bare = got.iter().flatten().filter(|frame| frame.len() == 1 + 2 * usize::from(frame[0])).count();
        assert_eq!(tails(0) + tails(1) + bare, got[0].len() + got[1].len(), "{shape:?}: {got:02x?}");
        assert!(tails(0) >= 1 && tails(1) >= 2 && bare >= 2, "{shape:?}: {got:02x?}");
    }
}

#[test]
fn explain_reads_on_where_the_stack_ends() {
    let directory = Directory::new();
    let (format, rules) = (directory.write("counted.p4", FORMAT), directory.write("rules.sub", RULES));
    let hex: String = packet(&[1, 1, 2, 1, 2], &[0; 5]).iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = run(&mut triplane(&["subscribe", "explain", &format, &rules, "--packet", &hex])).ok().stdout;
    assert_eq!((shown.matches("fwd(2)").count(), shown.matches("fwd(3)").count()), (3, 2), "{shown}");
}
