//! `triplane build`: a built program behaves as its source does, wherever a program is accepted, and an invalid file is
//! refused.

use crate::support::{self, Directory, Done, root, run, triplane};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::ForwardingPipelineConfig;
use p4runtime_server::Pipeline;

const ROUTER: &str = "examples/router/router.p4";
const ENTRIES: &str = "examples/router/entries.json";
/// A frame of h1 to h2.
const FRAME: &str =
    "0200000001fe02000000010108004500002400010000401163c60a0001010a000202138817700010000068656c6c6f212121";

fn command(arguments: &[&str]) -> Done {
    run(&mut triplane(arguments))
}

/// Runs a command that must fail with this exit code and with all of these words on standard error.
#[track_caller]
fn refused(arguments: &[&str], code: i32, said: &[&str]) {
    let done = command(arguments);
    assert_eq!(done.code, Some(code), "{done:?}");
    said.iter().for_each(|said| assert!(done.stderr.contains(said), "no `{said}`: {done:?}"));
}

/// Builds the router and returns the path of the result.
fn router(directory: &Directory) -> String {
    let built = directory.path("router.tpl");
    let done = command(&["build", ROUTER, "-o", &built]).ok();
    assert!(done.stderr.contains("built "), "{done:?}");
    built
}

/// Removes the conditions from a trace, as text or as JSON. A compiled program has no source to show them in its words.
fn without_conditions(trace: &str) -> String {
    fn remove(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(members) => {
                members.remove("condition");
                members.values_mut().for_each(remove);
            }
            serde_json::Value::Array(elements) => elements.iter_mut().for_each(remove),
            _ => {}
        }
    }
    if let Ok(mut value) = serde_json::from_str(trace) {
        remove(&mut value);
        return value.to_string();
    }
    let verdict = |line: &str| match line.trim_start().starts_with("if ") {
        true => line.rsplit_once(": ").map_or(line, |(_, verdict)| verdict).split_whitespace().collect(),
        false => line.to_owned(),
    };
    trace.lines().map(verdict).collect::<Vec<String>>().join("\n")
}

#[test]
fn a_compiled_program_behaves_like_its_source() {
    let directory = Directory::new();
    let built = router(&directory);
    for words in [
        &["trace", "--entries", ENTRIES, "--port", "1", "--packet", FRAME][..],
        &["trace", "--json", "--entries", ENTRIES, "--port", "2", "--packet", FRAME],
        // The frame is too short for its headers: it is dropped, and the trace reports the place.
        &["trace", "--port", "1", "--packet", &FRAME[..40]],
        &["dump", "--ir"],
        &["p4info"],
        &["p4info", "--format", "json"],
    ] {
        let with = |program| command(&[&words[..1], &[program], &words[1..]].concat()).ok();
        let (from_source, from_built) = (with(ROUTER), with(&built));
        assert!(!from_source.stdout.is_empty(), "{words:?}");
        assert_eq!(without_conditions(&from_built.stdout), without_conditions(&from_source.stdout), "{words:?}");
    }
    let checked = command(&["check", &built, "--entries", ENTRIES]).ok();
    assert!(checked.stdout.contains("router.tpl: no errors (3 headers, 3 tables"), "{checked:?}");
    let wrong = directory.write("wrong.json", r#"{ "table_entries": [{ "table": "nosuch", "action_name": "x" }] }"#);
    refused(&["check", &built, "--entries", &wrong], 1, &["nosuch"]);

    let mut writer = wire::pcap::Writer::new(Vec::new()).expect("memory takes a header");
    for time_ns in 0..5 {
        writer.write(time_ns, &support::hex(FRAME)).expect("memory takes a frame");
    }
    let input = directory.write("in.pcap", writer.into_inner());
    let run = |program: &str| {
        let ports = [format!("1={input}:"), format!("2=:{}", directory.path("out.pcap"))];
        command(&["run", program, "--entries", ENTRIES, "--port", &ports[0], "--port", &ports[1]]).ok();
        std::fs::read(directory.path("out.pcap")).expect("a capture")
    };
    let (from_source, from_built) = (run(ROUTER), run(&built));
    assert_eq!(from_built, from_source);
    assert!(from_built.len() > 5 * 50, "packets went through");
    let measured = command(&["bench", &built, "--entries", ENTRIES, "--packets", "1000", "--json"]).ok();
    assert!(measured.json().is_object());
}

#[test]
fn packet_tests_run_on_what_is_built() {
    let directory = Directory::new();
    let (built, stf) = (directory.path("digest.tpl"), "testdata/stf/digest.stf");
    command(&["build", "testdata/stf/digest.p4", "-o", &built]).ok();
    assert_eq!(command(&["stf", &built, stf]).ok().stdout, format!("PASS {stf}\n"));
}

#[test]
fn the_same_program_gives_the_same_file_and_its_p4info() {
    let directory = Directory::new();
    let built = router(&directory);
    for (name, format) in [("i.txtpb", "text"), ("i.json", "json"), ("i.bin", "binary")] {
        let (again, info) = (directory.path("again.tpl"), directory.path(name));
        command(&["build", ROUTER, "--output", &again, "--p4info-out", &info]).ok();
        assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&built).unwrap());
        let (printed, expected) = (std::fs::read(&info).unwrap(), directory.path("expected"));
        command(&["p4info", ROUTER, "--format", format, "-o", &expected]).ok();
        assert_eq!(printed, std::fs::read(&expected).unwrap(), "{name}");
    }
    // Without `-o` the file is written beside the source.
    let copy = directory.write("copy.p4", std::fs::read(root().join(ROUTER)).unwrap());
    command(&["build", &copy]).ok();
    command(&["check", &directory.path("copy.tpl")]).ok();
}

#[test]
fn files_that_are_no_program_are_refused_in_a_sentence() {
    let directory = Directory::new();
    let built = router(&directory);
    let bytes = std::fs::read(&built).unwrap();
    let mut other = bytes.clone();
    other[8] = 77;
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let other = directory.write("other.tpl", other);
    let flipped = directory.write("flipped.tpl", flipped);
    let cut = directory.write("cut.tpl", &bytes[..bytes.len() / 2]);
    let (empty, text) = (directory.write("empty.tpl", ""), directory.write("text.tpl", "header h { bit<8> x; }"));
    refused(&["check", &empty], 1, &["empty.tpl is empty; rebuild it"]);
    refused(&["check", &text], 1, &["text.tpl is not a compiled program"]);
    let bmv2 = directory.write("bmv2.json", r#"{ "header_types": [], "__meta__": { "version": [2, 23] } }"#);
    refused(&["check", &other], 1, &["other.tpl has version 77", "rebuild it from its P4 source"]);
    refused(&["check", &flipped], 1, &["flipped.tpl is damaged"]);
    refused(&["trace", &cut, "--port", "1", "--packet", "00"], 1, &["cut.tpl is damaged"]);
    refused(&["run", &bmv2, "--port", "1=:/dev/null"], 1, &["bmv2.json is a JSON file for BMv2", "use the P4 source"]);
    refused(&["check", &built, "-DX=1"], 2, &["router.tpl is a compiled program; -I and -D apply to P4 source only"]);
    refused(&["dump", "--types", &built], 2, &["--tokens and --types require the P4 source"]);
    refused(&["build", &built], 1, &["router.tpl is already compiled"]);
    refused(&["build", &copied(&directory), "-o", &directory.path("copy.p4")], 2, &["would overwrite"]);
    refused(&["build", ROUTER, "-o", "/nowhere/at/all.tpl"], 3, &["cannot write /nowhere/at/all.tpl"]);
    let wrong = directory.write("wrong.p4", "header h { bit<8> x; bit<8> x; }");
    refused(&["build", &wrong], 1, &["error"]);
    assert!(!std::fs::exists(directory.path("wrong.tpl")).unwrap(), "nothing is written");
}

/// Copies the router to another file name.
fn copied(directory: &Directory) -> String {
    directory.write("copy.p4", std::fs::read(root().join(ROUTER)).unwrap())
}

#[test]
fn controllers_send_what_is_built_with_its_p4info() {
    let directory = Directory::new();
    let built = std::fs::read(router(&directory)).unwrap();
    let path = directory.path("info.bin");
    command(&["p4info", ROUTER, "--format", "binary", "-o", &path]).ok();
    let info: P4Info = p4runtime_proto::from_bytes(&std::fs::read(&path).unwrap(), 1 << 30).unwrap();
    let set = |config: &[u8], info: Option<P4Info>| {
        let config = ForwardingPipelineConfig { p4info: info, p4_device_config: config.to_vec(), cookie: None };
        Pipeline::compile(config, &v1model::V1Model).map_err(|refusal| refusal.message)
    };
    let pipeline = set(&built, Some(info.clone())).expect("the P4Info is its own");
    assert_eq!(pipeline.source(), built, "it comes back as it was sent");
    let program = pipeline.program().to_string();
    assert_eq!(program, command(&["dump", "--ir", ROUTER]).ok().stdout, "packets run what the source says");

    // Different documentation of the same objects does not make them different objects.
    let mut documented = info.clone();
    documented.tables[0].preamble.as_mut().unwrap().doc = Some(Default::default());
    documented.pkg_info = None;
    assert!(set(&built, Some(documented)).is_ok());

    let mut other = info.clone();
    other.tables[0].match_fields[0].bitwidth += 1;
    let said = set(&built, Some(other)).unwrap_err();
    assert!(said.contains("does not describe the program"), "{said}");
    assert!(set(&built, None).unwrap_err().contains("config.p4info is missing"));
    let said = set(&built[..built.len() - 9], Some(info.clone())).unwrap_err();
    assert!(said.contains("p4_device_config is damaged"), "{said}");
    let said = set(br#"{ "header_types" : [] }"#, Some(info)).unwrap_err();
    assert!(said.contains("`triplane build`") && said.contains("BMv2"), "{said}");
}

/// A made-up P4Info, in a file whose hash is right, is either refused or describes the program: a switch can be created
/// with it, and every object that it names can be read.
#[test]
fn made_up_p4infos_do_no_harm() {
    use v1model::{Config, Executor, Switch};
    let directory = Directory::new();
    let mut random = rng::SplitMix64::new(1);
    let mut below = |end: usize| random.below(end as u64) as usize;
    let (mut taken, mut refused) = (0, 0);
    for program in
        ["crates/p4runtime_server/tests/p4/every.p4", "crates/p4runtime_server/tests/p4/restrictions.p4", ROUTER]
    {
        let built = directory.path("built.tpl");
        command(&["build", program, "-o", &built]).ok();
        let compiled = compiler::ProgramFile::parse(&std::fs::read(&built).unwrap()).expect("it was built just now");
        let info = p4runtime_proto::to_bytes(&compiled.program.p4info);
        for _ in 0..1_500 {
            let mut changed = info.clone();
            for _ in 0..=below(2) {
                let at = below(changed.len());
                match below(4) {
                    0 => changed[at] ^= 1 << below(8),
                    1 => changed[at] = below(256) as u8,
                    2 => changed.truncate(at.max(1)),
                    _ => {
                        let end = (at + 1 + below(40)).min(changed.len());
                        let piece = changed[at..end].to_vec();
                        changed.splice(at..at, piece);
                    }
                }
            }
            let Ok(info) = p4runtime_proto::from_bytes::<P4Info>(&changed, 1 << 30) else { continue };
            let mut made_up = compiled.clone();
            made_up.program.p4info = info.clone();
            let config = ForwardingPipelineConfig {
                p4info: Some(info),
                p4_device_config: made_up.emit().expect("it is small"),
                cookie: None,
            };
            let Ok(pipeline) = Pipeline::compile(config, &v1model::V1Model) else {
                refused += 1;
                continue;
            };
            taken += 1;
            let config = Config { executor: Executor::Interpreter, ..Config::with_ports(4) };
            let switch = Switch::new(pipeline.program().clone(), config).expect("the program is as it was");
            let settings = p4runtime_server::Settings::new(&v1model::V1Model, 0..4, Some(510));
            drop(p4runtime_server::Server::new(settings).with_pipeline(pipeline, &switch));
        }
    }
    assert!(taken > 200 && refused > 200, "both happen: {taken} taken, {refused} refused");
}

/// A program whose tables have entry restrictions.
const RESTRICTED: &str = r#"#include <v1model.p4>
header h_t { bit<32> key; }
struct headers { h_t h; }
struct meta {}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) { state start { p.extract(hdr.h); transition accept; } }
control V(inout headers hdr, inout meta m) { apply {} }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
  @action_restriction("port != 0")
  action to(bit<9> port) { sm.egress_spec = port; }
  @entry_restriction("
    key != 5;
    key < 100;
  ")
  table t { key = { hdr.h.key : exact @name("key"); } actions = { to; NoAction; } size = 16; }
  apply { t.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;

#[test]
fn mistakes_in_restrictions_are_found_by_check_at_their_place() {
    let directory = Directory::new();
    let right = directory.write("right.p4", RESTRICTED);
    command(&["check", &right]).ok();
    let built = directory.path("right.tpl");
    command(&["build", &right, "-o", &built]).ok();
    command(&["check", &built]).ok();

    let wrong = RESTRICTED.replace("key < 100;", "kee < 100;").replace("port != 0", "port !== 0");
    let wrong = directory.write("wrong.p4", wrong);
    refused(&["check", &wrong], 1, &["`kee`", "wrong.p4:12:5", "wrong.p4:8:31", "2 errors found"]);
    refused(&["build", &wrong], 1, &["wrong.p4:12:5"]);
    let findings = command(&["check", "--json", &wrong]).json();
    assert_eq!(findings["findings"][1]["place"]["line"], 12, "{findings:#}");
}

#[test]
fn an_unknown_kind_of_warning_is_an_error() {
    command(&["check", ROUTER, "-A", "unused", "-A", "shadow"]).ok();
    refused(&["check", ROUTER, "-A", "nosuch"], 2, &["--allow nosuch", "`missing-default`", "`unused-table`"]);
    refused(&["build", ROUTER, "-A", "unusd-table"], 2, &["did you mean `unused-table`?"]);
}
