//! What goes wrong, when it is time.

use lab::scenario::Planned;
use lab::sim::Fault;
use lab::{Node, Topology};

use super::super::asking::ask;
use super::super::protocol::Request;
use super::super::room::Room;
use super::clock::Clock;
use crate::output::Failure;

/// Tells the network of what is wrong from the beginning, before anybody sends; and what is left of the schedule, which is
/// in the order of time.
pub fn begin<'a>(schedule: &'a [Planned], topology: &Topology, room: &Room) -> Result<&'a [Planned], Failure> {
    let (first, later) = schedule.split_at(schedule.partition_point(|planned| planned.at.as_ns() == 0));
    for request in first.iter().filter_map(|planned| request(planned, topology)) {
        ask(room, &request)?;
    }
    Ok(later)
}

/// Tells the network of each fault at its time; returns behind the last, or at the end of the scenario.
pub fn play(schedule: &[Planned], topology: &Topology, room: &Room, clock: &Clock) -> Result<(), Failure> {
    for planned in schedule {
        let Some(request) = request(planned, topology) else { continue };
        if !clock.wait_until(planned.at.as_ns()) {
            break;
        }
        ask(room, &request)?;
    }
    Ok(())
}

/// What the network is told; nothing of what the other end of a link is told too.
fn request(planned: &Planned, topology: &Topology) -> Option<Request> {
    let name = topology.name(planned.node).to_owned();
    match (planned.fault, planned.node) {
        (Fault::Crash, Node::Switch(_)) => Some(Request::Fail { switch: name, failed: true }),
        (Fault::Restart, Node::Switch(_)) => Some(Request::Fail { switch: name, failed: false }),
        (Fault::LinkDown(port), Node::Switch(_)) => Some(Request::End { switch: name, port, up: false }),
        (Fault::LinkUp(port), Node::Switch(_)) => Some(Request::End { switch: name, port, up: true }),
        (Fault::Slow(by_ns), Node::Host(_)) => Some(Request::SlowHost { host: name, by_ns }),
        // The switch at the other end of a host's link is told, and does what it does to both directions.
        _ => None,
    }
}
