//! Runs part two of the demo, market data: an exchange, a switch that delivers to each subscriber the messages that
//! match its rule, and three subscribers.
//!
//! ```text
//!   exchange ──── [1] switch [2] ──── fund
//!                            [3] ──── desk
//!                            [4] ──── tape
//! ```
//!
//! The switch is `examples/market-data`. The messages that each subscriber should get are found by applying its rule to
//! every message of the feed, which is generated again from its seed.

mod live;
mod offline;
mod path;
mod report;

pub use live::live;
pub use offline::offline;

use std::net::Ipv4Addr;

use itch_feed::{Feed, Filter, Mix, Published, Spec, Subscriber, Workload, messages};
use switch::PortId;
use v1model::{Config, Switch};

use crate::load::Loader;
use crate::output::{Failure, Output};

const PROGRAM: &str = include_str!("../../../../../examples/market-data/switch.p4");
const ENTRIES: &str = include_str!("../../../../../examples/market-data/switch.json");
const RULES: &str = include_str!("../../../../../examples/market-data/rules.sub");

/// Paths of the example's files in the repository.
const PROGRAM_PATH: &str = "examples/market-data/switch.p4";
const ENTRIES_PATH: &str = "examples/market-data/switch.json";
const RULES_PATH: &str = "examples/market-data/rules.sub";

/// The switch port of the exchange.
const EXCHANGE: u32 = 1;
/// The multicast group that the feed is sent to.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);

/// Rate in messages per second, and duration in seconds; the same live and from captures.
const RATE: f64 = 10_000.0;
const DURATION_S: f64 = 1.5;

/// A subscriber's rule, and its port.
struct Subscription {
    name: String,
    /// The rule's condition, as written in the rule file.
    condition: String,
    filter: Filter,
    port: u32,
}

/// A subscription, the number of messages that match its rule, and the subscriber's results.
struct Outcome {
    subscription: Subscription,
    expected: u64,
    subscriber: Subscriber,
}

/// Returns the subscriptions of the example.
fn subscriptions() -> Vec<Subscription> {
    let rules =
        Filter::parse_rules(RULES_PATH, RULES).unwrap_or_else(|error| panic!("built-in rules do not parse: {error}"));
    rules
        .into_iter()
        .map(|rule| Subscription {
            name: rule.name.unwrap_or_default(),
            condition: rule.condition,
            filter: rule.filter,
            port: rule.ports.first().copied().unwrap_or_default(),
        })
        .collect()
}

/// Returns the feed's parameters: an exchange's mix of message types, and 10 % of the new orders for the stock
/// that the rules ask for.
fn spec() -> Spec {
    Spec { mix: Mix::BOOK, share: 0.1, ..Workload::Synthetic.spec(1) }
}

/// Builds a switch that runs the example with its entries.
fn switch(output: &Output) -> Result<Switch, Failure> {
    let mut loader = Loader::builtin(PROGRAM_PATH, PROGRAM);
    let program = loader.program(output)?;
    let ports = std::iter::once(EXCHANGE).chain(subscriptions().into_iter().map(|subscription| subscription.port));
    let config = Config {
        ports: ports.map(PortId).collect(),
        cpu_port: Some(PortId(v1model::CPU_PORT)),
        seed: 1,
        ..Config::default()
    };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Input(error.to_string()))?;
    loader.apply_text(ENTRIES_PATH, ENTRIES, &mut switch, output)?;
    Ok(switch)
}

/// Counts the messages that each subscriber should have received, and pairs the count with its results.
fn outcomes(published: &Published, subscribers: Vec<(Subscription, Subscriber)>) -> Vec<Outcome> {
    let mut feed = Feed::new(spec());
    let mut outcomes: Vec<Outcome> = subscribers
        .into_iter()
        .map(|(subscription, subscriber)| Outcome { subscription, expected: 0, subscriber })
        .collect();
    for _ in 0..published.datagrams {
        for message in messages(&feed.datagram(0)).expect("the feed emits complete datagrams") {
            for outcome in &mut outcomes {
                outcome.expected += u64::from(outcome.subscription.filter.wants(&message));
            }
        }
    }
    outcomes
}
