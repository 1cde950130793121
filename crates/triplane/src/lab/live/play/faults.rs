//! What goes wrong, when it is time.

use lab::scenario::Planned;
use lab::sim::Fault;
use lab::{Node, Topology};

use super::super::asking::ask;
use super::super::protocol::Request;
use super::super::room::Room;
use super::clock::Clock;
use crate::output::Failure;

/// Tells the network of each fault at its time; returns behind the last, or at the end of the scenario.
pub fn play(schedule: &[Planned], topology: &Topology, room: &Room, clock: &Clock) -> Result<(), Failure> {
    for planned in schedule {
        let name = topology.name(planned.node).to_owned();
        let request = match (planned.fault, planned.node) {
            (Fault::Crash, Node::Switch(_)) => Request::Fail { switch: name, failed: true },
            (Fault::Restart, Node::Switch(_)) => Request::Fail { switch: name, failed: false },
            (Fault::LinkDown(port), Node::Switch(_)) => Request::End { switch: name, port, up: false },
            (Fault::LinkUp(port), Node::Switch(_)) => Request::End { switch: name, port, up: true },
            (Fault::Slow(by_ns), Node::Host(_)) => Request::SlowHost { host: name, by_ns },
            // The switch at the other end of a host's link is told, and does what it does to both directions.
            _ => continue,
        };
        if !clock.wait_until(planned.at.as_ns()) {
            break;
        }
        ask(room, &request)?;
    }
    Ok(())
}
