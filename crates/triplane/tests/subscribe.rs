//! Packet subscriptions as a user has them: a format and rules in, a program and entries out, and a market data feed
//! through a switch that runs them. What each subscriber gets is held against the feed, message by message.

mod support;

use std::collections::BTreeMap;

use market::{Counts, Feed, Mix, PORT, Receiver, Spec, Workload};
use support::{Directory, run, triplane};
use wire::itch::{Body, Message, Price, Symbol};
use wire::pcap::{Reader, Writer};
use wire::{ethernet, ipv4, moldudp64, udp};

const FORMAT: &str = "examples/market-data/feed.p4";

/// Rules, and the same said in Rust: which ports want a message.
const RULES: &str = r#"
# A fund that wants everything of one stock, and one that wants it when it is dear.
rule all:  stock == "GOOGL" : fwd(2)
rule dear: stock == "GOOGL" && price > 5000000 : fwd(3, 4)
stock in {"S0002", "S0003"} and (shares >= 500 or side == "S") : fwd(4)
not valid(add_order) and kind != "D" : fwd(5)
"#;

fn wanted(message: &Message) -> Vec<u32> {
    let [google, second, third] = ["GOOGL", "S0002", "S0003"].map(|name| name.parse::<Symbol>().unwrap());
    let order = match &message.body {
        Body::AddOrder(add) => Some((add.stock, add.price, add.shares, add.side)),
        Body::Trade(trade) => Some((trade.stock, trade.price, trade.shares, trade.side)),
        _ => None,
    };
    let mut ports = Vec::new();
    if let Some((stock, price, shares, side)) = order {
        if stock == google {
            ports.push(2);
        }
        if stock == google && price > Price(5_000_000) {
            ports.extend([3, 4]);
        }
        if [second, third].contains(&stock) && (shares >= 500 || side == wire::itch::Side::Sell) {
            ports.push(4);
        }
    }
    if !matches!(message.body, Body::AddOrder(_) | Body::OrderDelete(_)) {
        ports.push(5);
    }
    ports
}

/// A datagram of the feed as a frame.
fn frame(payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port: PORT, destination_port: PORT };
    let ip = ipv4::Repr::new([10, 0, 0, 1].into(), [239, 1, 1, 1].into(), ipv4::UDP);
    let ethernet = ethernet::Repr {
        destination: "01:00:5e:01:01:01".parse().unwrap(),
        source: "02:00:00:00:00:01".parse().unwrap(),
        ethertype: ethernet::IPV4,
    };
    ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), payload)))
}

/// The feed's payload in a frame, whose headers have to be right to the byte.
fn payload(frame: &[u8]) -> Vec<u8> {
    let ip = ipv4::Packet::new_checked(&frame[ethernet::HEADER_LEN..]).unwrap();
    assert!(ip.is_checksum_right());
    assert_eq!(ip.total_len(), frame.len() - ethernet::HEADER_LEN, "nothing lies behind the packet: {frame:02x?}");
    let udp = udp::Packet::new_checked(ip.payload()).unwrap();
    assert_eq!(udp.length(), ip.payload().len());
    assert!(udp.is_checksum_right(ipv4::Repr::parse(&ip).addresses()));
    let payload = udp.payload();
    let mold = moldudp64::Packet::new_checked(payload).unwrap();
    let bytes: usize = mold.messages().map(|message| moldudp64::LENGTH_LEN + message.len()).sum();
    assert_eq!(payload.len(), moldudp64::HEADER_LEN + bytes, "the messages fill the datagram");
    payload.to_vec()
}

/// Sends payloads through a switch with the rules; gives what each port got.
fn through_a_switch(payloads: &[Vec<u8>], shape: &[&str]) -> BTreeMap<u32, Vec<Vec<u8>>> {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", RULES);
    let (program, entries) = (directory.path("feed.p4"), directory.path("feed.json"));
    let mut compile = vec!["subscribe", "compile", FORMAT, &rules, "-o", &entries, "--program", &program];
    compile.extend(shape);
    run(&mut triplane(&compile)).ok();

    let mut capture = Writer::new(Vec::new()).unwrap();
    for (number, payload) in (0u64..).zip(payloads) {
        capture.write(number * 1_000, &frame(payload)).unwrap();
    }
    let input = directory.write("in.pcap", capture.into_inner());
    let outputs = [2, 3, 4, 5].map(|port| (port, directory.path(&format!("{port}.pcap"))));
    let mut ports = vec![format!("1={input}:")];
    ports.extend(outputs.iter().map(|(port, path)| format!("{port}=:{path}")));
    let mut arguments = vec!["run", &program, "--entries", &entries];
    arguments.extend(ports.iter().flat_map(|port| ["--port", port]));
    run(&mut triplane(&arguments)).ok();
    let read = |path: &String| {
        let bytes = std::fs::read(path).unwrap();
        Reader::new(bytes.as_slice()).unwrap().map(|captured| payload(&captured.unwrap().data)).collect()
    };
    outputs.iter().map(|(port, path)| (*port, read(path))).collect()
}

fn messages(payload: &[u8]) -> Vec<Message> {
    let packet = moldudp64::Packet::new_checked(payload).unwrap();
    packet.messages().map(|bytes| Message::parse(bytes).unwrap()).collect()
}

fn feed(spec: Spec, datagrams: usize) -> Vec<Vec<u8>> {
    let mut feed = Feed::new(spec);
    (0..datagrams).map(|number| feed.datagram(number as u64)).collect()
}

#[test]
fn subscribers_get_the_messages_that_they_asked_for_and_no_others() {
    let base = Workload::Synthetic.spec(5);
    let feeds = [
        ("synthetic", Spec { share: 0.2, others: 9, ..base.clone() }),
        ("worst case", Workload::WorstCase.spec(6)),
        ("a whole book", Spec { share: 0.2, others: 9, mix: Mix::BOOK, ..base.clone() }),
        // More messages than the format's stack holds: the rest goes round.
        ("long", Spec { share: 0.3, others: 3, mix: Mix::BOOK, counts: Counts::Exactly(30), ..base }),
    ];
    for (name, spec) in feeds {
        let payloads = feed(spec, 300);
        let all: Vec<Message> = payloads.iter().flat_map(|payload| messages(payload)).collect();
        for shape in [&[][..], &["--messages-per-pass", "1"], &["--messages-per-pass", "5"]] {
            for (port, got) in through_a_switch(&payloads, shape) {
                let asked: Vec<&Message> = all.iter().filter(|message| wanted(message).contains(&port)).collect();
                let mut receiver = Receiver::default();
                let got: Vec<Message> = got
                    .iter()
                    .flat_map(|payload| receiver.receive(payload, 0).unwrap())
                    .map(|arrival| arrival.message)
                    .collect();
                assert_eq!(got.len(), asked.len(), "{name}, port {port}, {shape:?}");
                assert!(got.iter().eq(asked), "{name}, port {port}, {shape:?}: other messages, or in another order");
                assert_eq!((receiver.totals().missing, receiver.totals().repeated), (0, 0), "{name}, port {port}");
            }
        }
    }
}

#[test]
fn what_is_lost_before_the_switch_is_a_gap_for_everyone_and_heartbeats_reach_everyone() {
    let mut payloads = feed(Spec { counts: Counts::Exactly(2), ..Workload::WorstCase.spec(1) }, 10);
    payloads.remove(4);
    let next = moldudp64::datagram::<[u8; 0]>(*b"TRIPLANE01", 21, &[]);
    payloads.push(next);
    for (port, got) in through_a_switch(&payloads, &[]) {
        let mut receiver = Receiver::default();
        for payload in &got {
            receiver.receive(payload, 0).unwrap();
        }
        let totals = receiver.totals();
        let last = moldudp64::Packet::new_checked(got.last().unwrap()).unwrap();
        assert_eq!(last.count(), moldudp64::HEARTBEAT, "port {port}");
        // A port that got nothing before learns its first number from the heartbeat.
        assert_eq!(last.sequence(), totals.messages + 2 + 1, "port {port}");
        assert_eq!(totals.missing, if totals.messages == 0 { 0 } else { 2 }, "port {port}");
    }
}

#[test]
fn bad_datagrams_are_dropped_whole_or_up_to_where_they_are_bad() {
    let good = feed(Workload::WorstCase.spec(2), 1).remove(0);
    let mut cut = good.clone();
    cut.truncate(good.len() - 20);
    let mut counts_more = good.clone();
    counts_more[19] = 13;
    // A message that is too short for any: nobody can say where the next one begins.
    let mut nonsense = good.clone();
    nonsense[moldudp64::HEADER_LEN + 1] = 2;
    let got = through_a_switch(&[cut, counts_more, nonsense, good.clone()], &[]);
    // Only what is whole is delivered; frames with a wrong length never are.
    let all: Vec<Message> = got[&2].iter().flat_map(|payload| messages(payload)).collect();
    assert!(all.ends_with(&messages(&good)), "the good one comes through");
    assert!(all.iter().all(|message| messages(&good).contains(message)));
}

#[test]
fn mistakes_in_rules_are_told_at_their_places() {
    let directory = Directory::new();
    let rules =
        directory.write("rules.sub", "stok == \"GOOGL\" : fwd(1)\nprice > : fwd(2)\nstock == \"A\" : fwd(600)\n");
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
    assert_eq!(done.code, Some(1));
    for said in ["rules.sub:1:1", "`stock`", "rules.sub:2:9", "rules.sub:3:"] {
        assert!(done.stderr.contains(said), "`{said}` is missing:\n{}", done.stderr);
    }
}
