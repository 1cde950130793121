//! A market data feed and a subscriber to it: what a stock exchange's multicast looks like, made up.
//!
//! The central types are [`Feed`], which makes datagrams of MoldUDP64 with messages of ITCH 5.0 ([`wire::moldudp64`],
//! [`wire::itch`]) one after the other, and [`Receiver`], which takes datagrams and says what was missing between them and
//! how old each message is. A [`Spec`] says what the feed is like; [`Workload`] has the three of the talk on packet
//! subscriptions ("High-Throughput Publish/Subscribe in the Forwarding Plane").
//!
//! [`Subscriber`] is a receiver that also picks the messages that it wants, by a [`Filter`] of the rule language of
//! [`subscribe`], and measures their ages: what a subscriber does whose switch forwards everything. [`Pace`] says when a
//! feed's datagrams are due.
//!
//! A feed's messages make sense together: what is executed, cancelled, replaced or deleted was added before, with at least
//! as many shares, and a stock keeps its locate number. The same spec makes the same messages, everywhere; only their
//! timestamps are the caller's. Nothing here reads a clock, sends anything or knows an address.

#![forbid(unsafe_code)]

mod book;
mod feed;
mod filter;
mod pace;
mod receiver;
mod spec;
mod subscriber;
mod view;

pub use feed::Feed;
pub use filter::{Filter, NoFilter, Subscription};
pub use pace::{Pace, Rate};
pub use receiver::{Arrival, Receiver, Totals, messages};
pub use spec::{Counts, Mix, Spec, Workload};
pub use subscriber::Subscriber;

/// The UDP port that feeds here are sent to.
pub const PORT: u16 = 26_400;

/// Nanoseconds of a day, after which the messages' timestamps begin anew.
pub const DAY_NS: u64 = 86_400_000_000_000;
