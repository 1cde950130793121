//! Adding and removing headers.

use bits::Bits;
use engine::Objects;
use ir::KeyValue;
use rng::SplitMix64;
use tables::{Exact, FieldKind, KeyLayout, Lpm, MISS, PackedLookup};

use crate::lab::{self, BATCH, ByHand, Case, NOWHERE, Output};
use crate::packets::{self, ETHERNET, IPV4};

const ENTRIES: usize = 1000;
const ROOM: usize = 64;
/// Size in bytes of the outer Ethernet, IPv4, UDP and VXLAN headers.
const OUTER: usize = 50;

/// Pushes 12 bytes after the UDP header.
pub fn telemetry() -> (Case, impl ByHand) {
    let program = lab::p4_program("int.p4");
    let table = lab::table(&program, "watched");
    let mut objects = Objects::new(&program);
    let mut rng = SplitMix64::new(7);
    let mut watched = Lpm::new(&KeyLayout::new([(32, FieldKind::Prefix)]));
    let (mut nodes, mut prefixes) = (Vec::new(), Vec::new());
    while nodes.len() < ENTRIES {
        let prefix = rng.next_u64() as u32 & !0xff;
        let (node, port) = (rng.next_u64() as u32, rng.below(500) as u16);
        let keys = vec![KeyValue::Lpm(Bits::new(u128::from(prefix), 32), 24)];
        let args = [(u128::from(node), 32), (u128::from(port), 9)];
        if objects.insert(table, lab::entry(&program, table, keys, &args)).is_ok() {
            watched.insert(&[u64::from(prefix)], 24, nodes.len() as u32);
            nodes.push((node, port));
            prefixes.push(prefix);
        }
    }
    let mut bytes = Vec::new();
    for _ in 0..(1 << 16) {
        let destination = prefixes[rng.below(ENTRIES as u64) as usize] | 7;
        let ports = [rng.next_u64() as u16, rng.next_u64() as u16];
        bytes.extend(packets::ipv4(&mut rng, 64, [1, destination], 17, ports));
    }
    let load = lab::Load::new(bytes, ROOM);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut who, mut found) = ([0; BATCH], [0u8; BATCH], [MISS; BATCH]);
        let mut count = 0;
        for (number, buffer) in batch.iter_mut().enumerate() {
            sent[number] = (ROOM, NOWHERE);
            if let Some((_, ip, rest)) = packets::checked_ipv4(&mut buffer[ROOM..])
                && ip[9] == 17
                && rest.len() >= 8
            {
                keys[count] = u64::from(packets::word(ip, 16));
                who[count] = number as u8;
                count += 1;
            }
        }
        watched.lookup_batch(&keys[..count], &mut found[..count]);
        for (number, found) in who[..count].iter().zip(found) {
            let number = usize::from(*number);
            if let Some((node, port)) = nodes.get(found as usize)
                && let Some(start) = push(&mut batch[number], *node, *port)
            {
                sent[number] = (start, *port);
            }
        }
    };
    (Case { program, objects, load, ingress_port: 3 }, by_hand)
}

/// Pushes the telemetry header. Returns the new start of the packet.
#[inline]
fn push(buffer: &mut [u8], node: u32, port: u16) -> Option<usize> {
    let start = ROOM.checked_sub(12)?;
    let mut headers: [u8; ETHERNET + IPV4 + 8] = *buffer[ROOM..].first_chunk()?;
    let old = packets::half(&headers, 16);
    let length = old.wrapping_add(12);
    headers[16..18].copy_from_slice(&length.to_be_bytes());
    let sum = packets::updated(packets::half(&headers, 24), old, length);
    headers[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut pushed = [0; 12];
    pushed[..2].copy_from_slice(&[1, 3]);
    pushed[2..4].copy_from_slice(&headers[36..38]);
    pushed[4..8].copy_from_slice(&node.to_be_bytes());
    pushed[8..10].copy_from_slice(&3u16.to_be_bytes());
    pushed[10..12].copy_from_slice(&port.to_be_bytes());
    headers[36..38].copy_from_slice(&5000u16.to_be_bytes());
    let udp_length = packets::half(&headers, 38).wrapping_add(12);
    headers[38..40].copy_from_slice(&udp_length.to_be_bytes());
    headers[40..42].copy_from_slice(&[0, 0]);
    let target: &mut [u8; ETHERNET + IPV4 + 8 + 12] = buffer[start..].first_chunk_mut()?;
    target[..42].copy_from_slice(&headers);
    target[42..].copy_from_slice(&pushed);
    Some(start)
}

#[derive(Clone, Copy)]
struct Site {
    vni: u32,
    destination: [u8; 6],
    source: [u8; 6],
    from: u32,
    to: u32,
    port: u16,
}

/// Encapsulates packets in a tunnel.
pub fn encapsulation() -> (Case, impl ByHand) {
    let program = lab::p4_program("tunnel.p4");
    let table = lab::table(&program, "remote");
    let mut objects = Objects::new(&program);
    let mut rng = SplitMix64::new(8);
    let mut remote = Exact::new(1);
    let (mut sites, mut addresses) = (Vec::new(), Vec::new());
    while sites.len() < ENTRIES {
        let address = rng.next_u64() as u32;
        let (vni, from, to) = (rng.next_u64() as u32 >> 8, rng.next_u64() as u32, rng.next_u64() as u32);
        let (destination, source) = (rng.next_u64() >> 16, rng.next_u64() >> 16);
        let port = rng.below(500) as u16;
        let keys = vec![KeyValue::Exact(Bits::new(u128::from(address), 32))];
        let args = [
            (u128::from(vni), 24),
            (u128::from(destination), 48),
            (u128::from(source), 48),
            (u128::from(from), 32),
            (u128::from(to), 32),
            (u128::from(port), 9),
        ];
        if objects.insert(table, lab::entry(&program, table, keys, &args)).is_ok() {
            remote.insert(&[u64::from(address)], sites.len() as u32);
            let [destination, source] = [destination, source].map(packets::mac_bytes);
            sites.push(Site { vni, destination, source, from, to, port });
            addresses.push(address);
        }
    }
    let mut bytes = Vec::new();
    for _ in 0..(1 << 16) {
        let destination = addresses[rng.below(ENTRIES as u64) as usize];
        let source = rng.next_u64() as u32;
        bytes.extend(packets::ipv4(&mut rng, 64, [source, destination], 17, [1000, 2000]));
    }
    let load = lab::Load::new(bytes, ROOM);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut who, mut found) = ([0; BATCH], [0u8; BATCH], [MISS; BATCH]);
        let mut count = 0;
        for (number, buffer) in batch.iter_mut().enumerate() {
            sent[number] = (ROOM, NOWHERE);
            if let Some(headers) = buffer[ROOM..].first_chunk::<{ ETHERNET + IPV4 }>()
                && headers[12..14] == [8, 0]
            {
                keys[count] = u64::from(packets::word(headers, 30));
                who[count] = number as u8;
                count += 1;
            }
        }
        remote.lookup_batch(&keys[..count], &mut found[..count]);
        for (number, found) in who[..count].iter().zip(found) {
            let number = usize::from(*number);
            if let Some(site) = sites.get(found as usize)
                && let Some(start) = site.encapsulate(&mut batch[number])
            {
                sent[number] = (start, site.port);
            }
        }
    };
    (Case { program, objects, load, ingress_port: 2 }, by_hand)
}

impl Site {
    #[inline]
    fn encapsulate(&self, buffer: &mut [u8]) -> Option<usize> {
        let start = ROOM.checked_sub(OUTER)?;
        let length = (buffer.len() - ROOM) as u16;
        let inner: &[u8; ETHERNET + IPV4] = buffer[ROOM..].first_chunk()?;
        let entropy = packets::half(inner, 28) ^ packets::half(inner, 32);
        let outer: &mut [u8; OUTER] = buffer[start..].first_chunk_mut()?;
        outer[..6].copy_from_slice(&self.destination);
        outer[6..12].copy_from_slice(&self.source);
        outer[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        outer[16..18].copy_from_slice(&(length + 36).to_be_bytes());
        outer[18..26].copy_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
        outer[26..30].copy_from_slice(&self.from.to_be_bytes());
        outer[30..34].copy_from_slice(&self.to.to_be_bytes());
        let sum = packets::checksum(outer[14..34].try_into().expect("a header"));
        outer[24..26].copy_from_slice(&sum.to_be_bytes());
        outer[34..36].copy_from_slice(&entropy.to_be_bytes());
        outer[36..38].copy_from_slice(&4789u16.to_be_bytes());
        outer[38..40].copy_from_slice(&(length + 16).to_be_bytes());
        outer[40..46].copy_from_slice(&[0, 0, 8, 0, 0, 0]);
        outer[46..50].copy_from_slice(&(self.vni << 8).to_be_bytes());
        Some(start)
    }
}

/// Decapsulates packets from a tunnel.
pub fn decapsulation() -> (Case, impl ByHand) {
    let program = lab::p4_program("tunnel.p4");
    let table = lab::table(&program, "networks");
    let mut objects = Objects::new(&program);
    let mut rng = SplitMix64::new(9);
    let mut networks = Exact::new(2);
    let (mut ports, mut inside) = (Vec::new(), Vec::new());
    while ports.len() < ENTRIES {
        let (vni, mac, port) = (rng.next_u64() >> 40, rng.next_u64() >> 16, rng.below(500) as u16);
        let keys =
            vec![KeyValue::Exact(Bits::new(u128::from(vni), 24)), KeyValue::Exact(Bits::new(u128::from(mac), 48))];
        if objects.insert(table, lab::entry(&program, table, keys, &[(u128::from(port), 9)])).is_ok() {
            networks.insert(&[vni, mac], ports.len() as u32);
            ports.push(port);
            inside.push((vni, mac));
        }
    }
    let mut bytes = Vec::new();
    for _ in 0..(1 << 16) {
        let (vni, mac) = inside[rng.below(ENTRIES as u64) as usize];
        let mut packet = packets::ipv4(&mut rng, 64, [1, 2], 17, [1000, 4789]);
        packet[42..46].copy_from_slice(&[8, 0, 0, 0]);
        packet[46..50].copy_from_slice(&((vni as u32) << 8).to_be_bytes());
        packet[50..56].copy_from_slice(&packets::mac_bytes(mac));
        bytes.extend(packet);
    }
    let load = lab::Load::new(bytes, ROOM);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut who, mut found) = ([0; 2 * BATCH], [0u8; BATCH], [MISS; BATCH]);
        let mut count = 0;
        for (number, buffer) in batch.iter_mut().enumerate() {
            sent[number] = (ROOM, NOWHERE);
            if let Some((_, ip, rest)) = packets::checked_ipv4(&mut buffer[ROOM..])
                && ip[9] == 17
                && let Some(rest) = rest.first_chunk::<{ 8 + 8 + ETHERNET }>()
                && packets::half(rest, 2) == 4789
            {
                keys[count * 2] = u64::from(packets::word(rest, 12) >> 8);
                keys[count * 2 + 1] = packets::mac(&rest[16..]);
                who[count] = number as u8;
                count += 1;
            }
        }
        networks.lookup_batch(&keys[..count * 2], &mut found[..count]);
        for (number, found) in who[..count].iter().zip(found) {
            if let Some(port) = ports.get(found as usize) {
                sent[usize::from(*number)] = (ROOM + OUTER, *port);
            }
        }
    };
    (Case { program, objects, load, ingress_port: 1 }, by_hand)
}
