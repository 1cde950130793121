//! The settings of tiny packet programs and INT in the switches of a network.

use std::collections::BTreeSet;

use lab::{IntRole, Node, TinyAccess, Topology};
use switch::PortId;
use tpp::AccessRights;
use v1model::{EXECUTIONS_PER_SECOND, IntSettings, TinySettings};
use wire::int::Marker;

/// Returns the settings of the switch at this index; `None` if it does not execute programs.
pub fn settings(topology: &Topology, at: usize, number: u32) -> Option<TinySettings> {
    let rights = match topology.tpp {
        TinyAccess::Off => return None,
        TinyAccess::Read => AccessRights::read_only(),
        TinyAccess::Write => AccessRights::words(),
        TinyAccess::WriteRegisters => AccessRights::all(),
    };
    let executions_per_second = topology.tpp_limit.unwrap_or(EXECUTIONS_PER_SECOND);
    let ports = |ports: &BTreeSet<u32>| ports.iter().copied().map(PortId).collect();
    let edge = topology.switches.get(at).map(|switch| &switch.edge);
    let (stripping, refusing) = edge.map(|edge| (ports(&edge.strip), ports(&edge.refuse))).unwrap_or_default();
    Some(TinySettings { switch_id: number, rights, executions_per_second, stripping, refusing })
}

/// Returns the settings of the switch at this index; `None` if the topology has no INT. Ports to hosts are the edge.
pub fn int_settings(topology: &Topology, at: usize, number: u32) -> Option<IntSettings> {
    if topology.int == IntRole::Off {
        return None;
    }
    let mut settings = IntSettings::new(number, Marker::default());
    for link in &topology.links {
        for (own, other) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
            if own.node != Node::Switch(at) {
                continue;
            }
            let mtu = u16::try_from(link.shape.mtu).unwrap_or(u16::MAX);
            settings.port_mtus.insert(PortId(own.port), mtu);
            if topology.int == IntRole::Sink && matches!(other.node, Node::Host(_)) {
                settings.sinks.insert(PortId(own.port));
            }
        }
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_to_hosts_are_the_edge_of_an_int_domain() {
        let end = |node, port| lab::End { node, port };
        let link = |ends, mtu| lab::Link {
            ends,
            shape: lab::Shape { mtu, ..lab::Shape::default() },
            span: diagnostics::Span::default(),
        };
        let links = vec![
            link([end(Node::Host(0), 0), end(Node::Switch(1), 4)], 1_400),
            link([end(Node::Switch(1), 5), end(Node::Switch(0), 4)], 9_000),
            link([end(Node::Switch(0), 7), end(Node::Host(1), 0)], 1_500),
        ];
        let of = |int| int_settings(&Topology { int, links: links.clone(), ..Topology::default() }, 1, 2);
        let sink = of(IntRole::Sink).expect("it is a node");
        assert_eq!((sink.node_id, &sink.sinks), (2, &[PortId(4)].into()));
        assert_eq!(sink.port_mtus, [(PortId(4), 1_400), (PortId(5), 9_000)].into());
        assert_eq!(of(IntRole::Transit), Some(IntSettings { sinks: Default::default(), ..sink }));
        assert_eq!(of(IntRole::Off), None);
    }

    #[test]
    fn switches_have_the_rights_and_the_limit_of_the_topology() {
        let of = |tpp, tpp_limit| settings(&Topology { tpp, tpp_limit, ..Topology::default() }, 2, 3);
        assert_eq!(of(TinyAccess::Off, Some(9)), None);
        assert_eq!(of(TinyAccess::Read, None), Some(TinySettings::new(3, false)));
        let limited = TinySettings { executions_per_second: 9, ..TinySettings::new(3, true) };
        assert_eq!(of(TinyAccess::Write, Some(9)), Some(limited));
        let all = TinySettings { rights: AccessRights::all(), ..TinySettings::new(3, false) };
        assert_eq!(of(TinyAccess::WriteRegisters, None), Some(all));
    }
}
