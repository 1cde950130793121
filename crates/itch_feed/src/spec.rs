//! Defines feed specifications.

use wire::itch::Symbol;

/// Number of messages per datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DatagramMessages {
    /// A fixed number.
    Exactly(u16),
    /// From 1 to `most`; n with a frequency proportional to 1/n^`exponent`.
    Zipf {
        /// Maximum number.
        most: u16,
        /// Exponent, positive; larger values give fewer messages.
        exponent: f64,
    },
}

/// Weights of the message types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Orders added without attribution.
    pub add: u64,
    /// Orders added with attribution to a participant.
    pub attribute: u64,
    /// Orders executed at their price, fully or partially.
    pub execute: u64,
    /// Orders executed at another price.
    pub execute_at: u64,
    /// Orders cancelled partially.
    pub cancel: u64,
    /// Orders deleted.
    pub delete: u64,
    /// Orders replaced by others.
    pub replace: u64,
    /// Trades against hidden orders.
    pub trade: u64,
}

impl Mix {
    /// New orders only, as in the talk.
    pub const ADD_ONLY: Mix =
        Mix { add: 1, attribute: 0, execute: 0, execute_at: 0, cancel: 0, delete: 0, replace: 0, trade: 0 };
    /// Approximate mix of an exchange, in thousandths: most orders are deleted, few are executed, and very few at
    /// another price.
    pub const BOOK: Mix =
        Mix { add: 435, attribute: 15, execute: 47, execute_at: 3, cancel: 20, delete: 390, replace: 70, trade: 20 };
}

/// Specification of a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name of the session, padded with spaces.
    pub session: [u8; 10],
    /// The stock of interest.
    pub symbol: Symbol,
    /// Share of this stock among new orders and trades, from 0 to 1.
    pub share: f64,
    /// Number of other stocks, uniformly distributed. With 0, all messages are about the stock of interest.
    pub others: u16,
    /// Number of messages per datagram.
    pub counts: DatagramMessages,
    /// Weights of the message types.
    pub mix: Mix,
    /// Random seed: equal seeds give equal messages.
    pub seed: u64,
}

/// The workloads of the talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// 1 to 12 messages per datagram by Zipf's law, 1 % of them about the stock of interest.
    Synthetic,
    /// Always 12 messages, all about the stock of interest.
    WorstCase,
    /// One message per datagram, 0.1 % about the stock of interest: a typical day of an exchange.
    Sample,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Workload; 3] = [Workload::Synthetic, Workload::WorstCase, Workload::Sample];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Synthetic => "synthetic",
            Workload::WorstCase => "worst-case",
            Workload::Sample => "sample",
        }
    }

    /// Returns the specification; the stock of interest is GOOGL, with 99 others.
    pub fn spec(self, seed: u64) -> Spec {
        let (share, counts) = match self {
            Workload::Synthetic => (0.01, DatagramMessages::Zipf { most: 12, exponent: 1.0 }),
            Workload::WorstCase => (1.0, DatagramMessages::Exactly(12)),
            Workload::Sample => (0.001, DatagramMessages::Exactly(1)),
        };
        let symbol = Symbol(*b"GOOGL   ");
        Spec { session: *b"TRIPLANE01", symbol, share, others: 99, counts, mix: Mix::ADD_ONLY, seed }
    }
}
