//! Runs part two of the demo in network namespaces: hosts with sockets of their own, and the switch on AF_PACKET ports.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use itch_feed::live::{FeedDestination, FeedSource, ReceiveLimit};
use itch_feed::{Feed, FeedRate, Pace, PublishLimit, Receiver, Subscriber};
use ports::AfPacketPort;
use ports::namespace::{Namespace, NamespaceError, veth};
use runtime::{PortDrivers, RunConfig};
use switch::PortId;

use super::report::MarketReport;
use super::{DURATION_S, EXCHANGE, GROUP, RATE};
use crate::demo::report::Mode;
use crate::output::{Failure, Output};

/// Maximum duration of the act, in seconds.
const LIMIT_S: f64 = 10.0;
/// Maximum wait for a link.
const LINK_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the address of the host whose link is at `port` of the switch.
fn address(port: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, port as u8)
}

fn interface(port: u32) -> String {
    format!("feed-{port}")
}

/// Creates a host whose link ends in this process's namespace.
fn host(name: &str, port: u32, here: &Namespace) -> Result<Namespace, NamespaceError> {
    let host = Namespace::new(name)?;
    let end = interface(port);
    host.disable_ipv6()?;
    veth(&host, "eth0", here, &end)?;
    host.set_up("eth0")?;
    here.set_up(&end)?;
    host.wait_for_link("eth0", LINK_TIMEOUT)?;
    here.wait_for_link(&end, LINK_TIMEOUT)?;
    host.add_address("eth0", IpAddr::V4(address(port)), 24)?;
    Ok(host)
}

/// Runs the act in the namespace that the first act created.
pub fn live(output: &Output) -> Result<MarketReport, Failure> {
    let subscriptions = super::subscriptions();
    let here = Namespace::current().context("opening the current namespace")?;
    let exchange = host("exchange", EXCHANGE, &here).context("creating the exchange's host")?;
    let mut hosts = Vec::new();
    for subscription in &subscriptions {
        hosts.push(host(&subscription.name, subscription.port, &here).context("creating a subscriber's host")?);
    }
    let switch = super::switch(output)?;
    let mut ports = Vec::new();
    for port in std::iter::once(EXCHANGE).chain(subscriptions.iter().map(|subscription| subscription.port)) {
        ports.push(PortDrivers::single(PortId(port), AfPacketPort::open(&interface(port))?));
    }

    let limit = Some(Duration::from_secs_f64(LIMIT_S));
    let running = v1model_runtime::spawn_live(RunConfig { limit, ..RunConfig::new(switch, ports) }, "switch");
    let running = running.context("cannot start the switch's thread")?;
    let mut receivers = Vec::new();
    for (subscription, host) in subscriptions.into_iter().zip(&hosts) {
        let source = FeedSource { group: Some(GROUP), interface: address(subscription.port), port: itch_feed::PORT };
        // A socket stays in the namespace in which it was opened.
        let opened = host.enter(|| source.open()).context("entering a subscriber's host")?;
        let subscriber = Subscriber::new(Receiver::from_start(), None);
        let limit = ReceiveLimit { seconds: Some(LIMIT_S), ends_with_session: true };
        let thread = opened?.spawn(&subscription.name, subscriber, limit)?;
        receivers.push((subscription, thread));
    }
    let to = SocketAddrV4::new(GROUP, itch_feed::PORT);
    let destination = FeedDestination { interface: address(EXCHANGE), to };
    let publisher = exchange.enter(|| destination.open()).context("entering the exchange's host")??;
    let published = publisher.publish(
        &mut Feed::new(super::spec()),
        Pace::new(FeedRate::Messages(RATE)),
        PublishLimit { seconds: Some(DURATION_S), datagrams: None },
        &AtomicBool::new(false),
    );
    let mut subscribers = Vec::new();
    for (subscription, thread) in receivers {
        subscribers.push(thread.join().map(|subscriber| (subscription, subscriber)));
    }
    let report = running.stop().context("cannot run the switch")?;
    let subscribers = subscribers.into_iter().collect::<Result<Vec<_>, _>>()?;
    MarketReport::new(Mode::Live, published?, subscribers, report.switch.is_compiled(), output)
}
