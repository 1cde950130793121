//! Number of recirculation passes of a packet, and the bytes after its messages.

use std::fs::read_to_string;

use itch_feed::{Feed, Receiver, Spec, Workload, messages};
use wire::{ethernet, ipv4, moldudp64};

use crate::subscribe::{FORMAT, payload, run_rules};
use crate::support::Directory;
use crate::support::feed::frame;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const GOOGLE: &str = "stock == \"GOOGL\" : fwd(2)\n";

/// Returns the first `count` messages of a feed, as bytes.
fn made(spec: Spec, count: usize) -> Vec<Vec<u8>> {
    let mut feed = Feed::new(spec);
    let mut made = Vec::new();
    while made.len() < count {
        let payload = feed.datagram(0);
        made.extend(moldudp64::Packet::new_checked(&payload[..]).unwrap().messages().map(<[u8]>::to_vec));
    }
    made.truncate(count);
    made
}

/// Returns messages that nobody wants, followed by messages that are all wanted.
fn wanted_last(nobodys: usize, wanted: usize) -> Vec<Vec<u8>> {
    let others = Spec { share: 0.0, ..Workload::Synthetic.spec(1) };
    [made(others, nobodys), made(Workload::WorstCase.spec(2), wanted)].concat()
}

fn datagram(sequence: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    frame(&moldudp64::datagram(*b"TRIPLANE01", sequence, messages))
}

#[test]
fn messages_without_subscribers_take_one_pass() {
    // Messages per pass, unwanted messages at the front, wanted messages after them, and messages that are lost.
    for (per_pass, nobodys, wanted, lost) in [
        ("1", 39, 1, 0),
        ("1", 255, 1, 0),
        ("1", 256, 1, 1),
        ("1", 231, 13, 0),
        ("1", 231, 14, 1),
        ("4", 200, 1, 0),
        ("5", 130, 2, 0),
    ] {
        let all = wanted_last(nobodys, wanted);
        let next = made(Workload::WorstCase.spec(3), 1);
        let frames = [datagram(1, &all), datagram(1 + all.len() as u64, &next)];
        let got = run_rules(FORMAT, GOOGLE, &["--messages-per-pass", per_pass], &frames, &[2]);
        let mut receiver = Receiver::from_start();
        let arrived = got[0].iter().flat_map(|frame| receiver.receive(&payload(frame), 0).unwrap());
        let arrived: Vec<_> = arrived.map(|arrival| arrival.message).collect();
        let sent = [&all[nobodys..all.len() - lost as usize], &next].concat();
        let sent = messages(&moldudp64::datagram(*b"TRIPLANE01", 1, &sent)).unwrap();
        assert_eq!(arrived, sent, "{nobodys} and {wanted}, {per_pass} a pass");
        assert_eq!(receiver.totals().missing, lost, "{nobodys} and {wanted}, {per_pass} a pass");
    }
}

#[test]
fn actions_do_not_choose_who_gets_messages() {
    let action =
        "@query_action action astray(inout standard_metadata_t to) { to.mcast_grp = 0x7fff; to.egress_spec = 3; }";
    let directory = Directory::new();
    let format =
        directory.write("astray.p4", format!("{}\n{action}\n", read_to_string(format!("{ROOT}/{FORMAT}")).unwrap()));
    let rules = "stock == \"GOOGL\" : fwd(2); astray()\nkind == \"X\" : fwd(3)\n";
    for shape in [&[][..], &["--messages-per-pass", "1"]] {
        let got = run_rules(&format, rules, shape, &[datagram(1, &wanted_last(3, 3))], &[2, 3]);
        assert!(!got[0].is_empty() && got[1].is_empty(), "{shape:?}: {got:02x?}");
    }
}

#[test]
fn a_field_of_the_packet_is_there_in_messages_without_it() {
    let mixed = read_to_string(format!("{ROOT}/crates/subscribe_p4/testdata/mixed.p4")).unwrap();
    let shared = mixed.replace("@query_field_exact(\"version\")", "@query_field(\"fee\")");
    assert_ne!(mixed, shared);
    let directory = Directory::new();
    let format = directory.write("shared.p4", &shared);
    let packet = |messages: &[&[u8]]| {
        let body = messages.concat();
        [&[17, 0, 4 + body.len() as u8, messages.len() as u8, 2][..], &body].concat()
    };
    let (buy, sell, dear, note) = (&[0x42, 7][..], &[0x53, 7, 9][..], &[0x53, 7, 2][..], &[0x60][..]);
    for shape in [&[][..], &["--messages-per-pass", "1"]] {
        let frames = [packet(&[buy, sell, note]), packet(&[sell, dear])];
        let got = run_rules(&format, "fee == 2 : fwd(2)", shape, &frames, &[2]);
        let expected = match shape {
            [] => vec![packet(&[buy, note]), packet(&[dear])],
            _ => vec![packet(&[buy]), packet(&[note]), packet(&[dear])],
        };
        assert_eq!(got[0], expected, "{shape:?}");
    }
    // An action for one message changes the packet's header; the messages after it do not see the change.
    let action = "@query_action action late(inout headers_t hdr) { hdr.head.version = 9; }";
    let format = directory.write("late.p4", format!("{shared}\n{action}\n"));
    let got = run_rules(&format, "fee == 2 : fwd(2); late()", &[], &[packet(&[buy, note])], &[2]);
    let mut expected = packet(&[buy, note]);
    expected[4] = 9;
    assert_eq!(got[0], [expected]);
}

#[test]
fn datagrams_have_no_bytes_of_other_messages_at_their_end() {
    let (nobodys, wanted) = (wanted_last(30, 0), wanted_last(0, 30));
    let mixed: Vec<Vec<u8>> =
        nobodys.iter().zip(&wanted).flat_map(|(one, other)| [one.clone(), other.clone()]).collect();
    for all in [&wanted[..], &mixed, &wanted[..5], &mixed[..5]] {
        let mut padded = datagram(1, all);
        padded.extend([0xee; 23]);
        for shape in [&[][..], &["--messages-per-pass", "1"], &["--messages-per-pass", "5"]] {
            let got = run_rules(FORMAT, GOOGLE, shape, std::slice::from_ref(&padded), &[2]);
            assert!(!got[0].is_empty());
            for frame in &got[0] {
                let ip = ipv4::Packet::new_checked(&frame[ethernet::HEADER_LEN..]).unwrap();
                let behind = &frame[ethernet::HEADER_LEN + ip.total_len()..];
                assert!(behind.iter().all(|byte| *byte == 0xee), "{shape:?}: {behind:02x?} stands behind {frame:02x?}");
            }
        }
    }
}
