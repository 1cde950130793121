//! Results of a live benchmark, for people and for programs.

use serde_json::{Value, json};

use super::latency::{Latency, RATE_PPS};
use super::{Ends, Trial, best};
use crate::bench::report::amount;
use crate::output::grouped;

/// The head of the table of trials.
pub fn head() -> String {
    format!("  {:>16}  {:>16}  {:>16}  {:>10}  {:>7}\n", "asked for /s", "sent /s", "received /s", "lost", "%")
}

/// A line of the table.
pub fn line(trial: &Trial) -> String {
    let asked = if trial.asked_pps > 0.0 { amount(trial.asked_pps) } else { "all there are".to_owned() };
    let (sent, received) = (amount(trial.sent_pps()), amount(trial.received_pps()));
    format!("  {asked:>16}  {sent:>16}  {received:>16}  {:>10}  {:>7.3}\n", grouped(trial.lost()), trial.loss() * 100.0)
}

/// Renders the conclusion of the trials.
pub fn verdict(trials: &[Trial], tolerated: f64, latency: Option<&Latency>) -> String {
    let mut text = String::from("\n");
    let limit =
        if tolerated > 0.0 { format!("with at most {} % lost", tolerated * 100.0) } else { "without loss".to_owned() };
    match best(trials, tolerated) {
        Some(trial) => {
            text.push_str(&format!("  {:12}{} packets/s {limit}\n", "best", amount(trial.sent_pps())));
            if trial.is_short() {
                text.push_str("              the sender had no more to give; what is between may carry more\n");
            }
        }
        None => text.push_str(&format!("  {:12}no rate {limit} was found; the lowest tried lost too\n", "best")),
    }
    if let Some(latency) = latency {
        let us = |percent| format!("{:.1} us", latency.took.percentile(percent) as f64 / 1000.0);
        text.push_str(&match latency.took.len() {
            0 => format!("  {:12}not known: frames have no room for a number, or do not keep it\n", "latency"),
            arrived => format!(
                "  {:12}median {}, p99 {}, of {} packets at {RATE_PPS} a second\n",
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
pub fn json(ends: &Ends, traffic: &str, trials: &[Trial], tolerated: f64, latency: Option<&Latency>) -> String {
    let told: Vec<Value> = trials
        .iter()
        .map(|trial| {
            json!({
                "asked_pps": trial.asked_pps, "seconds": trial.seconds, "sent": trial.sent,
                "received": trial.received, "lost": trial.lost(),
            })
        })
        .collect();
    let latency = latency.map(|latency| {
        json!({
            "rate_pps": RATE_PPS, "sent": latency.sent, "received": latency.took.len(),
            "median_ns": latency.took.percentile(50.0), "p99_ns": latency.took.percentile(99.0),
        })
    });
    let whole = json!({
        "from": ends.from, "to": ends.to, "traffic": traffic, "trials": told, "tolerated_loss": tolerated,
        "best_pps": best(trials, tolerated).map(Trial::sent_pps),
        "sender_limited": best(trials, tolerated).map(Trial::is_short), "latency": latency,
    });
    format!("{whole:#}\n")
}
