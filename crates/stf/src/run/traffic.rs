//! Applies the commands for the traffic manager: mirror sessions, multicast, queues, port states.

use std::collections::BTreeSet;

use switch::{MirrorSession, MulticastGroup, PortId, Replica};

use super::{CommandRefusal, OpResult, TestRun};
use crate::plan::Op;
use crate::script::{NodeReplica, NodeTargets};

/// BMv2 picks the LAG member with this constant instead of a hash.
const LAG_HASH: usize = 0xff;

/// A multicast node: a replication id and its replicas.
pub(super) struct MulticastNode {
    rid: u16,
    targets: NodeTargets,
}

impl TestRun<'_> {
    /// Applies a traffic-manager command.
    pub(super) fn traffic_manager(&mut self, op: &Op) -> OpResult {
        match op {
            Op::MirrorAdd { session, port } => {
                self.switch.set_mirror_session(*session, Some(MirrorSession::to_port(*port)));
            }
            Op::MirrorAddGroup { session, group } => {
                self.switch.set_mirror_session(*session, Some(MirrorSession::to_group(*group)));
            }
            Op::MirrorDelete(session) => {
                self.switch.set_mirror_session(*session, None);
            }
            Op::GroupCreate(group) => {
                if self.groups.iter().any(|(id, _)| id == group) {
                    return Err(CommandRefusal::MulticastGroupExists(*group));
                }
                self.groups.push((*group, Vec::new()));
                return self.set_group(*group);
            }
            Op::NodeCreate { rid, targets } => self.nodes.push(MulticastNode { rid: *rid, targets: targets.clone() }),
            Op::NodeUpdate { node, targets } => {
                self.node(*node)?.targets = targets.clone();
                for (group, nodes) in self.groups.clone() {
                    if nodes.contains(node) {
                        self.set_group(group)?;
                    }
                }
            }
            Op::LagMembers { lag, ports } => {
                self.lags.insert(*lag, ports.iter().copied().collect::<BTreeSet<_>>().into_iter().collect());
                for (group, _) in self.groups.clone() {
                    self.set_group(group)?;
                }
            }
            Op::NodeAssociate { group, node } => {
                self.node(*node)?;
                let found = self.groups.iter_mut().find(|(id, _)| id == group);
                let (_, nodes) = found.ok_or(CommandRefusal::NoMulticastGroup(*group))?;
                nodes.push(*node);
                return self.set_group(*group);
            }
            Op::QueueRate { pps, port, queue } => {
                let rate = (*pps > 0).then_some(*pps);
                let ports: Vec<PortId> = match port {
                    Some(port) => vec![PortId(*port)],
                    None => self.switch.ports().ids().collect(),
                };
                ports.into_iter().for_each(|port| self.switch.set_queue_rate(port, *queue, rate));
            }
            Op::QueueDepth { packets, port, queue } => match port {
                Some(port) => self.switch.set_queue_depth(PortId(*port), *queue, *packets),
                None => self.switch.set_all_queue_depths(*packets),
            },
            Op::PortUp { port, up } => {
                self.switch.set_port_up(PortId(*port), *up);
            }
            other => unreachable!("{other:?} is not a traffic-manager command"),
        }
        Ok(())
    }

    fn node(&mut self, node: u32) -> Result<&mut MulticastNode, CommandRefusal> {
        self.nodes.get_mut(node as usize).ok_or(CommandRefusal::NoMulticastNode(node))
    }

    /// Writes a group to the switch.
    fn set_group(&mut self, group: u32) -> OpResult {
        let nodes = self.groups.iter().find(|(id, _)| *id == group).map(|(_, nodes)| nodes.as_slice());
        let mut replicas = Vec::new();
        for node in nodes.unwrap_or_default() {
            let MulticastNode { rid, targets: NodeTargets { replicas: ports, lags } } = &self.nodes[*node as usize];
            // A node has a set of ports, and BMv2 iterates over it in order.
            for NodeReplica { port, backups } in ports.iter().collect::<BTreeSet<_>>() {
                replicas.push(Replica::new(*port, *rid).with_backups(backups.iter().copied()));
            }
            // One member of a LAG gets the replica, the same for all packets as in BMv2; the others are its backups.
            for lag in lags.iter().collect::<BTreeSet<_>>() {
                let mut members = self.lags.get(lag).cloned().unwrap_or_default();
                if !members.is_empty() {
                    let chosen = LAG_HASH % members.len();
                    members.rotate_left(chosen);
                    replicas.push(Replica::new(members[0], *rid).with_backups(members[1..].iter().copied()));
                }
            }
        }
        let accepted = self.switch.set_multicast_group(group, Some(MulticastGroup { replicas }));
        if accepted { Ok(()) } else { Err(CommandRefusal::MulticastGroup(group)) }
    }
}
