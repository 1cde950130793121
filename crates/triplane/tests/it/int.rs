//! Nodes of an INT domain in `triplane run`.

use std::net::UdpSocket;

use crate::support::{Directory, Done, root, run, triplane};
use tpp::int::IntNode;
use wire::int::{Marker, NextProtocol, Repr, find, report};
use wire::{ethernet, ipv4, pcap, udp};

/// A datagram to port 53, as it is, and with an INT header.
fn frames(marker: &str) -> [Vec<u8>; 2] {
    let udp = udp::Repr { source_port: 9, destination_port: 53 };
    let ip = ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ipv4::UDP);
    let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, 0, last]));
    let ethernet = ethernet::Repr { destination, source, ethertype: ethernet::IPV4 };
    let plain = ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), b"a question of 24 letters")));
    let mut marked = plain.clone();
    let marker: Marker = marker.parse().expect("a marker");
    assert!(IntNode::new(marker).source(&mut marked, Repr::new(NextProtocol::Payload { dscp: 0 }, 0xc000, 8), 1_500));
    [plain, marked]
}

/// A switch that sends the packets of a capture to another one.
struct Captures {
    directory: Directory,
}

impl Captures {
    fn new(frames: &[Vec<u8>]) -> Captures {
        let directory = Directory::new();
        let mut writer = pcap::Writer::new(Vec::new()).expect("it is memory");
        frames.iter().for_each(|frame| writer.write(5_000, frame).expect("it is memory"));
        std::fs::write(directory.path("in.pcap"), writer.into_inner()).expect("it can be written");
        Captures { directory }
    }

    fn run(&self, options: &[&str]) -> Done {
        let (first, second) = (self.directory.path("in.pcap"), self.directory.path("out.pcap"));
        let (first, second) = (format!("1={first}:"), format!("2=:{second}"));
        let run_it = ["run", "examples/wire/wire.p4", "--port", &first, "--port", &second];
        run(triplane(&[&run_it[..], options].concat()).current_dir(root()))
    }

    fn left(&self, options: &[&str]) -> Vec<Vec<u8>> {
        self.run(options).ok();
        let bytes = std::fs::read(self.directory.path("out.pcap")).expect("it was written");
        pcap::Reader::new(bytes.as_slice()).expect("a capture").map(|frame| frame.expect("a frame").data).collect()
    }
}

#[test]
fn a_transit_adds_its_metadata_and_nothing_without_the_option() {
    for marker in ["udp:18772", "dscp:23"] {
        let [plain, marked] = frames(marker);
        let captures = Captures::new(&[plain.clone(), marked.clone()]);
        assert_eq!(captures.left(&["--interpret"]), [plain.clone(), marked.clone()]);
        for executor in [&["--interpret"][..], &[]] {
            let left = captures.left(&[&["--int", "9", "--int-marker", marker], executor].concat());
            let place = find(&left[1], marker.parse().expect("a marker")).expect("INT");
            assert_eq!(place.packet(&left[1]).expect("a header").stack(), [0, 0, 0, 9, 0, 1, 0, 2]);
            assert_eq!((left.len(), &left[0]), (2, &plain));
        }
        let other = if marker == "dscp:23" { "udp:18772" } else { "dscp:23" };
        assert_eq!(captures.left(&["--int", "9", "--int-marker", other])[1], marked, "another domain");
        let left = captures.left(&["--int", "9", "--int-marker", marker, "--int-mtu", "75"]);
        assert_eq!(left[1].len(), marked.len(), "20 + 8 + 16 + 24 bytes, and no room for 8");
    }
}

#[test]
fn a_sink_restores_packets_and_sends_its_reports() {
    let [plain, marked] = frames("udp:18772");
    let captures = Captures::new(&[marked.clone(), plain.clone(), marked]);
    let collector = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = collector.local_addr().expect("it is bound").to_string();
    let log = captures.directory.path("notifications.json");
    let options = ["--int", "9", "--int-sink", "2", "--int-report", &address, "--notifications", &log];
    assert_eq!(captures.left(&options), [plain.clone(), plain.clone(), plain], "bit for bit");
    let lines = std::fs::read_to_string(log).expect("it was written");
    let mut numbers = Vec::new();
    for line in lines.lines() {
        let mut buffer = [0; 2_000];
        let len = collector.recv(&mut buffer).expect("a datagram");
        let hex: String = buffer[..len].iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(line.contains(&format!("\"int_report\":\"{hex}\"")), "{line} has {hex}");
        let report = report::Packet::new_checked(&buffer[..len]).expect("a report");
        assert_eq!((report.node(), report.metadata()), (9, &[0, 1, 0, 2][..]));
        numbers.push(report.sequence());
    }
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn a_run_says_who_gets_no_reports_and_counts_packets_with_int() {
    let [plain, marked] = frames("udp:18772");
    let captures = Captures::new(&[plain, marked.clone(), marked]);
    let lost = "--int-sink removes INT from packets, and nobody receives its reports: add --int-report";
    let sink = captures.run(&["--int", "9", "--int-sink", "2"]).ok();
    assert!(sink.stderr.contains(lost), "{sink:?}");
    assert!(sink.stdout.contains("0 packets with INT got metadata, 2 restored by a sink\n"), "{sink:?}");
    let log = captures.directory.path("log.json");
    let logged = captures.run(&["--int", "9", "--int-sink", "2", "--notifications", &log]).ok();
    assert!(!logged.stderr.contains(lost), "{logged:?}");
    // The limit of a packet a second has a burst of one.
    let limited = captures.run(&["--int", "9", "--int-limit", "1"]).ok();
    assert!(limited.stdout.contains("1 packet with INT got metadata, 1 beyond the limit\n"), "{limited:?}");
    assert!(!limited.stderr.contains(lost), "it is no sink: {limited:?}");
    let json = captures.run(&["--int", "9", "--int-limit", "1", "--json"]).ok().json();
    assert_eq!((&json["int"]["inserted"], &json["int"]["limited"]), (&1.into(), &1.into()), "{json:#}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let captures = Captures::new(&[]);
    for (options, message) in [
        (&["--int-sink", "2"][..], "--int <NUMBER>"),
        (&["--int", "1", "--int-sink", "3"], "--int-sink names port 3, which no --port has"),
        (&["--int", "1", "--int-sink", "3"], "the ports are 1, 2"),
        (&["--int", "1", "--int-report", "127.0.0.1:9"], "--int-sink <PORT>"),
        (&["--int", "1", "--int-mtu", "10"], "'10' for '--int-mtu <BYTES>': expected bytes from 68 to 65535"),
        (&["--int", "1", "--int-mtu", "67"], "expected bytes from 68"),
        (
            &["--int", "1", "--int-sink", "2", "--int-report", "collector:32766"],
            "names are not resolved: `getent hosts NAME` prints an address for ADDRESS:32766",
        ),
        (
            &["--int", "1", "--int-sink", "2", "--int-report", "192.0.2.9"],
            "such as 192.0.2.9:32766 or [2001:db8::9]:32766",
        ),
        (&["--int", "1", "--int-sink", "2", "--int-report", "0.0.0.0:9"], "no collector receives at 0.0.0.0:9"),
        (&["--int", "1", "--int-sink", "2", "--int-report", "192.0.2.9:0"], "no collector receives at 192.0.2.9:0"),
        (&["--int-limit", "5"], "--int <NUMBER>"),
        (&["--int", "1", "--tpp", "2"], "--tpp 2 and --int 1 give the switch two numbers"),
        (&["--int", "1", "--int-marker", "tcp:1"], "expected udp:PORT (1 to 65535) or dscp:VALUE (0 to 63)"),
    ] {
        let refused = captures.run(options);
        assert_eq!((refused.code, refused.stderr.contains(message)), (Some(2), true), "{refused:?}");
    }
}
