//! Messages by which a switch gets memory of a server: in UDP datagrams over IPv4, beside the packets of RoCEv2.
//!
//! ```text
//!   switch ── ConnectRequest: its endpoint, bytes ──> memory server
//!          <── ConnectReply: its endpoint, memory key; or the reason for a refusal ──
//! ```
//!
//! A switch repeats a request until there is a reply. A request with the same `nonce` gets the same reply. If its
//! address and slot have a connection already, the request must name that loan, and replaces the connection, whose
//! memory is released. A switch learns the loan from the reply to its first attempt, so a late copy of a request that
//! ended has no effect. The switch sends requests to the broadcast address of Ethernet, and learns the server's address
//! from the reply.
//!
//! A switch repeats the request of an open connection, too: every [`RENEW_NS`]. Connections that were not renewed for
//! [`LEASE_NS`] are closed when their memory, or their places, are needed for others.
//!
//! A switch that no longer needs a connection repeats its request with a size of 0, which releases the memory. The
//! server answers with a refusal, which the switch ignores.
//!
//! Nothing is authenticated, as in RoCEv2 itself: the network between both ends has to be trusted.

use std::net::Ipv4Addr;

use wire::roce::{Mtu, Psn};
use wire::{ethernet, ipv4, udp};

use crate::endpoint::{QpEndpoint, QpNumber};
use crate::memory::MemoryKey;

/// UDP port of switches and memory servers.
pub const SETUP_PORT: u16 = 7048;

/// Time after which a switch repeats the request of an open connection, in nanoseconds.
pub const RENEW_NS: u64 = 10_000_000_000;

/// Time after which a server may close a connection that was not renewed, in nanoseconds.
pub const LEASE_NS: u64 = 6 * RENEW_NS;

const MAGIC: [u8; 4] = *b"TPm2";
const REQUEST_LEN: usize = 48;
const REPLY_LEN: usize = 36;

/// A request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Random number of the request.
    pub nonce: u64,
    /// The connection among those of the switch with its server.
    pub slot: u32,
    /// The switch's end.
    pub endpoint: QpEndpoint,
    /// Maximum payload of a packet.
    pub mtu: Mtu,
    /// Size of the memory in bytes; 0 to release it.
    pub bytes: u64,
    /// The loan of the connection to replace; any number if there is none.
    pub replaces: u64,
}

/// Memory that a server lends. Its addresses begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryGrant {
    /// The server's end.
    pub endpoint: QpEndpoint,
    /// Key of the memory.
    pub key: MemoryKey,
}

/// The reason why a server lends no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectRefusal {
    /// It has too little free memory.
    #[error("the server has too little free memory")]
    NoMemory,
    /// It has its maximum number of connections.
    #[error("the server has too many connections")]
    TooMany,
    /// The slot has a connection. A request that names its loan replaces it.
    #[error("the slot has another connection")]
    Occupied {
        /// Random number of the loan.
        loan: u64,
    },
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectReply {
    /// That of the request.
    pub nonce: u64,
    /// The memory, or the reason for lending none.
    pub result: Result<MemoryGrant, ConnectRefusal>,
}

/// A datagram of this protocol, with its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetupFrame<'a> {
    pub ethernet_source: ethernet::Address,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub payload: &'a [u8],
}

impl<'a> SetupFrame<'a> {
    /// Parses a frame; `None` if it is no undamaged datagram of this protocol.
    pub fn parse(frame: &'a [u8]) -> Option<SetupFrame<'a>> {
        let ethernet = ethernet::Packet::new_checked(frame).ok()?;
        if ethernet.ethertype() != ethernet::IPV4 {
            return None;
        }
        let bytes = &frame[ethernet::HEADER_LEN..];
        let ip = ipv4::Packet::new_checked(bytes).ok()?;
        if ip.protocol() != ipv4::UDP || ip.more_fragments() || ip.fragment_offset() > 0 || ip.is_cut() {
            return None;
        }
        let datagram = bytes.get(ip.header_len()..ip.total_len())?;
        let udp = udp::Packet::new_checked(datagram).ok()?;
        if udp.destination_port() != SETUP_PORT || udp.source_port() != SETUP_PORT {
            return None;
        }
        let is_whole = udp.checksum() != 0 && udp.is_checksum_right(ipv4::Repr::parse(&ip).addresses());
        let payload = datagram.get(udp::HEADER_LEN..udp.length())?;
        let (ethernet_source, source, destination) = (ethernet.source(), ip.source(), ip.destination());
        (is_whole && ip.is_checksum_right()).then_some(SetupFrame { ethernet_source, source, destination, payload })
    }
}

/// Returns a frame with a message.
pub(crate) fn frame(ethernet: ethernet::Repr, source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Repr::new(source, destination, ipv4::UDP);
    let datagram = udp::Repr { source_port: SETUP_PORT, destination_port: SETUP_PORT };
    ethernet.packet(&header.packet(&datagram.packet(header.addresses(), payload)))
}

fn put_endpoint(bytes: &mut Vec<u8>, endpoint: &QpEndpoint) {
    bytes.extend_from_slice(&endpoint.number.0.to_be_bytes());
    bytes.extend_from_slice(&endpoint.psn.number().to_be_bytes());
    bytes.extend_from_slice(&endpoint.max_reads.to_be_bytes());
}

/// Reads numbers from the start of a message.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn endpoint(&mut self) -> Option<QpEndpoint> {
        let (number, psn, max_reads) = (self.u32()?, self.u32()?, self.u16()?);
        let is_valid = number < 1 << 24 && psn < 1 << 24 && max_reads > 0;
        is_valid.then_some(QpEndpoint { number: QpNumber(number), psn: Psn::new(psn), max_reads })
    }
}

impl ConnectRequest {
    /// Returns the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.nonce.to_be_bytes());
        bytes.extend_from_slice(&self.slot.to_be_bytes());
        put_endpoint(&mut bytes, &self.endpoint);
        bytes.extend_from_slice(&(self.mtu.bytes() as u16).to_be_bytes());
        bytes.extend_from_slice(&self.bytes.to_be_bytes());
        bytes.extend_from_slice(&self.replaces.to_be_bytes());
        bytes.resize(REQUEST_LEN, 0);
        bytes
    }

    /// Parses a message; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<ConnectRequest> {
        let mut fields = Fields(bytes);
        if fields.take::<4>()? != MAGIC || bytes.len() != REQUEST_LEN {
            return None;
        }
        let (nonce, slot, endpoint) = (fields.u64()?, fields.u32()?, fields.endpoint()?);
        let mtu = Mtu::from_bytes(fields.u16()?.into())?;
        Some(ConnectRequest { nonce, slot, endpoint, mtu, bytes: fields.u64()?, replaces: fields.u64()? })
    }
}

impl ConnectReply {
    /// Returns the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.nonce.to_be_bytes());
        match &self.result {
            Ok(grant) => {
                bytes.push(0);
                put_endpoint(&mut bytes, &grant.endpoint);
                bytes.extend_from_slice(&grant.key.0.to_be_bytes());
            }
            Err(ConnectRefusal::NoMemory) => bytes.push(1),
            Err(ConnectRefusal::TooMany) => bytes.push(2),
            Err(ConnectRefusal::Occupied { loan }) => {
                bytes.push(3);
                bytes.extend_from_slice(&loan.to_be_bytes());
            }
        }
        bytes.resize(REPLY_LEN, 0);
        bytes
    }

    /// Parses a message; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<ConnectReply> {
        let mut fields = Fields(bytes);
        if fields.take::<4>()? != MAGIC || bytes.len() != REPLY_LEN {
            return None;
        }
        let nonce = fields.u64()?;
        let result = match fields.take::<1>()? {
            [0] => Ok(MemoryGrant { endpoint: fields.endpoint()?, key: MemoryKey(fields.u32()?) }),
            [1] => Err(ConnectRefusal::NoMemory),
            [2] => Err(ConnectRefusal::TooMany),
            [3] => Err(ConnectRefusal::Occupied { loan: fields.u64()? }),
            _ => return None,
        };
        Some(ConnectReply { nonce, result })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_and_damaged_ones_are_none() {
        let endpoint = QpEndpoint { number: QpNumber(0x12_3456), psn: Psn::new(0xab_cdef), max_reads: 16 };
        let request = ConnectRequest { nonce: 7, slot: 2, endpoint, mtu: Mtu::Mtu1024, bytes: 1 << 40, replaces: 5 };
        let bytes = request.to_bytes();
        assert_eq!(ConnectRequest::parse(&bytes), Some(request));
        assert!((0..bytes.len()).all(|len| ConnectRequest::parse(&bytes[..len]).is_none()));
        assert_eq!(ConnectReply::parse(&bytes), None);
        let grant = MemoryGrant { endpoint, key: MemoryKey(9) };
        let occupied = ConnectRefusal::Occupied { loan: 1 << 50 };
        for result in [Ok(grant), Err(ConnectRefusal::NoMemory), Err(ConnectRefusal::TooMany), Err(occupied)] {
            let reply = ConnectReply { nonce: 8, result };
            let bytes = reply.to_bytes();
            assert_eq!(ConnectReply::parse(&bytes), Some(reply));
            assert!((0..bytes.len()).all(|len| ConnectReply::parse(&bytes[..len]).is_none()));
        }
        let (one, two) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mac = ethernet::Address([2; 6]);
        let ethernet = ethernet::Repr { destination: mac, source: mac, ethertype: ethernet::IPV4 };
        let mut whole = frame(ethernet, one, two, &bytes);
        let parsed = SetupFrame::parse(&whole).unwrap();
        assert_eq!((parsed.source, parsed.destination, parsed.payload), (one, two, &bytes[..]));
        for at in 14..whole.len() {
            whole[at] ^= 0x10;
            assert!(SetupFrame::parse(&whole).is_none_or(|parsed| parsed.payload != bytes), "byte {at}");
            whole[at] ^= 0x10;
        }
    }
}
