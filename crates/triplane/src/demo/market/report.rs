//! Renders the results of part two of the demo as text and as JSON.

use itch_feed::{Published, Subscriber};
use serde_json::{Value, json};

use super::path::{DatagramPath, path};
use super::{Outcome, PROGRAM_PATH, RULES_PATH, Subscription};
use crate::demo::report::Mode;
use crate::market::report::micros;
use crate::output::grouped;
use crate::output::{Failure, Output};

/// The results of the act.
pub struct MarketReport {
    mode: Mode,
    published: Published,
    outcomes: Vec<Outcome>,
    path: Option<DatagramPath>,
    compiled: bool,
}

impl MarketReport {
    /// Builds the report.
    pub(super) fn new(
        mode: Mode,
        published: Published,
        subscribers: Vec<(Subscription, Subscriber)>,
        is_compiled: bool,
        output: &Output,
    ) -> Result<MarketReport, Failure> {
        let outcomes = super::outcomes(&published, subscribers);
        let path = path(&super::subscriptions(), output)?;
        Ok(MarketReport { mode, published, outcomes, path, compiled: is_compiled })
    }

    /// Returns the first check that failed, as a sentence, or `None` if all passed. Messages that a busy machine loses
    /// on the way are shown in the report. They are not a failure as long as the subscriber can see the gap.
    pub fn shortcoming(&self) -> Option<String> {
        self.outcomes.iter().find_map(|Outcome { subscription, expected, subscriber }| {
            let totals = subscriber.totals();
            let name = &subscription.name;
            match totals.messages {
                0 => Some(format!("`{name}` received none of {expected} messages")),
                // Messages lost before the switch are missing for every subscriber, whether it asked for them or not.
                got if got > *expected || got + totals.missing < *expected => {
                    Some(format!("`{name}` asked for {expected} messages, received {got} and lost {}", totals.missing))
                }
                _ => None,
            }
        })
    }

    /// Renders the report as text.
    pub fn render(&self, output: &Output) -> String {
        let heading = |text: &str| format!("\n{}\n\n", output.bold(text));
        let mut text = heading("A market data feed, and a switch that delivers it by subscription");
        for (at, Outcome { subscription: Subscription { name, condition, port, .. }, .. }) in
            self.outcomes.iter().enumerate()
        {
            let left = if at == 0 { "exchange ──── [1] switch" } else { "" };
            text += &format!("  {left:24} [{port}] ──── {name}   {condition}\n");
        }
        let Published { datagrams, messages, seconds, .. } = self.published;
        let how = match &self.mode {
            Mode::Live => "over UDP multicast",
            Mode::Offline(_) => "from a capture",
        };
        text += &format!(
            "\n  The exchange sent {} messages in {} datagrams over {seconds:.1} s (ITCH 5.0 in MoldUDP64, {how}).\n  \
             The switch is {PROGRAM_PATH}; its tables were compiled from {RULES_PATH}.\n",
            grouped(messages),
            grouped(datagrams)
        );
        text += &heading("Messages delivered to the subscribers");
        text += "               matching    delivered         lost";
        let is_live = self.mode == Mode::Live;
        text += if is_live { "     age p50          p99          max\n" } else { "\n" };
        for Outcome { subscription, expected, subscriber } in &self.outcomes {
            let got = subscriber.totals().messages;
            let counts = [*expected, got, expected.saturating_sub(got)].map(|count| format!("{:>12} ", grouped(count)));
            text += &format!("  {:8}{}", subscription.name, counts.concat());
            if is_live {
                let ages = subscriber.ages();
                let ages = [ages.value_at_quantile(0.5), ages.value_at_quantile(0.99), ages.max()];
                text += &ages.map(|ns| format!("{:>9} us ", micros(ns))).concat();
            }
            text = format!("{}\n", text.trim_end());
        }
        if is_live {
            text += "\n  Age: time from the exchange's timestamp to reception in the subscriber's program.\n";
        }
        if let Some(path) = &self.path {
            text += &heading("Path of one datagram");
            for line in &path.lines {
                text += &format!("  {line}\n");
            }
            let executor = if self.compiled { "machine code" } else { "the interpreter" };
            let passes = if path.passes == 1 { "one pass".to_owned() } else { format!("{} passes", path.passes) };
            text +=
                &format!("\n  {passes} through {executor}; each subscriber's messages are numbered without gaps.\n");
        }
        text += &heading("Next");
        text += &crate::demo::DemoReport::next();
        text += &format!("  triplane subscribe check examples/market-data/feed.p4 {RULES_PATH}\n");
        text += "  triplane lab up examples/market-data/lab.toml    (examples/market-data/README.md)\n";
        text
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        let subscribers = self.outcomes.iter().map(|Outcome { subscription, expected, subscriber }| {
            let (totals, ages) = (subscriber.totals(), subscriber.ages());
            let age = |quantile| (self.mode == Mode::Live && !ages.is_empty()).then(|| ages.value_at_quantile(quantile));
            json!({
                "name": subscription.name, "rule": subscription.condition, "port": subscription.port, "asked": expected,
                "delivered": totals.messages, "missing": totals.missing, "age_ns": { "p50": age(0.5), "p99": age(0.99) },
            })
        });
        json!({
            "messages": self.published.messages, "datagrams": self.published.datagrams,
            "subscribers": subscribers.collect::<Vec<_>>(), "way": self.path.as_ref().map(|path| &path.lines),
        })
    }
}
