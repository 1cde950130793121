//! Tests that checksums over payloads of every length are equal in both executors.

use std::sync::Arc;

use compiler::Source;
use rng::SplitMix64;
use switch::Frame;
use v1model::{Config, Switch, V1Model};

use crate::rows::{WAYS, Way, step};

/// A program with one checksum over an even number of bytes and the payload, and one over an odd number.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_h { bit<16> even; bit<16> odd; bit<16> part; bit<4> high; bit<4> low; }
struct headers_t { h_h h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum_with_payload(true, { hdr.h.part }, hdr.h.even, HashAlgorithm.csum16); }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        hdr.h.high = hdr.h.low;
        if (standard.checksum_error == 1) { hdr.h.low = 0; }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control U(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(true, { hdr.h.part, 8w7, hdr.h.high, hdr.h.low }, hdr.h.even,
            HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.h.low != 3, { hdr.h.part, hdr.h.high, hdr.h.low }, hdr.h.odd,
            HashAlgorithm.csum16);
    }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
"#;

/// Returns the checksum of bytes (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the frames that leave when a frame arrives.
fn expected(frame: &[u8]) -> Vec<u8> {
    let (header, payload) = frame.split_at(7);
    let part = [header[4], header[5]];
    let is_right = checksum(&[&part[..], payload].concat()) == u16::from_be_bytes([header[0], header[1]]);
    let low = header[6] & 0xf;
    let last = low << 4 | if is_right { low } else { 0 };
    let even = checksum(&[&part[..], &[7, last], payload].concat());
    let odd = match last & 0xf {
        3 => u16::from_be_bytes([header[2], header[3]]),
        _ => checksum(&[&part[..], &[last], payload].concat()),
    };
    [&even.to_be_bytes()[..], &odd.to_be_bytes(), &part, &[last], payload].concat()
}

#[test]
fn sums_over_payloads_are_right_for_every_length() {
    WAYS.into_iter().for_each(sums);
}

fn sums(way: Way) {
    let program = Arc::new(compiler::expect_program(&Source::new("sums.p4", PROGRAM), &V1Model).ir);
    let config = Config { executor: way.executor, min_frame: 0, ..Config::with_ports(5) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    let mut rng = SplitMix64::new(3);
    for length in (0..100).chain([1400, 1493]) {
        let mut frame: Vec<u8> = (0..7 + length).map(|_| rng.next_u64() as u8).collect();
        if length % 5 == 0 {
            frame[7..].fill([0, 0xff][length % 2]);
        }
        if length % 3 > 0 {
            let sum = checksum(&[&frame[4..6], &frame[7..]].concat());
            frame[..2].copy_from_slice(&sum.to_be_bytes());
        }
        let left = step(&mut switch, way, [Frame::new(1, frame.clone())]);
        assert_eq!(left, [Frame::new(2, expected(&frame))], "{way:?}, {length} bytes");
    }
}
