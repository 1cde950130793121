//! The results of the second act, as text for people and as JSON for programs.

use itch_feed::Subscriber;
use serde_json::{Value, json};

use super::way::{Way, way};
use super::{Outcome, PROGRAM_NAME, RULES_NAME, Subscription};
use crate::demo::account::Mode;
use crate::market::publish::Published;
use crate::market::report::micros;
use crate::output::grouped;
use crate::output::{Failure, Output};

/// The results of the act.
pub struct Account {
    mode: Mode,
    published: Published,
    outcomes: Vec<Outcome>,
    way: Option<Way>,
    compiled: bool,
}

impl Account {
    /// Builds the account.
    pub(super) fn new(
        mode: Mode,
        published: Published,
        subscribers: Vec<(Subscription, Subscriber)>,
        is_compiled: bool,
        output: &Output,
    ) -> Result<Account, Failure> {
        let outcomes = super::outcomes(&published, subscribers);
        let way = way(&super::subscriptions(), output)?;
        Ok(Account { mode, published, outcomes, way, compiled: is_compiled })
    }

    /// Returns the first check that failed, as a sentence, or `None` if all passed. Messages that a busy machine loses
    /// on the way are reported in the account. They are no failure as long as the subscriber can see the gap.
    pub fn shortcoming(&self) -> Option<String> {
        self.outcomes.iter().find_map(|Outcome { subscription, asked, subscriber }| {
            let totals = subscriber.totals();
            let name = &subscription.name;
            match totals.messages {
                0 => Some(format!("`{name}` got nothing of {asked} messages")),
                // Messages lost before the switch are missing for every subscriber, whether it asked for them or not.
                got if got > *asked || got + totals.missing < *asked => {
                    Some(format!("`{name}` asked for {asked} messages, got {got} and misses {}", totals.missing))
                }
                _ => None,
            }
        })
    }

    /// Renders the account for people.
    pub fn render(&self, output: &Output) -> String {
        let heading = |text: &str| format!("\n{}\n\n", output.bold(text));
        let mut text = heading("A market data feed, and a switch that knows who wants what");
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
             The switch is {PROGRAM_NAME}; its tables were made of {RULES_NAME}.\n",
            grouped(messages),
            grouped(datagrams)
        );
        text += &heading("What the subscribers got");
        text += "              asked for    delivered         lost";
        let is_live = self.mode == Mode::Live;
        text += if is_live { "     age p50          p99         most\n" } else { "\n" };
        for Outcome { subscription, asked, subscriber } in &self.outcomes {
            let got = subscriber.totals().messages;
            let counts = [*asked, got, asked.saturating_sub(got)].map(|count| format!("{:>12} ", grouped(count)));
            text += &format!("  {:8}{}", subscription.name, counts.concat());
            if is_live {
                let ages = subscriber.ages();
                let ages = [ages.value_at_quantile(0.5), ages.value_at_quantile(0.99), ages.max()];
                text += &ages.map(|ns| format!("{:>9} us ", micros(ns))).concat();
            }
            text = format!("{}\n", text.trim_end());
        }
        if is_live {
            text += "\n  Ages are from the exchange's time stamp to the subscriber's program.\n";
        }
        if let Some(way) = &self.way {
            text += &heading("One datagram's way");
            for line in &way.lines {
                text += &format!("  {line}\n");
            }
            let executor = if self.compiled { "machine code" } else { "the interpreter" };
            let passes = if way.passes == 1 { "one pass".to_owned() } else { format!("{} passes", way.passes) };
            text +=
                &format!("\n  {passes} through {executor}; each subscriber's messages are numbered without gaps.\n");
        }
        text += &heading("Next");
        text += &crate::demo::Account::next();
        text += &format!("  triplane subscribe check examples/market-data/feed.p4 {RULES_NAME}\n");
        text += "  triplane lab up examples/market-data/lab.toml    (examples/market-data/README.md)\n";
        text
    }

    /// Returns the account as JSON.
    pub fn to_json(&self) -> Value {
        let subscribers = self.outcomes.iter().map(|Outcome { subscription, asked, subscriber }| {
            let (totals, ages) = (subscriber.totals(), subscriber.ages());
            let age = |quantile| (self.mode == Mode::Live && !ages.is_empty()).then(|| ages.value_at_quantile(quantile));
            json!({
                "name": subscription.name, "rule": subscription.condition, "port": subscription.port, "asked": asked,
                "delivered": totals.messages, "missing": totals.missing, "age_ns": { "p50": age(0.5), "p99": age(0.99) },
            })
        });
        json!({
            "messages": self.published.messages, "datagrams": self.published.datagrams,
            "subscribers": subscribers.collect::<Vec<_>>(), "way": self.way.as_ref().map(|way| &way.lines),
        })
    }
}
