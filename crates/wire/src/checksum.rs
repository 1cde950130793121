//! Computes the Internet checksum (RFC 1071): the one's complement of the one's complement sum of 16-bit words.
//!
//! Sums are kept unfolded in a `u64`, so pieces can be added in any order before [`finish`] folds and inverts
//! them. A piece of odd length counts as if followed by a zero byte, so only the last piece may be odd.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the unfolded sum of `bytes` as big-endian 16-bit words.
pub fn sum(bytes: &[u8]) -> u64 {
    // 32-bit words are two 16-bit words at once: folding adds the halves up later. 2^32 such words fit into the sum.
    let mut words = bytes.chunks_exact(4);
    let mut total = 0u64;
    for word in &mut words {
        total += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum to 16 bits with end-around carry.
#[inline]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the checksum for a sum.
pub fn finish(sum: u64) -> u16 {
    !fold(sum)
}

/// Returns the checksum of `bytes`; zero if `bytes` include their own, correct checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    finish(sum(bytes))
}

/// The addresses of an IP packet, which the checksums of TCP, UDP and ICMPv6 cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Source and destination of IPv4.
    V4(Ipv4Addr, Ipv4Addr),
    /// Source and destination of IPv6.
    V6(Ipv6Addr, Ipv6Addr),
}

impl Addresses {
    /// Returns the sum of the pseudo-header of a segment of `len` bytes (RFC 768, RFC 9293; for IPv6 RFC 8200, 8.1).
    pub fn pseudo(self, protocol: u8, len: usize) -> u64 {
        let addresses = match self {
            Addresses::V4(source, destination) => sum(&source.octets()) + sum(&destination.octets()),
            Addresses::V6(source, destination) => sum(&source.octets()) + sum(&destination.octets()),
        };
        addresses + u64::from(protocol) + len as u64
    }
}

/// Returns the checksum after one 16-bit word that it covers changed from `old` to `new` (RFC 1624, equation 3).
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    finish(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// Offset of the checksum in a UDP header.
const UDP_CHECKSUM: usize = 6;

/// Completes a partial checksum that a sender left to its network card: the field at `start + offset` holds the sum of
/// the pseudo-header, and the checksum covers all bytes from `start` to the end. Returns false, with the frame
/// unchanged, if the field is not inside the frame.
#[must_use]
pub fn complete(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(at) = start.checked_add(offset) else { return false };
    if frame.get(at..).is_none_or(|rest| rest.len() < 2) {
        return false;
    }
    let value = match checksum(&frame[start..]) {
        // In UDP, zero means *no checksum*, and its other representation replaces it (RFC 768). Elsewhere receivers
        // accept both, but tools that report anomalies expect zero.
        0 if offset == UDP_CHECKSUM => 0xffff,
        value => value,
    };
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(checksum(&bytes), 0x220d);
    }

    #[test]
    fn a_sum_of_zero_is_written_as_each_protocol_expects_it() {
        // All ones: the sum is 0xffff, its complement 0.
        let completed = |offset: usize| {
            let mut frame = [0u8; 20];
            frame[offset..offset + 2].fill(0xff);
            assert!(complete(&mut frame, 0, offset));
            [frame[offset], frame[offset + 1]]
        };
        assert_eq!((completed(6), completed(16)), ([0xff; 2], [0; 2]));
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        let bytes: Vec<u8> = (0..67).map(|i: u8| i.wrapping_mul(151).wrapping_add(13)).collect();
        for len in 0..bytes.len() {
            let words =
                bytes[..len].chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| (*b).into()));
            assert_eq!(fold(sum(&bytes[..len])), fold(words.sum()), "length {len}");
        }
    }

    #[test]
    fn an_incremental_checksum_equals_a_full_one() {
        let mut header = [0x45, 0, 0, 84, 0x12, 0x34, 0x40, 0, 64, 1, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2];
        for ttl in (1..=255u8).rev() {
            let old = u16::from_be_bytes([header[8], header[9]]);
            let before = checksum(&header);
            header[8] = ttl;
            let new = u16::from_be_bytes([header[8], header[9]]);
            assert_eq!(update(before, old, new), checksum(&header), "ttl {ttl}");
        }
    }

    #[test]
    fn a_partial_checksum_is_completed_or_refused() {
        let mut frame = vec![9; 30];
        let addresses = Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let pseudo = fold(addresses.pseudo(17, 20));
        frame[16..18].copy_from_slice(&pseudo.to_be_bytes());
        assert!(complete(&mut frame, 10, 6));
        let whole = addresses.pseudo(17, 20) + sum(&frame[10..]);
        assert_eq!(finish(whole), 0);
        assert!(!complete(&mut frame, 10, 19) && !complete(&mut frame, 31, 0) && !complete(&mut frame, usize::MAX, 1));
    }
}
