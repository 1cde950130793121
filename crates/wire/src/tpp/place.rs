//! Locates programs in frames, and reflects frames.

use super::{ETHERTYPE, UDP_PORT};
use crate::field::get16;
use crate::{ethernet, ipv4, ipv6, udp, vlan};

/// Maximum number of tags before a transparent program.
const MAX_TAGS: usize = 4;

/// The way in which a frame carries a program (paper, figure 7a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// Between the Ethernet header and a packet.
    Transparent,
    /// As the payload of a UDP datagram.
    Standalone {
        /// Offset of the UDP header in the frame, in bytes.
        udp: usize,
    },
}

/// The place of a program in a frame. Its bytes are not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramPlace {
    /// The way in which the frame carries it.
    pub carriage: Carriage,
    /// Offset of the program in bytes.
    pub start: usize,
    /// Offset of the end of the bytes that may belong to it and its payload.
    pub end: usize,
}

/// Locates the outermost program of a frame that switches execute: a transparent one after at most four VLAN tags, or
/// a standalone one in an unfragmented datagram over IPv4 or IPv6. An echo, with [`UDP_PORT`] as its source, is none.
pub fn find(frame: &[u8]) -> Option<ProgramPlace> {
    let (ethertype, start) = after_tags(frame)?;
    match ethertype {
        ETHERTYPE => Some(ProgramPlace { carriage: Carriage::Transparent, start, end: frame.len() }),
        ipv4_or_6 => {
            let (header, end) = datagram(frame, ipv4_or_6, start)?;
            let is_program = get16(frame, header + 2) == UDP_PORT && get16(frame, header) != UDP_PORT;
            let carriage = Carriage::Standalone { udp: header };
            is_program.then_some(ProgramPlace { carriage, start: header + udp::HEADER_LEN, end })
        }
    }
}

/// Whether a frame has a program, or may have one for a later switch: a datagram to [`UDP_PORT`] counts, whatever its
/// lengths, also as a first fragment. A network card pads short frames, so what is cut here may be complete there.
/// Echoes do not count.
pub fn may_carry(frame: &[u8]) -> bool {
    let is_transparent = after_tags(frame).is_some_and(|(ethertype, _)| ethertype == ETHERTYPE);
    let is_standalone = |at| get16(frame, at + 2) == UDP_PORT && get16(frame, at) != UDP_PORT;
    is_transparent || first_datagram(frame).is_some_and(is_standalone)
}

/// Returns the offset of the UDP header of a frame that is no later fragment, in bytes. At least the two ports are
/// present; lengths are not checked, other than those of IPv4 options and IPv6 extension headers.
pub fn first_datagram(frame: &[u8]) -> Option<usize> {
    let (ethertype, start) = after_tags(frame)?;
    let ip = &frame[start..];
    let (protocol, len) = match (ethertype, ip.first()? >> 4) {
        (ethernet::IPV4, 4) if ip.len() >= ipv4::HEADER_LEN => {
            let is_first = get16(ip, 6) & 0x1fff == 0;
            is_first.then(|| (ip[9], usize::from(ip[0] & 0xf) * 4))?
        }
        (ethernet::IPV6, 6) if ip.len() >= ipv6::HEADER_LEN => behind_extensions(ip)?,
        _ => return None,
    };
    (protocol == ipv4::UDP && ip.len() >= len + 4).then_some(start + len)
}

/// Returns the protocol after the extension headers of an IPv6 packet, and the offset of its header, in bytes, whatever
/// length the packet claims. `None` for a later fragment.
fn behind_extensions(ip: &[u8]) -> Option<(u8, usize)> {
    let (mut next, mut at) = (ip[6], ipv6::HEADER_LEN);
    while ipv6::is_extension(next)
        && let Some([following, words, third, fourth]) = ip.get(at..at + 4)
    {
        let is_fragment = next == 44;
        if is_fragment && u16::from_be_bytes([*third, *fourth]) & 0xfff8 != 0 {
            return None;
        }
        at += if is_fragment { 8 } else { (usize::from(*words) + 1) * 8 };
        next = *following;
    }
    Some((next, at))
}

/// Locates the program of an echo: a datagram from [`UDP_PORT`].
pub fn find_echo(frame: &[u8]) -> Option<ProgramPlace> {
    let (ethertype, start) = after_tags(frame)?;
    let (header, end) = datagram(frame, ethertype, start)?;
    let carriage = Carriage::Standalone { udp: header };
    (get16(frame, header) == UDP_PORT).then_some(ProgramPlace { carriage, start: header + udp::HEADER_LEN, end })
}

/// Returns the EtherType after at most four VLAN tags, and the offset of what follows it, in bytes.
pub(crate) fn after_tags(frame: &[u8]) -> Option<(u16, usize)> {
    let mut start = ethernet::HEADER_LEN;
    for _ in 0..=MAX_TAGS {
        frame.get(start - 2..start)?;
        let ethertype = get16(frame, start - 2);
        if !matches!(ethertype, ethernet::VLAN | ethernet::OUTER_VLAN) {
            return Some((ethertype, start));
        }
        start += vlan::HEADER_LEN;
    }
    None
}

/// Returns the number of VLAN tags that follow an EtherType, one after the other. `start` is the offset after the
/// EtherType, in bytes. A tag that is cut does not count.
pub fn count_tags(frame: &[u8], start: usize) -> usize {
    let is_tag = |at: usize| {
        let ethertype = at.checked_sub(2).and_then(|from| frame.get(from..at)).map(|bytes| get16(bytes, 0));
        matches!(ethertype, Some(ethernet::VLAN | ethernet::OUTER_VLAN)) && at + vlan::HEADER_LEN <= frame.len()
    };
    (0..).take_while(|tag| is_tag(start + tag * vlan::HEADER_LEN)).count()
}

/// Returns the EtherType before the place at which a frame without a program gets one, and the offset of this place,
/// in bytes: before the last `behind` tags, and after at most four. `None` if the frame has no EtherType.
pub fn place_among_tags(frame: &[u8], behind: usize) -> Option<(u16, usize)> {
    let before = count_tags(frame, ethernet::HEADER_LEN).saturating_sub(behind).min(MAX_TAGS);
    let start = ethernet::HEADER_LEN + before * vlan::HEADER_LEN;
    frame.get(start - 2..start).map(|bytes| (get16(bytes, 0), start))
}

/// Returns the offset of the UDP header of a complete, unfragmented datagram, and the offset of the datagram's end.
fn datagram(frame: &[u8], ethertype: u16, start: usize) -> Option<(usize, usize)> {
    let bytes = &frame[start..];
    let datagram = match ethertype {
        ethernet::IPV4 => {
            let packet = ipv4::Packet::new_checked(bytes).ok()?;
            let is_whole = !packet.is_cut() && !packet.more_fragments() && packet.fragment_offset() == 0;
            (is_whole && packet.protocol() == ipv4::UDP)
                .then(|| start + packet.header_len()..start + packet.total_len())?
        }
        ethernet::IPV6 => {
            let packet = ipv6::Packet::new_checked(bytes).ok()?;
            let (protocol, offset, rest) = packet.transport();
            let end = start + ipv6::HEADER_LEN + packet.payload_len();
            let has_fragment_header = has_fragment_header(&packet);
            (protocol == ipv4::UDP && offset == 0 && !packet.is_cut() && !has_fragment_header)
                .then(|| end - rest.len()..end)?
        }
        _ => return None,
    };
    let header = udp::Packet::new_checked(frame.get(datagram.clone())?).ok()?;
    (header.length() <= datagram.len()).then(|| (datagram.start, datagram.start + header.length()))
}

/// Whether one of the extension headers is a fragment header (RFC 8200, 4.5).
fn has_fragment_header(packet: &ipv6::Packet<&[u8]>) -> bool {
    let (mut next, mut rest) = (packet.next_header(), packet.payload());
    while let (0 | 43 | 60, [following, words, ..]) = (next, rest) {
        let Some(behind) = rest.get((usize::from(*words) + 1) * 8..) else { return false };
        (next, rest) = (*following, behind);
    }
    next == 44
}

/// Reflects a frame whose program is at `place`: swaps the MAC addresses and, if it is standalone, the IP addresses
/// and ports. The result of a standalone program is an echo: [`UDP_PORT`] is its source port.
///
/// IP and UDP checksums remain correct, as sums do not depend on the order of their terms; a datagram without a
/// checksum remains without one.
pub fn reflect(frame: &mut [u8], place: ProgramPlace) {
    let (destination, source) = frame[..2 * 6].split_at_mut(6);
    destination.swap_with_slice(source);
    let Some((ethertype, start)) = after_tags(frame) else { return };
    let (at, len) = match ethertype {
        ethernet::IPV4 => (start + 12, 4),
        ethernet::IPV6 => (start + 8, 16),
        _ => return,
    };
    let Carriage::Standalone { udp } = place.carriage else { return };
    swap(frame, at, len);
    swap(frame, udp, 2);
}

/// Swaps the `len` bytes from `at` with those after them.
fn swap(frame: &mut [u8], at: usize, len: usize) {
    let (first, second) = frame[at..at + 2 * len].split_at_mut(len);
    first.swap_with_slice(second);
}
