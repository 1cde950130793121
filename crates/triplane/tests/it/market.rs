//! The market data example without a network: the feed from a capture, through the example's switch, to each
//! subscriber.

use std::collections::BTreeMap;

use crate::support::{self, Directory, root, run, triplane};
use itch_feed::{Feed, Filter, Mix, Spec, Workload};
use serde_json::Value;

const FORMAT: &str = "examples/market-data/feed.p4";
const RULES: &str = "examples/market-data/rules.sub";
const PROGRAM: &str = "examples/market-data/switch.p4";
const ENTRIES: &str = "examples/market-data/switch.json";

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Number of messages in the first `datagrams` datagrams of a feed that each port asked for.
fn asked(spec: Spec, datagrams: usize) -> BTreeMap<u32, u64> {
    let rules = Filter::parse_rules(RULES, &text(RULES)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut feed = Feed::new(spec);
    let mut asked = BTreeMap::new();
    for _ in 0..datagrams {
        for message in itch_feed::messages(&feed.datagram(0)).unwrap() {
            let mut ports: Vec<u32> =
                rules.iter().filter(|rule| rule.filter.wants(&message)).flat_map(|rule| rule.ports.clone()).collect();
            ports.sort_unstable();
            ports.dedup();
            ports.into_iter().for_each(|port| *asked.entry(port).or_default() += 1);
        }
    }
    asked
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value:#}"))
}

/// The committed program and entries are up to date; `UPDATE_EXPECT=1` regenerates them.
#[test]
fn program_and_entries_are_what_the_rules_compile_to() {
    let directory = Directory::new();
    let (program, entries) = (directory.path("switch.p4"), directory.path("switch.json"));
    run(&mut triplane(&["subscribe", "compile", FORMAT, RULES, "-o", &entries, "--program", &program])).ok();
    for (made, kept) in [(program, PROGRAM), (entries, ENTRIES)] {
        let made = std::fs::read_to_string(made).unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(root().join(kept), &made).unwrap();
        }
        assert!(made == text(kept), "{kept} is not what the rules compile to now; UPDATE_EXPECT=1 writes it anew");
    }
}

#[test]
fn every_subscriber_gets_what_it_asked_for_without_gaps() {
    let directory = Directory::new();
    let feed = directory.path("feed.pcap");
    let published = ["market", "publish", "--pcap", &feed, "--datagrams", "3000", "--mix", "book", "--share", "0.2"];
    let published = run(&mut triplane(&[&published[..], &["--seed", "5", "--json"]].concat())).ok().json();
    let outputs = [2, 3, 4].map(|port| (port, directory.path(&format!("{port}.pcap"))));
    let mut arguments = vec!["run".to_owned(), PROGRAM.to_owned(), "--entries".to_owned(), ENTRIES.to_owned()];
    arguments.extend(["--port".to_owned(), format!("1={feed}:")]);
    arguments.extend(outputs.iter().flat_map(|(port, path)| ["--port".to_owned(), format!("{port}=:{path}")]));
    run(&mut triplane(&arguments.iter().map(String::as_str).collect::<Vec<_>>())).ok();

    let asked = asked(Spec { mix: Mix::BOOK, share: 0.2, ..Workload::Synthetic.spec(5) }, 3_000);
    let rules = Filter::parse_rules(RULES, &text(RULES)).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(asked.len(), outputs.len());
    for ((port, path), rule) in outputs.iter().zip(rules) {
        let receive = ["market", "receive", "--pcap", path, "--from-start", "--filter", &rule.condition, "--json"];
        let got = run(&mut triplane(&receive)).ok().json();
        assert_eq!(number(&got, "messages"), asked[port], "port {port}: {got:#}");
        assert_eq!(number(&got, "wanted"), asked[port], "port {port} got what it did not ask for: {got:#}");
        for none in ["missing", "repeated", "malformed"] {
            assert_eq!(number(&got, none), 0, "port {port}: {got:#}");
        }
        assert!(asked[port] > 100 && asked[port] < number(&published, "messages"), "{asked:?}");
    }
}

#[test]
fn lost_messages_are_reported() {
    let directory = Directory::new();
    let (feed, part) = (directory.path("feed.pcap"), directory.path("part.pcap"));
    run(&mut triplane(&["market", "publish", "--pcap", &feed, "--datagrams", "100", "--messages", "3"])).ok();
    let bytes = std::fs::read(&feed).unwrap();
    let frames: Vec<_> = wire::pcap::Reader::new(bytes.as_slice()).unwrap().map(Result::unwrap).collect();
    assert_eq!(frames.len(), 101, "and the end of the session");
    let mut writer = wire::pcap::Writer::new(Vec::new()).unwrap();
    for (at, frame) in frames.iter().enumerate().filter(|(at, _)| ![0, 50, 99].contains(at)) {
        let mut data = frame.data.clone();
        // One message is truncated, although its lengths do not show it.
        if at == 70 {
            data[14 + 20 + 8 + 19] = 9;
        }
        writer.write(frame.time_ns, &data).unwrap();
    }
    std::fs::write(&part, writer.into_inner()).unwrap();
    let got = run(&mut triplane(&["market", "receive", "--pcap", &part, "--from-start", "--json"])).ok().json();
    let counts = ["messages", "missing", "malformed"].map(|name| number(&got, name));
    assert_eq!(counts, [96 * 3, 4 * 3, 1], "{got:#}");
    let text = run(&mut triplane(&["market", "receive", "--pcap", &part, "--from-start"])).ok().stdout;
    assert!(text.contains("288 messages in 96 datagrams") && text.contains("missing      12"), "{text}");
}

/// Delays the frames of a capture: the first by 1 us, the next by 2 us and so on.
fn delayed(capture: &str) -> Vec<u8> {
    let bytes = std::fs::read(capture).unwrap();
    let mut writer = wire::pcap::Writer::new(Vec::new()).unwrap();
    for (frame, late_us) in wire::pcap::Reader::new(bytes.as_slice()).unwrap().map(Result::unwrap).zip(1..) {
        writer.write(frame.time_ns + late_us * 1_000, &frame.data).unwrap();
    }
    writer.into_inner()
}

#[test]
fn ages_are_drawn_with_their_quantiles() {
    let directory = Directory::new();
    let (feed, picture) = (directory.path("feed.pcap"), directory.path("ages.svg"));
    let publish = ["market", "publish", "--pcap", &feed, "--datagrams", "100", "--messages", "1", "--share", "1"];
    run(&mut triplane(&publish)).ok();
    std::fs::write(&feed, delayed(&feed)).unwrap();
    let receive = ["market", "receive", "--pcap", &feed, "--cdf", &picture, "--filter", "stock == \"GOOGL\""];
    let got = run(&mut triplane(&[&receive[..], &["--json"]].concat())).ok().json();
    let age = |name: &str| number(&got["age_ns"], name) / 1_000;
    assert_eq!([age("p50"), age("p90"), age("p99")], [50, 90, 99], "{got:#}");
    let svg = std::fs::read_to_string(&picture).unwrap();
    for text in ["<svg", "stock == &quot;GOOGL&quot;", "100 messages", "p90", "p99.9", "age in us"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    // The line goes on to the right and up: later points have greater ages and shares.
    let line = svg.split("points=\"").map(|part| part.split('"').next().unwrap_or_default());
    let line = line.max_by_key(|points| points.len()).unwrap_or_default();
    let points: Vec<(i32, i32)> = line
        .split_whitespace()
        .filter_map(|point| point.split_once(','))
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    assert!(points.len() > 50 && points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1));
    // A feed without wanted messages has an empty picture.
    let none = ["market", "receive", "--pcap", &feed, "--cdf", &picture, "--filter", "price == 0"];
    run(&mut triplane(&none)).ok();
    assert!(std::fs::read_to_string(&picture).unwrap().contains("0 messages"));
}

#[test]
fn wrong_arguments_are_reported() {
    for (arguments, code, said) in [
        (&["receive", "--filter", "stok == \"A\"", "--pcap", "x"][..], 1, "`stok`"),
        (&["receive", "--group", "10.0.0.1"], 2, "224.0.0.0"),
        (&["receive", "--pcap", "/nowhere.pcap"], 3, "cannot read /nowhere.pcap"),
        (&["receive", "--pcap", "x", "--cdf", "/nowhere/a.svg"], 3, "cannot write /nowhere/a.svg"),
        (&["publish"], 2, "--to"),
        (&["publish", "--pcap", "x"], 2, "--datagrams"),
        (&["publish", "--to", "239.1.1.1", "--share", "2"], 2, "from 0 to 1"),
        (&["publish", "--to", "239.1.1.1", "--messages", "99"], 2, "room for 38 messages"),
        (&["publish", "--to", "239.1.1.1", "--messages", "999"], 2, "1 to 500"),
        (&["publish", "--to", "239.1.1.1", "--mtu", "9001"], 2, "576"),
        (&["publish", "--pcap", "x", "--binary-file", "/nowhere"], 3, "cannot read /nowhere"),
        (&["publish", "--to", "239.1.1.1", "--speed", "2"], 2, "--binary-file"),
        (&["publish", "--to", "239.1.1.1", "--binary-file", "x", "--from", "24:00"], 2, "9:30"),
        (&["publish", "--to", "239.1.1.1", "--rate", "0"], 2, "10k"),
        (&["publish", "--to", "10.0.0.1", "--interface", "192.0.2.1", "--datagrams", "1"], 3, "192.0.2.1"),
    ] {
        let done = run(&mut triplane(&[&["market"], arguments].concat()));
        assert_eq!(done.code, Some(code), "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(said), "{arguments:?}: {done:?}");
    }
}

#[test]
fn a_feed_reaches_a_receiver_over_udp_and_ends_it() {
    let mut receiver = support::Running::start(&mut triplane(&[
        "market",
        "receive",
        "--interface",
        "127.0.0.1",
        "--port",
        "0",
        "--from-start",
        "--seconds",
        "30",
        "--json",
    ]));
    let line = receiver.wait_for("listening on port ");
    let port: u16 =
        line.split_once("port ").and_then(|(_, rest)| rest.split(';').next()?.parse().ok()).expect("a port");
    let to = format!("127.0.0.1:{port}");
    let arguments = ["market", "publish", "--to", &to, "--datagrams", "200", "--rate", "5k", "--json"];
    let sent = run(&mut triplane(&arguments)).ok().json();
    let got = receiver.wait().ok().json();
    assert_eq!(number(&got, "messages") + number(&got, "missing"), number(&sent, "messages"), "{got:#}");
    assert!(number(&got, "messages") > 0 && got["age_ns"]["p50"].as_u64() > Some(0), "{got:#}");
}

#[test]
fn the_demos_second_act_delivers_what_was_asked_for() {
    let json = run(&mut triplane(&["demo", "--offline", "--json"])).ok().json();
    let subscribers = json["market"]["subscribers"].as_array().expect("a list");
    assert_eq!(subscribers.len(), 3, "{json:#}");
    for subscriber in subscribers {
        assert!(number(subscriber, "asked") > 100, "{subscriber:#}");
        assert_eq!(subscriber["asked"], subscriber["delivered"], "{subscriber:#}");
        assert_eq!(number(subscriber, "missing"), 0, "{subscriber:#}");
    }
    assert!(json["market"]["way"].as_array().is_some_and(|lines| lines.len() >= 3), "{json:#}");
    let text = run(&mut triplane(&["demo", "--offline"])).ok().stdout;
    for said in [
        "A P4 router between two hosts",
        "Messages delivered to the subscribers",
        "Path of one datagram",
        "stock == \"GOOGL\"",
    ] {
        assert!(text.contains(said), "`{said}` is missing in\n{text}");
    }
}
