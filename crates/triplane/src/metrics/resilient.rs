//! The metrics of a switch with resilient state.

use metrics_exporter::MetricFamily;
use resilient::{LatencyHistogram, RequestCounts};
use resilient_switch::{RefusalCounts, ResilientSwitch};
use switch::{RowSwitch, Time};

/// Returns the metrics, at a time of the run.
pub fn families<S: RowSwitch>(switch: &ResilientSwitch<S>, now: Time) -> Vec<MetricFamily> {
    let counts = switch.counts(now);
    let RefusalCounts { no_such_row, pool_exhausted, store_full, switch_full, contended } = counts.refusals;
    let replica = &counts.replica;
    let gauge = |name, help, value: usize| MetricFamily::gauge(name, help).with(value as f64);
    let count = |name, help, value: u64| MetricFamily::counter(name, help).with(value as f64);
    let snapshots = switch.snapshot_counts();
    let granted = MetricFamily::gauge(
        "triplane_resilient_rows_granted",
        "Rows granted to the switch, owned or shared, by group.",
    );
    let leases = MetricFamily::gauge("triplane_resilient_lease_seconds", "Remaining lease, in seconds; 0 without one.");
    let refusals = MetricFamily::counter("triplane_resilient_refusals_total", "Refused requests for rows, by reason.");
    vec![
        counts.groups.iter().fold(granted, |family, (group, rows)| family.labelled(&[("group", group)], *rows as f64)),
        gauge("triplane_resilient_rows_asked", "Rows that the switch waits for, pages included.", replica.asked),
        gauge(
            "triplane_resilient_rows_releasing",
            "Rows that the switch gives back, pages included.",
            replica.releasing,
        ),
        requests(
            "triplane_resilient_requests_total",
            "Requests to the stores by kind, repeated ones included.",
            &counts.requests,
        ),
        MetricFamily::counter("triplane_resilient_retransmissions_total", "Retransmitted requests about rows.")
            .with(replica.retransmissions as f64),
        [
            ("no-such-row", no_such_row),
            ("pool-exhausted", pool_exhausted),
            ("store-full", store_full),
            ("switch-full", switch_full),
            ("contended", contended),
        ]
        .iter()
        .fold(refusals, |family, (reason, count)| family.labelled(&[("reason", reason)], *count as f64)),
        gauge("triplane_resilient_packets_waiting", "Packets that wait for rows.", counts.parked),
        gauge("triplane_resilient_outputs_held", "Outputs that wait for acknowledgements.", counts.held),
        gauge("triplane_resilient_held_bytes", "Memory used by held outputs, in bytes.", counts.held_bytes),
        count(
            "triplane_resilient_piggyback_frames_total",
            "Frames that travelled with a write instead of being held.",
            counts.piggyback.sent,
        ),
        count(
            "triplane_resilient_piggyback_lost_total",
            "Frames that travelled with a write and did not come back with its acknowledgement.",
            counts.piggyback.lost,
        ),
        counts.leases_left_ns.iter().fold(leases, |family, (shard, left_ns)| {
            family.labelled(&[("shard", &shard.to_string())], seconds(*left_ns))
        }),
        count("triplane_resilient_snapshots_total", "Complete snapshots of rows.", snapshots.snapshots),
        count("triplane_resilient_snapshot_pages_total", "Pages of complete snapshots.", snapshots.pages),
        count("triplane_resilient_snapshot_bytes_total", "Bytes of these pages.", snapshots.bytes),
        count(
            "triplane_resilient_snapshots_restored_total",
            "Rows that the switch took over with the values of a snapshot.",
            snapshots.restored,
        ),
        count(
            "triplane_resilient_snapshots_damaged_total",
            "Snapshots that could not be restored: their rows started with zeros.",
            snapshots.damaged,
        ),
        count(
            "triplane_resilient_snapshots_unsaved_total",
            "Rows that were given back without a last snapshot, because there was no room for more rows.",
            snapshots.unsaved,
        ),
        gauge(
            "triplane_resilient_snapshot_rows_stale",
            "Rows whose last snapshot is older than its bound.",
            switch.stale_rows(now),
        ),
        gauge("triplane_resilient_layout_epoch", "Epoch of the layout of the stores.", counts.layout_epoch as usize),
        histogram(
            "triplane_resilient_acknowledgement_seconds",
            "Time from the first send of a write to its acknowledgement.",
            &replica.latency,
        ),
    ]
}

/// Returns a counter of requests by kind.
pub fn requests(name: &'static str, help: &'static str, counts: &RequestCounts) -> MetricFamily {
    let family = MetricFamily::counter(name, help);
    counts.by_kind().iter().fold(family, |family, (kind, count)| family.labelled(&[("kind", kind)], *count as f64))
}

/// Returns a histogram of latencies.
pub fn histogram(name: &'static str, help: &'static str, latency: &LatencyHistogram) -> MetricFamily {
    let cumulative = latency.cumulative().map(|(bound_ns, count)| (seconds(bound_ns), count));
    MetricFamily::histogram(name, help, cumulative, (latency.count(), seconds(latency.sum_ns())))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
