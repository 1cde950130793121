//! Reads the INT headers of a scenario's traffic, and collects what sinks report.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use switch::Time;
use toml::de::{DeTable, DeValue};
use tpp::int::{INSTRUCTIONS, fields, values};
use wire::int::{NextProtocol, Packet, Repr, report};
use wire::{ipv4, udp};

use super::results::stack;
use super::run::{Part, Run, port};
use super::{Results, Traffic};
use crate::read::document::Reader;
use crate::topology::Topology;

/// Number of hops that may add metadata.
const HOPS: u8 = 32;

/// The INT headers of some traffic, and the reports of their sinks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntResult {
    /// Packets that carry INT.
    pub inserted: u64,
    /// Packets without INT, because the MTU left no room.
    pub too_long: u64,
    /// Names of the fields of a hop.
    pub fields: Vec<&'static str>,
    /// The reports, in the order of time.
    pub packets: Vec<IntPacket>,
}

/// A packet that a sink has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntPacket {
    /// Time of the report.
    pub at: Time,
    /// Number of the report at its sink, modulo 2^22.
    pub number: u32,
    /// Index of the host that sent the packet, if it is known.
    pub from: Option<usize>,
    /// Index of the host to which it was sent, likewise.
    pub to: Option<usize>,
    /// Whether a hop is missing because of the MTU, or because no hops remained.
    pub is_incomplete: bool,
    /// The values of each hop, the sink's own last; `None` for those that the switch lacks.
    pub hops: Vec<Vec<Option<u64>>>,
}

/// Returns the header of a source for an instruction bitmap.
pub fn header(instructions: u16) -> Repr {
    Repr::new(NextProtocol::Payload { dscp: 0 }, instructions, HOPS)
}

impl Reader<'_> {
    /// Reads the instructions of some traffic: a list of their names.
    pub(super) fn int(&mut self, table: &DeTable<'_>) -> Option<u16> {
        let (value, span) = self.get(table, "int")?;
        let bit = |item: &DeValue<'_>| {
            let (_, bit) = INSTRUCTIONS.iter().find(|(name, _)| item.as_str() == Some(name))?;
            Some(0x8000u16 >> bit)
        };
        let items = value.as_array().map(|items| items.iter().map(|item| bit(item.get_ref())).collect::<Vec<_>>());
        let bits = items.unwrap_or_default().into_iter().try_fold(0, |bits, bit| Some(bits | bit?));
        if bits.is_none_or(|bits| bits == 0) {
            let names: Vec<_> = INSTRUCTIONS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            self.wrong(span, format!("`int` must be a list of {}", names.join(", ")));
        }
        bits.filter(|bits| *bits != 0)
    }
}

/// Returns the INT headers of some traffic; `None` if it has none.
pub fn result(run: &Run, topology: &Topology, traffic: &Traffic, parts: &[&Part]) -> Option<IntResult> {
    let (instructions, number) = (traffic.int?, parts.first()?.traffic);
    let mut result =
        IntResult { fields: fields(instructions).map(|field| field.name).collect(), ..IntResult::default() };
    let senders: std::collections::BTreeSet<usize> = parts.iter().map(|part| part.from).collect();
    for counts in senders.iter().filter_map(|host| Some(stack(run, *host)?.int.counts(port(number)))) {
        result.inserted += counts.inserted;
        result.too_long += counts.too_long;
    }
    let hosts = topology.hosts.iter().enumerate();
    let hosts: BTreeMap<_, _> = hosts.filter_map(|(at, host)| Some((host.address?.0, at))).collect();
    let reports = run.simulation.int_reports();
    result.packets = reports.filter_map(|(at, report)| packet(at, report, port(number), &hosts)).collect();
    result.packets.sort_by_key(|packet| packet.at);
    Some(result)
}

/// Decodes a report of a packet to a port.
fn packet(at: Time, bytes: &[u8], port: u16, hosts: &BTreeMap<Ipv4Addr, usize>) -> Option<IntPacket> {
    let report = report::Packet::new_checked(bytes).ok()?;
    // The length in the IP header is that of the whole packet, and the report has its beginning.
    let ip = ipv4::Packet::new_checked(report.packet()).ok()?;
    let header = ip.payload().get(udp::HEADER_LEN..)?;
    let int = Packet::new_checked(header).ok()?;
    if int.next_protocol() != (NextProtocol::UdpPayload { port }) {
        return None;
    }
    let instructions = int.instructions();
    let hops = int.stack().chunks_exact(int.hop_len()).map(|metadata| values(instructions, metadata));
    let mut hops: Vec<_> = hops.collect();
    hops.reverse();
    hops.push(own(instructions, &report));
    let host = |address| hosts.get(&address).copied();
    let (from, to, number) = (host(ip.source()), host(ip.destination()), report.sequence());
    let is_incomplete = int.is_hops_exceeded() || int.is_mtu_exceeded();
    Some(IntPacket { at, number, from, to, is_incomplete, hops })
}

/// Returns the values of the sink: its number is in the header of the report, and fields that it lacks are left out.
fn own(instructions: u16, report: &report::Packet<&[u8]>) -> Vec<Option<u64>> {
    let known = report.metadata_bits();
    let mut present = values(known, report.metadata()).into_iter();
    let value = |field: &tpp::map::IntField| match field.bit {
        0 => Some(report.node().into()),
        bit if known & 0x8000 >> bit != 0 => present.next().flatten(),
        _ => None,
    };
    fields(instructions).map(value).collect()
}

impl Results {
    /// Returns the INT headers of each traffic that has some, with the traffic's name.
    pub fn int(&self) -> impl Iterator<Item = (&str, &IntResult)> {
        self.traffic.iter().filter_map(|flow| Some((flow.name.as_str(), flow.int.as_ref()?)))
    }
}
