//! Soundness of the analysis of possible messages: rules that it declares impossible, and packets as counterexamples.
//! Packets are generated from the constants of the format's own text, and kept if the parser finds other headers in
//! them than in previous ones.
//!
//! For more packets: `SUBSCRIBE_FUZZ_COUNT=1000000 cargo test -p subscribe_p4 --test it possible::`.

mod seen;

use std::collections::BTreeSet;
use std::path::Path;

use diagnostics::{Diagnostics, FileId, SourceMap};
use rng::SplitMix64;
use subscribe::{ColumnLayout, Condition, LintFinding, Message, NoIncludes, Subject, Subscriptions};
use subscribe_p4::{ProgramFormat, RuleFormat};

use crate::support::checked::checked;
use seen::Seen;

/// A format with its analysis.
pub(crate) struct Read {
    pub text: String,
    pub format: ProgramFormat,
    pub rules: RuleFormat,
}

impl Read {
    fn new(path: &str) -> Read {
        Read::of(std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the format"))
    }

    fn of(text: String) -> Read {
        let (typed, map) = checked("format.p4", &text);
        let mut diagnostics = Diagnostics::new();
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
        let format = format.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        let rules = subscribe_p4::rule_format(&format).expect("names differ");
        Read { text, format, rules }
    }

    /// Returns the highlighted texts of the diagnostic for a rule that never matches; `None` for other rules.
    fn never(&self, rule: &str) -> Option<Vec<String>> {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let format = &self.rules.format;
        let rules =
            subscribe::parse(&mut map, "r", format!("{rule} : fwd(1)"), format, &mut NoIncludes, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{}", diagnostics.render(&map, false));
        let layout = ColumnLayout::sensible(format, &rules);
        let mut all = Subscriptions::new(format.clone(), layout, Default::default());
        all.change(&[], rules).expect("it fits");
        let never = all.lint_never_matches(&self.rules.possible(&self.format));
        never
            .into_iter()
            .find_map(|useless| match useless {
                LintFinding::NeverMatches { because, .. } => Some(because),
                LintFinding::Covered { .. } | LintFinding::IneffectiveDrop { .. } => None,
            })
            .map(|because| because.iter().map(|span| rule[span.start as usize..span.end as usize].to_owned()).collect())
    }
}

/// Formats with rules that never match, and with rules that only seem so.
const RULES: [(&str, &[&str], &[&str]); 8] = [
    (
        "testdata/behind.p4",
        &["not valid(h) and valid(g)", "d == 254 and not valid(h)"],
        &["valid(g)", "valid(h) and not valid(g)", "not valid(h)", "d == 254"],
    ),
    (
        "testdata/kinds.p4",
        &[
            "valid(ipv4) and valid(ipv6)",
            "valid(order) and valid(trade)",
            "kind == 2 and level < 3",
            "kind == 7 and shares > 2",
            "type == 0x86dd and src4 in 10.0.0.0/8",
            "not valid(ethernet) and valid(ipv4)",
            "valid(ipv4) and not (type == 0x800)",
        ],
        // A packet may end after any header.
        &[
            "kind == 1 and not valid(order)",
            "type == 0x800 and not valid(ipv4)",
            "valid(ipv4) and not valid(kind)",
            "kind == 2 and shares > 2",
            "type == 5 and kind == 1 and level == 2",
        ],
    ),
    (
        "testdata/odd.p4",
        &[
            "valid(either.short) and valid(either.long)",
            "more == 9 and valid(either.short)",
            "left in 5..9",
            "long == 5 and tag == 1",
            "kind == 31 and valid(twin)",
            "kind == 3 and next == 8 and valid(twin)",
        ],
        &[
            "tag == 2 and valid(either.long)",
            "tag == 3 and valid(either.short)",
            "tag == 3 and valid(either.long)",
            "valid(inner) and valid(twin)",
            "valid(made) and not valid(head)",
            "valid(head) and kind == 1 and not valid(step)",
            "more == 9",
            "left == 2",
            "tag == 2 and valid(either.short)",
            "kind == 32 and next < 16",
            "inner == 200",
            "kind == 200",
        ],
    ),
    (
        "testdata/mixed.p4",
        &[
            "kind == 0x53 and not (fee >= 0)",
            "kind == 0x42 and fee == 2",
            "kind in {0x60, 0x61} and price == 1",
            "kind == 0x43",
            "version == 3",
            "proto == 16 and kind == 0x42",
            "not valid(outer)",
            "valid(buy) and valid(note)",
        ],
        &["kind == 0x53 and fee == 2", "kind == 0x61", "version == 2 and valid(note)", "proto == 17 and price == 3"],
    ),
    (
        "../../examples/market-data/feed.p4",
        &[
            "kind == \"D\" and price > 5",
            "kind == \"X\" and stock == \"A\"",
            "valid(trade) and kind == \"A\"",
            "not valid(mold)",
        ],
        &["kind == \"P\" and price > 5", "kind == \"Q\"", "kind == \"D\" and shares > 5 or kind == \"A\""],
    ),
    ("../../examples/subscribe-router/router.p4", &["not valid(ethernet) and valid(ipv4)"], &["valid(ethernet)"]),
    (
        "../../examples/dns/dns.p4",
        &["valid(name) and not valid(udp)", "valid(answer)"],
        &["type == 1 and not valid(name)"],
    ),
    ("../../examples/cache/cache.p4", &["valid(value) and not valid(store)"], &["valid(store)"]),
];

#[test]
fn rules_that_match_no_packet_are_reported() {
    for (path, never, at_times) in RULES {
        let read = Read::new(path);
        for rule in never {
            assert!(read.never(rule).is_some(), "{path}: `{rule}` never matches");
        }
        for rule in at_times {
            assert_eq!(read.never(rule), None, "{path}: `{rule}` matches some packets");
        }
    }
}

/// Returns a format of single messages with these parser states.
fn made(states: &str) -> Read {
    Read::of(format!(
        "#include <v1model.p4>
        header a_t {{ @query_field(\"x\") bit<8> x; }}
        header b_t {{ @query_field(\"y\") bit<8> y; }}
        header s_t {{ bit<8> v; }}
        struct headers_t {{ a_t a; b_t b; s_t[2] s; }}
        struct metadata_t {{ bit<8> seen; }}
        bit<1> bump(inout a_t a) {{ a.x = 7; return 0; }}
        parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
            {states}
            state b {{ hdr.b.setValid(); hdr.b.y = 1; transition accept; }}
        }}"
    ))
}

#[test]
fn elements_that_a_stack_has_not_end_the_parser_where_they_are_asked_for() {
    for before in [
        "transition select(hdr.s.last.v) { 0: b; default: b; }",
        "meta.seen = hdr.s.last.v; transition b;",
        "if (hdr.s.last.isValid()) { meta.seen = 1; } transition b;",
        "packet.extract(hdr.s.next); packet.extract(hdr.s.next); hdr.s.next.setValid(); transition b;",
        "packet.extract(hdr.s.next); packet.extract(hdr.s.next); hdr.s.next.v = 4; transition b;",
    ] {
        let read = made(&format!("state start {{ packet.extract(hdr.a); {before} }}"));
        assert_eq!(read.never("valid(a) and not valid(b)"), None, "{before}");
    }
    let read = made("state start { packet.extract(hdr.a); meta.seen = 3; transition b; }");
    assert!(read.never("valid(a) and not valid(b)").is_some());
}

#[test]
fn a_key_that_writes_leaves_what_was_selected_on_unknown() {
    let one = "state one { transition select(hdr.a.x) { 1: accept; default: b; } }";
    let with = |keys| {
        made(&format!(
            "state start {{ packet.extract(hdr.a); transition select({keys}) {{ (1, _): one; default: accept; }} }} {one}"
        ))
    };
    assert_eq!(with("hdr.a.x, bump(hdr.a)").never("valid(b)"), None);
    assert!(with("hdr.a.x, meta.seen").never("valid(b)").is_some());
}

#[test]
fn tests_that_exclude_each_other_are_shown() {
    let feed = Read::new("../../examples/market-data/feed.p4");
    let because = feed.never("price > 5 and shares > 3 and kind == \"D\"").expect("it never matches");
    assert_eq!(because, ["price > 5", "kind == \"D\""]);
    let mixed = Read::new("testdata/mixed.p4");
    assert_eq!(mixed.never("price > 5 and kind == 0x43").expect("it never matches"), ["kind == 0x43"]);
}

/// Whether a message is among the possible ones.
fn holds(possible: &Condition, message: &Message, read: &Read) -> bool {
    let value = |subject| match subject {
        Subject::Field(id) => message.field(&read.rules.format, id),
        _ => None,
    };
    possible.holds(&|header| message.is_valid(header), &value)
}

/// Returns the numbers in a text as bytes.
fn numbers(text: &str) -> Vec<Vec<u8>> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let numbers: BTreeSet<u64> = words
        .filter_map(|word| match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        })
        .collect();
    let bytes = |number: u64| {
        let all = number.to_be_bytes();
        let least = 8 - number.leading_zeros() as usize / 8;
        (least.max(1)..=least.max(2)).map(move |bytes| all[8 - bytes..].to_vec())
    };
    numbers.into_iter().flat_map(bytes).collect()
}

/// Searches for packets with ever more headers. Returns the number of distinct header and value sets seen.
fn search(read: &Read, start: &[u8], rounds: u64, seed: u64) -> Result<(usize, usize), String> {
    let mut rng = SplitMix64::new(seed);
    let mut seen = Seen::new(read);
    let possible = read.rules.possible(&read.format);
    let words = numbers(&read.text);
    let mut kept: Vec<Vec<u8>> = vec![vec![0; 80], start.to_vec()];
    let (mut sets, mut ways, mut messages) = (BTreeSet::new(), BTreeSet::new(), 0);
    for _ in 0..rounds {
        let mut packet: Vec<u8> = kept[rng.below(kept.len() as u64) as usize].clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(packet.len() as u64 + 1) as usize;
            match rng.below(8) {
                0 => packet.truncate(at),
                1 => packet.extend((0..rng.below(40)).map(|_| rng.below(256) as u8)),
                2 | 3 if at < packet.len() => packet[at] = rng.below(256) as u8,
                _ => {
                    let word = &words[rng.below(words.len() as u64) as usize];
                    if at + word.len() <= packet.len() {
                        packet[at..at + word.len()].copy_from_slice(word);
                    }
                }
            }
        }
        packet.truncate(200);
        let (way, found) = seen.packet(&packet);
        if ways.insert(way) {
            kept.push(packet.clone());
        }
        for message in found {
            messages += 1;
            if !holds(&possible, &message, read) {
                return Err(format!("{packet:02x?} is {message:?}"));
            }
            sets.insert(message.valid);
        }
    }
    Ok((sets.len(), messages))
}

/// Returns a packet with one delete and one other message, and a truncated order.
const FEED: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45\0\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\0\0\0\0\0\0\x67\x20\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\
    \0\x13D\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05Q\0\x01ab\0\x24A\0\x02";
const MIXED: &[u8] = b"\x11\0\0\x03\x01\x42\x05\x53\x06\x07\x61";

/// Formats with an initial packet and a lower bound on the number of sets of valid headers to be found.
const SEARCHED: [(&str, &[u8], usize); 11] = [
    ("testdata/behind.p4", &[], 3),
    ("testdata/kinds.p4", &[], 12),
    ("testdata/odd.p4", &[], 14),
    ("testdata/mixed.p4", MIXED, 3),
    ("testdata/batch.p4", &[], 1),
    ("testdata/reports.p4", &[], 3),
    ("../../examples/market-data/feed.p4", FEED, 3),
    ("../../examples/subscribe-router/router.p4", &[], 2),
    ("../../examples/dns/dns.p4", &[], 3),
    ("../../examples/cache/cache.p4", &[], 3),
    ("../../examples/int-reports/report.p4", &[], 3),
];

fn rounds() -> u64 {
    testing::number("SUBSCRIBE_FUZZ_COUNT", 60_000)
}

#[test]
fn every_packet_is_among_what_there_can_be() {
    for (path, start, least) in SEARCHED {
        let read = Read::new(path);
        let (sets, messages) = search(&read, start, rounds(), 1).unwrap_or_else(|wrong| panic!("{path}: {wrong}"));
        assert!(sets >= least, "{path}: {sets} sets of headers in {messages} messages");
    }
}

/// Changes to a format that permit more packets than before.
const CHANGES: [(&str, &str); 7] = [
    ("10 .. 20: inner;", "10 .. 20: twin;"),
    ("1: short;", "1: long;"),
    ("0x80 &&& 0x80: step;", "0x80 &&& 0x80: either;"),
    ("(1, _): two;", "(_, 1): two;"),
    ("40 .. 49: twin;", "_: twin;"),
    ("hdr.inner.value = 0;", "hdr.step.setValid();"),
    ("hdr.made.value = hdr.head.next;", "hdr.head.kind = 77;"),
];

#[test]
fn packets_of_another_parser_are_not() {
    let text = Read::new("testdata/odd.p4").text;
    let own = Read::of(text.clone());
    for (is, was) in CHANGES {
        let changed = text.replace(is, was);
        assert_ne!(changed, text, "{is}");
        let other = Read::of(changed);
        // The packets belong to the changed parser, the analysis to the original one.
        let mixed = Read { text: other.text, format: own.format.clone(), rules: own.rules.clone() };
        let found = (1..4).any(|seed| search(&mixed, &[], rounds(), seed).is_err());
        assert!(found, "`{was}` in the place of `{is}`");
    }
}
