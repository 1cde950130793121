//! The exchange: sends each datagram of a feed when it is due.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use itch_feed::{Feed, Pace};

use super::time_of_day_ns;
use crate::output::Failure;

/// Minimum sleep. A timer is late by about as much, and several datagrams can leave together.
const NAP: Duration = Duration::from_micros(50);
/// Maximum sleep between two checks of the stop flag.
const LONGEST: Duration = Duration::from_millis(50);
/// Number of times the end of the session is sent, since datagrams get lost.
const ENDS: u32 = 3;

/// Limits after which publishing stops; without any, it never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// Maximum duration in seconds.
    pub seconds: Option<f64>,
    /// Maximum number of datagrams.
    pub datagrams: Option<u64>,
}

impl Limit {
    /// Whether the limit is reached.
    pub fn is_reached(&self, due_ns: u64, datagrams: u64) -> bool {
        self.seconds.is_some_and(|seconds| due_ns as f64 >= seconds * 1e9)
            || self.datagrams.is_some_and(|most| datagrams >= most)
    }
}

/// Statistics of a published feed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Published {
    /// Number of datagrams with messages.
    pub datagrams: u64,
    /// Number of messages in them.
    pub messages: u64,
    /// Number of these datagrams for which the machine's own queues had no room.
    pub refused: u64,
    /// Duration of publishing, in seconds.
    pub seconds: f64,
    /// Time by which the sender fell behind, in seconds.
    pub late_seconds: f64,
}

/// Sends a feed until the limit or until `stop` is set, and then the end of the session.
pub fn send(
    socket: &UdpSocket,
    to: SocketAddrV4,
    feed: &mut Feed,
    mut pace: Pace,
    limit: Limit,
    stop: &AtomicBool,
) -> Result<Published, Failure> {
    let started = Instant::now();
    let mut published = Published::default();
    while !stop.load(Ordering::Relaxed) {
        let due = pace.due_ns();
        if limit.is_reached(due, published.datagrams) {
            break;
        }
        let wait = Duration::from_nanos(due).saturating_sub(started.elapsed());
        if !wait.is_zero() {
            std::thread::sleep(wait.clamp(NAP, LONGEST));
            continue;
        }
        let before = feed.next_sequence();
        let payload = feed.datagram(time_of_day_ns());
        let messages = feed.next_sequence() - before;
        published.refused += u64::from(!sent(socket, to, &payload)?);
        pace.sent(messages, started.elapsed().as_nanos() as u64);
        published.datagrams += 1;
        published.messages += messages;
    }
    published.seconds = started.elapsed().as_secs_f64();
    published.late_seconds = pace.late_ns() as f64 / 1e9;
    for _ in 0..ENDS {
        std::thread::sleep(LONGEST);
        sent(socket, to, &feed.end_of_session())?;
    }
    Ok(published)
}

/// Sends a datagram, and returns whether it left. A destination without a listener is no error, and neither is a full
/// queue.
fn sent(socket: &UdpSocket, to: SocketAddrV4, payload: &[u8]) -> Result<bool, Failure> {
    match socket.send_to(payload, to) {
        Ok(_) => Ok(true),
        Err(error) if is_full(&error) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Err(error) => Err(anyhow::Error::new(error).context(format!("cannot send to {to}")).into()),
    }
}

/// Whether the machine had no room (`ENOBUFS`).
fn is_full(error: &io::Error) -> bool {
    const NO_BUFFERS: i32 = 105;
    error.raw_os_error() == Some(NO_BUFFERS) || error.kind() == io::ErrorKind::WouldBlock
}
