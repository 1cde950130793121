//! Locates INT in frames.

use super::{Marker, NextProtocol, Packet};
use crate::field::get16;
use crate::tpp::after_tags;
use crate::{Malformed, ethernet, ipv4, ipv6, tcp, udp};

/// The place of a shim in a frame. Its bytes are not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntPlace {
    /// The marker that it has.
    pub marker: Marker,
    /// Offset of the IP header in bytes.
    pub ip: usize,
    /// Whether the IP header is one of version 6.
    pub is_ipv6: bool,
    /// Offset of the UDP or TCP header in bytes.
    pub transport: usize,
    /// Whether it is a UDP header.
    pub is_udp: bool,
    /// Offset of the shim in bytes.
    pub start: usize,
    /// Offset of the end of the datagram or segment in bytes.
    pub end: usize,
}

/// Locates the shim of a frame by its marker: after at most four VLAN tags and IPv4, or IPv6 without extension headers,
/// in a complete packet that is no fragment. In TCP it follows the options.
pub fn find(frame: &[u8], marker: Marker) -> Option<IntPlace> {
    let (place, own) = place_for(frame, marker)?;
    (own == marker).then_some(place)
}

/// Returns the place that the shim has in packets with this marker, and what the packet has instead of the marker: its
/// own UDP port, or its own DSCP.
pub fn place_for(frame: &[u8], marker: Marker) -> Option<(IntPlace, Marker)> {
    let (ethertype, ip) = after_tags(frame)?;
    let bytes = &frame[ip..];
    let (class, protocol, transport, end) = match ethertype {
        ethernet::IPV4 => {
            let packet = ipv4::Packet::new_checked(bytes).ok()?;
            let is_whole = !packet.is_cut() && !packet.more_fragments() && packet.fragment_offset() == 0;
            let places = (ip + packet.header_len(), ip + packet.total_len());
            is_whole.then(|| (packet.traffic_class(), packet.protocol(), places.0, places.1))?
        }
        ethernet::IPV6 => {
            let packet = ipv6::Packet::new_checked(bytes).ok().filter(|packet| !packet.is_cut())?;
            let transport = ip + ipv6::HEADER_LEN;
            (packet.traffic_class(), packet.next_header(), transport, transport + packet.payload_len())
        }
        _ => return None,
    };
    let (segment, is_ipv6) = (frame.get(transport..end)?, ethertype == ethernet::IPV6);
    match protocol {
        ipv4::UDP => {
            let header = udp::Packet::new_checked(segment).ok().filter(|header| header.length() <= segment.len())?;
            let own = match marker {
                Marker::UdpPort(_) => Marker::UdpPort(header.destination_port()),
                Marker::Dscp(_) => Marker::Dscp(class >> 2),
            };
            let (start, end) = (transport + udp::HEADER_LEN, transport + header.length());
            Some((IntPlace { marker, ip, is_ipv6, transport, is_udp: true, start, end }, own))
        }
        ipv4::TCP if matches!(marker, Marker::Dscp(_)) => {
            let start = end - tcp::Packet::new_checked(segment).ok()?.payload().len();
            Some((IntPlace { marker, ip, is_ipv6, transport, is_udp: false, start, end }, Marker::Dscp(class >> 2)))
        }
        _ => None,
    }
}

impl IntPlace {
    /// Returns the checked shim, header and stack of the frame.
    ///
    /// # Errors
    /// Returns an error if they are malformed, or if the next protocol type is not one of this marker.
    pub fn packet<'a>(&self, frame: &'a [u8]) -> Result<Packet<&'a [u8]>, Malformed> {
        let packet = Packet::new_checked(&frame[self.start..self.end])?;
        let is_payload = matches!(packet.next_protocol(), NextProtocol::Payload { .. });
        let value = u32::from(frame[self.start] >> 2 & 3);
        if is_payload == matches!(self.marker, Marker::Dscp(_)) {
            Ok(packet)
        } else {
            Err(Malformed::Field { format: super::FORMAT, field: "next protocol type", value })
        }
    }

    /// Returns the length of the IP packet in bytes.
    pub fn packet_len(&self, frame: &[u8]) -> usize {
        let at = if self.is_ipv6 { self.ip + 4 } else { self.ip + 2 };
        let base = if self.is_ipv6 { ipv6::HEADER_LEN } else { 0 };
        base + usize::from(get16(frame, at))
    }
}
