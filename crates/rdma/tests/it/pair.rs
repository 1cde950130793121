//! A requester and a responder, connected without a network.

use rdma::{
    AccessRights, FrameList, FramePath, MemoryKey, MemoryRange, ProtectionDomain, QpEndpoint, QpNumber, Requester,
    RequesterConfig, Responder, ResponderConfig,
};
use rng::SplitMix64;
use switch::Time;
use wire::checksum::Addresses;
use wire::ethernet;
use wire::roce::Mtu;

/// Virtual address of the memory.
pub const BASE: u64 = 0x7f00_0000_0000;
pub const DOMAIN: ProtectionDomain = ProtectionDomain(1);

pub fn path(is_v6: bool, mtu: Mtu) -> FramePath {
    let addresses = match is_v6 {
        false => Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
        true => Addresses::V6([1; 16].into(), [2; 16].into()),
    };
    FramePath::new(ethernet::Address([2, 0, 0, 0, 0, 1]), ethernet::Address([2, 0, 0, 0, 0, 2]), addresses, mtu)
}

/// Both ends, with memory.
pub struct Pair {
    pub rng: SplitMix64,
    pub requester: Requester,
    pub responder: Responder<Vec<u8>>,
    pub key: MemoryKey,
    pub number: QpNumber,
    /// The queue pair at the responder.
    pub remote: QpEndpoint,
    pub path: FramePath,
}

impl Pair {
    pub fn new(mtu: Mtu, bytes: usize) -> Pair {
        Pair::with_configs(mtu, bytes, RequesterConfig::default(), ResponderConfig::default())
    }

    pub fn with_configs(mtu: Mtu, bytes: usize, requester: RequesterConfig, responder: ResponderConfig) -> Pair {
        let (mut rng, path) = (SplitMix64::new(7), path(false, mtu));
        let (mut requester, mut responder) = (Requester::new(requester), Responder::new(responder));
        let memory = (0..bytes).map(|at| (at % 251) as u8).collect();
        let key = responder.register(&mut rng, DOMAIN, AccessRights::ALL, BASE, memory).unwrap();
        let local = requester.open(&mut rng, path).unwrap();
        let remote = responder.accept(&mut rng, DOMAIN, path.reversed(), local).unwrap();
        requester.connect(local.number, remote).unwrap();
        Pair { rng, requester, responder, key, number: local.number, remote, path }
    }

    pub fn range(&self, offset: u64, len: u32) -> MemoryRange {
        MemoryRange { address: BASE + offset, key: self.key, len }
    }

    /// Returns the frames that the requester sends now.
    pub fn requests(&mut self, now: Time) -> Vec<Vec<u8>> {
        let mut frames = FrameList::default();
        self.requester.transmit(now, &mut frames);
        std::iter::from_fn(|| frames.pop()).collect()
    }

    /// Returns the answers of the responder to a frame.
    pub fn answers(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = FrameList::default();
        self.responder.on_frame(frame, &mut frames);
        std::iter::from_fn(|| frames.pop()).collect()
    }

    /// Exchanges frames until there are none.
    pub fn exchange(&mut self, now: Time) {
        loop {
            let requests = self.requests(now);
            if requests.is_empty() {
                return;
            }
            for request in requests {
                for answer in self.answers(&request) {
                    self.requester.on_frame(now, &answer);
                }
            }
        }
    }
}

/// Returns a frame with any bytes in place of BTH and the rest, and a valid integrity check, which replaces the last
/// four of the bytes.
pub fn raw_frame(path: &FramePath, datagram: &[u8]) -> Vec<u8> {
    use wire::{ipv4, ipv6, roce, udp};
    let udp = udp::Repr { source_port: path.source_port, destination_port: roce::PORT };
    let mut datagram = udp.packet(path.addresses, datagram);
    datagram[6..8].fill(0);
    let (ethertype, mut packet) = match path.addresses {
        Addresses::V4(source, destination) => {
            (ethernet::IPV4, ipv4::Repr::new(source, destination, ipv4::UDP).packet(&datagram))
        }
        Addresses::V6(source, destination) => {
            (ethernet::IPV6, ipv6::Repr::new(source, destination, ipv4::UDP).packet(&datagram))
        }
    };
    // Bytes that are too few for RoCE stay as they are.
    let _ = roce::icrc::seal(&mut packet);
    ethernet::Repr { destination: path.destination, source: path.source, ethertype }.packet(&packet)
}

/// Returns the UDP payload of a frame of [`FramePath`]s.
pub fn datagram(frame: &[u8]) -> Option<&[u8]> {
    use wire::{ipv4, ipv6, udp};
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let bytes = &frame[ethernet::HEADER_LEN..];
    let ip_payload = match ethernet.ethertype() {
        ethernet::IPV4 => {
            let packet = ipv4::Packet::new_checked(bytes).ok()?;
            &bytes[packet.header_len()..packet.total_len().min(bytes.len())]
        }
        _ => {
            let packet = ipv6::Packet::new_checked(bytes).ok()?;
            &bytes[ipv6::HEADER_LEN..(ipv6::HEADER_LEN + packet.payload_len()).min(bytes.len())]
        }
    };
    ip_payload.get(udp::HEADER_LEN..)
}
