//! Packets, and hand-written operations on them.

use rng::SplitMix64;

pub const ETHERNET: usize = 14;
pub const IPV4: usize = 20;

/// Computes the Internet checksum of a header (RFC 1071).
pub fn checksum(header: &[u8; IPV4]) -> u16 {
    let mut sum = 0u64;
    for word in header.chunks_exact(4) {
        sum += u64::from(u32::from_ne_bytes(word.try_into().expect("four bytes")));
    }
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    u16::from_be(!(sum as u16))
}

/// Updates a checksum after a change of a word that it covers (RFC 1624, equation 3).
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(((sum >> 16) + sum) as u16)
}

/// Returns Ethernet header, IPv4 header and rest of a packet with a complete IPv4 header, without options and with a
/// correct checksum.
#[inline]
pub fn checked_ipv4(packet: &mut [u8]) -> Option<(&mut [u8; ETHERNET], &mut [u8; IPV4], &mut [u8])> {
    let (ethernet, rest) = packet.split_first_chunk_mut::<ETHERNET>()?;
    if ethernet[12..14] != [8, 0] {
        return None;
    }
    let (ip, rest) = rest.split_first_chunk_mut::<IPV4>()?;
    (ip[0] == 0x45 && checksum(ip) == 0).then_some((ethernet, ip, rest))
}

/// Decrements TTL and updates the checksum.
#[inline]
pub fn decrement_ttl(ip: &mut [u8; IPV4]) {
    let old = u16::from_be_bytes([ip[8], ip[9]]);
    ip[8] -= 1;
    let sum = updated(u16::from_be_bytes([ip[10], ip[11]]), old, old - 0x100);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns four bytes of a header as a number.
#[inline]
pub fn word(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"))
}

/// Returns two bytes of a header as a number.
#[inline]
pub fn half(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Returns a MAC address as the number that tables use as key.
#[inline]
pub fn mac(bytes: &[u8]) -> u64 {
    let mut mac = [0; 8];
    mac[2..].copy_from_slice(&bytes[..6]);
    u64::from_be_bytes(mac)
}

/// Returns the bytes of a MAC address.
pub fn mac_bytes(mac: u64) -> [u8; 6] {
    mac.to_be_bytes()[2..].try_into().expect("six bytes")
}

/// Builds an IPv4 packet with random MAC addresses.
pub fn ipv4(rng: &mut SplitMix64, length: usize, addresses: [u32; 2], protocol: u8, ports: [u16; 2]) -> Vec<u8> {
    let mut packet = vec![0u8; length];
    packet[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
    packet[8..12].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
    packet[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    packet[16..18].copy_from_slice(&((length - ETHERNET) as u16).to_be_bytes());
    packet[22..24].copy_from_slice(&[64, protocol]);
    packet[26..30].copy_from_slice(&addresses[0].to_be_bytes());
    packet[30..34].copy_from_slice(&addresses[1].to_be_bytes());
    let sum = checksum(packet[14..34].try_into().expect("a header"));
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet[34..36].copy_from_slice(&ports[0].to_be_bytes());
    packet[36..38].copy_from_slice(&ports[1].to_be_bytes());
    packet[38..40].copy_from_slice(&((length - ETHERNET - IPV4) as u16).to_be_bytes());
    packet[40..42].copy_from_slice(&(rng.next_u64() as u16 | 1).to_be_bytes());
    packet
}
