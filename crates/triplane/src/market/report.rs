//! Reports on sent and received messages, as text and as JSON.

use hdrhistogram::Histogram;
use itch_feed::{Published, Subscriber, Totals};
use serde_json::{Value, json};

use super::picture::{self, Line, Panel};
use crate::output::grouped;

/// The reported quantiles, with their names.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Formats the statistics of a published feed for people.
pub fn published(published: &Published) -> String {
    let Published { datagrams, messages, refused, seconds, late_seconds } = *published;
    let rate = messages as f64 / seconds.max(1e-9);
    let mut text = format!(
        "sent         {} messages in {} datagrams over {seconds:.2} s: {} messages/s\n",
        grouped(messages),
        grouped(datagrams),
        grouped(rate as u64)
    );
    if refused > 0 {
        text += &format!("rejected     {} datagrams: a local queue was full\n", grouped(refused));
    }
    if late_seconds > 0.0 {
        text += &format!("fell behind  by {late_seconds:.2} s: the requested rate was not reached\n");
    }
    text
}

/// Formats the statistics of a published feed as JSON.
pub fn published_json(published: &Published) -> String {
    let Published { datagrams, messages, refused, seconds, late_seconds } = *published;
    let value = json!({
        "datagrams": datagrams, "messages": messages, "refused": refused, "seconds": seconds, "late_seconds": late_seconds,
    });
    format!("{value:#}\n")
}

/// Formats the statistics of a received feed for people.
pub fn received(subscriber: &Subscriber, filter: Option<&str>, seconds: f64) -> String {
    let Totals { datagrams, messages, missing, repeated } = subscriber.totals();
    let mut text = format!(
        "received     {} messages in {} datagrams over {seconds:.2} s\n",
        grouped(messages),
        grouped(datagrams)
    );
    text += &format!("missing      {}\n", grouped(missing));
    for (count, what) in [(repeated, "repeated   "), (subscriber.malformed(), "malformed  ")] {
        if count > 0 {
            text += &format!("{what}  {}\n", grouped(count));
        }
    }
    if let Some(filter) = filter {
        text += &format!("matched      {} messages: {filter}\n", grouped(subscriber.wanted()));
    }
    let ages = subscriber.ages();
    if !ages.is_empty() {
        let whose = if filter.is_some() { "of those" } else { "of all  " };
        let quantiles =
            QUANTILES.map(|(name, quantile)| format!("{name} {}", micros(ages.value_at_quantile(quantile))));
        text += &format!("age {whose}  {}, max {} us\n", quantiles.join(", "), micros(ages.max()));
    }
    text
}

/// Formats the statistics of a received feed as JSON. Ages are in ns; `distribution` has pairs of an age and the share
/// of messages that were no older.
pub fn received_json(subscriber: &Subscriber, filter: Option<&str>, seconds: f64) -> String {
    let Totals { datagrams, messages, missing, repeated } = subscriber.totals();
    let value = json!({
        "datagrams": datagrams, "messages": messages, "missing": missing, "repeated": repeated,
        "malformed": subscriber.malformed(), "filter": filter, "wanted": subscriber.wanted(), "seconds": seconds,
        "age_ns": ages_json(subscriber.ages()),
    });
    format!("{value:#}\n")
}

fn ages_json(ages: &Histogram<u64>) -> Value {
    if ages.is_empty() {
        return Value::Null;
    }
    let distribution: Vec<Value> =
        ages.iter_quantiles(5).map(|step| json!([step.value_iterated_to(), step.quantile()])).collect();
    json!({
        "p50": ages.value_at_quantile(0.5), "p90": ages.value_at_quantile(0.9), "p99": ages.value_at_quantile(0.99), "p99.9": ages.value_at_quantile(0.999),
        "least": ages.min(), "most": ages.max(), "mean": ages.mean(), "distribution": distribution,
    })
}

/// Draws the distribution of the ages of the selected messages as SVG.
///
/// # Errors
/// As of [`picture::ages`].
pub fn drawn(subscriber: &Subscriber, filter: Option<&str>) -> Result<String, Box<dyn std::error::Error>> {
    let ages = subscriber.ages();
    let points: Vec<(f64, f64)> =
        ages.iter_quantiles(20).map(|step| (step.value_iterated_to() as f64 / 1e3, step.quantile())).collect();
    // Whole decades; a picture without messages has one, too.
    let (least, most) = (ages.min().max(1) as f64 / 1e3, ages.max().max(1) as f64 / 1e3);
    let (first, last) = (least.log10().floor(), most.log10().ceil());
    let range = 10f64.powf(first)..10f64.powf(last.max(first + 1.0));
    let name = format!("{} messages", grouped(subscriber.wanted()));
    let title = filter.unwrap_or("all messages").to_owned();
    let panel = Panel { title, lines: vec![Line { name, points, bound: Vec::new() }] };
    picture::ages("age in us", range, &[panel])
}

/// Formats nanoseconds as microseconds: `12.3`.
pub fn micros(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    if us < 1_000.0 { format!("{us:.1}") } else { grouped(us as u64) }
}
