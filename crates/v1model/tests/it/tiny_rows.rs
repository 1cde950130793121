//! Compares the rows of the memory map that tiny packet programs read with a model of the queue and its port.

use std::collections::VecDeque;

use rng::SplitMix64;
use switch::{Device, DropReason, Frame, PortId, Time};
use v1model::TinySettings;
use wire::ethernet;
use wire::tpp::{ETHERTYPE, Status};

use crate::rows::{WAYS, Way, step, step_at};
use crate::tiny::{assembled, frame, packet, switch, transparent, words};

/// Bandwidth of the port.
const BPS: u64 = 100_000_000;
/// Time for which a byte keeps the port busy.
const BYTE_NS: u64 = 8_000_000_000 / BPS;
const MS: u64 = 1_000_000;
/// Packets that fit into the queue.
const CAPACITY: usize = 4;
/// The rows of a port with a bandwidth, in the order of [`Model::values`].
const ROWS: [&str; 20] = [
    "Queue:Queued-Bytes",
    "Queue:QueueOccupancy",
    "Queue:RX-Bytes",
    "Queue:TX-Bytes",
    "Queue:Drop-Bytes",
    "Queue:TX-Packets",
    "Queue:RX-Packets",
    "Queue:Drop-Packets",
    "Queue:Capacity",
    "Queue:Priority",
    "Link:Queued-Bytes",
    "Link:Queued-Packets",
    "Link:RX-Packets",
    "Link:RX-Bytes",
    "Link:Drop-Packets",
    "Link:Drop-Bytes",
    "Link:TX-Utilization",
    "Link:RX-Utilization",
    "Link:Capacity",
    "PacketMetadata:QueueTime",
];

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: u64,
    /// Length of the frame.
    bytes: u64,
    has_program: bool,
}

/// A queue and its port. It keeps all that ever happened.
#[derive(Default)]
struct Model {
    waiting: VecDeque<Arrival>,
    free_at: u64,
    entered: Vec<Arrival>,
    dropped: Vec<Arrival>,
    /// The times at which the port was busy.
    busy: Vec<(u64, u64)>,
    /// The values for each program that leaves.
    expected: Vec<Vec<u32>>,
}

fn bytes<'a>(arrivals: impl IntoIterator<Item = &'a Arrival>) -> u64 {
    arrivals.into_iter().map(|arrival| arrival.bytes).sum()
}

impl Model {
    fn arrive(&mut self, arrival: Arrival) {
        self.leave(arrival.at);
        if self.waiting.len() < CAPACITY {
            self.waiting.push_back(arrival);
            self.entered.push(arrival);
        } else {
            self.dropped.push(arrival);
        }
        self.leave(arrival.at);
    }

    /// Lets packets leave until a time.
    fn leave(&mut self, now: u64) {
        while let Some(first) = self.waiting.front().copied() {
            let at = first.at.max(self.free_at);
            if at > now {
                return;
            }
            self.waiting.pop_front();
            if first.has_program {
                let values = self.values(first, at);
                self.expected.push(values);
            }
            self.free_at = at + first.bytes * BYTE_NS;
            self.busy.push((at, self.free_at));
        }
    }

    /// Returns the values that a packet reads when it leaves.
    fn values(&self, packet: Arrival, at: u64) -> Vec<u32> {
        let (waiting, waiting_bytes) = (self.waiting.len() as u64, bytes(&self.waiting));
        let (entered, entered_bytes) = (self.entered.len() as u64, bytes(&self.entered));
        let (dropped, dropped_bytes) = (self.dropped.len() as u64, bytes(&self.dropped));
        let last = (at / MS).checked_sub(1).map_or(0..0, |last| last * MS..(last + 1) * MS);
        let overlap = |(begin, end): &(u64, u64)| (*end).min(last.end).saturating_sub((*begin).max(last.start));
        let busy: u64 = self.busy.iter().map(overlap).sum();
        let offered = bytes(self.entered.iter().chain(&self.dropped).filter(|arrival| last.contains(&arrival.at)));
        let values = [
            waiting_bytes,
            waiting,
            entered_bytes,
            entered_bytes - waiting_bytes,
            dropped_bytes,
            entered - waiting,
            entered,
            dropped,
            CAPACITY as u64,
            0,
            waiting_bytes,
            waiting,
            entered + dropped,
            entered_bytes + dropped_bytes,
            dropped,
            dropped_bytes,
            busy * 10_000 / MS,
            offered * 8 * 1_000 * 10_000 / BPS,
            BPS / 8,
            at - packet.at,
        ];
        values.iter().map(|value| *value as u32).collect()
    }
}

/// Returns random traffic of all loads: below, at and above the capacity of the port.
fn traffic(seed: u64) -> Vec<Arrival> {
    let (mut rng, mut at) = (SplitMix64::new(seed), 0);
    let mut arrival = |number: usize| {
        let gap = [30_000, 90_000, 400_000, 3_000_000][number / 50 % 4];
        at += rng.below(gap);
        Arrival { at, bytes: 150 + rng.below(1_300), has_program: rng.below(3) > 0 }
    };
    (0..400).map(&mut arrival).collect()
}

/// Returns the frame of an arrival.
fn frame_of(arrival: Arrival, program: &str) -> Frame {
    let payload = |headers: usize| vec![7; arrival.bytes as usize - headers];
    let mut program = assembled(program);
    program.repr.encapsulated = ethernet::IPV4;
    let added = program.packet(&[]).len();
    let frame = match arrival.has_program {
        true => frame(ETHERTYPE, &program.packet(&packet(2, (4000, 53), &payload(42 + added)))),
        false => frame(ethernet::IPV4, &packet(2, (4000, 53), &payload(42))),
    };
    assert_eq!(frame.data.len() as u64, arrival.bytes);
    frame
}

/// Runs traffic, and returns the values that the programs read. With `late`, nothing is done between two arrivals.
fn read(way: Way, late: bool, traffic: &[Arrival], rows: &[&str]) -> Vec<Vec<u32>> {
    let program: String = rows.iter().map(|row| format!("PUSH [{row}]\n")).collect();
    let program = format!(".hops 1\n{program}");
    let mut switch = switch(way, Some(TinySettings::new(1, false)));
    switch.set_port_bandwidth(PortId(2), Some(BPS));
    switch.set_queue_depth(PortId(2), None, CAPACITY);
    let mut left = Vec::new();
    for arrival in traffic {
        while let Some(event) = switch.next_event().filter(|event| !late && event.as_ns() < arrival.at) {
            left.extend(step_at(&mut switch, way, event, []));
        }
        left.extend(step_at(&mut switch, way, Time::from_ns(arrival.at), [frame_of(*arrival, &program)]));
    }
    left.extend(step_at(&mut switch, way, Time::from_ns(u64::MAX / 2), []));
    let programs = left.iter().filter(|frame| frame.data[12..14] == ETHERTYPE.to_be_bytes());
    let read: Vec<_> = programs.map(words).collect();
    assert!(read.iter().all(|(_, status)| *status == Status::NONE), "every row exists");
    read.into_iter().map(|(words, _)| words).collect()
}

#[test]
fn rows_equal_a_model_of_the_queue_and_its_port() {
    for (seed, way) in WAYS.into_iter().enumerate() {
        let traffic = traffic(seed as u64);
        let mut model = Model::default();
        traffic.iter().for_each(|arrival| model.arrive(*arrival));
        model.leave(u64::MAX / 2);
        assert!(model.dropped.len() > 20 && model.expected.len() > 100, "the traffic tests something");
        for (at, rows) in ROWS.chunks(5).enumerate() {
            let expected: Vec<_> =
                model.expected.iter().map(|values| values[at * 5..at * 5 + rows.len()].to_vec()).collect();
            for late in [false, true] {
                assert_eq!(read(way, late, &traffic, rows), expected, "{way:?}, {late}, {rows:?}");
            }
        }
    }
}

/// The counts include the packets before a program in its batch, with or without programs, and none after it.
#[test]
fn counts_include_the_packets_before_in_the_batch() {
    let rows = ["InputLink:RX-Packets", "InputLink:RX-Bytes", "Link:TX-Packets", "Link:TX-Bytes", "Link:RX-Packets"];
    let program: String = rows.iter().map(|row| format!("PUSH [{row}]\n")).collect();
    for way in WAYS {
        let mut switch = switch(way, Some(TinySettings::new(1, false)));
        let plain = || frame(ethernet::IPV4, &packet(2, (4000, 53), b"payload"));
        let with = || transparent(&format!(".hops 1\n{program}"), 2);
        let (short, long) = (plain().data.len() as u32, with().data.len() as u32);
        let left = step(&mut switch, way, [plain(), plain(), with(), plain(), with(), plain()]);
        assert_eq!(left.len(), 6);
        let counts = |packets: u32, bytes: u32| vec![packets, bytes, packets, bytes, packets];
        assert_eq!(words(&left[2]).0, counts(3, 2 * short + long), "{way:?}");
        assert_eq!(words(&left[4]).0, counts(5, 3 * short + 2 * long), "{way:?}");
    }
}

#[test]
fn frames_that_the_driver_could_not_send_are_errors() {
    for way in WAYS {
        let mut switch = switch(way, Some(TinySettings::new(1, false)));
        switch.take_back_sent(PortId(2), &[(DropReason::PortLost, 2), (DropReason::PortLength, 1)], 333);
        switch.take_back_sent(PortId(3), &[(DropReason::PortFull, 1)], 7);
        // No driver has seen a frame whose row is lost.
        switch.take_back_sent(PortId(2), &[(DropReason::RowUnavailable, 4)], 400);
        let errors = ".hops 1\nPUSH [Link:Error-Packets]\nPUSH [Link:Error-Bytes]\n";
        assert_eq!(words(&step(&mut switch, way, [transparent(errors, 2)])[0]), (vec![3, 333], Status::NONE));
    }
}

/// A queue without a rate is empty for the switch: its frames wait in the driver. These rows do not exist then.
#[test]
fn rows_of_bytes_do_not_exist_without_a_rate() {
    let rows = ["Link:Queued-Bytes", "Link:RX-Bytes", "Link:Capacity", "Link:TX-Utilization", "Link:RX-Utilization"];
    let program: String = rows.iter().map(|row| format!("PUSH [{row}]\n")).collect();
    for way in WAYS {
        let mut switch = switch(way, Some(TinySettings::new(1, false)));
        let left = step(&mut switch, way, [transparent(&format!(".hops 1\n{program}"), 2)]);
        assert_eq!(words(&left[0]), (vec![0; 5], Status::ABSENT));
    }
}

#[test]
fn rates_of_queues_and_entries_of_tables_are_read() {
    for way in WAYS {
        let mut switch = switch(way, Some(TinySettings::new(1, false)));
        switch.set_queue_rate(PortId(2), None, Some(7_000_000));
        let program =
            ".hops 1\nPUSH [Queue:Rate]\nPUSH [Stage0:Entries]\nPUSH [Stage0:Version]\nPUSH [Stage1:Entries]\n";
        let left = step(&mut switch, way, [transparent(program, 2)]);
        assert_eq!(words(&left[0]), (vec![7_000_000, 2, 2, 0], Status::ABSENT), "there is no second table");
    }
}
