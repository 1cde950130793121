//! Serves the switch's metrics for Prometheus: `triplane run --metrics ADDR`.
//!
//! The HTTP server and the text format are the library's (`metrics_exporter`). This module takes the snapshots: the
//! thread that forwards packets copies the switch's numbers between two batches, whenever the server has requested
//! them.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use anyhow::Context;
use metrics_exporter::{BoundServer, MetricsSnapshot, SnapshotSource};
use runtime::{Hook, HookContext};
use switch::{PacketSwitch, SwitchControl};

pub use metrics_exporter::MetricsServer;

use crate::output::Failure;

/// The hook that takes snapshots.
pub struct MetricsHook(SnapshotSource);

impl<S: PacketSwitch> Hook<S> for MetricsHook {
    fn poll(&mut self, context: &mut HookContext<'_, S>) {
        self.0.poll(|| snapshot(context.switch));
    }

    /// Nothing wakes an idle switch for a scraper; the scraper waits until the loop wakes up by itself.
    fn is_due(&self) -> bool {
        self.0.is_requested()
    }
}

/// Binds the address of the HTTP server, before the process gives up its privileges.
///
/// # Errors
/// If the address cannot be used.
pub fn bind(address: SocketAddr) -> Result<BoundServer, Failure> {
    Ok(metrics_exporter::bind(address).map_err(anyhow::Error::from)?)
}

/// Starts the HTTP server, and returns it with the hook that takes its snapshots.
///
/// # Errors
/// If its thread cannot be started.
pub fn listen(bound: BoundServer) -> Result<(MetricsServer, MetricsHook), Failure> {
    let (server, source) = metrics_exporter::listen_bound(bound).context("cannot start the metrics server")?;
    Ok((server, MetricsHook(source)))
}

fn snapshot(switch: &dyn SwitchControl) -> MetricsSnapshot {
    let mut numbers: Vec<(String, u64)> = switch.registry().iter().collect();
    for (id, table) in &switch.program().tables {
        numbers.push((format!("table.{}.entries", table.name), switch.objects().entry_count(id) as u64));
    }
    MetricsSnapshot { numbers, sites: switch.drop_sites() }
}

/// Parses the value of `--metrics`: ADDRESS:PORT, or PORT for this machine only.
///
/// # Errors
/// If the text is neither.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| "expected ADDRESS:PORT or PORT".to_owned())
}
