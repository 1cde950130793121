//! Checks of a topology as a whole.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use diagnostics::{Diagnostic, Diagnostics};

use crate::topology::{End, Entries, MAX_BYTES_ON_LINK, MAX_NODES, Node, Rate, SwitchProgram, Topology};

/// Reports names, ports and addresses that are used twice, hosts without a link, links from a node to itself,
/// unreachable gateways, and entries that cannot be computed.
pub fn check(topology: &Topology, diagnostics: &mut Diagnostics) {
    sizes(topology, diagnostics);
    names(topology, diagnostics);
    ends(topology, diagnostics);
    addresses(topology, diagnostics);
    gateways(topology, diagnostics);
    networks(topology, diagnostics);
    programs(topology, diagnostics);
}

/// Maximum number of routes that are computed: hosts times switches.
const MAX_ROUTES: usize = 1_000_000;

/// Reports sizes that would take an unreasonable amount of memory.
fn sizes(topology: &Topology, diagnostics: &mut Diagnostics) {
    let (hosts, switches) = (topology.hosts.len(), topology.switches.len());
    let last = topology.hosts.last().map(|host| host.span).or(topology.switches.last().map(|switch| switch.span));
    let Some(last) = last else { return };
    if hosts + switches > MAX_NODES {
        let message = format!("there are {hosts} hosts and {switches} switches; the maximum is {MAX_NODES} in total");
        diagnostics.push(Diagnostic::error("topology", last, message));
    }
    let mut computed = topology.switches.iter().filter(|switch| switch.entries == Entries::ShortestPaths);
    let routes = computed.clone().count() * hosts;
    if let Some(switch) = computed.next_back()
        && routes > MAX_ROUTES
    {
        let message = format!("shortest paths would need {routes} routes to hosts; the maximum is {MAX_ROUTES}");
        let finding = Diagnostic::error("topology", switch.span, message);
        diagnostics.push(finding.help("use entries files with routes to networks, or a smaller network"));
    }
    for link in &topology.links {
        let rate = link.shape.rate.map_or(0, Rate::bps);
        let bytes = u128::from(rate) * u128::from(link.shape.delay.as_ns()) / 8_000_000_000;
        if bytes > u128::from(MAX_BYTES_ON_LINK) {
            let message = format!("{bytes} bytes would be in flight on this link; the maximum is {MAX_BYTES_ON_LINK}");
            diagnostics.push(Diagnostic::error("topology", link.span, message).help("reduce its rate or delay"));
        }
    }
}

fn names(topology: &Topology, diagnostics: &mut Diagnostics) {
    let hosts = topology.hosts.iter().map(|host| (&host.name, host.span));
    let mut seen = BTreeMap::new();
    for (name, span) in hosts.chain(topology.switches.iter().map(|switch| (&switch.name, switch.span))) {
        if let Some(first) = seen.insert(name, span) {
            let finding = Diagnostic::error("topology", span, format!("the name `{name}` is used twice"));
            diagnostics.push(finding.also(first, "first used here"));
        }
    }
}

fn ends(topology: &Topology, diagnostics: &mut Diagnostics) {
    let mut used: BTreeMap<End, diagnostics::Span> = BTreeMap::new();
    for link in &topology.links {
        if link.ends[0].node == link.ends[1].node {
            let name = topology.name(link.ends[0].node);
            diagnostics.push(Diagnostic::error(
                "topology",
                link.span,
                format!("this link connects `{name}` to itself"),
            ));
        }
        for end in link.ends {
            if let Some(first) = used.insert(end, link.span) {
                let message = match end.node {
                    Node::Host(_) => {
                        format!("`{}` has two links, but a host has only one interface", topology.name(end.node))
                    }
                    Node::Switch(_) => format!("port {} of `{}` has two links", end.port, topology.name(end.node)),
                };
                diagnostics.push(Diagnostic::error("topology", link.span, message).also(first, "the other link"));
            }
        }
    }
    // A link with a mistake is not in the topology, and may be the one of this host.
    let all_links = !diagnostics.has_errors();
    for (at, host) in topology.hosts.iter().enumerate().filter(|_| all_links) {
        if !used.contains_key(&End { node: Node::Host(at), port: 0 }) {
            let message = format!("the host `{}` has no link", host.name);
            diagnostics.push(Diagnostic::warning("unlinked-host", host.span, message));
        }
    }
    for (at, switch) in topology.switches.iter().enumerate() {
        if let Some(cpu) = switch.cpu_port
            && let Some(link) = used.get(&End { node: Node::Switch(at), port: cpu })
        {
            let message = format!("port {cpu} of `{}` is its CPU port and cannot have a link", switch.name);
            diagnostics.push(Diagnostic::error("topology", switch.span, message).also(*link, "this link"));
        }
        let is_unlinked = |port: &&u32| !used.contains_key(&End { node: Node::Switch(at), port: **port });
        let edge = switch.edge.strip.union(&switch.edge.refuse).find(is_unlinked);
        if let Some(port) = edge.filter(|_| all_links) {
            let message = format!("port {port} of `{}` has no link, so it is no edge of the network", switch.name);
            let finding = Diagnostic::error("topology", switch.span, message);
            diagnostics.push(finding.help("`tpp_strip` and `tpp_refuse` list the ports to hosts"));
        }
    }
}

fn addresses(topology: &Topology, diagnostics: &mut Diagnostics) {
    let mut addresses = BTreeMap::new();
    let mut macs = BTreeMap::new();
    for host in &topology.hosts {
        let earlier = host.address.and_then(|(address, _)| addresses.insert(address, host));
        if let (Some(earlier), Some((address, _))) = (earlier, host.address) {
            let message = format!("`{}` and `{}` both have the address {address}", earlier.name, host.name);
            diagnostics.push(Diagnostic::error("topology", host.span, message).also(earlier.span, "first used here"));
        }
        if let Some(earlier) = macs.insert(host.mac, host) {
            let message = format!("`{}` and `{}` both have the Ethernet address {}", earlier.name, host.name, host.mac);
            diagnostics.push(Diagnostic::error("topology", host.span, message).also(earlier.span, "first used here"));
        }
        if let Some((address, bits)) = host.address
            && let Some(what) = unusable(address, bits)
        {
            let message = format!("`{}` cannot have the address {address}, which is {what}", host.name);
            diagnostics.push(Diagnostic::error("topology", host.span, message));
        }
        if host.mac.is_multicast() {
            let message = format!("`{}` has a multicast Ethernet address, {}", host.name, host.mac);
            diagnostics.push(Diagnostic::error("topology", host.span, message));
        }
        if host.address.is_none() && (host.gateway.is_some() || !host.neighbours.is_empty()) {
            let message = format!("`{}` has a gateway or neighbours, but no address", host.name);
            diagnostics.push(Diagnostic::error("topology", host.span, message).help("add one: ip = \"10.0.1.1/24\""));
        }
    }
}

/// Describes an address that no host can have: special-purpose addresses (RFC 6890), and the network and broadcast
/// addresses of a network with more than two addresses. `None` for all others.
fn unusable(address: Ipv4Addr, bits: u8) -> Option<&'static str> {
    let of_host = !mask(bits);
    let own = u32::from(address) & of_host;
    match address {
        _ if address.octets()[0] == 0 => Some("in \"this network\" (0.0.0.0/8)"),
        _ if address.is_loopback() => Some("a loopback address"),
        _ if address.is_multicast() => Some("a multicast address"),
        _ if address.octets()[0] >= 240 => Some("reserved"),
        _ if bits < 31 && own == 0 => Some("its network address"),
        _ if bits < 31 && own == of_host => Some("its broadcast address"),
        _ => None,
    }
}

/// The netmask of a prefix of `bits` bits.
fn mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

/// The network part of an address.
fn network(address: Ipv4Addr, bits: u8) -> u32 {
    u32::from(address) & mask(bits)
}

/// Reports gateways outside their host's network.
fn gateways(topology: &Topology, diagnostics: &mut Diagnostics) {
    for host in &topology.hosts {
        let (Some((address, bits)), Some(gateway)) = (host.address, host.gateway) else { continue };
        if network(address, bits) != network(gateway, bits) {
            let own = Ipv4Addr::from(network(address, bits));
            let message = format!("`{}` cannot reach its gateway {gateway}: it is not in {own}/{bits}", host.name);
            diagnostics.push(Diagnostic::error("topology", host.span, message));
        }
    }
}

/// Warns of hosts that reach only their own network while other networks exist.
fn networks(topology: &Topology, diagnostics: &mut Diagnostics) {
    // The lowest and the highest address show whether any host is in another network.
    // Memory servers speak to the switch at their link only.
    let hosts = || topology.hosts.iter().filter(|host| host.memory.is_none());
    let addresses = || hosts().filter_map(|host| host.address.map(|(address, _)| address));
    let (Some(least), Some(most)) = (addresses().min(), addresses().max()) else { return };
    for host in hosts().filter(|host| host.gateway.is_none() && host.neighbours.is_empty()) {
        let Some((address, bits)) = host.address else { continue };
        let own = network(address, bits);
        if let Some(other) = [least, most].into_iter().find(|other| network(*other, bits) != own) {
            let message =
                format!("`{}` has no gateway, so it cannot reach {other} and hosts in other networks", host.name);
            let finding = Diagnostic::warning("no-gateway", host.span, message);
            let own = Ipv4Addr::from(own);
            diagnostics.push(finding.help(format!(
                "add one (gateway = \"{}\"), or use a network larger than {own}/{bits}",
                last(own, bits)
            )));
        }
    }
}

/// The address in a network that its router usually has: the last one before the broadcast address.
fn last(network: Ipv4Addr, bits: u8) -> Ipv4Addr {
    let hosts = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
    Ipv4Addr::from(u32::from(network) | hosts.saturating_sub(1))
}

fn programs(topology: &Topology, diagnostics: &mut Diagnostics) {
    for switch in &topology.switches {
        if switch.entries == Entries::ShortestPaths && switch.program != SwitchProgram::Router {
            let message =
                format!("shortest paths require the built-in router, but `{}` runs another program", switch.name);
            let finding = Diagnostic::error("topology", switch.span, message);
            diagnostics.push(finding.help("write program = \"builtin:router\", or use an entries file"));
        }
    }
}
