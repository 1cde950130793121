//! Datagrams from one host to another, at the times at which a simulation sends them.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use lab::Random;
use lab::sim::traffic::Departures;
use switch::Time;

use super::clock::Clock;
use super::tally::Tally;

/// Bytes of Ethernet, IPv4 and UDP headers around a payload.
const HEADERS: usize = 42;

/// Bytes at the beginning of a payload, as in a simulation: the flow, the number of the datagram, when it was sent in
/// nanoseconds of the scenario.
const STAMP: usize = 20;

/// How often a receiver looks whether the scenario is over.
const LOOK: Duration = Duration::from_millis(50);

/// What is sent and when.
pub struct Sends {
    /// What the receiver knows the sender by.
    pub flow: u32,
    /// Where to.
    pub to: SocketAddr,
    /// Bytes of a frame.
    pub size: u32,
    /// At which times.
    pub departures: Departures,
    /// No more from then on.
    pub stop: Time,
    /// Where times at random come from.
    pub random: Random,
}

/// Sends until it is time to stop.
pub fn send(socket: &UdpSocket, mut sends: Sends, clock: &Clock) -> Tally {
    let mut tally = Tally::default();
    let measured = tally.flow(sends.flow);
    let mut payload = vec![0; (sends.size as usize).saturating_sub(HEADERS).max(STAMP)];
    payload[..4].copy_from_slice(&sends.flow.to_be_bytes());
    while sends.departures.due() < sends.stop && clock.wait_until(sends.departures.due().as_ns()) {
        payload[4..12].copy_from_slice(&measured.sent.to_be_bytes());
        payload[12..STAMP].copy_from_slice(&clock.now().as_ns().to_be_bytes());
        // One that the host's own queue does not take is lost, as it would be behind it.
        let _ = socket.send_to(&payload, sends.to);
        measured.sent += 1;
        sends.departures.advance(&mut sends.random);
    }
    tally
}

/// Receives from all senders until the scenario is over.
pub fn receive(socket: &UdpSocket, clock: &Clock) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    let mut buffer = vec![0; 65_536];
    socket.set_read_timeout(Some(LOOK))?;
    while !clock.is_over() {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        let now = clock.now();
        let Some(stamp) = buffer[..length].first_chunk::<STAMP>().filter(|_| !clock.is_over()) else { continue };
        let flow = u32::from_be_bytes(stamp[..4].try_into().expect("four bytes"));
        let sent = u64::from_be_bytes(stamp[12..].try_into().expect("eight bytes"));
        let measured = tally.flow(flow);
        measured.received += 1;
        measured.arrived(now, length as u64);
        measured.took(now.since_ns(Time::from_ns(sent)));
    }
    Ok(tally)
}
