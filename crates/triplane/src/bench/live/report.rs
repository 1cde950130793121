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
        if tolerated > 0.0 { format!("with at most {} % loss", percent(tolerated)) } else { "without loss".to_owned() };
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

/// Returns a part as a percentage with at most four decimals, so that 0.07 % prints as it was given.
fn percent(part: f64) -> f64 {
    (part * 1e6).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rate_is_printed_and_not_the_last_that_was_tried() {
        let trial = |intended_pps: f64, sent, received| LoadTrial { intended_pps, seconds: 1.0, sent, received };
        let maximum = trial(0.0, 1000, 700);
        let trials =
            [maximum, trial(500.0, 500, 500), trial(750.0, 750, 750), trial(875.0, 875, 800), trial(812.0, 700, 700)];
        let said = verdict(&trials, 0.0, None);
        assert!(said.contains("  best        750 packets/s without loss\n") && !said.contains("bottleneck"), "{said}");
        let said = verdict(&trials, 0.0007, None);
        assert!(said.contains("750 packets/s with at most 0.07 % loss\n"), "{said}");
        let said = verdict(&trials[..1], 0.1, None);
        assert!(said.contains("no rate with at most 10 % loss was found"), "{said}");
        let said = verdict(&[trial(0.0, 900, 900)], 0.0, None);
        assert!(said.contains("900 packets/s") && said.contains("the sender was the bottleneck"), "{said}");
    }
}
