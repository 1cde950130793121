//! Describes the flows of packets, and the filters that select them.

use std::net::{IpAddr, Ipv4Addr};

use wire::{ethernet, ipv4, ipv6, tcp, tpp, udp};

/// The flow of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketFlow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number.
    pub protocol: u8,
    /// Source and destination port of TCP and UDP; `None` in other packets and in later fragments.
    pub ports: Option<(u16, u16)>,
}

impl PacketFlow {
    /// Returns the flow of an Ethernet payload; `None` if it is not IP.
    pub fn parse(ethertype: u16, payload: &[u8]) -> Option<PacketFlow> {
        let (source, destination, protocol, segment) = match ethertype {
            ethernet::IPV4 => {
                let packet = ipv4::Packet::new_checked(payload).ok()?;
                let segment = (packet.fragment_offset() == 0).then_some(packet.payload().len());
                let segment = segment.map(|len| &payload[packet.header_len()..packet.header_len() + len]);
                (packet.source().into(), packet.destination().into(), packet.protocol(), segment)
            }
            ethernet::IPV6 => {
                let packet = ipv6::Packet::new_checked(payload).ok()?;
                let (protocol, offset, rest) = packet.transport();
                let start = ipv6::HEADER_LEN + packet.payload().len() - rest.len();
                let segment = (offset == 0).then(|| &payload[start..start + rest.len()]);
                (packet.source().into(), packet.destination().into(), protocol, segment)
            }
            _ => return None,
        };
        let ports = segment.and_then(|segment| match protocol {
            ipv4::TCP => tcp::Packet::new_checked(segment).ok().map(|tcp| (tcp.source_port(), tcp.destination_port())),
            ipv4::UDP => udp::Packet::new_checked(segment).ok().map(|udp| (udp.source_port(), udp.destination_port())),
            _ => None,
        });
        Some(PacketFlow { source, destination, protocol, ports })
    }

    /// Returns the flow in the other direction.
    pub fn reverse(self) -> PacketFlow {
        let ports = self.ports.map(|(source, destination)| (destination, source));
        PacketFlow { source: self.destination, destination: self.source, ports, ..self }
    }

    /// Whether it is a standalone program or an echo.
    pub(super) fn is_program(self) -> bool {
        let of_programs = |(source, destination)| source == tpp::UDP_PORT || destination == tpp::UDP_PORT;
        self.protocol == ipv4::UDP && self.ports.is_some_and(of_programs)
    }
}

/// A prefix of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPrefix {
    address: IpAddr,
    bits: u8,
}

impl AddressPrefix {
    /// Creates the prefix with the first `bits` bits of an address, or all if there are fewer.
    pub fn new(address: IpAddr, bits: u8) -> AddressPrefix {
        AddressPrefix { address, bits }
    }

    /// Returns an address with the prefix.
    pub(super) fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the number of its bits, which may exceed those of the address.
    pub(super) fn bits(self) -> u8 {
        self.bits
    }

    /// Whether an address has the prefix. An address of the other IP version has not.
    pub fn contains(self, address: IpAddr) -> bool {
        let starts_with = |first: u128, second: u128, width: u32| {
            let rest = width - width.min(self.bits.into());
            (first ^ second).checked_shr(rest).unwrap_or(0) == 0
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => starts_with(own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => starts_with(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

impl From<Ipv4Addr> for AddressPrefix {
    fn from(address: Ipv4Addr) -> Self {
        AddressPrefix::new(address.into(), 32)
    }
}

/// A condition on packets. `None` matches every value, so the default matches every IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Source address.
    pub source: Option<AddressPrefix>,
    /// Destination address.
    pub destination: Option<AddressPrefix>,
    /// Protocol number.
    pub protocol: Option<u8>,
    /// Source port. Matches no packet without ports, such as a later fragment.
    pub source_port: Option<u16>,
    /// Destination port, likewise.
    pub destination_port: Option<u16>,
}

impl PacketFilter {
    /// Whether a packet of this flow matches.
    pub fn matches(&self, flow: &PacketFlow) -> bool {
        let PacketFilter { source, destination, protocol, source_port, destination_port } = self;
        source.is_none_or(|prefix| prefix.contains(flow.source))
            && destination.is_none_or(|prefix| prefix.contains(flow.destination))
            && protocol.is_none_or(|protocol| protocol == flow.protocol)
            && source_port.is_none_or(|port| flow.ports.is_some_and(|ports| ports.0 == port))
            && destination_port.is_none_or(|port| flow.ports.is_some_and(|ports| ports.1 == port))
    }

    /// Whether an address of the condition is one of IPv6, so that no IPv4 packet matches.
    pub fn names_ipv6(&self) -> bool {
        [self.source, self.destination].into_iter().flatten().any(|prefix| prefix.address.is_ipv6())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_contain_addresses_of_their_version() {
        let contains = |prefix: &str, bits, address: &str| {
            AddressPrefix::new(prefix.parse().unwrap(), bits).contains(address.parse().unwrap())
        };
        assert!(contains("10.0.1.0", 24, "10.0.1.255") && !contains("10.0.1.0", 24, "10.0.2.0"));
        assert!(contains("10.0.1.0", 0, "192.0.2.1") && !contains("10.0.1.0", 0, "2001:db8::1"));
        assert!(contains("2001:db8::", 32, "2001:db8:ffff::1") && !contains("2001:db8::1", 128, "2001:db8::2"));
        assert!(contains("::", 0, "2001:db8::1") && !contains("10.0.1.1", 200, "10.0.1.0"));
    }

    #[test]
    fn no_bytes_panic_and_only_whole_headers_have_ports() {
        let source = Ipv4Addr::new(10, 0, 0, 1);
        let repr = ipv4::Repr::new(source, source, ipv4::UDP);
        let datagram = udp::Repr { source_port: 7, destination_port: 9 }.packet(repr.addresses(), b"payload");
        let packet = repr.packet(&datagram);
        let flow = PacketFlow::parse(ethernet::IPV4, &packet).expect("it is IP");
        assert_eq!((flow.ports, flow.reverse().ports), (Some((7, 9)), Some((9, 7))));
        let filter = PacketFilter { destination_port: Some(9), ..PacketFilter::default() };
        assert!(filter.matches(&flow) && !filter.matches(&flow.reverse()));
        let mut fragment = packet.clone();
        fragment[7] = 1;
        let flow = PacketFlow::parse(ethernet::IPV4, &fragment).expect("it is IP");
        assert!(flow.ports.is_none() && !filter.matches(&flow));
        let ipv6 =
            [&[0x60, 0, 0, 0, 0, 20, 44, 64], &[1; 32][..], &[17, 0, 0, 0, 0, 0, 0, 0], &datagram[..12]].concat();
        let flow = PacketFlow::parse(ethernet::IPV6, &ipv6).expect("it is IPv6");
        assert_eq!(flow.ports, Some((7, 9)));
        for (ethertype, packet) in [(ethernet::IPV4, &packet), (ethernet::IPV6, &ipv6)] {
            for len in 0..packet.len() {
                PacketFlow::parse(ethertype, &packet[..len]);
                for value in [0, 0x0f, 0x7f, 0xff] {
                    let mut damaged = packet.clone();
                    damaged[len] = value;
                    PacketFlow::parse(ethertype, &damaged);
                }
            }
        }
    }
}
