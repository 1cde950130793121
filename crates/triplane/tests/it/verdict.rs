//! Whether a program is valid has one answer: `triplane check`, commands that compile, and the P4Runtime server
//! refuse the same programs with the same errors.

use std::path::{Path, PathBuf};

use crate::support::{Directory, Done, root, run, triplane};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::ForwardingPipelineConfig;
use p4runtime_server::Pipeline;

/// Maximum length of the errors in the server's answer, in bytes.
const MAX_REPORT_BYTES: usize = 6 << 10;

/// The head of the server's answer about a program that is not valid.
const HEAD: &str = "the program in p4_device_config has errors:\n";

/// A v1model program around declarations in front of its ingress control and the content of that control.
fn program(before: &str, ingress: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> key; }}
struct headers {{ h_t h; }}
struct meta {{ bit<8> a; }}
{before}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control V(inout headers hdr, inout meta m) {{ apply {{ }} }}
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {{
{ingress}
}}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"
    )
}

/// A table with annotations.
fn table(annotations: &str) -> String {
    table_of(annotations, "NoAction;")
}

/// A table with annotations and these actions.
fn table_of(annotations: &str, actions: &str) -> String {
    format!(
        "{annotations} table t {{ key = {{ hdr.h.key : exact; }} actions = {{ {actions} }} }} apply {{ t.apply(); }}"
    )
}

/// Programs that are wrong at each step, and at several.
fn wrong() -> Vec<(&'static str, String)> {
    let unsupported = "register<bit<8>>(0x1000001) r; apply { r.write(0, m.a); }";
    // Only actions of tables are part of the P4Info.
    let twice = "@id(1) action a() { } @id(1) action b() { }";
    let (restriction, both) = ("@entry_restriction(\"nothing > 1\")", "a; b;");
    let (restricted, restricted_twice) = (table(restriction), table_of(restriction, both));
    vec![
        ("a file that is not there", program("#include \"nowhere.p4\"", "apply { from_nowhere(); }")),
        ("syntax", program("struct s { bit<8> }", "apply { }")),
        ("syntax and types", program("struct s { bit<8> }", "apply { m.b = 1; }")),
        ("types, with a warning", program("struct s { bit<8> a; }", "bit<8> unused; apply { m.b = 1; m.c = 2; }")),
        ("lowering", program("", unsupported)),
        ("P4Info", program("", &format!("{twice} {}", table_of("", both)))),
        ("a restriction", program("", &restricted)),
        ("a reference", program("", &table("").replace(": exact;", ": exact @refers_to(nowhere, key);"))),
        ("lowering and a restriction", program("", &format!("register<bit<8>>(0x1000001) r; {restricted}"))),
        (
            "lowering, P4Info and a restriction",
            program("", &format!("{twice} register<bit<8>>(0x1000001) r; {restricted_twice}")),
        ),
        ("P4Info and a restriction", program("", &format!("{twice} {restricted_twice}"))),
        ("errors of which not all are shown", program("", &format!("apply {{ {} }}", "m.b = 1; ".repeat(300)))),
    ]
}

/// The files of a folder that are wrong in P4Info.
fn wrong_files() -> Vec<(String, String)> {
    let folder = root().join("crates/p4info/testdata/wrong");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "p4"));
    paths.sort();
    let read = |path: &Path| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    paths.iter().map(|path| read(path)).collect()
}

/// The errors that a command printed, without its warnings and its last sentence.
fn errors(done: &Done) -> String {
    let blocks = done.stderr.split("\n\n").filter(|block| block.starts_with("error["));
    blocks.collect::<Vec<_>>().join("\n")
}

/// The errors of the P4Runtime server; `None` if it accepts the program.
fn server_errors(text: &str) -> Option<String> {
    let config = ForwardingPipelineConfig {
        p4info: Some(P4Info::default()),
        p4_device_config: text.as_bytes().to_vec(),
        cookie: None,
    };
    let refusal = Pipeline::compile(config, &v1model::V1Model).expect_err("the P4Info is empty");
    refusal.message.strip_prefix(HEAD).map(str::to_owned)
}

/// Removes the remedy of a missing file, which differs: a controller has no `-I`.
fn without_include_remedy(errors: &str) -> String {
    let differs = |line: &&str| {
        line.starts_with("  = help: searched ") || line.starts_with("  = help: a controller's program includes ")
    };
    errors.lines().filter(|line| !differs(line)).collect::<Vec<_>>().join("\n")
}

/// Runs a command in a directory of its own, where the program has the name that the server gives it.
fn command(directory: &Directory, arguments: &[&str]) -> Done {
    run(triplane(arguments).current_dir(directory.path("")))
}

#[test]
fn the_command_and_the_server_find_the_same_errors() {
    let directory = Directory::new();
    let programs = wrong().into_iter().map(|(name, text)| (name.to_owned(), text)).chain(wrong_files());
    for (name, text) in programs {
        directory.write("p4_device_config", &text);
        let done = command(&directory, &["check", "p4_device_config"]);
        assert_eq!(done.code, Some(1), "{name} is not refused by `check`: {done:?}");
        let found = errors(&done);
        assert!(!found.is_empty(), "{name}: {done:?}");
        let server = server_errors(&text).unwrap_or_else(|| panic!("{name} is not refused by the server: {found}"));
        if found.len() <= MAX_REPORT_BYTES {
            let (server, found) = (without_include_remedy(&server), without_include_remedy(&found));
            assert_eq!(server, found, "{name}: left is the server's answer, right is what `check` prints");
        } else {
            let shown = server.trim_end_matches(|of| !char::is_ascii_alphanumeric(&of));
            assert!(server.len() <= MAX_REPORT_BYTES + 8 && found.starts_with(shown), "{name}: {server}");
        }
        for arguments in [
            &["p4info", "p4_device_config"][..],
            &["build", "p4_device_config", "-o", "built.tpl"],
            &["trace", "p4_device_config", "--port", "1", "--packet", "00"],
        ] {
            let done = command(&directory, arguments);
            assert_eq!((done.code, errors(&done)), (Some(1), found.clone()), "{name}: {arguments:?}");
        }
    }
}

#[test]
fn the_command_and_the_server_accept_the_same_programs() {
    let directory = Directory::new();
    for text in [program("", &table("")), program("", &table("@entry_restriction(\"hdr.h.key > 1\")"))] {
        directory.write("p4_device_config", &text);
        let done = command(&directory, &["check", "p4_device_config"]).ok();
        assert_eq!((errors(&done).as_str(), server_errors(&text)), ("", None));
    }
}

/// Errors that only follow from others are not reported: a missing file's names, and restrictions on an incomplete
/// P4Info.
#[test]
fn consequential_errors_are_not_reported() {
    let codes = |name: &str| {
        let (_, text) = wrong().into_iter().find(|(known, _)| *known == name).expect("it is listed");
        let errors = server_errors(&text).expect("it is wrong");
        let codes = errors.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next());
        codes.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(codes("a file that is not there"), ["include-not-found"]);
    assert_eq!(codes("P4Info and a restriction"), ["id"]);
    assert_eq!(codes("lowering and a restriction"), ["too-large", "restriction-name"]);
    assert_eq!(codes("lowering, P4Info and a restriction"), ["id", "too-large"]);
    assert_eq!(codes("syntax and types").len(), 2, "types are checked in spite of the syntax");
}

/// A library is fine as far as the language goes, and is not a program that runs.
#[test]
fn a_library_is_checked_and_not_run() {
    let directory = Directory::new();
    let text = "bit<8> f(bit<8> x) { return x + 1; }\n";
    directory.write("p4_device_config", text);
    let done = command(&directory, &["check", "p4_device_config"]).ok();
    assert!(done.stdout.contains("there is no `main`, so it is a library"), "{done:?}");
    assert!(server_errors(text).expect("it is not a program").starts_with("error[no-main]"));
    let done = command(&directory, &["p4info", "p4_device_config"]);
    assert!(done.code == Some(1) && errors(&done).starts_with("error[no-main]"), "{done:?}");
}

#[test]
fn a_format_of_messages_that_is_run_leads_to_the_program() {
    let directory = Directory::new();
    let format = root().join("examples/market-data/orders.p4");
    let done = command(&directory, &["run", &format.to_string_lossy(), "--port", "1=feed.pcap:"]);
    assert!(done.code == Some(1) && errors(&done).contains("triplane subscribe compile FORMAT RULES"), "{done:?}");
}
