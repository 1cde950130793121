//! The switch's numbers for Prometheus: `triplane run --metrics ADDR`.
//!
//! ```text
//!   scraper ── HTTP ──> listener: a thread of its own ── asks ──> Gauge, between two batches of packets
//!                            └── text <── Snapshot, at most one a second ──┘
//! ```
//!
//! The thread that runs packets only copies numbers. Its work does not grow with the number of scrapers.

mod listener;
mod text;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use runtime::{Hook, HookContext};
use switch::{PacketSwitch, SwitchControl};
use tokio::sync::Notify;

pub use listener::{Listening, listen};
use text::Snapshot;

/// What the packets' thread and the listener share.
#[derive(Default)]
struct Shared {
    /// Whether another snapshot is wanted.
    wanted: AtomicBool,
    latest: Mutex<Option<(Instant, Arc<Snapshot>)>>,
    taken: Notify,
}

/// The hook that copies the switch's numbers for the listener.
pub struct Gauge {
    shared: Arc<Shared>,
}

impl<S: PacketSwitch> Hook<S> for Gauge {
    fn poll(&mut self, context: &mut HookContext<'_, S>) {
        if self.shared.wanted.load(Ordering::Relaxed) && self.shared.wanted.swap(false, Ordering::AcqRel) {
            let snapshot = Arc::new(snapshot(context.switch));
            let mut latest = self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
            *latest = Some((Instant::now(), snapshot));
            drop(latest);
            self.shared.taken.notify_waiters();
        }
    }

    /// Nothing wakes an idle switch for a scraper; the scraper waits until the loop wakes up by itself.
    fn is_due(&self) -> bool {
        self.shared.wanted.load(Ordering::Relaxed)
    }
}

fn snapshot(switch: &dyn SwitchControl) -> Snapshot {
    let mut numbers: Vec<(String, u64)> = switch.registry().iter().collect();
    for (id, table) in &switch.program().tables {
        numbers.push((format!("table.{}.entries", table.name), switch.objects().entry_count(id) as u64));
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
