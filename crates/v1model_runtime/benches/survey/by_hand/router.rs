//! A layer 3 router with 100,000 prefixes.

use bits::Bits;
use engine::TableEntry;
use ir::KeyValue;
use rng::SplitMix64;
use switch::{Egress, FrameMut, PortId};
use tables::{FieldKind, KeyLayout, Lpm, MISS, PackedLookup};

use super::{ByHand, Comparison, Counters};
use crate::load::{self, Loaded};
use crate::measure::{BATCH, Slot};

const PREFIXES: usize = 100_000;
const FRAMES: usize = 1 << 16;
const ETHERNET: usize = 14;
const IPV4: usize = 20;

struct NextHop {
    destination: [u8; 6],
    source: [u8; 6],
    port: u16,
}

struct Router {
    routes: Lpm,
    hops: Vec<NextHop>,
    counters: Counters,
}

/// Routes for both sides; prefix lengths resemble those of the Internet: half of them are 24 bits long.
pub fn comparison() -> Comparison {
    let program = load::program("crates/jit/benches/programs/l3.p4");
    let mut switch = load::switch(&program);
    let (table, routes) = program.tables.iter().next().expect("the router has a table");
    let action = routes.actions[0].action;
    let mut rng = SplitMix64::new(2);
    let mut lpm = Lpm::new(&KeyLayout::new([(32, FieldKind::Prefix)]));
    let (mut hops, mut addresses) = (Vec::new(), Vec::new());
    while hops.len() < PREFIXES {
        let length = [16, 18, 20, 22, 24, 24, 24, 28][rng.below(8) as usize];
        let prefix = (rng.next_u64() as u32) >> (32 - length) << (32 - length);
        let (destination, source) = (rng.next_u64() >> 16, rng.next_u64() >> 16);
        let port = rng.below(500) as u16;
        let key = KeyValue::Lpm(Bits::new(u128::from(prefix), 32), length);
        let args = [(destination, 48), (source, 48), (port.into(), 9)];
        let args = args.map(|(value, width)| Bits::new(u128::from(value), width)).to_vec();
        if switch.objects_mut().insert(table, TableEntry::new(vec![key], 0, action, args)).is_ok() {
            lpm.insert(&[u64::from(prefix)], length, hops.len() as u32);
            let [destination, source] = [destination, source].map(|mac| mac.to_be_bytes()[2..].try_into().expect("six"));
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
    let by_hand = Box::new(Router { routes: lpm, hops, counters: Counters::default() });
    Comparison { name: "router, 100,000 prefixes", loaded, by_hand, bound: 1.25 }
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

impl ByHand for Router {
    fn run(&mut self, port: PortId, frames: &mut [Slot], left: &mut Vec<Egress>) {
        self.counters.receive(port, frames);
        let (mut keys, mut found, mut has_key) = ([0; BATCH], [MISS; BATCH], [false; BATCH]);
        for (number, frame) in frames.iter().enumerate() {
            if let Some(destination) = destination(frame.bytes()) {
                (keys[number], has_key[number]) = (u64::from(destination), true);
            }
        }
        self.routes.lookup_batch(&keys[..frames.len()], &mut found[..frames.len()]);
        for found in &found[..frames.len()] {
            tables::prefetch(&self.hops, *found as usize);
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            let Some(hop) = self.hops.get(found[index] as usize).filter(|_| has_key[index]) else {
                self.counters.dropped += 1;
                continue;
            };
            let (room, start) = frame.headroom();
            let bytes = room.len() - start;
            let Some((ethernet, rest)) = room[start..].split_first_chunk_mut::<ETHERNET>() else { continue };
            ethernet[..6].copy_from_slice(&hop.destination);
            ethernet[6..12].copy_from_slice(&hop.source);
            decrement_ttl(rest.first_chunk_mut().expect("a packet with a route has a header"));
            self.counters.send(hop.port.into(), bytes);
            left.push(Egress::InPlace { index, port: PortId(hop.port.into()) });
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
