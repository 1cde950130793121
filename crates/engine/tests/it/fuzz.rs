//! Random packets through a program that uses most instructions: no panics, and correct output.

use crate::world::World;
use bits::Bits;
use engine::{Ending, Interpreter, MeterConfig, Now, Objects, PacketState, TableEntry};
use ir::KeyValue;
use rng::SplitMix64;

/// A small generator, so that a failing seed reproduces the failure.
struct RandomPackets(SplitMix64);

impl RandomPackets {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    /// Draws a packet that is likely to be Ethernet, VLAN and IPv4.
    fn packet(&mut self) -> Vec<u8> {
        let mut packet: Vec<u8> = (0..self.below(120)).map(|_| self.next() as u8).collect();
        let mut at = 12;
        let put = |packet: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            if packet.len() >= at + bytes.len() {
                packet[at..at + bytes.len()].copy_from_slice(bytes);
            }
        };
        for _ in 0..self.below(4) {
            put(&mut packet, at, &[0x81, 0]);
            at += 4;
        }
        if self.below(4) > 0 {
            let ihl = [4, 5, 5, 5, 6, 9][self.below(6) as usize];
            put(&mut packet, at, &[8, 0, 0x40 | ihl]);
            put(&mut packet, at + 11, &[[6, 17][self.below(2) as usize]]);
            let end = at + 2 + usize::from(ihl) * 4;
            if self.below(8) > 0 && packet.len() >= end {
                packet[at + 12..at + 14].fill(0);
                let sum = checksum(&packet[at + 2..end]);
                put(&mut packet, at + 12, &sum.to_be_bytes());
            }
        }
        packet
    }
}

fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn router() -> World {
    World::whole(include_str!("../../testdata/router.ir"))
}

fn fill(world: &mut World) {
    let route = world.table("route");
    for n in 0..128u32 {
        let prefix = 1 + n % 8;
        let value = Bits::new(u128::from(n) << 24, 32).shr(32 - prefix).shl(32 - prefix);
        let args = vec![Bits::new(u128::from(n), 9), Bits::new(0x0200_0000_0000 + u128::from(n), 48)];
        let entry = TableEntry::new(vec![KeyValue::Lpm(value, prefix)], 0, world.action("forward"), args);
        _ = world.objects.insert(route, entry);
    }
    let meter = world.program.meters.keys().next().unwrap();
    world.objects.configure_meters(meter, Some(MeterConfig { cir: 500, cbs: 500, pir: 1000, pbs: 1000 })).unwrap();
}

#[test]
fn random_packets_never_panic_and_come_out_whole() {
    let mut world = router();
    fill(&mut world);
    let mut rng = RandomPackets(SplitMix64::new(0x7715_2026));
    let mut endings = std::collections::BTreeMap::new();
    for step in 0..20_000 {
        let packet = rng.packet();
        world.now_ns = step * 1_000_000;
        let parsed = world.run("RouterParser", &packet);
        let error = if parsed == Ending::Reject { world.error() } else { "accept" };
        *endings.entry(error.to_owned()).or_insert(0) += 1;
        let before = world.fields("hdr.ipv4");
        if parsed == Ending::Reject {
            // The parsed and the unparsed part are together the packet, bit by bit, whatever the parser decides.
            world.go_on("RouterDeparser");
            assert_eq!(world.state.finish(), packet, "step {step}");
            continue;
        }
        let ending = world.go_on("RouterIngress");
        assert!(matches!(ending, Ending::Return | Ending::Exit), "step {step}: {ending:?}");
        let changed = world.fields("hdr.ipv4") != before;
        *endings.entry(format!("{ending:?} {changed}")).or_insert(0) += 1;
        assert_eq!(world.go_on("RouterDeparser"), Ending::Return);
        let out = world.state.finish();
        assert_eq!(out.len(), packet.len(), "step {step}");
        if !changed {
            assert_eq!(out[12..], packet[12..], "step {step}");
        } else if ending == Ending::Return {
            let at = out.len() - world.state.payload().len();
            let start = 14 + 4 * world.get("hdr.vlan.next") as usize;
            assert_eq!(checksum(&out[start..at]), 0, "step {step}");
        }
    }
    // Every path through the program was taken.
    for way in [
        "PacketTooShort",
        "StackOutOfBounds",
        "ParserInvalidArgument",
        "accept",
        "Exit false",
        "Exit true",
        "Return true",
    ] {
        assert!(endings.get(way).is_some_and(|count| *count > 10), "{way}: {endings:?}");
    }
}

#[test]
fn watching_changes_nothing_and_runs_repeat() {
    let mut world = router();
    fill(&mut world);
    let mut unwatched = router();
    fill(&mut unwatched);
    let bodies = ["RouterParser", "RouterIngress", "RouterDeparser"];
    let ids = ["parser", "ingress", "deparser"].map(|role| world.program.blocks[role]);
    let program = world.program.clone();
    let mut objects: Objects = unwatched.objects;
    let mut state = PacketState::new(&program, Vec::new());
    let mut rng = RandomPackets(SplitMix64::new(42));
    for step in 0..2_000 {
        let packet = rng.packet();
        state.reset(&program, packet.clone());
        world.state.reset(&program, packet);
        world.now_ns = step * 1000;
        for (name, id) in bodies.into_iter().zip(ids) {
            let now = Now { ns: step * 1000 };
            let ending = Interpreter::run(&program, &mut objects, id, &mut state, now, &mut ());
            assert_eq!(ending, world.go_on(name), "step {step}");
        }
        assert_eq!(format!("{state:?}"), format!("{:?}", world.state), "step {step}");
    }
    assert_eq!(format!("{objects:?}"), format!("{:?}", world.objects));
}
