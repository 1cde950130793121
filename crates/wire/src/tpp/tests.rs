use super::*;
use crate::checksum::Addresses;
use crate::{ethernet, ipv4, ipv6, udp, vlan};

const ETHERNET: ethernet::Repr = ethernet::Repr {
    destination: ethernet::Address([8, 0, 0, 0, 2, 2]),
    source: ethernet::Address([8, 0, 0, 0, 1, 1]),
    ethertype: ETHERTYPE,
};

fn instructions() -> [Instruction; 3] {
    [
        Instruction::new(Operation::Push, 0, 0, 0),
        Instruction::new(Operation::Cstore, 0x6000, 1, 2),
        Instruction::new(Operation::Cexec, 0xffff, ALL_ONES, 62),
    ]
}

fn program() -> Vec<u8> {
    let mut repr = Repr::new(WordSize::Bits16, Addressing::Stack { pointer: 8 }, 0x1234);
    repr.encapsulated = ethernet::IPV4;
    repr.packet(&instructions(), &[7; 30], b"payload")
}

fn over_udp(ports: (u16, u16), payload: &[u8], v6: bool) -> Vec<u8> {
    let udp = udp::Repr { source_port: ports.0, destination_port: ports.1 };
    if v6 {
        let ip = ipv6::Repr::new([1; 16].into(), [2; 16].into(), ipv4::UDP);
        let ethernet = ethernet::Repr { ethertype: ethernet::IPV6, ..ETHERNET };
        return ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), payload)));
    }
    let ip = ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ipv4::UDP);
    let ethernet = ethernet::Repr { ethertype: ethernet::IPV4, ..ETHERNET };
    ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), payload)))
}

#[test]
fn programs_round_trip() {
    for word_size in [WordSize::Bits16, WordSize::Bits32] {
        for addressing in [Addressing::Stack { pointer: 510 }, Addressing::Hop { len: 6 }] {
            let repr = Repr {
                word_size,
                addressing,
                hop: -3,
                is_reflective: true,
                is_read_only: addressing == Addressing::Hop { len: 6 },
                status: Status(0x50),
                encapsulated: 0x86dd,
                application: 0xabcd,
            };
            let bytes = repr.packet(&instructions(), &[1, 2, 3, 4], b"rest");
            let packet = Packet::new_checked(&bytes).unwrap();
            assert_eq!(Repr::parse(&packet), repr);
            assert!(packet.instructions().eq(instructions()));
            assert_eq!((packet.memory(), packet.payload()), (&[1u8, 2, 3, 4][..], &b"rest"[..]));
            assert!(packet.is_checksum_right());
        }
    }
}

#[test]
fn the_bits_are_where_the_layout_says() {
    let bytes = program();
    // 12 + 3 x 4 + 30 bytes are the 54 bytes of section 2.1.
    assert_eq!(bytes[..6], [0x10, 0, 27, 15, 0, 4]);
    assert_eq!(bytes[8..12], [8, 0, 0x12, 0x34]);
    assert_eq!(bytes[12..24], [0x30, 0, 0, 0, 0x56, 0, 0, 0x42, 0x6f, 0xff, 0xff, 0xfe]);
    assert_eq!(Packet::new_checked(&bytes).unwrap().length(), 54);
}

#[test]
fn instructions_round_trip_and_unknown_ones_are_refused() {
    for operation in Operation::ALL {
        let instruction = Instruction::new(*operation, 0xbeef, 0x2a, 0x15);
        assert_eq!(Instruction::unpack(instruction.pack()), Some(instruction));
        assert!(Operation::is_known(*operation as u8));
    }
    for number in [0u8, 10, 15] {
        assert_eq!(Instruction::unpack(u32::from(number) << 28), None);
        let mut bytes = program();
        bytes[12] = number << 4;
        let error = Packet::new_checked(&bytes).unwrap_err();
        assert_eq!(error.to_string(), format!("TPP: operation cannot be {number}"));
    }
}

#[test]
fn lies_in_lengths_are_errors() {
    let good = program();
    for len in 0..54 {
        assert!(Packet::new_checked(&good[..len]).is_err(), "{len} bytes");
    }
    assert!(Packet::new_checked(&good[..54]).is_ok());
    let changed = |changes: &[(usize, u8)]| {
        let mut bytes = good.clone();
        changes.iter().for_each(|(at, value)| bytes[*at] = *value);
        Packet::new_checked(&bytes).map(drop).unwrap_err().to_string()
    };
    assert_eq!(changed(&[(0, 0x20)]), "TPP: version cannot be 2");
    assert_eq!(changed(&[(1, 3)]), "TPP: reserved bits cannot be 3");
    assert_eq!(changed(&[(2, 5)]), "TPP: length cannot be 5");
    assert_eq!(changed(&[(3, 22)]), "TPP: length cannot be 27");
    assert_eq!(changed(&[(3, 14)]), "TPP: length of the instructions cannot be 14");
    assert_eq!(changed(&[(3, 9)]), "TPP: length of the instructions cannot be 24");
    assert_eq!(changed(&[(2, 200), (3, 188)]), "TPP: 400 bytes are needed and 61 are there");
}

#[test]
fn programs_are_found_where_frames_carry_them() {
    let program = program();
    let transparent = ETHERNET.packet(&program);
    let place = find(&transparent).unwrap();
    assert_eq!((place.carriage, place.start), (Carriage::Transparent, 14));
    let tag = vlan::Repr { priority: 0, drop_eligible: false, identifier: 5, ethertype: ETHERTYPE };
    let tagged = ethernet::Repr { ethertype: ethernet::VLAN, ..ETHERNET }.packet(&tag.packet(&program));
    assert_eq!(find(&tagged).unwrap().start, 18);
    for v6 in [false, true] {
        let mut frame = over_udp((4000, UDP_PORT), &program, v6);
        let place = find(&frame).unwrap();
        assert_eq!(&frame[place.start..place.end], &program[..]);
        frame.extend([0; 9]);
        assert_eq!(find(&frame), Some(place), "padding is not the program's");
        for ports in [(UDP_PORT, 4000), (UDP_PORT, UDP_PORT), (4000, 53)] {
            assert_eq!(find(&over_udp(ports, &program, v6)), None, "{ports:?}");
        }
    }
    let mut fragment = over_udp((4000, UDP_PORT), &program, false);
    fragment[20] = 0x20;
    assert_eq!(find(&fragment), None, "a fragment is not executed");
    assert_eq!(find_echo(&transparent), None);
}

#[test]
fn options_of_ip_and_extension_headers_are_skipped_and_fragments_of_ipv6_are_not_executed() {
    let program = program();
    let ip = ipv6::Repr::new([1; 16].into(), [2; 16].into(), 0);
    let udp = udp::Repr { source_port: 9, destination_port: UDP_PORT }.packet(ip.addresses(), &program);
    let ethernet = ethernet::Repr { ethertype: ethernet::IPV6, ..ETHERNET };
    let frame = |kind: u8, extension: [u8; 8]| {
        let ip = ipv6::Repr { next_header: kind, ..ip };
        ethernet.packet(&ip.packet(&[&extension[..], &udp].concat()))
    };
    let options = frame(0, [17, 0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(find(&options).map(|place| place.start), Some(14 + 40 + 8 + 8));
    assert_eq!(find(&frame(44, [17, 0, 0, 1, 0, 0, 0, 0])), None);
    assert_eq!(find(&frame(44, [17, 0, 0, 0, 0, 0, 0, 0])), None);
    let v4 = over_udp((4000, UDP_PORT), &program, false);
    let mut with_options = v4[..34].to_vec();
    with_options[14] = 0x46;
    let total = (v4.len() - 14 + 4) as u16;
    with_options[16..18].copy_from_slice(&total.to_be_bytes());
    with_options.extend([1, 1, 1, 0]);
    with_options.extend(&v4[34..]);
    assert_eq!(find(&with_options).map(|place| place.start), Some(14 + 24 + 8));
}

/// Zeros behind a cut packet, a longer frame or a later reassembly make a program of each of these.
#[test]
fn what_may_be_a_program_for_a_later_switch_is_recognized_whatever_its_lengths_say() {
    for is_v6 in [false, true] {
        let whole = over_udp((9, UDP_PORT), &program(), is_v6);
        let ports = if is_v6 { 14 + 40 } else { 14 + 20 };
        for end in 0..whole.len() {
            // The packet is cut, so it is no program here; its ports may be there.
            assert_eq!(find(&whole[..end]), None, "{end}");
            assert_eq!(may_carry(&whole[..end]), end >= ports + 4, "{end}");
        }
        for at in [14 + 2, 14 + 3, 14 + 4, 14 + 5, ports + 4, ports + 5] {
            let mut lying = whole.clone();
            lying[at] = 0xff;
            assert!(may_carry(&lying), "{is_v6} {at}");
        }
        for ports in [(9, 53), (UDP_PORT, 9), (UDP_PORT, UDP_PORT)] {
            assert!(!may_carry(&over_udp(ports, &program(), is_v6)), "{ports:?}");
        }
    }
    let v4 = over_udp((9, UDP_PORT), &program(), false);
    let changed = |changes: &[(usize, u8)]| {
        let mut frame = v4.clone();
        changes.iter().for_each(|(at, value)| frame[*at] = *value);
        may_carry(&frame)
    };
    assert!(changed(&[(14 + 6, 0x20)]), "the first fragment");
    assert!(!changed(&[(14 + 7, 1)]) && !changed(&[(14 + 6, 0x10)]), "later fragments have no ports");
    assert!(!changed(&[(14 + 9, ipv4::TCP)]) && !changed(&[(12, 0x08), (13, 0x06)]) && !changed(&[(14, 0x55)]));
    // Tags and options before it, and extension headers with a first fragment.
    let behind = |frame: &[u8], at: usize, more: &[u8]| [&frame[..at], more, &frame[at..]].concat();
    let mut options = behind(&v4, 14 + 20, &[1; 8]);
    options[14] = 0x47;
    let tagged = behind(&options, 12, &[0x81, 0, 0, 5, 0x88, 0xa8, 0, 6]);
    assert!(may_carry(&options) && may_carry(&tagged) && may_carry(&tagged[..14 + 8 + 28 + 4]));
    let v6 = over_udp((9, UDP_PORT), &program(), true);
    let extended = |third: u8, fourth: u8| {
        let mut frame = behind(&v6, 14 + 40, &[44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        frame[14 + 6] = 60;
        behind(&frame, 14 + 56, &[ipv4::UDP, 0, third, fourth, 0, 0, 0, 1])
    };
    assert!(may_carry(&extended(0, 1)) && !may_carry(&extended(0, 8)) && !may_carry(&extended(1, 0)));
    assert!(may_carry(&v6[..]) && may_carry(&extended(0, 0)[..14 + 64 + 4]) && !may_carry(&extended(0, 0)[..14 + 64]));
    let transparent = [&[7; 12][..], &ETHERTYPE.to_be_bytes()].concat();
    assert!(may_carry(&transparent) && !may_carry(&transparent[..13]));
}

#[test]
fn a_cleared_status_keeps_the_checksum_right() {
    let mut bytes = program();
    let before = bytes.clone();
    let mut packet = Packet::new_checked(&mut bytes[..]).expect("a program");
    packet.add_status(Status(0xf0));
    packet.fill_checksum();
    packet.clear_status(Status::DONE);
    assert_eq!((packet.status(), packet.is_checksum_right()), (Status(0x70), true));
    packet.clear_status(Status(0xff));
    assert_eq!((packet.status(), packet.is_checksum_right()), (Status::NONE, true));
    assert_eq!(bytes, before);
}

#[test]
fn a_reflected_frame_is_an_echo_with_correct_checksums() {
    for v6 in [false, true] {
        for summed in [true, false] {
            let mut frame = over_udp((4000, UDP_PORT), &program(), v6);
            let place = find(&frame).unwrap();
            let Carriage::Standalone { udp: at } = place.carriage else { panic!("it is standalone") };
            if !summed {
                frame[at + 6..at + 8].fill(0);
            }
            let before = frame.clone();
            reflect(&mut frame, place);
            assert_eq!((&frame[..6], &frame[6..12]), (&before[6..12], &before[..6]));
            assert_eq!(find(&frame), None, "an echo is neither executed nor reflected");
            assert_eq!(find_echo(&frame), Some(place));
            let addresses = if v6 {
                Addresses::V6([2; 16].into(), [1; 16].into())
            } else {
                assert!(ipv4::Packet::new_checked(&frame[14..]).unwrap().is_checksum_right());
                Addresses::V4([10, 0, 2, 2].into(), [10, 0, 1, 1].into())
            };
            let datagram = udp::Packet::new_checked(&frame[at..]).unwrap();
            assert_eq!((datagram.source_port(), datagram.destination_port()), (UDP_PORT, 4000));
            assert!(datagram.is_checksum_right(addresses));
            assert_eq!(datagram.checksum() != 0, summed, "no checksum stays none");
        }
    }
    let mut frame = ETHERNET.packet(&program());
    let place = find(&frame).unwrap();
    reflect(&mut frame, place);
    assert_eq!(frame[14..], program()[..], "a transparent program and its packet are not changed");
}

/// A change of the memory and of the program's checksum leaves the UDP checksum correct, whatever its value.
#[test]
fn udp_checksums_survive_changes_of_the_memory() {
    let mut rng = rng::SplitMix64::new(3);
    for round in 0..5000u32 {
        let mut program = program();
        Packet::new_checked(&mut program[..]).unwrap().memory_mut()[..4].copy_from_slice(&round.to_be_bytes());
        Packet::new_checked(&mut program[..]).unwrap().fill_checksum();
        let mut frame = over_udp((4000, UDP_PORT), &program, false);
        let place = find(&frame).unwrap();
        let mut packet = Packet::new_checked(&mut frame[place.start..place.end]).unwrap();
        packet.memory_mut()[4..8].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
        packet.set_hop(rng.next_u64() as i8);
        packet.fill_checksum();
        let addresses = Addresses::V4([10, 0, 1, 1].into(), [10, 0, 2, 2].into());
        assert!(udp::Packet::new_checked(&frame[34..]).unwrap().is_checksum_right(addresses));
    }
}

#[test]
fn no_frame_makes_it_panic() {
    let mut rng = rng::SplitMix64::new(1);
    let good = [
        ETHERNET.packet(&program()),
        over_udp((1, UDP_PORT), &program(), false),
        over_udp((1, UDP_PORT), &program(), true),
    ];
    for round in 0..50_000usize {
        let mut bytes = good[round % good.len()].clone();
        for _ in 0..rng.below(4) {
            let at = 12 + rng.below(bytes.len() as u64 - 12) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        assert!(!crate::describe(&bytes).is_empty());
        let Some(place) = find(&bytes) else { continue };
        assert!(place.start <= place.end && place.end <= bytes.len());
        if let Ok(packet) = Packet::new_checked(&bytes[place.start..place.end]) {
            assert!(packet.instructions().count() <= MAX_INSTRUCTIONS);
            assert_eq!(
                packet.memory().len() + packet.payload().len(),
                place.end - place.start - packet.length() + packet.memory_len()
            );
        }
        reflect(&mut bytes, place);
    }
}

#[test]
fn a_program_goes_before_the_tags_that_follow_it() {
    let tagged = |tags: usize| {
        let tags = (0..tags).flat_map(|tag| [0, tag as u8, 0x81, 0]).collect::<Vec<u8>>();
        ethernet::Repr { ethertype: ethernet::VLAN, ..ETHERNET }.packet(&[&tags[..], &[0, 9, 8, 0, 1, 2]].concat())
    };
    let frame = tagged(2);
    assert_eq!([0, 14, 18, 22, 26, 30].map(|start| count_tags(&frame, start)), [0, 3, 2, 1, 0, 0]);
    let place = |behind| place_among_tags(&frame, behind);
    assert_eq!(place(0), Some((ethernet::IPV4, 26)));
    assert_eq!(place(2), Some((ethernet::VLAN, 18)));
    assert_eq!(place(7), Some((ethernet::VLAN, 14)), "the program's own tags are gone");
    assert_eq!(place_among_tags(&tagged(5), 0), Some((ethernet::VLAN, 30)), "at most four tags are before it");
    assert_eq!(count_tags(&frame[..25], 14), 2, "the third is cut");
    assert_eq!((place_among_tags(&frame[..13], 0), place_among_tags(&[], 0)), (None, None));
}
