//! Measures the lookups that a responder serves on one core, compared with the least work that they need, and the cost
//! of a request and of an answer at a requester.
//!
//! ```text
//! cargo bench -p rdma --bench rdma
//! ```
//!
//! A lookup is a READ of 256 bytes from a table of 32-byte cells, uniformly chosen. The bare loop does only what each
//! responder must do: it prefetches the cells of 32 requests, computes the CRC of each request, copies the cells, and
//! computes the CRC of the answer. They alternate in going first, in rounds of 512 lookups; figures are medians of the
//! rounds, and the ratio is the median of the ratios of a round. So a round that another process interrupts does not
//! count. Frames are already in the cache, as a port leaves them.

mod shared;

use std::hint::black_box;
use std::time::Instant;

use rdma::{FrameSink, MAX_BATCH, MemoryRange, RequestOutcome};
use rng::SplitMix64;
use switch::Time;

use shared::{BASE, CELL, ConnectedEnds, READ, connect};

const ROUNDS: usize = 8192;
/// Number of lookups of a round, all of them outstanding.
const WINDOW: usize = 512;
/// Place of the covered bytes in the frame of a READ.
const REQUEST: std::ops::Range<usize> = 14..70;
/// Covered bytes before the cells in the answer: IP, UDP, BTH and AETH.
const ANSWER_HEAD: usize = 44;

/// A ring of frames, like that of a port. The oldest frames are overwritten.
struct FrameRing {
    bytes: Vec<u8>,
    lens: Vec<usize>,
    next: usize,
}

const SLOT: usize = 512;

impl FrameRing {
    fn new(slots: usize) -> FrameRing {
        FrameRing { bytes: vec![0; slots * SLOT], lens: vec![0; slots], next: 0 }
    }

    fn frame(&self, slot: usize) -> &[u8] {
        &self.bytes[slot * SLOT..][..self.lens[slot]]
    }
}

impl FrameSink for FrameRing {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        Some(&mut self.bytes[self.next * SLOT..][..len])
    }

    fn commit(&mut self, len: usize) {
        self.lens[self.next] = len;
        self.next = (self.next + 1) % self.lens.len();
    }
}

struct LookupRig {
    ends: ConnectedEnds,
    entries: u64,
    rng: SplitMix64,
    requests: FrameRing,
    answers: FrameRing,
}

/// Times of a round, in nanoseconds per lookup.
struct RoundTimes {
    request: f64,
    responder: f64,
    bare: f64,
    answer: f64,
}

impl LookupRig {
    fn new(entries: u64) -> LookupRig {
        let mut rng = SplitMix64::new(1);
        let ends = connect(&mut rng, entries, WINDOW);
        let [requests, answers] = [(); 2].map(|()| FrameRing::new(WINDOW));
        LookupRig { ends, entries, rng, requests, answers }
    }

    fn round(&mut self) -> RoundTimes {
        let addresses: Vec<u64> = (0..WINDOW).map(|_| BASE + self.rng.below(self.entries) * CELL).collect();
        // The bare loop reads other cells, since it would otherwise bring the responder's into the cache.
        let offsets: Vec<usize> = (0..WINDOW).map(|_| (self.rng.below(self.entries) * CELL) as usize).collect();
        let request = timed(|| self.request(&addresses));
        let mut bare = 0.0;
        let is_bare_first = self.rng.percent(50);
        if is_bare_first {
            bare = timed(|| self.bare(&offsets));
        }
        let responder = timed(|| self.respond());
        let answer = timed(|| self.complete());
        if !is_bare_first {
            bare = timed(|| self.bare(&offsets));
        }
        RoundTimes { request, responder, bare, answer }
    }

    fn request(&mut self, addresses: &[u64]) {
        for address in addresses {
            let range = MemoryRange { address: *address, key: self.ends.key, len: READ as u32 };
            self.ends.requester.read(self.ends.number, *address, range).expect("there is room");
        }
        self.ends.requester.transmit(Time::ZERO, &mut self.requests);
    }

    fn respond(&mut self) {
        for batch in (0..WINDOW).step_by(MAX_BATCH) {
            let frames: [&[u8]; MAX_BATCH] = std::array::from_fn(|index| self.requests.frame(batch + index));
            self.ends.responder.on_frames(&frames, &mut self.answers, |_, receipt| {
                black_box(receipt);
            });
        }
    }

    fn bare(&mut self, offsets: &[usize]) {
        let memory = self.ends.responder.memory(self.ends.key).expect("it is registered").as_ref();
        for batch in (0..WINDOW).step_by(MAX_BATCH) {
            for index in 0..MAX_BATCH {
                let cells = &memory[offsets[batch + index]..][..READ];
                (0..READ).step_by(64).for_each(|at| tables::prefetch(cells, at));
                tables::prefetch(cells, READ - 1);
            }
            for index in 0..MAX_BATCH {
                let frame = self.requests.frame(batch + index);
                black_box(crc32fast::hash(&frame[REQUEST]));
                let cells = &memory[offsets[batch + index]..][..READ];
                let answer = &mut self.answers.bytes[(batch + index) * SLOT..][..SLOT];
                answer[ANSWER_HEAD..][..READ].copy_from_slice(cells);
                black_box(crc32fast::hash(&answer[..ANSWER_HEAD + READ]));
            }
        }
    }

    fn complete(&mut self) {
        for slot in 0..WINDOW {
            self.ends.requester.on_frame(Time::ZERO, self.answers.frame(slot));
            let completion = self.ends.requester.next_completion().expect("each answer ends a READ");
            let RequestOutcome::Read(cells) = completion.outcome else { panic!("{completion:?}") };
            assert_eq!(black_box(cells)[0], (completion.token - BASE) as u8);
        }
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / WINDOW as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!(
        "| entries | lookups, M/s | bare loop, M/s | ratio | request, ns | answer, ns |\n|---|---|---|---|---|---|"
    );
    let mut costs = Vec::new();
    for entries in [10_000, 10_000_000] {
        let mut ends = LookupRig::new(entries);
        (0..ROUNDS / 8).for_each(|_| _ = ends.round());
        let rounds: Vec<RoundTimes> = (0..ROUNDS).map(|_| ends.round()).collect();
        let of = |field: fn(&RoundTimes) -> f64| median(rounds.iter().map(field));
        let (responder, bare) = (of(|round| round.responder), of(|round| round.bare));
        let ratio = of(|round| round.responder / round.bare);
        let (request, answer) = (of(|round| round.request), of(|round| round.answer));
        let rate = |ns: f64| 1000.0 / ns;
        println!(
            "| {entries} | **{:.2}** | {:.2} | {ratio:.2} | {request:.1} | {answer:.1} |",
            rate(responder),
            rate(bare)
        );
        costs.push(responder);
    }
    println!("\n10 M entries against 10 K: {:.2}", costs[1] / costs[0]);
}
