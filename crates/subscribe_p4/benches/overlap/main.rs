//! Benchmark of overlapping subscribers on one core: a feed of 12 new orders a datagram. Each subscriber wants those of
//! 20 stocks out of 40, at random.
//!
//! `cargo bench -p subscribe_p4 --bench overlap`; numbers of subscribers as arguments. The generated program runs as
//! machine code in the whole switch, with bitmaps of ports and with multicast groups; hand-written Rust has the same
//! frames to the same ports in the same order, with the same sequence numbers, lengths and checksums, which is asserted
//! for all datagrams. Switch and hand-written code alternate. Figures are medians. The pruned minimum is one packet for
//! each datagram and subscriber that wants any of its messages, with exactly these messages.

mod by_hand;
#[path = "../../tests/it/support/checked.rs"]
mod checked;
#[path = "../../tests/it/support/entry.rs"]
mod entry;
mod feed;
mod program;

use std::time::Instant;

use by_hand::ByHand;
use feed::{Feed, MESSAGES};
use switch::{Egress, Frame, HeadroomBuf, PortId, Time};

/// Number of datagrams.
const DATAGRAMS: usize = 400;
/// Number of datagrams of a batch.
const BATCH: usize = 32;
/// Number of rounds; the first is not counted.
const ROUNDS: usize = 31;
/// The port on which the feed arrives.
pub const IN: u32 = 0;

/// What leaves: packets and bytes.
type Sum = (usize, usize);

/// The nanoseconds a datagram in each round, and what left in the first.
struct Measured {
    ns: Vec<f64>,
    sum: Sum,
    frames: Vec<Frame>,
}

impl Measured {
    fn new() -> Measured {
        Measured { ns: Vec::new(), sum: (0, 0), frames: Vec::new() }
    }

    /// Returns the median, without the first round.
    fn median(&self) -> f64 {
        let mut counted = self.ns[1..].to_vec();
        counted.sort_by(f64::total_cmp);
        counted[counted.len() / 2]
    }
}

/// Runs all datagrams, in batches, and returns the nanoseconds; adds what left in the first round.
fn round(feed: &Feed, into: &mut Measured, mut run: impl FnMut(&mut [HeadroomBuf], &mut Vec<Egress>)) {
    let is_first = into.ns.is_empty();
    let mut ns = 0.0;
    for frames in feed.frames.chunks(BATCH) {
        let mut batch: Vec<HeadroomBuf> = frames.iter().map(|data| HeadroomBuf::new(data, 64)).collect();
        let mut left = Vec::with_capacity(BATCH);
        let begin = Instant::now();
        run(&mut batch, &mut left);
        ns += begin.elapsed().as_nanos() as f64;
        for egress in left.into_iter().filter(|_| is_first) {
            let frame = match egress {
                Egress::Owned(frame) => frame,
                Egress::InPlace { index, port } => Frame { port, data: batch[index].bytes().to_vec() },
            };
            into.sum = (into.sum.0 + 1, into.sum.1 + frame.data.len());
            into.frames.push(frame);
        }
    }
    into.ns.push(ns / feed.frames.len() as f64);
}

fn row(subscribers: u32) {
    let feed = Feed::new(subscribers, DATAGRAMS);
    let mut bitmaps = program::switch(&feed, true);
    let mut groups = program::switch(&feed, false);
    let [mut ours, mut cut, mut theirs] = [(); 3].map(|()| Measured::new());
    for number in 0..ROUNDS as u64 {
        // Each round is a session of its own, so that numbers begin anew.
        let mut feed = feed.clone();
        feed.begin_session(number);
        let mut hand = ByHand::new(&feed);
        let now = Time::from_ms(number);
        round(&feed, &mut ours, |batch, left| bitmaps.step_in_place(now, PortId(IN), batch, left));
        round(&feed, &mut cut, |batch, left| groups.step_in_place(now, PortId(IN), batch, left));
        round(&feed, &mut theirs, |batch, left| hand.run(batch, left));
    }
    assert_eq!(ours.frames, theirs.frames, "both send the same");
    let (packets, bytes) = feed.minimum();
    assert_eq!(ours.sum, (packets, bytes), "what leaves is the minimum");
    let million = |ns: f64| MESSAGES as f64 * 1e3 / ns;
    println!(
        "| {subscribers} | {packets} | {} | {} | {} | {:.2} | {:.2} | {:.2} | **{:.1}** | {:.1} |",
        bytes.div_ceil(1000),
        cut.sum.0,
        cut.sum.1.div_ceil(1000),
        cut.median() / 1e3,
        ours.median() / 1e3,
        theirs.median() / 1e3,
        ours.median() / theirs.median(),
        million(ours.median()),
    );
}

fn main() {
    let asked: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let all = if asked.is_empty() { vec![1, 2, 5, 10, 50, 200] } else { asked };
    println!(
        "| subscribers | packets | KB | packets, groups | KB, groups | groups, us | bitmaps, us | by hand, us \
         | bitmaps / by hand | million messages/s |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    all.into_iter().for_each(row);
}
