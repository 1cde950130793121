//! Datagrams from one host to another, at the times that a simulation would send them.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use lab::Random;
use lab::scenario::Timing;
use lab::sim::traffic::Measured;
use ports::namespace::Namespace;
use switch::Time;

use super::{Clock, Thread};
use crate::output::Failure;

/// Bytes of Ethernet, IPv4 and UDP headers around a payload.
const HEADERS: usize = 42;

/// Bytes at the beginning of a payload: when it was sent, in nanoseconds of the scenario.
const STAMP: usize = 8;

/// How often a receiver looks whether the scenario is over.
const LOOK: Duration = Duration::from_millis(50);

/// What is sent and when.
pub struct Sends {
    /// Bytes of a frame.
    pub size: u32,
    /// Bits of frames a second.
    pub rate_bps: u64,
    /// Evenly, at random, or in bursts.
    pub timing: Timing,
    /// When it begins, in nanoseconds of the scenario.
    pub start: u64,
    /// When it ends.
    pub stop: u64,
    /// Where times at random come from.
    pub random: Random,
}

/// Begins a sender and a receiver.
pub fn begin(
    sender: &Arc<Namespace>,
    receiver: &Arc<Namespace>,
    address: Ipv4Addr,
    sends: Sends,
    clock: Clock,
) -> Result<Vec<Thread>, Failure> {
    let failed = anyhow::Error::from;
    let sink = receiver.enter(|| UdpSocket::bind((address, 0))).map_err(failed)??;
    let to = sink.local_addr()?;
    let source = sender.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).map_err(failed)??;
    let receiving = receiver.spawn(move || receive(&sink, clock)).map_err(failed)?;
    let sending = sender.spawn(move || Ok(send(&source, to, sends, clock))).map_err(failed)?;
    Ok(vec![sending, receiving])
}

fn send(socket: &UdpSocket, to: SocketAddr, mut sends: Sends, clock: Clock) -> Measured {
    let mut measured = Measured::default();
    let mut payload = vec![0; (sends.size as usize).saturating_sub(HEADERS).max(STAMP)];
    let interval = f64::from(sends.size) * 8e9 / sends.rate_bps.max(1) as f64;
    let even = (interval.round() as u64).max(1);
    let stop = sends.stop.min(clock.end.as_nanos() as u64);
    let (mut next, mut burst_ends) = (sends.start, 0);
    while next < stop {
        clock.wait_until(next);
        payload[..STAMP].copy_from_slice(&clock.now().to_be_bytes());
        // One that the host's own queue does not take is lost, as it would be behind it.
        let _ = socket.send_to(&payload, to);
        measured.sent += 1;
        next += match sends.timing {
            Timing::Constant => even,
            Timing::Poisson => sends.random.exponential_ns(interval),
            Timing::OnOff { .. } if next + even < burst_ends => even,
            Timing::OnOff { on, off } => {
                let silent = even + sends.random.exponential_ns(off.as_ns() as f64);
                burst_ends = next + silent + sends.random.exponential_ns(on.as_ns() as f64).max(1);
                silent
            }
        };
    }
    measured
}

fn receive(socket: &UdpSocket, clock: Clock) -> std::io::Result<Measured> {
    let mut measured = Measured::default();
    let mut buffer = vec![0; 65_536];
    socket.set_read_timeout(Some(LOOK))?;
    while !clock.is_over() {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        let now = clock.now();
        if clock.is_over() {
            break;
        }
        measured.received += 1;
        measured.arrived(Time::from_ns(now), length as u64);
        if let Some(stamp) = buffer[..length].first_chunk::<STAMP>() {
            measured.took(now.saturating_sub(u64::from_be_bytes(*stamp)));
        }
    }
    Ok(measured)
}
