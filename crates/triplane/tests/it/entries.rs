//! Entries files at work: entries written by a control plane take effect in the packets that leave the switch.

use std::path::Path;
use std::process::Command;

use crate::support::{Directory, root, run, triplane};
use wire::pcap::{Reader, Writer};

const PROGRAM: &str = "crates/triplane/testdata/control_plane.p4";
/// Maximum number of entries of the router's routing table.
const ROUTES: usize = 1024;
const ENTRIES: &str = "crates/triplane/testdata/control_plane.json";

/// Sends these packets in on port 0, one by one. Returns the packets that leave by port 1 and the number of copies that
/// leave by port 2.
fn sent(packets: &[[u8; 4]], entries: &[&str]) -> (Vec<Vec<u8>>, usize) {
    let directory = Directory::new();
    let mut writer = Writer::new(Vec::new()).expect("memory takes a header");
    for (number, packet) in (0u64..).zip(packets) {
        // The last packet comes ten years later: entry aging must not make anybody wait.
        let years = if number + 1 == packets.len() as u64 { 315_000_000 } else { 0 };
        writer.write((number + years) * 1_000_000_000, packet).expect("memory takes a frame");
    }
    let [input, one, two] = ["in.pcap", "one.pcap", "two.pcap"].map(|name| directory.path(name));
    std::fs::write(&input, writer.into_inner()).expect("the capture can be written");
    let ports = [format!("0={input}:"), format!("1=:{one}"), format!("2=:{two}")];
    let mut arguments = vec!["run", PROGRAM, "--port", &ports[0], "--port", &ports[1], "--port", &ports[2]];
    arguments.extend(entries.iter().flat_map(|entries| ["--entries", entries]));
    run(&mut triplane(&arguments)).ok();
    let read = |path: &str| -> Vec<Vec<u8>> {
        let bytes = std::fs::read(Path::new(path)).expect("the command wrote the file");
        Reader::new(bytes.as_slice()).expect("a capture").map(|frame| frame.expect("a frame").data).collect()
    };
    (read(&one), read(&two).len())
}

#[test]
fn files_fill_what_only_a_control_plane_can() {
    let packets = [[1, 4, 0, 0], [1, 5, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0], [5, 0, 0, 0], [9, 0, 0, 0]];
    // A group by its selector, a one-shot group, a member with a red direct meter, a value set with a yellow meter,
    // and a CRC-16 as CCITT defines it.
    let wanted = [[1, 4, 17, 0], [1, 5, 34, 0], [2, 0, 51, 0], [3, 0, 34, 2], [5, 0, 1, 1], [9, 0, 0x70, 0xd9]];
    let (one, copies) = sent(&packets, &[ENTRIES]);
    assert_eq!(one, wanted.map(Vec::from));
    assert_eq!(copies, packets.len(), "the mirror session copies to its multicast group");
    // The same in two files.
    let text = std::fs::read_to_string(root().join(ENTRIES)).expect("the file is there");
    let all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let directory = Directory::new();
    let part = |of_groups: bool| {
        let part = all.iter().filter(|(name, _)| name.contains("multicast") == of_groups);
        let part: serde_json::Map<_, _> = part.map(|(name, value)| (name.clone(), value.clone())).collect();
        directory.write(&format!("{of_groups}.json"), serde_json::Value::Object(part).to_string())
    };
    let (one, copies) = sent(&packets, &[&part(true), &part(false)]);
    assert_eq!((one, copies), (wanted.map(Vec::from).to_vec(), packets.len()), "two files are like one");
    let (one, copies) = sent(&packets[..5], &[]);
    assert_eq!(one, packets[..5].iter().map(|packet| packet.to_vec()).collect::<Vec<_>>());
    assert_eq!(copies, 0);
}

#[test]
fn more_copies_than_a_group_may_have_are_refused_in_words() {
    let directory = Directory::new();
    let path = directory.path("entries.json");
    for (count, code) in [(1024, 0), (1025, 1)] {
        let replicas = vec![r#"{ "egress_port": 1 }"#; count].join(",");
        let text =
            format!(r#"{{ "multicast_group_entries": [ {{ "multicast_group_id": 1, "replicas": [{replicas}] }} ] }}"#);
        std::fs::write(&path, text).expect("the file can be written");
        let done = run(&mut triplane(&["trace", PROGRAM, "--entries", &path, "--port", "0", "--packet", "00000000"]));
        assert_eq!(done.code, Some(code), "{done:?}");
    }
}

#[test]
fn entries_that_a_switch_rejects_are_reported_before_the_first_packet() {
    let directory = Directory::new();
    let entry = |net: usize| {
        format!(
            r#"{{ "table": "ipv4_lpm", "match": {{ "hdr.ipv4.dst": "10.{}.{}.0/24" }}, "action_name": "no_route" }}"#,
            net / 256,
            net % 256
        )
    };
    let written = |count: usize| {
        let all: Vec<String> = (0..count).map(entry).collect();
        directory.write("entries.json", format!("{{ \"table_entries\": [\n{} ] }}", all.join(",\n")))
    };
    const ROUTER: &str = "examples/router/router.p4";
    run(&mut triplane(&["check", ROUTER, "--entries", &written(ROUTES)])).ok();
    let done = run(&mut triplane(&["check", ROUTER, "--entries", &written(ROUTES + 2)]));
    assert_eq!(done.code, Some(1), "{done:?}");
    // One error for the table, at the first entry that does not fit.
    let wanted = [
        format!("entries.json:{}:1", ROUTES + 2),
        format!("is full: its size is {ROUTES}; 2 entries of the file do not fit"),
        format!("`size = {};`", ROUTES + 2),
        "1 error found".to_owned(),
    ];
    for text in wanted {
        assert!(done.stderr.contains(&text), "{text} is missing in {done:?}");
    }

    let capture = Writer::new(Vec::new()).expect("memory takes a header").into_inner();
    let (input, output) = (directory.write("in.pcap", capture), directory.path("out.pcap"));
    let ports = [format!("0={input}:"), format!("1=:{output}")];
    let run_with = |count: usize| {
        let entries = written(count);
        run(&mut triplane(&["run", ROUTER, "--port", &ports[0], "--port", &ports[1], "--entries", &entries]))
    };
    let done = run_with(ROUTES + 2);
    assert!(done.code == Some(1) && done.stderr.contains("1 error found"), "{done:?}");
    assert!(!Path::new(&output).exists(), "no port was opened");
    run_with(ROUTES).ok();
    assert!(Path::new(&output).exists());
}

/// A regular file is read as a stream, a pipe as a whole.
#[test]
fn files_and_pipes_are_read_alike() {
    let directory = Directory::new();
    let entry = r#"{ "table": "ipv4_lpm", "match": { "hdr.ipv4.dst": "10.0.0.0/8" }, "action_name": "no_route" }"#;
    let files = [
        format!("{{ \"table_entries\": [ {entry} ] }}"),
        format!("{{ \"table\\u005fentries\": [ {entry}, {entry} ] }}"),
        format!("{{ \"table_entries\": [], \"table_entries\": [ {entry} ] }}"),
        format!("{{ \"table_entries\": {entry} }}"),
        "{ \"table_entries\": null }".to_owned(),
        format!("{{ \"table_entries\": [ {entry} // ]\n] /* }} */ }}"),
        format!("{{ \"table_entries\": [ {entry} {entry} ] }}"),
    ];
    let mut bytes: Vec<Vec<u8>> = files.into_iter().map(String::into_bytes).collect();
    bytes.push([b"{ \"table_entries\": [ /* \xff */ ".as_slice(), entry.as_bytes(), b" ] }"].concat());
    let trace = ["trace", "examples/router/router.p4", "--port", "0", "--packet", "00", "--entries"];
    let piped = format!("cat \"$1\" | \"$0\" {} /dev/stdin", trace.join(" "));
    for bytes in bytes {
        let path = directory.write("entries.json", &bytes);
        let from_file = run(&mut triplane(&[&trace[..], &[&path]].concat()));
        let program = env!("CARGO_BIN_EXE_triplane");
        let mut shell = Command::new("sh");
        shell.args(["-c", &piped, program, &path]).current_dir(root()).env_remove("NO_COLOR").env("COLUMNS", "110");
        let from_pipe = run(&mut shell);
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(from_file.code, from_pipe.code, "{shown}: {from_file:?} {from_pipe:?}");
        assert_eq!(from_file.stderr.replace(&path, "/dev/stdin"), from_pipe.stderr, "{shown}");
        assert_eq!(from_file.stdout, from_pipe.stdout, "{shown}");
    }
}
