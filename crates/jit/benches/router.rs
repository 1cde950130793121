//! An IPv4 router with 100 000 prefixes: machine code against the same by hand and against the interpreter.

mod bench;

use std::sync::Arc;

use bench::*;
use bits::Bits;
use engine::{Objects, TableEntry};
use ir::KeyValue;
use tables::{FieldKind, Layout, Lpm, PackedLookup};

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    !((sum >> 16) + sum) as u16
}

struct NextHop {
    port: u16,
    mac: [u8; 6],
}

/// The router by hand: the same checks, the same table.
fn route(buffer: &mut [u8], start: usize, routes: &Lpm, hops: &[NextHop]) -> Option<u16> {
    let packet = &mut buffer[start..];
    let (ethernet, rest) = packet.split_first_chunk_mut::<14>()?;
    if ethernet[12..14] != [8, 0] {
        return None;
    }
    let ip = rest.first_chunk_mut::<20>()?;
    if ip[0] >> 4 != 4 || checksum(ip) != 0 || ip[8] <= 1 {
        return None;
    }
    let destination = u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]);
    let hop = &hops[routes.lookup(&[u64::from(destination)])? as usize];
    let own: [u8; 6] = ethernet[0..6].try_into().expect("six bytes");
    ethernet[6..12].copy_from_slice(&own);
    ethernet[0..6].copy_from_slice(&hop.mac);
    ip[8] -= 1;
    // RFC 1624, equation 3.
    let old = u16::from_be_bytes([ip[10], ip[11]]);
    let sum = u32::from(!old) + u32::from(!0x0100u16);
    let sum = (sum >> 16) + (sum & 0xffff);
    ip[10..12].copy_from_slice(&(!(((sum >> 16) + sum) as u16)).to_be_bytes());
    Some(hop.port)
}

fn main() {
    for prefixes in [100, 100_000] {
        measure(prefixes);
    }
}

fn measure(prefix_count: usize) {
    let program = Arc::new(program(include_str!("../../compile/testdata/router.ir")));
    let table = program.table_named("MyIngress.ipv4_lpm").expect("the router has routes");
    let forward = program.tables[table].actions[0].action;
    let mut objects = Objects::new(&program);
    let mut routes = Lpm::new(&Layout::new([(32, FieldKind::Prefix)]));
    let mut hops = Vec::new();
    let mut state = 1;
    let mut prefixes = Vec::new();
    while hops.len() < prefix_count {
        let number = random(&mut state);
        let length = [16, 20, 22, 24, 24, 24, 24, 28][(number >> 40) as usize % 8];
        let prefix = (number as u32) >> (32 - length) << (32 - length);
        let (port, mac) = ((number >> 33) as u16 % 500, number >> 16 & 0xffff_ffff_ffff);
        let keys = vec![KeyValue::Lpm(Bits::new(u128::from(prefix), 32), length)];
        let args = vec![Bits::new(u128::from(mac), 48), Bits::new(u128::from(port), 9)];
        if objects.insert(table, TableEntry::new(keys, 0, forward, args)).is_ok() {
            routes.insert(&[u64::from(prefix)], length, hops.len() as u32);
            hops.push(NextHop { port, mac: mac.to_be_bytes()[2..].try_into().expect("six bytes") });
            prefixes.push(prefix);
        }
    }
    let traffic = (0..4096).map(|_| {
        let number = random(&mut state);
        let mut packet = vec![0u8; 64];
        packet[0..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        packet[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        packet[16..18].copy_from_slice(&50u16.to_be_bytes());
        packet[22..24].copy_from_slice(&[64, 17]);
        packet[26..30].copy_from_slice(&(number as u32).to_be_bytes());
        let destination = prefixes[(number >> 32) as usize % prefixes.len()];
        packet[30..34].copy_from_slice(&destination.to_be_bytes());
        let sum = checksum(&packet[14..34]);
        packet[24..26].copy_from_slice(&sum.to_be_bytes());
        packet
    });
    let mut load = Load::new(traffic.collect(), 0);
    let compiled = compile(&program);

    // What is compared does the same.
    let mut one = compiled.packet(Vec::new());
    let spec = program.slot_named("standard_metadata.egress_port").expect("a v1model program");
    for fresh in &load.fresh {
        let mut by_hand = fresh.clone();
        let port = route(&mut by_hand, 0, &routes, &hops).expect("every packet has a route");
        one.restart(fresh.clone(), 0);
        compiled.run(0, &mut one, &mut objects, engine::Now { ns: 0 });
        assert_eq!(one.slot_word(spec), u64::from(port));
        assert_eq!(one.output(), Some(&by_hand[..]));
    }

    let (mut fast, mut hand, mut slow) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        fast.push(compiled_ns(&compiled, &mut objects, &mut load, packets()));
        hand.push(by_hand_ns(&mut load, packets(), |buffer, start| {
            (start, route(buffer, start, &routes, &hops).unwrap_or(511))
        }));
        slow.push(interpreted_ns(&program, &mut objects, &load, packets() / 20));
    }
    report(&format!("router, {prefix_count} prefixes"), median(fast), median(hand), median(slow));
}
