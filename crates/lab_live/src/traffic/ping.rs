//! Sends echo requests from one host to others, and their replies.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ports::namespace::Echoes;
use switch::Time;

use super::clock::ScenarioClock;
use super::measurements::TrafficMeasurements;

/// Interval at which a receiver checks whether the scenario is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A pinged host.
#[derive(Clone, Copy)]
pub struct PingTarget {
    /// Number of its flow.
    pub flow: u32,
    /// Its address.
    pub address: Ipv4Addr,
}

/// The number of requests and their times.
#[derive(Clone, Copy)]
pub struct PingSchedule {
    /// Number of requests to each target.
    pub count: u32,
    /// Time of the first request, in nanoseconds.
    pub start: u64,
    /// Time between two requests, in nanoseconds.
    pub interval: u64,
}

/// Returns the identifier of the echo requests of a flow. Flows may share one.
fn identifier(flow: u32) -> u16 {
    flow as u16
}

/// Returns the data of an echo request: when it was sent, and its flow.
fn data(sent: Time, flow: u32) -> Vec<u8> {
    [&sent.as_ns().to_be_bytes()[..], &flow.to_be_bytes()].concat()
}

/// Parses the data of an echo reply.
fn parse(data: &[u8]) -> Option<(Time, u32)> {
    let (sent, flow) = data.split_first_chunk()?;
    Some((Time::from_ns(u64::from_be_bytes(*sent)), u32::from_be_bytes(flow.try_into().ok()?)))
}

/// Sends requests at their times, regardless of replies.
pub fn send(
    socket: &Echoes,
    targets: &[PingTarget],
    times: PingSchedule,
    clock: &ScenarioClock,
) -> TrafficMeasurements {
    let mut measurements = TrafficMeasurements::default();
    for number in 0..times.count {
        if !clock.wait_until(times.start + u64::from(number) * times.interval) {
            break;
        }
        for target in targets {
            let data = data(clock.now(), target.flow);
            // A request without a route counts as lost.
            let _ = socket.request(target.address, identifier(target.flow), number as u16, &data);
            measurements.flow(target.flow).sent += 1;
        }
    }
    measurements
}

/// Receives replies until the scenario is over.
pub fn receive(
    socket: &Arc<Echoes>,
    targets: &[PingTarget],
    clock: &ScenarioClock,
) -> std::io::Result<TrafficMeasurements> {
    let mut measurements = TrafficMeasurements::default();
    while !clock.is_over() {
        let Some(echo) = socket.answer(CHECK_INTERVAL)? else { continue };
        let now = clock.now();
        let Some((sent, flow)) = parse(&echo.data).filter(|(_, flow)| identifier(*flow) == echo.identifier) else {
            continue;
        };
        let target = targets.iter().find(|target| (target.flow, target.address) == (flow, echo.from));
        let Some(target) = target else { continue };
        if clock.is_over() {
            break;
        }
        let measured = measurements.flow(target.flow);
        measured.received += 1;
        // In a simulation the data is the time only.
        measured.arrived(now, size_of::<u64>() as u64);
        measured.took(now.since_ns(sent));
    }
    Ok(measurements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_all_flows_differ() {
        for flow in [0, 1, 1_024, 65_536, 65_537, u32::MAX] {
            assert_eq!(parse(&data(Time::from_ns(5), flow)), Some((Time::from_ns(5), flow)));
        }
        assert_eq!(parse(&[0; 8]), None);
        assert_eq!(parse(&[0; 56]), None, "of a ping command");
    }
}
