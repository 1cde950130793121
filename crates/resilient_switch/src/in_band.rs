//! Carries messages of the protocol in frames between the ports of switches and stores: UDP over IPv4.
//!
//! A switch takes the frames that are for its own address, and passes those for other addresses of the protocol on by
//! the port that leads there. The program sees neither. The datagrams are sealed like those of live switches
//! ([`resilient::sealed`]).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use resilient::{DatagramSealer, NodeId, OperatorId, Peer, StoreMessage};
use switch::{Frame, PortId, Time};
use wire::ethernet::{self, Address};
use wire::{ipv4, udp};

/// UDP port of switches and stores.
pub const STORE_PORT: u16 = 7047;

/// The way to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreRoute {
    /// Its address.
    pub address: Ipv4Addr,
    /// The port of the switch that leads there.
    pub port: PortId,
}

/// The number that stands for the operator of the stores among the routes of a switch.
pub const OPERATOR: NodeId = NodeId(u32::MAX);

/// Returns the member of the cluster that a number among the routes stands for.
fn member(node: NodeId) -> Peer {
    if node == OPERATOR { Peer::Operator(OperatorId::ONLY) } else { Peer::Node(node) }
}

/// Address and routes of a switch.
#[derive(Clone, Debug)]
pub struct InBand {
    address: Ipv4Addr,
    stores: BTreeMap<NodeId, StoreRoute>,
    /// The ports that lead to addresses of the protocol: stores and other switches.
    routes: BTreeMap<Ipv4Addr, PortId>,
}

/// The kinds of frames for the protocol.
#[derive(Debug, PartialEq)]
pub(crate) enum Carried {
    /// A frame of the program.
    Other,
    /// A frame for this switch: the store with its source address, and its accepted messages.
    Messages(NodeId, Vec<StoreMessage>),
    /// A frame that leaves by a port.
    PassOn(PortId),
    /// A frame for this switch from a stranger.
    Stranger,
}

/// Destination of a datagram of the protocol.
enum Way<'f> {
    /// This switch. The source address and the payload.
    Here(Ipv4Addr, &'f [u8]),
    /// An address that is reached by a port.
    Port(PortId),
}

/// Conversion of a switch's messages into frames and back.
#[derive(Debug)]
pub(crate) struct InBandCarrier {
    ways: InBand,
    sealer: DatagramSealer,
}

impl InBand {
    /// Creates the carrier of the switch with this address. `others` are the addresses of other switches, with the
    /// ports that lead there.
    pub fn new(
        address: Ipv4Addr,
        stores: BTreeMap<NodeId, StoreRoute>,
        others: impl IntoIterator<Item = (Ipv4Addr, PortId)>,
    ) -> InBand {
        let mut routes: BTreeMap<Ipv4Addr, PortId> = others.into_iter().collect();
        routes.extend(stores.values().map(|route| (route.address, route.port)));
        InBand { address, stores, routes }
    }

    /// Returns the port by which a frame leaves a switch that only passes the protocol on; `None` for a frame of the
    /// program.
    pub fn passes_on(&self, bytes: &[u8]) -> Option<PortId> {
        match self.way(bytes) {
            Some(Way::Port(port)) => Some(port),
            Some(Way::Here(..)) | None => None,
        }
    }

    /// Returns the route of a frame; `None` for a frame of the program.
    fn way<'f>(&self, bytes: &'f [u8]) -> Option<Way<'f>> {
        let (source, destination, payload) = parse(bytes)?;
        if destination == self.address {
            return Some(Way::Here(source, payload));
        }
        self.routes.get(&destination).map(|port| Way::Port(*port))
    }
}

impl InBandCarrier {
    pub fn new(ways: InBand, sealer: DatagramSealer) -> InBandCarrier {
        InBandCarrier { ways, sealer }
    }

    /// Returns what a frame is for the protocol.
    pub fn carried(&mut self, now: Time, bytes: &[u8]) -> Carried {
        match self.ways.way(bytes) {
            None => Carried::Other,
            Some(Way::Port(port)) => Carried::PassOn(port),
            Some(Way::Here(source, payload)) => {
                let Some((node, _)) = self.ways.stores.iter().find(|(_, route)| route.address == source) else {
                    self.sealer.refuse_stranger();
                    return Carried::Stranger;
                };
                Carried::Messages(*node, self.sealer.open(now, member(*node), payload))
            }
        }
    }

    /// Queues messages to send.
    pub fn send(&mut self, now: Time, messages: impl Iterator<Item = (NodeId, StoreMessage)>) {
        let messages: Vec<_> = messages.map(|(to, message)| (member(to), message)).collect();
        self.sealer.send(now, &messages);
    }

    /// Removes and returns the frames to send. Those for stores without a route are lost.
    pub fn take_frames(&mut self) -> impl Iterator<Item = Frame> + use<'_> {
        let InBandCarrier { ways, sealer } = self;
        sealer.take_outgoing().filter_map(|(to, payload)| {
            let to = match to {
                Peer::Node(node) => node,
                Peer::Operator(_) => OPERATOR,
                Peer::Switch(_) => return None,
            };
            let StoreRoute { address, port } = ways.stores.get(&to)?;
            Some(Frame { port: *port, data: datagram(ways.address, *address, &payload) })
        })
    }
}

/// Returns the Ethernet address of an address of the protocol: locally administered, with the IPv4 address inside.
pub fn mac(address: Ipv4Addr) -> Address {
    let [a, b, c, d] = address.octets();
    Address([0x02, 0x70, a, b, c, d])
}

/// Returns a frame with a datagram.
pub fn datagram(source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Repr::new(source, destination, ipv4::UDP);
    let datagram = udp::Repr { source_port: STORE_PORT, destination_port: STORE_PORT };
    let datagram = datagram.packet(header.addresses(), payload);
    let ethernet = ethernet::Repr { destination: mac(destination), source: mac(source), ethertype: ethernet::IPV4 };
    ethernet.packet(&header.packet(&datagram))
}

/// Returns source, destination and payload of a datagram of the protocol. Frames that are no such datagram, and
/// corrupted ones, are none.
pub fn parse(bytes: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr, &[u8])> {
    let frame = ethernet::Packet::new_checked(bytes).ok()?;
    if frame.ethertype() != ethernet::IPV4 {
        return None;
    }
    let header = ethernet::HEADER_LEN;
    let packet = ipv4::Packet::new_checked(&bytes[header..]).ok()?;
    if packet.protocol() != ipv4::UDP || packet.more_fragments() || packet.fragment_offset() > 0 || packet.is_cut() {
        return None;
    }
    let (start, end) = (header + packet.header_len(), header + packet.total_len());
    let datagram = udp::Packet::new_checked(bytes.get(start..end)?).ok()?;
    if datagram.destination_port() != STORE_PORT || datagram.source_port() != STORE_PORT {
        return None;
    }
    let addresses = ipv4::Repr::parse(&packet).addresses();
    let is_whole = datagram.checksum() != 0 && datagram.is_checksum_right(addresses) && packet.is_checksum_right();
    let payload = bytes.get(start + udp::HEADER_LEN..start + datagram.length())?;
    is_whole.then_some((packet.source(), packet.destination(), payload))
}
