//! The path MTU of a queue pair (annex A17; volume 1, section 9.2.7 and table 107).

use super::{AtomicEth, BTH_LEN, ICRC_LEN};
use crate::{ipv6, udp};

/// Bytes around the payload in the longest packets: IPv6, UDP, BTH, AtomicETH and ICRC, and four bytes of XRCETH. Linux
/// reserves the same.
const OVERHEAD: usize = ipv6::HEADER_LEN + udp::HEADER_LEN + BTH_LEN + AtomicEth::LEN + 4 + ICRC_LEN;

/// The maximum payload of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mtu {
    /// 256 bytes.
    Mtu256,
    /// 512 bytes.
    Mtu512,
    /// 1,024 bytes: the largest on Ethernet with 1,500-byte IP packets.
    Mtu1024,
    /// 2,048 bytes.
    Mtu2048,
    /// 4,096 bytes.
    Mtu4096,
}

impl Mtu {
    /// All of them, smallest first.
    pub const ALL: [Mtu; 5] = [Mtu::Mtu256, Mtu::Mtu512, Mtu::Mtu1024, Mtu::Mtu2048, Mtu::Mtu4096];

    /// Returns the size of the longest IP packets of this MTU, in bytes.
    pub fn ip_bytes(self) -> usize {
        self.bytes() + OVERHEAD
    }

    /// Returns the largest MTU whose packets fit into IP packets of this size; none if even the smallest does not fit.
    pub fn for_link(ip_bytes: usize) -> Option<Mtu> {
        Mtu::ALL.into_iter().rev().find(|mtu| mtu.ip_bytes() <= ip_bytes)
    }

    /// Returns the MTU of exactly this size.
    pub fn from_bytes(bytes: usize) -> Option<Mtu> {
        Mtu::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// Returns the size in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        256 << self as usize
    }

    /// Returns the number of packets of a message: at least one.
    #[inline]
    pub const fn packets(self, message_bytes: u32) -> u32 {
        let packets = message_bytes.div_ceil(256 << self as u32);
        if packets == 0 { 1 } else { packets }
    }

    /// Returns the number of payload bytes of packet `index` of a message.
    #[inline]
    pub const fn payload_of(self, index: u32, message_bytes: u32) -> usize {
        let sent = index as u64 * self.bytes() as u64;
        let left = (message_bytes as u64).saturating_sub(sent);
        if left < self.bytes() as u64 { left as usize } else { self.bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_carries_1024_bytes_and_jumbo_frames_4096() {
        let sizes = [0, 351, 352, 1119, 1120, 1500, 4191, 4192, 9000].map(|bytes| Mtu::for_link(bytes).map(Mtu::bytes));
        let expected = [0, 0, 256, 512, 1024, 1024, 2048, 4096, 4096].map(|bytes| Some(bytes).filter(|b| *b > 0));
        assert_eq!(sizes, expected);
        assert!(Mtu::ALL.into_iter().all(|mtu| Mtu::from_bytes(mtu.bytes()) == Some(mtu)));
        assert_eq!(Mtu::from_bytes(9000), None);
    }

    #[test]
    fn the_packets_of_a_message_carry_all_its_bytes() {
        for mtu in Mtu::ALL {
            for bytes in [0, 1, 255, 256, 257, 1024, 1025, 4096, 10_000, u32::MAX] {
                let packets = mtu.packets(bytes);
                assert_eq!(packets, bytes.div_ceil(mtu.bytes() as u32).max(1));
                let first_ones = u64::from(packets - 1) * mtu.bytes() as u64;
                assert_eq!(first_ones + mtu.payload_of(packets - 1, bytes) as u64, bytes.into());
                assert_eq!(mtu.payload_of(packets, bytes), 0);
                assert!(packets == 1 || mtu.payload_of(0, bytes) == mtu.bytes());
            }
        }
    }
}
