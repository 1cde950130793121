//! Requests and their answers over one TCP connection.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};

use lab::Random;
use switch::Time;

use super::clock::Clock;
use super::tally::Tally;
use super::tcp::{connect, is_later, write};

/// What a request begins with: its own length and the answer's, as in a simulation.
const HEAD: usize = 16;

/// What a client asks for, and when.
pub struct Asks {
    /// What is measured is counted for this flow.
    pub flow: u32,
    /// Where to.
    pub to: SocketAddr,
    /// Bytes of a request, and of its answer.
    pub request: u64,
    pub response: u64,
    /// The mean of the time between an answer and the next request, in nanoseconds.
    pub think_ns: f64,
    /// When the first is sent, and from when on none is.
    pub during: std::ops::Range<Time>,
    /// Where times to think come from.
    pub random: Random,
}

impl Asks {
    /// Sends requests one after the other, each when the last was answered and it has thought for a while.
    pub fn send(mut self, clock: &Clock) -> std::io::Result<Tally> {
        let mut tally = Tally::default();
        let measured = tally.flow(self.flow);
        let (request, response) = (self.request.max(HEAD as u64), self.response.max(1));
        let head = [request.to_be_bytes(), response.to_be_bytes()].concat();
        if !clock.wait_until(self.during.start.as_ns()) || self.during.is_empty() {
            return Ok(tally);
        }
        let (mut next, mut began) = (self.during.start, clock.now());
        // One that cannot be sent counts as sent, and is not answered.
        measured.sent += 1;
        let Some(mut stream) = connect(self.to, clock)? else { return Ok(tally) };
        let mut buffer = vec![0; 65_536];
        loop {
            if !write(&mut stream, &head, request, clock) {
                return Ok(tally);
            }
            let mut left = response;
            while left > 0 {
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                match stream.read(&mut buffer[..most]) {
                    _ if clock.is_over() => return Ok(tally),
                    Ok(0) => return Ok(tally),
                    Ok(count) => {
                        left -= count as u64;
                        measured.arrived(clock.now(), count as u64);
                    }
                    Err(error) if is_later(&error) => {}
                    Err(_) => return Ok(tally),
                }
            }
            let now = clock.now();
            measured.received += 1;
            measured.took(now.since_ns(began));
            next = next.max(now.after_ns(self.random.exponential_ns(self.think_ns).max(1)));
            if next >= self.during.end || !clock.wait_until(next.as_ns()) {
                return Ok(tally);
            }
            began = clock.now();
            measured.sent += 1;
        }
    }
}

/// Answers the requests of a connection.
pub fn serve(mut stream: TcpStream, clock: &Clock) -> Tally {
    let mut head = Vec::new();
    let mut buffer = vec![0; 65_536];
    let mut read = 0_u64;
    while !clock.is_over() {
        // Of a request that goes on no more is read than it has left; clients send the next one behind the answer.
        let most = match number(&head, 0) {
            Some(total) => usize::try_from(total.saturating_sub(read)).unwrap_or(usize::MAX).clamp(1, buffer.len()),
            None => HEAD - head.len(),
        };
        match stream.read(&mut buffer[..most]) {
            Ok(0) => break,
            Ok(count) => {
                let missing = HEAD.saturating_sub(head.len()).min(count);
                head.extend_from_slice(&buffer[..missing]);
                read += count as u64;
            }
            Err(error) if is_later(&error) => continue,
            Err(_) => break,
        }
        if let (Some(total), Some(response)) = (number(&head, 0), number(&head, 8))
            && read >= total
        {
            if !write(&mut stream, &[], response, clock) {
                break;
            }
            head.clear();
            read = 0;
        }
    }
    Tally::default()
}

/// The number at a place of a head that is complete.
fn number(head: &[u8], at: usize) -> Option<u64> {
    (head.len() == HEAD).then(|| u64::from_be_bytes(head[at..at + 8].try_into().expect("eight bytes")))
}
