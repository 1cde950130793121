use std::net::{Ipv4Addr, Ipv6Addr};

use diagnostics::{Diagnostics, SourceMap};
use rng::SplitMix64;
use wire::tpp::Carriage;
use wire::{ipv4, udp};

use super::*;
use crate::{AccessRights, MemoryMap, SparseMemory, Tcpu, assemble};

fn program(text: &str) -> TinyProgram {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    assemble(&mut sources, "test.tpp", text, &MemoryMap::new(), &mut diagnostics).expect("it has no mistakes")
}

/// Returns a program of 16 + 4 × `hops` bytes whose application is `application`.
fn named(application: u16, hops: u32) -> TinyProgram {
    program(&format!(".app {application}\n.hops {hops}\nPUSH [Switch:ID]"))
}

/// Returns a frame with a datagram from 10.0.0.1 to 10.0.0.2 at a port.
fn frame(port: u16, payload: usize) -> Vec<u8> {
    let repr = ipv4::Repr::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), ipv4::UDP);
    let datagram = udp::Repr { source_port: 4000, destination_port: port };
    let packet = repr.packet(&datagram.packet(repr.addresses(), &vec![7; payload]));
    [&[2; 12][..], &ethernet::IPV4.to_be_bytes(), &packet].concat()
}

fn to_port(port: u16) -> PacketFilter {
    PacketFilter { destination_port: Some(port), ..PacketFilter::default() }
}

/// Returns the shim of a receiver that expects the programs with these applications and numbers of hops.
fn receiver(expected: &[(u16, u32)]) -> Shim {
    let mut shim = Shim::new(9000);
    for (application, hops) in expected {
        shim.expect_tpp(PacketFilter::default(), &named(*application, *hops)).expect("they are few");
    }
    shim
}

/// Passes a frame through both sides, and returns the application of the program that it carried.
fn carried(shim: &mut Shim, mut frame: Vec<u8>, below: impl FnMut(u32) -> u32) -> Option<u16> {
    let original = frame.clone();
    shim.sent(&mut frame, below);
    let mut found = Vec::new();
    let mut other = receiver(&[(1, 2), (2, 2), (3, 2), (1, 5)]);
    assert!(other.received(&mut frame, |collected| found.push(collected)));
    assert_eq!(frame, original, "the packet is as it was");
    assert!(found.len() <= 1, "a packet has one program at most");
    found.pop().map(|collected| collected.application())
}

#[test]
fn the_first_filter_that_matches_inserts_its_program() {
    let mut shim = Shim::new(1500);
    let mut add = |filter, application, priority| shim.add_tpp(filter, &named(application, 2), 1, priority).unwrap();
    let numbers = [add(PacketFilter::default(), 1, 0), add(to_port(80), 2, 5), add(to_port(80), 3, 5)];
    let none = |_| unreachable!("all packets are sampled");
    assert_eq!(carried(&mut shim, frame(80, 10), none), Some(2));
    assert_eq!(carried(&mut shim, frame(81, 10), none), Some(1));
    let inserted = numbers.map(|number| shim.filter_counts(number).expect("it was added").inserted);
    assert_eq!(inserted, [1, 1, 0]);
}

#[test]
fn a_packet_that_is_not_sampled_continues_with_the_next_filter() {
    let mut shim = Shim::new(1500);
    shim.add_tpp(to_port(80), &named(1, 2), 10, 9).unwrap();
    shim.add_tpp(to_port(80), &named(2, 2), 1, 1).unwrap();
    let mut random = SplitMix64::new(3);
    let all: Vec<_> = (0..10_000)
        .map(|_| carried(&mut shim, frame(80, 10), |end| random.below(end.into()) as u32).expect("one of both"))
        .collect();
    let first = all.iter().filter(|application| **application == 1).count();
    assert!((900..1100).contains(&first), "{first} of 10,000");
    let counts = [0, 1].map(|number| shim.filter_counts(number).unwrap());
    assert_eq!(counts.map(|counts| counts.matched), [10_000, 10_000 - first as u64]);
}

#[test]
fn packets_without_room_are_sent_without_program_and_counted() {
    let mut shim = Shim::new(1500);
    let number = shim.add_tpp(to_port(80), &named(1, 5), 1, 0).unwrap();
    let room = 1500 - 28 - named(1, 5).packet(&[]).len();
    assert_eq!(carried(&mut shim, frame(80, room), |_| 0), Some(1));
    assert_eq!(carried(&mut shim, frame(80, room + 1), |_| 0), None);
    let counts = shim.filter_counts(number).unwrap();
    assert_eq!((counts.matched, counts.inserted, counts.too_long), (2, 1, 1));
}

#[test]
fn programs_are_inserted_into_packets_of_every_length() {
    let bytes: Vec<u8> = (0..100).collect();
    for len in 0..250 {
        let frame: Vec<u8> = (0..len).map(|at| 255 - at as u8).collect();
        for at in [0, 14, len / 2, len] {
            let (mut found, at) = (frame.clone(), at.min(len));
            insert(&mut found, at, &bytes);
            assert_eq!(found, [&frame[..at], &bytes, &frame[at..]].concat(), "{len} {at}");
        }
    }
}

#[test]
fn programs_that_differ_in_what_switches_leave_alone_are_not_collected() {
    let expected = [
        ".app 1\n.hops 2\nPUSH [Switch:ID]",
        ".app 1\n.mode hop\n.hops 2\nPUSH [Switch:ID]\nLOAD [Link:ID], [Packet:hop[1]]",
    ];
    let others = [
        ".app 2\n.hops 2\nPUSH [Switch:ID]",
        ".app 1\n.hops 3\nPUSH [Switch:ID]",
        ".app 1\n.hops 2\nPUSH [Link:ID]",
        ".app 1\n.hops 2\n.word 16\nPUSH [Switch:ID]",
        ".app 1\n.hops 2\n.readonly\nPUSH [Switch:ID]",
        ".app 1\n.mode hop\n.size 8\n.hops 1\n.memory 0\nPUSH [Switch:ID]",
        ".app 1\n.mode hop\n.size 16\n.hops 1\nPUSH [Switch:ID]\nLOAD [Link:ID], [Packet:hop[1]]",
    ];
    let mut shim = Shim::new(1500);
    expected.iter().for_each(|text| shim.expect_tpp(PacketFilter::default(), &program(text)).expect("they are few"));
    for (text, is_expected) in expected.iter().zip([true; 2]).chain(others.iter().zip([false; 7])) {
        let mut sender = Shim::new(1500);
        sender.add_tpp(PacketFilter::default(), &program(text), 1, 0).expect("it is one");
        let mut sent = frame(80, 10);
        sender.sent(&mut sent, |_| 0);
        let place = wire_format::find(&sent).expect("it has a program");
        let mut memory = SparseMemory::new();
        memory.fixed(MemoryMap::new().find("Switch:ID").unwrap().address, 77);
        Tcpu::execute(&mut sent[place.start..], &mut memory, &AccessRights::all());
        let mut count = 0;
        assert!(shim.received(&mut sent, |_| count += 1) && sent == frame(80, 10));
        assert_eq!(count, usize::from(is_expected), "{text}");
    }
}

#[test]
fn tags_stay_in_front_and_switches_execute_the_program() {
    let mut shim = Shim::new(1500);
    shim.add_tpp(to_port(80), &named(1, 2), 1, 0).unwrap();
    let plain = frame(80, 10);
    let tagged = [&plain[..12], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7], &plain[12..]].concat();
    let mut sent = tagged.clone();
    shim.sent(&mut sent, |_| 0);
    let place = wire_format::find(&sent).expect("it has a program");
    assert_eq!((place.carriage, place.start), (Carriage::Transparent, 22));
    let mut memory = SparseMemory::new();
    memory.fixed(MemoryMap::new().find("Switch:ID").unwrap().address, 77);
    Tcpu::execute(&mut sent[place.start..], &mut memory, &AccessRights::all());
    let mut collected = Vec::new();
    assert!(receiver(&[(1, 2)]).received(&mut sent, |program| collected.push(program)));
    assert_eq!(sent, tagged);
    let words = collected[0].program().words_by_hop(&MemoryMap::new());
    assert_eq!(words, [vec![("Switch:ID".to_owned(), 77)]]);
    assert_eq!(collected[0].flow.expect("it is IP").ports, Some((4000, 80)));
}

#[test]
fn packets_with_programs_get_no_other() {
    let mut shim = Shim::new(1500);
    shim.add_tpp(PacketFilter::default(), &named(1, 2), 1, 0).unwrap();
    let mut once = frame(80, 10);
    shim.sent(&mut once, |_| 0);
    let standalone = frame(wire_format::UDP_PORT, 50);
    let arp = [&[2; 12][..], &ethernet::ARP.to_be_bytes(), &[0; 28]].concat();
    for frame in [once, standalone, arp, vec![0; 13], Vec::new()] {
        let mut same = frame.clone();
        shim.sent(&mut same, |_| 0);
        assert_eq!(same, frame);
    }
}

#[test]
fn programs_that_would_stop_their_packets_are_refused() {
    let mut shim = Shim::new(1500);
    let mut add = |text, one_in| shim.add_tpp(PacketFilter::default(), &program(text), one_in, 0);
    assert_eq!(add(".reflect\nPUSH [Switch:ID]", 1), Err(FilterError::Reflective));
    assert_eq!(add("PUSH [Switch:ID]", 0), Err(FilterError::NeverSampled));
    let mut done = named(1, 2);
    done.repr.status = Status::DONE;
    assert_eq!(shim.add_tpp(PacketFilter::default(), &done, 1, 0), Err(FilterError::Done));
    for _ in 0..MAX_FILTERS {
        shim.add_tpp(to_port(1), &named(1, 1), 1, 0).unwrap();
    }
    assert_eq!(shim.add_tpp(to_port(1), &named(1, 1), 1, 0), Err(FilterError::TooMany));
}

#[test]
fn damaged_reflected_and_nested_programs_never_reach_the_stack() {
    let mut sender = Shim::new(1500);
    sender.add_tpp(PacketFilter::default(), &named(1, 2), 1, 0).unwrap();
    let original = frame(80, 10);
    let mut sent = original.clone();
    sender.sent(&mut sent, |_| 0);
    let receive = |mut frame: Vec<u8>| {
        let (mut shim, mut count) = (receiver(&[(1, 2), (2, 1)]), 0);
        let is_packet = shim.received(&mut frame, |_| count += 1);
        (is_packet.then_some(frame), count, shim.receipt_counts())
    };
    let (mut wrong_word, mut malformed) = (sent.clone(), sent.clone());
    (wrong_word[14 + 20], malformed[14 + 2]) = (9, 1);
    let (packet, count, counts) = receive(wrong_word);
    assert_eq!((packet.as_ref(), count, counts.damaged), (Some(&original), 0, 1));
    let (packet, count, counts) = receive(malformed);
    assert_eq!((packet, count, counts.malformed), (None, 0, 1));
    let mut reflected = sent.clone();
    let mut packet = Packet::new_checked(&mut reflected[14..]).unwrap();
    packet.add_status(Status::DONE);
    packet.fill_checksum();
    assert_eq!(receive(reflected).0, None);
    let mut outer = named(2, 1);
    outer.repr.encapsulated = ETHERTYPE;
    let nested = [&sent[..14], &outer.packet(&sent[14..])].concat();
    let (packet, count, counts) = receive(nested);
    assert_eq!((packet.as_ref(), count, counts.collected), (Some(&original), 2, 2));
    let alone = [&sent[..14], &named(3, 1).packet(&[])].concat();
    assert_eq!(receive(alone).0, None);
}

#[test]
fn programs_from_outside_are_taken_out_and_not_collected() {
    let mut sender = Shim::new(1500);
    let original = frame(80, 10);
    let other_memory = program(".app 1\n.mode hop\n.hops 2\n.size 4\nLOAD [Switch:ID], [Packet:hop[0]]");
    let read_only = program(".app 1\n.hops 2\n.readonly\nPUSH [Switch:ID]");
    let other_words = program(".app 1\n.hops 2\nPUSH [Link:ID]");
    let short_words = program(".app 1\n.hops 4\n.word 16\nPUSH [Switch:ID]");
    let foreign = [named(2, 2), named(1, 3), other_words, other_memory, read_only, short_words];
    for program in &foreign {
        sender.filters.clear();
        sender.add_tpp(PacketFilter::default(), program, 1, 0).unwrap();
        let mut frame = original.clone();
        sender.sent(&mut frame, |_| 0);
        assert_ne!(frame, original);
        let mut shim = receiver(&[(1, 2)]);
        assert!(shim.received(&mut frame, |_| panic!("nobody of this host asked for it")));
        assert_eq!((&frame, shim.receipt_counts().foreign), (&original, 1));
    }
    // The right program in packets to another port, without a packet, or reflected.
    let mut shim = Shim::new(1500);
    shim.expect_tpp(to_port(81), &named(1, 2)).unwrap();
    sender.filters.clear();
    sender.add_tpp(PacketFilter::default(), &named(1, 2), 1, 0).unwrap();
    let mut sent = original.clone();
    sender.sent(&mut sent, |_| 0);
    let alone = [&sent[..14], &named(1, 2).packet(&[])].concat();
    let mut reflected = sent.clone();
    let mut packet = Packet::new_checked(&mut reflected[14..]).unwrap();
    packet.add_status(Status::DONE);
    packet.fill_checksum();
    for (mut frame, is_packet) in [(sent, true), (alone, false), (reflected, false)] {
        assert_eq!(shim.received(&mut frame, |_| panic!("it is not expected")), is_packet);
    }
    assert_eq!(shim.receipt_counts(), ReceiptCounts { foreign: 3, ..ReceiptCounts::default() });
    (0..MAX_FILTERS - 1).for_each(|_| shim.expect_tpp(to_port(1), &named(1, 1)).unwrap());
    assert_eq!(shim.expect_tpp(to_port(1), &named(1, 1)), Err(FilterError::TooMany));
}

/// Returns a frame with a datagram over IPv6.
fn ipv6_frame() -> Vec<u8> {
    let repr = ipv6::Repr::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, ipv4::UDP);
    let datagram = udp::Repr { source_port: 4000, destination_port: 80 }.packet(repr.addresses(), b"payload");
    [&[2; 12][..], &ethernet::IPV6.to_be_bytes(), &repr.packet(&datagram)].concat()
}

#[test]
fn a_damaged_program_is_cut_off_only_where_a_packet_begins() {
    let mut sender = Shim::new(1500);
    sender.add_tpp(PacketFilter::default(), &named(1, 2), 1, 0).unwrap();
    for original in [frame(80, 40), ipv6_frame()] {
        let mut sent = original.clone();
        sender.sent(&mut sent, |_| 0);
        let receive = |at: usize, value: u8| {
            let (mut frame, mut shim) = (sent.clone(), receiver(&[(1, 2)]));
            frame[14 + at] = value;
            let is_packet = shim.received(&mut frame, |_| panic!("it is damaged"));
            (is_packet.then_some(frame), shim.receipt_counts())
        };
        let damaged = ReceiptCounts { damaged: 1, ..ReceiptCounts::default() };
        // A word of memory, and the hop number.
        for at in [20, 4] {
            assert_eq!(receive(at, 99), (Some(original.clone()), damaged));
        }
        // Lengths of program and memory, and the encapsulated protocol.
        let len = named(1, 2).packet(&[]).len() as u8 / 2;
        for (at, value) in [(2, len - 2), (2, len + 1), (2, len + 4), (8, 0x12)] {
            let (packet, counts) = receive(at, value);
            assert_eq!((packet, counts.damaged + counts.malformed), (None, 1), "{at}: {value}");
        }
    }
}

#[test]
fn no_frame_makes_it_panic_or_longer() {
    let mut shim = Shim::new(1500);
    shim.add_tpp(PacketFilter::default(), &named(1, 2), 1, 0).unwrap();
    shim.expect_tpp(PacketFilter::default(), &named(1, 2)).unwrap();
    let mut seed = frame(80, 40);
    shim.sent(&mut seed, |_| 0);
    let mut random = SplitMix64::new(1);
    for _ in 0..20_000 {
        let mut frame = seed[..random.below(seed.len() as u64 + 1) as usize].to_vec();
        for _ in 0..random.below(4) {
            if let Some(byte) = (!frame.is_empty()).then(|| random.below(frame.len() as u64) as usize) {
                frame[byte] = random.next_u64() as u8;
            }
        }
        let before = frame.len();
        shim.received(&mut frame, |collected| _ = collected.program());
        assert!(frame.len() <= before);
        shim.sent(&mut frame, |_| 0);
    }
}

#[test]
fn connections_get_smaller_segments_where_a_filter_selects_them() {
    let mut shim = Shim::new(1500);
    shim.add_tpp(to_port(80), &named(1, 2), 10, 0).unwrap();
    let syn = |source_port: u16| {
        let repr = ipv4::Repr::new(Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1), ipv4::TCP);
        let ports = [source_port.to_be_bytes(), 4000_u16.to_be_bytes()].concat();
        let segment = [&ports[..], &[0; 8], &[0x60, 0x12], &[0; 6], &[2, 4, 5, 180]].concat();
        [&[2; 12][..], &ethernet::IPV4.to_be_bytes(), &repr.packet(&segment)].concat()
    };
    for (port, expected) in [(80, 1460 - named(1, 2).packet(&[]).len()), (81, 1460)] {
        let mut frame = syn(port);
        assert!(shim.received(&mut frame, |_| {}));
        assert_eq!(usize::from(u16::from_be_bytes([frame[56], frame[57]])), expected);
    }
}
