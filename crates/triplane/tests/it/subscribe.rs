//! Packet subscriptions from the user's point of view: a format and rules in, a program and entries out, and a market
//! data feed through a switch that runs them. The messages of each subscriber are compared with the feed, one by one.

mod beside;
mod checksums;
mod feeds;
mod lengths;
mod mistakes;
mod names;
mod passes;
mod random;
mod sessions;
mod tables;
mod truncated;
mod updates;

use std::collections::BTreeMap;

use crate::support::feed::frame;
use crate::support::{Directory, run, triplane};
use itch_feed::{DatagramMessages, DatagramSource, Feed, Mix, Receiver, Spec, Workload, messages};
use wire::itch::{Body, Message, Price, Symbol};
use wire::pcap::{Reader, Writer};
use wire::{ethernet, ipv4, moldudp64, udp};

const FORMAT: &str = "examples/market-data/feed.p4";

/// Rules; `wanted` expresses them in Rust as the list of ports that want a message.
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
        Body::AddOrderAttributed(add) => Some((add.stock, add.price, add.shares, add.side)),
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

/// Returns the payload of a feed frame, whose headers must be correct to the byte.
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

/// Compiles rules over a format and runs frames that come in at port 1. Returns the frames that leave at each of
/// `ports`.
fn run_rules(format: &str, rules: &str, shape: &[&str], frames: &[Vec<u8>], ports: &[u32]) -> Vec<Vec<Vec<u8>>> {
    let frames: Vec<(u32, Vec<u8>)> = frames.iter().map(|frame| (1, frame.clone())).collect();
    run_rules_from(format, rules, shape, &frames, ports)
}

/// Compiles rules over a format and runs frames that come in at several ports, in this order.
fn run_rules_from(
    format: &str,
    rules: &str,
    shape: &[&str],
    frames: &[(u32, Vec<u8>)],
    ports: &[u32],
) -> Vec<Vec<Vec<u8>>> {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", rules);
    let (program, entries) = (directory.path("program.p4"), directory.path("entries.json"));
    let compile = ["subscribe", "compile", format, &rules, "-o", &entries, "--program", &program];
    run(&mut triplane(&[&compile[..], shape].concat())).ok();
    let mut captures = BTreeMap::new();
    for (number, (port, frame)) in (0u64..).zip(frames) {
        let capture = captures.entry(*port).or_insert_with(|| Writer::new(Vec::new()).unwrap());
        capture.write(number * 1_000, frame).unwrap();
    }
    let outputs: Vec<String> = ports.iter().map(|port| directory.path(&format!("{port}.pcap"))).collect();
    let mut arguments = vec!["run".to_owned(), program, "--entries".to_owned(), entries];
    for (port, capture) in captures {
        let input = directory.write(&format!("in-{port}.pcap"), capture.into_inner());
        arguments.extend(["--port".to_owned(), format!("{port}={input}:")]);
    }
    for (port, path) in ports.iter().zip(&outputs) {
        arguments.extend(["--port".to_owned(), format!("{port}=:{path}")]);
    }
    run(&mut triplane(&arguments.iter().map(String::as_str).collect::<Vec<_>>())).ok();
    let read = |path: &String| {
        let bytes = std::fs::read(path).unwrap();
        Reader::new(bytes.as_slice()).unwrap().map(|captured| captured.unwrap().data).collect()
    };
    outputs.iter().map(read).collect()
}

/// Sends payloads through a switch with the rules and returns the payloads that each port got.
fn through_a_switch(payloads: &[Vec<u8>], shape: &[&str]) -> BTreeMap<u32, Vec<Vec<u8>>> {
    let frames: Vec<Vec<u8>> = payloads.iter().map(|payload| frame(payload)).collect();
    let ports = [2, 3, 4, 5];
    let got = run_rules(FORMAT, RULES, shape, &frames, &ports);
    let payloads = |frames: Vec<Vec<u8>>| frames.iter().map(|frame| payload(frame)).collect();
    ports.into_iter().zip(got.into_iter().map(payloads)).collect()
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
        // More messages than the header stack of the format holds: the rest recirculates.
        ("long", Spec { share: 0.3, others: 3, mix: Mix::BOOK, counts: DatagramMessages::Exactly(30), ..base }),
    ];
    for (name, spec) in feeds {
        let payloads = feed(spec, 300);
        let all: Vec<Message> = payloads.iter().flat_map(|payload| messages(payload).unwrap()).collect();
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
fn rules_that_deliver_to_no_port_are_entries_that_a_switch_takes() {
    let frames: Vec<Vec<u8>> = feed(Workload::WorstCase.spec(1), 5).iter().map(|payload| frame(payload)).collect();
    for rules in ["", "stock == \"GOOGL\" : drop\n"] {
        let got = run_rules(FORMAT, rules, &[], &frames, &[2]);
        assert!(got[0].is_empty(), "nobody asked for anything");
    }
}

#[test]
fn losses_before_the_switch_are_gaps_for_all_subscribers_and_heartbeats_reach_all() {
    let mut payloads = feed(Spec { counts: DatagramMessages::Exactly(2), ..Workload::WorstCase.spec(1) }, 10);
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
        // A port without earlier messages learns its first number from the heartbeat.
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
    // A message that is shorter than every message type: the start of the next one is unknown.
    let mut nonsense = good.clone();
    nonsense[moldudp64::HEADER_LEN + 1] = 2;
    let got = through_a_switch(&[cut, counts_more, nonsense, good.clone()], &[]);
    // Only complete messages are delivered; frames with a wrong length never are.
    let all: Vec<Message> = got[&2].iter().flat_map(|payload| messages(payload).unwrap()).collect();
    assert!(all.ends_with(&messages(&good).unwrap()), "the good one comes through");
    assert!(all.iter().all(|message| messages(&good).unwrap().contains(message)));
}

#[test]
fn mistakes_in_rules_are_reported_at_their_positions() {
    let directory = Directory::new();
    let rules =
        directory.write("rules.sub", "stok == \"GOOGL\" : fwd(1)\nprice > : fwd(2)\nstock == \"A\" : fwd(600)\n");
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
    assert_eq!(done.code, Some(1));
    for said in ["rules.sub:1:1", "`stock`", "rules.sub:2:9", "rules.sub:3:"] {
        assert!(done.stderr.contains(said), "`{said}` is missing:\n{}", done.stderr);
    }
}

#[test]
fn rules_that_name_hosts_are_referred_to_a_network() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"A\" : fwd(h2)\n");
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
    assert_eq!(done.code, Some(1));
    for said in ["expected a port, found `h2`", "rules.sub:1:20", "`triplane subscribe network --lab LAB.toml`"] {
        assert!(done.stderr.contains(said), "`{said}` is missing:\n{}", done.stderr);
    }
}

#[test]
fn rules_match_prefixes_call_actions_and_notify_the_controller() {
    let rules = "source in 1.2.0.0/16 : mark(7); fwd(2)\n\
                 switch_id == 22 and hop_latency > 8000 : fwd(3); to_controller\n\
                 hop_latency > 100000 : to_controller\n";
    let note = |second: u8| vec![1, second, 3, 4, 0];
    let report = |id: u16, latency: u32| [&id.to_be_bytes()[..], &latency.to_be_bytes(), &[9, 9, 9, 9]].concat();
    let frames = [note(2), note(3), report(22, 8_000), report(22, 8_001), report(23, 100_001)];
    // The controller's packets leave at an ordinary port here, so that they can be observed.
    let got = run_rules("crates/subscribe_p4/testdata/reports.p4", rules, &["--cpu-port", "4"], &frames, &[2, 3, 4]);
    assert_eq!(got, [vec![vec![1, 2, 3, 4, 7]], vec![report(22, 8_001)], vec![report(22, 8_001), report(23, 100_001)]]);
}

#[test]
fn an_action_is_called_once_for_a_message_even_if_it_recirculates() {
    let directory = Directory::new();
    let format = directory.write(
        "items.p4",
        r#"#include <v1model.p4>
header top_t { bit<8> count; bit<16> length; bit<8> total; }
header item_t { @query_field_exact("value") bit<8> value; }
struct headers_t {
    top_t top;
    @query_messages[count = "top.count", lengths = "top.length"]
    item_t[4] items;
}
struct metadata_t {}
@query_action
action add(inout headers_t hdr) { hdr.top.total = hdr.top.total + 1; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.top); transition item; }
    state item {
        packet.extract(hdr.items.next);
        transition select(hdr.top.count, hdr.items.lastIndex) { (1, 0): accept; (2, 1): accept; default: item; }
    }
}
"#,
    );
    // The second message is for other ports: it recirculates, and only its own packet is counted.
    let got = run_rules(
        &format,
        "value == 1 : fwd(2)\nvalue == 2 : add(); fwd(3)\n",
        &[],
        &[vec![2, 0, 6, 0, 1, 2]],
        &[2, 3],
    );
    assert_eq!(got[0], [[1, 0, 5, 0, 1]]);
    assert_eq!(got[1], [[1, 0, 5, 1, 2]]);
}

#[test]
fn a_packet_becomes_128_at_most_and_what_is_behind_them_opens_a_gap() {
    let mut feed = Feed::new(Spec { counts: DatagramMessages::Exactly(131), ..Workload::WorstCase.spec(1) });
    let mut payloads: Vec<Vec<u8>> = (0..2).map(|number| feed.datagram(number)).collect();
    let sent: Vec<Message> = payloads.iter().flat_map(|payload| messages(payload).unwrap()[..128].to_vec()).collect();
    payloads.push(feed.heartbeat());
    let got = through_a_switch(&payloads, &["--messages-per-pass", "1"]);
    let mut receiver = Receiver::default();
    let missing: Vec<u64> = got[&2]
        .iter()
        .map(|payload| {
            receiver.receive(payload, 0).unwrap();
            receiver.totals().missing
        })
        .collect();
    let arrived = got[&2].iter().flat_map(|payload| messages(payload).unwrap());
    assert_eq!(arrived.collect::<Vec<_>>(), sent);
    // The next packet shows the loss: the first one of the second datagram, and the heartbeat.
    assert_eq!((missing[127], missing[128], missing[255], missing[256]), (0, 3, 3, 6));
    // The recipients of the lost messages are unknown.
    let mut nothing = Receiver::from_start();
    got[&5].iter().for_each(|payload| drop(nothing.receive(payload, 0).unwrap()));
    assert_eq!(nothing.totals().missing, 6);
}

#[test]
fn messages_that_cannot_be_parsed_after_recirculation_open_a_gap() {
    let mut feed = Feed::new(Spec { counts: DatagramMessages::Exactly(14), ..Workload::WorstCase.spec(1) });
    let mut cut = feed.datagram(0);
    // The length of the last message exceeds the datagram.
    let sent = messages(&cut).unwrap();
    let mold = moldudp64::Packet::new_checked(&cut[..]).unwrap();
    let last = cut.len() - moldudp64::LENGTH_LEN - mold.messages().last().unwrap().len();
    cut[last + 1] += 200;
    let next = feed.datagram(1);
    for shape in [&[][..], &["--groups"]] {
        let got = &through_a_switch(&[cut.clone(), next.clone()], shape)[&2];
        let mut receiver = Receiver::from_start();
        let arrived = got.iter().flat_map(|payload| receiver.receive(payload, 0).unwrap());
        let arrived: Vec<Message> = arrived.map(|arrival| arrival.message).collect();
        assert_eq!(arrived, [&sent[..13], &messages(&next).unwrap()].concat(), "{shape:?}");
        assert_eq!(receiver.totals().missing, 1, "{shape:?}");
    }
}

#[test]
fn what_was_before_is_nothing_to_who_explains_and_compares() {
    let directory = Directory::new();
    let format = "crates/subscribe_p4/testdata/meter.p4";
    let cheap = directory.write("cheap.sub", "rule least: min(value) by unit < 5 : fwd(1)\n");
    let most = directory.write("most.sub", "rule least: min(value) by unit < 6 : fwd(1)\n");
    let subscribe = |arguments: &[&str]| run(&mut triplane(&[&["subscribe"], arguments].concat()));
    let explained = subscribe(&["explain", format, &cheap, "--message", "value=1,unit=A"]).ok().stdout;
    // Before any message there is no minimum.
    assert!(explained.contains("rule `least` does not match"), "{explained}");
    let with = ["--state", "min(value) by unit=4", "--state", "total=7"];
    let explained = subscribe(&[&["explain", format, &cheap, "--message", "value=1,unit=A"], &with[..]].concat()).ok();
    assert!(explained.stdout.contains("rule `least` matches"), "{}", explained.stdout);
    for (state, said) in [
        ("max(weight)=4", "the aggregates that rules test: `min(value) by unit over all`"),
        ("min(value) by unit", "has no value"),
        ("min(value) by unit=-1", "`-1` is not a 64-bit number"),
        ("min(valeu) by unit=1", "there is no field or counter `valeu`"),
    ] {
        let refused = subscribe(&["explain", format, &cheap, "--message", "value=1,unit=A", "--state", state]);
        assert!(refused.code == Some(2) && refused.stderr.contains(said), "{state}: {}", refused.stderr);
    }
    let twice = subscribe(&["explain", format, &cheap, "--message", "value=1,unit=A,value=1"]);
    assert!(
        twice.code == Some(2) && twice.stderr.contains("`value` is given twice: `value=1` and"),
        "{}",
        twice.stderr
    );
    let refused = subscribe(&["compile", format, &cheap, "--cpu-port", "511"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("expected a port from 0 to 510"), "{}", refused.stderr);
    let warned = subscribe(&["compile", format, &cheap, "--cpu-port", "1"]).ok();
    for part in ["controller-port", "or choose another controller port: `--cpu-port`"] {
        assert!(warned.stderr.contains(part), "{}", warned.stderr);
    }
    let differ = subscribe(&["diff", format, &cheap, &most]);
    assert!(differ.code == Some(1) && differ.stdout.contains("min(value) by unit over all=5"), "{}", differ.stdout);
}

#[test]
fn messages_are_explained_and_sets_of_rules_compared() {
    let directory = Directory::new();
    let whole = directory.write("whole.sub", "rule all: stock == \"A\" : fwd(1)\n");
    let halves = directory
        .write("halves.sub", "stock == \"A\" and price > 4 : fwd(1)\nstock == \"A\" and price <= 4 : fwd(1)\n");
    let half = directory.write("half.sub", "rule dear: stock == \"A\" and price > 4 : fwd(1)\n");
    let subscribe = |arguments: &[&str]| run(&mut triplane(&[&["subscribe"], arguments].concat()));

    let explained = subscribe(&["explain", FORMAT, &half, &whole, "--message", "stock=A,price=0b100"]).ok().stdout;
    for said in ["fwd(1)", "rule `all` matches", "rule `dear` does not match", "price >= 5"] {
        assert!(explained.contains(said), "`{said}` is missing:\n{explained}");
    }
    let unknown = subscribe(&["explain", FORMAT, &half, "--message", "stok=A"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("there is no field `stok`"), "{unknown:?}");

    // An order always has a price. A test that all prices pass adds nothing, although the language does not state it.
    let order = directory.write("order.sub", "valid(add_order) : fwd(1)\n");
    let priced = directory.write("priced.sub", "valid(add_order) and price >= 0 and not valid(trade) : fwd(1)\n");
    assert!(subscribe(&["diff", FORMAT, &order, &priced]).ok().stdout.contains("equivalent for every message"));
    assert!(subscribe(&["diff", FORMAT, &whole, &halves]).ok().stdout.contains("equivalent for every message"));
    let differ = subscribe(&["diff", FORMAT, &whole, &half]);
    assert_eq!(differ.code, Some(1));
    assert!(differ.stdout.contains("stock=\"A\"") && differ.stdout.contains("nowhere"), "{}", differ.stdout);
    // A rule that only drops keeps nothing from anyone, and takes no entries.
    let dropped = directory.write("dropped.sub", "rule all: stock == \"A\" : fwd(1)\nprice > 7 : drop\n");
    assert!(subscribe(&["diff", FORMAT, &whole, &dropped]).ok().stdout.contains("equivalent for every message"));
    let entries = |rules: &str| subscribe(&["compile", FORMAT, rules]).ok().stdout;
    assert_eq!(entries(&whole), entries(&dropped));
    let explained = subscribe(&["explain", FORMAT, &dropped, "--message", "stock=B,price=8"]).ok().stdout;
    assert!(explained.starts_with("drop\n"), "{explained}");

    let (drawn, entries) = (directory.path("d.dot"), directory.path("e.json"));
    let never =
        directory.write("never.sub", "stock == \"A\" and price > 4 and price < 3 : fwd(1)\nprice == 7 : fwd(2)\n");
    let done = subscribe(&["compile", FORMAT, &never, "-o", &entries, "--stats", "--dot", &drawn]).ok();
    assert!(done.stderr.contains("never.sub:1:") && done.stderr.contains("1 leaf"), "{}", done.stderr);
    assert!(std::fs::read_to_string(&drawn).unwrap().contains("price"));
}

#[test]
fn two_rules_of_one_name_are_reported_with_both_positions() {
    let directory = Directory::new();
    directory.write("more.sub", "\nrule dear: price > 5 : fwd(2)\n");
    let rules = directory.write("rules.sub", "rule dear: price > 4 : fwd(1)\ninclude \"more.sub\"\n");
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
    assert_eq!(done.code, Some(1));
    for said in ["two rules have the name `dear`", "more.sub:2:1", "rules.sub:1:1"] {
        assert!(done.stderr.contains(said), "`{said}` is missing:\n{}", done.stderr);
    }
}

#[test]
fn a_file_that_is_not_there_is_named_once() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "include \"more.sub\"\n");
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("`more.sub` does not exist: included files are searched for in "), "{}", done.stderr);
    assert!(done.stderr.contains("rules.sub:1:9"), "{}", done.stderr);
}

#[test]
fn files_that_are_not_regular_are_refused_at_once() {
    let directory = Directory::new();
    let pipe = directory.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for wanted in ["pipe", "/dev/zero", "."] {
        let rules = directory.write("rules.sub", format!("include \"{wanted}\"\n"));
        let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
        let said = format!("`{wanted}` is not a regular file: only regular files can be included");
        assert!(done.code == Some(1) && done.stderr.contains(&said), "{}", done.stderr);
    }
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &pipe]));
    assert!(done.code == Some(1) && done.stderr.contains("rules are read from regular files"), "{}", done.stderr);
    let done = run(&mut triplane(&["subscribe", "check", &pipe, "/dev/null"]));
    assert!(done.code == Some(1) && done.stderr.contains("formats are read from regular files"), "{}", done.stderr);
    run(&mut triplane(&["subscribe", "check", FORMAT, "/dev/null"])).ok();
}

#[test]
fn entries_of_another_order_are_refused() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"A\" and price > 5 : fwd(2)\nprice > 9 : fwd(2)\n");
    let input = directory.write("in.pcap", Writer::new(Vec::new()).unwrap().into_inner());
    let (program, entries, port) =
        (directory.path("program.p4"), directory.path("entries.json"), format!("1={input}:"));
    let compile = |order: &[&str]| {
        run(&mut triplane(&[&["subscribe", "compile", FORMAT, &rules, "-o", &entries][..], order].concat())).ok();
    };
    run(&mut triplane(&["subscribe", "program", FORMAT, "-o", &program])).ok();
    let with = ["run", &program, "--entries", &entries, "--port", &port];
    compile(&[]);
    run(&mut triplane(&with)).ok();
    for order in ["price", "stock,price", "shares"] {
        compile(&["--order", order]);
        let done = run(&mut triplane(&with));
        // There is one finding with the cause, not one for each table that follows from it.
        for part in ["different field orders: the program has `Subscriptions.", "same `--order`", "1 error found"] {
            assert!(done.code == Some(1) && done.stderr.contains(part), "{order}, `{part}`: {}", done.stderr);
        }
    }
    let done = run(&mut triplane(&["check", "examples/router/router.p4", "--entries", &entries]));
    assert!(done.stderr.contains("the program matches no rules"), "{done:?}");
    compile(&["--order-of", &program]);
    run(&mut triplane(&with)).ok();
}
