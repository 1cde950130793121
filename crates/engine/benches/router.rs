//! Packets per second that the interpreter routes: parser, ingress and deparser of `testdata/router.ir`.

use std::time::{Duration, Instant};

use bits::Bits;
use diagnostics::{Diagnostics, SourceMap};
use engine::{Interpreter, Now, Objects, PacketState, TableEntry};
use ir::KeyValue;

fn main() {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("router.ir", include_str!("../testdata/router.ir"));
    let program = ir::parse(&map, file, &mut diagnostics);
    let program = program.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    let mut objects = Objects::new(&program);
    let route = program.table_named("route").expect("the router has routes");
    let forward = program.tables[route].actions[0].action;
    for n in 0..1000u32 {
        let keys = vec![KeyValue::Lpm(Bits::new(u128::from(n) << 8, 32), 24)];
        let args = vec![Bits::new(u128::from(n), 9), Bits::new(u128::from(n), 48)];
        objects.insert(route, TableEntry::new(keys, 0, forward, args)).expect("the entry is good");
    }

    let mut packet = vec![0u8; 64];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    packet[22] = 64;
    packet[23] = 17;
    packet[30..34].copy_from_slice(&[0, 0, 5, 1]);
    let words = packet[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    packet[24..26].copy_from_slice(&(!((sum >> 16) + sum) as u16).to_be_bytes());

    let bodies = ["parser", "ingress", "deparser"].map(|role| program.blocks[role]);
    let mut state = PacketState::new(&program, Vec::new());
    let (begin, mut packets, mut bytes) = (Instant::now(), 0u32, 0);
    while begin.elapsed() < Duration::from_secs(1) {
        for _ in 0..1000 {
            state.reset(&program, packet.clone());
            for body in bodies {
                Interpreter::run(&program, &mut objects, body, &mut state, Now { ns: 0 }, &mut ());
            }
            bytes += state.finish().len();
        }
        packets += 1000;
    }
    let elapsed = begin.elapsed();
    let egress = program.slot_named("standard_metadata.egress_spec").expect("the router sends packets somewhere");
    println!("port {} of 5, {} bytes", state.slot(egress), bytes / packets as usize);
    println!(
        "{:.0} packets/s, {:.0} ns each",
        f64::from(packets) / elapsed.as_secs_f64(),
        elapsed.as_nanos() as f64 / f64::from(packets)
    );
}
