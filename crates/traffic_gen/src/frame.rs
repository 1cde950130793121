//! Generates the frame of a flow.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::ethernet::{self, Address};
use wire::{ipv4, ipv6, tcp, udp, vlan};

use crate::{FlowField, Layer, Spec};
use rng::mix;

/// Returns the EtherType that announces the layer at `at`, or `otherwise` if there is none.
fn announced(spec: &Spec, at: usize, otherwise: u16) -> u16 {
    match spec.layers.get(at) {
        // A tag followed by another tag is a service tag (IEEE 802.1ad).
        Some(Layer::Vlan) if spec.layers.get(at + 1) == Some(&Layer::Vlan) => ethernet::OUTER_VLAN,
        Some(Layer::Vlan) => ethernet::VLAN,
        Some(Layer::Ipv4) => ethernet::IPV4,
        Some(Layer::Ipv6) => ethernet::IPV6,
        _ => otherwise,
    }
}

/// Returns the value of a field in a flow.
fn value(spec: &Spec, flow: u64, field: FlowField) -> u128 {
    for (number, list) in (1u64..).zip(&spec.patterns) {
        let Some(at) = flow.checked_rem(list.len() as u64) else { continue };
        // Flows with the same pattern differ in the values that it leaves open.
        let turn = flow / list.len() as u64;
        if let Some((_, choice)) = list[at as usize].iter().find(|(given, _)| *given == field) {
            return choice.value(mix([spec.seed, number, at]), field.salt(), turn);
        }
    }
    spec.choice(field).value(spec.seed, field.salt(), flow)
}

/// Writes the frame of a flow, `size` bytes long, with `tag` at its end.
///
/// # Panics
/// If the size is smaller than that of the headers.
pub fn write(spec: &Spec, flow: u64, size: usize, tag: &[u8], frame: &mut Vec<u8>) {
    frame.clear();
    match &spec.frame {
        Some(given) => {
            frame.extend_from_slice(given);
            frame.resize(size.max(given.len()), 0);
        }
        None => {
            frame.resize(size, 0);
            let headers = spec.headers_len();
            if !spec.payload.is_empty() {
                frame[headers..].iter_mut().zip(spec.payload.iter().cycle()).for_each(|(byte, given)| *byte = *given);
            }
        }
    }
    if let Some(room) = frame.len().checked_sub(tag.len()).filter(|room| *room >= spec.headers_len()) {
        frame[room..].copy_from_slice(tag);
    }
    // This must precede the checksums that cover it.
    if let Some(vary) = spec.vary
        && let Some(bytes) = frame.get_mut(vary.offset..vary.offset + vary.len)
    {
        bytes.copy_from_slice(&flow.to_be_bytes()[8 - vary.len..]);
    }
    if spec.frame.is_none() {
        headers(spec, flow, frame);
    }
}

fn headers(spec: &Spec, flow: u64, frame: &mut [u8]) {
    let value = |field| value(spec, flow, field);
    let mac = |field| Address(value(field).to_be_bytes()[10..].try_into().expect("six bytes"));
    let plain = value(FlowField::EtherType) as u16;
    let (destination, source) = (mac(FlowField::DestinationMac), mac(FlowField::SourceMac));
    ethernet::Repr { destination, source, ethertype: announced(spec, 0, plain) }.emit(frame);
    let mut at = ethernet::HEADER_LEN;
    let inside = match spec.layers.last() {
        Some(Layer::Udp) => ipv4::UDP,
        Some(Layer::Tcp) => ipv4::TCP,
        _ => value(FlowField::Protocol) as u8,
    };
    let mut addresses = None;
    for (number, layer) in spec.layers.iter().enumerate() {
        let rest = &mut frame[at..];
        let behind = rest.len() - layer.header_len();
        match layer {
            Layer::Vlan => {
                let identifier = value(FlowField::Vlan(number as u8)) as u16;
                let ethertype = announced(spec, number + 1, plain);
                vlan::Repr { priority: 0, drop_eligible: false, identifier, ethertype }.emit(rest);
            }
            Layer::Ipv4 => {
                let address = |field| Ipv4Addr::from(value(field) as u32);
                let repr = ipv4::Repr::new(address(FlowField::Source), address(FlowField::Destination), inside);
                let repr = ipv4::Repr { ttl: value(FlowField::Ttl) as u8, ..repr };
                repr.emit(rest, behind);
                addresses = Some(repr.addresses());
            }
            Layer::Ipv6 => {
                let address = |field| Ipv6Addr::from(value(field));
                let repr = ipv6::Repr::new(address(FlowField::Source), address(FlowField::Destination), inside);
                let repr = ipv6::Repr { hop_limit: value(FlowField::Ttl) as u8, ..repr };
                repr.emit(rest, behind);
                addresses = Some(repr.addresses());
            }
            Layer::Udp | Layer::Tcp => {
                let (source_port, destination_port) =
                    (value(FlowField::SourcePort) as u16, value(FlowField::DestinationPort) as u16);
                let addresses = addresses.expect("IP comes before what it carries");
                match layer {
                    Layer::Udp => udp::Repr { source_port, destination_port }.emit(rest, addresses),
                    _ => {
                        let repr = tcp::Repr {
                            source_port,
                            destination_port,
                            sequence: 1,
                            acknowledgement: 1,
                            flags: tcp::Flags::ACK,
                            window: 65535,
                        };
                        repr.emit(rest, addresses);
                    }
                }
            }
        }
        at += layer.header_len();
    }
}
