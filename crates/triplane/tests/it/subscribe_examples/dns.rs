//! `examples/dns`.

use std::process::Command;

use super::{Example, Host, capture, frames};
use crate::support::{self, Directory};
use wire::{ethernet, ipv4, udp};

const EXAMPLE: Example = Example { name: "dns", format: "dns.p4", rules: "names.sub" };

const CLIENT: Host = Host { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1], port: 40_001 };
const SERVER: Host = Host { mac: [2, 0, 0, 0, 0, 53], ip: [10, 0, 0, 53], port: 53 };

const A: u16 = 1;
const AAAA: u16 = 28;
const RECURSION_DESIRED: u16 = 0x0100;
/// Flags of an authoritative response to a query that desires recursion.
const ANSWERED: u16 = 0x8500;
/// An empty OPT record for 1232 bytes of UDP (RFC 6891, section 6.1.2).
const OPT: [u8; 11] = [0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0];

/// Encodes a name with the lengths of its labels (RFC 1035, section 3.1).
fn name(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let labels = labels.flat_map(|label| [&[label.len() as u8][..], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

/// A message with one question, and the bytes that follow it.
fn message(id: u16, flags: u16, counts: [u16; 3], asked: &[u8], kind: u16, behind: &[u8]) -> Vec<u8> {
    let header = [id, flags, 1, counts[0], counts[1], counts[2]].map(u16::to_be_bytes).concat();
    [&header, asked, &kind.to_be_bytes(), &1u16.to_be_bytes(), behind].concat()
}

fn query(id: u16, asked: &str, kind: u16) -> Vec<u8> {
    CLIENT.datagram(SERVER, &message(id, RECURSION_DESIRED, [0; 3], &name(asked), kind, &[]))
}

/// A query as most clients send it: they support EDNS and understand authenticated data (RFC 6840, section 5.7).
fn query_with_opt(id: u16, asked: &str, kind: u16) -> Vec<u8> {
    CLIENT.datagram(SERVER, &message(id, RECURSION_DESIRED | 0x20, [0, 0, 1], &name(asked), kind, &OPT))
}

/// The switch's response to a query: an answer with one address, and no UDP checksum.
fn answer(id: u16, asked: &str, address: [u8; 4], ttl: u32) -> Vec<u8> {
    let record = [&[0xc0, 12, 0, 1, 0, 1][..], &ttl.to_be_bytes(), &[0, 4], &address].concat();
    let mut frame = SERVER.datagram(CLIENT, &message(id, ANSWERED, [1, 0, 0], &name(asked), A, &record));
    frame[14 + 20 + 6..][..2].fill(0);
    frame
}

fn server_response() -> Vec<u8> {
    let record = [&[0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16][..], &[0x20, 1, 0xd, 0xb8], &[0; 11], &[0x80]].concat();
    let asked = name("www.example.com");
    SERVER.datagram(CLIENT, &message(2, 0x8580, [1, 0, 0], &asked, AAAA, &record))
}

#[test]
fn the_switch_answers_for_the_names_of_rules_and_the_server_for_all_others() {
    let all = [
        query(1, "www.example.com", A),
        query(2, "www.example.com", AAAA),
        query_with_opt(3, "example.com", A),
        query(4, "Mail.eXample.ORG", A),
        query(5, "www.example.net", A),
        query(6, "ftp.example.com", A),
    ];
    EXAMPLE.has_capture("clients.pcap", 0, &all);
    EXAMPLE.has_capture("server.pcap", 150, &[server_response()]);
    let (directory, _) = EXAMPLE.run_readme();
    let to_clients = frames(&directory.path("to-clients.pcap"));
    let expected = [
        answer(1, "www.example.com", [192, 0, 2, 80], 300),
        server_response(),
        answer(3, "example.com", [192, 0, 2, 80], 300),
        answer(4, "Mail.eXample.ORG", [192, 0, 2, 25], 3600),
    ];
    assert_eq!(to_clients, expected);
    assert_eq!(frames(&directory.path("to-server.pcap")), [all[1].clone(), all[4].clone(), all[5].clone()]);
    for answer in &to_clients {
        let ip = ipv4::Packet::new_checked(&answer[ethernet::HEADER_LEN..]).unwrap();
        assert!(ip.is_checksum_right() && ip.total_len() == answer.len() - ethernet::HEADER_LEN);
        let udp = udp::Packet::new_checked(ip.payload()).unwrap();
        assert!(udp.length() == ip.payload().len() && udp.is_checksum_right(ipv4::Repr::parse(&ip).addresses()));
    }
}

#[test]
fn names_of_other_lengths_are_other_names() {
    let hosts: Vec<String> = (1..=63).map(|length| "w".repeat(length)).collect();
    let sent: Vec<Vec<u8>> = hosts.iter().map(|host| query(1, &format!("{host}.example.com"), A)).collect();
    let got = EXAMPLE.send(&[(1, &sent)], 2);
    assert_eq!(got[0], [answer(1, "www.example.com", [192, 0, 2, 80], 300)]);
    assert_eq!(got[1], [&sent[..2], &sent[3..]].concat());
}

#[test]
fn other_queries_are_forwarded_unchanged() {
    let known = name("www.example.com");
    let ask = |flags, counts, asked: &[u8], behind: &[u8]| {
        CLIENT.datagram(SERVER, &message(9, flags, counts, asked, A, behind))
    };
    let plain = ask(RECURSION_DESIRED, [0; 3], &known, &[]);
    let mut of_chaos = plain.clone();
    *of_chaos.last_mut().unwrap() = 3;
    let mut of_two = plain.clone();
    of_two[14 + 20 + 8 + 5] = 2;
    let mut fragment = plain.clone();
    fragment[14 + 6] = 0x20;
    let pointer = [&[3][..], b"www", &[0xc0, 12]].concat();
    let mut sent = vec![
        ask(0x8100, [0; 3], &known, &[]),
        ask(0x2800, [0; 3], &known, &[]),
        ask(0, [1, 0, 0], &known, &[]),
        ask(0, [0, 1, 0], &known, &[]),
        ask(0, [0; 3], &name("a.www.example.com"), &[]),
        ask(0, [0; 3], &name("com.example.www"), &[]),
        ask(0, [0; 3], &name("www.example.com.com"), &[]),
        ask(0, [0; 3], &name(""), &[]),
        ask(0, [0; 3], &name("com"), &[]),
        ask(0, [0; 3], &pointer, &[]),
        of_chaos,
        of_two,
    ];
    // Packets cut at every length after the UDP header.
    sent.extend((14 + 20 + 8..plain.len()).map(|length| plain[..length].to_vec()));
    let got = EXAMPLE.send(&[(1, &sent), (2, &[fragment])], 2);
    // A fragment has no ports to match.
    assert_eq!(got, [vec![], sent]);
}

#[test]
fn tshark_finds_no_fault_in_the_answers() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return testing::skip("tshark is not installed");
    }
    let sent = [query(1, "www.example.com", A), query_with_opt(2, "mail.example.com", A)];
    let got = EXAMPLE.send(&[(1, &sent)], 2);
    let directory = Directory::new();
    let path = directory.write("answers.pcap", capture((0..).zip(&got[0])));
    let fields = ["dns.id", "dns.qry.name", "dns.a", "dns.resp.ttl", "ip.checksum.status", "_ws.expert.message"];
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r", &path, "-o", "ip.check_checksum:TRUE", "-T", "fields"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let said = support::run(&mut tshark).ok().stdout;
    let expected = "0x0001\twww.example.com\t192.0.2.80\t300\t1\t\n0x0002\tmail.example.com\t192.0.2.25\t3600\t1\t\n";
    assert_eq!(said, expected);
}
