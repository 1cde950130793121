//! Flows over TCP, the kernel's: one long one, or many that come and go.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use lab::Random;
use lab::sim::traffic::{Measured, SizeDistribution};
use switch::Time;

use super::clock::Clock;
use super::tally::Tally;

/// How often either end looks whether the scenario is over.
pub const LOOK: Duration = Duration::from_millis(50);

/// What a flow begins with: who sends it, how many bytes it has (0: without end), when it began. As long as a
/// simulation's, so that flows are.
const STAMP: usize = 16;

/// Flows of one host under way at the same time, as in a simulation.
const MAX_FLOWS: usize = 256;

/// Whether a call did nothing so far and may do it later.
pub fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Connects, as often as it takes; `None` if the scenario is over first.
pub fn connect(to: SocketAddr, clock: &Clock) -> std::io::Result<Option<TcpStream>> {
    loop {
        match TcpStream::connect_timeout(&to, clock.left().max(LOOK)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK))?;
                stream.set_write_timeout(Some(LOOK))?;
                return Ok(Some(stream));
            }
            Err(_) if clock.is_over() => return Ok(None),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Writes so many bytes that begin with `head`, as far as the scenario lasts; false if they were not all written.
pub fn write(stream: &mut TcpStream, head: &[u8], bytes: u64, clock: &Clock) -> bool {
    let zeros = [0; 16_384];
    let mut written = 0;
    while written < bytes && !clock.is_over() {
        let rest = usize::try_from(written).ok().and_then(|at| head.get(at..)).filter(|rest| !rest.is_empty());
        let block = rest.unwrap_or(&zeros);
        let most = block.len().min(usize::try_from(bytes - written).unwrap_or(usize::MAX));
        match stream.write(&block[..most]) {
            Ok(count) => written += count as u64,
            Err(error) if is_later(&error) => {}
            Err(_) => return false,
        }
    }
    written == bytes
}

/// Takes connections and has a thread of the same host serve each, until the scenario is over. Returns what all of them
/// measured.
pub fn serve(
    listener: &TcpListener,
    clock: &Clock,
    serve: impl Fn(TcpStream, &Clock) -> Tally + Sync,
) -> std::io::Result<Tally> {
    listener.set_nonblocking(true)?;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut tally = Tally::default();
        while !clock.is_over() {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(LOOK))?;
                    stream.set_write_timeout(Some(LOOK))?;
                    let serve = &serve;
                    threads.push(std::thread::Builder::new().spawn_scoped(scope, move || serve(stream, clock))?);
                }
                Err(error) if is_later(&error) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error),
            }
        }
        for thread in threads {
            tally.add(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok(tally)
    })
}

/// Sends one flow of so many bytes, or without end.
pub fn send(flow: u32, to: SocketAddr, bytes: Option<u64>, start: Time, clock: &Clock) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    // A flow without end is not counted, since it is never complete.
    tally.flow(flow).sent = u64::from(bytes.is_some());
    if clock.wait_until(start.as_ns()) {
        send_one(flow, to, bytes, clock)?;
    }
    Ok(tally)
}

fn send_one(flow: u32, to: SocketAddr, bytes: Option<u64>, clock: &Clock) -> std::io::Result<()> {
    let began = clock.now();
    let Some(mut stream) = connect(to, clock)? else { return Ok(()) };
    let bytes = bytes.map(|bytes| bytes.max(STAMP as u64));
    // The longest flow of a scenario has as many bytes as fit.
    let total = bytes.map_or(0, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let mut stamp = [0; STAMP];
    stamp[..4].copy_from_slice(&flow.to_be_bytes());
    stamp[4..8].copy_from_slice(&total.to_be_bytes());
    stamp[8..].copy_from_slice(&began.as_ns().to_be_bytes());
    // What the receiver got is counted there.
    write(&mut stream, &stamp, bytes.unwrap_or(u64::MAX), clock);
    Ok(())
}

/// Flows that come and go.
pub struct Flows {
    /// What the receivers know the sender by.
    pub flow: u32,
    /// Where to; each flow goes to one of them.
    pub targets: Vec<SocketAddr>,
    /// How large they are.
    pub sizes: SizeDistribution,
    /// The mean of the time from one to the next, in nanoseconds.
    pub mean_ns: f64,
    /// When the first begins, and from when on none does.
    pub during: std::ops::Range<Time>,
    /// Where times, receivers and sizes come from.
    pub random: Random,
}

impl Flows {
    /// Sends flows until it is time to stop, and waits until they are sent or the scenario is over.
    pub fn send(mut self, clock: &Clock) -> std::io::Result<Tally> {
        let mut tally = Tally::default();
        let measured = tally.flow(self.flow);
        std::thread::scope(|scope| {
            let mut sending = Vec::new();
            let mut next = self.during.start;
            while next < self.during.end && clock.wait_until(next.as_ns()) {
                let to = self.targets[self.random.below(self.targets.len() as u64) as usize];
                let bytes = self.sizes.draw(&mut self.random);
                sending.retain(|thread: &std::thread::ScopedJoinHandle<'_, _>| !thread.is_finished());
                if sending.len() < MAX_FLOWS {
                    let flow = self.flow;
                    let send = move || send_one(flow, to, Some(bytes), clock);
                    sending.push(std::thread::Builder::new().spawn_scoped(scope, send)?);
                    measured.sent += 1;
                }
                next = next.after_ns(self.random.exponential_ns(self.mean_ns).max(1));
            }
            Ok::<_, std::io::Error>(())
        })?;
        Ok(tally)
    }
}

/// Receives a flow; it counts to the end of the scenario, as a simulated receiver does, and no further.
pub fn receive(mut stream: TcpStream, clock: &Clock) -> Tally {
    let mut stamp = Vec::new();
    let mut measured = Measured::default();
    let mut buffer = vec![0; 65_536];
    while !clock.is_over() {
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_later(&error) => continue,
            Err(_) => break,
        };
        let now = clock.now();
        measured.arrived(now, count as u64);
        let missing = STAMP.saturating_sub(stamp.len()).min(count);
        stamp.extend_from_slice(&buffer[..missing]);
        if let Ok(stamp) = <[u8; STAMP]>::try_from(&stamp[..]) {
            let bytes = u32::from_be_bytes(stamp[4..8].try_into().expect("four bytes"));
            let began = u64::from_be_bytes(stamp[8..].try_into().expect("eight bytes"));
            if bytes > 0 && measured.bytes >= bytes.into() && measured.received == 0 {
                measured.received = 1;
                measured.took(now.since_ns(Time::from_ns(began)));
            }
        }
    }
    let mut tally = Tally::default();
    if let Some(flow) = stamp.first_chunk::<4>() {
        *tally.flow(u32::from_be_bytes(*flow)) = measured;
    }
    tally
}
