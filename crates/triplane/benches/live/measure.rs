//! Measurements: the rate at which frames arrive, and the latency of a frame.

use std::error::Error;
use std::time::{Duration, Instant};

use ports::load::Sink;
use ports::{Frame, Port};

use crate::forwarder::Running;
use crate::load::Load;
use crate::network::Network;

/// Frames a second, in millions.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub offered: f64,
    pub arrived: f64,
    /// Processor time that the forwarder needed for each frame, in nanoseconds.
    pub cpu_ns: Option<f64>,
}

/// Time for which the load runs before counting begins.
const SETTLE: Duration = Duration::from_millis(150);

/// Offers a load for a time and counts the frames that arrive.
pub fn rate(load: &mut Load, running: &Running, sink: &Sink, seconds: f64) -> Result<Rate, Box<dyn Error>> {
    std::thread::sleep(SETTLE);
    let (started, offered, before, cpu_before) = (Instant::now(), load.offered()?, sink.arrived()?, running.cpu());
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let (elapsed, offered_after, after, cpu_after) =
        (started.elapsed(), load.offered()?, sink.arrived()?, running.cpu());
    let frames = (after.frames - before.frames) as f64;
    let cpu = cpu_after.zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    Ok(Rate {
        offered: offered_after.rate_since(offered),
        arrived: frames / elapsed.as_secs_f64() / 1e6,
        cpu_ns: cpu.map(|cpu| cpu.as_nanos() as f64 / frames.max(1.0)),
    })
}

/// Sends frames one at a time, `gap` apart, and returns the time that each took from one host to the other, in
/// nanoseconds. Frames that do not arrive within 10 ms are left out.
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
        // Frames that the source itself receives are ignored.
        source.receive_frames(&mut batch, 64)?;
        batch.clear();
    }
    Ok(times)
}
