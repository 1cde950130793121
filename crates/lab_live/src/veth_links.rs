//! Creates the links of a lab as veth pairs.

use std::time::Duration;

use lab::sim::Cable;
use lab::{End, Node, Topology};
use ports::namespace::{Namespace, NamespaceError, Offload, veth};
use ports::{AfPacketPort, Port, PortError, PortKind, PortSpec, XdpSettings};

use crate::LabError;
use crate::host_namespace::{HostNamespace, INTERFACE};
use crate::kernel_part::{self, KernelPlan};
use crate::switch_port::SwitchPort;

/// Maximum time until a new link is up.
const LINK_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of an interface name (IFNAMSIZ, without the terminating zero).
const MAX_INTERFACE_NAME: usize = 15;

/// Returns the name of a switch port's interface in the daemon's namespace: `s1-eth2`, or `switch3.2` or `s3.2` if that
/// is too long.
fn interface(topology: &Topology, switch: usize, port: u32) -> String {
    let number = switch + 1;
    let names = [format!("{}-eth{port}", topology.switches[switch].name), format!("switch{number}.{port}")];
    let fitting = names.into_iter().find(|name| name.len() <= MAX_INTERFACE_NAME);
    fitting.unwrap_or_else(|| format!("s{number}.{port}"))
}

/// Returns the names of a switch's interfaces that lead to hosts.
pub fn host_interfaces(topology: &Topology, switch: usize) -> Vec<String> {
    let ports = topology.ports(switch).into_iter();
    let to_hosts = ports.filter(|(_, far)| matches!(far.node, Node::Host(_)));
    to_hosts.map(|(port, _)| interface(topology, switch, port)).collect()
}

/// A port of a switch and its driver.
type OpenPort = (SwitchPort, Box<dyn Port>);

/// Opens the ports of a switch, on interfaces of the calling thread's namespace. Those of the plan are kernel ports
/// where the interface permits it.
pub fn switch_ports(
    topology: &Topology,
    switch: usize,
    plan: &KernelPlan,
    seed: u64,
) -> Result<Vec<OpenPort>, LabError> {
    let (mut ports, mut specs) = (Vec::new(), Vec::new());
    for (number, link) in topology.links.iter().enumerate() {
        for (way, end) in link.ends.iter().enumerate().filter(|(_, end)| end.node == Node::Switch(switch)) {
            specs.push(port_spec(end.port, interface(topology, switch, end.port), plan));
            let cable = |way: usize| Cable::new(link.shape, seed, (2 * number + way) as u64);
            let back = matches!(link.ends[1 - way].node, Node::Host(_)).then(|| cable(1 - way));
            ports.push(SwitchPort::new(end.port, cable(way), back));
        }
    }
    Ok(ports.into_iter().zip(PortSpec::open_all(&specs)?).collect())
}

/// Returns the specification of a port.
fn port_spec(port: u32, interface: String, plan: &KernelPlan) -> PortSpec {
    let is_kernel_port = plan.ports.contains(&port) && kernel_part::obstacle().is_none();
    let kind = match is_kernel_port {
        true => PortKind::Xdp { interface, settings: XdpSettings { in_kernel: true, ..XdpSettings::default() } },
        false => PortKind::AfPacket { interface },
    };
    PortSpec { number: u16::try_from(port).expect("ports have at most 16 bits"), kind }
}

/// Opens an ordinary port.
pub fn ordinary_port(interface: &str) -> Result<Box<dyn Port>, PortError> {
    Ok(Box::new(AfPacketPort::open(interface)?))
}

/// Returns the hosts at these ports of a switch, by their indices.
fn hosts_at<'a>(topology: &Topology, switch: usize, ports: &'a [u32]) -> impl Iterator<Item = usize> + use<'a> {
    let ports = topology.ports(switch).into_iter().filter(|(port, _)| ports.contains(port));
    ports.filter_map(|(_, far)| match far.node {
        Node::Host(host) => Some(host),
        Node::Switch(_) => None,
    })
}

/// Prepares the hosts at kernel ports of a switch: they receive frames from the kernel, and finish the frames that they
/// send, so that these can be forwarded there.
pub fn prepare_hosts(
    topology: &Topology,
    switch: usize,
    ports: &[u32],
    hosts: &[HostNamespace],
) -> Result<(), NamespaceError> {
    hosts_at(topology, switch, ports).try_for_each(|host| {
        let namespace = &hosts[host].namespace;
        namespace.turn_on(INTERFACE, Offload::Receive)?;
        namespace.finish_sent_frames(INTERFACE, true)
    })
}

/// Lets the hosts at ports that became ordinary ports leave their frames to the driver again, which is faster there.
pub fn release_hosts(
    topology: &Topology,
    switch: usize,
    ports: &[u32],
    hosts: &[HostNamespace],
) -> Result<(), NamespaceError> {
    hosts_at(topology, switch, ports).try_for_each(|host| hosts[host].namespace.finish_sent_frames(INTERFACE, false))
}

/// Creates every link, or stops early once `ended` returns true.
pub fn create(
    topology: &Topology,
    own: &Namespace,
    hosts: &[HostNamespace],
    ended: &dyn Fn() -> bool,
) -> Result<(), NamespaceError> {
    let location = |end: End| match end.node {
        Node::Host(host) => (&*hosts[host].namespace, INTERFACE.to_owned()),
        Node::Switch(switch) => (own, interface(topology, switch, end.port)),
    };
    for link in topology.links.iter().take_while(|_| !ended()) {
        let [(one, one_name), (other, other_name)] = link.ends.map(location);
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
        for (namespace, name) in link.ends.map(location) {
            namespace.wait_for_link(&name, LINK_UP_TIMEOUT)?;
        }
    }
    Ok(())
}
