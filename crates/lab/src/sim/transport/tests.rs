//! Two ends of a connection, as they are visible on the wire. Each test is the story of a few packets.

use std::net::Ipv4Addr;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket, UdpRepr,
};

use super::segment::{Bits, CE, ECT0, Head, negotiate};
use super::{CongestionControl, Law, Transport};

const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 50_000);
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 80);

/// Bytes of a segment.
const SEGMENT: usize = 1_000;

const SECOND: u64 = 1_000_000_000;

fn ip(protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let (src_addr, dst_addr) = (CLIENT.0, SERVER.0);
    let repr = Ipv4Repr { src_addr, dst_addr, next_header: protocol, payload_len: payload.len(), hop_limit: 64 };
    let mut bytes = vec![0; repr.buffer_len() + payload.len()];
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes[..]);
    repr.emit(&mut packet, &ChecksumCapabilities::default());
    packet.payload_mut().copy_from_slice(payload);
    bytes
}

/// A segment as a stack creates it.
#[derive(Clone, Copy)]
struct Segment {
    control: TcpControl,
    number: u32,
    acknowledged: Option<u32>,
    range: Option<(u32, u32)>,
    len: usize,
}

const DATA: Segment =
    Segment { control: TcpControl::None, number: 1, acknowledged: Some(1), range: None, len: SEGMENT };
const ACKNOWLEDGEMENT: Segment = Segment { len: 0, ..DATA };
const SYN: Segment = Segment { control: TcpControl::Syn, number: 0, acknowledged: None, ..ACKNOWLEDGEMENT };
const ANSWER: Segment = Segment { acknowledged: Some(1), ..SYN };

impl Segment {
    fn at(number: u32) -> Segment {
        Segment { number, ..DATA }
    }

    fn up_to(acknowledged: u32) -> Segment {
        Segment { acknowledged: Some(acknowledged), ..ACKNOWLEDGEMENT }
    }

    /// Returns the packet, to the server or from it.
    fn packet(self, to_server: bool) -> Vec<u8> {
        let (from, to) = if to_server { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let payload = vec![7; self.len];
        let repr = TcpRepr {
            src_port: from.1,
            dst_port: to.1,
            control: self.control,
            seq_number: TcpSeqNumber(self.number as i32),
            ack_number: self.acknowledged.map(|number| TcpSeqNumber(number as i32)),
            window_len: u16::MAX,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [self.range, None, None],
            timestamp: None,
            payload: &payload,
        };
        let mut tcp = vec![0; repr.buffer_len()];
        let (source, destination) = (from.0.into(), to.0.into());
        repr.emit(&mut TcpPacket::new_unchecked(&mut tcp[..]), &source, &destination, &ChecksumCapabilities::default());
        let mut packet = ip(IpProtocol::Tcp, &tcp);
        let mut header = Ipv4Packet::new_unchecked(&mut packet[..]);
        header.set_src_addr(from.0);
        header.set_dst_addr(to.0);
        header.fill_checksum();
        packet
    }
}

/// The end of a connection at a host; the test plays its stack and its link.
struct End {
    transport: Transport,
    is_client: bool,
}

impl End {
    fn new(is_client: bool, law: Option<Law>) -> End {
        let mut transport = Transport::new(SEGMENT as u32 + 40);
        transport.control(SERVER.1, CongestionControl::Reno);
        law.into_iter().for_each(|law| transport.mark(SERVER.1, law));
        End { transport, is_client }
    }

    /// Returns the segments that go to the link now.
    fn poll(&mut self, now: u64) -> Vec<Head> {
        let (packets, _) = self.transport.poll(now);
        packets.iter().map(|packet| Head::read(packet).expect("a segment whose checksums are right")).collect()
    }

    /// Sends a segment from the stack. Returns the segments that go to the link.
    fn sends(&mut self, now: u64, segment: Segment) -> Vec<Head> {
        self.transport.sent(now, segment.packet(self.is_client));
        self.poll(now)
    }

    /// Delivers a segment with these bits. Returns the segments that go to the link.
    fn hears(&mut self, now: u64, segment: Segment, bits: Bits, ecn: u8) -> Vec<Head> {
        let mut packet = segment.packet(!self.is_client);
        negotiate(&mut packet, bits);
        let mut header = Ipv4Packet::new_unchecked(&mut packet[..]);
        header.set_ecn(ecn);
        header.fill_checksum();
        self.transport.arrived(now, &packet);
        self.poll(now)
    }

    /// Delivers a segment without any ECN bit.
    fn hears_plain(&mut self, now: u64, segment: Segment) -> Vec<Head> {
        self.hears(now, segment, Bits::default(), 0)
    }
}

const NONE: Bits = Bits { ece: false, cwr: false, ect: false };
const ECE: Bits = Bits { ece: true, ..NONE };
const CWR: Bits = Bits { cwr: true, ..NONE };
const BOTH: Bits = Bits { ece: true, cwr: true, ect: false };

fn bits(head: &Head) -> (bool, bool, u8) {
    (head.ece, head.cwr, head.ecn)
}

/// Creates a client whose connection is open, to a server whose `answer` says whether it supports ECN.
fn client(law: Option<Law>, answer: Bits) -> End {
    let mut client = End::new(true, law);
    let syn = client.sends(0, SYN);
    assert_eq!(bits(&syn[0]), (law.is_some(), law.is_some(), 0));
    client.hears(0, ANSWER, answer, 0);
    client
}

/// Creates a server that received a SYN with these bits. Returns it with its answer.
fn server(law: Option<Law>, syn: Bits) -> (End, Head) {
    let mut server = End::new(false, law);
    server.hears(0, SYN, syn, 0);
    let answer = server.sends(0, ANSWER)[0];
    (server, answer)
}

/// Returns the first sequence numbers of the segments that occupy any.
fn numbers(heads: &[Head]) -> Vec<u32> {
    heads.iter().filter(|head| head.len > 0).map(|head| head.number).collect()
}

/// Sends this number of segments from the stack at once. Returns the segments that go to the link at once.
fn burst(end: &mut End, segments: u32) -> Vec<u32> {
    (0..segments).flat_map(|at| numbers(&end.sends(0, Segment::at(1 + at * SEGMENT as u32)))).collect()
}

/// RFC 3168 section 6.1.1: packets are ECN-capable only if both ends negotiated ECN.
#[test]
fn both_ends_agree_on_ecn_before_anything_is_capable_of_it() {
    for (answer, ecn) in [(ECE, ECT0), (NONE, 0), (BOTH, 0)] {
        let mut client = client(Some(Law::Classic), answer);
        assert_eq!(client.sends(0, DATA)[0].ecn, ecn, "{answer:?}");
    }
    assert_eq!(client(None, ECE).sends(0, DATA)[0].ecn, 0);
    for (law, syn, ece) in [
        (Some(Law::Classic), BOTH, true),
        (Some(Law::Classic), NONE, false),
        (Some(Law::Classic), ECE, false),
        (None, BOTH, false),
    ] {
        let (mut server, answer) = server(law, syn);
        assert_eq!(bits(&answer), (ece, false, 0), "{law:?} {syn:?}");
        assert_eq!(server.sends(0, DATA)[0].ecn, if ece { ECT0 } else { 0 }, "{law:?} {syn:?}");
    }
}

/// RFC 3168 section 6.1.3. In addition, a pure acknowledgement is not ECN-capable (section 6.1.4).
#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_gave_way() {
    let (mut server, _) = server(Some(Law::Classic), BOTH);
    let mut acknowledge = |number: u32, bits: Bits, ecn: u8| {
        server.hears(0, Segment::at(number), bits, ecn);
        let heads = server.sends(0, Segment::up_to(number + 1_000));
        (heads[0].ece, heads[0].ecn)
    };
    assert_eq!(acknowledge(1, NONE, ECT0), (false, 0));
    assert_eq!(acknowledge(1_001, NONE, CE), (true, 0));
    assert_eq!(acknowledge(2_001, NONE, ECT0), (true, 0));
    assert_eq!(acknowledge(3_001, CWR, ECT0), (false, 0));
    assert_eq!(acknowledge(4_001, CWR, CE), (true, 0));
    let marks = server.transport.marks(SERVER.1);
    assert_eq!((marks.capable, marks.marked), (5, 2));
}

/// RFC 8257 section 3.2, except for delayed acknowledgements.
#[test]
fn dctcp_echoes_what_was_marked_and_nothing_else() {
    let (mut server, _) = server(Some(Law::Dctcp), BOTH);
    for (at, ecn) in [ECT0, CE, ECT0, CE, CE].into_iter().enumerate() {
        let number = 1 + 1_000 * at as u32;
        server.hears(0, Segment::at(number), NONE, ecn);
        assert_eq!(server.sends(0, Segment::up_to(number + 1_000))[0].ece, ecn == CE, "{at}");
    }
}

/// RFC 3168 section 6.1.2. The answer to a SYN has the same bit, and echoes no mark.
#[test]
fn echoes_halve_the_window_once_a_round_trip_and_the_next_new_segment_says_so() {
    let mut client = client(Some(Law::Classic), ECE);
    assert_eq!(burst(&mut client, 30).len(), 10);
    // Nine are in flight, and five may be; then four.
    assert!(client.hears(1, Segment::up_to(1_001), ECE, 0).is_empty());
    let next = client.hears(2, Segment::up_to(6_001), ECE, 0);
    assert_eq!(numbers(&next), [10_001]);
    assert_eq!(bits(&next[0]), (false, true, ECT0));
    let later = client.hears(3, Segment::up_to(8_001), NONE, 0);
    assert_eq!(numbers(&later)[..2], [11_001, 12_001]);
    assert!(later.iter().all(|head| bits(head) == (false, false, ECT0)), "{later:?}");
}

/// RFC 6298 sections 2.1 and 5; RFC 5681 section 3.1 for the window; RFC 3168 section 6.1.5 for the ECN field.
#[test]
fn what_nobody_acknowledges_is_sent_again_one_segment_at_first_and_not_capable_of_ecn() {
    let mut client = client(Some(Law::Classic), ECE);
    burst(&mut client, 10);
    assert!(numbers(&client.poll(SECOND - 1)).is_empty());
    let again = client.poll(SECOND);
    assert_eq!(numbers(&again), [1]);
    assert_eq!(again[0].ecn, 0);
    // The next retransmission is due after twice the time.
    assert!(numbers(&client.poll(3 * SECOND - 1)).is_empty());
    assert_eq!(numbers(&client.poll(3 * SECOND)), [1]);
    // The window doubles again from one segment, up to half of its size before the first timeout.
    let heard = 3 * SECOND + SECOND / 2;
    assert_eq!(numbers(&client.hears_plain(heard, Segment::up_to(1_001))), [1_001, 2_001]);
    assert!(client.poll(heard + SECOND - 1).is_empty(), "the timer begins anew");
    assert_eq!(numbers(&client.hears_plain(heard + 1, Segment::up_to(3_001))).len(), 4);
    assert_eq!(numbers(&client.poll(heard + SECOND + 1)), [3_001], "and its time is the first again");
}

/// A retransmission in loss recovery is lost again. The timeout ends the recovery, and the window grows from one
/// segment.
#[test]
fn a_timeout_ends_a_recovery() {
    let mut client = client(None, NONE);
    burst(&mut client, 20);
    let lost = Segment { range: Some((1_001, 4_001)), ..ACKNOWLEDGEMENT };
    assert!(client.hears_plain(9, lost).is_empty(), "six are on the way, and five may be");
    assert_eq!(numbers(&client.poll(SECOND)), [1]);
    assert_eq!(numbers(&client.hears_plain(SECOND + 9, Segment::up_to(4_001))).len(), 5);
}

/// RFC 9002 section 6.1.1: a segment is lost once a transmission three numbers later has arrived. RFC 5681: the window
/// is halved once for all losses within it.
#[test]
fn what_selective_acknowledgements_leave_out_is_sent_again_and_the_window_halved_once() {
    let mut client = client(None, NONE);
    burst(&mut client, 40);
    let mut arrived = |up_to: u32| {
        let segment = Segment { range: Some((2_001, up_to)), ..ACKNOWLEDGEMENT };
        numbers(&client.hears_plain(9, segment))
    };
    // The first two are lost. Until that is known, each arrival makes room for a new segment.
    assert_eq!(arrived(3_001), [10_001]);
    // Eight are in flight, one is lost, and five may be in flight; then six are, and the other is lost too.
    let sent = [4_001, 5_001, 6_001, 7_001, 8_001, 9_001, 10_001].map(arrived);
    assert_eq!(sent.concat(), [1, 1_001, 11_001, 12_001]);
    let connection = client.transport.connections.values().next().expect("there is one");
    assert_eq!(connection.sender.flight.on_the_way(), 5_000);
    // Recovery lasts while one byte before its end is missing, and the window does not grow. Three are in flight.
    assert_eq!(numbers(&client.hears_plain(9, Segment::up_to(10_001))), [13_001, 14_001]);
}

/// A window that is not filled gives no information about the network (RFC 9002 section 7.8 has the same rule).
#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let mut client = client(None, NONE);
    for at in 0..100 {
        let number = 1 + at * 1_000;
        client.sends(0, Segment::at(number));
        client.hears_plain(9, Segment::up_to(number + 1_000));
    }
    let sent: usize = (100..140).map(|at| client.sends(10, Segment::at(1 + at * 1_000)).len()).sum();
    assert_eq!(sent, 10);
}

#[test]
fn what_the_stack_sends_again_stays_here_and_what_it_cuts_otherwise_is_cut() {
    let mut client = client(None, NONE);
    assert_eq!(numbers(&client.sends(0, DATA)), [1]);
    assert!(numbers(&client.sends(1, DATA)).is_empty());
    let rest = client.sends(2, Segment { number: 501, ..DATA });
    assert_eq!((numbers(&rest), rest[0].len), (vec![1_001], 500));
}

/// A segment that waits for the window would have carried the acknowledgement. No packet carries a sequence number
/// beyond the bytes that were sent.
#[test]
fn acknowledgements_do_not_wait_for_the_window() {
    let mut client = client(None, NONE);
    burst(&mut client, 10);
    let last = Segment { control: TcpControl::Fin, number: 10_001, acknowledged: Some(501), ..DATA };
    let sent = client.sends(1, last);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].number, sent[0].len, sent[0].fin, sent[0].acknowledged), (10_001, 0, false, Some(501)));
    let sent = client.sends(2, Segment { number: 11_002, ..Segment::up_to(901) });
    assert_eq!((sent[0].number, sent[0].acknowledged), (10_001, Some(901)));
}

#[test]
fn a_connection_that_both_ends_closed_is_forgotten() {
    let mut client = client(None, NONE);
    client.sends(0, Segment { control: TcpControl::Fin, ..DATA });
    client.hears_plain(1, Segment { control: TcpControl::Fin, ..Segment::up_to(1_002) });
    assert!(client.transport.connections.is_empty() && client.transport.timeouts.is_empty());
    // The answer to the other end's last byte is still sent.
    assert_eq!(client.sends(2, Segment { number: 1_002, ..Segment::up_to(2) })[0].acknowledged, Some(2));
}

#[test]
fn datagrams_of_a_service_that_is_marked_are_capable_and_counted() {
    let repr = UdpRepr { src_port: CLIENT.1, dst_port: SERVER.1 };
    let mut udp = vec![0; repr.header_len() + 10];
    let (source, destination) = (CLIENT.0.into(), SERVER.0.into());
    repr.emit(
        &mut UdpPacket::new_unchecked(&mut udp[..]),
        &source,
        &destination,
        10,
        |payload| payload.fill(7),
        &ChecksumCapabilities::default(),
    );
    let packet = ip(IpProtocol::Udp, &udp);
    for (law, ecn) in [(Some(Law::Classic), ECT0), (None, 0)] {
        let (mut client, mut server) = (End::new(true, law), End::new(false, law));
        client.transport.sent(0, packet.clone());
        let (sent, _) = client.transport.poll(0);
        let header = Ipv4Packet::new_checked(&sent[0][..]).expect("a packet");
        assert!(header.ecn() == ecn && header.verify_checksum());
        server.transport.arrived(0, &sent[0]);
        assert_eq!(server.transport.marks(SERVER.1).capable, u64::from(ecn != 0));
    }
}
