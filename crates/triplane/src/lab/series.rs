//! Time series as CSV.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use lab::Topology;
use lab::scenario::Results;
use lab::sim::traffic::Measured;

use crate::output::Failure;

/// Writes `flows.csv`, `queues.csv`, `links.csv` and `latency.csv`; and `probes.csv` if probes read anything.
pub fn write(folder: &Path, topology: &Topology, results: &Results) -> Result<(), Failure> {
    let mut flows = "traffic,from,to,time_s,bytes\n".to_owned();
    for pair in &results.pairs {
        let head = format!("{},{},{}", field(&pair.name), field(&pair.from), field(&pair.to));
        for (interval, bytes) in pair.measured.series.iter().enumerate() {
            let time = (interval as u64 * Measured::INTERVAL_NS) as f64 / 1e9;
            _ = writeln!(flows, "{head},{time},{bytes}");
        }
    }
    let mut latency = "traffic,latency_ns,share\n".to_owned();
    for flow in &results.traffic {
        for (value, share) in cumulative(&flow.measured) {
            _ = writeln!(latency, "{},{value},{share}", field(&flow.name));
        }
    }
    let mut queues = "from,time_s,waiting,carried_bytes,queue_full\n".to_owned();
    for sample in &results.samples {
        let (end, time) = (topology.end_name(sample.from), sample.at.as_ns() as f64 / 1e9);
        _ = writeln!(queues, "{end},{time},{},{},{}", sample.waiting, sample.carried_bytes, sample.queue_full);
    }
    let mut links =
        "from,to,offered,carried,carried_bytes,queue_full,lost,link_down,too_large,longest_queue\n".to_owned();
    for link in &results.links {
        let stats = &link.stats;
        _ = writeln!(
            links,
            "{},{},{},{},{},{},{},{},{},{}",
            topology.end_name(link.from),
            topology.end_name(link.to),
            stats.offered,
            stats.carried,
            stats.carried_bytes,
            stats.queue_full,
            stats.lost,
            stats.link_down,
            stats.too_large,
            stats.longest_queue
        );
    }
    let mut probes = "traffic,value,time_s,number\n".to_owned();
    for (flow, values) in results.traffic.iter().flat_map(|flow| flow.values.iter().map(move |values| (flow, values))) {
        for (at, number) in &values.points {
            let time = at.as_ns() as f64 / 1e9;
            _ = writeln!(probes, "{},{},{time},{number}", field(&flow.name), field(&values.name));
        }
    }
    let mut files = vec![("flows.csv", flows), ("latency.csv", latency), ("queues.csv", queues), ("links.csv", links)];
    if results.traffic.iter().any(|flow| !flow.values.is_empty()) {
        files.push(("probes.csv", probes));
    }
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The cumulative distribution of latencies: values in nanoseconds, and the share that does not exceed them.
pub fn cumulative(measured: &Measured) -> Vec<(u64, f64)> {
    let total = measured.latency.len().max(1) as f64;
    let mut seen = 0;
    let points = measured.latency.iter_recorded().map(|step| {
        seen += step.count_since_last_iteration();
        (step.value_iterated_to(), seen as f64 / total)
    });
    points.collect()
}

/// A text as a field (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
