//! Text specifications: their meaning, their errors with locations, and the frames that they generate.

use std::collections::HashSet;

use diagnostics::{Diagnostics, SourceMap};
use traffic_gen::{Generator, Spec, TrafficSource, tag_of};
use wire::{ethernet, ipv4, ipv6, udp, vlan};

/// Parses a text. Returns findings in one line each: `column-column code: message; help`.
fn read(text: &str) -> Result<TrafficSource, Vec<String>> {
    let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("--traffic", text);
    let given = traffic_gen::read(&map, file, 510, &mut findings);
    assert_eq!(given.is_none(), findings.has_errors());
    let told = |finding: &diagnostics::Diagnostic| {
        let (span, help) = (finding.primary.span, finding.help.as_deref().expect("every finding says what to do"));
        format!("{}-{} {}: {}; {help}", span.start, span.end, finding.code, finding.message)
    };
    given.ok_or_else(|| findings.iter().map(told).collect())
}

fn made(text: &str) -> Spec {
    match read(text) {
        Ok(TrafficSource::Made(spec)) => spec,
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns the first frames of a specification and their ingress ports.
fn frames(text: &str, count: usize) -> Vec<(u32, Vec<u8>)> {
    let mut generator = Generator::new(&made(text));
    let mut one = || {
        let mut frame = Vec::new();
        (generator.next(&mut frame), frame)
    };
    (0..count).map(|_| one()).collect()
}

#[test]
fn a_specification_is_described_in_words() {
    let told = [
        ("", "64-byte frames of UDP over IPv4, 1 flow, on ingress port 1"),
        ("dst=2001:db8::/32", "64-byte frames of UDP over IPv6 to 2001:db8::/32, 1 flow, on ingress port 1"),
        ("udp,ipv6", "64-byte frames of UDP over IPv6, 1 flow, on ingress port 1"),
        ("eth,flows=2", "64-byte frames of Ethernet, 2 flows, on ingress port 1"),
        ("ipv4,size=100", "100-byte frames of IPv4, 1 flow, on ingress port 1"),
        ("tcp,vlan=5,vlan=6", "64-byte frames of TCP over IPv4 over VLAN over VLAN, 1 flow, on ingress port 1"),
        ("tcp,ipv6", "74-byte frames of TCP over IPv6, 1 flow, on ingress port 1"),
        (
            "vlan , udp, ports = 1+3-5,",
            "64-byte frames of UDP over IPv4 over VLAN, 1 flow, on ingress ports 1, 3, 4, 5",
        ),
        (
            "size=64-1500,flows=10000,zipf=0.99,src=10.0.0.1-10.0.0.9,dst=10.0.0.0/16,ports=1-4",
            "frames of 64 to 1500 bytes of UDP over IPv4 from 10.0.0.1 to 10.0.0.9 to 10.0.0.0/16, 10000 flows with \
             Zipf exponent 0.99, on ingress ports 1 to 4",
        ),
        (
            "frame=000000000001 000000000002 1212 0001 0002,vary=16+2,flows=9",
            "18-byte frames as given, 9 flows, on ingress port 1",
        ),
    ];
    for (text, expected) in told {
        assert_eq!(made(text).to_string(), expected, "{text}");
    }
    assert_eq!(read("pcap=in.pcap,ports=2"), Ok(TrafficSource::Capture { path: "in.pcap".into(), ports: vec![2] }));
}

#[test]
fn mistakes_are_found_at_their_place() {
    let told = [
        ("udp,siez=64", "4-8 traffic-unknown: there is no `siez`; did you mean `size=64`?"),
        ("upd", "0-3 traffic-unknown: there is no `upd`; did you mean `udp`?"),
        ("udp,size", "4-8 traffic-syntax: `size` has no value; write `size=64`, for example"),
        ("udp,,size=64", "4-4 traffic-syntax: this item is empty; remove the comma"),
        ("udp,tcp", "4-7 traffic-headers: a frame has either UDP or TCP; keep one of them"),
        ("size=many", "5-9 traffic-value: `many` is not a number; write `size=64`, for example"),
        ("size=", "5-5 traffic-value: `size` has no value; write `size=64`, for example"),
        (
            "size=40",
            "5-7 traffic-size: Ethernet, IPv4, UDP have 42 bytes, so a frame cannot have only 40; write `size=42` or \
             more",
        ),
        ("size=100-64", "5-11 traffic-value: `100-64` is an empty range; write the smaller value first"),
        ("size=64,size=65", "8-12 traffic-twice: `size` is given twice; keep one of them"),
        ("flows=0", "6-7 traffic-value: 0 is not between 1 and 4294967296; write `flows=10000`, for example"),
        ("ports=600", "6-9 traffic-value: 600 is not between 0 and 510; write `ports=1-4`, for example"),
        ("dst=10.0.0.0/33", "4-15 traffic-value: `33` is not a valid prefix length; write 0 to 32 after the /"),
        (
            "dst=10.0.0",
            "4-10 traffic-value: `10.0.0` is not an address, a prefix or two addresses with - between them; write \
             `dst=10.0.0.0/16`, for example",
        ),
        (
            "ipv4,dst=2001:db8::1",
            "9-20 traffic-headers: a frame has either IPv4 or IPv6; use the same version for both",
        ),
        ("zipf=-1", "5-7 traffic-value: `-1` is not a number above 0, up to 10; write `zipf=0.99`, for example"),
        (
            "payload=0",
            "8-9 traffic-value: `0` is not an even number of hexadecimal digits; write `payload=00ff`, for example",
        ),
        ("vary=63+2", "0-4 traffic-value: bytes 63 to 64 are not in every frame; frames have 64 bytes or more"),
        (
            "pcap=x,size=64",
            "7-11 traffic-capture: the frames of a capture are not changed, so `size` has no effect; only `ports` can \
             be combined with `pcap`",
        ),
        (
            "udp,proto=7",
            "4-9 traffic-headers: with a UDP or TCP header, the protocol is fixed; omit `proto`, or use `ipv4` or \
             `ipv6` as the last header",
        ),
    ];
    for (text, expected) in told {
        assert_eq!(read(text).unwrap_err(), [expected], "{text}");
    }
    assert_eq!(read("upd,size=x,dst=1").unwrap_err().len(), 3, "all of them are told");
}

#[test]
fn frames_are_whole_and_right() {
    for (port, bytes) in
        frames("vlan=7-9,udp,size=80-90,flows=1000,src=10.1.2.3,dst=10.7.0.0/16,dport=53,ttl=9,ports=1-4", 500)
    {
        assert!((1..=4).contains(&port) && (80..=90).contains(&bytes.len()));
        let outer = ethernet::Packet::new_checked(&bytes).unwrap();
        assert_eq!(outer.ethertype(), ethernet::VLAN);
        let tag = vlan::Packet::new_checked(outer.payload()).unwrap();
        assert!((7..=9).contains(&tag.identifier()) && tag.ethertype() == ethernet::IPV4);
        let ip = ipv4::Packet::new_checked(tag.payload()).unwrap();
        assert_eq!((ip.ttl(), ip.protocol(), ip.source().octets()), (9, ipv4::UDP, [10, 1, 2, 3]));
        assert!(ip.is_checksum_right() && ip.destination().octets()[..2] == [10, 7]);
        let datagram = udp::Packet::new_checked(ip.payload()).unwrap();
        assert_eq!((datagram.destination_port(), datagram.length()), (53, bytes.len() - 38));
        assert!(datagram.is_checksum_right(ipv4::Repr::parse(&ip).addresses()));
    }
    for (_, bytes) in frames("tcp,ipv6,size=imix,payload=ab,flows=10", 100) {
        let ethernet = ethernet::Packet::new_checked(&bytes).unwrap();
        let ip = ipv6::Packet::new_checked(ethernet.payload()).unwrap();
        let segment = wire::tcp::Packet::new_checked(ip.payload()).unwrap();
        assert!(segment.is_checksum_right(ipv6::Repr::parse(&ip).addresses()));
        assert!(segment.payload().iter().all(|byte| *byte == 0xab));
    }
    let two = &frames("vlan=1,vlan=2", 1)[0].1;
    assert_eq!(two[12..20], [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]);
}

#[test]
fn flows_are_as_many_as_said_and_keep_to_a_port() {
    let text = "flows=64,dst=10.0.0.0/26,src=10.9.9.9,sport=7,ports=1+5";
    let made = frames(text, 5000);
    let different: HashSet<_> = made.iter().collect();
    assert_eq!(different.len(), 64);
    let destinations: HashSet<_> = made.iter().map(|(_, frame)| frame[30..34].to_vec()).collect();
    assert_eq!(destinations.len(), 64);
    assert_eq!(frames(text, 100), made[..100], "the same seed makes the same");
    assert_ne!(frames(&format!("{text},seed=2"), 100), made[..100]);
    let favourites: HashSet<_> = frames(&format!("{text},zipf=3"), 50).into_iter().collect();
    assert!(favourites.len() < 20, "{}", favourites.len());
}

#[test]
fn whole_frames_vary_at_the_given_offsets() {
    let text = "frame=ffffffffffff 000000000001 88b5 0000 cafe,size=30,flows=300,vary=14+2";
    let numbers: HashSet<u16> = frames(text, 5000)
        .into_iter()
        .map(|(_, frame)| {
            assert_eq!((frame.len(), &frame[16..18], &frame[18..]), (30, &[0xca, 0xfe][..], &[0; 12][..]));
            u16::from_be_bytes([frame[14], frame[15]])
        })
        .collect();
    assert_eq!(numbers.len(), 300);
    assert_eq!(numbers.into_iter().max(), Some(299));
}

#[test]
fn frames_are_identified_by_their_tags() {
    let mut generator = Generator::new(&made("udp,size=64,flows=3"));
    let mut frame = Vec::new();
    generator.next_tagged(77, &mut frame);
    let ip = ipv4::Packet::new_checked(&frame[14..]).unwrap();
    let datagram = udp::Packet::new_checked(ip.payload()).unwrap();
    assert!(datagram.is_checksum_right(ipv4::Repr::parse(&ip).addresses()), "the checksum covers the tag");
    assert_eq!(tag_of(&frame), Some(77));
    frame.extend([0; 5]);
    assert_eq!(tag_of(&frame), Some(77), "padding does no harm");
    generator.next(&mut frame);
    assert_eq!(tag_of(&frame), None);
    let mut replay = Generator::replay(vec![vec![1], vec![2], vec![3]], vec![8, 9]);
    let ports: Vec<(u32, u8)> = (0..4).map(|_| (replay.next(&mut frame), frame[0])).collect();
    assert_eq!(ports, [(8, 1), (9, 2), (8, 3), (8, 1)]);
}
