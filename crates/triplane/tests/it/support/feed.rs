//! A market data feed on the wire.

use itch_feed::PORT;
use wire::{ethernet, ipv4, udp};

/// Wraps a datagram of the feed in the exchange's frame.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port: PORT, destination_port: PORT };
    let ip = ipv4::Repr::new([10, 0, 0, 1].into(), [239, 1, 1, 1].into(), ipv4::UDP);
    let ethernet = ethernet::Repr {
        destination: "01:00:5e:01:01:01".parse().unwrap(),
        source: "02:00:00:00:00:01".parse().unwrap(),
        ethertype: ethernet::IPV4,
    };
    ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), payload)))
}
