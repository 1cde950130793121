//! `examples/feed-router`.

use super::{Example, Host, frames};
use wire::itch::{AddOrder, Body, Message, MessageHeader, OrderDelete, Price, Side, Symbol};
use wire::{ethernet, ipv4, moldudp64};

const EXAMPLE: Example = Example { name: "feed-router", format: "router.p4", rules: "rules.sub" };

const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
const EXCHANGE: Host = Host { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1], port: itch_feed::PORT };
const FUND: Host = Host { mac: [2, 0, 0, 0, 0, 2], ip: [10, 0, 2, 2], port: 40_000 };
const DESK: Host = Host { mac: [2, 0, 0, 0, 0, 3], ip: [10, 0, 3, 3], port: 40_000 };
const FEED: Host = Host { mac: [1, 0, 0x5e, 1, 1, 1], ip: [239, 1, 1, 1], port: itch_feed::PORT };

fn order(stock: &[u8; 8], shares: u32) -> Vec<u8> {
    message(AddOrder { order: 1, side: Side::Buy, shares, stock: Symbol(*stock), price: Price(1) }.into())
}

fn message(body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = MessageHeader { stock_locate: 1, tracking: 0, timestamp_ns: 0 };
    Message { header, body }.emit(&mut bytes);
    bytes
}

fn feed(first: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    EXCHANGE.datagram(FEED, &moldudp64::datagram(*b"TRIPLANE01", first, messages))
}

/// A packet of another protocol than UDP, with arbitrary contents.
fn other(from: Host, to: Host, protocol: u8) -> Vec<u8> {
    let ip = ipv4::Repr::new(from.ip.into(), to.ip.into(), protocol);
    via(&ip.packet(&[7; 20]), from.mac, ROUTER)
}

fn via(ip: &[u8], from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let (destination, source) = (ethernet::Address(to), ethernet::Address(from));
    ethernet::Repr { destination, source, ethertype: ethernet::IPV4 }.packet(ip)
}

/// A packet as the router forwards it.
fn routed(mut frame: Vec<u8>, to: Host) -> Vec<u8> {
    frame[..6].copy_from_slice(&to.mac);
    frame[6..12].copy_from_slice(&ROUTER);
    frame[22] -= 1;
    let sum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + 0x100;
    frame[24..26].copy_from_slice(&((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes());
    frame
}

/// A datagram to a host behind the router.
fn datagram(from: Host, to: Host, payload: &[u8]) -> Vec<u8> {
    from.datagram(Host { mac: ROUTER, ..to }, payload)
}

#[test]
fn rules_deliver_the_feed_and_the_program_routes_the_rest() {
    let messages = [
        order(b"GOOGL   ", 100),
        order(b"MSFT    ", 2_000),
        message(OrderDelete { order: 1 }.into()),
        order(b"GOOGL   ", 200),
    ];
    let tcp = other(EXCHANGE, FUND, ipv4::TCP);
    // Of the feed's protocol, but not to its group.
    let request = datagram(FUND, EXCHANGE, &moldudp64::datagram::<&[u8]>(*b"TRIPLANE01", 1, &[]));
    let ping = other(FUND, DESK, ipv4::ICMP);
    EXAMPLE.has_capture("exchange.pcap", 0, &[feed(1, &messages), tcp.clone()]);
    EXAMPLE.has_capture("fund.pcap", 50, &[request.clone(), ping.clone()]);
    let (directory, _) = EXAMPLE.run_readme();
    let at = |name: &str| frames(&directory.path(name));
    let picked = |numbers: &[usize]| numbers.iter().map(|number| messages[*number].clone()).collect::<Vec<_>>();
    assert_eq!(at("to-exchange.pcap"), [routed(request, EXCHANGE)]);
    let [got, second] = &at("to-fund.pcap")[..] else { panic!("two packets leave") };
    assert_eq!(*second, routed(tcp, FUND));
    assert_eq!(messages_of(got), picked(&[0, 3]));
    let [got, second] = &at("to-desk.pcap")[..] else { panic!("two packets leave") };
    assert_eq!(messages_of(got), picked(&[1]));
    assert_eq!(*second, routed(ping, DESK));
}

fn messages_of(frame: &[u8]) -> Vec<Vec<u8>> {
    let mold = moldudp64::Packet::new_checked(&frame[14 + 20 + 8..]).unwrap();
    mold.messages().map(<[u8]>::to_vec).collect()
}

#[test]
fn what_the_program_does_not_route_is_dropped() {
    let nowhere = Host { ip: [192, 0, 2, 1], ..DESK };
    let mut expired = other(EXCHANGE, FUND, ipv4::TCP);
    expired[22] = 1;
    let arp = ethernet::Repr {
        destination: ethernet::Address::BROADCAST,
        source: ethernet::Address(FUND.mac),
        ethertype: ethernet::ARP,
    };
    let sent = [datagram(EXCHANGE, nowhere, b"hello"), expired, arp.packet(&[0; 46])];
    assert_eq!(EXAMPLE.send(&[(1, &sent)], 3), vec![Vec::<Vec<u8>>::new(); 3]);
}

#[test]
fn a_datagram_of_more_passes_than_one_and_other_packets_do_not_mix() {
    let many: Vec<Vec<u8>> = (0..40).map(|number| order(b"GOOGL   ", number)).collect();
    let tcp = other(EXCHANGE, DESK, ipv4::TCP);
    let got = EXAMPLE.send(&[(1, &[feed(1, &many), tcp.clone(), feed(41, &many[..1])])], 3);
    let delivered: Vec<Vec<u8>> = got[1].iter().flat_map(|frame| messages_of(frame)).collect();
    assert_eq!(delivered, [&many[..], &many[..1]].concat());
    assert_eq!((&got[0], &got[2]), (&vec![], &vec![routed(tcp, DESK)]));
}
