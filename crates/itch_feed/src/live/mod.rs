//! Live feeds over UDP: a publisher that sends datagrams when they are due, and a listener for a subscriber.
//!
//! ```text
//!   Feed, Pace ──> FeedPublisher ── UDP, a host or a multicast group ──> FeedListener ──> Subscriber
//! ```
//!
//! Both are opened first ([`FeedDestination::open`], [`FeedSource::open`]) and then run in the calling thread until a
//! limit or a stop flag ends them. A socket stays in the network namespace in which it was opened, so a caller can open
//! it in the namespace of a host and run it from another one.

mod listener;
mod publisher;
mod socket;

pub use listener::{FeedListener, FeedSource, ReceiveLimit, SubscriberThread};
pub use publisher::{FeedDestination, FeedPublisher};

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{BinaryFileError, DAY_NS};

/// Maximum wait between two checks of the stop flag.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// A live feed that cannot be opened, or no longer be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum LiveFeedError {
    /// No socket can send from this address.
    #[error("cannot send from {interface}")]
    OpenPublisher {
        /// The address of this machine.
        interface: Ipv4Addr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No socket can receive at this address and port.
    #[error("{}", cannot_receive(.from))]
    OpenListener {
        /// The group, the address of this machine, and the port.
        from: FeedSource,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A datagram cannot be sent.
    #[error("cannot send to {to}")]
    Send {
        /// The destination.
        to: SocketAddrV4,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The recorded feed cannot be read.
    #[error(transparent)]
    Recording(BinaryFileError),
    /// The socket can receive no longer.
    #[error("cannot receive")]
    Receive(#[source] io::Error),
    /// The process can start no more threads.
    #[error("cannot start a subscriber's thread")]
    Start(#[source] io::Error),
}

fn cannot_receive(from: &FeedSource) -> String {
    let FeedSource { group, interface, port } = from;
    match group {
        Some(group) => format!("cannot receive {group} on port {port}; is {interface} a local address?"),
        None => format!("cannot receive on {interface}, port {port}"),
    }
}

/// Returns the time of day (UTC) in ns since midnight, the unit of the messages' timestamps.
pub fn time_of_day_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() % u128::from(DAY_NS)) as u64
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;
    use crate::{DatagramSource, Feed, FeedRate, Pace, PublishLimit, Receiver, Subscriber, Workload};

    const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn listener() -> FeedListener {
        FeedSource { group: None, interface: HERE, port: 0 }.open().expect("there is a port")
    }

    #[test]
    fn a_published_feed_arrives_whole_and_its_end_ends_reception() {
        let listener = listener();
        let destination = FeedDestination { interface: HERE, to: SocketAddrV4::new(HERE, listener.port()) };
        let limit = ReceiveLimit { seconds: None, ends_with_session: true };
        let subscriber = listener.spawn("subscriber", Subscriber::new(Receiver::from_start(), None), limit).unwrap();
        let mut feed = Feed::new(Workload::Synthetic.spec(3));
        let pace = Pace::new(FeedRate::Datagrams(2_000.0));
        let limit = PublishLimit { seconds: None, datagrams: Some(100) };
        let publisher = destination.open().unwrap();
        let published = publisher.publish(&mut feed, pace, limit, &AtomicBool::new(false)).unwrap();
        let (sender, joined) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = sender.send(subscriber.join());
        });
        let again = PublishLimit { seconds: None, datagrams: Some(0) };
        let deadline = Instant::now() + Duration::from_secs(60);
        let subscriber = loop {
            match joined.recv_timeout(Duration::from_millis(100)) {
                Ok(subscriber) => break subscriber.unwrap(),
                Err(_) => assert!(Instant::now() < deadline, "the end of the session does not end reception"),
            }
            // The datagrams that end the session may have been lost.
            let pace = Pace::new(FeedRate::Datagrams(2_000.0));
            publisher.publish(&mut feed, pace, again, &AtomicBool::new(false)).unwrap();
        };
        let totals = subscriber.totals();
        assert_eq!((published.datagrams, published.refused), (100, 0));
        assert_eq!((totals.datagrams, totals.messages, totals.missing), (100, published.messages, 0));
        assert_eq!(published.messages + 1, feed.next_sequence());
    }

    #[test]
    fn a_stop_flag_ends_both_and_no_datagram_gives_no_time() {
        let listener = listener();
        let stop = AtomicBool::new(true);
        let mut subscriber = Subscriber::new(Receiver::default(), None);
        let limit = ReceiveLimit { seconds: None, ends_with_session: false };
        assert_eq!(listener.listen(&mut subscriber, limit, &stop).unwrap(), 0.0);
        let destination = FeedDestination { interface: HERE, to: SocketAddrV4::new(HERE, listener.port()) };
        let pace = Pace::new(FeedRate::Datagrams(1.0));
        let mut feed = Feed::new(Workload::Sample.spec(1));
        let published = destination.open().unwrap().publish(&mut feed, pace, PublishLimit::default(), &stop).unwrap();
        assert_eq!(published.datagrams, 0);
    }

    #[test]
    fn sockets_that_cannot_be_opened_are_errors_with_their_addresses() {
        // 192.0.2.0/24 is for documentation (RFC 5737): no machine has an address of it.
        let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
        let group = Some(Ipv4Addr::new(239, 1, 1, 1));
        let sender = FeedDestination { interface: elsewhere, to: SocketAddrV4::new(HERE, 9) }.open().err().unwrap();
        assert_eq!(sender.to_string(), "cannot send from 192.0.2.1");
        let taken = UdpSocket::bind((HERE, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let open = |group, interface| FeedSource { group, interface, port }.open().err().map(|error| error.to_string());
        assert_eq!(open(None, HERE), Some(format!("cannot receive on 127.0.0.1, port {port}")));
        let text = format!("cannot receive 239.1.1.1 on port {port}; is 192.0.2.1 a local address?");
        assert_eq!(open(group, elsewhere), Some(text));
    }
}
