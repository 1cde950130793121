//! Measures the latency of single frames at a light load.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{LoadError, LoadPath};
use crate::PortSpec;

/// Rate at which latencies are measured, in frames per second.
pub const LATENCY_RATE_PPS: f64 = 1000.0;

/// Sends frames one by one for a time and measures when each arrives. Waits for the last frames for at most
/// `drain_time`. Returns the number of frames sent.
///
/// `next` writes the frame of a number, `number_of` finds the number in a frame that arrived, and `record` takes each
/// latency in ns. A latency lasts from before the frame is passed to the kernel until the kernel's time stamp on
/// arrival. Frames without a number are not counted.
///
/// # Errors
/// Returns an error if an interface cannot be opened, or can no longer be used.
pub fn measure_latency(
    path: &LoadPath,
    time: Duration,
    drain_time: Duration,
    mut next: impl FnMut(u64, &mut Vec<u8>),
    number_of: impl Fn(&[u8]) -> Option<u64>,
    mut record: impl FnMut(u64),
) -> Result<u64, LoadError> {
    let specs = PortSpec::parse_all(&[format!("1={}", path.from), format!("2={}", path.to)], 2)?;
    let mut opened = PortSpec::open_all(&specs)?.into_iter();
    let (mut sender, mut receiver) = (opened.next().expect("two ports"), opened.next().expect("two ports"));
    let mut sent_at: Vec<u64> = Vec::new();
    let (mut frame, mut arrived) = (Vec::new(), Vec::new());
    let mut recorded = 0;
    let begin = Instant::now();
    while begin.elapsed() < time || (recorded < sent_at.len() && begin.elapsed() < time + drain_time) {
        let due = begin.elapsed().min(time).as_secs_f64() * LATENCY_RATE_PPS;
        if (sent_at.len() as f64) < due {
            next(sent_at.len() as u64, &mut frame);
            sent_at.push(now_ns());
            sender.send(&frame)?;
            sender.flush()?;
        }
        if receiver.receive(&mut arrived, 64)? == 0 {
            std::thread::yield_now();
        }
        for frame in arrived.drain(..) {
            let arrival = frame.time_ns.unwrap_or_else(now_ns);
            let sent = number_of(&frame.data).and_then(|number| sent_at.get(usize::try_from(number).ok()?));
            if let Some(sent) = sent {
                record(arrival.saturating_sub(*sent));
                recorded += 1;
            }
        }
    }
    Ok(sent_at.len() as u64)
}

/// Returns the time of the clock that the kernel's time stamps use, in ns.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
