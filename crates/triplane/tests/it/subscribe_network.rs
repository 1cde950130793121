//! Rules of a network's hosts, compiled for each switch and run in the simulated network: every host gets the messages
//! that it asked for and no others.

use std::collections::BTreeMap;

use crate::support::{Directory, run, triplane};
use itch_feed::{Filter, Receiver, messages};
use rng::SplitMix64;
use wire::itch::Message;

const FORMAT: &str = "examples/market-data/feed.p4";
const DATAGRAMS: usize = 120;

/// Returns random conditions over the feed, and the hosts that each one delivers to.
fn random_rules(rng: &mut SplitMix64, hosts: u64) -> Vec<(String, Vec<u64>)> {
    let rule = |rng: &mut SplitMix64| {
        let condition = match rng.below(5) {
            0 => "stock == \"GOOGL\"".to_owned(),
            1 => format!("shares >= {}", rng.below(2000)),
            2 => format!("stock == \"GOOGL\" and price > {}", rng.below(10_000_000)),
            3 => "kind in {\"E\", \"P\"}".to_owned(),
            _ => format!("side == \"B\" and shares < {}", rng.below(500)),
        };
        (condition, (0..1 + rng.below(3)).map(|_| 1 + rng.below(hosts)).collect())
    };
    (0..hosts).map(|_| rule(rng)).collect()
}

/// Compiles rules for a topology and generates a feed.
fn compile(directory: &Directory, lab: &str, rules: &[(String, Vec<u64>)], options: &[&str], seed: u64) {
    let path = |name: &str| directory.path(name);
    let line = |(condition, to): &(String, Vec<u64>)| {
        let to: Vec<String> = to.iter().map(|host| format!("h{host}")).collect();
        format!("{condition} : fwd({})\n", to.join(", "))
    };
    let rules = directory.write("rules.sub", rules.iter().map(line).collect::<String>());
    let (lab, out) = (directory.write("lab.toml", lab), path("out"));
    let compile = ["subscribe", "network", FORMAT, &rules, "--lab", &lab, "-o", &out];
    run(&mut triplane(&[&compile, options].concat())).ok();

    let publish = ["market", "publish", "--pcap", &path("out/feed.pcap"), "--datagrams", &DATAGRAMS.to_string()];
    let spec = ["--mix", "book", "--share", "0.2", "--others", "5", "--seed", &seed.to_string()];
    run(&mut triplane(&[&publish[..], &spec].concat())).ok();
}

/// Simulates the feed from a host over the compiled network and captures the packets that pass `ends`.
fn simulate(directory: &Directory, from: u64, ends: &[String]) {
    let path = |name: &str| directory.path(name);
    let mut scenario = format!(
        "duration = \"1s\"\n[[traffic]]\nname = \"feed\"\nkind = \"replay\"\nfrom = \"h{from}\"\nfile = \"feed.pcap\"\n"
    );
    for end in ends {
        scenario += &format!("[[captures]]\nat = \"{end}\"\nfile = \"{end}.pcap\"\n");
    }
    let load = directory.write("out/load.toml", scenario);
    let (lab, results) = (path("out/lab.toml"), path("results"));
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &load, "--out", &results, "--interpret"])).ok();
}

/// Returns the datagrams in a capture of the feed, in order.
fn captured(directory: &Directory, name: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(directory.path(name)).unwrap();
    let headers = wire::ethernet::HEADER_LEN + 20 + 8;
    wire::pcap::Reader::new(bytes.as_slice()).unwrap().map(|frame| frame.unwrap().data[headers..].to_vec()).collect()
}

/// Returns the messages that each host but `from` asked for, in order. Hosts that want no messages are left out.
fn asked(directory: &Directory, rules: &[(String, Vec<u64>)], hosts: u64, from: u64) -> BTreeMap<u64, Vec<Message>> {
    let filters: Vec<(Filter, &Vec<u64>)> =
        rules.iter().map(|(condition, to)| (Filter::parse(condition).expect("a condition"), to)).collect();
    let mut asked: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
    let published = captured(directory, "out/feed.pcap");
    assert!(published.len() >= DATAGRAMS, "the feed, and what ends it");
    for message in published.iter().flat_map(|datagram| messages(datagram).unwrap()) {
        for host in (1..=hosts).filter(|host| *host != from) {
            let wants = |(filter, to): &(Filter, &Vec<u64>)| to.contains(&host) && filter.wants(&message);
            if filters.iter().any(wants) {
                asked.entry(host).or_default().push(message.clone());
            }
        }
    }
    asked
}

/// Returns the messages that a host got, in order, and the number of messages that its sequence numbers show as
/// missing.
fn received(directory: &Directory, host: u64) -> (Vec<Message>, u64) {
    let mut receiver = Receiver::from_start();
    let mut got = Vec::new();
    for datagram in captured(directory, &format!("results/h{host}.pcap")) {
        got.extend(receiver.receive(&datagram, 0).unwrap().into_iter().map(|arrival| arrival.message));
    }
    assert_eq!(receiver.totals().repeated, 0, "nothing comes twice");
    (got, receiver.totals().missing)
}

/// Simulates the feed over a network without losses, from one host after the other, and compares the messages of each
/// other host one by one.
fn each_host_gets_its_messages(shape: &[&str], options: &[&str], hosts: u64, publishers: &[u64], seed: u64) {
    let directory = Directory::new();
    let lab = run(&mut triplane(&[&["lab", "new"], shape].concat())).ok().stdout;
    let rules = random_rules(&mut SplitMix64::new(seed), hosts);
    compile(&directory, &lab, &rules, options, seed);
    hosts_ping_each_other(&directory);
    for from in publishers {
        let others = (1..=hosts).filter(|host| host != from);
        simulate(&directory, *from, &others.clone().map(|host| format!("h{host}")).collect::<Vec<_>>());
        let mut asked = asked(&directory, &rules, hosts, *from);
        assert!(asked.len() > 1 && asked.values().any(|messages| messages.len() > 20), "someone asked for something");
        for host in others {
            let (got, missing) = received(&directory, host);
            let wanted = asked.remove(&host).unwrap_or_default();
            assert_eq!((got.len(), missing), (wanted.len(), 0), "from h{from} to h{host}");
            assert!(got == wanted, "from h{from} to h{host}: other messages, or in another order");
        }
    }
}

/// Simulates a network without a scenario, in which all hosts ping each other: what is not the feed is forwarded, too.
fn hosts_ping_each_other(directory: &Directory) {
    let results = run(&mut triplane(&["lab", "sim", &directory.path("out/lab.toml"), "--json"])).ok().stdout;
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    let pings = &results["traffic"][0];
    assert!(pings["sent"].as_u64().is_some_and(|sent| sent > 0) && pings["sent"] == pings["received"], "{pings}");
}

/// A line of three switches. Frames are lost on the path from s1 over s2 and s3 to h3, on each link.
fn lossy_line() -> String {
    let lab = run(&mut triplane(&["lab", "new", "line"])).ok().stdout;
    let (hosts, links) = lab.split_once("[[links]]").expect("links come last");
    let lossy = |link: &str| {
        if link.contains("\"h1\"") || link.contains("\"h2\"") {
            link.to_owned()
        } else {
            format!("{}\nloss = 0.1\n\n", link.trim_end())
        }
    };
    [hosts.to_owned()].into_iter().chain(links.split("[[links]]").map(lossy)).collect::<Vec<_>>().join("[[links]]")
}

/// Returns the number of the first message that was captured at an end.
fn first_number(directory: &Directory, end: &str) -> u64 {
    let datagrams = captured(directory, &format!("results/{end}.pcap"));
    wire::moldudp64::Packet::new_checked(datagrams.first().expect("a datagram")).unwrap().sequence()
}

#[test]
fn a_subscriber_finds_losses_on_the_way_to_it_by_its_numbers() {
    let (hosts, seed) = (3, 4);
    let ends = ["h2", "h3", "s2:2", "s3:2"].map(str::to_owned);
    let bought = ("side == \"B\"".to_owned(), vec![3]);
    // All messages that are lost after s1 are for h3. A switch counts from the first message that a link delivers.
    let (directory, rules) = (Directory::new(), [bought.clone()]);
    compile(&directory, &lossy_line(), &rules, &[], seed);
    simulate(&directory, 1, &ends);
    let (got, missing) = received(&directory, 3);
    let got = got.len() as u64;
    assert!(got > 50 && missing > 20, "{got} messages, {missing} missing");
    let unseen: u64 = ["s2:2", "s3:2"].iter().map(|end| first_number(&directory, end) - 1).sum();
    assert_eq!(got + missing + unseen, asked(&directory, &rules, hosts, 1)[&3].len() as u64);
    // The recipients of lost messages are unknown: hosts also count as missing the messages that were for others.
    let (directory, rules) = (Directory::new(), [bought, ("side == \"S\"".to_owned(), vec![2])]);
    compile(&directory, &lossy_line(), &rules, &[], seed);
    simulate(&directory, 1, &ends);
    let asked = asked(&directory, &rules, hosts, 1);
    for host in [2, 3] {
        let (got, missing) = received(&directory, host);
        let (got, asked) = (got.len() as u64, asked[&host].len() as u64);
        assert!(got < asked && got + missing > asked, "h{host}: {got}, {missing} missing, {asked} asked for");
    }
}

#[test]
fn over_a_fat_tree() {
    each_host_gets_its_messages(&["fat-tree", "--k", "4"], &[], 16, &[1, 11], 1);
}

#[test]
fn over_a_fat_tree_that_passes_everything_up() {
    each_host_gets_its_messages(&["fat-tree", "--k", "4"], &["--upward", "everything"], 16, &[6, 1], 5);
}

#[test]
fn over_leaves_and_spines_that_pass_everything_up() {
    let shape = ["leaf-spine", "--leaves", "3", "--spines", "2", "--hosts", "2"];
    each_host_gets_its_messages(&shape, &["--upward", "everything"], 6, &[1, 4], 2);
}

#[test]
fn over_a_ring_as_a_tree() {
    each_host_gets_its_messages(&["ring", "--switches", "4"], &["--root", "s2"], 4, &[1, 3], 3);
}

#[test]
fn wrong_arguments_are_reported() {
    let directory = Directory::new();
    let (lab, rules, out) = (directory.path("lab.toml"), directory.path("rules.sub"), directory.path("out"));
    std::fs::write(&lab, run(&mut triplane(&["lab", "new", "star", "--hosts", "3"])).ok().stdout).unwrap();
    let compile = |text: &str, options: &[&str]| {
        std::fs::write(&rules, text).unwrap();
        let all = [&["subscribe", "network", FORMAT, &rules, "--lab", &lab, "-o", &out], options].concat();
        let done = run(&mut triplane(&all));
        assert!(done.code.is_some_and(|code| code == 1 || code == 2), "{done:?}");
        done.stderr
    };
    let unknown = compile("shares > 1 : fwd(h9)\nshares > 2 : fwd(2)\n", &[]);
    assert!(unknown.contains("there is no host `h9`"), "{unknown}");
    assert!(unknown.contains("rules of a network deliver to hosts"), "{unknown}");
    let controller = compile("shares > 1 : fwd(h2); to_controller\n", &[]);
    assert!(controller.contains("can only deliver to hosts"), "{controller}");
    let root = compile("shares > 1 : fwd(h2)\n", &["--root", "h1"]);
    assert!(root.contains("has no switch `h1`"), "{root}");
}
