//! Renders the results of a live benchmark as text and as JSON.

use ports::load::{LATENCY_RATE_PPS, LoadPath, LoadTrial, best_trial};
use serde_json::{Value, json};

use super::Latency;
use crate::bench::report::amount;
use crate::output::grouped;

/// The head of the table of trials.
pub fn head() -> String {
    format!("  {:>16}  {:>16}  {:>16}  {:>10}  {:>7}\n", "offered /s", "sent /s", "received /s", "lost", "%")
}

/// A line of the table.
pub fn line(trial: &LoadTrial) -> String {
    let asked = if trial.intended_pps > 0.0 { amount(trial.intended_pps) } else { "maximum".to_owned() };
    let (sent, received) = (amount(trial.sent_pps()), amount(trial.received_pps()));
    format!("  {asked:>16}  {sent:>16}  {received:>16}  {:>10}  {:>7.3}\n", grouped(trial.lost()), trial.loss() * 100.0)
}

/// Renders the conclusion of the trials.
pub fn verdict(trials: &[LoadTrial], tolerated: f64, latency: Option<&Latency>) -> String {
    let mut text = String::from("\n");
    let limit =
        if tolerated > 0.0 { format!("with at most {} % loss", tolerated * 100.0) } else { "without loss".to_owned() };
    match best_trial(trials, tolerated) {
        Some(trial) => {
            text.push_str(&format!("  {:12}{} packets/s {limit}\n", "best", amount(trial.sent_pps())));
            if trial.is_short() {
                text.push_str("              the sender was the bottleneck; the device between may forward more\n");
            }
        }
        None => text
            .push_str(&format!("  {:12}no rate {limit} was found; even the lowest rate tried had more loss\n", "best")),
    }
    if let Some(latency) = latency {
        let us = |percent| format!("{:.1} us", latency.took.percentile(percent) as f64 / 1000.0);
        text.push_str(&match latency.took.count() {
            0 => format!(
                "  {:12}unknown: frames are too short for a sequence number, or it is not preserved\n",
                "latency"
            ),
            arrived => format!(
                "  {:12}median {}, p99 {}, over {} packets at {LATENCY_RATE_PPS} packets/s\n",
                "latency",
                us(50.0),
                us(99.0),
                grouped(arrived)
            ),
        });
    }
    text
}

/// Renders all results as JSON, with stable names.
pub fn json(path: &LoadPath, traffic: &str, trials: &[LoadTrial], tolerated: f64, latency: Option<&Latency>) -> String {
    let trials_json: Vec<Value> = trials
        .iter()
        .map(|trial| {
            json!({
                "asked_pps": trial.intended_pps, "seconds": trial.seconds, "sent": trial.sent,
                "received": trial.received, "lost": trial.lost(),
            })
        })
        .collect();
    let latency = latency.map(|latency| {
        json!({
            "rate_pps": LATENCY_RATE_PPS, "sent": latency.sent, "received": latency.took.count(),
            "median_ns": latency.took.percentile(50.0), "p99_ns": latency.took.percentile(99.0),
        })
    });
    let whole = json!({
        "from": path.from, "to": path.to, "traffic": traffic, "trials": trials_json, "tolerated_loss": tolerated,
        "best_pps": best_trial(trials, tolerated).map(LoadTrial::sent_pps),
        "sender_limited": best_trial(trials, tolerated).map(LoadTrial::is_short), "latency": latency,
    });
    format!("{whole:#}\n")
}
