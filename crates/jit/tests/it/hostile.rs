//! P4 programs against malformed packets: truncated anywhere, with flipped bits, or pure noise. Each packet ends at the
//! end of its mapping, so that an out-of-bounds read or write after it kills the process, and the results are compared
//! with the interpreter's. `JIT_HOSTILE_PACKETS` sets the number of packets per program. If the process dies,
//! `JIT_HOSTILE_SEED` and the name printed last identify the run.

use std::sync::Arc;

use crate::both::{self, RandomValues};
use compiler::Source;
use ir::Program;

const PROGRAMS: [&str; 6] = ["l2.p4", "l3.p4", "acl.p4", "nat.p4", "int.p4", "tunnel.p4"];

fn program(name: &str) -> Arc<Program> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/programs");
    let path = format!("{directory}/{name}");
    let text = std::fs::read_to_string(&path).expect("the program is there");
    let include_dirs = [directory.into()];
    let source = Source { include_dirs: &include_dirs, ..Source::new(&path, &text) };
    Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir)
}

/// Builds a VXLAN packet, or a damaged one.
fn packet(rng: &mut RandomValues) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..100).map(|_| rng.next() as u8).collect();
    packet[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    packet[23] = [17, 17, 6, 1][rng.below(4) as usize];
    packet[36..38].copy_from_slice(&4789u16.to_be_bytes());
    packet[24..26].fill(0);
    let sum: u32 = packet[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    packet[24..26].copy_from_slice(&(!((sum >> 16) + sum) as u16).to_be_bytes());
    packet[62..64].copy_from_slice(&[8, 0]);
    for _ in 0..rng.below(3) {
        let at = rng.below(100) as usize;
        packet[at] ^= 1 << rng.below(8);
    }
    if rng.below(4) > 0 {
        packet.truncate(rng.below(101) as usize);
    }
    packet
}

#[test]
fn hostile_packets_stay_inside() {
    let (seed, packets) = (testing::number("JIT_HOSTILE_SEED", 1), testing::number("JIT_HOSTILE_PACKETS", 3000));
    for name in PROGRAMS {
        println!("{name}");
        let program = program(name);
        if let Some(difference) = both::run_batches(&program, seed, packets as usize, &mut packet) {
            panic!("{name}, seed {seed}: {difference}");
        }
    }
    both::assert_both_ways(packets as usize / 4);
}
