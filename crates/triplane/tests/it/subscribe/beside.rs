//! Controls of the format beside the rules: who decides about a packet.

use std::fs::read_to_string;

use wire::pcap::{Reader, Writer};
use wire::{ethernet, moldudp64};

use crate::subscribe::{FORMAT, payload, run_rules};
use crate::support::feed::frame;
use crate::support::{Directory, run, triplane};

/// A format with one message per packet: a kind and a port.
const TINY: &str = "#include <v1model.p4>
header tiny_t { @query_field_exact(\"kind\") bit<8> kind; bit<8> port; }
struct headers_t { tiny_t tiny; }
struct metadata_t { bit<1> unused; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.tiny); transition accept; }
}
";
const RULES: &str = "kind == 1 : fwd(2)\nkind == 2 : fwd(3, 4)\n";
/// A control that sends a packet to the port that it names, and to two more.
const BODY: &str = "(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { WHAT }
}";

/// Runs packets of 16 bytes through a format with a control, and returns the packets of ports 2 to 5.
fn through(mark: &str, what: &str, packets: &[[u8; 2]]) -> Vec<Vec<Vec<u8>>> {
    let directory = Directory::new();
    let format = format!("{TINY}{mark} control Own{}", BODY.replace("WHAT", what));
    let format = directory.write("tiny.p4", format);
    let frames: Vec<Vec<u8>> = packets.iter().map(|packet| padded(*packet)).collect();
    run_rules(&format, RULES, &[], &frames, &[2, 3, 4, 5])
}

fn padded(packet: [u8; 2]) -> Vec<u8> {
    [&packet[..], &[0; 14]].concat()
}

#[test]
fn what_a_control_before_the_rules_chooses_is_reset_by_every_rule() {
    let what = "replicate_to_ports(8w0x3c); standard_metadata.mcast_grp = 77; replicate_to_ports(8w0x3c);";
    let got = through("", what, &[[1, 0], [2, 0], [3, 0]]);
    let [one, two] = [1, 2].map(|kind| vec![padded([kind, 0])]);
    assert_eq!(got, [one, two.clone(), two, vec![]], "what no rule delivers is dropped");
}

#[test]
fn a_control_before_the_rules_that_exits_decides_alone() {
    let what = "if (hdr.tiny.port != 0) { standard_metadata.egress_spec = (bit<9>) hdr.tiny.port; exit; }";
    let got = through("", what, &[[1, 5], [2, 0], [3, 2], [3, 0]]);
    let two = vec![padded([2, 0])];
    assert_eq!(got, [vec![padded([3, 2])], two.clone(), two, vec![padded([1, 5])]]);
}

#[test]
fn a_fallback_gets_what_no_rule_delivers() {
    let what = "if (hdr.tiny.port == 5) { standard_metadata.egress_spec = 5; }
        if (hdr.tiny.port == 6) { replicate_to_ports(8w0x24); }";
    let got = through("@query_fallback", what, &[[1, 5], [2, 5], [3, 5], [3, 6], [3, 0]]);
    let [two, both] = [[2, 5], [3, 6]].map(padded);
    let expected = [vec![padded([1, 5]), both.clone()], vec![two.clone()], vec![two], vec![padded([3, 5]), both]];
    assert_eq!(got, expected, "a fallback that does nothing drops the packet");
}

#[test]
fn a_control_that_exits_without_a_choice_drops_and_what_a_fallback_chooses_counts() {
    let before = "if (hdr.tiny.port == 9) { exit; } replicate_to_ports(8w0x30);";
    let after = "if (hdr.tiny.port == 5) { standard_metadata.egress_spec = 5; }";
    let first = format!("control First{}", BODY.replace("WHAT", before));
    let last = format!("@query_fallback control Last{}", BODY.replace("WHAT", after));
    let directory = Directory::new();
    let packets = [[1, 9], [3, 9], [1, 0], [2, 0], [3, 5], [3, 0]];
    let frames: Vec<Vec<u8>> = packets.iter().map(|packet| padded(*packet)).collect();
    for shape in [&[][..], &["--groups"]] {
        for (fallback, of_fallback) in [(last.as_str(), vec![padded([3, 5])]), ("", vec![])] {
            let format = directory.write("tiny.p4", format!("{TINY}{first}\n{fallback}\n"));
            let got = run_rules(&format, RULES, shape, &frames, &[0, 2, 3, 4, 5]);
            let two = vec![padded([2, 0])];
            let expected = [vec![], vec![padded([1, 0])], two.clone(), two, of_fallback];
            assert_eq!(got, expected, "{shape:?} {fallback}");
        }
    }
    // Beside a feed, too.
    let feed = read_to_string(format!("{}/../../{FORMAT}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let before = "if (hdr.ethernet.src == 9) { exit; } replicate_to_ports(8w0x30);";
    let after = "if (hdr.ethernet.type == 0x88b5) { standard_metadata.egress_spec = 2; }";
    let first = format!("control First{}", BODY.replace("WHAT", before));
    let last = format!("@query_fallback control Last{}", BODY.replace("WHAT", after));
    let format = directory.write("feed.p4", format!("{feed}{first}\n{last}\n"));
    let mut exits = other(3);
    exits[6..12].copy_from_slice(&[0, 0, 0, 0, 0, 9]);
    for shape in [&[][..], &["--groups"]] {
        let sent = [exits.clone(), other(2)];
        let got = run_rules(&format, "stock == \"GOOGL\" : fwd(3)", shape, &sent, &[0, 2, 4, 5]);
        assert_eq!(got, [vec![], vec![other(2)], vec![], vec![]], "{shape:?}");
    }
}

#[test]
fn explain_names_the_control_that_decides() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", RULES);
    let explain = |mark: &str, what: &str, packet: &str| {
        let format = format!("{TINY}{mark} control Own{}", BODY.replace("WHAT", what));
        let format = directory.write("tiny.p4", format);
        run(&mut triplane(&["subscribe", "explain", &format, &rules, "--packet", packet])).ok().stdout
    };
    let ends = "if (hdr.tiny.port != 0) { exit; }";
    let alone = explain("", ends, "0104");
    assert!(alone.contains("`Own` ends with `exit`") && !alone.contains("fwd"), "{alone}");
    let rule = explain("", ends, "0100");
    assert!(rule.contains("fwd(2)") && !rule.contains("exit"), "{rule}");
    let fallback = explain("@query_fallback", ends, "0300");
    assert!(fallback.contains("no rule delivers it: `Own` decides"), "{fallback}");
    let delivered = explain("@query_fallback", ends, "0200");
    assert!(!delivered.contains("decides"), "{delivered}");
}

/// A format of the feed with a control beside the rules, in `directory`.
fn feed_with(directory: &Directory, mark: &str, what: &str) -> String {
    let format = read_to_string(format!("{}/../../{FORMAT}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    directory.write("feed.p4", format!("{format}{mark} control Own{}\n", BODY.replace("WHAT", what)))
}

/// A frame that is not of the feed.
fn other(last: u8) -> Vec<u8> {
    let (destination, source) = (ethernet::Address([2, 0, 0, 0, 0, last]), ethernet::Address([2; 6]));
    ethernet::Repr { destination, source, ethertype: 0x88b5 }.packet(&[last; 50])
}

#[test]
fn datagrams_that_a_control_decides_about_stay_as_they_are() {
    let directory = Directory::new();
    let ends = "if (hdr.ethernet.src == 9) { standard_metadata.egress_spec = 5; exit; }";
    let format = feed_with(&directory, "", ends);
    let datagram = |session: &[u8; 10], first, count, source: u8| {
        let mut frame = super::feeds::datagram(session, first, count);
        frame[6..12].copy_from_slice(&[0, 0, 0, 0, 0, source]);
        frame
    };
    let passed =
        [datagram(b"TRIPLANE01", 3, 2, 9), datagram(b"OTHER     ", 77, 20, 9), datagram(b"OTHER     ", 97, 0, 9)];
    let sent = [&[datagram(b"TRIPLANE01", 1, 2, 1)], &passed[..], &[datagram(b"TRIPLANE01", 5, 1, 1)]].concat();
    for shape in [&[][..], &["--groups"]] {
        let got = run_rules(&format, "stock == \"GOOGL\" : fwd(5)", shape, &sent, &[5]);
        assert_eq!(got[0].len(), 5, "{shape:?}");
        assert_eq!(got[0][1..4], passed, "{shape:?}");
        // The numbers of the messages that rules deliver are those after the gap, as for any lost datagram.
        let first = |frame: &[u8]| moldudp64::Packet::new_checked(payload(frame)).expect("a datagram").sequence();
        assert_eq!((first(&got[0][0]), first(&got[0][4])), (1, 5), "{shape:?}");
    }
}

#[test]
fn clones_that_a_control_in_egress_makes_are_not_numbered_again() {
    let directory = Directory::new();
    let clones = "if (standard_metadata.instance_type == 0 && hdr.mold.sequence == 3) { clone(CloneType.E2E, 7); }";
    let format = feed_with(&directory, "@query_egress", clones);
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let [entries, program] = ["entries.json", "program.p4"].map(|name| directory.path(name));
    run(&mut triplane(&["subscribe", "compile", &format, &rules, "-o", &entries, "--program", &program])).ok();
    let session =
        "{\"clone_session_entries\":[{\"clone_session_id\":7,\"replicas\":[{\"egress_port\":2,\"instance\":1}]}]}";
    let session = directory.write("session.json", session);
    let mut capture = Writer::new(Vec::new()).unwrap();
    for (first, count) in [(5, 2), (7, 1)] {
        capture.write(first, &super::feeds::datagram(b"TRIPLANE01", first, count)).unwrap();
    }
    let (input, output) = (directory.write("in.pcap", capture.into_inner()), directory.path("out.pcap"));
    let ports = [format!("1={input}:"), format!("2=:{output}")];
    let files =
        ["run", &program, "--entries", &entries, "--entries", &session, "--port", &ports[0], "--port", &ports[1]];
    run(&mut triplane(&files)).ok();
    let bytes = std::fs::read(output).unwrap();
    let frames = Reader::new(bytes.as_slice()).unwrap().map(|captured| payload(&captured.unwrap().data));
    let numbers = frames.map(|frame| moldudp64::Packet::new_checked(frame).expect("a datagram").sequence());
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 3, 3], "a packet and its clone have the same number");
}

#[test]
fn a_control_before_the_rules_that_clones_causes_a_warning() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let check = |format: &str| run(&mut triplane(&["subscribe", "check", format, &rules])).ok().stderr;
    let cloned = check(&feed_with(&directory, "", "if (hdr.ethernet.src == 9) { clone(CloneType.I2E, 7); }"));
    assert!(cloned.contains("warning[clone-before]: `Own` runs before the rules and clones packets"), "{cloned}");
    assert_eq!(
        check(&feed_with(&directory, "@query_fallback", "clone(CloneType.I2E, 7);")).matches("clone").count(),
        0
    );
}

#[test]
fn beside_a_feed_other_packets_go_where_the_program_says() {
    let to_port = "if (hdr.ethernet.type == 0x88b5) { standard_metadata.egress_spec = hdr.ethernet.dst[8:0]; }";
    let to_all = "if (hdr.ethernet.type == 0x88b5) { replicate_to_ports(8w0x0c); }";
    let cloned = "if (hdr.ethernet.type == 0x88b5) { clone(CloneType.I2E, 1); standard_metadata.egress_spec = 2; }";
    let nothing = "hdr.ethernet.src = 7;";
    let heartbeat = frame(&moldudp64::datagram::<&[u8]>(*b"TRIPLANE01", 1, &[]));
    let directory = Directory::new();
    for mark in ["", "@query_fallback"] {
        let through = |what: &str| {
            let format = feed_with(&directory, mark, what);
            let sent = [other(2), heartbeat.clone(), other(3)];
            run_rules(&format, "stock == \"GOOGL\" : fwd(2)", &[], &sent, &[0, 2, 3])
        };
        let is_heartbeat = |frame: &Vec<u8>| frame.len() == heartbeat.len() && payload(frame) == payload(&heartbeat);
        let got = through(to_port);
        assert_eq!((&got[0], &got[2]), (&vec![], &vec![other(3)]), "{mark}");
        assert!(got[1].len() == 2 && got[1][0] == other(2) && is_heartbeat(&got[1][1]), "{mark}: {got:02x?}");
        let got = through(to_all);
        assert_eq!(got[2], [other(2), other(3)], "{mark}");
        assert_eq!(got[1].len(), 3, "{mark}");
        // The session of the program's own clones goes to the controller; a packet's clone is not recirculated.
        let got = through(cloned);
        assert_eq!((got[1].len(), &got[2]), (3, &vec![]), "{mark}");
        let got = through(nothing);
        assert_eq!((&got[0], got[1].len(), &got[2]), (&vec![], 1, &vec![]), "port 0 is no default; {mark}");
    }
}
