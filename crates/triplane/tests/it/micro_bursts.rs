//! The example of micro-bursts: what packets report of a queue is the queue that a model of it has, packet for packet.

use std::collections::BTreeMap;

use crate::support::{self, Directory, run, triplane};
use tpp::{MemoryMap, TinyProgram};
use wire::{ethernet, pcap};

/// Ports of each switch: three hosts, and the other switch.
const PORTS: u16 = 4;

/// A frame at a port of a switch.
struct PortFrame {
    time_ns: u64,
    /// Port of the capture.
    port: u16,
    data: Vec<u8>,
}

/// A packet that enters or leaves the queue of a port.
#[derive(Debug, PartialEq, Eq)]
struct QueuedFrame {
    time_ns: u64,
    /// The frame without its Ethernet header and program: an IP packet from its address fields on, or ARP.
    packet: Vec<u8>,
    /// Queue depth that the frame reports.
    reported: Option<u32>,
}

/// Returns the last byte of a frame's source and destination address; `None` for ARP.
fn hosts(frame: &[u8], start: usize, ethertype: u16) -> Option<(u16, u16)> {
    (ethertype == ethernet::IPV4).then(|| (frame[start + 15].into(), frame[start + 19].into()))
}

/// Returns the port of a switch that leads to a host.
fn port_to(switch: u16, host: u16) -> u16 {
    let first = 3 * (switch - 1);
    if (first + 1..=first + 3).contains(&host) { host - first } else { PORTS }
}

impl PortFrame {
    /// Splits it into the direction (whether the switch received it), its output port, and what the queue holds.
    fn split(&self, switch: u16, map: &MemoryMap) -> (bool, u16, QueuedFrame) {
        let (outer, start) = wire::tpp::place_among_tags(&self.data, 0).expect("a frame");
        let (mut ethertype, mut inner, mut reported) = (outer, start, None);
        if outer == wire::tpp::ETHERTYPE {
            let program = wire::tpp::Packet::new_checked(&self.data[start..]).expect("a program");
            assert!(program.is_checksum_right());
            (ethertype, inner) = (program.encapsulated(), start + program.length());
            let hops = TinyProgram::decode(&program).words_by_hop(map);
            let own = hops.into_iter().find(|words| words[0] == ("Switch:ID".to_owned(), switch.into()));
            reported = own.map(|words| {
                assert_eq!(words[1].0, "PacketMetadata:OutputPort");
                assert_eq!(words[1].1, u32::from(self.port), "the packet leaves by the port that it reports");
                assert_eq!(words[2].0, "PacketMetadata:EnqueueDepth");
                words[2].1
            });
        }
        // TTL and checksum change in a switch, so the packet is compared from its addresses on.
        let packet = match hosts(&self.data, inner, ethertype) {
            Some(_) => self.data[inner + 12..].to_vec(),
            None => Vec::new(),
        };
        let queued = QueuedFrame { time_ns: self.time_ns, packet, reported };
        match hosts(&self.data, inner, ethertype) {
            Some((from, to)) => (port_to(switch, from) == self.port, port_to(switch, to), queued),
            // The switch answers ARP requests itself, through the port on which they arrive.
            None => (self.data[inner + 7] == 1, self.port, queued),
        }
    }
}

/// Returns all frames at the ports of a switch: by time, those of one moment by port.
fn frames(out: &str, switch: u16) -> Vec<PortFrame> {
    let mut all = Vec::new();
    for port in 1..=PORTS {
        let bytes = std::fs::read(format!("{out}/s{switch}-{port}.pcap")).expect("it was captured");
        let frames = pcap::Reader::new(bytes.as_slice()).expect("a capture");
        let frame = |frame: pcap::Captured| PortFrame { time_ns: frame.time_ns, port, data: frame.data };
        all.extend(frames.map(|captured| frame(captured.expect("a frame"))));
    }
    all.sort_by_key(|frame| (frame.time_ns, frame.port));
    all
}

/// Compares each depth that a packet reports with that of a model of the queue, which knows only when packets came and
/// left. Returns the number of comparisons, and of those where the queue was empty.
fn compare(out: &str, switch: u16) -> (usize, usize) {
    let map = MemoryMap::new();
    let (mut entered, mut left) = (BTreeMap::<u16, Vec<_>>::new(), BTreeMap::<u16, Vec<_>>::new());
    for frame in frames(out, switch) {
        let (is_received, port, queued) = frame.split(switch, &map);
        let frames = if is_received { &mut entered } else { &mut left };
        frames.entry(port).or_default().push(queued);
    }
    let (mut compared, mut empty) = (0, 0);
    for (port, entered) in entered {
        let left = &left[&port];
        let mut gone = 0;
        for (number, (came, went)) in entered.iter().zip(left).enumerate() {
            assert_eq!(came.packet, went.packet, "s{switch}:{port} sends packets in the order of their arrival");
            // A packet that leaves at the moment at which another arrives has left.
            while gone < number && left[gone].time_ns <= came.time_ns {
                gone += 1;
            }
            if let Some(reported) = went.reported {
                let depth = (number - gone) as u32;
                assert_eq!(reported, depth, "packet {number} of s{switch}:{port} at {} ns", came.time_ns);
                (compared, empty) = (compared + 1, empty + usize::from(depth == 0));
            }
        }
    }
    (compared, empty)
}

#[test]
fn every_packet_reports_the_queue_that_it_found() {
    let directory = Directory::new();
    let example = support::root().join("examples/micro-bursts");
    let text = |name: &str| std::fs::read_to_string(example.join(name)).expect("the example has it");
    let [lab, _] = ["lab.toml", "burst.tpp"].map(|name| directory.write(name, text(name)));
    let captures = (1..=2).flat_map(|switch| (1..=PORTS).map(move |port| (switch, port)));
    let captures = captures
        .map(|(switch, port)| format!("[[captures]]\nat = \"s{switch}:{port}\"\nfile = \"s{switch}-{port}.pcap\"\n"));
    let captures: String = captures.collect();
    let scenario = directory.write("scenario.toml", text("scenario.toml") + &captures);
    let out = directory.path("out");
    let arguments = ["lab", "sim", &lab, "--scenario", &scenario, "--out", &out, "--json"];
    let results = run(&mut triplane(&arguments)).ok().json();
    let minion = &results["traffic"][0]["minion"];
    assert_eq!((&minion["inserted"], &minion["too_long"]), (&minion["arrived"], &0.into()));
    let packets = minion["packets"].as_array().expect("a list");
    let hops: usize = packets.iter().map(|packet| packet["hops"].as_array().expect("a list").len()).sum();
    let compared = [1, 2].map(|switch| compare(&out, switch));
    assert_eq!(hops, compared[0].0 + compared[1].0, "every word was compared");
    assert!(hops > 70_000 && compared.iter().all(|(all, empty)| (1..*all).contains(empty)), "{compared:?}");
    let table = std::fs::read_to_string(format!("{out}/minions.csv")).expect("it was written");
    assert_eq!(table.lines().next(), Some("traffic,packet,time_s,from,to,hop,word,value"));
    assert_eq!(table.lines().count(), 1 + 3 * hops);
}

#[test]
fn a_simulation_says_which_programs_were_not_executed_or_had_no_memory() {
    let directory = Directory::new();
    let example = support::root().join("examples/micro-bursts");
    let text = |name: &str| std::fs::read_to_string(example.join(name)).expect("the example has it");
    let simulate = |limit: &str, hops: &str| {
        let lab = directory.write("lab.toml", text("lab.toml").replace("[defaults]", &format!("[defaults]\n{limit}")));
        let scenario = directory.write("scenario.toml", text("scenario.toml"));
        directory.write("burst.tpp", text("burst.tpp").replace(".hops 5", hops));
        let arguments = ["lab", "sim", &lab, "--scenario", &scenario];
        (run(&mut triplane(&arguments)).stdout, run(&mut triplane(&[&arguments[..], &["--json"]].concat())).json())
    };
    let (shown, _) = simulate("", ".hops 5");
    assert!(shown.contains("\n72,886 tiny packet programs executed\n"), "{shown}");
    assert!(!shown.contains("beyond the limit") && !shown.contains("raise `.hops`"), "{shown}");
    let (shown, json) = simulate("tpp_limit = 5000", ".hops 1");
    let counts = |name: &str| {
        let of = |at: usize| json["switches"][at]["tiny_programs"][name].as_u64().expect("a count");
        [of(0), of(1)]
    };
    let (executed, limited) = (counts("executed"), counts("limited"));
    assert!(limited.iter().all(|count| *count > 0), "{limited:?}");
    let number = |count: u64| format!("{},{:03}", count / 1_000, count % 1_000);
    let line = |executed: u64, limited: u64| {
        let [executed, limited] = [executed, limited].map(number);
        format!("{executed} tiny packet programs executed, {limited} beyond the limit of executions\n")
    };
    let total = line(executed.iter().sum(), limited.iter().sum());
    let expected = format!("\n{total}  s1: {}  s2: {}", line(executed[0], limited[0]), line(executed[1], limited[1]));
    assert!(shown.contains(&expected), "{expected}{shown}");
    assert!(shown.contains("packets of load passed more switches than their program has memory for: raise `.hops`\n"));
}
