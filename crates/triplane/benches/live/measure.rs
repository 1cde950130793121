//! Measures the latency of a frame.

use std::error::Error;
use std::time::{Duration, Instant};

use ports::{Frame, Port};

use crate::network::Network;

/// Sends frames one at a time, `gap` apart, and returns the time that each took from one host to the other, in
/// nanoseconds. Frames that do not arrive within 10 ms are left out.
pub fn latency(network: &Network, frames: &[Vec<u8>], count: usize, gap: Duration) -> Result<Vec<u64>, Box<dyn Error>> {
    let [mut source, mut sink] = network.ends()?;
    let mut batch: Vec<Frame> = Vec::new();
    let mut times = Vec::with_capacity(count);
    for frame in frames.iter().cycle().take(count) {
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
