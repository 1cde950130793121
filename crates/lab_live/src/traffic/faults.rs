//! Sends the faults of a scenario to the daemon when they are due.

use lab::scenario::Planned;
use lab::sim::Fault;
use lab::{Node, Topology};

use super::clock::ScenarioClock;
use crate::LabError;
use crate::client;
use crate::protocol::LabRequest;
use crate::run_directory::RunDirectory;

/// Applies the faults at the beginning of the scenario, before any traffic. Returns the later ones, ordered by time.
pub fn apply_first<'a>(
    schedule: &'a [Planned],
    topology: &Topology,
    lab: &RunDirectory,
) -> Result<&'a [Planned], LabError> {
    let (first, later) = schedule.split_at(schedule.partition_point(|planned| planned.at.as_ns() == 0));
    for request in first.iter().filter_map(|planned| request(planned, topology)) {
        client::request(lab, &request)?;
    }
    Ok(later)
}

/// Applies each fault at its time. Returns after the last one or at the end of the scenario.
pub fn apply(
    schedule: &[Planned],
    topology: &Topology,
    lab: &RunDirectory,
    clock: &ScenarioClock,
) -> Result<(), LabError> {
    for planned in schedule {
        let Some(request) = request(planned, topology) else { continue };
        if !clock.wait_until(planned.at.as_ns()) {
            break;
        }
        client::request(lab, &request)?;
    }
    Ok(())
}

/// Returns the request that applies a fault; `None` if that of the link's other end applies it.
fn request(planned: &Planned, topology: &Topology) -> Option<LabRequest> {
    let name = topology.name(planned.node).to_owned();
    match (planned.fault, planned.node) {
        (Fault::Crash | Fault::Restart, _) => {
            Some(LabRequest::Fail { node: name, failed: planned.fault == Fault::Crash })
        }
        (Fault::Suspend | Fault::Resume, _) => {
            Some(LabRequest::Suspend { node: name, is_suspended: planned.fault == Fault::Suspend })
        }
        (Fault::LinkDown(port), Node::Switch(_)) => Some(LabRequest::End { switch: name, port, up: false }),
        (Fault::LinkUp(port), Node::Switch(_)) => Some(LabRequest::End { switch: name, port, up: true }),
        (Fault::Slow(by_ns), Node::Host(_)) => Some(LabRequest::SlowHost { host: name, by_ns }),
        // The switch at the other end of a host's link applies the fault to both directions.
        _ => None,
    }
}
