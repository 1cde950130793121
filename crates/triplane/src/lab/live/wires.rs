//! The links of a network, as veth pairs.

use std::time::Duration;

use lab::sim::Cable;
use lab::{End, Node, Topology};
use ports::AfPacketPort;
use ports::namespace::{Namespace, NamespaceError, veth};

use super::hosts::{INTERFACE, Standing};
use super::station::Place;
use crate::output::Failure;

/// The longest wait for a link.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interface names may be this long (IFNAMSIZ, without the zero).
const LONGEST: usize = 15;

/// What a switch's port is called in the holder's namespace: `s1-eth2`, or, where that is too long, something short that
/// is no other switch's.
fn interface(topology: &Topology, switch: usize, port: u32) -> String {
    let name = format!("{}-eth{port}", topology.switches[switch].name);
    if name.len() <= LONGEST { name } else { format!("switch{}.{port}", switch + 1) }
}

/// The ports of a switch, on interfaces of the calling thread's namespace, and their links.
pub fn places(topology: &Topology, switch: usize, seed: u64) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    for (number, link) in topology.links.iter().enumerate() {
        for (way, end) in link.ends.iter().enumerate().filter(|(_, end)| end.node == Node::Switch(switch)) {
            let driver = AfPacketPort::open(&interface(topology, switch, end.port))?;
            let cable = |way: usize| Cable::new(link.shape, seed, (2 * number + way) as u64);
            let back = matches!(link.ends[1 - way].node, Node::Host(_)).then(|| cable(1 - way));
            places.push(Place::new(end.port, Box::new(driver), cable(way), back));
        }
    }
    Ok(places)
}

/// Makes every link, until `ended` says that it is not wanted any more.
pub fn make(
    topology: &Topology,
    own: &Namespace,
    hosts: &[Standing],
    ended: &dyn Fn() -> bool,
) -> Result<(), NamespaceError> {
    let place = |end: End| match end.node {
        Node::Host(host) => (&hosts[host].namespace, INTERFACE.to_owned()),
        Node::Switch(switch) => (own, interface(topology, switch, end.port)),
    };
    for link in topology.links.iter().take_while(|_| !ended()) {
        let [(one, one_name), (other, other_name)] = link.ends.map(place);
        veth(one, &one_name, other, &other_name)?;
        for (end, (namespace, name)) in link.ends.into_iter().zip([(one, &one_name), (other, &other_name)]) {
            namespace.set_mtu(name, link.shape.mtu)?;
            if let Node::Host(host) = end.node {
                namespace.set_mac(name, topology.hosts[host].mac.0)?;
            }
        }
        one.set_up(&one_name)?;
        other.set_up(&other_name)?;
    }
    for link in topology.links.iter().take_while(|_| !ended()) {
        for (namespace, name) in link.ends.map(place) {
            namespace.wait_for_link(&name, PATIENCE)?;
        }
    }
    Ok(())
}
