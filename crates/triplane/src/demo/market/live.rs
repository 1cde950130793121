//! The second act in network namespaces: real sockets, and the switch in a thread.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow};
use itch_feed::{Feed, FeedRate, Pace, Receiver, Subscriber};
use ports::AfPacketPort;
use ports::namespace::{Namespace, NamespaceError, veth};
use runtime::{PortDrivers, RunConfig};
use switch::PortId;

use super::account::Account;
use super::{EXCHANGE, GROUP, RATE, SENDS_S};
use crate::demo::account::Mode;
use crate::market::publish::{self, Limit};
use crate::market::receive::{self, Ends};
use crate::market::socket;
use crate::output::{Failure, Output};

/// Maximum duration of the act, in seconds.
const LIMIT_S: f64 = 10.0;
/// Maximum wait for a link.
const PATIENCE: Duration = Duration::from_secs(2);

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
    host.wait_for_link("eth0", PATIENCE)?;
    here.wait_for_link(&end, PATIENCE)?;
    host.add_address("eth0", IpAddr::V4(address(port)), 24)?;
    Ok(host)
}

/// Runs the act in the namespace that the first act created.
pub fn live(output: &Output) -> Result<Account, Failure> {
    let subscriptions = super::subscriptions();
    let here = Namespace::current().context("looking at the own namespace")?;
    let exchange = host("exchange", EXCHANGE, &here).context("making the exchange's host")?;
    let mut hosts = Vec::new();
    for subscription in &subscriptions {
        hosts.push(host(&subscription.name, subscription.port, &here).context("making a subscriber's host")?);
    }
    let switch = super::switch(output)?;
    let mut ports = Vec::new();
    for port in std::iter::once(EXCHANGE).chain(subscriptions.iter().map(|subscription| subscription.port)) {
        ports.push(PortDrivers::single(PortId(port), AfPacketPort::open(&interface(port))?));
    }

    let limit = Some(Duration::from_secs_f64(LIMIT_S));
    let running = RunConfig { limit, ..RunConfig::new(switch, ports) }.spawn_live("switch");
    let running = running.context("cannot start the switch's thread")?;
    let mut receivers = Vec::new();
    for (subscription, host) in subscriptions.into_iter().zip(&hosts) {
        let own = address(subscription.port);
        // A socket stays in the namespace in which it was opened.
        let opened = host.enter(|| socket::receiver(Some(GROUP), own, itch_feed::PORT));
        let socket = opened.context("entering a subscriber's host")??;
        receivers.push(std::thread::spawn(move || {
            let mut subscriber = Subscriber::new(Receiver::from_start(), None);
            let ends = Ends { seconds: Some(LIMIT_S), with_session: true };
            let done = receive::listen(&socket, &mut subscriber, ends, &AtomicBool::new(false));
            done.map(|_| (subscription, subscriber))
        }));
    }
    let opened = exchange.enter(|| socket::sender(address(EXCHANGE), SocketAddrV4::new(GROUP, itch_feed::PORT)));
    let socket = opened.context("entering the exchange's host")??;
    let published = publish::send(
        &socket,
        SocketAddrV4::new(GROUP, itch_feed::PORT),
        &mut Feed::new(super::spec()),
        Pace::new(FeedRate::Messages(RATE)),
        Limit { seconds: Some(SENDS_S), datagrams: None },
        &AtomicBool::new(false),
    );
    let mut subscribers = Vec::new();
    for receiver in receivers {
        subscribers.push(receiver.join().map_err(|_| anyhow!("a subscriber's thread panicked; this is a bug"))?);
    }
    let report = running.stop().context("cannot run the switch")?;
    let subscribers = subscribers.into_iter().collect::<Result<Vec<_>, _>>()?;
    Account::new(Mode::Live, published?, subscribers, report.switch.is_compiled(), output)
}
