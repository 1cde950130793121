//! A layer 3 router with 100,000 prefixes, and variants that copy packets or route them twice.

use bits::Bits;
use engine::TableEntry;
use ir::KeyValue;
use rng::SplitMix64;
use switch::{Egress, Frame, FrameMut, MirrorSession, MulticastGroup, PortId};
use tables::{FieldKind, KeyLayout, Lpm, MISS, PackedLookup};

use super::{ByHand, Comparison, Counters};
use crate::load::{self, Loaded};
use crate::measure::{BATCH, Slot};

const PREFIXES: usize = 100_000;
const FRAMES: usize = 1 << 16;
/// Number of ports to which routes lead, and the port of the monitor.
const PORTS: u32 = 500;
const MONITOR: u32 = 505;
const ETHERNET: usize = 14;
const IPV4: usize = 20;

struct NextHop {
    destination: [u8; 6],
    source: [u8; 6],
    port: u16,
}

/// What a router does with the packets that have a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Forward,
    /// Also sends the packet as it came to a monitor.
    Mirror,
    /// Sends it to the next hop's port and the two ports after it, with an address of the port as source.
    Multicast,
    /// Routes it twice.
    Recirculate,
}

impl Variant {
    /// Returns a statement of the router's source, and its replacement.
    fn change(self) -> (&'static str, &'static str) {
        const EGRESS: &str = "inout standard_metadata_t standard_metadata) { apply {} }";
        match self {
            Variant::Forward => ("", ""),
            Variant::Mirror => {
                ("            routes.apply();", "            routes.apply();\n            clone(CloneType.I2E, 1);")
            }
            Variant::Multicast => (
                EGRESS,
                "inout standard_metadata_t standard_metadata) { apply {
                    hdr.ethernet.src = 32w0x02aabbcc ++ (bit<16>) standard_metadata.egress_port; } }",
            ),
            Variant::Recirculate => (
                EGRESS,
                "inout standard_metadata_t standard_metadata) { apply {
                    if (hdr.ipv4.ttl == 63) { recirculate_preserving_field_list(0); } } }",
            ),
        }
    }
}

struct Router {
    variant: Variant,
    routes: Lpm,
    hops: Vec<NextHop>,
    /// Members of each multicast group.
    groups: Vec<[u32; 3]>,
    counters: Counters,
}

pub fn comparisons() -> impl Iterator<Item = Comparison> {
    let all = [
        ("router, 100,000 prefixes", Variant::Forward, 1.25),
        ("router that mirrors every packet", Variant::Mirror, 3.0),
        ("router that sends every packet to three ports", Variant::Multicast, 3.0),
        ("router that routes every packet twice", Variant::Recirculate, 3.0),
    ];
    all.into_iter().map(|(name, variant, bound)| Comparison { name, bound, prepare: Box::new(move || sides(variant)) })
}

/// Makes a router for both sides; prefix lengths resemble those of the Internet: half of them are 24 bits long.
fn sides(variant: Variant) -> (Loaded, Box<dyn ByHand>) {
    let mut source = load::source("crates/jit/benches/programs/l3.p4");
    let (old, new) = variant.change();
    assert!(source.contains(old), "the router has the statement");
    source = source.replace(old, new);
    if variant == Variant::Multicast {
        source = source
            .replace("standard_metadata.egress_spec = port;", "standard_metadata.mcast_grp = 1 + (bit<16>) port;");
    }
    let program = load::compiled("crates/jit/benches/programs/l3.p4", &source);
    let mut switch = load::switch(&program);
    let groups: Vec<[u32; 3]> = (0..PORTS).map(|port| [0, 1, 2].map(|next| (port + next) % PORTS)).collect();
    for (group, ports) in (1..).zip(&groups) {
        assert!(switch.set_multicast_group(group, Some(MulticastGroup::of_ports(*ports))));
    }
    assert!(switch.set_mirror_session(1, Some(MirrorSession::to_port(MONITOR))));
    let (table, routes) = program.tables.iter().next().expect("the router has a table");
    let action = routes.actions[0].action;
    let mut rng = SplitMix64::new(2);
    let mut lpm = Lpm::new(&KeyLayout::new([(32, FieldKind::Prefix)]));
    let (mut hops, mut addresses) = (Vec::new(), Vec::new());
    while hops.len() < PREFIXES {
        let length = [16, 18, 20, 22, 24, 24, 24, 28][rng.below(8) as usize];
        let prefix = (rng.next_u64() as u32) >> (32 - length) << (32 - length);
        let (destination, source) = (rng.next_u64() >> 16, rng.next_u64() >> 16);
        let port = rng.below(u64::from(PORTS)) as u16;
        let key = KeyValue::Lpm(Bits::new(u128::from(prefix), 32), length);
        let args = [(destination, 48), (source, 48), (port.into(), 9)];
        let args = args.map(|(value, width)| Bits::new(u128::from(value), width)).to_vec();
        if switch.objects_mut().insert(table, TableEntry::new(vec![key], 0, action, args)).is_ok() {
            lpm.insert(&[u64::from(prefix)], length, hops.len() as u32);
            let [destination, source] =
                [destination, source].map(|mac| mac.to_be_bytes()[2..].try_into().expect("six"));
            hops.push(NextHop { destination, source, port });
            addresses.push(prefix | rng.next_u64() as u32 >> length);
        }
    }
    // One packet in 32 has no route, most likely.
    let frames = (0..FRAMES).map(|number| {
        let known = addresses[rng.below(addresses.len() as u64) as usize];
        let destination = if number % BATCH == 7 { rng.next_u64() as u32 } else { known };
        (1, packet(&mut rng, destination))
    });
    let loaded = Loaded { frames: frames.collect(), switch };
    (loaded, Box::new(Router { variant, routes: lpm, hops, groups, counters: Counters::default() }))
}

/// Returns an IPv4 packet of 64 bytes.
fn packet(rng: &mut SplitMix64, destination: u32) -> Vec<u8> {
    let mut packet = vec![0u8; 64];
    packet[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
    packet[8..12].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
    packet[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 50]);
    packet[22..24].copy_from_slice(&[64, 17]);
    packet[26..30].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
    packet[30..34].copy_from_slice(&destination.to_be_bytes());
    let sum = checksum(packet[14..34].try_into().expect("a header"));
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Computes the Internet checksum of a header (RFC 1071).
fn checksum(header: &[u8; IPV4]) -> u16 {
    let words = header.chunks_exact(4).map(|word| u64::from(u32::from_ne_bytes(word.try_into().expect("four bytes"))));
    let sum: u64 = words.sum();
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    u16::from_be(!(sum as u16))
}

/// Decrements TTL and updates the checksum (RFC 1624, equation 3).
fn decrement_ttl(ip: &mut [u8; IPV4]) {
    let old = u16::from_be_bytes([ip[8], ip[9]]);
    ip[8] -= 1;
    let sum = u32::from(!u16::from_be_bytes([ip[10], ip[11]])) + u32::from(!old) + u32::from(old - 0x100);
    let sum = (sum >> 16) + (sum & 0xffff);
    ip[10..12].copy_from_slice(&(!(((sum >> 16) + sum) as u16)).to_be_bytes());
}

/// Returns the destination of a packet that is routed.
fn destination(packet: &[u8]) -> Option<u32> {
    let (ethernet, rest) = packet.split_first_chunk::<ETHERNET>()?;
    let ip = rest.first_chunk::<IPV4>()?;
    let is_routed = ethernet[12..14] == [8, 0] && ip[0] == 0x45 && checksum(ip) == 0 && ip[8] > 1;
    is_routed.then(|| u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]))
}

impl Router {
    /// Routes the frames that have a port in `ports`, and stores their next ports there; those without a route are
    /// dropped. `see` gets every frame that is looked up, with its index.
    fn route(
        &mut self,
        frames: &mut [Slot],
        ports: &mut [Option<u16>; BATCH],
        mut see: impl FnMut(&mut Counters, usize, &[u8]),
    ) {
        let (mut keys, mut found, mut has_key) = ([0; BATCH], [MISS; BATCH], [false; BATCH]);
        for (number, frame) in frames.iter().enumerate() {
            if let Some(destination) = ports[number].and_then(|_| destination(frame.bytes())) {
                (keys[number], has_key[number]) = (u64::from(destination), true);
                see(&mut self.counters, number, frame.bytes());
            }
        }
        self.routes.lookup_batch(&keys[..frames.len()], &mut found[..frames.len()]);
        for found in &found[..frames.len()] {
            tables::prefetch(&self.hops, *found as usize);
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            if ports[index].is_none() {
                continue;
            }
            let hop = self.hops.get(found[index] as usize).filter(|_| has_key[index]);
            ports[index] = hop.map(|hop| hop.port);
            let Some(hop) = hop else {
                self.counters.dropped += 1;
                continue;
            };
            let (room, start) = frame.headroom();
            let Some((ethernet, rest)) = room[start..].split_first_chunk_mut::<ETHERNET>() else { continue };
            ethernet[..6].copy_from_slice(&hop.destination);
            ethernet[6..12].copy_from_slice(&hop.source);
            decrement_ttl(rest.first_chunk_mut().expect("a packet with a route has a header"));
        }
    }

    /// Sends a frame to all members of a group; the last copy is the frame itself.
    fn multicast(&mut self, group: u16, (index, frame): (usize, &mut Slot), left: &mut Vec<Egress>) {
        let (room, start) = frame.headroom();
        let [others @ .., last] = &self.groups[usize::from(group)];
        for port in others {
            set_source(&mut room[start..], *port);
            let copy = Frame { port: PortId(*port), data: room[start..].to_vec() };
            self.counters.send(*port, copy.data.len());
            left.push(Egress::Owned(copy));
        }
        set_source(&mut room[start..], *last);
        self.counters.send(*last, room.len() - start);
        left.push(Egress::InPlace { index, port: PortId(*last) });
    }
}

/// Writes the address of a port as source.
fn set_source(frame: &mut [u8], port: u32) {
    frame[6..12].copy_from_slice(&(0x02aa_bbcc_0000 | u64::from(port)).to_be_bytes()[2..]);
}

impl ByHand for Router {
    fn run(&mut self, port: PortId, frames: &mut [Slot], left: &mut Vec<Egress>) {
        self.counters.receive(port, frames);
        let mut ports = [Some(0); BATCH];
        let mut clones: [Option<Frame>; BATCH] = [const { None }; BATCH];
        match self.variant {
            Variant::Mirror => self.route(frames, &mut ports, |counters, index, bytes| {
                counters.send(MONITOR, bytes.len());
                clones[index] = Some(Frame { port: PortId(MONITOR), data: bytes.to_vec() });
            }),
            _ => self.route(frames, &mut ports, |_, _, _| {}),
        }
        if self.variant == Variant::Recirculate {
            ports[..frames.len()].iter().flatten().for_each(|port| self.counters.queue(u32::from(*port)));
            self.route(frames, &mut ports, |_, _, _| {});
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            left.extend(clones[index].take().map(Egress::Owned));
            let Some(port) = ports[index] else { continue };
            if self.variant == Variant::Multicast {
                self.multicast(port, (index, frame), left);
                continue;
            }
            self.counters.send(port.into(), frame.bytes().len());
            left.push(Egress::InPlace { index, port: PortId(port.into()) });
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
