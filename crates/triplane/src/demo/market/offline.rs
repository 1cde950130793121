//! Runs part two of the demo without namespaces: the feed is read from a capture, and each subscriber's messages are
//! written to one.

use itch_feed::{Feed, FeedRate, Pace, PublishLimit, Receiver, Subscriber};
use ports::PcapPort;
use runtime::{PortDrivers, RunConfig};
use switch::PortId;

use super::report::MarketReport;
use super::{DURATION_S, EXCHANGE, RATE};
use crate::demo::offline::Directory;
use crate::demo::report::Mode;
use crate::market::capture;
use crate::output::{Failure, Output};

/// Runs the act over files; `reason` says why.
pub fn offline(reason: &str, output: &Output) -> Result<MarketReport, Failure> {
    let directory = Directory::new()?;
    let feed = directory.0.join("feed.pcap");
    let limit = PublishLimit { seconds: Some(DURATION_S), datagrams: None };
    let pace = Pace::new(FeedRate::Messages(RATE));
    let (published, _) = capture::write(&feed, &mut Feed::new(super::spec()), pace, limit)?;

    let subscriptions = super::subscriptions();
    let file = |port: u32| directory.0.join(format!("{port}.pcap"));
    let mut ports = vec![PortDrivers::single(PortId(EXCHANGE), PcapPort::open(Some(&feed), None)?)];
    for subscription in &subscriptions {
        let port = PcapPort::open(None, Some(&file(subscription.port)))?;
        ports.push(PortDrivers::single(PortId(subscription.port), port));
    }
    let report = v1model_runtime::run_offline(RunConfig::new(super::switch(output)?, ports));
    let mut subscribers = Vec::new();
    for subscription in subscriptions {
        let mut subscriber = Subscriber::new(Receiver::from_start(), None);
        capture::read(&file(subscription.port), itch_feed::PORT, &mut subscriber)?;
        subscribers.push((subscription, subscriber));
    }
    MarketReport::new(Mode::Offline(reason.to_owned()), published, subscribers, report.switch.is_compiled(), output)
}
