//! Sends and counts the pings of the demo's hosts.

use std::net::Ipv4Addr;
use std::time::Duration;

use ports::namespace::{Namespace, NamespaceError, PingResult};

/// Timeout of each ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The results of the pings.
#[derive(Clone, Debug, Default)]
pub struct Pings {
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub received: u32,
    /// Median round-trip time.
    pub median: Duration,
    /// Time to live of the last reply.
    pub ttl: u8,
}

/// Pings `to` from `host`.
pub fn ping(host: &Namespace, to: Ipv4Addr, count: u16) -> Result<Pings, NamespaceError> {
    let mut pings = Pings::default();
    let mut times = Vec::new();
    for sequence in 1..=count {
        pings.sent += 1;
        if let PingResult::Reply { time, ttl } = host.ping(to, sequence, PING_TIMEOUT)? {
            pings.received += 1;
            pings.ttl = ttl;
            times.push(time);
        }
    }
    times.sort();
    pings.median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(pings)
}
