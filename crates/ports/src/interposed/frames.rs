//! Decides which frames pass between the stack and the wire.

use wire::{ethernet, tpp};

/// The frames of a host that pass through a program between its stack and an interface: untagged IPv4 and ARP.
#[derive(Clone, Copy, Debug)]
pub struct InterposedFrames {
    mac: [u8; 6],
}

impl InterposedFrames {
    /// Creates the rules for an interface with this Ethernet address.
    pub fn new(mac: [u8; 6]) -> InterposedFrames {
        InterposedFrames { mac }
    }

    /// Whether a frame of the stack goes to the wire. IPv6 does not: it leaves at the interface itself.
    pub fn is_sent(&self, frame: &[u8]) -> bool {
        matches!(ethertype(frame), Some(ethernet::IPV4 | ethernet::ARP | tpp::ETHERTYPE))
    }

    /// Whether a frame of the wire goes to the program. A promiscuous interface also sees frames to other hosts, which
    /// are not for this one, and neither are the programs in them.
    pub fn is_received(&self, frame: &[u8]) -> bool {
        let is_own = frame.starts_with(&self.mac) || self.is_to_group(frame);
        is_own && matches!(ethertype(frame), Some(ethernet::IPV4 | ethernet::ARP | tpp::ETHERTYPE))
    }

    /// Whether a frame without program may carry one: only IPv4 does. Another host could hide other frames behind a
    /// program, such as advertisements of IPv6 routers; the stack must not receive them.
    pub fn is_carrier(&self, frame: &[u8]) -> bool {
        ethertype(frame) == Some(ethernet::IPV4)
    }

    /// Whether a frame is to a multicast or broadcast address.
    pub fn is_to_group(&self, frame: &[u8]) -> bool {
        frame.first().is_some_and(|first| first & 1 != 0)
    }
}

fn ethertype(frame: &[u8]) -> Option<u16> {
    frame.get(12..14).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];

    fn frame(to: [u8; 6], ethertype: u16) -> Vec<u8> {
        [&to[..], &[2; 6], &ethertype.to_be_bytes(), &[0; 46]].concat()
    }

    #[test]
    fn only_untagged_ipv4_arp_and_programs_pass_through() {
        let frames = InterposedFrames::new(MAC);
        let passed = |is_passed: &dyn Fn(&[u8]) -> bool| {
            [0x0800, 0x0806, 0x6666, 0x86dd, 0x8100, 0x88cc].map(|ethertype| is_passed(&frame(MAC, ethertype)))
        };
        assert_eq!(passed(&|frame| frames.is_sent(frame)), [true, true, true, false, false, false]);
        assert_eq!(passed(&|frame| frames.is_received(frame)), [true, true, true, false, false, false]);
        assert_eq!(passed(&|frame| frames.is_carrier(frame)), [true, false, false, false, false, false]);
        for len in 0..14 {
            let short = &frame(MAC, 0x0800)[..len];
            assert!(!frames.is_sent(short) && !frames.is_received(short) && !frames.is_carrier(short));
        }
    }

    #[test]
    fn frames_to_other_hosts_are_not_received() {
        let frames = InterposedFrames::new(MAC);
        for (to, is_received) in
            [(MAC, true), ([0xff; 6], true), ([1, 0, 0x5e, 0, 0, 1], true), ([2, 0, 0, 0, 1, 2], false)]
        {
            for ethertype in [0x0800, 0x0806, 0x6666] {
                assert_eq!(frames.is_received(&frame(to, ethertype)), is_received, "{to:?} {ethertype:#x}");
            }
            assert!(frames.is_sent(&frame(to, 0x0800)));
        }
    }
}
