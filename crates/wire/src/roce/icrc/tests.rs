use super::*;
use crate::checksum::Addresses;
use crate::roce::{self, Aeth, AtomicEth, Extension, Opcode, Position, Psn, Reth, Syndrome};

/// The CRC by its definition, a bit at a time: polynomial 0x04c11db7 reflected, start and end inverted.
fn crc_by_definition(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

fn udp_over(version: u8, payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port: 0xc000, destination_port: roce::PORT };
    match version {
        4 => {
            let ip = ipv4::Repr {
                traffic_class: 0x62,
                identification: 0x1234,
                ..ipv4::Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), ipv4::UDP)
            };
            ip.packet(&udp.packet(ip.addresses(), payload))
        }
        _ => {
            let (source, destination) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
            let ip = ipv6::Repr {
                traffic_class: 0x62,
                flow_label: 0xabcde,
                ..ipv6::Repr::new(source, destination, ipv4::UDP)
            };
            ip.packet(&udp.packet(Addresses::V6(source, destination), payload))
        }
    }
}

fn sealed(version: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = udp_over(version, payload);
    assert!(seal(&mut packet));
    packet
}

fn messages() -> Vec<Vec<u8>> {
    let reth = Reth { address: 0x1122_3344_5566_7788, key: 0xdead_beef, len: 256 };
    let aeth = Aeth { syndrome: Syndrome::ACK, message_number: 5 };
    let atomic = AtomicEth { address: 8, key: 9, swap_or_add: 1, compare: 2 };
    let headers = [
        (Opcode::ReadRequest, Extension::Reth(reth), 0),
        (Opcode::Write(Position::Only), Extension::Reth(reth), 33),
        (Opcode::ReadResponse(Position::Only), Extension::Aeth(aeth), 256),
        (Opcode::ReadResponse(Position::Middle), Extension::None, 1024),
        (Opcode::Acknowledge, Extension::Aeth(aeth), 0),
        (Opcode::FetchAdd, Extension::AtomicEth(atomic), 0),
        (Opcode::AtomicAcknowledge, Extension::AtomicAckEth(aeth, 77), 0),
    ];
    let message = |(opcode, extension, len): &(_, _, usize)| {
        let payload: Vec<u8> = (0..*len).map(|i| (i * 7 + 1) as u8).collect();
        roce::Repr::new(*opcode, 0x1234, Psn::new(0xfffffe), *extension).packet(&payload)
    };
    headers.iter().map(message).collect()
}

/// Returns the bytes that the check covers, built from headers with ones in place of the variable fields.
fn covered_by_definition(version: u8, packet: &[u8]) -> Vec<u8> {
    let mut covered = vec![0xff; 8];
    let transport = match version {
        4 => {
            let ip = ipv4::Packet::new_checked(packet).unwrap();
            let repr = ipv4::Repr { traffic_class: 0xff, ttl: 0xff, ..ipv4::Repr::parse(&ip) };
            covered.extend(&repr.packet(ip.payload())[..V4]);
            covered[8 + 10..8 + 12].fill(0xff);
            ip.payload().to_vec()
        }
        _ => {
            let ip = ipv6::Packet::new_checked(packet).unwrap();
            let repr =
                ipv6::Repr { traffic_class: 0xff, flow_label: 0xf_ffff, hop_limit: 0xff, ..ipv6::Repr::parse(&ip) };
            covered.extend(&repr.packet(ip.payload())[..V6]);
            ip.payload().to_vec()
        }
    };
    let start = covered.len();
    covered.extend(&transport[..transport.len() - ICRC_LEN]);
    covered[start + 6..start + 8].fill(0xff);
    covered[start + 8 + 4] = 0xff;
    covered
}

#[test]
fn the_check_is_the_crc_of_the_covered_bytes() {
    assert_eq!((crc_by_definition(b"123456789"), crc_by_definition(&[0xff; 8])), (0xcbf4_3926, PREFIX));
    for version in [4, 6] {
        for message in messages() {
            let packet = sealed(version, &message);
            let expected = crc_by_definition(&covered_by_definition(version, &packet));
            assert_eq!(compute(&packet), Some(expected), "version {version}");
            assert_eq!(packet[packet.len() - 4..], expected.to_le_bytes());
            assert!(is_right(&packet));
            let mut masked = packet.clone();
            mask(&mut masked);
            assert_eq!(of_masked(&masked[..masked.len() - ICRC_LEN]), expected);
        }
    }
}

/// Whether a bit of the packet may change on its path.
fn is_variable(version: u8, at: usize, bit: u8) -> bool {
    let (ip, transport) = match version {
        4 => (matches!(at, 1 | 8 | 10 | 11), V4),
        _ => (matches!(at, 1 | 2 | 3 | 7) || at == 0 && bit & 0x0f != 0, V6),
    };
    ip || at == transport + 6 || at == transport + 7 || at == transport + 8 + 4
}

/// Returns the first bit that a check with this mask treats wrongly: it covers a variable field, or leaves out another.
fn wrongly_covered(version: u8, mask: &Mask) -> Option<(usize, u8)> {
    let (_, masked) = layout(&udp_over(version, &[0; 40]))?;
    for message in messages() {
        let packet = udp_over(version, &message);
        let good = masked_crc(&packet, mask, masked);
        for at in 0..packet.len() - ICRC_LEN {
            for bit in (0..8).map(|shift| 1 << shift) {
                let mut changed = packet.clone();
                changed[at] ^= bit;
                let is_covered = masked_crc(&changed, mask, masked) != good;
                if is_covered == is_variable(version, at, bit) {
                    return Some((at, bit));
                }
            }
        }
    }
    None
}

#[test]
fn exactly_the_variable_fields_are_left_out() {
    assert_eq!((wrongly_covered(4, &V4_MASK), wrongly_covered(6, &V6_MASK)), (None, None));
}

/// Each mask that lacks a field, or has one more (identification, lengths, the rest of BTH), is found.
#[test]
fn mutants_of_the_masks_are_found() {
    for (version, mask) in [(4, &V4_MASK), (6, &V6_MASK)] {
        let transport = if version == 4 { V4 } else { V6 };
        for at in 0..transport + udp::HEADER_LEN + BTH_LEN {
            let is_field = mask[at] != 0;
            let mut mutant = *mask;
            mutant[at] = if is_field { 0 } else { 0xff };
            assert_eq!(wrongly_covered(version, &mutant).map(|(at, _)| at), Some(at), "version {version}");
        }
    }
    let whole_byte = {
        let mut mutant = V6_MASK;
        mutant[0] = 0xff;
        mutant
    };
    assert_eq!(wrongly_covered(6, &whole_byte), Some((0, 0x10)));
}

#[test]
fn what_cannot_be_roce_has_no_check() {
    let mut packet = sealed(4, &messages()[0]);
    for len in 0..V4 + udp::HEADER_LEN + BTH_LEN + ICRC_LEN {
        assert_eq!((compute(&packet[..len]), is_right(&packet[..len])), (None, false));
        assert!(!seal(&mut packet[..len]));
    }
    packet[0] = 0x46;
    assert!(!is_right(&packet) && compute(&packet).is_none(), "options");
    packet[0] = 0x55;
    assert!(!is_right(&packet) && compute(&[]).is_none());
    mask(&mut packet[..1]);
}
