//! Parses received frames.

use wire::checksum::Addresses;
use wire::roce::{Packet, icrc};
use wire::{ethernet, ipv4, ipv6, roce, udp};

use crate::endpoint::QpNumber;

/// The outcome of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It was for a queue pair of this end, which has processed it or counted the reason for rejecting it.
    Ours,
    /// It is not RoCE, or for another address or queue pair. It was not changed and had no effect.
    NotOurs,
}

/// A packet in a received frame. Its integrity check is not yet verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedPacket<'a> {
    /// IP addresses: source, destination.
    pub addresses: Addresses,
    pub packet: Packet<&'a [u8]>,
    /// The bytes from the IP header to the integrity check.
    ip: &'a [u8],
}

impl<'a> ReceivedPacket<'a> {
    /// Parses a frame without VLAN tags. None if it is not a complete RoCEv2 packet. The checksums of IP and UDP are
    /// not verified: the integrity check covers the same fields, except those that routers change.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Option<ReceivedPacket<'a>> {
        let ethernet = ethernet::Packet::new_checked(frame).ok()?;
        let bytes = &frame[ethernet::HEADER_LEN..];
        let (addresses, protocol, ip_len, header_len) = match ethernet.ethertype() {
            ethernet::IPV4 => {
                let ip = ipv4::Packet::new_checked(bytes).ok()?;
                let is_fragment = ip.more_fragments() || ip.fragment_offset() > 0;
                let protocol = if is_fragment { 0 } else { ip.protocol() };
                (Addresses::V4(ip.source(), ip.destination()), protocol, ip.total_len(), ip.header_len())
            }
            ethernet::IPV6 => {
                let ip = ipv6::Packet::new_checked(bytes).ok()?;
                let len = ipv6::HEADER_LEN + ip.payload_len();
                (Addresses::V6(ip.source(), ip.destination()), ip.next_header(), len, ipv6::HEADER_LEN)
            }
            _ => return None,
        };
        let ip = bytes.get(..ip_len)?;
        let udp = udp::Packet::new_checked(&ip[header_len..]).ok()?;
        let is_roce = protocol == ipv4::UDP && udp.destination_port() == roce::PORT;
        if !is_roce || udp.length() != ip_len - header_len {
            return None;
        }
        let packet = Packet::new_checked(&ip[header_len + udp::HEADER_LEN..]).ok()?;
        Some(ReceivedPacket { addresses, packet, ip })
    }

    /// Returns the number of the destination queue pair.
    pub fn destination(&self) -> QpNumber {
        QpNumber(self.packet.destination_qp())
    }

    /// Whether its integrity check is valid.
    #[inline]
    pub fn is_intact(&self) -> bool {
        icrc::is_right(self.ip)
    }
}
