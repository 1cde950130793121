//! The invariant CRC of RoCEv2 (annex A17, section A17.3.1; volume 1, section 7.8.1): a CRC-32 of IEEE 802.3 over all
//! bytes that no switch or router changes.
//!
//! ```text
//! eight bytes of ones | IP | UDP | BTH | headers | payload | pad        stored with the lowest byte first
//! ```
//!
//! Fields that routers and switches may change count as ones: of IPv4 the traffic class, the time to live and the
//! checksum; of IPv6 the traffic class, the flow label and the hop limit; the checksum of UDP; of BTH the byte with the
//! congestion bits. The identification and all lengths are covered.

use super::extension::AETH_LEN;
use super::{BTH_LEN, ICRC_LEN, Reth};
use crate::{ipv4, ipv6, udp};

/// The CRC of the eight bytes of ones that stand for the local routing header, which Ethernet lacks.
const PREFIX: u32 = 0x2144_df1c;

/// Bits that count as ones, from the IP header to the end of BTH.
type Mask = [u8; MAX_MASKED];

const V4: usize = ipv4::HEADER_LEN;
const V6: usize = ipv6::HEADER_LEN;

static V4_MASK: Mask =
    mask_of(&[(1, 0xff), (8, 0xff), (10, 0xff), (11, 0xff), (V4 + 6, 0xff), (V4 + 7, 0xff), (V4 + CONGESTION, 0xff)]);
static V6_MASK: Mask = mask_of(&[
    (0, 0x0f),
    (1, 0xff),
    (2, 0xff),
    (3, 0xff),
    (7, 0xff),
    (V6 + 6, 0xff),
    (V6 + 7, 0xff),
    (V6 + CONGESTION, 0xff),
]);

/// Place of the byte with the congestion bits, from the UDP header.
const CONGESTION: usize = udp::HEADER_LEN + 4;

/// Returns the mask of bits at these places.
const fn mask_of(places: &[(usize, u8)]) -> Mask {
    let mut mask = [0; MAX_MASKED];
    let mut index = 0;
    while index < places.len() {
        mask[places[index].0] = places[index].1;
        index += 1;
    }
    mask
}

/// Number of bytes from the IP header to the end of BTH, for IPv6.
const MAX_MASKED: usize = V6 + udp::HEADER_LEN + BTH_LEN;

/// Numbers of covered bytes of READ requests and of acknowledgements, the most frequent packets. They are copied in one
/// piece, so that the CRC is computed in one step.
const READ_V4: usize = V4 + udp::HEADER_LEN + BTH_LEN + Reth::LEN;
const READ_V6: usize = V6 + udp::HEADER_LEN + BTH_LEN + Reth::LEN;
const ACK_V4: usize = V4 + udp::HEADER_LEN + BTH_LEN + AETH_LEN;
const ACK_V6: usize = V6 + udp::HEADER_LEN + BTH_LEN + AETH_LEN;

/// Returns the masks of an IP packet, and the number of bytes to the end of BTH. None if the bytes are too short for
/// RoCE, or if the IP header has options or extension headers, which RoCE does not use.
#[inline]
fn layout(packet: &[u8]) -> Option<(&'static Mask, usize)> {
    let (mask, ip_len) = match packet.first()? {
        0x45 => (&V4_MASK, V4),
        first if first >> 4 == 6 => (&V6_MASK, V6),
        _ => return None,
    };
    let masked = ip_len + udp::HEADER_LEN + BTH_LEN;
    (packet.len() >= masked + ICRC_LEN).then_some((mask, masked))
}

/// Returns the integrity check of an IP packet whose last four bytes are reserved for it. None if the bytes are too
/// short for RoCE, or if the IP header has options or extension headers. Protocols and ports are not checked.
#[inline]
pub fn compute(packet: &[u8]) -> Option<u32> {
    let (mask, masked) = layout(packet)?;
    Some(masked_crc(packet, mask, masked))
}

#[inline]
fn masked_crc(packet: &[u8], mask: &Mask, masked: usize) -> u32 {
    let covered = &packet[..packet.len() - ICRC_LEN];
    // A copy of constant size takes a few instructions.
    match covered.len() {
        READ_V4 => crc_of_copy::<READ_V4>(covered, mask),
        ACK_V4 => crc_of_copy::<ACK_V4>(covered, mask),
        READ_V6 => crc_of_copy::<READ_V6>(covered, mask),
        ACK_V6 => crc_of_copy::<ACK_V6>(covered, mask),
        _ => crc_in_parts(covered, mask, masked),
    }
}

#[inline]
fn crc_of_copy<const N: usize>(covered: &[u8], mask: &Mask) -> u32 {
    let mut copy = [0; N];
    copy.copy_from_slice(covered);
    // Done with wide registers: single bytes that were just stored would delay the CRC, which loads 16 at a time.
    copy.iter_mut().zip(mask).for_each(|(byte, bits)| *byte |= bits);
    extend(PREFIX, &copy)
}

fn crc_in_parts(covered: &[u8], mask: &Mask, masked: usize) -> u32 {
    let mut copy = *mask;
    let (head, rest) = covered.split_at(masked);
    copy.iter_mut().zip(head).for_each(|(byte, value)| *byte |= value);
    extend(extend(PREFIX, &copy[..masked]), rest)
}

/// Returns the integrity check of the first bytes of an IP packet, whose variable fields are ones already; see
/// [`mask`]. [`extend`] adds the other bytes. A sender with the same headers in many packets computes it once.
#[inline]
pub fn of_masked(start: &[u8]) -> u32 {
    extend(PREFIX, start)
}

/// Returns the integrity check of more bytes.
#[inline]
pub fn extend(check: u32, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial(check);
    crc.update(bytes);
    crc.finalize()
}

/// Whether the last four bytes of an IP packet are its integrity check.
#[inline]
pub fn is_right(packet: &[u8]) -> bool {
    let Some(computed) = compute(packet) else { return false };
    packet.ends_with(&computed.to_le_bytes())
}

/// Writes the integrity check to the last four bytes of an IP packet. Returns false, with the packet unchanged, if it
/// cannot be a RoCE packet; see [`compute`].
#[must_use]
pub fn seal(packet: &mut [u8]) -> bool {
    let Some(computed) = compute(packet) else { return false };
    let end = packet.len() - ICRC_LEN;
    packet[end..].copy_from_slice(&computed.to_le_bytes());
    true
}

/// Sets the variable fields of an IP packet to ones, for [`of_masked`]. Missing bytes are ignored.
pub fn mask(packet: &mut [u8]) {
    let mask = if packet.first().is_some_and(|first| first >> 4 == 6) { &V6_MASK } else { &V4_MASK };
    packet.iter_mut().zip(mask).for_each(|(byte, bits)| *byte |= bits);
}

#[cfg(test)]
mod tests;
