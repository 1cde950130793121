//! Registers of the P4 program, which tiny packet programs read and write.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use bits::Bits;
use compiler::Source;
use switch::{Frame, PortId, RowSwitch};
use tpp::AccessRights;
use v1model::{Config, Switch, TinySettings, V1Model};
use wire::tpp::{Packet, Status};

use crate::rows::{WAYS, Way, step};
use crate::tiny::{transparent, transparent_for};

/// Packets leave by the port in a register. The last one has more elements than direct addresses.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct none {}
parser P(packet_in packet, out none hdr, inout none meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control Nothing(inout none hdr, inout none meta) { apply {} }
control I(inout none hdr, inout none meta, inout standard_metadata_t standard) {
    register<bit<9>>(4) ports;
    register<bit<48>>(2) wide;
    register<bit<96>>(2) wider;
    @resilient register<bit<16>>(4) owned;
    register<bit<8>>(0) empty;
    register<int<8>>(2) signed;
    register<bit<1>>(2) flags;
    register<bit<31>>(2) odd;
    register<bit<33>>(2) above;
    register<bit<16>>(100000) large;
    apply {
        bit<9> port;
        ports.read(port, 1);
        standard.egress_spec = port;
    }
}
control E(inout none hdr, inout none meta, inout standard_metadata_t standard) { apply {} }
control D(packet_out packet, in none hdr) { apply {} }
V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
"#;

fn switch(way: Way, rights: AccessRights) -> Switch {
    let program = Arc::new(compiler::expect_program(&Source::new("registers.p4", PROGRAM), &V1Model).ir);
    let config = Config { executor: way.executor, ..Config::with_ports(5) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    switch.set_tiny_programs(Some(TinySettings { rights, ..TinySettings::new(77, false) }));
    set(&mut switch, "I.ports", 1, 2);
    switch
}

fn register(switch: &Switch, name: &str) -> (ir::RegisterId, u32) {
    let mut registers = switch.program().registers.iter();
    registers.find(|(_, register)| register.name == name).map(|(id, register)| (id, register.width)).expect(name)
}

fn set(switch: &mut Switch, name: &str, index: u64, value: u128) {
    let (id, width) = register(switch, name);
    switch.objects_mut().set_register(id, index, Bits::new(value, width)).expect(name);
}

fn get(switch: &Switch, name: &str, index: u64) -> u64 {
    switch.objects().register(register(switch, name).0, index).expect(name).low_u64()
}

/// Returns a packet with a program for this switch.
fn carrier(switch: &Switch, text: &str) -> Frame {
    transparent_for(&v1model::memory_map(switch.program()), text, 2)
}

/// Returns the memory of the program in a frame, in words, and its status.
fn memory(frame: &Frame) -> (Vec<u32>, Status) {
    let place = wire::tpp::find(&frame.data).expect("a program");
    let packet = Packet::new_checked(&frame.data[place.start..place.end]).expect("a correct program");
    assert!(packet.is_checksum_right());
    let words = packet.memory().chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("whole words")));
    (words.collect(), packet.status())
}

#[test]
fn programs_read_registers() {
    for way in WAYS {
        let mut switch = switch(way, AccessRights::read_only());
        set(&mut switch, "I.wide", 1, 0x1234_5678_9abc);
        set(&mut switch, "I.large", 99_999, 7);
        let text = "PUSH [Register:I.ports[1]]\nPUSH [Register:I.wide[1]]\nPUSH [Register:I.wide[1].High]\n\
                    LOAD [Register:I.large[99999]], [Packet:3]\n";
        let carrier = carrier(&switch, text);
        let left = step(&mut switch, way, [carrier]);
        let (found, status) = memory(&left[0]);
        let is_there = [2, 0x5678_9abc, 0x1234, 7].iter().all(|word| found.contains(word));
        assert!(is_there && left[0].port == PortId(2), "{found:x?} {status:?}");
        assert!(!status.contains(Status::ABSENT), "{status:?}");
        // An element of two words is not there, nor one behind the end.
        for address in [0x800c_u32, 0x8800] {
            let left = step(&mut switch, way, [transparent(&format!("PUSH [{address:#x}]\n"), 2)]);
            assert!(memory(&left[0]).1.contains(Status::ABSENT), "{address:#x}");
        }
    }
}

#[test]
fn programs_with_the_right_write_registers_and_the_next_packet_meets_them() {
    let store = ".memory 4\nSTORE [Register:I.ports[1]], [Packet:0]\n";
    let swap = "CSTORE [Register:I.ports[1]], 2, 3\n";
    for way in WAYS {
        for (text, port) in [(store, 4), (swap, 3)] {
            let mut writable = switch(way, AccessRights::all());
            let carriers = [carrier(&writable, text), carrier(&writable, text)];
            let left = step(&mut writable, way, carriers);
            let ports: Vec<u32> = left.iter().map(|frame| frame.port.0).collect();
            assert_eq!((ports, get(&writable, "I.ports", 1)), (vec![2, port], port.into()), "{text}");
            // The words of applications are another right.
            let mut protected = switch(way, AccessRights::words());
            let carrier = carrier(&protected, text);
            let left = step(&mut protected, way, [carrier]);
            let status = memory(&left[0]).1;
            assert!(status.contains(Status::SUPPRESSED) && get(&protected, "I.ports", 1) == 2, "{text} {status:?}");
        }
        // A value is cut to the width of the element, and other elements stay.
        let mut switch = switch(way, AccessRights::all());
        let carrier = carrier(&switch, ".memory 0x20003\nSTORE [Register:I.ports[0]], [Packet:0]\n");
        step(&mut switch, way, [carrier]);
        assert_eq!([0, 1, 2, 3].map(|index| get(&switch, "I.ports", index)), [3, 2, 0, 0]);
    }
}

#[test]
fn rows_under_ownership_are_absent() {
    for way in WAYS {
        let mut switch = switch(way, AccessRights::all());
        let text = ".memory 5\nSTORE [Register:I.owned[0]], [Packet:0]\n";
        let status = |switch: &mut Switch| {
            let carrier = carrier(switch, text);
            memory(&step(switch, way, [carrier])[0]).1
        };
        assert!(!status(&mut switch).contains(Status::ABSENT) && get(&switch, "I.owned", 0) == 5);
        switch.own_rows(8);
        assert!(status(&mut switch).contains(Status::ABSENT));
    }
}

#[test]
fn values_are_cut_to_any_width_and_wider_elements_stay() {
    let elements = [("I.signed", 0xff), ("I.flags", 1), ("I.odd", 0x7fff_ffff)];
    for way in WAYS {
        for (name, largest) in elements {
            let mut switch = switch(way, AccessRights::all());
            let store =
                format!(".memory 0xffffffff\nSTORE [Register:{name}[1]], [Packet:0]\nPUSH [Register:{name}[1]]\n");
            let carrier = carrier(&switch, &store);
            let (found, status) = memory(&step(&mut switch, way, [carrier])[0]);
            assert_eq!((get(&switch, name, 1), get(&switch, name, 0), status), (largest, 0, Status::NONE), "{name}");
            assert_eq!(found[1], largest as u32, "{name}");
            // A value that is too wide equals none that the element has.
            let map = v1model::memory_map(switch.program());
            let address = map.find(&format!("Register:{name}[1]")).expect("it has an address").address;
            let carrier = transparent(&format!("CSTORE [{address:#x}], 0xffffffff, 0\n"), 2);
            let (found, _) = memory(&step(&mut switch, way, [carrier])[0]);
            assert!(get(&switch, name, 1) == largest && found.contains(&(largest as u32)), "{name} {found:x?}");
        }
        // Elements of 33 bits are written by no address, and neither those that no array has.
        let mut switch = switch(way, AccessRights::all());
        let map = v1model::memory_map(switch.program());
        let above = map.find("Register:I.above[1]").expect("it has an address").address;
        let end = map.find("Register:I.above[1]").expect("it has an address").address + 2;
        for address in [above, end, 0xaffe] {
            for text in ["STORE", "CSTORE"] {
                let operands = if text == "STORE" { "[Packet:0]" } else { "0, 1" };
                let carrier = transparent(&format!(".memory 1\n{text} [{address:#x}], {operands}\n"), 2);
                let status = memory(&step(&mut switch, way, [carrier])[0]).1;
                assert!(status.contains(Status::ABSENT), "{text} {address:#x} {status:?}");
            }
        }
        assert_eq!((get(&switch, "I.above", 1), get(&switch, "I.large", 0)), (0, 0));
    }
}

/// The value of a location is kept for further reads of a program, but not beyond a write by its other address.
#[test]
fn a_write_is_seen_by_both_addresses_of_an_element() {
    for way in WAYS {
        let mut switch = switch(way, AccessRights::all());
        let text = ".memory 0x20000002, 9\nLOAD [[Packet:0]], [Packet:2]\nSTORE [Register:I.ports[1]], [Packet:1]\n\
                    LOAD [[Packet:0]], [Packet:3]\n.bytes 16\n";
        let carrier = carrier(&switch, text);
        let (found, _) = memory(&step(&mut switch, way, [carrier])[0]);
        assert_eq!(found, [0x2000_0002, 9, 2, 9]);
    }
}

/// A block that has read an element does not overwrite what a program writes meanwhile, as with a controller.
#[test]
fn writes_wait_for_atomic_blocks_of_other_workers() {
    let store = ".memory 4\nSTORE [Register:I.ports[1]], [Packet:0]\n";
    let swap = "CSTORE [Register:I.ports[1]], 3, 4\n";
    for way in WAYS {
        for text in [store, swap] {
            let mut owner = switch(way, AccessRights::all());
            let (carrier, (id, width)) = (carrier(&owner, text), register(&owner, "I.ports"));
            let mut workers = owner.workers(2);
            let (mut block, mut runner) = (workers.remove(0), workers.remove(0));
            let has_read = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let objects = block.objects_mut();
                    objects.begin_atomic();
                    let port = objects.register(id, 1).expect("it exists").low_u64();
                    has_read.wait();
                    // Long enough for the program to write, if it does not wait.
                    std::thread::sleep(Duration::from_millis(20));
                    objects.set_register(id, 1, Bits::new(u128::from(port) + 1, width)).expect("it exists");
                    objects.end_atomic();
                });
                has_read.wait();
                step(&mut runner, way, [carrier]);
            });
            assert_eq!(get(&owner, "I.ports", 1), 4, "{text}");
        }
    }
}

/// A program for the registers of another P4 program does not meet the ones that have their addresses now.
#[test]
fn a_guard_protects_the_registers_of_another_program() {
    for way in WAYS {
        let mut switch = switch(way, AccessRights::all());
        let map = v1model::memory_map(switch.program());
        let text =
            |number: u32| format!("CEXEC [Switch:RegisterMap], {number:#x}\nCSTORE [Register:I.ports[1]], 2, 3\n");
        for (number, port) in [(map.register_map() ^ 1, 2), (map.register_map(), 3)] {
            let carrier = carrier(&switch, &text(number));
            step(&mut switch, way, [carrier]);
            assert_eq!(get(&switch, "I.ports", 1), port);
        }
    }
}
