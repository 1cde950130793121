//! Sends TCP flows with the kernel's stack: a single long one, or many short ones.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use lab::Random;
use lab::sim::traffic::{Measured, SizeDistribution};
use switch::Time;

use super::clock::ScenarioClock;
use super::measurements::TrafficMeasurements;

/// Interval at which either end checks whether the scenario is over.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Size of the stamp at the beginning of a flow, in bytes: flow number, size (0: endless), start time. A simulated flow
/// begins with a stamp of the same size.
const STAMP: usize = 16;

/// Maximum number of concurrent flows of one host, as in a simulation.
const MAX_FLOWS: usize = 256;

/// Maximum number of concurrent connections of one receiver. Others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 1024;

/// Whether a call had no effect and can be repeated.
pub fn is_retryable(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Connects, with retries; `None` if the scenario ends first.
pub fn connect(to: SocketAddr, clock: &ScenarioClock) -> std::io::Result<Option<TcpStream>> {
    loop {
        match TcpStream::connect_timeout(&to, clock.remaining().max(CHECK_INTERVAL)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(CHECK_INTERVAL))?;
                stream.set_write_timeout(Some(CHECK_INTERVAL))?;
                return Ok(Some(stream));
            }
            Err(_) if clock.is_over() => return Ok(None),
            Err(_) => std::thread::sleep(CHECK_INTERVAL),
        }
    }
}

/// Writes `bytes` bytes that begin with `head`. Returns false if the scenario ended or the connection failed first.
pub fn write(stream: &mut TcpStream, head: &[u8], bytes: u64, clock: &ScenarioClock) -> bool {
    let zeros = [0; 16_384];
    let mut written = 0;
    while written < bytes && !clock.is_over() {
        let rest = usize::try_from(written).ok().and_then(|at| head.get(at..)).filter(|rest| !rest.is_empty());
        let block = rest.unwrap_or(&zeros);
        let most = block.len().min(usize::try_from(bytes - written).unwrap_or(usize::MAX));
        match stream.write(&block[..most]) {
            Ok(count) => written += count as u64,
            Err(error) if is_retryable(&error) => {}
            Err(_) => return false,
        }
    }
    written == bytes
}

/// Accepts connections and serves each in a thread of the same host until the scenario is over. Returns the
/// measurements of all threads.
pub fn serve(
    listener: &TcpListener,
    clock: &ScenarioClock,
    serve: impl Fn(TcpStream, &ScenarioClock) -> TrafficMeasurements + Sync,
) -> std::io::Result<TrafficMeasurements> {
    listener.set_nonblocking(true)?;
    std::thread::scope(|scope| {
        let mut connections = ConnectionThreads::default();
        while !clock.is_over() {
            connections.reap();
            if connections.running.len() >= MAX_CONNECTIONS {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(CHECK_INTERVAL))?;
                    stream.set_write_timeout(Some(CHECK_INTERVAL))?;
                    let serve = &serve;
                    let thread = std::thread::Builder::new().spawn_scoped(scope, move || serve(stream, clock))?;
                    connections.running.push(thread);
                }
                Err(error) if is_retryable(&error) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error),
            }
        }
        for thread in std::mem::take(&mut connections.running) {
            connections.join(thread);
        }
        Ok(connections.measurements)
    })
}

/// The threads that serve connections, and the measurements of those that have ended.
#[derive(Default)]
struct ConnectionThreads<'scope> {
    running: Vec<ScopedJoinHandle<'scope, TrafficMeasurements>>,
    measurements: TrafficMeasurements,
}

impl<'scope> ConnectionThreads<'scope> {
    /// Adds the measurements of the threads that have ended.
    fn reap(&mut self) {
        for thread in self.running.extract_if(.., |thread| thread.is_finished()).collect::<Vec<_>>() {
            self.join(thread);
        }
    }

    fn join(&mut self, thread: ScopedJoinHandle<'scope, TrafficMeasurements>) {
        self.measurements.add(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
}

/// Sends one flow of a size in bytes, or an endless one.
pub fn send(
    flow: u32,
    to: SocketAddr,
    bytes: Option<u64>,
    start: Time,
    clock: &ScenarioClock,
) -> std::io::Result<TrafficMeasurements> {
    let mut measurements = TrafficMeasurements::default();
    // An endless flow is not counted, since it never completes.
    measurements.flow(flow).sent = u64::from(bytes.is_some());
    if clock.wait_until(start.as_ns()) {
        send_one(flow, to, bytes, clock)?;
    }
    Ok(measurements)
}

fn send_one(flow: u32, to: SocketAddr, bytes: Option<u64>, clock: &ScenarioClock) -> std::io::Result<()> {
    let began = clock.now();
    let Some(mut stream) = connect(to, clock)? else { return Ok(()) };
    let bytes = bytes.map(|bytes| bytes.max(STAMP as u64));
    // The stamp limits the size of a flow to 32 bits.
    let total = bytes.map_or(0, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let mut stamp = [0; STAMP];
    stamp[..4].copy_from_slice(&flow.to_be_bytes());
    stamp[4..8].copy_from_slice(&total.to_be_bytes());
    stamp[8..].copy_from_slice(&began.as_ns().to_be_bytes());
    // The receiver counts the bytes.
    write(&mut stream, &stamp, bytes.unwrap_or(u64::MAX), clock);
    Ok(())
}

/// Flows that arrive at random.
pub struct FlowArrivals {
    /// Number of the flows' sender, which receivers count by.
    pub flow: u32,
    /// Addresses of the receivers; each flow goes to one of them.
    pub targets: Vec<SocketAddr>,
    /// Distribution of flow sizes.
    pub sizes: SizeDistribution,
    /// Mean time between two flows, in nanoseconds.
    pub mean_ns: f64,
    /// Interval in which flows begin.
    pub during: std::ops::Range<Time>,
    /// Source of times, receivers and sizes.
    pub random: Random,
}

impl FlowArrivals {
    /// Sends flows, and waits until all of them are sent or the scenario is over.
    pub fn send(mut self, clock: &ScenarioClock) -> std::io::Result<TrafficMeasurements> {
        let mut measurements = TrafficMeasurements::default();
        let measured = measurements.flow(self.flow);
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
        Ok(measurements)
    }
}

/// Receives a flow. Bytes count until the end of the scenario, as in a simulation.
pub fn receive(mut stream: TcpStream, clock: &ScenarioClock) -> TrafficMeasurements {
    let mut stamp = Vec::new();
    let mut measured = Measured::default();
    let mut buffer = vec![0; 65_536];
    while !clock.is_over() {
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_retryable(&error) => continue,
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
    let mut measurements = TrafficMeasurements::default();
    if let Some(flow) = stamp.first_chunk::<4>() {
        *measurements.flow(u32::from_be_bytes(*flow)) = measured;
    }
    measurements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_whose_connections_have_ended_are_joined() {
        let flow = || {
            let mut measurements = TrafficMeasurements::default();
            measurements.flow(7).received = 1;
            measurements
        };
        std::thread::scope(|scope| {
            let mut connections = ConnectionThreads::default();
            for count in 1..=3_000 {
                connections.running.push(scope.spawn(flow));
                while !connections.running[0].is_finished() {
                    std::thread::yield_now();
                }
                connections.reap();
                assert_eq!(connections.running.len(), 0);
                assert_eq!(connections.measurements.flow(7).received, count);
            }
        });
    }
}
