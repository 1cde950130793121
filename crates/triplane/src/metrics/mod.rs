//! Serves the switch's metrics for Prometheus: `triplane run --metrics ADDR`.
//!
//! The HTTP server and the text format are the library's (`metrics_exporter`). This module takes the snapshots: the
//! thread that forwards packets copies the switch's numbers between two batches, whenever the server has requested
//! them.

pub mod elastic;
pub mod resilient;
pub mod store;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use anyhow::Context;
use metrics_exporter::{BoundServer, MetricFamily, MetricsSnapshot, SnapshotSource};
use runtime::{Hook, HookContext};
use switch::{PacketSwitch, SwitchControl, Time};

pub use metrics_exporter::MetricsServer;

use crate::output::Failure;

/// Returns the metrics of a kind of switch that its registry does not have.
pub type SwitchFamilies<S> = fn(&S, Time) -> Vec<MetricFamily>;

/// The hook that takes snapshots.
pub struct MetricsHook<S> {
    source: SnapshotSource,
    families: SwitchFamilies<S>,
}

impl<S: PacketSwitch> Hook<S> for MetricsHook<S> {
    fn poll(&mut self, context: &mut HookContext<'_, S>) {
        let families = self.families;
        self.source.poll(|| {
            context.switch.collect_counts();
            MetricsSnapshot { families: families(context.switch, context.now), ..snapshot(context.switch) }
        });
    }

    /// Nothing wakes an idle switch for a scraper; the scraper waits until the loop wakes up by itself.
    fn is_due(&self) -> bool {
        self.source.is_requested()
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
pub fn listen<S>(bound: BoundServer, families: SwitchFamilies<S>) -> Result<(MetricsServer, MetricsHook<S>), Failure> {
    let (server, source) = metrics_exporter::listen_bound(bound).context("cannot start the metrics server")?;
    Ok((server, MetricsHook { source, families }))
}

/// Returns the sentence with the address of the metrics.
pub fn note(server: &MetricsServer) -> String {
    let address = server.address();
    if address.ip().is_loopback() {
        format!("metrics on http://{address}/metrics, reachable from this machine only")
    } else {
        format!("metrics on http://{address}/metrics: any client that reaches this address can read them")
    }
}

fn snapshot(switch: &dyn SwitchControl) -> MetricsSnapshot {
    let mut numbers: Vec<(String, u64)> = switch.registry().iter().collect();
    for (id, table) in &switch.program().tables {
        numbers.push((format!("table.{}.entries", table.name), switch.objects().entry_count(id) as u64));
    }
    MetricsSnapshot { numbers, sites: switch.drop_sites(), ..MetricsSnapshot::default() }
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
