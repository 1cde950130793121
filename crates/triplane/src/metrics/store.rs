//! The metrics of a store: `triplane store run --metrics ADDR`.

use anyhow::Context;
use metrics_exporter::{BoundServer, MetricFamily, MetricsServer, MetricsSnapshot, SnapshotSource};
use resilient::RefusedDatagrams;
use resilient::store::{ShardReport, ShardRole};
use resilient_store::StoreServer;

use super::resilient::{histogram, requests};
use crate::output::Failure;

/// The metrics listener of a store, and the state of its snapshots.
pub struct StoreMetrics {
    server: MetricsServer,
    source: SnapshotSource,
}

impl StoreMetrics {
    /// Starts the HTTP server.
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub fn listen(bound: BoundServer) -> Result<StoreMetrics, Failure> {
        let (server, source) = metrics_exporter::listen_bound(bound).context("cannot start the metrics server")?;
        Ok(StoreMetrics { server, source })
    }

    /// Returns the HTTP server.
    pub fn server(&self) -> &MetricsServer {
        &self.server
    }

    /// Takes a snapshot if one is requested.
    pub fn poll(&self, store: &StoreServer) {
        self.source.poll(|| MetricsSnapshot { families: families(store), ..MetricsSnapshot::default() });
    }
}

/// Returns the metrics.
fn families(store: &StoreServer) -> Vec<MetricFamily> {
    let statistics = store.statistics();
    let counter = |name, help, value: u64| MetricFamily::counter(name, help).with(value as f64);
    let epoch = MetricFamily::gauge("triplane_store_layout_epoch", "Epoch of the layout; 0 until there is one.");
    let mut families = vec![
        epoch.with(store.layout_epoch() as f64),
        requests(
            "triplane_store_requests_total",
            "Requests of switches by kind, repeated ones included.",
            &statistics.requests,
        ),
        counter("triplane_store_messages_received_total", "Messages received.", statistics.received),
        counter("triplane_store_messages_sent_total", "Messages sent.", statistics.sent),
        refused(&statistics.refused),
        counter("triplane_store_datagrams_unsent_total", "Datagrams that could not be sent.", statistics.unsent),
    ];
    families.extend(shards(&store.shards()));
    if let (Some(disk), Some(latency)) = (statistics.disk, store.commit_latency()) {
        let records = "Records in all commits: operations, and changes of a chain.";
        families.push(counter("triplane_store_disk_records_total", records, disk.records));
        families.push(histogram("triplane_store_commit_seconds", "Time of a commit to the disk.", latency));
    }
    families
}

fn refused(refused: &RefusedDatagrams) -> MetricFamily {
    let RefusedDatagrams { malformed, stranger, wrong_tag, replayed, other_start, other_settings } = *refused;
    let reasons = [
        ("malformed", malformed),
        ("stranger", stranger),
        ("wrong-tag", wrong_tag),
        ("replayed", replayed),
        ("other-start", other_start),
        ("other-settings", other_settings),
    ];
    let family = MetricFamily::counter("triplane_store_datagrams_refused_total", "Rejected datagrams, by reason.");
    reasons.iter().fold(family, |family, (reason, count)| family.labelled(&[("reason", reason)], *count as f64))
}

/// Returns the metrics of the shards.
fn shards(shards: &[ShardReport]) -> [MetricFamily; 10] {
    let gauge = |name, help| MetricFamily::gauge(name, help);
    let mut roles = gauge("triplane_store_role", "1 for the role of the store in a chain.");
    let mut rows = gauge("triplane_store_rows", "Rows, including those without values.");
    let mut group_rows = gauge("triplane_store_group_rows", "Rows with values, by the number of their group.");
    let mut pool_numbers = gauge(
        "triplane_store_pool_numbers",
        "Size of a pool's range, at the head, for pools that were asked for since the store started.",
    );
    let mut pool_taken = gauge("triplane_store_pool_taken", "Numbers of a pool that are taken.");
    let mut log = gauge("triplane_store_log_operations", "Operations that are kept for a successor.");
    let mut pending =
        gauge("triplane_store_pending_operations", "Operations that the whole chain has not acknowledged yet.");
    let mut waiting = gauge("triplane_store_waiting", "Asks that wait for rows of other switches, at the head.");
    let counter = |name, help| MetricFamily::counter(name, help);
    let mut carried = counter("triplane_store_carried_writes_total", "Writes that came with frames of their switch.");
    let mut dropped =
        counter("triplane_store_carried_dropped_total", "Writes whose frames were dropped for lack of memory.");
    for report in shards {
        let number = report.shard.0.to_string();
        let shard = ("shard", number.as_str());
        roles.add(&[shard, ("role", role(report.role))], 1.0);
        rows.add(&[shard], report.rows as f64);
        for (group, rows) in &report.groups {
            group_rows.add(&[shard, ("group", &format!("{group:016x}"))], *rows as f64);
        }
        for pool in &report.pools {
            let (group, range) = (format!("{:016x}", pool.group), format!("{}-{}", pool.first, pool.last));
            let labels = [shard, ("pool", range.as_str()), ("group", group.as_str())];
            pool_numbers.add(&labels, (pool.last - pool.first) as f64 + 1.0);
            pool_taken.add(&labels, pool.taken as f64);
        }
        log.add(&[shard], report.log as f64);
        pending.add(&[shard], report.pending as f64);
        waiting.add(&[shard], report.waiting as f64);
        carried.add(&[shard], report.carried.writes as f64);
        dropped.add(&[shard], report.carried.dropped as f64);
    }
    [roles, rows, group_rows, pool_numbers, pool_taken, log, pending, waiting, carried, dropped]
}

fn role(role: ShardRole) -> &'static str {
    match role {
        ShardRole::Head => "head",
        ShardRole::Middle => "middle",
        ShardRole::Tail => "tail",
        ShardRole::Only => "only",
        ShardRole::Learner => "learner",
    }
}
