//! The router of the examples: random entries, and packets that are right, random, cut and damaged.

use bits::Bits;
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::rig::{self, PORTS, Rig, Way};

fn action(program: &Program, name: &str) -> ir::ActionId {
    program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0
}

fn mac(number: u64) -> Bits {
    Bits::new(u128::from(0x0200_0000_0000 + number), 48)
}

/// Addresses with few different bits, so that prefixes contain each other and packets hit them.
fn address(rng: &mut SplitMix64) -> u32 {
    let first = rng.pick(&[(3, 10), (1, 192), (1, 0)]);
    (first << 24 | rng.below(4) << 16 | rng.below(4) << 8 | rng.below(8)) as u32
}

/// Writes random entries into all tables.
pub fn write(seed: u64, routes: usize, program: &Program, objects: &mut Objects) {
    let mut rng = SplitMix64::new(seed);
    let [gateway, lpm, port_mac] = ["RouterIngress.gateway", "RouterIngress.ipv4_lpm", "RouterEgress.port_mac"]
        .map(|name| program.table_named(name).expect("a table"));
    let [reply, forward, no_route, source] =
        ["RouterIngress.arp_reply", "RouterIngress.forward", "RouterIngress.no_route", "RouterEgress.set_source"]
            .map(|name| action(program, name));
    for _ in 0..20 {
        let keys = vec![KeyValue::Exact(Bits::new(address(&mut rng).into(), 32))];
        // A repeated key is refused.
        _ = objects.insert(gateway, TableEntry::new(keys, 0, reply, vec![mac(rng.below(99))]));
    }
    for _ in 0..routes {
        let length = rng.pick(&[(1, 0), (1, 8), (1, 14), (3, 24), (1, 15), (3, 31), (4, 32)]);
        let value = if length == 0 { 0 } else { address(&mut rng) >> (32 - length) << (32 - length) };
        let keys = vec![KeyValue::Lpm(Bits::new(value.into(), 32), length)];
        // Some ports do not exist: those packets are for the switch to drop.
        let port = Bits::new(rng.below(u64::from(PORTS) + 2).into(), 9);
        let entry = match rng.percent(90) {
            true => TableEntry::new(keys, 0, forward, vec![mac(rng.below(99)), port]),
            false => TableEntry::new(keys, 0, no_route, Vec::new()),
        };
        _ = objects.insert(lpm, entry);
    }
    for port in 0..PORTS - 1 {
        let keys = vec![KeyValue::Exact(Bits::new(port.into(), 9))];
        objects.insert(port_mac, TableEntry::new(keys, 0, source, vec![mac(port.into())])).expect("a new key");
    }
}

/// Returns an IPv4 or ARP packet that the router understands.
pub fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut data = vec![0; 14];
    data.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
    if rng.percent(15) {
        data[12..].copy_from_slice(&[8, 6]);
        data.extend([0, 1, 8, 0, 6, 4, 0, rng.pick(&[(4, 1), (1, 2)])]);
        data.extend((0..10).map(|byte| byte ^ 5));
        data.extend([0; 6]);
        data.extend(address(rng).to_be_bytes());
        data.extend(vec![0; rng.below(20) as usize]);
        return data;
    }
    data[12..].copy_from_slice(&[8, 0]);
    let payload = rng.below(60) as usize;
    let mut header =
        vec![0x45, 0, 0, 20 + payload as u8, 1, 2, 0, 0, rng.pick(&[(20, 64), (1, 2), (1, 1), (1, 0)]), 17];
    header.extend([0, 0]);
    header.extend(address(rng).to_be_bytes());
    header.extend(address(rng).to_be_bytes());
    let sum = wire::checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    data.extend(header);
    data.extend((0..payload).map(|byte| byte as u8));
    data
}

/// Adds a route to a port.
pub fn add_route(program: &Program, objects: &mut Objects, address: [u8; 4], length: u32, port: u32) {
    let forward = program.actions.iter().find(|(_, action)| action.name == "RouterIngress.forward").expect("an action");
    let keys = vec![KeyValue::Lpm(Bits::new(u32::from_be_bytes(address).into(), 32), length)];
    let args = vec![Bits::new(7, 48), Bits::new(port.into(), 9)];
    let table = program.table_named("RouterIngress.ipv4_lpm").expect("a table");
    objects.insert(table, TableEntry::new(keys, 0, forward.0, args)).expect("there is room");
}

/// Returns an IPv4 packet to an address.
pub fn packet_to(address: [u8; 4]) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 20, 1, 2, 0, 0, 64, 17, 0, 0, 10, 9, 9, 9];
    header.extend(address);
    let sum = wire::checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[2; 12][..], &[8, 0], &header, &[0; 20]].concat()
}

#[test]
fn compiled_code_is_the_router() {
    let program = rig::program("examples/router/router.p4");
    let mut rng = SplitMix64::new(1);
    for seed in 0..6 {
        let mut rig =
            Rig::new(&program, |program, objects| write(seed, [0, 3, 200][seed as usize % 3], program, objects));
        for _ in 0..700 {
            let port = rng.below(PORTS.into()) as u32;
            let mut data = packet(&mut rng);
            match rng.below(5) {
                0 => data.truncate(1 + rng.below(data.len() as u64) as usize),
                1 => {
                    let at = rng.below(data.len() as u64) as usize;
                    data[at] ^= 1 << rng.below(8);
                }
                _ => {}
            }
            rig.packet(port, &data);
        }
        rig.compare_counts();
        let ways = rig.ways;
        assert!(ways.dropped > 30, "{ways:?}");
        if seed % 3 == 2 {
            assert!(ways.sent * 100 > ways.all() * 20, "{ways:?}");
        }
        // Only packets to ports that do not exist are handed over.
        assert!(ways.fast() * 100 > ways.all() * 80, "{ways:?}");
    }
}

#[test]
fn a_right_packet_is_sent_with_the_changes_of_the_program() {
    let program = rig::program("examples/router/router.p4");
    let mut rig = Rig::new(&program, |program, objects| {
        let keys = vec![KeyValue::Lpm(Bits::new(0x0a00_0000, 32), 8)];
        let lpm = program.table_named("RouterIngress.ipv4_lpm").expect("a table");
        let call = vec![mac(7), Bits::new(3, 9)];
        objects.insert(lpm, TableEntry::new(keys, 0, action(program, "RouterIngress.forward"), call)).expect("fits");
    });
    let mut rng = SplitMix64::new(5);
    let mut data = packet(&mut rng);
    while data[12..14] != [8, 0] || data[30] != 10 || data[22] < 2 {
        data = packet(&mut rng);
    }
    let Way::Sent { port: 3, data: sent } = rig.packet(1, &data) else { panic!("the packet is sent") };
    assert_eq!(sent[..6], [2, 0, 0, 0, 0, 7]);
    assert_eq!((sent[22], wire::checksum::checksum(&sent[14..34])), (data[22] - 1, 0));
}

#[test]
fn every_cut_of_a_packet_is_dropped_or_handed_over_or_sent_alike() {
    let program = rig::program("examples/router/router.p4");
    let mut rig = Rig::new(&program, |program, objects| write(2, 200, program, objects));
    let mut rng = SplitMix64::new(3);
    for _ in 0..20 {
        let data = packet(&mut rng);
        (1..=data.len()).for_each(|length| _ = rig.packet(0, &data[..length]));
    }
    rig.compare_counts();
}

#[test]
fn no_packet_of_the_router_needs_the_switch() {
    let program = rig::program("examples/router/router.p4");
    let rig = Rig::new(&program, |_, _| {});
    assert!(rig.compiled.can_forward && rig.compiled.can_drop);
    assert_eq!(rig.compiled.hand_overs, []);
}
