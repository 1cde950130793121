//! Messages of all kinds that `examples/market-data` knows; its synthetic feed lacks some of them.

use super::{Example, Host};
use wire::itch::{
    AddOrder, AddOrderAttributed, Body, BrokenTrade, CrossTrade, Message, MessageHeader, OrderCancel, OrderDelete,
    OrderExecuted, OrderExecutedWithPrice, OrderReplace, Price, Side, Symbol, SystemEvent, Trade, TradingAction,
};
use wire::moldudp64;

const EXAMPLE: Example = Example { name: "market-data", format: "feed.p4", rules: "rules.sub" };

const EXCHANGE: Host = Host { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1], port: itch_feed::PORT };
const EVERYONE: Host = Host { mac: [1, 0, 0x5e, 1, 1, 1], ip: [239, 1, 1, 1], port: itch_feed::PORT };

const GOOGLE: Symbol = Symbol(*b"GOOGL   ");
const OTHER: Symbol = Symbol(*b"S0002   ");

/// Encodes messages, each with the stock's locate code of the day.
fn messages(all: &[(u16, Body)]) -> Vec<Vec<u8>> {
    let bytes = |(stock_locate, body): &(u16, Body)| {
        let mut bytes = Vec::new();
        let header = MessageHeader { stock_locate: *stock_locate, tracking: 0, timestamp_ns: 0 };
        Message { header, body: body.clone() }.emit(&mut bytes);
        bytes
    };
    all.iter().map(bytes).collect()
}

/// Returns the messages that leave by ports 2, 3 and 4 for these incoming messages.
fn delivered(all: &[Vec<u8>]) -> [Vec<Vec<u8>>; 3] {
    let frames: Vec<Vec<u8>> = (1..)
        .step_by(12)
        .zip(all.chunks(12))
        .map(|(first, some)| EXCHANGE.datagram(EVERYONE, &moldudp64::datagram(*b"TRIPLANE01", first, some)))
        .collect();
    let got = EXAMPLE.send(&[(1, &frames)], 4);
    let behind = |frame: &Vec<u8>| {
        let mold = moldudp64::Packet::new_checked(&frame[14 + 20 + 8..]).unwrap();
        mold.messages().map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    [1, 2, 3].map(|port| got[port].iter().flat_map(behind).collect())
}

fn picked(all: &[Vec<u8>], numbers: &[usize]) -> Vec<Vec<u8>> {
    numbers.iter().map(|number| all[*number].clone()).collect()
}

#[test]
fn attributed_orders_are_delivered_as_orders_are() {
    let (side, price) = (Side::Sell, Price(6_000_000));
    let attributed = |stock, shares| AddOrderAttributed { order: 1, side, shares, stock, price, attribution: *b"MMKR" };
    let plain = |stock, shares| AddOrder { order: 2, side, shares, stock, price };
    let all = messages(&[
        (1, attributed(GOOGLE, 100).into()),
        (2, OrderDelete { order: 9 }.into()),
        (1, plain(GOOGLE, 100).into()),
        (2, attributed(OTHER, 1_000).into()),
        (2, attributed(OTHER, 999).into()),
    ]);
    // The fund wants one stock. The desk wants large orders of any stock, and that stock at a high price.
    assert_eq!(delivered(&all), [picked(&all, &[0, 2]), picked(&all, &[0, 2, 3]), Vec::new()]);
}

#[test]
fn changes_of_orders_reach_the_subscribers_of_the_stock() {
    let (price, side, shares) = (Price(1), Side::Buy, 1_000);
    let executed = |executed| OrderExecuted { order: 1, executed, match_number: 7 };
    let with_price = OrderExecutedWithPrice { order: 1, executed: 2_000, match_number: 8, printable: b'Y', price };
    let halt = |stock| TradingAction { stock, state: b'H', reserved: b' ', reason: *b"T1  " };
    let directory = Body::Other(b'R', [&GOOGLE.0[..], &[b'x'; 20]].concat());
    let all = messages(&[
        (1, executed(40).into()),
        (2, executed(1_000).into()),
        (2, executed(999).into()),
        (1, with_price.into()),
        (1, OrderCancel { order: 1, cancelled: 5 }.into()),
        (2, OrderCancel { order: 2, cancelled: shares }.into()),
        (1, OrderDelete { order: 1 }.into()),
        (1, OrderReplace { order: 2, replacement: 3, shares: 10, price }.into()),
        (2, OrderReplace { order: 2, replacement: 3, shares, price }.into()),
        (2, Trade { order: 0, side, shares: 1, stock: OTHER, price, match_number: 9 }.into()),
        (
            1,
            CrossTrade { shares: 1 << 40, stock: GOOGLE, price: Price(5_000_001), match_number: 10, cross: b'O' }
                .into(),
        ),
        (1, halt(GOOGLE).into()),
        (2, halt(OTHER).into()),
        (1, directory),
        (0, BrokenTrade { match_number: 9 }.into()),
        (0, SystemEvent { event: b'C' }.into()),
    ]);
    let [fund, desk, tape] = delivered(&all);
    assert_eq!(fund, picked(&all, &[0, 3, 4, 6, 7, 10, 11, 13]));
    assert_eq!(desk, picked(&all, &[1, 3, 5, 8]));
    assert_eq!(tape, picked(&all, &[0, 1, 2, 3, 9, 10]));
}
