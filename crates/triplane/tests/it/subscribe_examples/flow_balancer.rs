//! `examples/flow-balancer`.

use super::{Example, Host, frames};
use crate::support::Directory;

const EXAMPLE: Example = Example { name: "flow-balancer", format: "balancer.p4", rules: "shares.sub" };

const GATEWAY: [u8; 6] = [2, 0, 0, 0, 0, 1];
const BALANCER: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
const SERVERS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3], [2, 0, 0, 0, 0, 4]];
const SERVICE: Host = Host { mac: BALANCER, ip: [10, 0, 0, 100], port: 80 };

fn client(ip: [u8; 4], port: u16) -> Host {
    Host { mac: GATEWAY, ip, port }
}

/// The packet as it leaves for a server.
fn for_server(mut frame: Vec<u8>, server: usize) -> Vec<u8> {
    frame[..6].copy_from_slice(&SERVERS[server]);
    frame
}

/// Returns the number of the server whose share has a flow: the bucket is the last byte of the CRC-32 of its addresses,
/// protocol and ports.
fn server_of(frame: &[u8]) -> usize {
    let flow = [&frame[26..34], &frame[23..24], &frame[34..38]].concat();
    let mut crc = !0_u32;
    for byte in flow {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    usize::from(!crc % 256 >= 192)
}

#[test]
fn flows_are_spread_by_the_rules_shares_and_the_rest_is_switched() {
    let mut flows: Vec<Vec<u8>> = (0..6)
        .map(|number| client([198, 51, 100, number], 40_000 + 97 * u16::from(number)).datagram(SERVICE, b"hello"))
        .collect();
    flows.push(client([10, 9, 1, 1], 40_000).datagram(SERVICE, b"hello"));
    flows.push(client([198, 51, 100, 0], 40_000).datagram(Host { mac: SERVERS[2], port: 22, ..SERVICE }, b"login"));
    let answer = Host { mac: SERVERS[0], ..SERVICE }.datagram(client([198, 51, 100, 0], 40_000), b"hello, too");
    EXAMPLE.has_capture("clients.pcap", 0, &flows);
    EXAMPLE.has_capture("server.pcap", 150, std::slice::from_ref(&answer));
    let (directory, _) = EXAMPLE.run_readme();
    let of = |server| {
        let own = flows[..6].iter().filter(|flow| server_of(flow) == server);
        own.map(|flow| for_server(flow.clone(), server)).collect::<Vec<_>>()
    };
    assert!(of(0).len() > 1 && !of(1).is_empty(), "both servers have flows");
    assert_eq!(frames(&directory.path("first.pcap")), of(0));
    assert_eq!(frames(&directory.path("second.pcap")), of(1));
    assert_eq!(frames(&directory.path("third.pcap")), [for_server(flows[6].clone(), 2), flows[7].clone()]);
    assert_eq!(frames(&directory.path("to-clients.pcap")), [answer]);
}

#[test]
fn a_share_is_a_share_of_many_flows() {
    let sent: Vec<Vec<u8>> = (0..1_000_u16)
        .map(|number| client([192, 0, 2, number as u8], 1_024 + number * 17).datagram(SERVICE, b"hello"))
        .collect();
    let got = EXAMPLE.send(&[(1, &sent)], 4);
    let first = got[1].len();
    assert_eq!(first + got[2].len(), 1_000);
    // Three quarters, with five standard deviations.
    assert!((682..=818).contains(&first), "{first}");
}

#[test]
fn what_rules_drop_or_only_count_falls_back_and_what_an_action_handles_does_not() {
    let directory = Directory::new();
    let rules = directory.write(
        "rules.sub",
        "port == 1 : drop\nport == 2 : to_controller\nport == 3 : to_server(02:00:00:00:00:04)\nport == 5 : fwd(3)\n",
    );
    let to = |port| client([192, 0, 2, 1], 9).datagram(Host { mac: SERVERS[0], port, ..SERVICE }, b"hello");
    let sent = [1, 2, 3, 4, 5].map(to);
    let got = EXAMPLE.send_by(&rules, &[(1, &sent)], 4);
    assert_eq!(got[1], [to(1), to(4)]);
    assert_eq!((&got[0], &got[2], &got[3]), (&vec![], &vec![to(5)], &vec![]));
}
