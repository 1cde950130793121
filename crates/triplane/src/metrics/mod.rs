//! The switch's numbers for Prometheus: `triplane run --metrics ADDR`.
//!
//! ```text
//!   scraper ── HTTP ──> listener: a thread of its own ── asks ──> Gauge, between two batches of packets
//!                            └── text <── Snapshot, at most one a second ──┘
//! ```
//!
//! The thread that runs packets copies numbers and does nothing else; how many scrapers there are is nothing to it.

mod listener;
mod text;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use switch::{Frame, Time};
use tokio::sync::Notify;
use v1model::Switch;

pub use listener::listen;
use text::Snapshot;

use crate::forward::Control;

/// What the packets' thread and the listener share.
#[derive(Default)]
struct Shared {
    /// Whether another snapshot is wanted.
    wanted: AtomicBool,
    latest: Mutex<Option<(Instant, Arc<Snapshot>)>>,
    taken: Notify,
}

/// The end of whoever runs packets, in front of another control plane if there is one.
pub struct Gauge {
    shared: Arc<Shared>,
    control: Option<Box<dyn Control>>,
}

impl Gauge {
    /// The same with a control plane that has its turns too.
    #[must_use]
    pub fn with(self, control: Option<Box<dyn Control>>) -> Gauge {
        Gauge { control, ..self }
    }
}

impl Control for Gauge {
    fn poll(&mut self, now: Time, switch: &mut Switch, output: &mut Vec<Frame>, stop_others: &dyn Fn()) {
        if let Some(control) = &mut self.control {
            control.poll(now, switch, output, stop_others);
        }
        if self.shared.wanted.load(Ordering::Relaxed) && self.shared.wanted.swap(false, Ordering::AcqRel) {
            let snapshot = Arc::new(snapshot(switch));
            let mut latest = self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
            *latest = Some((Instant::now(), snapshot));
            drop(latest);
            self.shared.taken.notify_waiters();
        }
    }

    fn is_due(&self) -> bool {
        self.shared.wanted.load(Ordering::Relaxed) || self.control.as_ref().is_some_and(|control| control.is_due())
    }

    /// Nothing wakes an idle switch for a scraper, who waits for its next look instead.
    fn poll_fd(&self) -> Option<RawFd> {
        self.control.as_ref().and_then(|control| control.poll_fd())
    }
}

fn snapshot(switch: &Switch) -> Snapshot {
    let mut numbers: Vec<(String, u64)> = switch.registry().iter().collect();
    for table in switch.program().tables.values() {
        let name = format!("table.{}.entries", table.name);
        numbers.extend(switch.number(&name).map(|count| (name, count)));
    }
    Snapshot { numbers, sites: switch.drop_sites() }
}

/// What `--metrics` says: ADDRESS:PORT, or PORT for this machine only.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| "give ADDRESS:PORT or PORT".to_owned())
}
