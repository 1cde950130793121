//! Redundant feeds (A and B): of the same message from several ports, one leaves.

use std::collections::BTreeSet;
use std::fs::read_to_string;

use itch_feed::{Receiver, messages};
use rng::SplitMix64;
use wire::itch::{AddOrder, Body, Message, MessageHeader, Price, Side, Symbol};
use wire::moldudp64;

use crate::subscribe::{FORMAT, payload, run_rules_from};
use crate::support::feed::frame;
use crate::support::{Directory, run, triplane};

const RULES: &str = "stock == \"GOOGL\" : fwd(2)\nshares < 1000000 and stock == \"GOOGL\" : fwd(3)\n";

/// A format of the feed that finds duplicates among this many messages.
fn format(directory: &Directory, arbitrate: u32) -> String {
    let format = read_to_string(format!("{}/../../{FORMAT}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let arbitrated =
        format.replace("session = \"mold.session\",", &format!("session = \"mold.session\", arbitrate = {arbitrate},"));
    assert_ne!(format, arbitrated);
    directory.write("feed.p4", arbitrated)
}

/// The message with this number, which is also its number of shares.
fn message(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = MessageHeader { stock_locate: 1, tracking: 0, timestamp_ns: 0 };
    let order =
        AddOrder { order: 1, side: Side::Buy, shares: number as u32, stock: Symbol(*b"GOOGL   "), price: Price(1) };
    Message { header, body: order.into() }.emit(&mut bytes);
    bytes
}

/// The datagram of some messages of a session.
pub fn datagram(session: &[u8; 10], first: u64, count: u64) -> Vec<u8> {
    let messages: Vec<Vec<u8>> = (first..first + count).map(message).collect();
    frame(&moldudp64::datagram(*session, first, &messages))
}

/// Datagrams of the messages `first..=last`, each with its first number and their number.
fn split(rng: &mut SplitMix64, mut first: u64, last: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    while first <= last {
        let count = (1 + rng.below(20)).min(last - first + 1);
        all.push((first, count));
        first += count;
    }
    all
}

/// The numbers of the messages that a port received, in order, and the number that is missing.
fn received(frames: &[Vec<u8>]) -> (Vec<u64>, u64) {
    let mut receiver = Receiver::from_start();
    let mut numbers = Vec::new();
    for frame in frames {
        for message in messages(&payload(frame)).unwrap() {
            let Body::AddOrder(order) = message.body else { panic!("only orders were sent") };
            numbers.push(u64::from(order.shares));
        }
        receiver.receive(&payload(frame), 0).unwrap();
    }
    assert_eq!(receiver.totals().repeated, 0);
    (numbers, receiver.totals().missing)
}

/// Sends two feeds with losses through a switch, with delays of up to `lag` messages, and compares what
/// subscribers receive with a set of the numbers that came.
fn two_feeds(seed: u64, (arbitrate, lag): (u32, u64), shape: &[&str]) {
    // The last ones are not lost, and every loss has left the window when they come.
    let (sure, total) = (u64::from(arbitrate) + 200, 2 * u64::from(arbitrate) + 600);
    let mut rng = SplitMix64::new(seed);
    let mut arrivals: Vec<(u64, u32, u64, u64)> = Vec::new();
    for port in [1, 4] {
        let mut behind = 0;
        for (first, count) in split(&mut rng, 1, total) {
            behind = if rng.below(3) == 0 { rng.below(lag + 1) } else { behind };
            if first + sure > total || rng.below(3) > 0 {
                arrivals.push((first + behind, port, first, count));
            }
        }
    }
    arrivals.sort_unstable();
    let (mut known, mut wanted) = (BTreeSet::new(), Vec::new());
    for (_, _, first, count) in &arrivals {
        wanted.extend((*first..first + count).filter(|number| known.insert(*number)));
    }
    let frames: Vec<(u32, Vec<u8>)> =
        arrivals.iter().map(|(_, port, first, count)| (*port, datagram(b"TRIPLANE01", *first, *count))).collect();
    let directory = Directory::new();
    let got = run_rules_from(&format(&directory, arbitrate), RULES, shape, &frames, &[2, 3]);
    // The numbers before the first that came are not missing.
    let first = arrivals[0].2;
    let lost = (first..=total).filter(|number| !known.contains(number)).count() as u64;
    assert!(lost > 0 && wanted.len() < arrivals.iter().map(|arrival| arrival.3 as usize).sum(), "{seed}");
    for frames in &got {
        let (numbers, missing) = received(frames);
        assert_eq!(numbers, wanted, "{seed}");
        assert_eq!(missing, lost, "{seed}");
    }
}

#[test]
fn each_message_leaves_once_and_what_no_feed_has_is_missing() {
    for seed in 1..=4 {
        two_feeds(seed, (128, 40), &[]);
    }
    two_feeds(5, (256, 150), &["--groups"]);
    two_feeds(6, (4096, 3_000), &["--messages-per-pass", "4"]);
}

#[test]
fn long_losses_are_counted_when_their_place_is_needed() {
    // Blocks of the register are used before the loss, within it, and not at all.
    for (arbitrate, begin, lost) in
        [(128, 1, 1_000), (4096, 1, 1_000), (128, 500, 70), (128, 77, 51), (4096, 70, 20_000)]
    {
        let mut sent = vec![(begin, 5)];
        let behind = begin + 5 + lost;
        let end = behind + 2 * u64::from(arbitrate) + 500;
        sent.extend((behind..end).step_by(100).map(|first| (first, 100)));
        let frames: Vec<(u32, Vec<u8>)> =
            sent.iter().map(|(first, count)| (1, datagram(b"TRIPLANE01", *first, *count))).collect();
        let directory = Directory::new();
        let got = run_rules_from(&format(&directory, arbitrate), RULES, &[], &frames, &[2]);
        let (numbers, missing) = received(&got[0]);
        assert_eq!(
            (numbers.len() as u64, missing),
            (sent.iter().map(|(_, count)| count).sum(), lost),
            "{arbitrate} {begin} {lost}"
        );
    }
}

#[test]
fn copies_that_are_too_late_to_be_known_are_dropped() {
    let directory = Directory::new();
    let sent = [(1, 60), (200, 61), (1, 20), (261, 3), (264, 100), (364, 100)];
    let frames: Vec<(u32, Vec<u8>)> =
        sent.iter().map(|(first, count)| (1, datagram(b"TRIPLANE01", *first, *count))).collect();
    let got = run_rules_from(&format(&directory, 128), RULES, &[], &frames, &[2]);
    let expected: Vec<u64> = (1..61).chain(200..464).collect();
    assert_eq!(received(&got[0]), (expected, 139));
}

/// Runs frames from port 1 and returns what port 2 receives: the numbers, and how many are missing.
fn numbers_after(arbitrate: u32, frames: &[Vec<u8>]) -> (Vec<u64>, u64) {
    let directory = Directory::new();
    let frames: Vec<(u32, Vec<u8>)> = frames.iter().map(|frame| (1, frame.clone())).collect();
    received(&run_rules_from(&format(&directory, arbitrate), RULES, &[], &frames, &[2])[0])
}

/// Datagrams of 100 messages each, more than enough for all bits of 128 numbers to be needed again.
fn more(first: u64) -> Vec<Vec<u8>> {
    (0..6).map(|number| datagram(b"TRIPLANE01", first + 100 * number, 100)).collect()
}

#[test]
fn messages_that_were_dropped_unread_may_come_by_another_feed() {
    let of = |first, count| datagram(b"TRIPLANE01", first, count);
    let mut short = of(3, 2);
    // According to its length, the datagram ends before its messages do.
    short[14 + 20 + 4..14 + 20 + 6].copy_from_slice(&30u16.to_be_bytes());
    let mut cut = of(5, 3);
    cut.truncate(cut.len() - 10);
    let mut unknown = of(8, 2);
    let last = unknown.len() - 38;
    unknown[last..last + 2].copy_from_slice(&[0, 1]);
    let all = [of(1, 2), short, of(3, 2), cut, of(5, 3), unknown, of(8, 2)];
    let (numbers, missing) = numbers_after(128, &[&all[..], &more(10)].concat());
    assert_eq!((numbers, missing), ((1..610).collect(), 0));
}

#[test]
fn messages_that_no_feed_brought_whole_are_missing_once() {
    let mut cut = datagram(b"TRIPLANE01", 3, 4);
    cut.truncate(cut.len() - 50);
    let (numbers, missing) = numbers_after(128, &[vec![datagram(b"TRIPLANE01", 1, 2), cut], more(7)].concat());
    assert_eq!((numbers, missing), ((1..5).chain(7..607).collect(), 2));
}

#[test]
fn a_session_that_is_joined_late_has_no_gap_before_its_first_number() {
    let of = |first, count| datagram(b"TRIPLANE01", first, count);
    let (numbers, missing) = numbers_after(128, &[vec![of(1000, 5), of(150, 1)], more(1005)].concat());
    assert_eq!((numbers, missing), ((1000..1005).chain([150]).chain(1005..1605).collect(), 0));
    // A heartbeat says which number is next.
    let heartbeat = frame(&moldudp64::datagram::<&[u8]>(*b"TRIPLANE01", 100, &[]));
    let (numbers, missing) = numbers_after(128, &[vec![heartbeat], more(300)].concat());
    assert_eq!((numbers.len(), missing), (600, 200));
}

#[test]
fn a_late_number_one_is_no_new_session_if_it_never_came() {
    let of = |first, count| datagram(b"TRIPLANE01", first, count);
    let sent = [(10, of(2, 3)), (1_400_000, of(1, 4)), (1_400_010, of(5, 1)), (3_000_000, of(1, 2))];
    let got = run_at("stock == \"GOOGL\" : fwd(2)", &sent, 1);
    assert_eq!(numbers(&got[0]), [2, 3, 4, 1, 5, 1, 2]);
}

#[test]
fn formats_and_networks_that_cannot_arbitrate_are_refused() {
    let directory = Directory::new();
    let text = read_to_string(format(&directory, 4096)).unwrap();
    let narrow = directory.write("narrow.p4", text.replace("bit<64> sequence;", "bit<32> sequence;"));
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(h2)\n");
    let done = run(&mut triplane(&["subscribe", "check", &narrow, &directory.write("r.sub", RULES)]));
    assert!(done.stderr.contains("`sequence` must have 64 bits"), "{done:?}");
    let lab = directory.write("lab.toml", run(&mut triplane(&["lab", "new", "star", "--hosts", "3"])).ok().stdout);
    let network =
        ["subscribe", "network", &format(&directory, 4096), &rules, "--lab", &lab, "-o", &directory.path("o")];
    let done = run(&mut triplane(&network));
    assert!(done.code == Some(1) && done.stderr.contains("a network cannot arbitrate"), "{done:?}");
}

/// Frames at times in microseconds, from port 1.
fn run_at(rules: &str, frames: &[(u64, Vec<u8>)], ports: u32) -> Vec<Vec<Vec<u8>>> {
    let directory = Directory::new();
    let format = format(&directory, 4096);
    let rules = directory.write("rules.sub", rules);
    let (program, entries, input) = (directory.path("p.p4"), directory.path("e.json"), directory.path("in.pcap"));
    run(&mut triplane(&["subscribe", "compile", &format, &rules, "-o", &entries, "--program", &program])).ok();
    let mut capture = wire::pcap::Writer::new(Vec::new()).unwrap();
    for (at_us, frame) in frames {
        capture.write(at_us * 1_000, frame).unwrap();
    }
    std::fs::write(&input, capture.into_inner()).unwrap();
    let outputs: Vec<String> = (2..2 + ports).map(|port| directory.path(&format!("{port}.pcap"))).collect();
    let mut arguments = vec!["run".to_owned(), program, "--entries".to_owned(), entries];
    arguments.extend(["--port".to_owned(), format!("1={input}:")]);
    for (port, path) in (2..).zip(&outputs) {
        arguments.extend(["--port".to_owned(), format!("{port}=:{path}")]);
    }
    run(&mut triplane(&arguments.iter().map(String::as_str).collect::<Vec<_>>())).ok();
    let read = |path: &String| {
        let bytes = std::fs::read(path).unwrap();
        wire::pcap::Reader::new(bytes.as_slice()).unwrap().map(|captured| captured.unwrap().data).collect()
    };
    outputs.iter().map(read).collect()
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u64> {
    frames.iter().flat_map(|frame| received(std::slice::from_ref(frame)).0).collect()
}

#[test]
fn number_one_after_a_second_begins_the_session_anew() {
    let of = |session: &[u8; 10], first, count| datagram(session, first, count);
    let one = b"TRIPLANE01";
    let second = 1_000_000;
    let sent = [
        (10, of(one, 1, 3)),
        (20, of(one, 4, 2)),
        // The other feed, most of a second later.
        (second - 100, of(one, 1, 3)),
        (second - 90, of(one, 4, 2)),
        // The publisher has restarted. Its other feed follows.
        (second + 10, of(one, 1, 2)),
        (second + 11, of(one, 1, 2)),
        (second + 12, of(one, 3, 3)),
        (second + 13, of(one, 3, 3)),
        // Another session has numbers of its own.
        (second + 14, of(b"TRIPLANE02", 1, 2)),
        (second + 15, of(b"TRIPLANE02", 1, 2)),
        (second + 16, of(one, 6, 1)),
    ];
    let got = run_at("stock == \"GOOGL\" : fwd(2)", &sent, 1);
    assert_eq!(numbers(&got[0]), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 6]);
}

#[test]
fn numbers_before_the_first_that_came_are_delivered_and_not_missing() {
    let sent = [(1, 1000, 5), (2, 960, 45), (3, 990, 20), (4, 1010, 10)]
        .map(|(at, first, count)| (at, datagram(b"TRIPLANE01", first, count)));
    let got = run_at("stock == \"GOOGL\" : fwd(2)", &sent, 1);
    let (got, missing) = received(&got[0]);
    let expected: Vec<u64> = (1000..1005).chain(960..1000).chain(1005..1020).collect();
    assert_eq!((got, missing), (expected, 0));
}

#[test]
fn duplicates_do_not_count() {
    let directory = Directory::new();
    let plain = read_to_string(format(&directory, 4096)).unwrap();
    let declared = plain.replace("struct headers_t {", "@query_counter(orders)\nstruct headers_t {");
    assert_ne!(plain, declared);
    let format = directory.write("feed.p4", declared);
    let rules = "stock == \"GOOGL\" : orders <- orders + 1\nstock == \"GOOGL\" and orders >= 5 : fwd(2)\n";
    let frames: Vec<(u32, Vec<u8>)> = [(1, 1, 4), (4, 1, 4), (4, 5, 1), (1, 5, 1), (1, 6, 2), (4, 6, 2)]
        .map(|(port, first, count)| (port, datagram(b"TRIPLANE01", first, count)))
        .to_vec();
    let got = run_rules_from(&format, rules, &[], &frames, &[2]);
    assert_eq!(received(&got[0]).0, [6, 7]);
}

#[test]
fn frames_of_many_messages_are_arbitrated_in_every_pass() {
    let sent = [(1, datagram(b"TRIPLANE01", 1, 100)), (2, datagram(b"TRIPLANE01", 31, 150))];
    let got = run_at("stock == \"GOOGL\" : fwd(2)", &sent, 1);
    let (got, missing) = received(&got[0]);
    assert_eq!((got, missing), ((1..=180).collect::<Vec<_>>(), 0));
}
