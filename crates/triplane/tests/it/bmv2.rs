//! The command in place of BMv2's tools: their options, the files that they write, and the links.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{self, Directory, Done, root, run, triplane};

const ROUTER: &str = "examples/router/router.p4";
const ENTRIES: &str = "examples/router/entries.json";

fn command(arguments: &[&str]) -> Done {
    run(&mut triplane(arguments))
}

/// Runs a command that must fail with exit code 1, as the tools do, with all of these words on standard error.
#[track_caller]
fn refused(arguments: &[&str], said: &[&str]) {
    let done = command(arguments);
    assert_eq!(done.code, Some(1), "{arguments:?}: {done:?}");
    said.iter().for_each(|said| assert!(done.stderr.contains(said), "no `{said}`: {done:?}"));
}

/// Makes the links, and returns a command that calls one of them.
fn link(directory: &Directory, name: &str, arguments: &[&str]) -> Command {
    command(&["shims", &directory.path("")]).ok();
    let mut command = Command::new(directory.path(name));
    command.args(arguments).current_dir(root());
    command
}

#[test]
fn p4c_bm2_ss_writes_a_program_as_json_that_every_command_runs() {
    let directory = Directory::new();
    let [json, text, more] = ["router.json", "router.p4info.txtpb", "p4info.json"].map(|name| directory.path(name));
    let infos = format!("{text},{more}");
    let done =
        run(&mut link(&directory, "p4c-bm2-ss", &["--p4v", "16", "--p4runtime-files", &infos, "-o", &json, ROUTER]));
    let done = done.ok();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""), "as a compiler, it is silent");

    let object: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).expect("JSON");
    assert_eq!(object["source"], ROUTER);
    let info = std::fs::read_to_string(&text).unwrap();
    assert_eq!(info, command(&["p4info", ROUTER]).ok().stdout);
    assert_eq!(info, command(&["p4info", &json]).ok().stdout);
    assert_eq!(std::fs::read_to_string(&more).unwrap(), command(&["p4info", ROUTER, "--format", "json"]).ok().stdout);

    // As other tools format it.
    let pretty = directory.write("pretty.json", serde_json::to_string_pretty(&object).unwrap());
    for program in [&json, &pretty] {
        command(&["check", program, "--entries", ENTRIES]).ok();
    }
}

#[test]
fn a_damaged_json_program_is_refused_with_the_remedy() {
    let directory = Directory::new();
    let json = directory.path("router.json");
    command(&["p4c-bm2-ss", "-o", &json, ROUTER]).ok();
    let text = std::fs::read_to_string(&json).unwrap();
    let middle = text.len() / 2;
    let flipped = if &text[middle..=middle] == "A" { "B" } else { "A" };
    let changed = format!("{}{flipped}{}", &text[..middle], &text[middle + 1..]);
    let bmv2 = r#"{"header_types": [], "parsers": []}"#;
    for (name, contents, said) in [
        ("cut.json", &text[..middle], "JSON is not complete"),
        ("changed.json", &changed, "checksum does not match"),
        ("base64.json", &text.replacen("iVRQ", "%VRQ", 1), "base64 is not valid"),
        ("bmv2.json", bmv2, "JSON file for BMv2"),
    ] {
        let file = directory.write(name, contents);
        let done = command(&["check", &file]);
        assert_eq!(done.code, Some(1), "{name}: {done:?}");
        assert!(done.stderr.contains(said) && done.stderr.contains("triplane build"), "{name}: {done:?}");
    }
}

#[test]
fn p4c_writes_into_a_directory_that_it_creates() {
    let directory = Directory::new();
    let (out, info) = (directory.path("new/build"), directory.path("router.bin"));
    let arguments =
        ["p4c", "--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "-o", &out, "--p4runtime-file", &info];
    command(&[&arguments[..], &[ROUTER]].concat()).ok();
    assert_eq!(std::fs::read(&info).unwrap(), {
        let binary = directory.path("expected.bin");
        command(&["p4info", ROUTER, "-o", &binary]).ok();
        std::fs::read(binary).unwrap()
    });
    command(&["check", &format!("{out}/router.json")]).ok();
}

#[test]
fn macros_and_directories_reach_the_preprocessor() {
    let directory = Directory::new();
    directory.write("parts.p4", "#ifdef WANTED\nconst bit<8> part = WANTED;\n#endif\n");
    let source = std::fs::read_to_string(root().join("examples/wire/wire.p4")).unwrap();
    let source = format!("#include <v1model.p4>\n#include <parts.p4>\nconst bit<8> whole = part;\n{source}");
    let program = directory.write("program.p4", source);
    let include = format!("-I{}", directory.path(""));
    let json = directory.path("program.json");
    command(&["p4c-bm2-ss", &include, "-DWANTED=7", "-o", &json, &program]).ok();
    command(&["p4c-bm2-ss", &include, "-Xpreprocessor", "-DWANTED=7", "-O2", &program]).ok();
    refused(&["p4c-bm2-ss", &include, "-DWANTED=7", "-U", "WANTED", &program], &["`part`", "1 error"]);
    refused(&["p4c-bm2-ss", "-DWANTED=7", &program], &["parts.p4"]);
}

#[test]
fn options_of_p4c_are_ignored_or_refused_with_the_reason() {
    let directory = Directory::new();
    let json = directory.path("router.json");
    let done = command(&["p4c-bm2-ss", "--Werror", "--Wdisable=unused", "-v", "-Tfoo:3", "-o", &json, ROUTER]).ok();
    assert_eq!(done.stderr, "ignored, without meaning here: -v, -T, --Wdisable, --Werror\n");
    for (arguments, said) in [
        (&["--arch", "psa"][..], "--arch psa is not supported: only v1model is"),
        (&["--target", "ebpf"], "--target ebpf is not supported: only bmv2 is"),
        (&["--p4v", "14"], "--std 14 is not supported"),
        (&["--toJSON", "x"], "--toJSON is not supported"),
        (&["--p4runtime-files", "info.yaml"], "the format of info.yaml is not known"),
        (&["--no-such-option"], "unexpected argument '--no-such-option'"),
    ] {
        refused(&[&["p4c-bm2-ss"][..], arguments, &[ROUTER]].concat(), &[said]);
    }
    refused(&["p4c"], &["<PROG.p4>"]);
    let broken = directory.write("broken.p4", "control C() { apply { x = 1; } }\n");
    refused(&["p4c", "-o", &directory.path("out"), &broken], &["broken.p4:1:23"]);
    assert!(!Path::new(&directory.path("out/broken.json")).exists());
}

#[test]
fn the_links_are_made_once_and_replace_nothing_of_others() {
    let directory = Directory::new();
    let folder = directory.path("shims");
    let made = command(&["shims", &folder]).ok().stdout;
    let names = ["simple_switch_grpc", "simple_switch", "simple_switch_CLI", "p4c", "p4c-bm2-ss"];
    for name in names {
        assert!(made.contains(&format!("made {folder}/{name} -> ")), "{made}");
    }
    assert_eq!(command(&["shims", &folder]).ok().stdout, made.replace("made ", "kept "));

    // A link to a copy elsewhere belongs to Triplane, a file does not.
    let link = format!("{folder}/p4c");
    std::fs::remove_file(&link).unwrap();
    symlink(directory.path("elsewhere/triplane"), &link).unwrap();
    let again = command(&["shims", &folder]).ok().stdout;
    assert!(again.contains(&format!("replaced {link} -> ")) && again.contains("kept "), "{again}");
    std::fs::remove_file(format!("{folder}/simple_switch")).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::fs::write(&link, "somebody's").unwrap();
    let done = command(&["shims", &folder]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("p4c exists and is not a link to triplane; nothing was changed"), "{done:?}");
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "somebody's");
    assert!(!Path::new(&format!("{folder}/simple_switch")).exists(), "nothing was changed");
}

#[test]
fn options_of_the_switch_are_checked_before_anything_is_opened() {
    let directory = Directory::new();
    let json = directory.path("router.json");
    let json = json.as_str();
    command(&["p4c-bm2-ss", "-o", json, ROUTER]).ok();
    for (arguments, said) in [
        (&[][..], "a program is required (PROG.json), or --no-p4"),
        (&["-i", "veth0", json], "expected PORT@IFACE"),
        (&["-i", "1@no-such-if", json], "there is no network interface `no-such-if`"),
        (&["--no-p4", "--", "--cpu-port", "0"], "0 is not a valid CPU port"),
        (&["--no-p4", "--", "--drop-port", "510"], "--drop-port 510 is not supported"),
        (&["--no-p4", "--", "--priority-queues", "9"], "--priority-queues 9 is not supported"),
        (&["--no-p4", "--log-level", "loud"], "invalid value 'loud'"),
        (&["--no-p4", "--log-console", "--log-file", "x"], "cannot be used with"),
        (&["--no-p4", "--pcap=no/such/directory"], "the directory no/such/directory of --pcap does not exist"),
        (&["--use-files", "1", json], "--use-files is not supported: use `triplane run PROG.json --port"),
        (&["--no-p4", "--", "--grpc-server-addr", "nonsense"], "expected ADDRESS:PORT"),
        (&["--no-p4", "--", "--grpc-server-ssl"], "--grpc-server-cert"),
        (&[json, "second.json"], "unexpected argument 'second.json'"),
        (&["-i", "4@lo", json, "--", "--cpu-port", "4"], "port 4 is the CPU port"),
    ] {
        refused(&[&["simple_switch_grpc"][..], arguments].concat(), &[said]);
        refused(&[&["simple-switch-grpc"][..], arguments].concat(), &[said]);
    }
    for arguments in [["--version"], ["-v"]] {
        let done = run(&mut link(&directory, "simple_switch_grpc", &arguments)).ok();
        assert!(done.stdout.starts_with("triplane "), "{done:?}");
    }
    let help = run(&mut link(&directory, "simple_switch_grpc", &["-h"])).ok().stdout;
    assert!(help.contains("0.0.0.0:9559, for every client that reaches the machine"), "{help}");
}

#[test]
fn the_drop_port_is_that_of_the_program() {
    let directory = Directory::new();
    let architecture = v1model::description::INCLUDES[0].1.replace("bit<9>", "bit<16>");
    let wire = std::fs::read_to_string(root().join("examples/wire/wire.p4")).expect("the example can be read");
    let wide = directory.write("wide.p4", wire.replace("#include <v1model.p4>", &architecture));
    let run = |program: &str, drop_port: &[&str]| {
        let words = ["simple-switch-grpc", "-i", "1@no-such-if", program, "--"];
        let done = command(&[&words[..], drop_port].concat());
        assert_eq!(done.code, Some(1), "{done:?}");
        done.stderr
    };
    let missing = "there is no network interface `no-such-if`";
    let differs = "in this program, whose ports have 16 bits, port 65535 means drop";
    assert!(run(ROUTER, &[]).starts_with(&format!("error: {missing}")));
    assert!(run(ROUTER, &["--drop-port", "511"]).starts_with(&format!("error: {missing}")));
    assert!(run(&wide, &["--drop-port", "65535"]).starts_with(&format!("error: {missing}")));
    let noted = run(&wide, &[]);
    assert!(noted.contains(&format!("{differs}, and 511 is a port like others")) && noted.contains(missing), "{noted}");
    let refused = run(&wide, &["--drop-port", "511"]);
    assert!(refused.contains(&format!("not supported: {differs}; pass --drop-port 65535")), "{refused}");
    let refused = run(ROUTER, &["--drop-port", "510"]);
    assert!(refused.contains("whose ports have 9 bits, port 511 means drop; pass --drop-port 511"), "{refused}");
}

#[test]
fn what_needs_thrift_says_so() {
    let directory = Directory::new();
    let done = run(&mut link(&directory, "simple_switch_CLI", &["--thrift-port", "9090"]));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("there is no Thrift server, which simple_switch_CLI needs"), "{done:?}");
    assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    // `simple_switch` alone has no P4Runtime, so there is nothing that could set a program.
    refused(&["simple_switch", "--no-p4", "--thrift-port", "9090"], &["a program (PROG.p4) is required", "Thrift"]);
}

#[test]
fn the_help_of_every_tool_names_its_documentation() {
    for tool in ["simple-switch-grpc", "simple-switch", "p4c", "p4c-bm2-ss"] {
        let help = command(&[tool, "--help"]).ok().stdout;
        assert!(help.contains("docs/bmv2.md"), "{tool}: {help}");
    }
    let page = std::fs::read_to_string(support::root().join("docs/bmv2.md")).unwrap();
    for option in ["--drop-port", "--use-files", "--toJSON", "--thrift-port"] {
        assert!(page.contains(option), "{option}");
    }
}
