//! A layer 2 switch with 10 000 stations, and a pipeline that pushes and pops a header: machine code against the same
//! by hand and against the interpreter.

mod bench;

use std::sync::Arc;

use bench::*;
use bits::Bits;
use engine::{Now, Objects, TableEntry};
use ir::KeyValue;
use tables::{Exact, PackedLookup};

const STATIONS: usize = 10_000;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The switch by hand.
fn forward(buffer: &[u8], start: usize, stations: &Exact, ports: &[u16]) -> Option<u16> {
    let ethernet = buffer[start..].first_chunk::<14>()?;
    let mut mac = [0; 8];
    mac[2..].copy_from_slice(&ethernet[0..6]);
    stations.lookup(&[u64::from_be_bytes(mac)]).map(|handle| ports[handle as usize])
}

fn layer_2() {
    let program = Arc::new(program(include_str!("switch.ir")));
    let table = program.table_named("stations").expect("the switch has stations");
    let send = program.tables[table].actions[0].action;
    let mut objects = Objects::new(&program);
    let mut stations = Exact::new(1);
    let (mut macs, mut ports, mut state) = (Vec::new(), Vec::new(), 1);
    while macs.len() < STATIONS {
        let mac = random(&mut state) & 0xffff_ffff_ffff;
        let port = mac as u16 % 500;
        let entry = TableEntry::new(
            vec![KeyValue::Exact(Bits::new(u128::from(mac), 48))],
            0,
            send,
            vec![Bits::new(u128::from(port), 9)],
        );
        if objects.insert(table, entry).is_ok() {
            stations.insert(&[mac], macs.len() as u32);
            macs.push(mac);
            ports.push(port);
        }
    }
    let traffic = (0..4096).map(|_| {
        let mut packet = vec![0u8; 64];
        let mac = macs[random(&mut state) as usize % macs.len()];
        packet[0..6].copy_from_slice(&mac.to_be_bytes()[2..]);
        packet[12..14].copy_from_slice(&[8, 0]);
        packet
    });
    let mut load = Load::new(traffic.collect(), 0);
    let compiled = compile(&program);
    let mut one = compiled.packet(Vec::new());
    let egress_port = program.slot_named("standard_metadata.egress_port").expect("a v1model program");
    for fresh in &load.fresh {
        one.restart(fresh.clone(), 0);
        compiled.run(0, &mut one, &mut objects, Now { ns: 0 });
        assert_eq!(Some(one.slot_word(egress_port) as u16), forward(fresh, 0, &stations, &ports));
        assert_eq!(one.output(), Some(&fresh[..]));
    }
    let (mut fast, mut hand, mut slow) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        fast.push(compiled_ns(&compiled, &mut objects, &mut load, packets()));
        hand.push(by_hand_ns(&mut load, packets(), |buffer, start| {
            (start, forward(buffer, start, &stations, &ports).unwrap_or(511))
        }));
        slow.push(interpreted_ns(&program, &mut objects, &load, packets() / 20));
    }
    report("layer 2, 10 K stations", median(fast), median(hand), median(slow));
}

/// Adds a tag of 8 bytes behind the Ethernet header, or takes it away; by hand. Returns where the packet begins.
fn tag(buffer: &mut [u8], start: usize) -> Option<usize> {
    let ethernet: [u8; 14] = *buffer[start..].first_chunk()?;
    if ethernet[12..14] == [0x12, 0x34] {
        let tag: [u8; 8] = *buffer[start + 14..].first_chunk()?;
        let begin = start + 8;
        buffer[begin..begin + 12].copy_from_slice(&ethernet[0..12]);
        buffer[begin + 12..begin + 14].copy_from_slice(&tag[0..2]);
        return Some(begin);
    }
    let begin = start.checked_sub(8)?;
    buffer[begin..begin + 12].copy_from_slice(&ethernet[0..12]);
    buffer[begin + 12..begin + 14].copy_from_slice(&[0x12, 0x34]);
    buffer[begin + 14..begin + 16].copy_from_slice(&ethernet[12..14]);
    buffer[begin + 16..begin + 22].copy_from_slice(&[0, 0, 0, 0, 0, 7]);
    Some(begin)
}

fn tags() {
    let text = include_str!("switch.ir");
    // The same program with a tag: pushed onto packets without, popped off packets with one.
    let text = text
        .replace("header hdr.ethernet:", "header_type tag_t { type: 16  label: 48 }\n\nheader hdr.tag: tag_t\nheader hdr.ethernet:")
        .replace(
            "    extract hdr.ethernet\n    return\n",
            "    extract hdr.ethernet\n    select hdr.ethernet.type {\n      0x1234:16 -> tag\n      _ -> end\n    }\n  block end:\n    \
             return\n  state tag:\n    extract hdr.tag\n    return\n",
        )
        .replace(
            "    apply stations\n    return\n",
            "    standard_metadata.egress_spec = 0x7:9\n    branch valid(hdr.tag) -> pop else push\n  block pop:\n    \
             hdr.ethernet.type = hdr.tag.type\n    set_invalid hdr.tag\n    return\n  block push:\n    \
             hdr.tag.type = hdr.ethernet.type\n    hdr.tag.label = 0x7:48\n    hdr.ethernet.type = 0x1234:16\n    \
             set_valid hdr.tag\n    return\n",
        )
        .replace("    emit hdr.ethernet\n", "    emit hdr.ethernet\n    emit hdr.tag\n");
    let program = Arc::new(program(&text));
    let mut objects = Objects::new(&program);
    let compiled = compile(&program);
    for (name, kind) in [("push of 8 bytes", [8, 0]), ("pop of 8 bytes", [0x12, 0x34])] {
        let mut state = 5;
        let traffic = (0..4096).map(|_| {
            let mut packet: Vec<u8> = (0..64).map(|_| random(&mut state) as u8).collect();
            packet[12..14].copy_from_slice(&kind);
            packet
        });
        let mut load = Load::new(traffic.collect(), 64);
        let mut one = compiled.packet(Vec::new());
        for (fresh, buffer) in load.fresh.iter().zip(&load.packets) {
            let mut by_hand = buffer.clone();
            by_hand[load.room..].copy_from_slice(fresh);
            one.restart(by_hand.clone(), load.room);
            compiled.run(0, &mut one, &mut objects, Now { ns: 0 });
            let begin = tag(&mut by_hand, load.room).expect("the packet is long enough");
            assert_eq!(one.output(), Some(&by_hand[begin..]));
        }
        let (mut fast, mut hand, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            fast.push(compiled_ns(&compiled, &mut objects, &mut load, packets()));
            hand.push(by_hand_ns(&mut load, packets(), |buffer, start| (tag(buffer, start).unwrap_or(0), 7)));
            slow.push(interpreted_ns(&program, &mut objects, &load, packets() / 20));
        }
        report(name, median(fast), median(hand), median(slow));
    }
}

fn main() {
    layer_2();
    tags();
}
