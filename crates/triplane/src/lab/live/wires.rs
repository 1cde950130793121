//! The links of a network, as veth pairs.

use std::collections::BTreeMap;
use std::time::Duration;

use lab::{End, Node, Topology};
use ports::namespace::{Namespace, NamespaceError, veth};

use super::hosts::{INTERFACE, Standing};

/// The longest wait for a link.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interface names may be this long (IFNAMSIZ, without the zero).
const LONGEST: usize = 15;

/// What a switch's port is called in the holder's namespace: `s1-eth2`, or something short where that is too long.
fn interface(topology: &Topology, switch: usize, port: u32) -> String {
    let name = format!("{}-eth{port}", topology.switches[switch].name);
    if name.len() <= LONGEST { name } else { format!("s{}-eth{port}", switch + 1) }
}

/// Makes every link. Returns the interfaces of the switches' ports, by switch and port.
pub fn make(
    topology: &Topology,
    own: &Namespace,
    hosts: &[Standing],
) -> Result<BTreeMap<(usize, u32), String>, NamespaceError> {
    let mut interfaces = BTreeMap::new();
    let place = |end: End| match end.node {
        Node::Host(host) => (&hosts[host].namespace, INTERFACE.to_owned()),
        Node::Switch(switch) => (own, interface(topology, switch, end.port)),
    };
    for link in &topology.links {
        let [(one, one_name), (other, other_name)] = link.ends.map(place);
        veth(one, &one_name, other, &other_name)?;
        for (end, (namespace, name)) in link.ends.into_iter().zip([(one, &one_name), (other, &other_name)]) {
            namespace.set_mtu(name, link.shape.mtu)?;
            match end.node {
                Node::Host(host) => namespace.set_mac(name, topology.hosts[host].mac.0)?,
                Node::Switch(switch) => {
                    interfaces.insert((switch, end.port), name.clone());
                }
            }
        }
        one.set_up(&one_name)?;
        other.set_up(&other_name)?;
    }
    for link in &topology.links {
        for (namespace, name) in link.ends.map(place) {
            namespace.wait_for_link(&name, PATIENCE)?;
        }
    }
    Ok(interfaces)
}
