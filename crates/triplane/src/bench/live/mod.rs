//! Defines the results of measuring a forwarder between two interfaces from outside. The measurement itself is the
//! library's (`ports::load`).

pub mod report;

use std::time::Duration;

use ::traffic_gen::{Generator, tag_of};
use ports::load::{LoadError, LoadPath, measure_latency};

use v1model_runtime::bench::histogram::Histogram;

/// Number of different frames that are generated beforehand and sent in turn.
const FRAMES: usize = 16_384;
/// Time to wait for the last frames.
const DRAIN_TIME: Duration = Duration::from_millis(200);

/// The measured latencies.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Frames that were sent.
    pub sent: u64,
    /// Latencies of the frames that arrived, in nanoseconds.
    pub took: Histogram,
}

impl Latency {
    /// Measures the latency of single frames for a time. Frames without room for a number cannot be distinguished; then
    /// none is counted.
    ///
    /// # Errors
    /// If an interface cannot be opened, or can no longer be used.
    pub fn measure(path: &LoadPath, generator: &mut Generator, time: Duration) -> Result<Latency, LoadError> {
        let mut took = Histogram::default();
        let next = |number, frame: &mut Vec<u8>| {
            generator.next_tagged(number, frame);
        };
        let sent = measure_latency(path, time, DRAIN_TIME, next, tag_of, |ns| took.add(ns))?;
        Ok(Latency { sent, took })
    }
}

/// Generates the frames that trials send.
pub fn frames(generator: &mut Generator) -> Vec<Vec<u8>> {
    let mut frame = Vec::new();
    let next = |_| {
        generator.next(&mut frame);
        frame.clone()
    };
    (0..FRAMES).map(next).collect()
}
