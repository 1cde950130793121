//! A layer 3 router, with and without an access list in front.

use bits::Bits;
use engine::Objects;
use ir::{KeyValue, Program, TableId};
use rng::SplitMix64;
use tables::classbench::{self, Family};
use tables::{Classifier, FieldKind, KeyLayout, Lpm, MISS, PackedLookup, Ternary};

use crate::lab::{self, BATCH, ByHand, Case, NOWHERE, Output};
use crate::packets::{self, ETHERNET, IPV4};

#[derive(Clone, Copy)]
struct NextHop {
    destination: [u8; 6],
    source: [u8; 6],
    port: u16,
}

/// Routes in the tables of both sides; `addresses` are some that have a route.
struct Routes {
    lpm: Lpm,
    hops: Vec<NextHop>,
    addresses: Vec<u32>,
}

/// Draws prefix lengths that resemble those of the Internet: half of them are 24 bits long.
fn routes(rng: &mut SplitMix64, program: &Program, table: TableId, objects: &mut Objects, count: usize) -> Routes {
    let mut lpm = Lpm::new(&KeyLayout::new([(32, FieldKind::Prefix)]));
    let (mut hops, mut addresses) = (Vec::new(), Vec::new());
    while hops.len() < count {
        let length = [16, 18, 20, 22, 24, 24, 24, 28][rng.below(8) as usize];
        let prefix = (rng.next_u64() as u32) >> (32 - length) << (32 - length);
        let (destination, source) = (rng.next_u64() >> 16, rng.next_u64() >> 16);
        let port = rng.below(500) as u16;
        let keys = vec![KeyValue::Lpm(Bits::new(u128::from(prefix), 32), length)];
        let args = [(u128::from(destination), 48), (u128::from(source), 48), (u128::from(port), 9)];
        if objects.insert(table, lab::entry(program, table, keys, &args)).is_ok() {
            lpm.insert(&[u64::from(prefix)], length, hops.len() as u32);
            let [destination, source] = [destination, source].map(packets::mac_bytes);
            hops.push(NextHop { destination, source, port });
            addresses.push(prefix | rng.next_u64() as u32 >> length);
        }
    }
    Routes { lpm, hops, addresses }
}

impl NextHop {
    #[inline]
    fn send(&self, packet: &mut [u8]) -> Option<u16> {
        let (ethernet, rest) = packet.split_first_chunk_mut::<ETHERNET>()?;
        ethernet[..6].copy_from_slice(&self.destination);
        ethernet[6..12].copy_from_slice(&self.source);
        packets::decrement_ttl(rest.first_chunk_mut::<IPV4>()?);
        Some(self.port)
    }
}

/// Builds a router with this many prefixes.
pub fn router(prefixes: usize) -> (Case, impl ByHand) {
    let program = lab::p4_program("l3.p4");
    let table = lab::table(&program, "routes");
    let mut objects = Objects::new(&program);
    let mut rng = SplitMix64::new(2);
    let routes = routes(&mut rng, &program, table, &mut objects, prefixes);
    let mut bytes = Vec::new();
    for _ in 0..(1 << 17) {
        let destination = routes.addresses[rng.below(routes.addresses.len() as u64) as usize];
        let source = rng.next_u64() as u32;
        bytes.extend(packets::ipv4(&mut rng, 64, [source, destination], 17, [1000, 2000]));
    }
    let load = lab::Load::new(bytes, 0);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut who, mut found) = ([0; BATCH], [0u8; BATCH], [MISS; BATCH]);
        let mut count = 0;
        for (number, buffer) in batch.iter_mut().enumerate() {
            sent[number] = (0, NOWHERE);
            if let Some((_, ip, _)) = packets::checked_ipv4(buffer)
                && ip[8] > 1
            {
                keys[count] = u64::from(packets::word(ip, 16));
                who[count] = number as u8;
                count += 1;
            }
        }
        routes.lpm.lookup_batch(&keys[..count], &mut found[..count]);
        for found in &found[..count] {
            tables::prefetch(&routes.hops, *found as usize);
        }
        for (number, found) in who[..count].iter().zip(found) {
            let number = usize::from(*number);
            let hop = routes.hops.get(found as usize);
            sent[number].1 = hop.and_then(|hop| hop.send(&mut batch[number])).unwrap_or(NOWHERE);
        }
    };
    (Case { program, objects, load, ingress_port: 1 }, by_hand)
}

/// Builds a router with 100 K prefixes behind an access list of this many rules.
pub fn guarded_router(rules: usize) -> (Case, impl ByHand) {
    let program = lab::p4_program("acl.p4");
    let (list, table) = (lab::table(&program, "rules"), lab::table(&program, "routes"));
    let mut objects = Objects::new(&program);
    let mut rng = SplitMix64::new(3);
    let rules = classbench::rules(Family::Acl, rules, 1);
    let layout = classbench::layout();
    let mut classifier = Ternary::new(&layout);
    let [permit, deny] = [0, 1].map(|index| program.tables[list].actions[index].action);
    let mut denied = Vec::new();
    for (rule, at) in rules.iter().zip(0u32..) {
        let priority = rules.len() as i32 - at as i32;
        let address = |index: usize| {
            let (value, length) = rule.addresses[index];
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            KeyValue::Ternary(Bits::new(u128::from(value), 32), Bits::new(u128::from(mask), 32))
        };
        let ports = |index: usize| {
            let (low, high) = rule.ports[index];
            KeyValue::Range(Bits::new(u128::from(low), 16), Bits::new(u128::from(high), 16))
        };
        let protocol = match rule.protocol {
            Some(protocol) => KeyValue::Ternary(Bits::new(u128::from(protocol), 8), Bits::new(0xff, 8)),
            None => KeyValue::Any,
        };
        let keys = vec![address(0), address(1), ports(0), ports(1), protocol];
        let denies = at % 3 == 0;
        let action = if denies { deny } else { permit };
        let entry = engine::TableEntry::new(keys, priority, action, Vec::new());
        if objects.insert(list, entry).is_ok() {
            // The same handles as on the other side, where entries that differ only in age are stored once.
            classifier.insert(&rule.pattern(&layout), (priority as u64) << 32, denied.len() as u32);
            denied.push(denies);
        }
    }
    let routes = routes(&mut rng, &program, table, &mut objects, 100_000);
    // Every address has a route, through the default route.
    let keys = vec![KeyValue::Lpm(Bits::zero(32), 0)];
    let entry = lab::entry(&program, table, keys, &[(1, 48), (2, 48), (3, 9)]);
    objects.insert(table, entry).expect("there is room for a default route");
    let Routes { mut lpm, mut hops, .. } = routes;
    lpm.insert(&[0], 0, hops.len() as u32);
    hops.push(NextHop { destination: packets::mac_bytes(1), source: packets::mac_bytes(2), port: 3 });
    let mut bytes = Vec::new();
    for header in classbench::headers(&rules, 1 << 17, 4) {
        let has_ports = [6, 17].contains(&header.protocol);
        let ports = if has_ports { header.ports } else { [0, 0] };
        bytes.extend(packets::ipv4(&mut rng, 64, header.addresses, header.protocol, ports));
    }
    let load = lab::Load::new(bytes, 0);
    let by_hand = move |batch: &mut [Vec<u8>], sent: &mut [Output; BATCH]| {
        let (mut keys, mut who, mut found) = ([0; 2 * BATCH], [0u8; BATCH], [MISS; BATCH]);
        let mut count = 0;
        for (number, buffer) in batch.iter_mut().enumerate() {
            sent[number] = (0, NOWHERE);
            let Some((_, ip, rest)) = packets::checked_ipv4(buffer) else { continue };
            if ip[8] <= 1 {
                continue;
            }
            let ports = match ip[9] {
                6 | 17 => match rest.first_chunk::<4>() {
                    Some(ports) => u64::from(packets::half(ports, 0)) | u64::from(packets::half(ports, 2)) << 16,
                    None => continue,
                },
                _ => 0,
            };
            keys[count * 2] = u64::from(packets::word(ip, 12)) | u64::from(packets::word(ip, 16)) << 32;
            keys[count * 2 + 1] = ports | u64::from(ip[9]) << 32;
            who[count] = number as u8;
            count += 1;
        }
        classifier.lookup_batch(&keys[..count * 2], &mut found[..count]);
        let mut passed = 0;
        for at in 0..count {
            if denied.get(found[at] as usize).is_none_or(|denied| !denied) {
                keys[passed] = keys[at * 2] >> 32;
                who[passed] = who[at];
                passed += 1;
            }
        }
        lpm.lookup_batch(&keys[..passed], &mut found[..passed]);
        for found in &found[..passed] {
            tables::prefetch(&hops, *found as usize);
        }
        for (number, found) in who[..passed].iter().zip(found) {
            let number = usize::from(*number);
            sent[number].1 = hops.get(found as usize).and_then(|hop| hop.send(&mut batch[number])).unwrap_or(NOWHERE);
        }
    };
    (Case { program, objects, load, ingress_port: 1 }, by_hand)
}
