//! Tests simulated times of resilient state, to the nanosecond: the cost of a read and of a write compared with the
//! plain program.

use std::fs::File;
use std::io::BufReader;
use std::net::Ipv4Addr;

use resilient_switch::in_band;
use wire::pcap;

use crate::support::{Directory, root, run, triplane};

const DELAY_NS: u64 = 5_000;
/// Bytes of a request and of its answer.
const FRAME: u64 = 60;
/// Requests of a run, and their times.
const REQUESTS: usize = 20;
const START_NS: u64 = 100_000_000;
const INTERVAL_NS: u64 = 10_000_000;
const WRITE: u8 = 2;
const READ: u8 = 0;

/// Time on a link of 1 Gbit/s.
fn link_ns(bytes: u64) -> u64 {
    8 * bytes + DELAY_NS
}

/// A client and stores around a key-value switch. Stores are at another switch.
fn topology(program: &str, stores: usize, hold: &str) -> String {
    let names = &["a", "b", "c"][..stores];
    let edge = root().join("examples/common/edge.p4");
    let mut text = format!(
        "[defaults]\nhold = {hold:?}\nlink = {{ rate = \"1Gbps\", delay = \"5us\" }}\n[hosts.client]\n[hosts.other]\n[switches.s1]\n\
         program = {program:?}\n[[links]]\nends = [\"client\", \"s1:1\"]\n[[links]]\nends = [\"other\", \"s1:2\"]\n"
    );
    if stores > 0 {
        text += &format!("[switches.tor]\nprogram = {edge:?}\n[[links]]\nends = [\"s1:9\", \"tor:1\"]\n");
    }
    for (number, name) in names.iter().enumerate() {
        text += &format!("[stores.{name}]\n[[links]]\nends = [\"{name}\", \"tor:{}\"]\n", number + 2);
    }
    text
}

/// Requests for key 7 every 10 ms, after another client has made the switch ask for the row.
fn scenario(operation: u8, stores: usize) -> String {
    let probe = |name: &str, more: &str, operation: u8| {
        let padding = "00".repeat(FRAME as usize - 25);
        let frame = format!("02aa00000001 020000000001 88b6 {operation:02x} 0007 00000001 00000000 {padding}");
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"probe\"\nfrom = \"{name}\"\nto = \"{name}\"\nframe = \
             \"{frame}\"\nvalues = {{ value = {{ at = 17, bytes = 4 }} }}\n{more}\n"
        )
    };
    let mut text = String::from("duration = \"400ms\"\n");
    text += &probe("other", "start = \"10ms\"\ncount = 1", READ);
    text += &probe("client", &format!("start = \"100ms\"\ncount = {REQUESTS}\ninterval = \"10ms\""), operation);
    for port in (1..=stores + 1).filter(|_| stores > 0) {
        text += &format!("[[captures]]\nat = \"tor:{port}\"\nfile = \"{port}.pcap\"\n");
    }
    text
}

/// Simulates requests. Returns the times from sending them to the arrival of their answers, and the directory of the
/// captures.
fn answered(program: &str, stores: usize, operation: u8, hold: &str) -> (Vec<u64>, Directory) {
    let directory = Directory::new();
    let lab = directory.write("lab.toml", topology(program, stores, hold));
    let scenario = directory.write("scenario.toml", scenario(operation, stores));
    let out = directory.path("out");
    let done = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json", "--out", &out])).ok().json();
    let points = done["traffic"][1]["values"]["value"].as_array().expect("answers came").iter();
    let arrivals = points.map(|point| point[0].as_u64().expect("a time"));
    (arrivals.enumerate().map(|(number, at)| at - START_NS - number as u64 * INTERVAL_NS).collect(), directory)
}

/// Returns the bytes of the first datagram between two members at or after a time.
fn datagram_bytes(directory: &Directory, stores: usize, ways: (Ipv4Addr, Ipv4Addr), after_ns: u64) -> u64 {
    for port in 1..=stores + 1 {
        let file = File::open(directory.path(&format!("out/{port}.pcap"))).expect("the capture is there");
        let mut reader = pcap::Reader::new(BufReader::new(file)).expect("it is a capture");
        while let Some(captured) = reader.read().expect("it is whole") {
            let parsed = in_band::parse(&captured.data).filter(|_| captured.time_ns >= after_ns);
            if parsed.is_some_and(|(from, to, _)| (from, to) == ways) {
                return captured.data.len() as u64;
            }
        }
    }
    panic!("no datagram from {} to {}", ways.0, ways.1)
}

fn example() -> String {
    root().join("examples/key-value/store.p4").display().to_string()
}

#[test]
fn a_read_of_an_owned_row_takes_the_time_of_the_plain_program() {
    let text = std::fs::read_to_string(example()).expect("the example is there");
    let directory = Directory::new();
    let plain = directory.write("plain.p4", text.replace("@resilient[group = \"keys\"]", ""));
    let expected = 2 * link_ns(FRAME);
    assert_eq!(answered(&plain, 0, READ, "local").0, [expected; REQUESTS]);
    assert_eq!(answered(&plain, 0, WRITE, "local").0, [expected; REQUESTS]);
    for stores in 1..=3 {
        assert_eq!(answered(&example(), stores, READ, "local").0, [expected; REQUESTS], "{stores} stores");
    }
}

/// A request to the head, one message to each next store, and the tail's reply, over two links each. With piggyback,
/// all of them are longer by the frame, its port and its length, and the length of these.
#[test]
fn a_write_takes_exactly_one_round_trip_through_the_chain() {
    let mut local: Vec<u64> = Vec::new();
    for (stores, hold) in [1, 2, 3_usize].into_iter().flat_map(|stores| [(stores, "local"), (stores, "piggyback")]) {
        let (times, directory) = answered(&example(), stores, WRITE, hold);
        let switch = Ipv4Addr::new(198, 19, 0, 1);
        let store = |number: usize| Ipv4Addr::new(198, 18, 0, number as u8);
        let members: Vec<Ipv4Addr> = [switch].into_iter().chain((1..=stores).map(store)).chain([switch]).collect();
        let way = |pair: &[Ipv4Addr]| {
            // Between renewals, which are sent every 500 ms.
            datagram_bytes(&directory, stores, (pair[0], pair[1]), 200_000_000)
        };
        let lengths: Vec<u64> = members.windows(2).map(way).collect();
        let expected = 2 * link_ns(FRAME) + lengths.iter().map(|bytes| 2 * link_ns(*bytes)).sum::<u64>();
        assert_eq!(times, [expected; REQUESTS], "{stores} stores, {hold}");
        if hold == "piggyback" {
            assert_eq!(lengths, local.iter().map(|bytes| bytes + FRAME + 6 + 2).collect::<Vec<_>>());
        }
        local = lengths;
    }
}
