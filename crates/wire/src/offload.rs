//! Segments oversized TCP and UDP frames and completes checksums: a software fallback for the offloads of network
//! cards.
//!
//! A stack that sends to a card (or to a veth device, which advertises the same offloads) passes on TCP and UDP frames
//! of up to 64 KiB, to be segmented into frames that the medium can carry, with partial checksums. [`segment`] segments
//! them and computes the checksums; [`checksum::complete`] completes the checksum of a frame that needs no
//! segmentation.
//!
//! ```text
//! in:  Ethernet | VLAN tags | IP (id)       | TCP (seq s)       | payload .................................
//! out: Ethernet | VLAN tags | IP (id)       | TCP (seq s)       | size bytes     without FIN and PSH
//!      Ethernet | VLAN tags | IP (id+1)     | TCP (seq s+size)  | size bytes     without FIN, PSH and CWR
//!      Ethernet | VLAN tags | IP (id+2)     | TCP (seq s+2size) | the rest       without CWR
//! ```

use crate::checksum;
use crate::ethernet::{IPV4, IPV6, OUTER_VLAN, VLAN};
use crate::field::{get16, put16};
use crate::ipv4::{TCP, UDP};

/// The transport protocol of a frame, which determines how it is segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP: each frame continues the sequence numbers.
    Tcp,
    /// UDP: each frame is a separate datagram.
    Udp,
}

/// The reason why a frame cannot be segmented; it should be dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// It is not IP, or the transport header is not at the sender's offset because the frame is encapsulated.
    #[error("not a plain IPv4 or IPv6 frame of that transport")]
    NotPlain,
    /// Headers are truncated, there is no payload, or the segment size is 0 or too large for an IP packet.
    #[error("headers are truncated, or there is nothing to segment")]
    Malformed,
}

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Offsets of the headers of a frame, in bytes from its start.
struct HeaderOffsets {
    version: u8,
    network: usize,
    transport: usize,
    payload: usize,
}

/// Segments `frame` into frames of at most `size` bytes of payload and passes each to `emit`, with complete checksums.
/// Returns their number. `transport` is the offset of the transport header, if the sender provided it, and must agree
/// with the headers: a frame within a tunnel must not be segmented like a plain one.
///
/// # Errors
/// Returns an error, before anything is emitted, if the frame is not one of that `kind`.
pub fn segment(
    frame: &[u8],
    kind: SegmentKind,
    transport: Option<usize>,
    size: usize,
    mut emit: impl FnMut(Vec<u8>),
) -> Result<usize, SegmentError> {
    let layout = layout(frame, kind)?;
    if transport.is_some_and(|given| given != layout.transport) {
        return Err(SegmentError::NotPlain);
    }
    let (headers, payload) = frame.split_at(layout.payload);
    let too_big = layout.payload - layout.network + size > 0xffff;
    if size == 0 || payload.is_empty() || too_big {
        return Err(SegmentError::Malformed);
    }
    let count = payload.len().div_ceil(size);
    for (index, chunk) in payload.chunks(size).enumerate() {
        let mut segment = Vec::with_capacity(headers.len() + chunk.len() + 4);
        segment.extend_from_slice(headers);
        segment.extend_from_slice(chunk);
        finish_ip(&mut segment, &layout, index);
        match kind {
            SegmentKind::Tcp => finish_tcp(&mut segment, &layout, index * size, index == 0, index + 1 == count),
            SegmentKind::Udp => {
                let len = (segment.len() - layout.transport) as u16;
                put16(&mut segment, layout.transport + 4, len);
            }
        }
        finish_checksum(&mut segment, &layout, kind);
        emit(segment);
    }
    Ok(count)
}

fn layout(frame: &[u8], kind: SegmentKind) -> Result<HeaderOffsets, SegmentError> {
    let short = SegmentError::Malformed;
    let byte = |at: usize| frame.get(at).copied().ok_or(short);
    let u16_at = |at: usize| Ok(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
    let mut at = 12;
    while matches!(u16_at(at)?, VLAN | OUTER_VLAN) {
        at += 4;
    }
    let network = at + 2;
    let (version, mut protocol, mut transport) = match u16_at(at)? {
        IPV4 if byte(network)? >> 4 == 4 => {
            let header_len = usize::from(byte(network)? & 0xf) * 4;
            if header_len < 20 {
                return Err(short);
            }
            (4, byte(network + 9)?, network + header_len)
        }
        IPV6 if byte(network)? >> 4 == 6 => (6, byte(network + 6)?, network + 40),
        _ => return Err(SegmentError::NotPlain),
    };
    // Hop-by-hop options, routing and destination options may precede the transport header (RFC 8200, section 4).
    while version == 6 && matches!(protocol, 0 | 43 | 60) {
        protocol = byte(transport)?;
        transport += (usize::from(byte(transport + 1)?) + 1) * 8;
    }
    let (expected, payload) = match kind {
        SegmentKind::Tcp => (TCP, transport + usize::from(byte(transport + 12)? >> 4) * 4),
        SegmentKind::Udp => (UDP, transport + 8),
    };
    let min_header_len = if kind == SegmentKind::Tcp { 20 } else { 8 };
    if protocol != expected {
        return Err(SegmentError::NotPlain);
    }
    if payload < transport + min_header_len || payload > frame.len() {
        return Err(short);
    }
    Ok(HeaderOffsets { version, network, transport, payload })
}

fn finish_ip(segment: &mut [u8], layout: &HeaderOffsets, index: usize) {
    let at = layout.network;
    if layout.version == 6 {
        let len = (segment.len() - at - 40) as u16;
        return put16(segment, at + 4, len);
    }
    let (len, id) = ((segment.len() - at) as u16, get16(segment, at + 4).wrapping_add(index as u16));
    put16(segment, at + 2, len);
    put16(segment, at + 4, id);
    put16(segment, at + 10, 0);
    let value = checksum::checksum(&segment[at..layout.transport]);
    put16(segment, at + 10, value);
}

fn finish_tcp(segment: &mut [u8], layout: &HeaderOffsets, sent: usize, first: bool, last: bool) {
    let at = layout.transport + 4;
    let sequence = u32::from_be_bytes([segment[at], segment[at + 1], segment[at + 2], segment[at + 3]]);
    segment[at..at + 4].copy_from_slice(&sequence.wrapping_add(sent as u32).to_be_bytes());
    let flags = &mut segment[layout.transport + 13];
    if !first {
        *flags &= !CWR;
    }
    if !last {
        *flags &= !FIN_PSH;
    }
}

fn finish_checksum(segment: &mut [u8], layout: &HeaderOffsets, kind: SegmentKind) {
    let (protocol, offset) = match kind {
        SegmentKind::Tcp => (TCP, 16),
        SegmentKind::Udp => (UDP, 6),
    };
    let addresses = match layout.version {
        4 => layout.network + 12..layout.network + 20,
        _ => layout.network + 8..layout.network + 40,
    };
    let len = segment.len() - layout.transport;
    // The IPv4 and IPv6 pseudo-headers cover the same values: the addresses, the protocol and the length.
    let pseudo = checksum::sum(&segment[addresses]) + u64::from(protocol) + len as u64;
    put16(segment, layout.transport + offset, checksum::fold(pseudo));
    let inside = checksum::complete(segment, layout.transport, offset);
    debug_assert!(inside, "the layout was checked");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a TCP frame over IPv4 with one VLAN tag, FIN, PSH and CWR set, and `len` bytes of payload.
    fn tcp_frame(len: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0, 0, 5, 0x08, 0]);
        frame.extend([0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2]);
        frame.extend([0, 80, 0x12, 0x34, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0x60, 0x99, 0, 9, 0, 0, 0, 0, 1, 1, 1, 1]);
        frame.extend((0..len).map(|i| i as u8));
        frame
    }

    fn cut(
        frame: &[u8],
        how: SegmentKind,
        transport: Option<usize>,
        size: usize,
    ) -> Result<Vec<Vec<u8>>, SegmentError> {
        let mut segments = Vec::new();
        segment(frame, how, transport, size, |segment| segments.push(segment))?;
        Ok(segments)
    }

    #[test]
    fn tcp_continues_its_sequence_and_keeps_its_flags_in_place() {
        let frame = tcp_frame(2500);
        let segments = cut(&frame, SegmentKind::Tcp, Some(38), 1000).unwrap();
        let payload: Vec<u8> = segments.iter().flat_map(|segment| segment[62..].to_vec()).collect();
        assert_eq!(payload, frame[62..]);
        let seen: Vec<_> = segments.iter().map(|p| (get16(p, 20), get16(p, 22), p[45], p[51], p.len() - 62)).collect();
        // Total length, identification, lowest byte of the sequence number, flags, payload.
        assert_eq!(seen, [(1044, 0xffff, 0, 0x90, 1000), (1044, 0, 0xe8, 0x10, 1000), (544, 1, 0xd0, 0x19, 500)]);
        for segment in &segments {
            assert_eq!(checksum::checksum(&segment[18..38]), 0, "header checksum");
            let pseudo = checksum::sum(&segment[30..38]) + 6 + (segment.len() - 38) as u64;
            assert_eq!(checksum::finish(pseudo + checksum::sum(&segment[38..])), 0, "transport checksum");
        }
    }

    #[test]
    fn udp_over_ipv6_becomes_datagrams() {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 0, 64]);
        frame.extend([1; 32]);
        // Hop-by-hop options of eight bytes, then UDP.
        frame[20] = 0;
        frame.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        frame.extend([0, 1, 0, 2, 0, 0, 0, 0]);
        frame.extend([7; 25]);
        let segments = cut(&frame, SegmentKind::Udp, None, 10).unwrap();
        let seen: Vec<_> = segments.iter().map(|p| (get16(p, 18), get16(p, 66), p.len())).collect();
        assert_eq!(seen, [(26, 18, 80), (26, 18, 80), (21, 13, 75)]);
        for segment in &segments {
            let pseudo = checksum::sum(&segment[22..54]) + 17 + (segment.len() - 62) as u64;
            assert_eq!(checksum::finish(pseudo + checksum::sum(&segment[62..])), 0);
        }
    }

    #[test]
    fn unsupported_and_malformed_frames_are_not_segmented() {
        let frame = tcp_frame(100);
        assert_eq!(cut(&frame, SegmentKind::Tcp, Some(58), 10), Err(SegmentError::NotPlain));
        assert_eq!(cut(&frame, SegmentKind::Udp, None, 10), Err(SegmentError::NotPlain));
        assert_eq!(cut(&frame, SegmentKind::Tcp, None, 0), Err(SegmentError::Malformed));
        assert_eq!(cut(&frame, SegmentKind::Tcp, None, 0xffff), Err(SegmentError::Malformed));
        for len in 0..=62 {
            assert!(cut(&frame[..len], SegmentKind::Tcp, None, 10).is_err(), "length {len}");
        }
    }
}
