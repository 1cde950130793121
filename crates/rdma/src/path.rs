//! The path of a connection's frames, and the headers that all of them share.

use wire::checksum::{self, Addresses};
use wire::roce::{self, AtomicEth, BTH_LEN, Extension, ICRC_LEN, Mtu, Opcode, Psn, icrc};
use wire::{ethernet, ipv4, ipv6, udp};

use crate::endpoint::QpNumber;

/// Bytes from the start of a frame over IPv6 to the end of BTH.
const MAX_HEAD: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN + udp::HEADER_LEN + BTH_LEN;

/// Bytes at the end of BTH with the sequence number and the acknowledge request bit before it.
const PSN_LEN: usize = 4;

/// The path of a connection's frames, as one end sends them.
#[derive(Clone, Copy, Debug)]
pub struct FramePath {
    /// Ethernet address of this end.
    pub source: ethernet::Address,
    /// Ethernet address of the other end.
    pub destination: ethernet::Address,
    /// IP addresses: this end's, the other end's.
    pub addresses: Addresses,
    /// UDP source port. Networks that hash flows distribute connections by it; RoCEv2 uses 49152 and above.
    pub source_port: u16,
    /// Traffic class: six bits of DSCP, two of ECN.
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Maximum payload of a packet. It is the same at both ends.
    pub mtu: Mtu,
}

impl FramePath {
    /// Creates a path with the source port 49152, the traffic class 0 and the hop limit 64.
    pub fn new(source: ethernet::Address, destination: ethernet::Address, addresses: Addresses, mtu: Mtu) -> FramePath {
        FramePath { source, destination, addresses, source_port: 0xc000, traffic_class: 0, hop_limit: 64, mtu }
    }

    /// Returns the path of the other end's frames.
    #[must_use]
    pub fn reversed(self) -> FramePath {
        FramePath { source: self.destination, destination: self.source, addresses: reversed(self.addresses), ..self }
    }

    /// Whether a packet with these addresses comes from the other end, to this end.
    pub(crate) fn is_of_peer(&self, addresses: Addresses) -> bool {
        match (self.addresses, addresses) {
            (Addresses::V4(local, remote), Addresses::V4(source, destination)) => {
                (local, remote) == (destination, source)
            }
            (Addresses::V6(local, remote), Addresses::V6(source, destination)) => {
                (local, remote) == (destination, source)
            }
            _ => false,
        }
    }
}

fn reversed(addresses: Addresses) -> Addresses {
    match addresses {
        Addresses::V4(source, destination) => Addresses::V4(destination, source),
        Addresses::V6(source, destination) => Addresses::V6(destination, source),
    }
}

/// The headers that all frames of a connection share.
#[derive(Debug)]
pub(crate) struct FrameTemplate {
    head: [u8; MAX_HEAD],
    /// Number of bytes to the end of BTH.
    head_len: usize,
    /// Sum of the IPv4 header without length and checksum.
    sum: u64,
    /// Headers of the last frame up to the sequence number. They are equal for most frames of a connection.
    alike: AlikeFrames,
}

/// The headers of frames with the same opcode and length, up to the sequence number.
#[derive(Clone, Debug)]
struct AlikeFrames {
    opcode: u8,
    payload_len: usize,
    head: [u8; MAX_HEAD],
    /// Integrity check of these headers.
    check: u32,
}

/// The fields in which the packets of a connection differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketHead {
    pub opcode: Opcode,
    pub psn: Psn,
    pub is_ack_requested: bool,
    pub extension: Extension,
}

impl FrameTemplate {
    /// Creates the headers of frames to this queue pair.
    pub fn new(path: &FramePath, peer: QpNumber) -> FrameTemplate {
        let ethertype = match path.addresses {
            Addresses::V4(..) => ethernet::IPV4,
            Addresses::V6(..) => ethernet::IPV6,
        };
        let mut head = [0; MAX_HEAD];
        ethernet::Repr { destination: path.destination, source: path.source, ethertype }.emit(&mut head);
        let ip = ethernet::HEADER_LEN;
        let (transport, sum) = match path.addresses {
            Addresses::V4(source, destination) => {
                let (traffic_class, ttl) = (path.traffic_class, path.hop_limit);
                let repr = ipv4::Repr { traffic_class, ttl, ..ipv4::Repr::new(source, destination, ipv4::UDP) };
                repr.emit(&mut head[ip..], 0);
                let mut summed = [0; ipv4::HEADER_LEN];
                summed.copy_from_slice(&head[ip..ip + ipv4::HEADER_LEN]);
                summed[2..4].fill(0);
                summed[10..12].fill(0);
                (ip + ipv4::HEADER_LEN, checksum::sum(&summed))
            }
            Addresses::V6(source, destination) => {
                let (traffic_class, hop_limit) = (path.traffic_class, path.hop_limit);
                let repr = ipv6::Repr { traffic_class, hop_limit, ..ipv6::Repr::new(source, destination, ipv4::UDP) };
                repr.emit(&mut head[ip..], 0);
                (ip + ipv6::HEADER_LEN, 0)
            }
        };
        head[transport..transport + 2].copy_from_slice(&path.source_port.to_be_bytes());
        head[transport + 2..transport + 4].copy_from_slice(&roce::PORT.to_be_bytes());
        let bth = transport + udp::HEADER_LEN;
        roce::Repr::new(Opcode::Other(0xff), peer.0, Psn::new(0), Extension::None).emit(&mut head[bth..], 0);
        let head_len = bth + BTH_LEN;
        let alike = AlikeFrames { opcode: 0xff, payload_len: usize::MAX, head, check: 0 };
        FrameTemplate { head, head_len, sum, alike }
    }

    /// Returns the size of a frame.
    #[inline]
    pub fn frame_len(&self, extension: &Extension, payload_len: usize) -> usize {
        self.head_len + extension.len() + payload_len + roce::pad_len(payload_len) + ICRC_LEN
    }

    /// Writes a frame to the start of `frame`, and returns its size.
    ///
    /// # Panics
    /// Panics if the frame does not fit.
    #[inline]
    pub fn write(&mut self, frame: &mut [u8], head: &PacketHead, payload: &[u8]) -> usize {
        let opcode = head.opcode.into();
        if (self.alike.opcode, self.alike.payload_len) != (opcode, payload.len()) {
            self.alike = self.alike(opcode, payload.len(), &head.extension);
        }
        let len = self.frame_len(&head.extension, payload.len());
        let frame = &mut frame[..len];
        // Nearly all frames are longer than the longest head, and a copy of constant size is cheap.
        match frame.first_chunk_mut() {
            Some(start) => *start = self.alike.head,
            None => frame[..self.head_len].copy_from_slice(&self.alike.head[..self.head_len]),
        }
        let mut tail = [0; PSN_LEN + AtomicEth::LEN];
        let psn = u32::from(head.is_ack_requested) << 31 | head.psn.number();
        tail[..PSN_LEN].copy_from_slice(&psn.to_be_bytes());
        head.extension.emit(&mut tail[PSN_LEN..]);
        let (tail, psn_at) = (&tail[..PSN_LEN + head.extension.len()], self.head_len - PSN_LEN);
        let body = psn_at + tail.len();
        frame[psn_at..body].copy_from_slice(tail);
        let (to, rest) = frame[body..].split_at_mut(payload.len());
        to.copy_from_slice(payload);
        // The check is computed from the sources of the bytes: loads from bytes that were just stored would stall.
        let mut check = icrc::extend(icrc::extend(self.alike.check, tail), payload);
        let (pad, end) = rest.split_at_mut(rest.len() - ICRC_LEN);
        if !pad.is_empty() {
            pad.fill(0);
            check = icrc::extend(check, pad);
        }
        end.copy_from_slice(&check.to_le_bytes());
        len
    }

    /// Returns the headers of frames with this opcode and length.
    #[cold]
    fn alike(&self, opcode: u8, payload_len: usize, extension: &Extension) -> AlikeFrames {
        let (ip, bth) = (ethernet::HEADER_LEN, self.head_len - BTH_LEN);
        let udp = bth - udp::HEADER_LEN;
        let len = self.frame_len(extension, payload_len);
        let (ip_len, udp_len) = ((len - ip) as u16, (len - udp) as u16);
        let mut head = self.head;
        if udp == ip + ipv4::HEADER_LEN {
            head[ip + 2..ip + 4].copy_from_slice(&ip_len.to_be_bytes());
            let checksum = checksum::finish(self.sum + u64::from(ip_len));
            head[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            head[ip + 4..ip + 6].copy_from_slice(&udp_len.to_be_bytes());
        }
        // No UDP checksum: the integrity check is stronger, and RoCEv2 allows its absence for IPv6, too.
        head[udp + 4..udp + 6].copy_from_slice(&udp_len.to_be_bytes());
        head[bth] = opcode;
        head[bth + 1] = (roce::pad_len(payload_len) as u8) << 4;
        let mut masked = head;
        icrc::mask(&mut masked[ip..self.head_len]);
        let check = icrc::of_masked(&masked[ip..self.head_len - PSN_LEN]);
        AlikeFrames { opcode, payload_len, head, check }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::roce::{Position, Reth};

    fn path(version: u8) -> FramePath {
        let addresses = match version {
            4 => Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
            _ => Addresses::V6([1; 16].into(), [2; 16].into()),
        };
        let path =
            FramePath::new(ethernet::Address([2, 0, 0, 0, 0, 1]), ethernet::Address([2; 6]), addresses, Mtu::Mtu256);
        FramePath { traffic_class: 0xb8, hop_limit: 3, ..path }
    }

    #[test]
    fn frames_are_what_the_formats_make_of_their_parts() {
        for version in [4, 6] {
            let path = path(version);
            let mut template = FrameTemplate::new(&path, QpNumber(0x123456));
            for len in [0, 1, 2, 3, 4, 200, 256] {
                let extension = Extension::Reth(Reth { address: 1 << 40, key: 77, len: len as u32 });
                let (opcode, psn) = (Opcode::Write(Position::Only), Psn::new(0xfffffe));
                let head = PacketHead { opcode, psn, is_ack_requested: true, extension };
                let mut frame = vec![0xaa; 512];
                let written = template.write(&mut frame, &head, &vec![9; len]);
                frame.truncate(written);
                let repr = roce::Repr { is_ack_requested: true, ..roce::Repr::new(opcode, 0x123456, psn, extension) };
                let udp = udp::Repr { source_port: 0xc000, destination_port: roce::PORT };
                let mut datagram = udp.packet(path.addresses, &repr.packet(&vec![9; len]));
                datagram[6..8].fill(0);
                let (ethertype, mut packet) = match path.addresses {
                    Addresses::V4(source, destination) => {
                        let ip = ipv4::Repr::new(source, destination, ipv4::UDP);
                        (ethernet::IPV4, ipv4::Repr { traffic_class: 0xb8, ttl: 3, ..ip }.packet(&datagram))
                    }
                    Addresses::V6(source, destination) => {
                        let ip = ipv6::Repr::new(source, destination, ipv4::UDP);
                        (ethernet::IPV6, ipv6::Repr { traffic_class: 0xb8, hop_limit: 3, ..ip }.packet(&datagram))
                    }
                };
                assert!(icrc::seal(&mut packet));
                let ethernet = ethernet::Repr { destination: path.destination, source: path.source, ethertype };
                assert_eq!(frame, ethernet.packet(&packet), "version {version}, {len} bytes");
            }
        }
    }

    #[test]
    fn only_the_reverse_direction_is_the_peer_s() {
        for version in [4, 6] {
            let path = path(version);
            assert!(path.is_of_peer(path.reversed().addresses) && !path.is_of_peer(path.addresses));
        }
        assert!(!path(4).is_of_peer(path(6).reversed().addresses));
    }
}
