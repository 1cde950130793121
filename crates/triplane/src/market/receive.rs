//! The subscriber: handles datagrams as they arrive.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use itch_feed::Subscriber;

use super::time_of_day_ns;
use crate::output::Failure;

/// Maximum wait between two checks of the stop flag.
const LONGEST: Duration = Duration::from_millis(50);
/// Buffer size for the payload of a datagram, in bytes.
const MOST: usize = 1 << 16;

/// Conditions that end reception, besides the stop flag.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Maximum duration in seconds; `None` for no limit.
    pub seconds: Option<f64>,
    /// Whether the end of the session ends reception.
    pub with_session: bool,
}

/// Receives datagrams until an end. Returns the time from the first datagram to the last, in seconds.
pub fn listen(socket: &UdpSocket, subscriber: &mut Subscriber, ends: Ends, stop: &AtomicBool) -> Result<f64, Failure> {
    socket.set_read_timeout(Some(LONGEST)).context("cannot set a timeout")?;
    let started = Instant::now();
    let mut buffer = vec![0; MOST];
    let mut span: Option<(Instant, Instant)> = None;
    while !stop.load(Ordering::Relaxed) {
        if ends.seconds.is_some_and(|seconds| started.elapsed().as_secs_f64() >= seconds) {
            break;
        }
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if is_nothing(&error) => continue,
            Err(error) => return Err(anyhow::Error::new(error).context("cannot receive").into()),
        };
        subscriber.take(&buffer[..length], time_of_day_ns());
        if subscriber.is_over() {
            match ends.with_session {
                true => break,
                false => continue,
            }
        }
        let now = Instant::now();
        span = Some((span.map_or(now, |(first, _)| first), now));
    }
    Ok(span.map_or(0.0, |(first, last)| (last - first).as_secs_f64()))
}

/// Whether there was nothing to receive yet.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
