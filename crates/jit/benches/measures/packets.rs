//! Packets, and what is done to them by hand.

use rng::SplitMix64;

pub const ETHERNET: usize = 14;
pub const IPV4: usize = 20;

/// The Internet checksum of a header (RFC 1071).
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

/// What a checksum becomes when a word that it covers changes (RFC 1624, equation 3).
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(((sum >> 16) + sum) as u16)
}

/// An IPv4 header that is whole, without options and with the right checksum.
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

/// Four bytes of a header.
#[inline]
pub fn word(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"))
}

/// Two bytes of a header.
#[inline]
pub fn half(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// A MAC address as the number that tables know it by.
#[inline]
pub fn mac(bytes: &[u8]) -> u64 {
    let mut mac = [0; 8];
    mac[2..].copy_from_slice(&bytes[..6]);
    u64::from_be_bytes(mac)
}

/// The bytes of a MAC address.
pub fn mac_bytes(mac: u64) -> [u8; 6] {
    mac.to_be_bytes()[2..].try_into().expect("six bytes")
}

/// An IPv4 packet with random MAC addresses.
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
