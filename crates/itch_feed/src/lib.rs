//! Generates a synthetic market data feed in the form of an exchange's multicast, and a subscriber to it.
//!
//! [`Feed`] generates MoldUDP64 datagrams with ITCH 5.0 messages ([`wire::moldudp64`], [`wire::itch`]). [`Receiver`]
//! takes datagrams and reports missing messages and the age of each message. A [`Spec`] describes the feed;
//! [`Workload`] provides the three of the talk on packet subscriptions ("High-Throughput Publish/Subscribe in the
//! Forwarding Plane").
//!
//! [`Subscriber`] is a receiver that also selects messages by a [`Filter`] in the rule language of [`subscribe`] and
//! measures their ages: the work of a subscriber whose switch forwards everything. [`Pace`] schedules a feed's
//! datagrams.
//!
//! The messages of a feed are consistent: every execution, cancellation, replacement and deletion refers to an open
//! order with at least as many shares, and a stock keeps its locate code. Equal specs generate equal messages on any
//! machine; only the timestamps come from the caller.
//!
//! [`Replay`] plays a recorded day instead: the messages of one of Nasdaq's BinaryFILEs ([`binary_file`]), at their own
//! pace or another. [`write_sample`] generates a small one. Both are a [`DatagramSource`].
//!
//! All of this is sans-IO. Only [`live`], which sends and receives feeds over UDP, reads clocks, opens sockets and
//! starts threads.

#![forbid(unsafe_code)]

pub mod binary_file;
mod book;
mod feed;
mod filter;
pub mod live;
mod pace;
mod published;
mod receiver;
mod replay;
mod sample;
mod source;
mod spec;
mod subscriber;
mod view;

pub use binary_file::BinaryFileError;
pub use feed::Feed;
pub use filter::{Filter, FilterError, Subscription};
pub use pace::{FeedRate, Pace};
pub use published::{PublishLimit, Published};
pub use receiver::{Arrival, Receiver, Totals, messages};
pub use replay::{GATHER_NS, Replay, ReplayOptions};
pub use sample::write_sample;
pub use source::DatagramSource;
pub use spec::{DatagramMessages, Mix, Spec, Workload};
pub use subscriber::Subscriber;

/// UDP port that feeds are sent to.
pub const PORT: u16 = 26_400;

/// Nanoseconds per day; message timestamps wrap around at midnight.
pub const DAY_NS: u64 = 86_400_000_000_000;
