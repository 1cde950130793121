use super::*;

const RETH: Reth = Reth { address: 0x0102_0304_0506_0708, key: 0x1122_3344, len: 5 };
const AETH: Aeth = Aeth { syndrome: Syndrome::Nak(NakCode::RemoteAccessError), message_number: 0xabcdef };
const ATOMIC: AtomicEth = AtomicEth { address: 16, key: 7, swap_or_add: 3, compare: 4 };

/// The extension that an opcode demands.
fn extension_of(opcode: Opcode) -> Extension {
    match opcode {
        Opcode::ReadRequest | Opcode::Write(Position::First | Position::Only) => Extension::Reth(RETH),
        Opcode::ReadResponse(Position::Middle) => Extension::None,
        Opcode::ReadResponse(_) | Opcode::Acknowledge => Extension::Aeth(AETH),
        Opcode::AtomicAcknowledge => Extension::AtomicAckEth(AETH, 99),
        Opcode::CompareSwap | Opcode::FetchAdd => Extension::AtomicEth(ATOMIC),
        Opcode::SendImmediate(_) | Opcode::WriteImmediate(false) => Extension::Immediate([1, 2, 3, 4]),
        Opcode::WriteImmediate(true) => Extension::RethImmediate(RETH, [1, 2, 3, 4]),
        _ => Extension::None,
    }
}

#[test]
fn every_opcode_round_trips() {
    for byte in 0..=255u8 {
        let opcode = Opcode::from(byte);
        assert_eq!(u8::from(opcode), byte);
        assert_eq!(matches!(opcode, Opcode::Other(_)), byte > 0x14);
        for len in 0..9 {
            let repr = Repr {
                is_solicited: byte & 1 != 0,
                is_ack_requested: byte & 1 == 0,
                ..Repr::new(opcode, 0xfedcba, Psn::new(0x123456), extension_of(opcode))
            };
            let payload = &b"payload!"[..len];
            let bytes = repr.packet(payload);
            let packet = Packet::new_checked(&bytes).unwrap();
            assert_eq!((Repr::parse(&packet), packet.payload()), (repr, payload));
            assert_eq!((bytes.len() % 4, packet.header_len(), packet.icrc()), (0, repr.header_len(), 0));
        }
    }
}

#[test]
fn fields_are_where_the_specification_puts_them() {
    let reth =
        Repr { is_ack_requested: true, ..Repr::new(Opcode::ReadRequest, 0x11, Psn::new(7), Extension::Reth(RETH)) };
    let expected = [
        0x0c, 0, 0xff, 0xff, 0, 0, 0, 0x11, 0x80, 0, 0, 7, // BTH
        1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 5, // RETH
        0, 0, 0, 0, // ICRC
    ];
    assert_eq!(reth.packet(b""), expected);
    let aeth = Repr::new(Opcode::Acknowledge, 0x11, Psn::new(7), Extension::Aeth(AETH)).packet(b"");
    assert_eq!(aeth[BTH_LEN..][..4], [0x62, 0xab, 0xcd, 0xef]);
    let mut congested = expected;
    assert!(!Packet::new_checked(expected).unwrap().is_congested());
    congested[4] = 0x40;
    congested[31] = 1;
    let packet = Packet::new_checked(congested).unwrap();
    assert!(packet.is_congested() && packet.destination_qp() == 0x11 && packet.icrc() == 1 << 24);
}

#[test]
fn requests_and_responses_differ() {
    let requests = (0..=255u8).filter(|byte| Opcode::from(*byte).is_request()).collect::<Vec<_>>();
    assert_eq!(requests, (0..=0x0c).chain([0x13, 0x14]).collect::<Vec<_>>());
    let places = (0..4).map(|index| Position::of(index, 4)).collect::<Vec<_>>();
    assert_eq!(places, [Position::First, Position::Middle, Position::Middle, Position::Last]);
    assert_eq!(Position::of(0, 1), Position::Only);
    assert!(places[0].is_first() && !places[0].is_last() && places[3].is_last() && !places[1].is_first());
}

#[test]
fn syndromes_round_trip() {
    for byte in 0..=255u8 {
        let syndrome = Syndrome::from(byte);
        assert_eq!(u8::from(syndrome), byte, "{syndrome:?}");
    }
    assert_eq!((Syndrome::from(0x60), Syndrome::from(0x1f)), (Syndrome::Nak(NakCode::SequenceError), Syndrome::ACK));
    assert_eq!([0, 1, 14, 31, 32].map(rnr_timer_ns), [655_360_000, 10_000, 1_280_000, 491_520_000, 655_360_000]);
}

#[test]
fn truncated_packets_and_other_versions_are_refused() {
    let bytes = Repr::new(Opcode::Write(Position::Only), 1, Psn::new(0), Extension::Reth(RETH)).packet(b"12345");
    let smallest = BTH_LEN + Reth::LEN + 3 + ICRC_LEN;
    for len in 0..bytes.len() {
        assert_eq!(Packet::new_checked(&bytes[..len]).is_ok(), len >= smallest, "{len} bytes");
    }
    let mut other = bytes.clone();
    other[1] |= 2;
    assert_eq!(Packet::new_checked(&other).unwrap_err().to_string(), "RoCE: version cannot be 2");
}

#[test]
#[should_panic(expected = "ReadRequest has other headers")]
fn an_opcode_without_its_headers_is_a_bug() {
    let _ = Repr::new(Opcode::ReadRequest, 1, Psn::new(0), Extension::None).packet(b"");
}
