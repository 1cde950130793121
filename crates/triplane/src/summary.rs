//! Renders the summary of a run as text and as JSON.

use std::collections::BTreeMap;

use runtime::RunReport;
use serde_json::json;
use switch::{DropSite, PacketSwitch};
use v1model::Switch;

use crate::kernel;
use crate::tiny_counts::TinyCounts;

/// Renders received, sent and dropped packets as text. `notifications` is the number of notifications of each kind.
/// `seconds` is the duration of a live run.
pub fn text<S: PacketSwitch>(
    report: &RunReport<S>,
    notifications: &BTreeMap<String, u64>,
    seconds: Option<f64>,
) -> String {
    let mut text = report.switch.summary();
    for port in &report.ports {
        let (id, name, stats) = (port.id, &port.name, port.stats);
        let lines = [
            (stats.rx_dropped, "were dropped on receive: the switch was busy"),
            (stats.rx_unusable, "were malformed"),
            (stats.rx_truncated, "were truncated in the capture (snap length)"),
            (stats.tx_queue_full, "not sent: the interface's queue was full"),
            (stats.tx_bad_length, "not sent: too long for the interface, or too short for a frame"),
            (stats.tx_link_down, "not sent: the interface is down"),
        ];
        for (count, what) in lines.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!("port {id} ({name}): {count} {what}\n"));
        }
    }
    let lines = tiny_counts(report).lines();
    if !lines.is_empty() {
        text.push_str(&format!("\n{}\n", lines.join("\n")));
    }
    for (kind, count) in notifications {
        let notifications = if *count == 1 { "notification" } else { "notifications" };
        text.push_str(&format!("{count} {notifications} to the control plane: {kind}\n"));
    }
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
        let count = received(report);
        text.push_str(&format!("\n{count} packet{} in {seconds:.1} s\n", if count == 1 { "" } else { "s" }));
    }
    text
}

/// Returns the counts of tiny packet programs.
fn tiny_counts<S: PacketSwitch>(report: &RunReport<S>) -> TinyCounts {
    let counters: Vec<(String, u64)> = report.switch.registry().iter().collect();
    TinyCounts::of(counters.iter().map(|(name, count)| (name.as_str(), *count)))
}

/// Returns the number of packets that the switch received on all ports according to its own
/// counters.
fn received<S: PacketSwitch>(report: &RunReport<S>) -> u64 {
    let registry = report.switch.registry();
    report.ports.iter().filter_map(|port| registry.get(&format!("port.{}.rx.packets", port.id))).sum()
}

/// Renders the summary as JSON. The counts of a port are its driver's and the kernel's, not those of the
/// switch.
pub fn json(report: &RunReport<Switch>, notifications: &BTreeMap<String, u64>, seconds: f64) -> String {
    let drops: Vec<_> = report.switch.drop_sites().iter().map(DropSite::to_json).collect();
    let mut ports = Vec::new();
    for port in &report.ports {
        let (stats, in_kernel) = (port.stats, report.switch.kernel_count(port.id));
        ports.push(json!({
            "port": port.id.0, "name": port.name,
            "rx_packets": stats.rx_packets + in_kernel.received.packets,
            "rx_bytes": stats.rx_bytes + in_kernel.received.bytes, "rx_dropped": stats.rx_dropped + in_kernel.crowded.packets,
            "rx_unusable": stats.rx_unusable, "rx_truncated": stats.rx_truncated,
            "tx_packets": stats.tx_packets + in_kernel.sent.packets,
            "tx_bytes": stats.tx_bytes + in_kernel.sent.bytes, "tx_dropped": stats.tx_dropped(),
        }));
    }
    let summary = json!({
        "seconds": seconds, "ports": ports, "drops": drops, "messages": notifications,
        "counters": report.switch.registry().to_json(), "kernel": kernel::summary_json(report),
        "tiny_programs": tiny_counts(report).json(), "int": tiny_counts(report).int_json(),
    });
    format!("{summary:#}\n")
}
