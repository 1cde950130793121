//! Sends requests and their responses over one TCP connection.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};

use lab::Random;
use switch::Time;

use super::clock::ScenarioClock;
use super::measurements::TrafficMeasurements;
use super::tcp::{connect, is_retryable, write};

/// Size of a request's header, in bytes: the lengths of the request and of its response, as in a simulation.
const HEADER: usize = 16;

/// A client that sends one request after the other.
pub struct RequestClient {
    /// The flow for which requests count.
    pub flow: u32,
    /// Address of the server.
    pub to: SocketAddr,
    /// Size of a request and of its response, in bytes.
    pub request: u64,
    pub response: u64,
    /// Mean think time between a response and the next request, in nanoseconds.
    pub think_ns: f64,
    /// Interval in which requests are sent.
    pub during: std::ops::Range<Time>,
    /// Source of think times.
    pub random: Random,
}

impl RequestClient {
    /// Sends requests, each after the response to the previous one and a think time.
    pub fn send(mut self, clock: &ScenarioClock) -> std::io::Result<TrafficMeasurements> {
        let mut measurements = TrafficMeasurements::default();
        let measured = measurements.flow(self.flow);
        let (request, response) = (self.request.max(HEADER as u64), self.response.max(1));
        let header = [request.to_be_bytes(), response.to_be_bytes()].concat();
        if !clock.wait_until(self.during.start.as_ns()) || self.during.is_empty() {
            return Ok(measurements);
        }
        let (mut next, mut began) = (self.during.start, clock.now());
        // A request that cannot be sent counts as sent and unanswered.
        measured.sent += 1;
        let Some(mut stream) = connect(self.to, clock)? else { return Ok(measurements) };
        let mut buffer = vec![0; 65_536];
        loop {
            if !write(&mut stream, &header, request, clock) {
                return Ok(measurements);
            }
            let mut left = response;
            while left > 0 {
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                match stream.read(&mut buffer[..most]) {
                    _ if clock.is_over() => return Ok(measurements),
                    Ok(0) => return Ok(measurements),
                    Ok(count) => {
                        left -= count as u64;
                        measured.arrived(clock.now(), count as u64);
                    }
                    Err(error) if is_retryable(&error) => {}
                    Err(_) => return Ok(measurements),
                }
            }
            let now = clock.now();
            measured.received += 1;
            measured.took(now.since_ns(began));
            next = next.max(now.after_ns(self.random.exponential_ns(self.think_ns).max(1)));
            if next >= self.during.end || !clock.wait_until(next.as_ns()) {
                return Ok(measurements);
            }
            began = clock.now();
            measured.sent += 1;
        }
    }
}

/// Serves the requests of a connection.
pub fn serve(mut stream: TcpStream, clock: &ScenarioClock) -> TrafficMeasurements {
    let mut header = Vec::new();
    let mut buffer = vec![0; 65_536];
    let mut read = 0_u64;
    while !clock.is_over() {
        // Reads no further than the end of a request. Clients send the next request after the response.
        let most = match number(&header, 0) {
            Some(total) => usize::try_from(total.saturating_sub(read)).unwrap_or(usize::MAX).clamp(1, buffer.len()),
            None => HEADER - header.len(),
        };
        match stream.read(&mut buffer[..most]) {
            Ok(0) => break,
            Ok(count) => {
                let missing = HEADER.saturating_sub(header.len()).min(count);
                header.extend_from_slice(&buffer[..missing]);
                read += count as u64;
            }
            Err(error) if is_retryable(&error) => continue,
            Err(_) => break,
        }
        if let (Some(total), Some(response)) = (number(&header, 0), number(&header, 8))
            && read >= total
        {
            if !write(&mut stream, &[], response, clock) {
                break;
            }
            header.clear();
            read = 0;
        }
    }
    TrafficMeasurements::default()
}

/// Returns the number at an offset of a complete header.
fn number(header: &[u8], at: usize) -> Option<u64> {
    (header.len() == HEADER).then(|| u64::from_be_bytes(header[at..at + 8].try_into().expect("eight bytes")))
}
