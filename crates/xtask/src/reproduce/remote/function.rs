//! The network functions of the paper: their program, frames and entries, for IPv6.
//!
//! Frames arrive at port 1 and leave by port 2. The last four bytes of a frame are its number in the trace, which no
//! function changes.

use std::fmt::Write;
use std::net::Ipv6Addr;

use wire::ethernet;

use super::super::trace::TracePacket;

/// The program of all functions, which a file with three definitions includes.
pub const PROGRAM: &str = include_str!("../../../programs/remote-tables.p4");

const TYPE_IPV6: u16 = 0x86dd;
const GRE: u8 = 47;
const UDP: u8 = 17;
/// GRE has a key.
const GRE_KEY: u16 = 0x2000;

/// Destination of the flows.
const OUTSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const OUTSIDE_PORT: u16 = 443;

/// Addresses and ports that entries write into packets.
const NEW_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const NEW_PORT: u16 = 4000;

/// Number of tunnels of the VPN gateway.
const TUNNELS: u32 = 1000;

/// A network function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFunction {
    Nat,
    Firewall,
    Balancer,
    VpnGateway,
}

impl NetworkFunction {
    /// The functions in the order of the paper.
    pub const ALL: [NetworkFunction; 4] =
        [NetworkFunction::Nat, NetworkFunction::Firewall, NetworkFunction::Balancer, NetworkFunction::VpnGateway];

    /// Returns the name in tables.
    pub fn title(self) -> &'static str {
        match self {
            NetworkFunction::Nat => "NAT",
            NetworkFunction::Firewall => "stateful firewall",
            NetworkFunction::Balancer => "load balancer",
            NetworkFunction::VpnGateway => "VPN gateway",
        }
    }

    /// Returns the macro that selects the function.
    fn macro_name(self) -> &'static str {
        match self {
            NetworkFunction::Nat => "NAT",
            NetworkFunction::Firewall => "FIREWALL",
            NetworkFunction::Balancer => "BALANCER",
            NetworkFunction::VpnGateway => "VPN_GATEWAY",
        }
    }

    /// Returns a file that includes `program` with a table of this size. Without settings, the table has no
    /// annotation.
    pub fn source(self, program: &str, entries: usize, settings: Option<&str>) -> String {
        let annotation = settings.map_or(String::new(), |settings| format!(" @elastic{settings}"));
        format!(
            "#define {}\n#define ENTRIES {entries}\n#define TABLE_ANNOTATION{annotation}\n#include \"{program}\"\n",
            self.macro_name()
        )
    }

    /// Returns the frame of a packet. It is longer than the packet's size if its headers are.
    pub fn frame(self, packet: &TracePacket) -> Vec<u8> {
        let (source, port) = (client(packet.flow), client_port(packet.flow));
        let (next_header, headers) = match self {
            NetworkFunction::VpnGateway => {
                let gre = [GRE_KEY.to_be_bytes(), TYPE_IPV6.to_be_bytes()].concat();
                let key = (tunnel(packet.flow) << 8).to_be_bytes();
                (GRE, [&gre[..], &key, &ipv6(59, 0, OUTSIDE, source)].concat())
            }
            _ => (UDP, [port.to_be_bytes(), OUTSIDE_PORT.to_be_bytes(), [0, 12], [0, 0]].concat()),
        };
        let least = ethernet::HEADER_LEN + 40 + headers.len() + 4;
        let length = packet.size.max(least);
        let payload = length - ethernet::HEADER_LEN - 40;
        let outer = match self {
            NetworkFunction::VpnGateway => ipv6(next_header, payload, NEW_ADDRESS, OUTSIDE),
            _ => ipv6(next_header, payload, source, OUTSIDE),
        };
        let addresses = [ethernet::Address([2, 0xaa, 0, 0, 0, 1]), ethernet::Address([2, 0, 0, 0, 0, 1])];
        let header = ethernet::Repr { destination: addresses[0], source: addresses[1], ethertype: TYPE_IPV6 };
        let mut frame = header.packet(&[&outer[..], &headers].concat());
        frame.resize(length, 0);
        frame[length - 4..].copy_from_slice(&packet.number.to_be_bytes());
        frame
    }

    /// Returns an entries file with the entries of these flows. It is text, as it may have a million of them.
    pub fn entries(self, flows: impl Iterator<Item = u32>) -> String {
        let mut text = String::from("{\"table_entries\": [");
        for (number, flow) in flows.enumerate() {
            let EntryText { key, action, params } = self.entry(flow);
            let comma = if number > 0 { "," } else { "" };
            write!(
                text,
                "{comma}\n{{\"table\": \"FunctionIngress.flows\", \"match\": {{{key}}}, \"action_name\": \
                 \"FunctionIngress.{action}\", \"action_params\": {{{params}}}}}"
            )
            .expect("text takes everything");
        }
        text + "\n]}\n"
    }

    /// Returns the entry of a flow.
    fn entry(self, flow: u32) -> EntryText {
        let (source, port) = (client(flow), client_port(flow));
        let key = match self {
            NetworkFunction::VpnGateway => {
                format!("\"hdr.gre.tunnel\": {}, \"hdr.inner.dst\": \"{source}\"", tunnel(flow))
            }
            _ => format!(
                "\"hdr.ipv6.next_header\": {UDP}, \"hdr.ipv6.src\": \"{source}\", \"hdr.ipv6.dst\": \"{OUTSIDE}\", \
                 \"hdr.ports.src\": {port}, \"hdr.ports.dst\": {OUTSIDE_PORT}"
            ),
        };
        let new = format!("\"address\": \"{NEW_ADDRESS}\", \"port\": {NEW_PORT}");
        let (action, params) = match self {
            NetworkFunction::Nat => ("translate", new),
            NetworkFunction::Balancer => ("to_server", new),
            NetworkFunction::Firewall => ("allow", String::new()),
            NetworkFunction::VpnGateway => {
                ("to_host", format!("\"host\": \"{NEW_ADDRESS}\", \"tunnel\": {}", tunnel(flow)))
            }
        };
        EntryText { key, action, params }
    }
}

/// An entry: the members of its key and of its parameters as JSON.
struct EntryText {
    key: String,
    action: &'static str,
    params: String,
}

/// Returns the address of a flow's client, which no other flow has.
fn client(flow: u32) -> Ipv6Addr {
    Ipv6Addr::from((0x2001_0db8_u128 << 96) | u128::from(flow))
}

fn client_port(flow: u32) -> u16 {
    1024 + (flow % 60_000) as u16
}

fn tunnel(flow: u32) -> u32 {
    1 + flow % TUNNELS
}

/// Returns an IPv6 header.
fn ipv6(next_header: u8, payload: usize, source: Ipv6Addr, destination: Ipv6Addr) -> [u8; 40] {
    let mut header = [0; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
    header[6..8].copy_from_slice(&[next_header, 64]);
    header[8..24].copy_from_slice(&source.octets());
    header[24..].copy_from_slice(&destination.octets());
    header
}

#[cfg(test)]
mod tests {
    use super::super::super::application::frame_number;
    use super::*;

    fn packet(flow: u32, size: usize) -> TracePacket {
        TracePacket { number: 77, time_ns: 0, flow, before: 0, size, random: 0 }
    }

    #[test]
    fn frames_have_the_number_of_their_packet_and_room_for_their_headers() {
        for (function, least) in NetworkFunction::ALL.into_iter().zip([66, 66, 66, 106]) {
            for (size, expected) in [(64, least), (1514, 1514)] {
                let frame = function.frame(&packet(5, size));
                assert_eq!((frame.len(), frame_number(&frame)), (expected, Some(77)), "{function:?}");
                assert_eq!(usize::from(u16::from_be_bytes([frame[18], frame[19]])), expected - 54, "payload length");
            }
        }
    }

    #[test]
    fn entries_are_json_with_one_key_for_each_flow() {
        for function in NetworkFunction::ALL {
            let text = function.entries([0, 1, 70_000].into_iter());
            let entries: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            let entries = entries["table_entries"].as_array().expect("a list");
            assert_eq!(entries.len(), 3);
            assert_ne!(entries[0]["match"], entries[1]["match"], "{function:?}");
        }
    }

    #[test]
    fn the_annotation_is_left_out_without_settings() {
        let [with, without] = [Some("[cache = \"0\"]"), None].map(|it| NetworkFunction::Nat.source("p.p4", 10, it));
        assert!(with.contains("TABLE_ANNOTATION @elastic[cache = \"0\"]\n"), "{with}");
        assert!(without.contains("TABLE_ANNOTATION\n"), "{without}");
    }
}
