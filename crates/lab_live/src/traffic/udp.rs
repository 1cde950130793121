//! Sends datagrams from one host to another, at the times of a simulation.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use lab::Random;
use lab::sim::traffic::Departures;
use switch::Time;

use super::clock::ScenarioClock;
use super::measurements::TrafficMeasurements;

/// Size of the Ethernet, IPv4 and UDP headers around a payload, in bytes.
const HEADERS: usize = 42;

/// Size of the stamp at the beginning of a payload, in bytes, as in a simulation: flow number, datagram number, send
/// time.
const STAMP: usize = 20;

/// Interval at which a receiver checks whether the scenario is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A sender of datagrams.
pub struct DatagramSender {
    /// Number of its flow, which receivers count by.
    pub flow: u32,
    /// Address of the receiver.
    pub to: SocketAddr,
    /// Size of a frame, in bytes.
    pub size: u32,
    /// Times of the datagrams.
    pub departures: Departures,
    /// End of the traffic.
    pub stop: Time,
    /// Source of random times.
    pub random: Random,
}

/// Sends datagrams until the end of the traffic.
pub fn send(socket: &UdpSocket, mut sender: DatagramSender, clock: &ScenarioClock) -> TrafficMeasurements {
    let mut measurements = TrafficMeasurements::default();
    let measured = measurements.flow(sender.flow);
    let mut payload = vec![0; (sender.size as usize).saturating_sub(HEADERS).max(STAMP)];
    payload[..4].copy_from_slice(&sender.flow.to_be_bytes());
    while sender.departures.due() < sender.stop && clock.wait_until(sender.departures.due().as_ns()) {
        payload[4..12].copy_from_slice(&measured.sent.to_be_bytes());
        payload[12..STAMP].copy_from_slice(&clock.now().as_ns().to_be_bytes());
        // A datagram that the host's own queue rejects counts as lost.
        let _ = socket.send_to(&payload, sender.to);
        measured.sent += 1;
        sender.departures.advance(&mut sender.random);
    }
    measurements
}

/// Receives from all senders until the scenario is over.
pub fn receive(socket: &UdpSocket, clock: &ScenarioClock) -> std::io::Result<TrafficMeasurements> {
    let mut measurements = TrafficMeasurements::default();
    let mut buffer = vec![0; 65_536];
    socket.set_read_timeout(Some(CHECK_INTERVAL))?;
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
        let measured = measurements.flow(flow);
        measured.received += 1;
        measured.arrived(now, length as u64);
        measured.took(now.since_ns(Time::from_ns(sent)));
    }
    Ok(measurements)
}
