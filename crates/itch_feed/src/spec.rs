//! What a feed is like.

use wire::itch::Symbol;

/// How many messages a datagram has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counts {
    /// Always so many.
    Exactly(u16),
    /// From 1 to `most`, n of them in proportion to 1/n^`exponent`.
    Zipf {
        /// The most.
        most: u16,
        /// Above 0; the larger, the fewer messages.
        exponent: f64,
    },
}

/// How often each type of message comes, as weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Orders added, nobody's name with them.
    pub add: u64,
    /// Orders added with the participant who made them.
    pub attribute: u64,
    /// Orders executed, in whole or in part, at their price.
    pub execute: u64,
    /// Orders executed at another price.
    pub execute_at: u64,
    /// Orders cancelled in part.
    pub cancel: u64,
    /// Orders deleted.
    pub delete: u64,
    /// Orders replaced by others.
    pub replace: u64,
    /// Trades against orders that are not shown.
    pub trade: u64,
}

impl Mix {
    /// Nothing but new orders, as in the talk.
    pub const ADD_ONLY: Mix =
        Mix { add: 1, attribute: 0, execute: 0, execute_at: 0, cancel: 0, delete: 0, replace: 0, trade: 0 };
    /// About as on an exchange, in thousandths: most orders are deleted, few executed, and hardly any at another price.
    pub const BOOK: Mix =
        Mix { add: 435, attribute: 15, execute: 47, execute_at: 3, cancel: 20, delete: 390, replace: 70, trade: 20 };
}

/// What a feed is like.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The session's name: text, padded with spaces.
    pub session: [u8; 10],
    /// The stock that matters.
    pub symbol: Symbol,
    /// Which share of the new orders and trades is of that stock, from 0 to 1.
    pub share: f64,
    /// How many other stocks there are, each as likely as another. If there are none, all is of the one that matters.
    pub others: u16,
    /// How many messages a datagram has.
    pub counts: Counts,
    /// Which types.
    pub mix: Mix,
    /// The same seed gives the same messages.
    pub seed: u64,
}

/// The talk's workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// 1 to 12 messages a datagram by Zipf's law, 1 % of them of the stock that matters.
    Synthetic,
    /// Always 12 messages, all of the stock that matters.
    WorstCase,
    /// One message a datagram, 0.1 % of the stock that matters: the shape of an exchange's day.
    Sample,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 3] = [Workload::Synthetic, Workload::WorstCase, Workload::Sample];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Synthetic => "synthetic",
            Workload::WorstCase => "worst-case",
            Workload::Sample => "sample",
        }
    }

    /// The feed, whose stock that matters is GOOGL, with 99 others.
    pub fn spec(self, seed: u64) -> Spec {
        let (share, counts) = match self {
            Workload::Synthetic => (0.01, Counts::Zipf { most: 12, exponent: 1.0 }),
            Workload::WorstCase => (1.0, Counts::Exactly(12)),
            Workload::Sample => (0.001, Counts::Exactly(1)),
        };
        let symbol = Symbol(*b"GOOGL   ");
        Spec { session: *b"TRIPLANE01", symbol, share, others: 99, counts, mix: Mix::ADD_ONLY, seed }
    }
}
