//! Processes INT-MD beside the P4 program: a transit adds the metadata of this switch to packets that leave, and a sink
//! removes INT at edge ports.
//!
//! Unlike a program, INT stays in the packet while the P4 program runs: it is behind UDP or TCP, where the program sees
//! it as payload. The switch finds it again when the packet leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use switch::{Notification, PortId, Registry, Stat};
use tpp::int::{IntNode, IntVerdict};
use wire::int::{Marker, NextProtocol, find};
use wire::{ipv4, ipv6, tpp as wire_format};

use super::limit::ExecutionRate;
use super::{EXECUTIONS_PER_SECOND, Switch, TinyPacket};
use crate::switch::packet::Leaving;

/// Default MTU of ports: the maximum length of an IP packet with INT, in bytes.
pub const INT_MTU: u16 = 1500;

/// The settings of a node of an INT domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntSettings {
    /// The node ID. If tiny packet programs are executed, their `Switch:ID` applies.
    pub node_id: u32,
    /// The marker of the domain's packets.
    pub marker: Marker,
    /// Maximum length of an IP packet after the switch has added its metadata, in bytes.
    pub mtu: u16,
    /// The same for ports where it differs.
    pub port_mtus: BTreeMap<PortId, u16>,
    /// The edge ports: packets leave them without INT.
    pub sinks: BTreeSet<PortId>,
    /// Maximum number of packets a second for packets with INT that arrived on the same port, over all workers. 0
    /// counts as 1. A burst is at most those of 100 ms. Packets beyond the limit get no metadata, and sinks restore
    /// them without a report.
    pub packets_per_second: u32,
}

impl IntSettings {
    /// Returns the settings of a transit.
    pub fn new(node_id: u32, marker: Marker) -> IntSettings {
        IntSettings {
            node_id,
            marker,
            mtu: INT_MTU,
            port_mtus: BTreeMap::new(),
            sinks: BTreeSet::new(),
            packets_per_second: EXECUTIONS_PER_SECOND,
        }
    }
}

/// The state of a node.
#[derive(Clone, Debug)]
pub(super) struct IntHop {
    settings: IntSettings,
    pub node: IntNode,
    rate: ExecutionRate,
    /// Number of the next report; all workers share it.
    next_report: Arc<AtomicU32>,
}

impl IntHop {
    pub fn new(settings: IntSettings) -> IntHop {
        let rate = ExecutionRate::new(settings.packets_per_second);
        IntHop { node: IntNode::new(settings.marker), rate, settings, next_report: Arc::default() }
    }

    /// Whether a sink may make a program of a frame with the UDP port of INT. All that is cut, malformed or has INT in
    /// INT counts: it may be another packet for a later switch.
    pub fn may_restore_program(&self, frame: &[u8]) -> bool {
        // A sink that restores a DSCP leaves the ports as they are.
        let Marker::UdpPort(marked) = self.node.marker() else { return false };
        let port_at = |bytes: &[u8], at: usize| bytes.get(at..at + 2).map(|it| u16::from_be_bytes([it[0], it[1]]));
        let is_marked = wire_format::first_datagram(frame).and_then(|at| port_at(frame, at + 2)) == Some(marked);
        let is_other = |port| port != marked && port != wire_format::UDP_PORT;
        let is_harmless = || {
            let place = find(frame, self.node.marker())?;
            let packet = place.packet(frame).ok()?;
            let inner = &frame[place.start + packet.length()..place.end];
            Some(match packet.next_protocol() {
                NextProtocol::Payload { .. } => true,
                NextProtocol::UdpPayload { port } => is_other(port),
                NextProtocol::Transport { protocol: ipv4::UDP } => port_at(inner, 2).is_some_and(is_other),
                // Extension headers of IPv6 may hide a datagram.
                NextProtocol::Transport { protocol } => !ipv6::is_extension(protocol),
            })
        };
        is_marked && is_harmless() != Some(true)
    }
}

/// The counters of packets with INT from a port: each copy that leaves is in exactly one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntStats {
    /// The metadata of this switch were added.
    inserted: Stat,
    /// No hops remained, or the stack had no room.
    exceeded: Stat,
    /// The packet would have exceeded the MTU.
    mtu: Stat,
    /// The header was malformed, or gone after the P4 program.
    refused: Stat,
    /// INT was removed.
    removed: Stat,
    /// Beyond the limit: without the metadata of this switch, or restored without a report.
    limited: Stat,
}

impl IntStats {
    pub fn new(registry: &mut Registry, port: PortId) -> IntStats {
        let mut count = |result: &str| registry.register(format!("port.{port}.int.{result}"));
        IntStats {
            inserted: count("inserted"),
            exceeded: count("exceeded"),
            mtu: count("mtu"),
            refused: count("refused"),
            removed: count("removed"),
            limited: count("limited"),
        }
    }

    fn of(&self, verdict: IntVerdict) -> Stat {
        match verdict {
            IntVerdict::Inserted => self.inserted,
            IntVerdict::HopsExceeded | IntVerdict::StackFull => self.exceeded,
            IntVerdict::MtuExceeded => self.mtu,
            IntVerdict::Absent | IntVerdict::Malformed(_) => self.refused,
        }
    }
}

impl Switch {
    /// Adds the metadata of this switch to a packet that leaves, or removes INT at an edge port. Returns false if the
    /// packet asks the sink to discard it.
    pub(in crate::switch) fn run_int(
        &mut self,
        packet: &TinyPacket,
        input: PortId,
        data: &mut Vec<u8>,
        leaving: Leaving,
    ) -> bool {
        if !packet.has_int || self.obstacle(leaving.port, data.len()).is_some() {
            return true;
        }
        let Some(programs) = self.tiny.as_deref() else { return true };
        let Some((hop, port)) = programs.int.as_ref().zip(programs.ports.get(&input)) else { return true };
        let Some(stats) = port.int else { return true };
        let is_limited = !port.int_bucket.take(leaving.at, hop.rate);
        let mut memory = self.packet_memory(programs, packet, input, data.len(), leaving);
        if hop.settings.sinks.contains(&leaving.port) {
            let number = || hop.next_report.fetch_add(1, Relaxed);
            return match hop.node.sink(data, programs.switch_id, number, &mut memory) {
                // Its number was taken, so the collector sees that a report is missing.
                Ok(removal) if is_limited => {
                    self.registry.add(stats.limited, 1);
                    !removal.is_discarded
                }
                Ok(removal) => {
                    self.registry.add(stats.removed, 1);
                    self.notify(Notification::IntReport { report: removal.report, time: leaving.at });
                    !removal.is_discarded
                }
                Err(verdict) => {
                    self.registry.add(stats.of(verdict), 1);
                    true
                }
            };
        }
        if is_limited {
            self.registry.add(stats.limited, 1);
            return true;
        }
        let mtu = hop.settings.port_mtus.get(&leaving.port).map_or(hop.settings.mtu, |mtu| *mtu);
        // A packet is never dropped for its metadata.
        let ip = wire::int::find(data, hop.settings.marker).map_or(0, |place| place.ip);
        let max_len = usize::from(mtu).min(self.config.max_frame.saturating_sub(ip));
        let verdict = hop.node.transit(data, max_len, &mut memory);
        self.registry.add(stats.of(verdict), 1);
        true
    }
}
