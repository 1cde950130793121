//! The market data example in a live lab. The test needs root; where namespaces cannot be created it skips and says so.

use crate::support::network::Network;
use crate::support::{Directory, Running, root, run, triplane, unique};
use itch_feed::{Feed, Filter, Mix, Spec, Workload};
use testing::lock::LIVE_TRAFFIC;
use wire::itch::Message;

const EXAMPLE: &str = "examples/market-data";
const RULES: &str = "examples/market-data/rules.sub";
const DATAGRAMS: usize = 1_500;

/// A lab that is up. Dropping this takes it down.
struct Lab(String);

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = run(&mut triplane(&["lab", "down", &self.0]));
    }
}

#[test]
fn every_subscriber_of_the_lab_gets_what_it_asked_for_without_gaps() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    if let Some(reason) = Network::obstacle(&[]) {
        return testing::skip(&reason);
    }
    let lab = Lab(format!("market-{}", unique()));
    // No queue overflows, however late the switch is.
    let example = std::fs::read_to_string(root().join(EXAMPLE).join("lab.toml")).expect("the topology");
    let queued = example.replace("delay = \"10us\" }", "delay = \"10us\", queue = 10000 }");
    assert_ne!(queued, example);
    let file = |name: &str| format!("{:?}", root().join(EXAMPLE).join(name));
    let queued = ["switch.p4", "switch.json"]
        .iter()
        .fold(queued, |text, name| text.replace(&format!("\"{name}\""), &file(name)));
    let directory = Directory::new();
    run(&mut triplane(&["lab", "up", &directory.write("lab.toml", queued), "--name", &lab.0])).ok();
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let on = |host: &str, arguments: &[&str]| {
        triplane(&[&["lab", "exec", "--lab", &lab.0, host, &binary, "market"], arguments].concat())
    };
    let text = std::fs::read_to_string(root().join(RULES)).expect("the rules");
    let rules = Filter::parse_rules(RULES, &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let hosts = [("fund", "10.0.0.2"), ("desk", "10.0.0.3"), ("tape", "10.0.0.4")];
    assert_eq!(rules.len(), hosts.len());
    let mut receivers: Vec<Running> = hosts
        .iter()
        .map(|(host, address)| {
            let arguments = ["receive", "--group", "239.1.1.1", "--interface", address, "--from-start", "--json"];
            Running::start(&mut on(host, &[&arguments[..], &["--seconds", "100"]].concat()))
        })
        .collect();
    receivers.iter_mut().for_each(|receiver| {
        receiver.wait_for("listening");
    });
    let count = DATAGRAMS.to_string();
    let publish = ["publish", "--to", "239.1.1.1", "--interface", "10.0.0.1", "--datagrams", &count, "--rate", "300"];
    run(&mut on("exchange", &[&publish[..], &["--mix", "book", "--share", "0.2", "--seed", "5"]].concat())).ok();

    let mut feed = Feed::new(Spec { mix: Mix::BOOK, share: 0.2, ..Workload::Synthetic.spec(5) });
    let of_one = |_| itch_feed::messages(&feed.datagram(0)).expect("the feed's own");
    let all: Vec<Message> = (0..DATAGRAMS).flat_map(of_one).collect();
    for (((host, _), receiver), rule) in hosts.iter().zip(receivers).zip(&rules) {
        let got = receiver.wait().ok().json();
        let asked = all.iter().filter(|message| rule.filter.wants(message)).count();
        assert!(asked > 50, "{host} asks for {asked}");
        assert_eq!(got["messages"].as_u64(), Some(asked as u64), "{host}: {got:#}");
        assert_eq!(got["missing"], 0, "{host}: {got:#}");
        assert_eq!(got["repeated"], 0, "{host}: {got:#}");
    }
}
