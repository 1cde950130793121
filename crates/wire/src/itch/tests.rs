use super::*;

/// One message of each type.
fn all() -> Vec<Body> {
    let stock = "GOOGL".parse().unwrap();
    let (side, shares, price) = (Side::Buy, 100, Price::dollars(50));
    vec![
        SystemEvent { event: b'O' }.into(),
        TradingAction { stock, state: b'T', reserved: b' ', reason: *b"IPO1" }.into(),
        AddOrder { order: 1, side, shares, stock, price }.into(),
        AddOrderAttributed { order: 2, side: Side::Sell, shares, stock, price, attribution: *b"MMKR" }.into(),
        OrderExecuted { order: 1, executed: 40, match_number: 7 }.into(),
        OrderExecutedWithPrice { order: 1, executed: 10, match_number: 8, printable: b'Y', price }.into(),
        OrderCancel { order: 1, cancelled: 5 }.into(),
        OrderDelete { order: 1 }.into(),
        OrderReplace { order: 2, replacement: 3, shares, price }.into(),
        Trade { order: 0, side, shares, stock, price, match_number: 9 }.into(),
        CrossTrade { shares: 1 << 40, stock, price, match_number: 10, cross: b'O' }.into(),
        BrokenTrade { match_number: 9 }.into(),
        Body::Other(b'N', b"GOOGL   A".to_vec()),
    ]
}

fn bytes_of(body: Body) -> (Message, Vec<u8>) {
    let header = MessageHeader { stock_locate: 17, tracking: 2, timestamp_ns: 34_200_000_000_001 };
    let message = Message { header, body };
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    (message, bytes)
}

#[test]
fn messages_round_trip_at_the_lengths_of_the_specification() {
    let lengths = [12, 25, 36, 40, 31, 36, 23, 19, 35, 44, 40, 19, 20];
    for (body, length) in all().into_iter().zip(lengths) {
        let letter = char::from(body.letter());
        let (message, bytes) = bytes_of(body);
        assert_eq!(bytes.len(), length, "type {letter}");
        assert_eq!(Message::parse(&bytes), Ok(message), "type {letter}");
    }
}

#[test]
fn an_order_has_its_fields_where_the_specification_has_them() {
    let (_, bytes) = bytes_of(all().swap_remove(2));
    assert_eq!(bytes[..11], [b'A', 0, 17, 0, 2, 0x1f, 0x1a, 0xce, 0xd9, 0xf0, 0x01]);
    assert_eq!((bytes[19], &bytes[20..24], &bytes[24..32]), (b'B', &100u32.to_be_bytes()[..], &b"GOOGL   "[..]));
    assert_eq!(bytes[32..36], 500_000u32.to_be_bytes());
}

#[test]
fn truncated_messages_and_messages_without_a_side_are_malformed() {
    for body in all() {
        let open = matches!(body, Body::Other(..));
        let (_, bytes) = bytes_of(body);
        for len in 0..bytes.len() {
            assert_eq!(Message::parse(&bytes[..len]).is_ok(), open && len >= HEADER_LEN);
        }
    }
    let (_, mut bytes) = bytes_of(all().swap_remove(2));
    bytes[19] = b'?';
    assert_eq!(Message::parse(&bytes), Err(Malformed::Field { format: "ITCH", field: "side", value: 63 }));
}

#[test]
fn symbols_and_prices_read_as_people_write_them() {
    let symbol: Symbol = "BRK.A".parse().unwrap();
    assert_eq!((symbol.0, symbol.to_string()), (*b"BRK.A   ", "BRK.A".to_owned()));
    for wrong in ["", "NINECHARS", "TWO WORDS", "É"] {
        assert!(wrong.parse::<Symbol>().is_err(), "{wrong}");
    }
    assert_eq!(Price(1_234_500).to_string(), "123.4500");
}
