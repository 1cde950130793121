//! Sends frames that need no change: probes, and the frames of a capture.

use std::time::Duration;

use lab::sim::traffic::Reading;
use ports::{AfPacketPort, Port, PortError};
use switch::Time;

use super::clock::ScenarioClock;
use super::measurements::TrafficMeasurements;

/// Maximum number of frames that are received at a time.
const BATCH: usize = 64;

/// Interval at which a receiver checks whether the scenario is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

fn failed(error: PortError) -> std::io::Error {
    std::io::Error::other(error)
}

/// Sends frames, each at its time, until `stop`.
pub fn send<'a>(
    mut port: AfPacketPort,
    flow: u32,
    frames: impl Iterator<Item = (Time, &'a [u8])>,
    stop: Time,
    clock: &ScenarioClock,
) -> std::io::Result<TrafficMeasurements> {
    let mut measurements = TrafficMeasurements::default();
    let measured = measurements.flow(flow);
    for (at, frame) in frames {
        if at >= stop || !clock.wait_until(at.as_ns()) {
            break;
        }
        port.send(frame).map_err(failed)?;
        port.flush().map_err(failed)?;
        measured.sent += 1;
    }
    Ok(measurements)
}

/// Receives probes with an EtherType and reads their values until the scenario is over. They count for a flow.
pub fn receive(
    mut port: AfPacketPort,
    (traffic, flow): (usize, u32),
    ethertype: [u8; 2],
    readings: &[Reading],
    clock: &ScenarioClock,
) -> std::io::Result<TrafficMeasurements> {
    let mut measurements = TrafficMeasurements::default();
    let mut batch = Vec::new();
    while !clock.is_over() {
        let descriptors: Vec<_> = port.poll_fd().into_iter().collect();
        ports::wait(&descriptors, CHECK_INTERVAL)?;
        port.receive(&mut batch, BATCH).map_err(failed)?;
        let now = clock.now();
        for frame in batch.drain(..).filter(|frame| frame.data.get(12..14) == Some(&ethertype)) {
            if clock.is_over() {
                break;
            }
            let measured = measurements.flow(flow);
            measured.received += 1;
            measured.arrived(now, frame.data.len() as u64);
            measurements.read(traffic, readings, now, &frame.data);
        }
    }
    Ok(measurements)
}
