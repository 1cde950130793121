//! Entries as users write them, bound to a P4Info.

use diagnostics::{Diagnostics, SourceMap, Span};
use p4runtime_proto::config::P4Info;

use super::entry::{Change, bind};
use super::{names, show, text};

const INFO: &str = r#"
tables {
  preamble { id: 33554433 name: "In.acl" }
  match_fields { id: 1 name: "hdr.ipv4.src" bitwidth: 32 match_type: TERNARY }
  match_fields { id: 2 name: "hdr.udp.port" bitwidth: 16 match_type: RANGE }
  match_fields { id: 3 name: "meta.vrf" bitwidth: 12 match_type: EXACT }
  action_refs { id: 16777217 }
  action_refs { id: 16777218 }
  size: 8
}
tables {
  preamble { id: 33554434 name: "In.routes" }
  match_fields { id: 1 name: "hdr.ipv4.dst" bitwidth: 32 match_type: LPM }
  action_refs { id: 16777217 }
  action_refs { id: 16777218 }
}
actions {
  preamble { id: 16777217 name: "In.forward" }
  params { id: 1 name: "mac" bitwidth: 48 }
  params { id: 2 name: "port" bitwidth: 9 }
}
actions { preamble { id: 16777218 name: "In.drop" } }
"#;

/// Returns the entry as it is printed, or its rendered diagnostics.
fn read(table: &str, line: &str, change: Change) -> String {
    let info: P4Info = p4runtime_proto::from_text(INFO).expect("it is a P4Info");
    let table = names::look("table", table, &names::tables(&info)).expect("the table is there");
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("entry", line);
    let end = Span::new(file, line.len() as u32, line.len() as u32);
    let entry = text::parse(file, line, &mut diagnostics)
        .and_then(|written| bind(&info, table, &written, change, end, &mut diagnostics));
    match entry {
        Some(entry) => show::entry(&info, table, &entry).to_string(),
        None => diagnostics.iter().map(|one| one.message.clone()).collect::<Vec<_>>().join("; "),
    }
}

#[test]
fn printed_entries_parse_to_the_same_entries() {
    for (table, line, printed) in [
        (
            "routes",
            "dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=0x2)",
            "hdr.ipv4.dst=10.0.0.0/8 -> In.forward(mac=02:00:00:00:00:01, port=2)",
        ),
        (
            "In.routes",
            "forward(1, port=3) dst=10.0.0.1",
            "hdr.ipv4.dst=10.0.0.1/32 -> In.forward(mac=00:00:00:00:00:01, port=3)",
        ),
        ("routes", "default -> drop", "default -> In.drop()"),
        ("routes", "dst=* -> drop()", "hdr.ipv4.dst=* -> In.drop()"),
        ("routes", "timeout=1e-9, dst=1/1 drop", "hdr.ipv4.dst=0.0.0.1/1, timeout=0.000000001 -> In.drop()"),
        ("routes", "timeout=2.5s, dst=1/1 drop", "hdr.ipv4.dst=0.0.0.1/1, timeout=2.5 -> In.drop()"),
        (
            "acl",
            "src=10.0.0.0/8, port=1..1023, vrf=5, priority=7 -> drop()",
            "hdr.ipv4.src=10.0.0.0&&&255.0.0.0, hdr.udp.port=1..1023, meta.vrf=5, priority=7 -> In.drop()",
        ),
        ("acl", "src=* port=0..65535 vrf=0 priority=1 drop", "meta.vrf=0, priority=1 -> In.drop()"),
    ] {
        assert_eq!(read(table, line, Change::Insert), printed, "{line}");
        assert_eq!(read(table, printed, Change::Insert), printed);
    }
}

#[test]
fn all_mistakes_of_a_line_are_reported_together() {
    let expect_errors = |table: &str, line: &str, messages: &[&str]| {
        let said = read(table, line, Change::Insert);
        messages.iter().for_each(|message| assert!(said.contains(message), "{line}: {said}"));
    };
    expect_errors(
        "routes",
        "dts=10.0.0.0/8 -> forwrad(1, 2)",
        &["no key field `dts`", "no action `forwrad` in `In.routes`"],
    );
    expect_errors(
        "routes",
        "dst=10.0.0.0/33 -> drop()",
        &["lpm, 32 bits wide: `33` is not a prefix length from 0 to 32"],
    );
    expect_errors("routes", "dst=10.0.0.0/8", &["the entry has no action"]);
    expect_errors("routes", "dst=1 dst=2 -> drop()", &["is given twice"]);
    expect_errors("routes", "dst=1 -> forward(mac=1)", &["missing: `port`"]);
    expect_errors("routes", "dst=1 -> forward(1, 512)", &["`port` is 9 bits wide"]);
    expect_errors("routes", "dst=1 -> forward(1, 2, 3)", &["too many arguments"]);
    expect_errors("routes", "dst= -> drop()", &["expected a value here"]);
    expect_errors("routes", "dst=1 -> drop(", &["expected an argument or `)` here"]);
    expect_errors("routes", "dst=1 -> drop() -> drop()", &["an entry has one action"]);
    expect_errors("routes", "default dst=1 -> drop()", &["a default action takes no key"]);
    expect_errors("acl", "src=1 -> drop()", &["`meta.vrf` is exact", "need a priority"]);
    expect_errors("acl", "vrf=1 priority=-1 -> drop()", &["a priority is a number, at least 1"]);
    for timeout in ["1e-10", "-1", "1e10", "nan", "soon", "5ss"] {
        expect_errors("routes", &format!("dst=1 timeout={timeout} -> drop()"), &["a timeout is a number of seconds"]);
    }
}

#[test]
fn no_text_panics_the_parser() {
    let pieces = [
        "->", "-", "=", ",", "(", ")", "|", "weight", "group", "7", "\"", "dst", "default", "é", "1/", "&&&", "..",
        " ", "*", "drop", "\0",
    ];
    let mut random = rng::SplitMix64::new(1);
    for _ in 0..20_000 {
        let mut line = String::new();
        for _ in 0..random.below(9) {
            line.push_str(pieces[random.below(pieces.len() as u64) as usize]);
        }
        let said = read(if random.percent(50) { "routes" } else { "acl" }, &line, Change::Delete);
        assert!(!said.is_empty(), "{line:?} is neither read nor refused");
        let mut diagnostics = Diagnostics::new();
        let file = SourceMap::new().add("entry", &*line);
        let listing = text::parse_listing(file, &line, &mut diagnostics).is_some();
        let item = text::parse_profile_item(file, &line, &mut diagnostics).is_some();
        let all = text::parse_alternatives(file, &line, &mut diagnostics).is_some();
        assert_eq!(listing && item && all, !diagnostics.has_errors(), "{line:?}");
    }
}
