//! Datagrams of many flows from one host to another; no datagram may be lost or reordered.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ports::namespace::Namespace;

use crate::support::TEST_TIMEOUT;

pub const FLOWS: usize = 16;
/// Maximum number of datagrams in flight: below the capacity of any queue or socket, so that no datagram may be lost.
const WINDOW: u64 = 64;
/// Length of a datagram's header in bytes: two for its flow and four for its number within the flow.
const HEAD: usize = 6;

/// A host and one of its addresses.
pub type End<'a> = (&'a Namespace, [u8; 4]);

/// Sends datagrams of `length` bytes, of each flow in turn, from ordinary sockets, while `goes_on` accepts the number
/// of datagrams sent. Calls `arrived` with the flow and the bytes of each. Returns the number of arrivals of each flow:
/// all datagrams that were sent, in the order in which they were sent.
pub fn send_through(
    from: End<'_>,
    to: End<'_>,
    length: usize,
    goes_on: impl Fn(u64) -> bool,
    mut arrived: impl FnMut(usize, &[u8]),
) -> [u32; FLOWS] {
    let bind = |(host, address): End<'_>| {
        let address = SocketAddr::from((address, 0));
        host.enter(|| UdpSocket::bind(address)).expect("to enter a namespace").expect("a socket")
    };
    let receiver = bind(to);
    receiver.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout can be set");
    let to = receiver.local_addr().expect("it is bound");
    let senders: Vec<UdpSocket> = (0..FLOWS).map(|_| bind(from)).collect();
    senders.iter().for_each(|sender| sender.connect(to).expect("there is a route"));
    let mut counts = [0u32; FLOWS];
    let (mut sent, mut count) = (0u64, 0u64);
    let mut progress = Instant::now();
    while goes_on(sent) || count < sent {
        while goes_on(sent) && sent - count < WINDOW {
            let (flow, number) = (sent as usize % FLOWS, (sent / FLOWS as u64) as u32);
            let head = [&(flow as u16).to_be_bytes()[..], &number.to_be_bytes()].concat();
            senders[flow].send(&[head, vec![0; length - HEAD]].concat()).expect("a datagram can be sent");
            sent += 1;
        }
        let mut datagram = [0; 64];
        match receiver.recv(&mut datagram) {
            Ok(len) => {
                assert_eq!(len, length, "bytes of a datagram");
                let flow = usize::from(u16::from_be_bytes([datagram[0], datagram[1]]));
                let number = u32::from_be_bytes([datagram[2], datagram[3], datagram[4], datagram[5]]);
                assert_eq!(number, counts[flow], "datagram of flow {flow} out of its turn");
                arrived(flow, &datagram[..len]);
                counts[flow] += 1;
                count += 1;
                progress = Instant::now();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                assert!(progress.elapsed() < TEST_TIMEOUT, "{count} of {sent} datagrams arrived");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(count, sent, "datagrams that arrived");
    counts
}
