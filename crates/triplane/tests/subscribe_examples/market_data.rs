//! Messages that `examples/market-data` knows and its made-up feed does not have.

use super::{Example, Host};
use wire::itch::{AddOrder, AddOrderAttributed, Body, Header, Message, OrderDelete, Price, Side, Symbol};
use wire::moldudp64;

const EXAMPLE: Example = Example { name: "market-data", format: "feed.p4", rules: "rules.sub" };

const EXCHANGE: Host = Host { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1], port: market::PORT };
const EVERYONE: Host = Host { mac: [1, 0, 0x5e, 1, 1, 1], ip: [239, 1, 1, 1], port: market::PORT };

fn messages(bodies: &[Body]) -> Vec<Vec<u8>> {
    let header = Header { stock_locate: 1, tracking: 0, timestamp_ns: 0 };
    let bytes = |body: &Body| {
        let mut bytes = Vec::new();
        Message { header, body: body.clone() }.emit(&mut bytes);
        bytes
    };
    bodies.iter().map(bytes).collect()
}

#[test]
fn attributed_orders_are_delivered_as_orders_are() {
    let google = Symbol(*b"GOOGL   ");
    let (side, price) = (Side::Sell, Price(4_000_000));
    let attributed = |stock, shares| AddOrderAttributed { order: 1, side, shares, stock, price, attribution: *b"MMKR" };
    let plain = |stock, shares| AddOrder { order: 2, side, shares, stock, price };
    let other = Symbol(*b"S0001   ");
    let all = messages(&[
        attributed(google, 100).into(),
        OrderDelete { order: 9 }.into(),
        plain(google, 100).into(),
        attributed(other, 1_000).into(),
        attributed(other, 999).into(),
        attributed(google, 2_000).into(),
    ]);
    let sent = EXCHANGE.datagram(EVERYONE, &moldudp64::datagram(*b"TRIPLANE01", 1, &all));
    let got = EXAMPLE.send(&[(1, &[sent])], 4);
    let delivered = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let behind = |frame: &Vec<u8>| {
            let mold = moldudp64::Packet::new_checked(&frame[14 + 20 + 8..]).unwrap();
            mold.messages().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        frames.iter().flat_map(behind).collect()
    };
    let picked = |numbers: &[usize]| numbers.iter().map(|number| all[*number].clone()).collect::<Vec<_>>();
    // The fund wants one stock, the desk large orders of any.
    assert_eq!(delivered(&got[1]), picked(&[0, 2, 5]));
    assert_eq!(delivered(&got[2]), picked(&[3, 5]));
    assert!(got[3].is_empty());
}
