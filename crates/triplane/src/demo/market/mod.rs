//! The second act: an exchange, a switch that knows who wants which messages, and three subscribers.
//!
//! ```text
//!   exchange ──── [1] switch [2] ──── fund
//!                            [3] ──── desk
//!                            [4] ──── tape
//! ```
//!
//! The switch is `examples/market-data`. What each subscriber should get is found by asking its rule of every message of
//! the feed, which its seed makes again.

mod account;
mod live;
mod offline;
mod way;

pub use live::live;
pub use offline::offline;

use std::net::Ipv4Addr;

use itch_feed::{Feed, Filter, Mix, Spec, Subscriber, Workload};
use switch::PortId;
use v1model::{Config, Switch};

use crate::load::Loader;
use crate::market::publish::Published;
use crate::output::{Failure, Output};

const PROGRAM: &str = include_str!("../../../../../examples/market-data/switch.p4");
const ENTRIES: &str = include_str!("../../../../../examples/market-data/switch.json");
const RULES: &str = include_str!("../../../../../examples/market-data/rules.sub");

/// Where they are found in the repository.
const PROGRAM_NAME: &str = "examples/market-data/switch.p4";
const ENTRIES_NAME: &str = "examples/market-data/switch.json";
const RULES_NAME: &str = "examples/market-data/rules.sub";

/// The exchange's port.
const EXCHANGE: u32 = 1;
/// Where the feed goes.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);

/// Messages a second, and for how long, in seconds; the same live and from captures.
const RATE: f64 = 10_000.0;
const SENDS_S: f64 = 1.5;

/// Who subscribes, and to what.
struct Subscription {
    name: String,
    /// The rule's condition, as it is written.
    condition: String,
    filter: Filter,
    port: u32,
}

/// A subscription, how much it asked for, and what came of it.
struct Outcome {
    subscription: Subscription,
    asked: u64,
    subscriber: Subscriber,
}

/// The subscriptions of the example.
fn subscriptions() -> Vec<Subscription> {
    let rules =
        Filter::rules(RULES_NAME, RULES).unwrap_or_else(|wrong| panic!("the example's rules are right: {wrong}"));
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

/// The feed: the types of messages of an exchange, a tenth of new orders of the stock that matters.
fn spec() -> Spec {
    Spec { mix: Mix::BOOK, share: 0.1, ..Workload::Synthetic.spec(1) }
}

/// A switch that runs the example with its entries.
fn switch(output: &Output) -> Result<Switch, Failure> {
    let mut loader = Loader::builtin(PROGRAM_NAME, PROGRAM);
    let program = loader.program(output)?;
    let ports = std::iter::once(EXCHANGE).chain(subscriptions().into_iter().map(|subscription| subscription.port));
    let config = Config {
        ports: ports.map(PortId).collect(),
        cpu_port: Some(PortId(v1model::CPU_PORT)),
        seed: 1,
        ..Config::default()
    };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Input(error.to_string()))?;
    loader.apply_text(ENTRIES_NAME, ENTRIES, &mut switch, output)?;
    Ok(switch)
}

/// Puts together what each subscriber asked for and what it got.
fn outcomes(published: &Published, subscribers: Vec<(Subscription, Subscriber)>) -> Vec<Outcome> {
    let mut feed = Feed::new(spec());
    let mut outcomes: Vec<Outcome> = subscribers
        .into_iter()
        .map(|(subscription, subscriber)| Outcome { subscription, asked: 0, subscriber })
        .collect();
    for _ in 0..published.datagrams {
        for message in ::itch_feed::messages(&feed.datagram(0)).expect("the feed makes whole ones") {
            for outcome in &mut outcomes {
                outcome.asked += u64::from(outcome.subscription.filter.wants(&message));
            }
        }
    }
    outcomes
}
