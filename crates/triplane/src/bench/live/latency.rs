//! Measures the latency of single frames at a light load.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::traffic_gen::{Generator, tag_of};
use ports::PortSpec;

use super::{Ends, LiveError};
use crate::bench::histogram::Histogram;

/// Frames a second.
pub const RATE_PPS: f64 = 1000.0;

/// The measured latencies.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Frames that were sent.
    pub sent: u64,
    /// Latencies of the frames that arrived, in nanoseconds.
    pub took: Histogram,
}

/// Sends frames one by one for a time and measures when each arrives. A latency lasts from before the frame is passed
/// to the kernel until the kernel's time stamp on arrival. Frames without room for a number cannot be distinguished;
/// then none is counted.
///
/// # Errors
/// If an interface cannot be had, or can be used no longer.
pub fn measure(ends: &Ends, generator: &mut Generator, time: Duration) -> Result<Latency, LiveError> {
    let specs = PortSpec::parse_all(&[format!("1={}", ends.from), format!("2={}", ends.to)], 2)?;
    let mut opened = PortSpec::open_all(&specs)?.into_iter();
    let (mut sender, mut receiver) = (opened.next().expect("two ports"), opened.next().expect("two ports"));
    let mut latency = Latency { sent: 0, took: Histogram::default() };
    let mut sent_at: Vec<u64> = Vec::new();
    let (mut frame, mut arrived) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    // The last frames need time to arrive.
    while begin.elapsed() < time + Duration::from_millis(200) {
        let due = begin.elapsed().min(time).as_secs_f64() * RATE_PPS;
        if (latency.sent as f64) < due {
            generator.next_tagged(latency.sent, &mut frame);
            sent_at.push(now_ns());
            sender.send(&frame)?;
            sender.flush()?;
            latency.sent += 1;
        }
        if receiver.receive(&mut arrived, 64)? == 0 {
            std::thread::yield_now();
        }
        for frame in arrived.drain(..) {
            let arrival = frame.time_ns.unwrap_or_else(now_ns);
            let sent = tag_of(&frame.data).and_then(|number| sent_at.get(usize::try_from(number).ok()?));
            if let Some(sent) = sent {
                latency.took.add(arrival.saturating_sub(*sent));
            }
        }
    }
    Ok(latency)
}

/// The clock of the kernel's time stamps.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
