//! Rules of a network's hosts, compiled for each switch, in the simulated network itself: every host gets the messages it
//! asked for and no others.

mod support;

use std::collections::BTreeMap;

use dice::Dice;
use market::{Feed, Filter, Mix, Spec, Workload};
use support::{Directory, run, triplane};
use wire::itch::Message;

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

/// Simulates the feed from h1 over such a network, and compares what each host got.
fn each_host_gets_its_messages(shape: &[&str], options: &[&str], hosts: u64, seed: u64) {
    let directory = Directory::new();
    let path = |name: &str| directory.path(name);
    std::fs::write(path("lab.toml"), run(&mut triplane(&[&["lab", "new"], shape].concat())).ok().stdout).unwrap();
    let rules = random_rules(&mut Dice::new(seed), hosts);
    let line = |(condition, to): &(String, Vec<u64>)| {
        let to: Vec<String> = to.iter().map(|host| format!("h{host}")).collect();
        format!("{condition} : fwd({})\n", to.join(", "))
    };
    std::fs::write(path("rules.sub"), rules.iter().map(line).collect::<String>()).unwrap();
    let (lab, rules_file, out) = (path("lab.toml"), path("rules.sub"), path("out"));
    let compile = ["subscribe", "network", FORMAT, &rules_file, "--lab", &lab, "-o", &out];
    run(&mut triplane(&[&compile, options].concat())).ok();

    let publish = ["market", "publish", "--pcap", &path("out/feed.pcap"), "--datagrams", &DATAGRAMS.to_string()];
    let spec = ["--mix", "book", "--share", "0.2", "--others", "5", "--seed", &seed.to_string()];
    run(&mut triplane(&[&publish[..], &spec].concat())).ok();
    let mut scenario =
        "duration = \"1s\"\n[[traffic]]\nname = \"feed\"\nkind = \"replay\"\nfrom = \"h1\"\nfile = \"feed.pcap\"\n"
            .to_owned();
    for host in 1..=hosts {
        scenario += &format!("[[captures]]\nat = \"h{host}\"\nfile = \"h{host}.pcap\"\n");
    }
    std::fs::write(path("out/load.toml"), scenario).unwrap();
    let (lab, load, results) = (path("out/lab.toml"), path("out/load.toml"), path("results"));
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &load, "--out", &results, "--interpret"])).ok();

    let filters: Vec<(Filter, &Vec<u64>)> =
        rules.iter().map(|(condition, to)| (Filter::parse(condition).expect("a condition"), to)).collect();
    let mut asked: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
    let mut feed = feed(seed);
    for _ in 0..DATAGRAMS {
        for message in market::messages(&feed.datagram(0)).unwrap() {
            for host in 2..=hosts {
                let wants = |(filter, to): &&(Filter, &Vec<u64>)| to.contains(&host) && filter.wants(&message);
                if filters.iter().any(|filter| wants(&filter)) {
                    asked.entry(host).or_default().push(message.clone());
                }
            }
        }
    }
    for host in 2..=hosts {
        let receive =
            ["market", "receive", "--pcap", &path(&format!("results/h{host}.pcap")), "--from-start", "--json"];
        let got = run(&mut triplane(&receive)).ok().json();
        let wanted = asked.get(&host).map_or(0, Vec::len) as u64;
        assert_eq!(got["messages"].as_u64(), Some(wanted), "h{host}: {got:#}");
        assert_eq!(got["missing"].as_u64(), Some(0), "h{host}: {got:#}");
    }
    assert!(asked.len() > 1 && asked.values().any(|messages| messages.len() > 20), "someone asked for something");
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
