//! Measuring: how many frames a second arrive, and how long one takes.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::load::{Flood, Sink};
use ports::{Frame, Port, PortError};

use crate::forwarder::Running;
use crate::network::Network;

/// Frames a second, in millions.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub offered: f64,
    pub arrived: f64,
    /// Nanoseconds of processor time that the forwarder needed for each.
    pub cpu_ns: Option<f64>,
}

/// Frames of one call of the flood.
const FLOOD: u32 = 500_000;

/// What the load does before it counts.
const SETTLE: Duration = Duration::from_millis(150);

/// Offers a flood, of which so many of 64 frames are sent, for a time and counts what arrives.
pub fn rate(
    network: &Network,
    flood: &Flood,
    share: u32,
    running: &Running,
    sink: &Sink,
    seconds: f64,
) -> Result<Rate, Box<dyn Error>> {
    let quiet = AtomicBool::new(false);
    let (offered, lasted, arrived, cpu_ns) = std::thread::scope(|scope| -> Result<_, Box<dyn Error>> {
        let sender = scope.spawn(|| {
            let started = Instant::now();
            let sent = network.source.enter(|| {
                let mut sent = 0;
                while !quiet.load(Ordering::Relaxed) {
                    flood.send(FLOOD)?;
                    sent += u64::from(FLOOD) * u64::from(share) / 64;
                }
                Ok::<_, PortError>(sent)
            });
            (sent, started.elapsed())
        });
        std::thread::sleep(SETTLE);
        let (started, before, cpu_before) = (Instant::now(), sink.arrived(), running.cpu());
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let (after, elapsed, cpu_after) = (sink.arrived(), started.elapsed(), running.cpu());
        quiet.store(true, Ordering::Relaxed);
        let (sent, lasted) = sender.join().expect("the source does not panic");
        let frames = (after?.frames - before?.frames) as f64;
        let cpu = cpu_after.zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        let cpu_ns = cpu.map(|cpu| cpu.as_nanos() as f64 / frames.max(1.0));
        Ok((sent?? as f64, lasted.as_secs_f64(), frames / elapsed.as_secs_f64(), cpu_ns))
    })?;
    Ok(Rate { offered: offered / lasted / 1e6, arrived: arrived / 1e6, cpu_ns })
}

/// Sends frames one at a time, `gap` apart, and says how long each took from one host to the other, in nanoseconds.
/// Frames that do not arrive within 10 ms are left out.
pub fn latency(network: &Network, len: usize, count: usize, gap: Duration) -> Result<Vec<u64>, Box<dyn Error>> {
    let [mut source, mut sink] = network.ends()?;
    let mut batch: Vec<Frame> = Vec::new();
    let mut times = Vec::with_capacity(count);
    for frame in Network::frames(len).iter().cycle().take(count) {
        let until = Instant::now() + gap;
        while Instant::now() < until {
            sink.receive_frames(&mut batch, 64)?;
        }
        batch.clear();
        let sent = Instant::now();
        source.send(frame)?;
        source.flush()?;
        while sent.elapsed() < Duration::from_millis(10) {
            if sink.receive_frames(&mut batch, 1)? > 0 && batch.iter().any(|arrived| arrived.len() == frame.len()) {
                times.push(sent.elapsed().as_nanos() as u64);
                break;
            }
            batch.clear();
        }
        // What the source receives itself is of no interest.
        source.receive_frames(&mut batch, 64)?;
        batch.clear();
    }
    Ok(times)
}
