//! Adds INT headers to the packets that a host sends: the host is an INT source.

use std::collections::BTreeMap;

use tpp::int::IntNode;
use wire::int::{Marker, Repr, place_for};

/// The packets of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntCounts {
    /// Packets that carry INT.
    pub inserted: u64,
    /// Packets without INT, because the MTU left no room.
    pub too_long: u64,
}

/// The INT source of a host.
pub struct IntSource {
    node: IntNode,
    mtu: usize,
    /// The header for packets to each UDP port, and their counts.
    ports: BTreeMap<u16, (Repr, IntCounts)>,
}

impl IntSource {
    /// Creates a source without packets, for a link with this MTU in bytes of an IP packet.
    pub fn new(mtu: usize) -> IntSource {
        IntSource { node: IntNode::new(Marker::default()), mtu, ports: BTreeMap::new() }
    }

    /// Adds a header to all datagrams to a port from now on.
    pub fn add(&mut self, port: u16, header: Repr) {
        self.ports.entry(port).or_insert((header, IntCounts::default()));
    }

    /// Returns the counts of the datagrams to a port.
    pub fn counts(&self, port: u16) -> IntCounts {
        self.ports.get(&port).map_or(IntCounts::default(), |(_, counts)| *counts)
    }

    /// Passes a frame that the host sends.
    pub fn sent(&mut self, frame: &mut Vec<u8>) {
        if self.ports.is_empty() {
            return;
        }
        let Some((_, Marker::UdpPort(port))) = place_for(frame, self.node.marker()) else { return };
        let Some((header, counts)) = self.ports.get_mut(&port) else { return };
        match self.node.source(frame, *header, self.mtu) {
            true => counts.inserted += 1,
            false => counts.too_long += 1,
        }
    }
}
