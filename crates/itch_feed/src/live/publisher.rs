//! The exchange: sends each datagram of a feed when it is due.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{LiveFeedError, STOP_INTERVAL, socket, time_of_day_ns};
use crate::{DatagramSource, Pace, PublishLimit, Published};

/// Minimum sleep. A timer is late by about as much, and several datagrams can leave together.
const NAP: Duration = Duration::from_micros(50);
/// Maximum silence of a publisher. MoldUDP64 suggests a heartbeat each second.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Number of times the end of the session is sent, since datagrams get lost.
const ENDS: u32 = 3;

/// The addresses of a published feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedDestination {
    /// The address of this machine from which the feed is sent, and so its interface.
    pub interface: Ipv4Addr,
    /// The host or multicast group that it is sent to, and the port.
    pub to: SocketAddrV4,
}

impl FeedDestination {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the machine does not have the address.
    pub fn open(self) -> Result<FeedPublisher, LiveFeedError> {
        let FeedDestination { interface, to } = self;
        let socket =
            socket::sender(interface, to).map_err(|source| LiveFeedError::OpenPublisher { interface, source })?;
        Ok(FeedPublisher { socket, to })
    }
}

/// A sender of feeds.
#[derive(Debug)]
pub struct FeedPublisher {
    socket: UdpSocket,
    to: SocketAddrV4,
}

impl FeedPublisher {
    /// Sends a feed until the limit or until `stop` is set, and then the end of the session.
    ///
    /// # Errors
    /// If the recording is malformed, or a datagram cannot be sent. The end of the session is sent behind the readable
    /// part of a malformed recording. A full queue of the machine is not an error: the datagram counts as refused.
    pub fn publish(
        &self,
        feed: &mut impl DatagramSource,
        mut pace: Pace,
        limit: PublishLimit,
        stop: &AtomicBool,
    ) -> Result<Published, LiveFeedError> {
        let started = Instant::now();
        let mut published = Published::default();
        let mut last_sent = started;
        let mut failure = None;
        while !stop.load(Ordering::Relaxed) {
            let recorded_ns = match feed.prepare() {
                Ok(Some(recorded_ns)) => recorded_ns,
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            };
            let due = pace.due_ns(recorded_ns);
            if limit.is_reached(due, published.datagrams) {
                break;
            }
            let wait = Duration::from_nanos(due).saturating_sub(started.elapsed());
            if !wait.is_zero() {
                if last_sent.elapsed() >= HEARTBEAT_INTERVAL {
                    self.send(&feed.heartbeat())?;
                    last_sent = Instant::now();
                }
                std::thread::sleep(wait.clamp(NAP, STOP_INTERVAL));
                continue;
            }
            let before = feed.next_sequence();
            let payload = feed.take(time_of_day_ns());
            let messages = feed.next_sequence() - before;
            published.refused += u64::from(!self.send(&payload)?);
            last_sent = Instant::now();
            pace.sent(messages, due, (last_sent - started).as_nanos() as u64);
            published.datagrams += 1;
            published.messages += messages;
        }
        published.seconds = started.elapsed().as_secs_f64();
        published.late_seconds = pace.late_ns() as f64 / 1e9;
        for _ in 0..ENDS {
            std::thread::sleep(STOP_INTERVAL);
            self.send(&feed.end_of_session())?;
        }
        failure.map_or(Ok(published), |error| Err(LiveFeedError::Recording(error)))
    }

    /// Sends a datagram, and returns whether it left. A destination without a listener is not an error, and neither is
    /// a full queue.
    fn send(&self, payload: &[u8]) -> Result<bool, LiveFeedError> {
        match self.socket.send_to(payload, self.to) {
            Ok(_) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
            Err(source) => Err(LiveFeedError::Send { to: self.to, source }),
        }
    }
}

/// Whether the machine had no room (`ENOBUFS`).
fn is_full(error: &io::Error) -> bool {
    const NO_BUFFERS: i32 = 105;
    error.raw_os_error() == Some(NO_BUFFERS) || error.kind() == io::ErrorKind::WouldBlock
}
