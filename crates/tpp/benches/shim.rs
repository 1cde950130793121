//! Measures the shim of a host in memory: nanoseconds for a packet without program, an insertion and a removal. Run
//! `cargo bench -p tpp --bench shim`.
//!
//! Each row is the median of rounds that alternate between the rows. Frames are restored in batches, outside the time
//! that is measured. The program has 260 bytes.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use diagnostics::{Diagnostics, SourceMap};
use tpp::shim::{PacketFilter, Shim};
use tpp::{MemoryMap, TinyProgram, assemble};
use wire::{ethernet, ipv4, udp};

const ROUNDS: usize = 41;
/// Frames that are restored before they are passed at once, as a port receives them.
const BATCH: usize = 64;
const BATCHES: usize = 300;

fn program() -> TinyProgram {
    let text = ".hops 20\nPUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\nPUSH [Queue:QueueOccupancy]";
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let mut program =
        assemble(&mut sources, "bench.tpp", text, &MemoryMap::new(), &mut diagnostics).expect("it has no mistakes");
    program.memory.truncate(260 - 12 - 3 * 4);
    assert_eq!(program.packet(&[]).len(), 260);
    program
}

/// Returns a frame with a datagram from 10.0.0.1 to 10.0.0.2 port 5000.
fn frame(payload: usize) -> Vec<u8> {
    let repr = ipv4::Repr::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), ipv4::UDP);
    let datagram = udp::Repr { source_port: 4000, destination_port: 5000 };
    let packet = repr.packet(&datagram.packet(repr.addresses(), &vec![7; payload]));
    [&[2; 12][..], &ethernet::IPV4.to_be_bytes(), &packet].concat()
}

fn to_port(port: u16) -> PacketFilter {
    PacketFilter { destination_port: Some(port), ..PacketFilter::default() }
}

/// Returns a shim with filters for ports from `first` on.
fn shim(first: u16, filters: u16) -> Shim {
    let (mut shim, program) = (Shim::new(9000), program());
    for port in first..first + filters {
        shim.add_tpp(to_port(port), &program, 1, 0).expect("they are few");
    }
    shim.expect_tpp(PacketFilter::default(), &program).expect("it is one");
    shim
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Sent,
    Received,
}

struct Subject {
    name: &'static str,
    shim: Shim,
    frame: Vec<u8>,
    direction: Direction,
    times: Vec<f64>,
}

impl Subject {
    fn new(name: &'static str, shim: Shim, frame: Vec<u8>, direction: Direction) -> Subject {
        Subject { name, shim, frame, direction, times: Vec::new() }
    }

    /// Returns the nanoseconds of one call.
    fn measure(&mut self) -> f64 {
        let mut frames: Vec<Vec<u8>> = (0..BATCH).map(|_| Vec::with_capacity(2048)).collect();
        let mut time = Duration::ZERO;
        for _ in 0..BATCHES {
            for frame in &mut frames {
                frame.clear();
                frame.extend_from_slice(black_box(&self.frame));
            }
            let start = Instant::now();
            for frame in &mut frames {
                match self.direction {
                    Direction::Sent => self.shim.sent(frame, |_| 0),
                    Direction::Received => assert!(self.shim.received(frame, |program| drop(black_box(program)))),
                }
            }
            time += start.elapsed();
            black_box(&mut frames);
        }
        time.as_secs_f64() * 1e9 / (BATCHES * BATCH) as f64
    }
}

fn main() {
    use Direction::{Received, Sent};
    let with_program = |payload| {
        let mut carrying = frame(payload);
        shim(5000, 1).sent(&mut carrying, |_| 0);
        assert_eq!(carrying.len(), frame(payload).len() + 260);
        carrying
    };
    let mut subjects = [
        Subject::new("sent, miss, 1 filter, 64 B", shim(6000, 1), frame(22), Sent),
        Subject::new("sent, miss, 1,000 filters, 64 B", shim(6000, 1000), frame(22), Sent),
        Subject::new("received, no program, 64 B", shim(6000, 1), frame(22), Received),
        Subject::new("insert 260 B, 1 filter, 64 B", shim(5000, 1), frame(22), Sent),
        Subject::new("insert 260 B, first of 1,000, 64 B", shim(5000, 1000), frame(22), Sent),
        Subject::new("insert 260 B, last of 1,000, 64 B", shim(4001, 1000), frame(22), Sent),
        Subject::new("insert 260 B, 1 filter, 1,240 B", shim(5000, 1), frame(1198), Sent),
        Subject::new("strip 260 B and collect, 64 B", shim(5000, 1), with_program(22), Received),
        Subject::new("strip 260 B and collect, 1,240 B", shim(5000, 1), with_program(1198), Received),
    ];
    for round in 0..=ROUNDS {
        for subject in &mut subjects {
            let time = subject.measure();
            // The first round warms up.
            if round > 0 {
                subject.times.push(time);
            }
        }
    }
    println!("{:<36} {:>8}", "packet", "ns");
    for subject in &mut subjects {
        subject.times.sort_by(f64::total_cmp);
        println!("{:<36} {:>8.1}", subject.name, subject.times[ROUNDS / 2]);
    }
}
