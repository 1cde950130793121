//! Compares one worker with two, on links with two queues.
//!
//! A veth selects the receive queue by the processor that sends, so each of the first two processors runs a flood, in
//! its own process. Floods and workers share the machine: with two processors, the workers get the time that the floods
//! leave.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Settings;
use crate::figures::median;
use crate::forwarder;
use crate::network::Network;
use crate::process::can_pin;

/// Number of frames that leave of each 64 that the kernel could send: more than the workers can carry, and few enough
/// that the floods leave them processor time.
const SHARE: u32 = 8;

/// Time for which the load runs before counting begins.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures both numbers of workers and prints the results.
pub fn compare(settings: &Settings, directory: &Path) -> Result<(), Box<dyn Error>> {
    if !can_pin() {
        println!("\nworkers: left out, there is one processor");
        return Ok(());
    }
    const WORKERS: [u32; 2] = [1, 2];
    let network = Network::new(2)?;
    // For each number of workers: the rate that arrived, in Mpps, and the processor time for a frame, in nanoseconds.
    let mut rounds: Vec<[(f64, f64); 2]> = Vec::new();
    for _ in 0..settings.rounds {
        let mut round = [(0.0, 0.0); 2];
        for (workers, result) in WORKERS.into_iter().zip(&mut round) {
            let sink = network.sink()?;
            let running = forwarder::with_workers(workers, &network, directory)?;
            let load = |processor| network.load(settings.len, SHARE, Some(processor));
            let floods = [load("0")?, load("1")?];
            std::thread::sleep(SETTLE);
            let (started, before, cpu_before) = (Instant::now(), sink.arrived()?, running.cpu());
            std::thread::sleep(Duration::from_secs_f64(settings.seconds));
            let (after, elapsed, cpu_after) = (sink.arrived()?, started.elapsed(), running.cpu());
            drop(floods);
            running.stop()?;
            let frames = (after.frames - before.frames) as f64;
            let cpu = cpu_after.unwrap_or_default().saturating_sub(cpu_before.unwrap_or_default());
            *result = (frames / elapsed.as_secs_f64() / 1e6, cpu.as_nanos() as f64 / frames.max(1.0));
        }
        rounds.push(round);
    }
    println!("\nworkers of `triplane run`, AF_XDP, two queues, a flood on each of two processors (medians)");
    for (at, workers) in WORKERS.into_iter().enumerate() {
        let rate = median(rounds.iter().map(|round| round[at].0));
        let cpu = median(rounds.iter().map(|round| round[at].1));
        let ratio = median(rounds.iter().map(|round| round[at].0 / round[0].0));
        println!("  {workers} workers  forwarded {rate:6.3} Mpps, {ratio:.2}x  {cpu:5.0} ns of processor time a frame");
    }
    Ok(())
}
