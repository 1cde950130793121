//! The output of `triplane subscribe diff` for entries, and of `explain` for packets.

use crate::support::feed::frame;
use crate::support::rig::Rig;
use crate::support::{self, Directory, Done, Running, TEST_TIMEOUT, run, triplane};
use itch_feed::{DatagramMessages, Feed, Mix, Spec, Workload, messages};
use testing::port::reserved_address;
use wire::itch::{Body, Message};
use wire::pcap::Writer;

const FORMAT: &str = "examples/market-data/feed.p4";
const RULES: &str = "examples/market-data/rules.sub";
const SAME: &str = "equivalent for every message\n";

fn subscribe(arguments: &[&str]) -> Done {
    run(&mut triplane(&[&["subscribe"], arguments].concat()))
}

#[test]
fn rules_and_their_entries_are_the_same_in_any_order_until_an_entry_changes() {
    let directory = Directory::new();
    let (plain, ordered) = (directory.path("plain.json"), directory.path("ordered.json"));
    subscribe(&["compile", FORMAT, RULES, "-o", &plain]).ok();
    subscribe(&["compile", FORMAT, RULES, "--order", "price,shares", "-o", &ordered]).ok();
    for [one, other] in [[RULES, &plain], [&plain, RULES], [&ordered, &plain], [&plain, &ordered], [RULES, &ordered]] {
        assert_eq!(subscribe(&["diff", FORMAT, one, other]).ok().stdout, SAME, "{one} {other}");
    }
    // The fund's port, in the entry that only the fund uses.
    let text = std::fs::read_to_string(&ordered).unwrap();
    assert!(text.contains("\"port\":4"));
    let changed = directory.write("changed.json", text.replacen("\"port\":4", "\"port\":9", 1));
    let differ = subscribe(&["diff", FORMAT, &plain, &changed]);
    assert_eq!(differ.code, Some(1), "{differ:?}");
    let lines: Vec<&str> = differ.stdout.lines().collect();
    let [_, message, first, second] = lines[..] else { panic!("{}", differ.stdout) };
    assert!(first.ends_with("fwd(4)") && second.ends_with("fwd(9)"), "{}", differ.stdout);
    // The rules deliver the printed message as the difference says.
    let explained = subscribe(&["explain", FORMAT, RULES, "--message", &message.trim().replace(", ", ",")]).ok();
    assert!(explained.stdout.starts_with("fwd(4)\n"), "{message}: {}", explained.stdout);

    // Heartbeats go to all ports.
    let (members, fewer) = ("\"multicast_group_id\":32767", "\"multicast_group_id\":32766");
    let silent = directory.write("silent.json", text.replace(members, fewer));
    let differ = subscribe(&["diff", FORMAT, &plain, &silent]);
    assert_eq!(differ.code, Some(1));
    assert!(differ.stdout.contains("but packets without messages are delivered differently"), "{}", differ.stdout);
}

#[test]
fn linked_aggregates_are_compared_by_what_they_compute() {
    let directory = Directory::new();
    let text = std::fs::read_to_string(support::root().join(FORMAT)).unwrap();
    let any = "@query_aggregate(\"any\", 64, 2)\nstruct headers_t {";
    let format = directory.write("any.p4", text.replace("struct headers_t {", any));
    let rules = ["stock == \"A\" and ewma(price) > 9 : fwd(2)", "count() by stock > 7 : fwd(3)"];
    let one = directory.write("one.sub", rules.join("\n"));
    let other = directory.write("other.sub", [rules[1], rules[0]].join("\n"));
    let [entries, others] = ["entries.json", "others.json"].map(|name| directory.path(name));
    subscribe(&["compile", &format, &one, "-o", &entries]).ok();
    subscribe(&["compile", &format, &other, "-o", &others]).ok();
    for [one, other] in [[&one, &other], [&other, &entries], [&entries, &one], [&others, &one]] {
        assert_eq!(subscribe(&["diff", &format, one, other]).ok().stdout, SAME, "{one} {other}");
    }
    let says = |one: &str, other: &str, [first, second]: [&str; 2]| {
        let text = format!("slot 0 computes different aggregates:\n{one}: {first}\n{other}: {second}\n");
        let differ = subscribe(&["diff", &format, one, other]);
        assert!(differ.code == Some(1) && differ.stdout.starts_with(&text), "{differ:?}");
    };
    let [ewma, count] = ["ewma(price) over 16 packets", "count() by stock over all"];
    says(&entries, &others, [ewma, count]);
    // The tables of these rules are the same.
    let longer = rules[0].replace("ewma(price)", "ewma(price) over 64 packets");
    let longer = directory.write("longer.sub", [&longer, rules[1]].join("\n"));
    says(&one, &longer, [ewma, "ewma(price) over 64 packets"]);
    says(&entries, &longer, [ewma, "ewma(price) over 64 packets"]);
    let json = subscribe(&["diff", &format, &one, &longer, "--json"]);
    assert!(json.code == Some(1) && json.stdout.starts_with("{\"same\":false,\"slots\":[{"), "{json:?}");

    // Links that no rule can have, and one that no message reaches.
    let text = std::fs::read_to_string(&entries).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        directory.write("changed.json", text.replacen(from, to, 1))
    };
    for (from, to) in [
        ("\"function\":6", "\"function\":9"),
        ("\"function\":6", "\"function\":2"),
        ("\"shift\":4", "\"shift\":17"),
        ("\"length\":0", "\"length\":1"),
        ("\"key_1\":0", "\"key_1\":2"),
        ("\"field\":9", "\"field\":0"),
        ("\"field\":9", "\"field\":5"),
        ("\"field\":9", "\"field\":77"),
    ] {
        let differ = subscribe(&["diff", &format, &entries, &changed(from, to)]);
        assert!(differ.code == Some(2) && differ.stderr.contains("no rule of this format"), "{to}: {differ:?}");
    }
    let dead = subscribe(&["diff", &format, &entries, &changed("\"match\":{\"slot\":0}", "\"match\":{\"slot\":5}")]);
    assert!(dead.code == Some(1) && dead.stderr.contains("looked up for slot 0 only"), "{dead:?}");
    let explained = subscribe(&["explain", &format, &one, "--message", "stock=A,price=5", "--state", "ewma(price)=10"]);
    assert!(explained.ok().stdout.starts_with("fwd(2); counts for slot 0 ewma(price) over 16 packets;"));
}

#[test]
fn entries_of_other_programs_and_contradictory_entries_are_reported_at_their_positions() {
    let directory = Directory::new();
    let plain = directory.path("plain.json");
    subscribe(&["compile", FORMAT, RULES, "-o", &plain]).ok();
    let text = std::fs::read_to_string(&plain).unwrap();
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}\n{text}");
        let path = directory.write("changed.json", text.replacen(from, to, 1));
        subscribe(&["diff", FORMAT, &path, &plain])
    };
    let unknown = with("price_range_", "prize_range_");
    assert!(unknown.code == Some(2) && unknown.stderr.contains("prize_range_"), "{unknown:?}");
    let grouped = directory.path("grouped.json");
    subscribe(&["compile", FORMAT, RULES, "-o", &grouped, "--groups"]).ok();
    let text = std::fs::read_to_string(&grouped).unwrap();
    let group = "\"multicast_group_id\":1,";
    assert!(text.contains(group), "{text}");
    let other = directory.write("other.json", text.replacen(group, "\"multicast_group_id\":77,", 1));
    let missing = subscribe(&["diff", FORMAT, &other, &plain]);
    assert!(missing.stderr.contains("there is no multicast group 1"), "{missing:?}");
    let broken = directory.write("broken.json", "{ \"table_entries\": [ { ] }");
    let broken = subscribe(&["diff", FORMAT, &broken, &plain]);
    assert!(broken.code == Some(2) && broken.stderr.contains("broken.json:1:"), "{broken:?}");
    let nobody = subscribe(&["diff", FORMAT, RULES, &format!("@{}", reserved_address())]);
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
}

/// A format with one header after another.
const BEHIND: &str = "crates/subscribe_p4/testdata/behind.p4";

#[test]
fn exit_codes_distinguish_differences_from_files_that_cannot_be_compared() {
    let directory = Directory::new();
    let rules = |name: &str, text: &str| directory.write(name, text);
    let diff = |one: &str, other: &str| subscribe(&["diff", BEHIND, one, other]);
    let d = rules("d.sub", "d == 254 : fwd(1)\n");
    // The second header is parsed after the first.
    let both = rules("both.sub", "d == 254 and valid(h) : fwd(1)\n");
    assert_eq!(diff(&d, &both).ok().stdout, SAME);
    let other = rules("other.sub", "d == 253 : fwd(1)\n");
    let differ = diff(&d, &other);
    assert!(differ.code == Some(1) && differ.stdout.contains("d=253"), "{differ:?}");
    let wrong = rules("wrong.sub", "e == 3 : fwd(1)\n");
    assert_eq!((diff(&d, &wrong).code, diff(&wrong, &wrong).code), (Some(2), Some(2)));
    assert_eq!(diff(&d, &directory.path("none.sub")).code, Some(3));
    assert_eq!(subscribe(&["diff", BEHIND, &d]).code, Some(2));
    let never = rules("never.sub", "not valid(h) and valid(g) : fwd(1)\n");
    let check = subscribe(&["check", BEHIND, &never]).ok();
    assert!(check.stderr.contains("never matches") && check.stderr.contains("mutually exclusive"), "{check:?}");
}

#[test]
fn entries_of_exact_tables_of_prefixes_are_compared() {
    let directory = Directory::new();
    let rules = directory.write("b.sub", "b == 3 : fwd(1)\nb in 0/2 : fwd(2)\n");
    for ranges in ["range", "ternary", "lpm"] {
        let entries = directory.path(&format!("{ranges}.json"));
        subscribe(&["compile", BEHIND, &rules, "--exact-tables", "--ranges", ranges, "-o", &entries]).ok();
        assert!(std::fs::read_to_string(&entries).unwrap().contains("b_exact_"), "{ranges}");
        assert_eq!(subscribe(&["diff", BEHIND, &rules, &entries]).ok().stdout, SAME, "{ranges}");
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn differences_and_explanations_are_printed_as_json() {
    let directory = Directory::new();
    let one = directory.write("one.sub", "rule a: stock == \"GOOGL\" and price > 5 : fwd(1, 2)\n");
    let other = directory.write("other.sub", "stock == \"GOOGL\" and price > 6 : fwd(1, 2)\n");
    let same = subscribe(&["diff", FORMAT, &one, &one, "--json"]).ok();
    assert_eq!(same.stdout, "{\"same\":true}\n");
    let differ = subscribe(&["diff", FORMAT, &one, &other, "--json"]);
    assert_eq!(differ.code, Some(1));
    let told = json(&differ.stdout);
    assert_eq!((&told["same"], &told["in_port"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!(
        (&told["message"]["fields"]["stock"], &told["message"]["fields"]["price"]),
        (&"GOOGL".into(), &6.into())
    );
    assert_eq!(told["first"]["ports"], serde_json::json!([1, 2]));
    assert_eq!(told["second"]["ports"], serde_json::json!([]));
    // In entries the controller is a port.
    let entries = directory.path("entries.json");
    let controlled = directory.write("controlled.sub", "stock == \"GOOGL\" : fwd(1); to_controller\n");
    subscribe(&["compile", FORMAT, &controlled, "-o", &entries]).ok();
    let told = json(&subscribe(&["diff", FORMAT, &one, &entries, "--json"]).stdout);
    assert_eq!((&told["second"]["to_controller"], &told["second"]["ports"]), (&true.into(), &serde_json::json!([1])));
    // Differences that are not about single messages.
    let text = std::fs::read_to_string(&entries).unwrap();
    let members = "\"multicast_group_id\":32767";
    let silent = directory.write("silent.json", text.replace(members, "\"multicast_group_id\":32765"));
    assert!(text.contains(members));
    let told = json(&subscribe(&["diff", FORMAT, &entries, &silent, "--json"]).stdout);
    assert_eq!(told["beside"][0]["what"], "packets without messages are delivered differently");

    let message = "stock=GOOGL,price=9,add_order";
    let told = json(&subscribe(&["explain", FORMAT, &one, "--message", message, "--json"]).ok().stdout);
    assert_eq!((&told["delivery"]["ports"], &told["matching"][0]["rule"]), (&serde_json::json!([1, 2]), &"a".into()));
    assert_eq!(told["matching"][0]["because"][1], serde_json::json!({ "test": "price >= 6", "saw": "9" }));
    assert_eq!(
        (&told["matching"][0]["line"], &told["message"]["headers"]),
        (&1.into(), &serde_json::json!(["add_order"]))
    );
    let packets = "examples/dns/clients.pcap";
    let lines =
        subscribe(&["explain", "examples/dns/dns.p4", "examples/dns/names.sub", "--packet", packets, "--json"]).ok();
    let lines: Vec<serde_json::Value> = lines.stdout.lines().map(json).collect();
    assert!(lines.len() > 3 && lines.iter().zip(1..).all(|(line, number)| line["packet"] == number), "{lines:?}");
    assert!(lines.iter().any(|line| line["messages"][0]["delivery"]["calls"][0]["action"] == "answer"), "{lines:?}");
}

fn feed(spec: Spec, datagrams: usize) -> Vec<Vec<u8>> {
    let mut feed = Feed::new(spec);
    (0..datagrams).map(|number| feed.datagram(number as u64)).collect()
}

/// Whether a rule for traded shares wants a message, as `rules.sub` defines it.
fn is_traded(message: &Message) -> bool {
    matches!(message.body, Body::OrderExecuted(_) | Body::Trade(_))
}

#[test]
fn every_message_of_a_packet_is_explained_those_behind_the_stack_too() {
    let directory = Directory::new();
    let rules = directory.write("tape.sub", "rule tape: kind in {\"E\", \"P\"} : fwd(4)\n");
    let spec = Spec { mix: Mix::BOOK, counts: DatagramMessages::Exactly(30), ..Workload::Synthetic.spec(5) };
    let payloads = feed(spec, 6);
    let mut capture = Writer::new(Vec::new()).unwrap();
    for (number, payload) in (0..).zip(&payloads) {
        capture.write(number * 1_000, &frame(payload)).unwrap();
    }
    let capture = directory.write("feed.pcap", capture.into_inner());
    let explain = |more: &[&str]| subscribe(&[&["explain", FORMAT, &rules], more].concat());
    let all = explain(&["--packet", &capture]).ok().stdout;
    let said: Vec<bool> =
        all.lines().filter(|line| *line == "fwd(4)" || *line == "no rule").map(|line| line == "fwd(4)").collect();
    let right: Vec<bool> =
        payloads.iter().flat_map(|payload| messages(payload).unwrap()).map(|message| is_traded(&message)).collect();
    assert_eq!(said, right, "{all}");
    assert!(right.contains(&true) && right.contains(&false) && right.len() == 180);
    assert!(all.contains("packet 6\nmessage 1 of 30\n"), "{all}");
    let two = explain(&["--packet", &capture, "--count", "2"]).ok().stdout;
    assert!(two.contains("packet 2\n") && !two.contains("packet 3\n"));

    // A packet as hexadecimal digits, without the headings between packets; unreadable parts are reported.
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let whole = frame(&payloads[0]);
    let one = explain(&["--packet", &digits(&whole)]).ok().stdout;
    assert!(one.starts_with("message 1 of 30\n"), "{one}");
    let cut = explain(&["--packet", &digits(&whole[..20])]).ok().stdout;
    assert!(cut.contains("PacketTooShort") && cut.contains("dropped"), "{cut}");
    let short = explain(&["--packet", &digits(&whole[..whole.len() - 4])]).ok().stdout;
    assert!(
        short.contains("message 29 of 29") && short.contains("message 30, the last one, cannot be parsed and is lost"),
        "{short}"
    );
    let heartbeat = explain(&["--packet", &digits(&frame(&[&payloads[0][..18], &[0, 0]].concat()))]).ok().stdout;
    assert!(
        heartbeat.contains("announces no messages") && heartbeat.contains("is sent to all subscribers"),
        "{heartbeat}"
    );
    let nonsense = explain(&["--packet", "xyz"]);
    assert!(nonsense.code == Some(2) && nonsense.stderr.contains("hexadecimal digits"), "{nonsense:?}");
}

#[test]
fn messages_of_a_packet_see_what_those_before_them_changed() {
    let rules = "stock == \"GOOGL\" : fwd(2)\n";
    let directory = Directory::new();
    let format = std::fs::read_to_string(support::root().join(FORMAT)).unwrap();
    let format =
        format.replacen("struct headers_t", "@query_aggregate(\"count() by stock over 1s\")\nstruct headers_t", 1);
    assert!(format.contains("@query_aggregate"));
    let format = directory.write("counted.p4", format);
    let rules = directory.write("counted.sub", format!("{rules}valid(add_order) and count() by stock >= 2 : fwd(3)\n"));
    let spec = Spec { share: 1.0, counts: DatagramMessages::Exactly(4), ..Workload::WorstCase.spec(3) };
    let payload = frame(&feed(spec, 1)[0]);
    let digits: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
    let explained = subscribe(&["explain", &format, &rules, "--packet", &digits]).ok().stdout;
    let goes: Vec<&str> = explained.lines().filter(|line| line.starts_with("fwd(")).collect();
    let ports: Vec<&str> = goes.iter().map(|line| line.split(';').next().unwrap_or_default()).collect();
    assert_eq!(ports, ["fwd(2)", "fwd(2)", "fwd(2, 3)", "fwd(2, 3)"], "{explained}");
}

#[test]
fn packets_of_every_example_are_explained() {
    let examples = [
        ("dns/dns.p4", "dns/names.sub", "dns/clients.pcap"),
        ("cache/cache.p4", "cache/keys.sub", "cache/clients.pcap"),
        ("int-reports/report.p4", "int-reports/reports.sub", "int-reports/reports.pcap"),
        ("subscribe-router/router.p4", "subscribe-router/routes.sub", "subscribe-router/packets.pcap"),
    ];
    for [format, rules, packets] in examples.map(|(a, b, c)| [a, b, c].map(|path| format!("examples/{path}"))) {
        let explained = subscribe(&["explain", &format, &rules, "--packet", &packets]).ok().stdout;
        assert!(explained.contains("packet 1\n") && explained.contains(" matches\n"), "{format}: {explained}");
    }
}

/// A switch that the service manages is read and compared with its intended state.
#[test]
fn a_switch_is_compared_with_rules_and_files() {
    let directory = Directory::new();
    let entries = directory.path("entries.json");
    subscribe(&["compile", FORMAT, RULES, "-o", &entries]).ok();
    let address = reserved_address();
    let _switch = Rig::new(8, address);
    let switch = address.to_string();
    let serve = ["subscribe", "serve", FORMAT, RULES, "--addr", &switch, "--listen", "127.0.0.1:0"];
    let mut service = Running::start(&mut triplane(&serve));
    let listen = service.wait_for_address("subscriptions on ");
    let tell = |arguments: &[&str]| subscribe(&[arguments, &["--service", &listen]].concat()).ok();
    // This rule is added and removed again. The switch may take a while to be reached.
    let add = ["add", "stock == \"MSFT\" : fwd(7)", "--service", &listen];
    let deadline = std::time::Instant::now() + TEST_TIMEOUT;
    let id = loop {
        let done = subscribe(&add);
        if done.code == Some(0) {
            break done.stdout;
        }
        assert!(std::time::Instant::now() < deadline, "{done:?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let there = format!("@{switch}");
    let differ = subscribe(&["diff", FORMAT, RULES, &there]);
    assert_eq!(differ.code, Some(1), "{differ:?}");
    assert!(differ.stdout.contains("MSFT") && differ.stdout.contains("@"), "{}", differ.stdout);
    tell(&["remove", id.trim()]);
    assert_eq!(subscribe(&["diff", FORMAT, RULES, &there]).ok().stdout, SAME);
    assert_eq!(subscribe(&["diff", FORMAT, &there, &entries]).ok().stdout, SAME);
    service.signal("TERM");
    service.wait();
}
