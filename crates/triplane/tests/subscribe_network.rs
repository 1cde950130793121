//! Rules of a network's hosts, compiled for each switch, in the simulated network itself: every host gets the messages it
//! asked for and no others.

mod support;

use std::collections::BTreeMap;

use dice::Dice;
use market::{Feed, Filter, Mix, Spec, Workload};
use support::{Directory, run, triplane};

const FORMAT: &str = "examples/market-data/feed.p4";
const DATAGRAMS: usize = 120;

fn feed(seed: u64) -> Feed {
    Feed::new(Spec { mix: Mix::BOOK, share: 0.2, others: 5, ..Workload::Synthetic.spec(seed) })
}

/// Random conditions over the feed, and the hosts that each delivers to.
fn random_rules(dice: &mut Dice, hosts: u64) -> Vec<(String, Vec<u64>)> {
    let rule = |dice: &mut Dice| {
        let condition = match dice.below(5) {
            0 => "stock == \"GOOGL\"".to_owned(),
            1 => format!("shares >= {}", dice.below(2000)),
            2 => format!("stock == \"GOOGL\" and price > {}", dice.below(10_000_000)),
            3 => "kind in {\"E\", \"P\"}".to_owned(),
            _ => format!("side == \"B\" and shares < {}", dice.below(500)),
        };
        (condition, (0..1 + dice.below(3)).map(|_| 1 + dice.below(hosts)).collect())
    };
    (0..hosts).map(|_| rule(dice)).collect()
}

/// Simulates the feed from h1 over a topology with these rules; what passes these ends is captured.
fn simulate(
    directory: &Directory,
    lab: &str,
    rules: &[(String, Vec<u64>)],
    options: &[&str],
    ends: &[String],
    seed: u64,
) {
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
    let mut scenario =
        "duration = \"1s\"\n[[traffic]]\nname = \"feed\"\nkind = \"replay\"\nfrom = \"h1\"\nfile = \"feed.pcap\"\n"
            .to_owned();
    for end in ends {
        scenario += &format!("[[captures]]\nat = \"{end}\"\nfile = \"{end}.pcap\"\n");
    }
    let load = directory.write("out/load.toml", scenario);
    let (lab, results) = (path("out/lab.toml"), path("results"));
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &load, "--out", &results, "--interpret"])).ok();
}

/// How many messages each host but h1 asked for, of those that want any.
fn asked(rules: &[(String, Vec<u64>)], hosts: u64, seed: u64) -> BTreeMap<u64, u64> {
    let filters: Vec<(Filter, &Vec<u64>)> =
        rules.iter().map(|(condition, to)| (Filter::parse(condition).expect("a condition"), to)).collect();
    let mut asked = BTreeMap::new();
    let mut feed = feed(seed);
    for _ in 0..DATAGRAMS {
        for message in market::messages(&feed.datagram(0)).unwrap() {
            for host in 2..=hosts {
                let wants = |(filter, to): &(Filter, &Vec<u64>)| to.contains(&host) && filter.wants(&message);
                if filters.iter().any(wants) {
                    *asked.entry(host).or_default() += 1;
                }
            }
        }
    }
    asked
}

/// The messages that a host got, and how many it found missing by their numbers.
fn received(directory: &Directory, host: u64) -> (u64, u64) {
    let capture = directory.path(&format!("results/h{host}.pcap"));
    let got = run(&mut triplane(&["market", "receive", "--pcap", &capture, "--from-start", "--json"])).ok().json();
    let number = |name: &str| got[name].as_u64().unwrap_or_else(|| panic!("no `{name}`: {got:#}"));
    (number("messages"), number("missing"))
}

/// Simulates the feed over a network without losses, and compares what each host got.
fn each_host_gets_its_messages(shape: &[&str], options: &[&str], hosts: u64, seed: u64) {
    let directory = Directory::new();
    let lab = run(&mut triplane(&[&["lab", "new"], shape].concat())).ok().stdout;
    let rules = random_rules(&mut Dice::new(seed), hosts);
    let ends: Vec<String> = (2..=hosts).map(|host| format!("h{host}")).collect();
    simulate(&directory, &lab, &rules, options, &ends, seed);
    let asked = asked(&rules, hosts, seed);
    for host in 2..=hosts {
        let wanted = asked.get(&host).copied().unwrap_or(0);
        assert_eq!(received(&directory, host), (wanted, 0), "h{host}");
    }
    assert!(asked.len() > 1 && asked.values().any(|messages| *messages > 20), "someone asked for something");
}

/// A line of three switches. Frames are lost on the way from s1 over s2 and s3 to h3, on each link.
fn lossy_line() -> String {
    let lab = run(&mut triplane(&["lab", "new", "line"])).ok().stdout;
    let (hosts, links) = lab.split_once("[[links]]").expect("links come last");
    let lossy = |link: &str| match link.contains("\"h1\"") || link.contains("\"h2\"") {
        true => link.to_owned(),
        false => format!("{}\nloss = 0.1\n\n", link.trim_end()),
    };
    [hosts.to_owned()].into_iter().chain(links.split("[[links]]").map(lossy)).collect::<Vec<_>>().join("[[links]]")
}

/// The number of the first message that was captured at an end.
fn first_number(directory: &Directory, end: &str) -> u64 {
    let bytes = std::fs::read(directory.path(&format!("results/{end}.pcap"))).unwrap();
    let frame = wire::pcap::Reader::new(bytes.as_slice()).unwrap().next().expect("a frame").unwrap().data;
    let headers = wire::ethernet::HEADER_LEN + 20 + 8;
    wire::moldudp64::Packet::new_checked(&frame[headers..]).unwrap().sequence()
}

#[test]
fn a_subscriber_finds_losses_on_the_way_to_it_by_its_numbers() {
    let (hosts, seed) = (3, 4);
    let ends = ["h2", "h3", "s2:2", "s3:2"].map(str::to_owned);
    let bought = ("side == \"B\"".to_owned(), vec![3]);
    // All that is lost behind s1 is what h3 wants. A switch counts from the first message that a link brings.
    let (directory, rules) = (Directory::new(), [bought.clone()]);
    simulate(&directory, &lossy_line(), &rules, &[], &ends, seed);
    let (got, missing) = received(&directory, 3);
    assert!(got > 50 && missing > 20, "{got} messages, {missing} missing");
    let unseen: u64 = ["s2:2", "s3:2"].iter().map(|end| first_number(&directory, end) - 1).sum();
    assert_eq!(got + missing + unseen, asked(&rules, hosts, seed)[&3]);
    // Nobody knows whom lost messages were for: hosts also find those missing that were for others.
    let (directory, rules) = (Directory::new(), [bought, ("side == \"S\"".to_owned(), vec![2])]);
    simulate(&directory, &lossy_line(), &rules, &[], &ends, seed);
    let asked = asked(&rules, hosts, seed);
    for host in [2, 3] {
        let (got, missing) = received(&directory, host);
        assert!(got < asked[&host] && got + missing > asked[&host], "h{host}: {got}, {missing} missing, {asked:?}");
    }
}

#[test]
fn over_a_fat_tree() {
    each_host_gets_its_messages(&["fat-tree", "--k", "4"], &[], 16, 1);
}

#[test]
fn over_leaves_and_spines_that_pass_everything_up() {
    let shape = ["leaf-spine", "--leaves", "3", "--spines", "2", "--hosts", "2"];
    each_host_gets_its_messages(&shape, &["--upward", "everything"], 6, 2);
}

#[test]
fn over_a_ring_as_a_tree() {
    each_host_gets_its_messages(&["ring", "--switches", "4"], &["--root", "s2"], 4, 3);
}

#[test]
fn mistakes_are_told_in_words() {
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
