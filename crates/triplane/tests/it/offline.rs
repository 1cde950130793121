//! The command without a network: programs, captures and single packets in; text, JSON, captures and exit codes out.
//!
//! Text output is compared with the files in `tests/golden`; `UPDATE_EXPECT=1` regenerates them.

use std::process::Command;

use crate::support::{Directory, Done, drop_line, hex, root, run, triplane};
use wire::pcap::{Reader, Writer};

const ROUTER: &str = "examples/router/router.p4";
const ENTRIES: &str = "examples/router/entries.json";

/// Runs `triplane` to its end.
fn command(arguments: &[&str]) -> Done {
    run(&mut triplane(arguments))
}

/// Compares text with a golden file.
#[track_caller]
fn golden(name: &str, text: &str) {
    testing::golden::assert_golden(root().join("crates/triplane/tests/golden").join(name), text);
}

/// A frame from h1 to an address beyond the router, with a correct IPv4 header checksum.
fn frame(destination: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut header = hex("4500 0024 0001 0000 0011 0000 0a000101 00000000");
    header[8] = ttl;
    header[16..].copy_from_slice(&destination);
    let checksum = wire::checksum::checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [hex("0200000001fe 020000000101 0800"), header, hex("1388 1770 0010 0000 68656c6c 6f212121")].concat()
}

/// The ARP request "Who has 10.0.1.254?" from h1.
fn arp_request() -> Vec<u8> {
    hex("ffffffffffff 020000000101 0806 0001 0800 06 04 0001 020000000101 0a000101 000000000000 0a0001fe")
}

/// Writes a capture of these frames, one millisecond apart.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).expect("memory takes a header");
    for (number, frame) in (0u64..).zip(frames) {
        writer.write(1_700_000_000_000_000_000 + number * 1_000_000, frame).expect("memory takes a frame");
    }
    writer.into_inner()
}

/// Reads the frames of a capture file.
fn captured(path: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("the command wrote the file");
    Reader::new(bytes.as_slice()).expect("a capture").map(|frame| frame.expect("a frame").data).collect()
}

#[test]
fn a_run_from_file_to_file_routes_and_prints_a_summary() {
    let directory = Directory::new();
    let frames = [
        frame([10, 0, 2, 2], 64),
        arp_request(),
        frame([10, 9, 9, 9], 64),
        frame([10, 0, 2, 2], 1),
        frame([10, 0, 2, 77], 2),
        vec![0; 5],
    ];
    let input = directory.write("in.pcap", capture(&frames));
    let (one, two) = (directory.path("one.pcap"), directory.path("two.pcap"));
    let ports = [format!("1={input}:{one}"), format!("2=:{two}")];
    let done = command(&["run", ROUTER, "--entries", ENTRIES, "--port", &ports[0], "--port", &ports[1]]).ok();
    golden("run_summary.txt", &done.stdout);
    assert!(done.stdout.contains(&format!("router.p4:{}:9 (RouterIngress.no_route)", drop_line("no_route"))));

    let routed = |mut data: Vec<u8>, ttl: u8| {
        let expected = frame([data[30], data[31], data[32], data[33]], ttl);
        data[..12].copy_from_slice(&hex("020000000202 0200000002fe"));
        data[14..].copy_from_slice(&expected[14..]);
        data
    };
    assert_eq!(captured(&two), [routed(frames[0].clone(), 63), routed(frames[4].clone(), 1)]);
    let reply = "020000000101 0200000001fe 0806 0001 0800 06 04 0002 0200000001fe 0a0001fe 020000000101 0a000101";
    assert_eq!(captured(&one), [hex(reply)]);

    let json = command(&["run", ROUTER, "-e", ENTRIES, "-p", &ports[0], "-p", &ports[1], "--json"]).ok().json();
    assert_eq!(json["counters"]["port.1.rx.packets"], 6);
    assert_eq!(json["counters"]["port.2.tx.packets"], 2);
    assert_eq!(json["counters"]["drop.ingress.program"], 3);
    let drops = json["drops"].as_array().expect("a list");
    let total: u64 = drops.iter().map(|drop| drop["packets"].as_u64().expect("a number")).sum();
    assert_eq!(total, 3);
    assert!(drops.iter().all(|drop| drop["place"].as_str().is_some_and(|place| place.starts_with(ROUTER))), "{json:#}");
}

#[test]
fn a_run_without_entries_drops_everything_and_the_same_seed_gives_the_same_run() {
    let directory = Directory::new();
    let input = directory.write("in.pcap", capture(&[frame([10, 0, 2, 2], 64), arp_request()]));
    let port = format!("1={input}:");
    let first = command(&["run", ROUTER, "--port", &port, "--seed", "7"]).ok();
    assert!(first.stdout.contains("1 dropped in ingress by the program"), "{first:?}");
    assert_eq!(first.stdout, command(&["run", ROUTER, "--port", &port, "--seed", "7"]).ok().stdout);
}

#[test]
fn a_file_without_end_is_refused_and_a_byte_order_mark_is_passed_over() {
    for arguments in [["check", "/dev/zero", "--json"], ["check", ROUTER, "--entries=/dev/zero"]] {
        let done = command(&arguments);
        assert_eq!(done.code, Some(3), "{done:?}");
        assert!(done.stderr.contains("/dev/zero is larger than"), "{done:?}");
    }
    let directory = Directory::new();
    let marked = |path: &str| {
        let text = std::fs::read_to_string(root().join(path)).expect("the file is there");
        directory.write(path.rsplit('/').next().expect("a name"), format!("\u{feff}{text}"))
    };
    command(&["check", &marked(ROUTER), "--entries", &marked(ENTRIES)]).ok();
}

#[test]
fn a_damaged_capture_is_an_input_error_in_words() {
    let directory = Directory::new();
    let cut = capture(&[frame([10, 0, 2, 2], 64), arp_request()]);
    let files = [
        directory.write("text.pcap", "not a capture at all"),
        directory.write("empty.pcap", ""),
        directory.write("cut.pcap", &cut[..cut.len() - 10]),
    ];
    for file in &files {
        let out = directory.path("out.pcap");
        let done = command(&["run", ROUTER, "--entries", ENTRIES, "--port", &format!("1={file}:{out}")]);
        assert_eq!(done.code, Some(1), "{file}: {done:?}");
        let name = file.rsplit('/').next().expect("a name");
        let said = done.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert!(said == 1 && (done.stderr.contains(name) || done.stderr.contains("port 1")), "{done:?}");
        let done = command(&["trace", ROUTER, "--entries", ENTRIES, "--port", "1", "--packet", file]);
        assert_eq!(done.code, Some(1), "{file}: {done:?}");
        assert!(done.stderr.contains(name), "{done:?}");
    }
}

#[test]
fn a_trace_shows_every_step_of_a_packet() {
    let digits: String = frame([10, 0, 2, 2], 64).iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = ["trace", ROUTER, "--entries", ENTRIES, "--port", "1"];
    golden("trace_routed.txt", &command(&[&trace[..], &["--packet", &digits]].concat()).ok().stdout);

    let directory = Directory::new();
    let file = directory.write("in.pcap", capture(&[frame([10, 9, 9, 9], 64), arp_request()]));
    let text = command(&[&trace[..], &["--packet", &file]].concat()).ok().stdout;
    assert!(text.contains("packet 1") && text.contains("packet 2"), "{text}");
    let line = drop_line("no_route");
    assert!(text.contains(&format!("router.p4:{line}:9 (RouterIngress.no_route)")), "{text}");
    assert!(text.contains("sent on port 1"), "the ARP reply leaves: {text}");

    let text = command(&[&trace[..], &["--packet", &file, "--json"]].concat()).ok().stdout;
    let objects: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects.len(), 2, "{text}");
}

#[test]
fn a_packet_that_is_none_is_refused() {
    let trace = ["trace", ROUTER, "--port", "1", "--packet"];
    for packet in ["xyz", "abc", ""] {
        let done = command(&[&trace[..], &[packet]].concat());
        assert_eq!(done.code, Some(2), "`{packet}`: {done:?}");
    }
    let done = command(&["trace", ROUTER, "--port", "511", "--packet", "00"]);
    assert_eq!((done.code, done.stderr.lines().count()), (Some(2), 1), "{done:?}");
    // A single byte is a valid packet; it is only too short for the program.
    command(&[&trace[..], &["00"]].concat()).ok();
}

#[test]
fn check_reports_every_mistake_with_its_place() {
    let file = "crates/triplane/testdata/mistakes.p4";
    let done = command(&["check", file]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    golden("check_mistakes.txt", &done.stderr);

    let done = command(&["check", file, "--json"]);
    assert_eq!(done.code, Some(1));
    let findings = done.json()["findings"].as_array().expect("a list").clone();
    assert_eq!(findings.len(), 3, "{done:?}");
    for finding in &findings {
        assert_eq!(finding["severity"], "error");
        assert_eq!(finding["place"]["file"], file);
        assert!(finding["place"]["line"].as_u64() >= Some(1) && finding["code"].is_string(), "{finding:#}");
    }
    for stage in ["--ir", "--types"] {
        let done = command(&["dump", stage, file]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    }
}

#[test]
fn check_is_content_with_what_is_right() {
    let labs = ["examples/router-pod/pod.p4", "examples/load-balancer/balancer.p4"];
    for program in [ROUTER, "examples/wire/wire.p4"].into_iter().chain(labs) {
        let done = command(&["check", program]).ok();
        assert!(done.stdout.starts_with(&format!("{program}: no errors")) && done.stderr.is_empty(), "{done:?}");
    }
    command(&["check", ROUTER, "--entries", ENTRIES]).ok();
    assert_eq!(command(&["check", ROUTER, "--json"]).ok().json()["findings"], serde_json::json!([]));
}

#[test]
fn check_describes_snapshots() {
    let program = "examples/heavy-hitters/hitters.p4";
    let done = command(&["check", program]).ok();
    let line = "resilient group \"sketch\": at most 4,096 rows, each with an index as its key and 768 bytes of values; \
                a snapshot every 1 ms, up to 768,000 bytes/s of values per row; stale after 10 ms: `HittersIngress.is_stale` is 1\n";
    assert!(done.stdout.contains(line), "{done:?}");
    let group = &command(&["check", program, "--json"]).ok().json()["resilient"][0];
    assert_eq!(
        (group["value_bytes"].as_u64(), group["stale"].as_str(), group["bytes_per_second"].as_u64()),
        (Some(768), Some("HittersIngress.is_stale"), Some(768_000))
    );
}

#[test]
fn wrong_entries_are_reported_all_together_and_nothing_runs() {
    let (directory, wrong) = (Directory::new(), "crates/triplane/testdata/wrong_entries.json");
    let done = command(&["check", ROUTER, "--entries", wrong]);
    assert_eq!(done.code, Some(1));
    golden("wrong_entries.txt", &done.stderr);
    let input = directory.write("in.pcap", capture(&[arp_request()]));
    let out = directory.path("out.pcap");
    let done = command(&["run", ROUTER, "--entries", wrong, "--port", &format!("1={input}:{out}")]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""));
    assert!(done.stderr.ends_with("error: 3 errors found; nothing was run\n"), "{done:?}");
    assert!(!std::path::Path::new(&out).exists(), "nothing was run, but {out} was written");
}

#[test]
fn dump_shows_each_stage_and_the_ir_reads_back() {
    let tokens = command(&["dump", "--tokens", "examples/wire/wire.p4"]).ok().stdout;
    assert!(tokens.lines().any(|line| line.starts_with("examples/wire/wire.p4:") && line.ends_with(" V1Switch")));
    let types = command(&["dump", "--types", ROUTER]).ok().stdout;
    assert!(types.contains("table RouterIngress.ipv4_lpm"), "{types}");
    let text = command(&["dump", "--ir", ROUTER]).ok().stdout;
    let mut map = diagnostics::SourceMap::new();
    let mut diagnostics = diagnostics::Diagnostics::new();
    let file = map.add("router.ir", text.as_str());
    let program =
        ir::parse(&map, file, &mut diagnostics).unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    assert_eq!(program.to_string(), text);
    assert_eq!(ir::validate(&program), Ok(()));
}

#[test]
fn programs_that_are_none_are_refused_in_one_sentence() {
    let directory = Directory::new();
    for (path, code) in [
        (directory.path("missing.p4"), 3),
        (directory.path(""), 3),
        (directory.write("binary.p4", [0xff, 0xfe, 0, 1]), 1),
    ] {
        let done = command(&["check", &path]);
        assert_eq!((done.code, done.stderr.lines().count()), (Some(code), 1), "{path}: {done:?}");
        assert!(done.stderr.starts_with("error: "), "{done:?}");
    }
    let (empty, port) = (directory.write("empty.p4", ""), format!("1=:{}", directory.path("out.pcap")));
    let done = command(&["run", &empty, "--port", &port]);
    assert_eq!(done.code, Some(1), "an empty file is not a program: {done:?}");
    assert!(done.stderr.contains("V1Switch(MyParser(), "), "the remedy is a form of `main`: {done:?}");
    let checked = command(&["check", &empty]).ok().stdout;
    assert!(checked.contains("is empty") && checked.contains("`triplane check --help` shows"), "{checked}");
    assert!(command(&["check", "--help"]).ok().stdout.contains("V1Switch(MyParser(), "));
    let foreign = directory.write("foreign.p4", "package Other(bit<8> x);\nOther(1) main;\n");
    let checked = command(&["check", &foreign]).ok().stdout;
    assert!(checked.contains("`main` is a `Other`, and only programs for v1model"), "{checked}");
}

#[test]
fn digests_reach_the_summary_and_the_file_of_messages() {
    let directory = Directory::new();
    let frame = hex("0102 0304 0506 0708 0910 1112 1314 1516");
    let (input, messages) = (directory.write("in.pcap", capture(&[frame])), directory.path("messages.jsonl"));
    let port = format!("0={input}:");
    let done = command(&["run", "testdata/stf/digest.p4", "--port", &port, "--notifications", &messages]).ok();
    assert!(done.stdout.contains(" to the control plane: digests `learn_t`"), "{}", done.stdout);
    let line = std::fs::read_to_string(&messages).expect("the file of messages");
    let message: serde_json::Value = serde_json::from_str(line.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&message["digest"], &message["time_ns"]), (&"learn_t".into(), &0.into()), "{message}");
    assert!(message["fields"].as_object().is_some_and(|fields| !fields.is_empty()), "{message}");
}

#[test]
fn a_missing_include_is_the_only_mistake_reported() {
    let directory = Directory::new();
    let text = "#include \"types.p4\"\nmac_t first() { return LAST; }\n";
    let done = command(&["check", &directory.write("includes.p4", text)]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("include-not-found") && done.stderr.contains("1 error"), "{done:?}");
}

#[test]
fn the_command_line_is_checked_before_anything_runs() {
    for arguments in [
        &["run", ROUTER][..],
        &["run", ROUTER, "--port", "one=lo"],
        &["run", ROUTER, "--port", "1=lo", "--port", "1=lo"],
        &["run", ROUTER, "--port", "600=a.pcap:b.pcap"],
        &["run", ROUTER, "--port", "1=lo", "--duration", "-3"],
        &["dump", ROUTER],
        &["frobnicate"],
        &["completions", "ksh"],
    ] {
        let done = command(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{arguments:?}: {done:?}");
    }
}

#[test]
fn ports_in_each_others_way_are_refused_before_a_file_is_touched() {
    let directory = Directory::new();
    let input = directory.write("in.pcap", capture(&[arp_request()]));
    let before = std::fs::read(&input).expect("it was written");
    let (out, roundabout) = (directory.path("out.pcap"), directory.path("./out.pcap"));
    let linked = directory.path("linked.pcap");
    std::fs::hard_link(&input, &linked).expect("a second name");
    for (one, two, sentence) in [
        (format!("1={input}:"), format!("2=:{input}"), "port 2 would overwrite"),
        (format!("1=:{input}"), format!("2={input}:"), "port 1 would overwrite"),
        (format!("1={input}:"), format!("2=:{linked}"), "port 2 would overwrite"),
        (format!("1={input}:{out}"), format!("2=:{roundabout}"), "ports 1 and 2 both write"),
        ("1=lo".to_owned(), "2=lo".to_owned(), "ports 1 and 2 are both `lo`"),
        (format!("1={input}:"), format!("510=:{out}"), "port 510 is the CPU port"),
    ] {
        let done = command(&["run", ROUTER, "--port", &one, "--port", &two]);
        assert_eq!(done.code, Some(2), "{one} {two}: {done:?}");
        assert!(done.stderr.starts_with(&format!("error: {sentence}")), "{one} {two}: {done:?}");
    }
    assert!(std::fs::read(&input).expect("it is still there") == before && !std::path::Path::new(&out).exists());
    let entries = directory.write("entries.json", "{}");
    let written = ["run", ROUTER, "--entries", &entries, "--port", &format!("1={input}:{entries}")];
    let done = command(&written);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.starts_with("error: port 1 would overwrite"), "{done:?}");
    assert_eq!(std::fs::read(&entries).expect("it is still there"), b"{}");
    for (cpu_port, sentence) in [
        ("1", "port 1 is the CPU port"),
        ("511", "the switch has port 511, and the program's ports are numbered 0 to 510"),
        ("65535", "invalid value '65535' for '--cpu-port <N>'"),
    ] {
        let done = command(&["run", ROUTER, "--port", &format!("1={input}:"), "--cpu-port", cpu_port]);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.starts_with(&format!("error: {sentence}")), "{done:?}");
    }
    let far = command(&["trace", ROUTER, "--packet", "00", "--port", "99999999999"]);
    assert_eq!(far.code, Some(2), "{far:?}");
    assert!(far.stderr.contains("99999999999 is not from 0 to 4294967295\n"), "{far:?}");
    let nothing = command(&["run", ROUTER, "--port", &format!("1={input}:/dev/null"), "--port", "2=:/dev/null"]);
    assert_eq!(nothing.code, Some(0), "devices may be named twice: {nothing:?}");
}

#[test]
fn help_and_version_and_completions_are_there() {
    let help = command(&["--help"]).ok().stdout;
    for word in ["demo", "run", "check", "dump", "trace", "completions", "Exit codes"] {
        assert!(help.contains(word), "`{word}` is not in the help:\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 110), "a line of the help is too long:\n{help}");
    let version = command(&["--version"]).ok().stdout;
    assert_eq!(version, format!("triplane {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = command(&["completions", shell]).ok().stdout;
        assert!(script.contains("trace") && script.contains("entries"), "{shell}: {} bytes", script.len());
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let pipeline = format!("set -o pipefail; '{binary}' dump --tokens {ROUTER} | head -n 1");
    run(Command::new("bash").args(["-c", &pipeline]).current_dir(root())).ok();
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let file = "crates/triplane/testdata/mistakes.p4";
    assert!(!command(&["check", file]).stderr.contains('\x1b'));
    assert!(command(&["check", file, "--color", "always"]).stderr.contains("\x1b["));
}

#[test]
fn the_demo_needs_no_network() {
    let done = command(&["demo", "--offline"]).ok();
    assert!(done.stdout.contains("5 of 5 answered") && done.stdout.contains("3 dropped by the router"), "{done:?}");
    let json = command(&["demo", "--offline", "--json"]).ok().json();
    assert_eq!((&json["ping"]["received"], &json["mode"]), (&5.into(), &"offline".into()), "{json:#}");
}

#[test]
fn p4info_is_text_json_or_bytes_as_asked_or_as_the_file_is_called() {
    let text = command(&["p4info", ROUTER]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.starts_with("# proto-file: p4/config/v1/p4info.proto\n"), "{}", text.stdout);
    assert!(text.stdout.contains("    name: \"RouterIngress.ipv4_lpm\"\n"), "{}", text.stdout);
    let json = command(&["p4info", ROUTER, "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(value["pkgInfo"]["arch"], "v1model");
    let directory = Directory::new();
    for (file, format) in [("router.txtpb", "text"), ("router.json", "json"), ("router.bin", "binary")] {
        let path = directory.path(file);
        let written = command(&["p4info", ROUTER, "-o", &path]);
        assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{}", written.stderr);
        let asked = directory.path("asked");
        command(&["p4info", ROUTER, "--format", format, "-o", &asked]);
        let bytes = |path: &str| std::fs::read(path).expect("the command wrote the file");
        assert!(bytes(&path) == bytes(&asked), "{file} is not {format}");
    }
    assert_eq!(std::fs::read_to_string(directory.path("router.txtpb")).expect("text"), text.stdout);
    let nowhere = command(&["p4info", ROUTER, "-o", "/nowhere/at/all"]);
    assert_eq!(nowhere.code, Some(3), "{}", nowhere.stderr);
}

#[test]
fn p4info_for_older_clients_has_no_fields_that_they_do_not_know() {
    const LATER: [&str; 2] = ["initial_default_action", "initialDefaultAction"];
    for format in ["text", "json"] {
        let p4info = |version| command(&["p4info", ROUTER, "--format", format, "--p4runtime-version", version]).ok();
        let present = p4info("1.5");
        assert!(LATER.iter().any(|field| present.stdout.contains(field)) && present.stderr.is_empty(), "{present:?}");
        for version in ["1.3", "1.4"] {
            let older = p4info(version);
            assert!(!LATER.iter().any(|field| older.stdout.contains(field)), "{older:?}");
            assert!(older.stderr.contains("tables.initial_default_action (3)"), "{older:?}");
            assert!(older.stdout.contains("RouterIngress.ipv4_lpm"), "{older:?}");
        }
    }
    let refused = command(&["p4info", ROUTER, "--p4runtime-version", "1.2"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn a_program_that_cannot_be_machine_code_is_interpreted_and_that_is_said() {
    let stacks: String = (0..6).map(|at| format!("big_t[250] s{at}; ")).collect();
    let program = format!(
        "#include <core.p4>
#include <v1model.p4>
header big_t {{ bit<65528> a; }}
struct headers {{ {stacks} }}
struct meta {{ }}
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t sm) {{ state start {{ transition accept; }} }}
control V(inout headers h, inout meta m) {{ apply {{ }} }}
control I(inout headers h, inout meta m, inout standard_metadata_t sm) {{ apply {{ sm.egress_spec = 2; }} }}
control E(inout headers h, inout meta m, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out p, in headers h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"
    );
    let directory = Directory::new();
    let program = directory.write("large.p4", program);
    let mut capture = Writer::new(Vec::new()).unwrap();
    capture.write(0, &frame([10, 0, 2, 2], 64)).unwrap();
    let (input, out) = (directory.write("in.pcap", capture.into_inner()), directory.path("out.pcap"));
    let arguments = ["run", &program, "--port", &format!("1={input}:"), "--port", &format!("2=:{out}")];
    let said = "too large to be compiled: falling back to the interpreter";
    let done = command(&arguments).ok();
    assert!(done.stderr.contains(said), "{}", done.stderr);
    let sent: Vec<_> = Reader::new(std::fs::read(&out).unwrap().as_slice()).unwrap().collect();
    assert_eq!(sent.len(), 1);
    // A user who asks for the interpreter sees no message that it runs.
    let done = command(&[&arguments[..], &["--interpret"]].concat()).ok();
    assert!(!done.stderr.contains(said), "{}", done.stderr);
}
