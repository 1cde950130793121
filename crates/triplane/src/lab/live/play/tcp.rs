//! A flow over TCP, the kernel's: from one host to another, so many bytes or without end.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use lab::sim::traffic::Measured;
use ports::namespace::Namespace;
use switch::Time;

use super::{Clock, Thread};
use crate::output::Failure;

/// How often either end looks whether the scenario is over.
const LOOK: Duration = Duration::from_millis(50);

/// Begins a sender and a receiver.
pub fn begin(
    sender: &Arc<Namespace>,
    receiver: &Arc<Namespace>,
    address: Ipv4Addr,
    bytes: Option<u64>,
    start: u64,
    clock: Clock,
) -> Result<Vec<Thread>, Failure> {
    let failed = anyhow::Error::from;
    let sink = receiver.enter(|| TcpListener::bind((address, 0))).map_err(failed)??;
    let to = sink.local_addr()?;
    let receiving = receiver.spawn(move || receive(&sink, bytes, start, clock)).map_err(failed)?;
    let sending = sender.spawn(move || send(to, bytes, start, clock)).map_err(failed)?;
    Ok(vec![sending, receiving])
}

fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn send(to: SocketAddr, bytes: Option<u64>, start: u64, clock: Clock) -> std::io::Result<Measured> {
    // A flow without end is not counted, since it is never complete.
    let measured = Measured { sent: u64::from(bytes.is_some()), ..Measured::default() };
    clock.wait_until(start);
    let mut stream = loop {
        match TcpStream::connect_timeout(&to, clock.left().max(LOOK)) {
            Ok(stream) => break stream,
            Err(_) if clock.is_over() => return Ok(measured),
            Err(_) => std::thread::sleep(LOOK),
        }
    };
    stream.set_write_timeout(Some(LOOK))?;
    let block = [0x55; 16_384];
    let mut left = bytes.unwrap_or(u64::MAX);
    while left > 0 && !clock.is_over() {
        let most = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.write(&block[..most]) {
            Ok(written) => left -= written as u64,
            Err(error) if is_later(&error) => {}
            // What the receiver got is counted there.
            Err(_) => break,
        }
    }
    Ok(measured)
}

fn receive(listener: &TcpListener, bytes: Option<u64>, start: u64, clock: Clock) -> std::io::Result<Measured> {
    let mut measured = Measured::default();
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if is_later(&error) && clock.is_over() => return Ok(measured),
            Err(error) if is_later(&error) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut buffer = vec![0; 65_536];
    // Like a simulated one it counts to the end of the scenario, and no further.
    while !clock.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => measured.arrived(Time::from_ns(clock.now()), count as u64),
            Err(error) if is_later(&error) => {}
            Err(_) => break,
        }
    }
    if bytes.is_some_and(|bytes| measured.bytes >= bytes) {
        measured.received = 1;
        let last = measured.last.map_or(0, Time::as_ns);
        measured.took(last.saturating_sub(start));
    }
    Ok(measured)
}
