//! Tests nodes of an INT domain beside a P4 program that does not know INT, in every mode of execution.

use std::collections::BTreeSet;

use rng::SplitMix64;
use switch::{Device, Frame, Notification, PortId, Time};
use tpp::int::{IntNode, IntVerdict};
use tpp::{MemoryMap, SparseMemory};
use v1model::{IntSettings, Switch, TinySettings};
use wire::int::{Marker, NextProtocol, Repr, find, report};
use wire::{ethernet, ipv4, udp};

use crate::rows::{WAYS, Way, step, step_at};
use crate::tiny::{PATH, assembled, frame, packet, switch, words};

/// Number, interfaces, latency, queue, both times, interfaces of level 2, utilization, buffer, a reserved bit, and the
/// checksum complement.
const ALL: u16 = 0xffc1;

fn node() -> IntNode {
    IntNode::new(Marker::default())
}

fn with_int(way: Way, sinks: impl IntoIterator<Item = u32>) -> Switch {
    let mut switch = switch(way, None);
    let sinks = sinks.into_iter().map(PortId).collect();
    switch.set_int(Some(IntSettings { sinks, ..IntSettings::new(77, Marker::default()) }));
    switch
}

/// A packet to a host with an empty stack.
fn marked(host: u8, instructions: u16) -> Frame {
    changed(host, |repr| *repr = Repr::new(repr.next, instructions, 8))
}

/// The same with another header.
fn changed(host: u8, change: impl FnOnce(&mut Repr)) -> Frame {
    let mut frame = frame(ethernet::IPV4, &packet(host, (4000, 53), b"payload"));
    let mut repr = Repr::new(NextProtocol::Payload { dscp: 0 }, ALL, 8);
    change(&mut repr);
    assert!(node().source(&mut frame.data, repr, 1_500));
    frame
}

/// What a packet sees that passes a switch without queues in no time.
fn memory(input: u32, output: u32, at: Time) -> SparseMemory {
    let (map, mut memory) = (MemoryMap::new(), SparseMemory::new());
    let values = [
        ("Switch:ID", 77),
        ("PacketMetadata:InputPort", input.into()),
        ("PacketMetadata:OutputPort", output.into()),
        ("PacketMetadata:HopLatency", 0),
        ("PacketMetadata:IngressTime", at.as_ns()),
        ("PacketMetadata:EgressTime", at.as_ns()),
    ];
    values.iter().for_each(|(name, value)| memory.fixed(map.find(name).unwrap().address, *value));
    memory
}

fn counts(switch: &Switch, port: u32) -> [u64; 5] {
    let count = |result: &str| switch.registry().get(&format!("port.{port}.int.{result}"));
    ["inserted", "exceeded", "mtu", "refused", "removed"].map(|result| count(result).expect("it is registered"))
}

fn reports(switch: &mut Switch) -> Vec<Vec<u8>> {
    let report = |notification| match notification {
        Notification::IntReport { report, .. } => Some(report),
        _ => None,
    };
    switch.take_notifications().into_iter().filter_map(report).collect()
}

fn is_udp_right(frame: &Frame) -> bool {
    let inner = ipv4::Packet::new_checked(&frame.data[14..]).expect("an IP packet");
    let datagram = udp::Packet::new_checked(inner.payload()).expect("a datagram");
    datagram.length() == inner.payload().len()
        && datagram.is_checksum_right(wire::checksum::Addresses::V4(inner.source(), inner.destination()))
}

/// Every copy gets the metadata of its own departure; packet-ins, drops and what the P4 program hides get none.
#[test]
fn copies_have_their_own_metadata_and_the_p4_program_sees_the_packet_as_it_is() {
    let at = Time::from_us(1);
    for way in WAYS {
        for (host, inserted, refused) in
            [(2, 1, 0), (3, 2, 0), (4, 2, 0), (5, 0, 0), (6, 1, 0), (7, 0, 1), (8, 1, 0), (9, 0, 0)]
        {
            let (mut plain, mut switch) = (switch(way, None), with_int(way, []));
            let mut expected = step(&mut plain, way, [marked(host, ALL)]);
            for frame in &mut expected {
                let verdict = node().transit(&mut frame.data, 1_500, &mut memory(1, frame.port.0, at));
                assert_eq!(verdict == IntVerdict::Inserted, refused == 0, "host {host}: {verdict:?}");
            }
            let left = step(&mut switch, way, [marked(host, ALL)]);
            assert_eq!(left, expected, "host {host}");
            assert!(host == 7 || left.iter().all(is_udp_right), "host {host}");
            assert_eq!(switch.take_notifications(), plain.take_notifications(), "the controller gets what it gets");
            assert_eq!(counts(&switch, 1), [inserted, 0, 0, refused, 0], "host {host}");
            let sent =
                |port: u32| left.iter().filter(|frame| frame.port.0 == port).map(|frame| frame.data.len() as u64).sum();
            assert_eq!(switch.registry().get("port.2.tx.bytes"), Some(sent(2)), "what leaves is counted");
        }
    }
}

/// The metadata by name, beside values that the test knows.
#[test]
fn queues_and_latencies_are_those_of_the_packet() {
    for way in WAYS {
        let mut switch = with_int(way, []);
        switch.set_queue_rate(PortId(2), None, Some(1000));
        let mut left = step(&mut switch, way, (0..4).map(|_| marked(2, 0xfd00)));
        for ms in 1..10 {
            switch.step(Time::from_us(ms * 1000 + 1), &mut Vec::new(), &mut left);
        }
        for (number, frame) in left.iter().enumerate() {
            let place = find(&frame.data, Marker::default()).expect("it has INT");
            let packet = place.packet(&frame.data).expect("a correct header");
            let stack: Vec<u32> =
                packet.stack().chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
            // The first packet leaves before the others come; of these, one leaves each millisecond.
            let waited = if number == 0 { 0 } else { 3 - number as u32 };
            let latency = 1_000_000 * number as u32;
            let expected = [77, 1 << 16 | 2, latency, waited, 0, 1_000, 0, 1_000 + latency, u32::MAX];
            assert_eq!(stack, expected, "{number}");
            assert_eq!((packet.remaining_hops(), is_udp_right(frame)), (7, true));
        }
        assert_eq!(left.len(), 4);
    }
}

#[test]
fn edge_ports_restore_packets_and_report_the_stack() {
    for way in WAYS {
        let (mut plain, mut switch) = (switch(way, None), with_int(way, [3]));
        let expected = step(&mut plain, way, [frame(ethernet::IPV4, &packet(3, (4000, 53), b"payload"))]);
        let left = step(&mut switch, way, [marked(3, 0xd000), marked(3, 0xd000)]);
        let of = |frames: &[Frame], port: u32| -> Vec<Vec<u8>> {
            frames.iter().filter(|frame| frame.port.0 == port).map(|frame| frame.data.clone()).collect()
        };
        assert_eq!(of(&left, 3), [of(&expected, 3), of(&expected, 3)].concat(), "bit for bit");
        assert!(of(&left, 2).iter().all(|frame| find(frame, Marker::default()).is_some()), "port 2 is no edge");
        assert_eq!(counts(&switch, 1), [2, 0, 0, 0, 2]);
        let reports = reports(&mut switch);
        for (number, bytes) in reports.iter().enumerate() {
            let report = report::Packet::new_checked(&bytes[..]).expect("a report");
            assert_eq!((report.node(), report.sequence()), (77, number as u32));
            // The switch has the interfaces, and no queue, as port 3 has no rate.
            assert_eq!((report.metadata_bits(), report.metadata()), (0x4000, &[0, 1, 0, 3][..]));
            assert_eq!(report.packet().len(), 20 + 8 + 4 + 12, "headers and an empty stack");
        }
        assert_eq!(reports.len(), 2);
    }
}

#[test]
fn packets_of_a_sink_are_discarded_if_they_ask_for_it() {
    for way in WAYS {
        let mut sink = with_int(way, [2]);
        let discarded = || changed(2, |repr| repr.is_discarded = true);
        assert_eq!(step(&mut sink, way, [discarded()]), []);
        assert_eq!((reports(&mut sink).len(), counts(&sink, 1)), (1, [0, 0, 0, 0, 1]));
        assert_eq!(sink.registry().get("drop.tx.int-discard"), Some(1));
        assert_eq!(step(&mut with_int(way, []), way, [discarded()]).len(), 1, "a transit forwards it");
    }
}

#[test]
fn full_packets_say_why_they_have_no_metadata() {
    for way in WAYS {
        let mut switch = with_int(way, []);
        let flags = |left: &[Frame]| {
            let packet = find(&left[0].data, Marker::default()).expect("INT").packet(&left[0].data).expect("a header");
            (packet.is_hops_exceeded(), packet.is_mtu_exceeded(), packet.stack().len())
        };
        assert_eq!(flags(&step(&mut switch, way, [changed(2, |repr| repr.remaining_hops = 0)])), (true, false, 0));
        let int = |port_mtus: &[(u32, u16)]| {
            let port_mtus = port_mtus.iter().map(|(port, mtu)| (PortId(*port), *mtu)).collect();
            Some(IntSettings { mtu: 100, port_mtus, ..IntSettings::new(77, Marker::default()) })
        };
        // 20 + 8 + 4 + 12 + 7 bytes, and 4 more.
        for (settings, expected) in [(int(&[(2, 54)]), (false, true, 0)), (int(&[(2, 55), (3, 10)]), (false, false, 4))]
        {
            switch.set_int(settings);
            let left = step(&mut switch, way, [marked(2, 0x8000)]);
            assert_eq!(flags(&left), expected);
            assert!(is_udp_right(&left[0]));
        }
        assert_eq!(counts(&switch, 1), [1, 1, 1, 0, 0]);
        switch.set_int(None);
        let left = step(&mut switch, way, [marked(2, 0x8000)]);
        assert_eq!((flags(&left), counts(&switch, 1)), ((false, false, 0), [1, 1, 1, 0, 0]), "it is off");
    }
}

#[test]
fn a_packet_may_have_a_program_and_int() {
    for way in WAYS {
        let mut switch = with_int(way, []);
        switch.set_tiny_programs(Some(TinySettings::new(77, false)));
        let mut sent = marked(2, 0x8000);
        let mut program = assembled(PATH);
        program.repr.encapsulated = ethernet::IPV4;
        let bytes = program.packet(&[]);
        sent.data.splice(12..14, [&wire::tpp::ETHERTYPE.to_be_bytes()[..], &bytes].concat());
        let left = step(&mut switch, way, [sent.clone()]);
        assert_eq!(words(&left[0]).0, [77, 1, 2, 1, sent.data.len() as u32 + 4], "the program sees the whole frame");
        let mut inner = left[0].clone();
        inner.data.splice(12..14 + bytes.len(), [8, 0]);
        let place = find(&inner.data, Marker::default()).expect("INT");
        assert_eq!(place.packet(&inner.data).expect("a header").stack(), [0, 0, 0, 77]);
    }
}

/// A flood costs no more than its copies: the packets pass, a sink restores them, and other ports have limits of their
/// own.
#[test]
fn packets_beyond_the_limit_pass_without_metadata_and_are_restored_without_a_report() {
    for way in WAYS {
        let mut switch = with_int(way, []);
        let limited = |switch: &Switch, port: u32| switch.registry().get(&format!("port.{port}.int.limited"));
        let sinks = |ports: &[u32]| {
            let sinks = ports.iter().copied().map(PortId).collect();
            Some(IntSettings { sinks, packets_per_second: 20, ..IntSettings::new(77, Marker::default()) })
        };
        switch.set_int(sinks(&[]));
        let sent = || (0..5).map(|_| marked(2, 0x8000));
        let left = step_at(&mut switch, way, Time::from_us(1), sent());
        let lengths: Vec<usize> = left.iter().map(|frame| frame.data.len() - marked(2, 0x8000).data.len()).collect();
        assert_eq!(lengths, [4, 4, 0, 0, 0], "a burst is two packets");
        assert!(left.iter().all(is_udp_right));
        assert_eq!((counts(&switch, 1), limited(&switch, 1)), ([2, 0, 0, 0, 0], Some(3)));
        let other = Frame { port: PortId(2), ..marked(2, 0x8000) };
        step_at(&mut switch, way, Time::from_us(1), [other]);
        assert_eq!((counts(&switch, 2)[0], limited(&switch, 2)), (1, Some(0)));
        switch.set_int(sinks(&[2]));
        let left = step_at(&mut switch, way, Time::from_us(2), sent());
        assert!(left.iter().all(|frame| find(&frame.data, Marker::default()).is_none()), "INT never leaves the domain");
        assert_eq!((left.len(), reports(&mut switch).len()), (5, 2));
        assert_eq!((counts(&switch, 1)[4], limited(&switch, 1)), (2, Some(6)));
        // The numbers of reports show what is missing.
        step_at(&mut switch, way, Time::from_us(100_000), [marked(2, 0x8000)]);
        let next = reports(&mut switch);
        assert_eq!(report::Packet::new_checked(&next[0][..]).expect("a report").sequence(), 5);
    }
}

#[test]
fn workers_number_their_reports_together() {
    let way = WAYS[2];
    let mut owner = with_int(way, [2]);
    let mut workers = owner.workers(2);
    let mut numbers = BTreeSet::new();
    for worker in [0, 1, 0] {
        step(&mut workers[worker], way, [marked(2, 0x8000)]);
        let reports = reports(&mut workers[worker]);
        numbers.insert(report::Packet::new_checked(&reports[0][..]).expect("a report").sequence());
    }
    assert_eq!(numbers, BTreeSet::from([0, 1, 2]));
}

/// Batches of ordinary, marked and damaged frames have the same outputs, reports and counts in every mode.
#[test]
fn all_modes_agree_on_random_batches() {
    testing::seed::for_each(0..60, |seed| {
        let runs = WAYS.map(|way| {
            let mut random = SplitMix64::new(seed);
            let mut switch = with_int(way, [3]);
            let mut seen = Vec::new();
            for batch in 0..6 {
                let frames = (0..1 + random.below(12)).map(|_| {
                    let host = 2 + random.below(9) as u8;
                    let mut frame = match random.below(3) {
                        0 => frame(ethernet::IPV4, &packet(host, (4000, 53), b"payload")),
                        _ => marked(host, random.next_u64() as u16 | 1),
                    };
                    if random.percent(30) {
                        let at = 34 + random.below(frame.data.len() as u64 - 34) as usize;
                        frame.data[at] ^= 1 << random.below(8);
                    }
                    frame
                });
                let frames: Vec<_> = frames.collect();
                seen.extend(
                    step_at(&mut switch, way, Time::from_us(batch), frames).iter().map(|frame| format!("{frame:?}")),
                );
                seen.extend(switch.take_notifications().iter().map(|notification| format!("{notification:?}")));
            }
            (seen, counts(&switch, 1), switch.registry().get("port.2.tx.bytes"))
        });
        assert!(runs[0] == runs[1] && runs[1] == runs[2], "seed {seed}");
        assert!(runs[0].1[0] > 0, "seed {seed}: some were inserted");
        true
    });
}
