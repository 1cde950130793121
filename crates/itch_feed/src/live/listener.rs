//! Receives for a subscriber: passes on datagrams as they arrive.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{LiveFeedError, STOP_INTERVAL, socket, time_of_day_ns};
use crate::Subscriber;

/// Buffer size for the payload of a datagram, in bytes.
const MAX_PAYLOAD: usize = 1 << 16;

/// The addresses at which a feed is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSource {
    /// The multicast group to join.
    pub group: Option<Ipv4Addr>,
    /// The address of this machine whose interface receives the feed.
    pub interface: Ipv4Addr,
    /// The UDP port; 0 for any free one.
    pub port: u16,
}

impl FeedSource {
    /// Opens a socket in the calling thread's network namespace. Datagrams that arrive from now on wait in it.
    ///
    /// # Errors
    /// If the machine does not have the address, or the port is in use.
    pub fn open(self) -> Result<FeedListener, LiveFeedError> {
        let open = || -> io::Result<FeedListener> {
            let socket = socket::receiver(self.group, self.interface, self.port)?;
            socket.set_read_timeout(Some(STOP_INTERVAL))?;
            let port = socket.local_addr()?.port();
            Ok(FeedListener { socket, port })
        };
        open().map_err(|source| LiveFeedError::OpenListener { from: self, source })
    }
}

/// Conditions that end reception, besides the stop flag.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveLimit {
    /// Maximum duration in seconds; `None` for no limit.
    pub seconds: Option<f64>,
    /// Whether the end of the session ends reception.
    pub ends_with_session: bool,
}

/// A receiver of feeds.
#[derive(Debug)]
pub struct FeedListener {
    socket: UdpSocket,
    port: u16,
}

impl FeedListener {
    /// Returns the port. It is the actual one, also where any port was asked for.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Passes datagrams to a subscriber until the limit or until `stop` is set. Returns the time from the first
    /// datagram with messages to the last, in seconds.
    ///
    /// # Errors
    /// If the socket can receive no longer.
    pub fn listen(
        &self,
        subscriber: &mut Subscriber,
        limit: ReceiveLimit,
        stop: &AtomicBool,
    ) -> Result<f64, LiveFeedError> {
        let started = Instant::now();
        let mut buffer = vec![0; MAX_PAYLOAD];
        let mut span: Option<(Instant, Instant)> = None;
        while !stop.load(Ordering::Relaxed) {
            if limit.seconds.is_some_and(|seconds| started.elapsed().as_secs_f64() >= seconds) {
                break;
            }
            let length = match self.socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if is_nothing(&error) => continue,
                Err(error) => return Err(LiveFeedError::Receive(error)),
            };
            subscriber.take(&buffer[..length], time_of_day_ns());
            if subscriber.is_over() {
                if limit.ends_with_session { break } else { continue }
            }
            let now = Instant::now();
            span = Some((span.map_or(now, |(first, _)| first), now));
        }
        Ok(span.map_or(0.0, |(first, last)| (last - first).as_secs_f64()))
    }

    /// Receives for a subscriber in a thread of this name, until the limit or until the handle is dropped.
    ///
    /// # Errors
    /// If the process can start no more threads.
    pub fn spawn(
        self,
        name: &str,
        mut subscriber: Subscriber,
        limit: ReceiveLimit,
    ) -> Result<SubscriberThread, LiveFeedError> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let receive = move || self.listen(&mut subscriber, limit, &flag).map(|_| subscriber);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(receive).map_err(LiveFeedError::Start)?;
        Ok(SubscriberThread { stop, thread: Some(thread) })
    }
}

/// A subscriber that receives in a thread of its own. It stops when the handle is dropped.
#[derive(Debug)]
pub struct SubscriberThread {
    stop: Arc<AtomicBool>,
    /// `None` once the thread has been joined.
    thread: Option<JoinHandle<Result<Subscriber, LiveFeedError>>>,
}

impl SubscriberThread {
    /// Waits until the limit ends reception, and returns the subscriber.
    ///
    /// # Errors
    /// As [`FeedListener::listen`].
    ///
    /// # Panics
    /// If the thread panicked.
    pub fn join(mut self) -> Result<Subscriber, LiveFeedError> {
        let thread = self.thread.take().expect("only this method and `drop` take the thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for SubscriberThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The owner of the handle has another error to report.
            let _ = thread.join();
        }
    }
}

/// Whether there was nothing to receive yet.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
