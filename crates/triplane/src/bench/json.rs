//! Renders benchmark results as JSON. The names are stable; times are in nanoseconds a packet.

use serde_json::{Value, json};
use switch::DropSite;

use super::Results;
use super::breakdown::PartKind;
use v1model::{PathCount, PathReason};
use v1model_runtime::bench::memory::{BATCH, Measured};

/// Renders all results.
pub fn render(results: &Results) -> String {
    let Results { counts, breakdown, .. } = results;
    let drops: Vec<Value> = counts.drops.iter().map(DropSite::to_json).collect();
    let parts: Vec<Value> = breakdown
        .shares
        .iter()
        .map(|share| {
            let table = if let PartKind::Table(name) = &share.kind { Some(name) } else { None };
            json!({ "part": share.kind.name(), "table": table, "ns": share.ns, "packets": share.packets })
        })
        .collect();
    let path = |count: &PathCount| {
        let reason = count.reason.map(|reason| reason.to_string());
        let remedy = count.reason.map(PathReason::remedy);
        json!({ "path": count.path.name(), "packets": count.packets, "reason": reason, "remedy": remedy })
    };
    let paths: Vec<Value> = counts.paths.iter().map(path).collect();
    let whole = json!({
        "program": results.program,
        "executor": if results.compiled { "jit" } else { "interpreter" },
        "traffic": results.traffic,
        "sent": counts.sent,
        "forwarded": counts.forwarded,
        "dropped": counts.dropped,
        "copies": counts.copies,
        "to_controller": counts.to_controller,
        "waiting": counts.waiting,
        "drops": drops,
        "paths": paths,
        "speed": speed(&results.measured),
        "rounds_ns": results.rounds,
        "interpreter": results.interpreter.as_ref().map(speed),
        "ratio": results.interpreter.as_ref().map(|slow| slow.median_ns() / results.measured.median_ns().max(1e-9)),
        "breakdown": {
            "parts": parts,
            "unused_tables": breakdown.unused,
            "sampled_ns": breakdown.sampled_ns,
            "instrumented_ns": results.probed_ns,
        },
    });
    format!("{whole:#}\n")
}

fn speed(measured: &Measured) -> Value {
    json!({
        "packets": measured.packets,
        "packets_per_second": 1e9 / measured.median_ns().max(1e-9),
        "median_ns": measured.median_ns(),
        "p99_ns": measured.percentile_ns(99.0),
        "mean_ns": measured.mean_ns(),
        "samples": measured.batches.count(),
        "packets_per_sample": BATCH,
    })
}
