//! The example programs of the paper's applications: their frames, and their entries in a lab of one switch.
//!
//! All frames arrive at port 1 of the switch, and return to their sender. The last four bytes of a frame are its
//! number in the trace, which no program changes.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wire::{ethernet, ipv4, udp};

use super::trace::TracePacket;

/// A program of `examples` that packets of a trace pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    Nat,
    Firewall,
    Balancer,
    Gateway,
    /// Packets of this many VLANs. Each has a sketch, and snapshots are taken at this interval.
    HeavyHitters {
        vlans: u32,
        interval_us: u32,
    },
    FlowCounter,
    /// Requests for keys, with this share of updates in percent.
    KeyValue(u32),
}

/// Heavy hitters as in the paper.
const HEAVY_HITTERS: Application = Application::HeavyHitters { vlans: 1, interval_us: 1_000 };

/// Returns the applications of the paper in its order.
pub fn of_paper() -> Vec<Application> {
    vec![
        Application::Nat,
        Application::Firewall,
        Application::Balancer,
        Application::Gateway,
        HEAVY_HITTERS,
        Application::FlowCounter,
    ]
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 100);

/// Data packets for each signalling packet of the gateway, as in the paper.
const DATA_PER_SIGNALLING: u32 = 17;

const SERVER_PORT: u16 = 80;
const TYPE_FIRST: u16 = 0x88b5;
const TYPE_SECOND: u16 = 0x88b6;
const TYPE_VLAN: u16 = 0x8100;

/// Bytes of a frame's number at its end.
const NUMBER_BYTES: usize = 4;

impl Application {
    /// Returns the name of the paper's application.
    pub fn title(self) -> &'static str {
        match self {
            Application::Nat => "NAT",
            Application::Firewall => "firewall",
            Application::Balancer => "load balancer",
            Application::Gateway => "EPC-SGW",
            Application::HeavyHitters { .. } => "heavy hitters",
            Application::FlowCounter => "Sync-Counter",
            Application::KeyValue(_) => "key-value store",
        }
    }

    /// Returns the directory below `examples`, and the program in it.
    pub fn program(self) -> (&'static str, &'static str) {
        match self {
            Application::Nat => ("nat", "nat.p4"),
            Application::Firewall => ("connection-firewall", "firewall.p4"),
            Application::Balancer => ("sticky-balancer", "balancer.p4"),
            Application::Gateway => ("gateway", "gateway.p4"),
            Application::HeavyHitters { .. } => ("heavy-hitters", "hitters.p4"),
            Application::FlowCounter => ("flow-counter", "counter.p4"),
            Application::KeyValue(_) => ("key-value", "store.p4"),
        }
    }

    /// Returns the program's text with the settings of the application.
    pub fn adjusted(self, text: &str) -> String {
        match self {
            Application::HeavyHitters { interval_us, .. } => {
                let every = text.replace("every = \"1ms\"", &format!("every = \"{interval_us}us\""));
                every.replace("bound = \"10ms\"", "bound = \"1s\"")
            }
            _ => text.to_owned(),
        }
    }

    /// Returns the frame of a packet.
    pub fn frame(self, packet: &TracePacket) -> Vec<u8> {
        let port = client_port(packet.flow);
        let mut frame = match self {
            Application::Nat | Application::Firewall => {
                in_ethernet(ethernet::IPV4, &datagram(packet, SERVER, port, 14))
            }
            Application::Balancer => in_ethernet(ethernet::IPV4, &datagram(packet, SERVICE, port, 14)),
            Application::FlowCounter => {
                let counted = [&[0, 0, 0, 0, 8, 0][..], &datagram(packet, SERVER, port, 20)].concat();
                in_ethernet(TYPE_FIRST, &counted)
            }
            Application::HeavyHitters { vlans, .. } => {
                let tag = [&(1 + packet.flow % vlans.max(1)).to_be_bytes()[2..], &[8, 0]].concat();
                in_ethernet(TYPE_VLAN, &[&tag[..], &datagram(packet, SERVER, port, 18)].concat())
            }
            Application::Gateway => {
                let is_signalling = packet.before.is_multiple_of(DATA_PER_SIGNALLING + 1);
                let user = (packet.flow as u16).to_be_bytes();
                in_ethernet(if is_signalling { TYPE_SECOND } else { TYPE_FIRST }, &[&user[..], &[0; 4]].concat())
            }
            Application::KeyValue(updates) => {
                let is_update = packet.random % 100 < u64::from(updates);
                let value = (packet.random >> 32) as u32;
                let key = (packet.flow as u16).to_be_bytes();
                let request = [&[u8::from(is_update)][..], &key, &value.to_be_bytes(), &[0; 4]].concat();
                in_ethernet(TYPE_SECOND, &request)
            }
        };
        frame.resize(packet.size, 0);
        let end = frame.len() - NUMBER_BYTES;
        frame[end..].copy_from_slice(&packet.number.to_be_bytes());
        frame
    }

    /// Returns the switch's entries. A program without annotations gets those of all flows in advance, as if a
    /// controller had written them.
    ///
    /// # Errors
    /// If the example's own file cannot be read.
    pub fn entries(self, is_plain: bool, flows: usize) -> Result<Value> {
        let (directory, _) = self.program();
        let mut entries = match self {
            Application::Nat => example_entries(directory, "nat.json")?,
            Application::Firewall => example_entries(directory, "firewall.json")?,
            Application::HeavyHitters { .. } => example_entries(directory, "hitters.json")?,
            Application::FlowCounter => example_entries(directory, "counter.json")?,
            Application::Balancer => {
                let mut entries = example_entries(directory, "balancer.json")?;
                // All servers are reached by port 2.
                for entry in entries.iter_mut().filter(|entry| entry["table"] == "BalanceIngress.routes") {
                    if entry["action_params"]["port"] != 1 {
                        entry["action_params"]["port"] = json!(2);
                    }
                }
                entries
            }
            Application::Gateway | Application::KeyValue(_) => Vec::new(),
        };
        if is_plain {
            entries.extend((0..flows as u32).filter_map(|flow| self.flow_entry(flow)));
        }
        Ok(json!({ "table_entries": entries }))
    }

    /// Returns the entry of a flow.
    fn flow_entry(self, flow: u32) -> Option<Value> {
        let (port, udp) = (client_port(flow), ipv4::UDP);
        Some(match self {
            Application::Nat => json!({
                "table": "NatIngress.outbound", "action_name": "NatIngress.translate_source",
                "match": { "hdr.ipv4.protocol": udp, "hdr.ipv4.src": CLIENT.to_string(), "meta.src_port": port },
                "action_params": { "port": port },
            }),
            Application::Firewall => json!({
                "table": "FirewallIngress.inside", "action_name": "FirewallIngress.allow",
                "match": {
                    "meta.flow.protocol": udp, "meta.flow.ip_inside": CLIENT.to_string(),
                    "meta.flow.ip_outside": SERVER.to_string(), "meta.flow.port_inside": port,
                    "meta.flow.port_outside": SERVER_PORT,
                },
                "action_params": {},
            }),
            Application::Balancer => json!({
                "table": "BalanceIngress.flows", "action_name": "BalanceIngress.use",
                "match": {
                    "hdr.ipv4.protocol": udp, "hdr.ipv4.src": CLIENT.to_string(),
                    "hdr.ipv4.dst": SERVICE.to_string(), "hdr.ports.src": port, "hdr.ports.dst": SERVER_PORT,
                },
                "action_params": { "server": flow % 3 },
            }),
            Application::Gateway
            | Application::HeavyHitters { .. }
            | Application::FlowCounter
            | Application::KeyValue(_) => return None,
        })
    }
}

/// Returns the number of a frame in its trace.
pub fn frame_number(frame: &[u8]) -> Option<u32> {
    frame.last_chunk::<NUMBER_BYTES>().map(|bytes| u32::from_be_bytes(*bytes))
}

fn client_port(flow: u32) -> u16 {
    1024 + (flow % 60_000) as u16
}

fn example_entries(directory: &str, file: &str) -> Result<Vec<Value>> {
    let path = crate::root().join("examples").join(directory).join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    Ok(value["table_entries"].as_array().cloned().unwrap_or_default())
}

fn in_ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let source = ethernet::Address([2, 0, 0, 0, 0, 1]);
    let destination = ethernet::Address([2, 0xaa, 0, 0, 0, 1]);
    ethernet::Repr { destination, source, ethertype }.packet(payload)
}

/// Returns an IPv4 packet that fills the frame after this many bytes, without UDP checksum, since the frame's number
/// is written into it.
fn datagram(packet: &TracePacket, to: Ipv4Addr, port: u16, before: usize) -> Vec<u8> {
    let length = packet.size - before - ipv4::HEADER_LEN;
    let mut datagram = vec![0; length];
    datagram[..2].copy_from_slice(&port.to_be_bytes());
    datagram[2..4].copy_from_slice(&SERVER_PORT.to_be_bytes());
    datagram[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    debug_assert!(length >= udp::HEADER_LEN + NUMBER_BYTES, "the smallest frame has room");
    ipv4::Repr::new(CLIENT, to, ipv4::UDP).packet(&datagram)
}

#[cfg(test)]
mod tests {
    use super::super::trace::{FrameSizes, TraceShape};
    use super::*;

    fn packets(sizes: FrameSizes) -> Vec<TracePacket> {
        TraceShape { packets: 2000, flows: 20, zipf: 1.0, sizes, rate_bps: 1e9, seed: 1 }.packets()
    }

    #[test]
    fn frames_have_the_size_and_number_of_their_packet() {
        for packet in packets(FrameSizes::Mixed).iter().chain(&packets(FrameSizes::Smallest)) {
            for application in of_paper().into_iter().chain([HEAVY_HITTERS, Application::KeyValue(50)]) {
                let frame = application.frame(packet);
                assert_eq!((frame.len(), frame_number(&frame)), (packet.size, Some(packet.number)));
            }
        }
    }

    #[test]
    fn one_packet_in_18_of_a_user_is_signalling() {
        let packets = packets(FrameSizes::Smallest);
        let ethertypes = packets.iter().filter(|packet| packet.flow == 0).map(|packet| {
            let frame = Application::Gateway.frame(packet);
            u16::from_be_bytes([frame[12], frame[13]])
        });
        let signalling: Vec<bool> = ethertypes.map(|ethertype| ethertype == TYPE_SECOND).collect();
        assert!(signalling[0] && signalling[18] && !signalling[1..18].contains(&true));
    }

    #[test]
    fn the_interval_of_snapshots_is_as_asked() {
        let application = Application::HeavyHitters { vlans: 1, interval_us: 500 };
        let text = "@resilient[group = \"s\", every = \"1ms\", bound = \"10ms\"] x";
        assert_eq!(application.adjusted(text), "@resilient[group = \"s\", every = \"500us\", bound = \"1s\"] x");
        assert_eq!(Application::Nat.adjusted(text), text);
    }

    #[test]
    fn the_share_of_updates_is_as_asked() {
        let packets = packets(FrameSizes::Smallest);
        for (percent, range) in [(0, 0..=0), (50, 900..=1100), (100, 2000..=2000)] {
            let updates = packets.iter().filter(|packet| Application::KeyValue(percent).frame(packet)[14] == 1);
            assert!(range.contains(&updates.count()), "{percent} %");
        }
    }
}
