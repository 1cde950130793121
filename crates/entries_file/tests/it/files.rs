//! Entries files and their meaning or errors: each `testdata/NAME.json` has a `NAME.expected`. `UPDATE_EXPECT=1`
//! regenerates the expectations.

use std::io::Cursor;
use std::path::Path;

use bits::Bits;
use diagnostics::{Diagnostics, FileId, SourceMap, SourcePosition};
use entries_file::{Entries, StreamCheck};
use ir::{
    Action, ActionParam, Algorithm, Body, BodyId, BodyKind, Expr, Key, KeyValue, LocId, MatchKind, Meter, Profile,
    Program, Register, Slot, SlotKind, Table, TableAction, Unit, ValueSet,
};
use testing::golden::{GoldenFiles, inputs};

/// Maximum number of a port.
const MAX_PORT: u32 = 510;

fn slot(program: &mut Program, name: &str, width: u32, kind: SlotKind) -> ir::SlotId {
    program.slots.push(Slot { name: name.into(), width, kind, signed: false })
}

fn action(program: &mut Program, name: &str, params: &[(&str, u32)]) -> ir::ActionId {
    let body = program.bodies.push(Body { name: name.into(), kind: BodyKind::Action, blocks: Default::default() });
    let params = params
        .iter()
        .map(|(param, width)| ActionParam {
            name: (*param).into(),
            slot: slot(program, &format!("{name}.{param}"), *width, SlotKind::Argument),
            annotations: Vec::new(),
        })
        .collect();
    let loc = LocId::from_u32(0);
    program.actions.push(Action { name: name.into(), params, body, annotations: Vec::new(), loc })
}

fn table(program: &mut Program, name: &str, keys: &[(&str, u32, MatchKind)], actions: &[ir::ActionId]) -> ir::TableId {
    let keys = keys
        .iter()
        .map(|(key, width, kind)| Key {
            name: (*key).into(),
            expr: Expr::Const(Bits::zero(*width)),
            width: *width,
            kind: *kind,
            signed: false,
            annotations: Vec::new(),
        })
        .collect();
    let only = |action: &ir::ActionId| TableAction { action: *action, default_only: false, table_only: false };
    let actions = actions.iter().map(only).collect();
    program.tables.push(Table { keys, actions, largest_priority_wins: true, ..Table::new(name) })
}

/// A router's table, an access list with every match kind, a table that the control plane may not change, a register.
pub fn program() -> Program {
    let mut program = Program { arch: "test".into(), ..Program::default() };
    program.locs.push(SourcePosition { file: String::new(), line: 0, column: 0 });
    assert_eq!(program.bodies.next_key(), BodyId::from_u32(0));
    let drop = action(&mut program, "In.drop", &[]);
    let forward = action(&mut program, "In.forward", &[("mac", 48), ("port", 9)]);
    table(&mut program, "In.routes", &[("hdr.ip.dst", 32, MatchKind::Lpm)], &[drop, forward]);
    let keys = [
        ("hdr.ip.proto", 8, MatchKind::Exact),
        ("hdr.ip.src", 32, MatchKind::Ternary),
        ("hdr.tcp.port", 16, MatchKind::Range),
        ("meta.vlan", 12, MatchKind::Optional),
        ("meta.flow", 16, MatchKind::Selector),
    ];
    table(&mut program, "In.acl", &keys, &[drop]);
    let fixed = table(&mut program, "In.fixed", &[("hdr.ip.ttl", 8, MatchKind::Exact)], &[drop]);
    program.tables[fixed].const_entries = true;
    program.tables[fixed].const_default = true;
    program.tables[fixed].actions[0].default_only = true;
    program.registers.push(Register { name: "In.seen".into(), width: 32, size: 16, annotations: Vec::new() });
    let profile = |name: &str, selector| Profile {
        name: name.into(),
        size: 16,
        selector,
        hash_width: 16,
        annotations: Vec::new(),
    };
    let ecmp = program.profiles.push(profile("In.ecmp", Some(Algorithm::Crc16)));
    let plain = program.profiles.push(profile("In.plain", None));
    let spread = table(&mut program, "In.spread", &[("meta.net", 8, MatchKind::Exact)], &[drop, forward]);
    program.tables[spread].profile = Some(ecmp);
    let shared = table(&mut program, "In.shared", &[("meta.net", 8, MatchKind::Exact)], &[drop]);
    program.tables[shared].profile = Some(plain);
    let meter = |name: &str, size| Meter { name: name.into(), unit: Unit::Packets, size, annotations: Vec::new() };
    program.meters.push(meter("In.limits", Some(4)));
    let direct = program.meters.push(meter("In.each", None));
    let aged = table(&mut program, "In.aged", &[("meta.net", 8, MatchKind::Exact)], &[drop]);
    program.tables[aged].meter = Some(direct);
    program.tables[aged].idle_timeout = true;
    let fields = vec![("kind".into(), 8, MatchKind::Exact), ("flags".into(), 8, MatchKind::Ternary)];
    program.value_sets.push(ValueSet { name: "P.kinds".into(), fields, size: 4, annotations: Vec::new() });
    program
}

fn read(name: &str, text: &str) -> String {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    let mut diagnostics = Diagnostics::new();
    let program = program();
    let entries = entries_file::parse(&map, file, &program, MAX_PORT, &mut diagnostics);
    assert_eq!(entries.is_none(), diagnostics.has_errors(), "either entries or errors");
    let mut out = diagnostics.render(&map, false);
    let Some(entries) = entries else { return out };
    for entry in &entries.tables {
        let keys: Vec<_> = entry.keys.iter().map(|key| format!("{key:?}")).collect();
        let name = &program.tables[entry.table].name;
        out += &format!("{name} [{}] priority {} -> {:?}", keys.join(" "), entry.priority, entry.target);
        out += &format!(" idle {} ns, {:?}\n", entry.idle_timeout_ns, entry.meter);
    }
    for (table, call, _) in &entries.defaults {
        out += &format!("{} default -> {call:?}\n", program.tables[*table].name);
    }
    for member in &entries.members {
        out += &format!("member {} -> {:?}\n", member.id, member.call);
    }
    for group in &entries.member_groups {
        out += &format!("group {} -> {:?}\n", group.id, group.members);
    }
    for (set, member, _) in &entries.value_sets {
        out += &format!("{} has {member:?}\n", program.value_sets[*set].name);
    }
    for (meter, index, rates) in &entries.meters {
        out += &format!("{} {index:?} {rates:?}\n", program.meters[*meter].name);
    }
    for queue in &entries.queues {
        out += &format!("{queue:?}\n");
    }
    for crc in &entries.crcs {
        out += &format!("{crc:?}\n");
    }
    for group in &entries.groups {
        out += &format!("{group:?}\n");
    }
    for mirror in &entries.mirrors {
        out += &format!("{mirror:?}\n");
    }
    for (register, index, value) in &entries.registers {
        out += &format!("{}[{index}] = {value}\n", program.registers[*register].name);
    }
    out
}

/// Checks a file as a stream: its diagnostics, and its content if there is no error. `None` if its form is unusual.
pub fn check_stream(program: &Program, bytes: &[u8]) -> Option<(Diagnostics, Option<Entries>)> {
    let mut diagnostics = Diagnostics::new();
    let input = Box::new(Cursor::new(bytes));
    let checked = entries_file::check_stream(input, FileId(0), program, MAX_PORT, &mut diagnostics);
    match checked.expect("memory can be read") {
        StreamCheck::Unusual => {
            assert!(diagnostics.is_empty(), "nothing is reported twice");
            None
        }
        StreamCheck::Mistakes => Some((diagnostics, None)),
        StreamCheck::Entries(stream) => Some((diagnostics, Some(stream.into_entries()))),
    }
}

/// Holds a stream against the whole file: diagnostics, their numbers, and content. Returns false if the form of the
/// text is unusual.
pub fn check_same_as_whole(program: &Program, name: &str, text: &str) -> bool {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    let mut diagnostics = Diagnostics::new();
    let parsed = entries_file::parse(&map, file, program, MAX_PORT, &mut diagnostics);
    let Some((streamed, entries)) = check_stream(program, text.as_bytes()) else { return false };
    assert_eq!(streamed.render(&map, false), diagnostics.render(&map, false), "{text}");
    let numbers = |of: &Diagnostics| (of.error_count(), of.dropped());
    assert_eq!(numbers(&streamed), numbers(&diagnostics), "{text}");
    assert_eq!(entries, parsed, "{text}");
    true
}

#[test]
fn streams_are_checked_as_whole_files_are() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let unusual = inputs(dir, "json").into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        !check_same_as_whole(&program(), &name, &std::fs::read_to_string(path).unwrap())
    });
    let unusual: Vec<_> = unusual.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(unusual, ["not_json.json"]);
}

#[test]
fn syntax_errors_between_and_in_elements_are_found_in_their_order() {
    let entry = r#"{"table": "spread", "match": {"net": 1}, "member_id": 1}"#;
    let good = format!(
        "{{\"action_profile_members\": [], \"table_entries\": [\n{entry},\n{entry}\n], \"queue_entries\": []}}"
    );
    assert!(check_same_as_whole(&program(), "good.json", &good));
    for (from, to, is_streamed) in [
        ("},\n{", "}\n{", true),
        ("},\n{", "},,\n{", false),
        ("\n]", ",\n]", true),
        ("\n]", "// ]\n/* ] */]", true),
        ("\n]", "// the line ends here\r,{}]", true),
        ("\n]", ", 5]", false),
        ("\n]", "\n", false),
        ("\"net\": 1}, \"member_id\": 1}\n]", "\"net\": 1, \"member_id\": 1}\n]", true),
        ("\"match\": {", "\"match\" {", true),
        ("\"match\": {", "\"match\": [", true),
        ("\"net\": 1", "\"net\": 0x1", true),
        ("\"net\": 1", "\"net\": nothing", true),
        ("\"net\": 1", "\"n\\u0065t\": \"1\"", true),
        ("\"queue_entries\": []", "\"queue_entries\": [}", false),
        ("\"action_profile_members\": []", "\"action_profile_members\": [}", false),
        ("\"table_entries\"", "\"table_entries\": [], \"table_entries\"", false),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from:?}");
        assert_eq!(check_same_as_whole(&program(), "e.json", &text), is_streamed, "{from:?} -> {to:?}: {text}");
    }
}

#[test]
fn positions_count_from_behind_a_byte_order_mark() {
    let text = r#"{"table_entries": [{"table": "nothing"}]}"#;
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("e.json", text);
    let input = Cursor::new(format!("\u{feff}{text}"));
    let checked = entries_file::check_stream(Box::new(input), file, &program(), MAX_PORT, &mut diagnostics);
    assert!(matches!(checked, Ok(StreamCheck::Mistakes)));
    let findings: Vec<&str> = diagnostics.iter().map(|finding| map.text(finding.primary.span)).collect();
    assert_eq!(findings, ["\"nothing\""]);
}

#[test]
fn files_mean_what_is_expected() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = inputs(dir, "json");
    let mut golden = GoldenFiles::new();
    assert!(files.len() >= 4, "the test data are there");
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let actual = read(&name, &std::fs::read_to_string(&path).unwrap());
        golden.compare(path.with_extension("expected"), &actual);
    }
    golden.finish();
}

#[test]
fn left_out_elements_match_everything() {
    let text = r#"{"table_entries": [{"table": "acl", "match": {"proto": 6}, "action_name": "drop", "priority": 1}]}"#;
    let mut map = SourceMap::new();
    let file = map.add("e.json", text);
    let mut diagnostics = Diagnostics::new();
    let entries = entries_file::parse(&map, file, &program(), MAX_PORT, &mut diagnostics).expect("the file is right");
    let zero = |width| Bits::zero(width);
    let wanted = [
        KeyValue::Exact(Bits::new(6, 8)),
        KeyValue::Ternary(zero(32), zero(32)),
        KeyValue::Range(zero(16), Bits::ones(16)),
        KeyValue::Any,
    ];
    assert_eq!(entries.tables[0].keys, wanted);
}

#[test]
fn no_text_makes_the_reader_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let good = ["good.json", "control_plane.json"].map(|name| std::fs::read(folder.join(name)).unwrap());
    let mut generator = rng::SplitMix64::new(7);
    let mut random = || (generator.next_u64() >> 33) as usize;
    let program = program();
    let mut streamed = 0;
    for round in 0..4000 {
        let mut bytes = good[round % 2].clone();
        for _ in 0..1 + random() % 6 {
            let at = random() % bytes.len();
            match random() % 3 {
                0 => bytes[at] = b"{}[]\",:0123456789abcdef\\-/\n"[random() % 27],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[random() % bytes.len()]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        read("fuzz.json", &text);
        streamed += usize::from(check_same_as_whole(&program, "fuzz.json", &text));
    }
    assert!(streamed > 1000, "only {streamed} of the texts were streamed");
    for deep in ["[".repeat(100_000), "{\"table_entries\":".repeat(50_000)] {
        assert!(read("deep.json", &deep).contains("invalid JSON"));
    }
}
