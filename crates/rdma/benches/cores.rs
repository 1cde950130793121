//! Measures lookups per second of a requester and a responder on a core each, with frames in memory between them.
//!
//! ```text
//! cargo bench -p rdma --bench cores
//! ```
//!
//! A lookup is a READ of 256 bytes from a table of ten million 32-byte cells, uniformly chosen. Frames travel in blocks
//! of 32, which are used again. Integrity checks are computed and verified at both ends. Both threads poll, so the
//! figures need two cores without other work; the best of the rounds is printed beside their median.

mod shared;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ports::HugeBytes;
use rdma::{FrameSink, MAX_BATCH, MemoryKey, MemoryRange, QpNumber, RequestOutcome, Requester, Responder};
use rng::SplitMix64;
use switch::Time;

use shared::{BASE, CELL, ConnectedEnds, READ, connect};

const ENTRIES: u64 = 10_000_000;
/// Blocks of frames in each direction.
const BLOCKS: usize = 16;
/// Number of READs that are outstanding.
const WINDOW: usize = BLOCKS * MAX_BATCH;
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 7;
const SLOT: usize = 512;

/// Frames that travel together.
struct FrameBlock {
    bytes: Vec<u8>,
    lens: [usize; MAX_BATCH],
    count: usize,
}

impl FrameBlock {
    fn new() -> FrameBlock {
        FrameBlock { bytes: vec![0; MAX_BATCH * SLOT], lens: [0; MAX_BATCH], count: 0 }
    }

    fn frame(&self, number: usize) -> &[u8] {
        &self.bytes[number * SLOT..][..self.lens[number]]
    }
}

impl FrameSink for FrameBlock {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        (self.count < MAX_BATCH).then(|| &mut self.bytes[self.count * SLOT..][..len])
    }

    fn commit(&mut self, len: usize) {
        self.lens[self.count] = len;
        self.count += 1;
    }
}

/// The end of a wire that sends: full blocks go, and empty ones come back.
struct SendingEnd {
    full: SyncSender<FrameBlock>,
    empty: Receiver<FrameBlock>,
}

/// The end of a wire that receives.
struct ReceivingEnd {
    full: Receiver<FrameBlock>,
    empty: SyncSender<FrameBlock>,
}

fn wire() -> (SendingEnd, ReceivingEnd) {
    let ((full_in, full_out), (empty_in, empty_out)) = (sync_channel(BLOCKS), sync_channel(BLOCKS));
    (0..BLOCKS).for_each(|_| empty_in.send(FrameBlock::new()).expect("the other end is there"));
    (SendingEnd { full: full_in, empty: empty_out }, ReceivingEnd { full: full_out, empty: empty_in })
}

fn main() {
    let mut rng = SplitMix64::new(1);
    let ConnectedEnds { mut requester, mut responder, number, key } = connect(&mut rng, ENTRIES, WINDOW);
    let ((requests_out, requests_in), (answers_out, answers_in)) = (wire(), wire());
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (done, is_over) = (&done, &is_over);
        scope.spawn(move || serve(&mut responder, &requests_in, &answers_out, is_over));
        scope.spawn(move || ask(&mut requester, (number, key), &requests_out, &answers_in, done, is_over));
        std::thread::sleep(ROUND);
        let mut rates: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let (before, begin) = (done.load(Relaxed), Instant::now());
                std::thread::sleep(ROUND);
                (done.load(Relaxed) - before) as f64 / begin.elapsed().as_secs_f64() / 1e6
            })
            .collect();
        is_over.store(true, Relaxed);
        rates.sort_by(f64::total_cmp);
        println!(
            "two cores, {ENTRIES} entries: {:.2} M lookups/s, median of {ROUNDS} rounds; {:.2} to {:.2}",
            rates[ROUNDS / 2],
            rates[0],
            rates[ROUNDS - 1]
        );
    });
}

/// Looks up random cells until the end, and counts answers.
fn ask(
    requester: &mut Requester,
    (number, key): (QpNumber, MemoryKey),
    requests: &SendingEnd,
    answers: &ReceivingEnd,
    done: &AtomicU64,
    is_over: &AtomicBool,
) {
    let (mut rng, mut outstanding) = (SplitMix64::new(2), 0);
    while !is_over.load(Relaxed) {
        if outstanding + MAX_BATCH <= WINDOW
            && let Ok(mut block) = requests.empty.try_recv()
        {
            for _ in 0..MAX_BATCH {
                let address = BASE + rng.below(ENTRIES) * CELL;
                requester.read(number, address, MemoryRange { address, key, len: READ as u32 }).expect("there is room");
            }
            block.count = 0;
            requester.transmit(Time::ZERO, &mut block);
            outstanding += MAX_BATCH;
            // The responder may have ended.
            let _ = requests.full.send(block);
        } else if let Ok(block) = answers.full.try_recv() {
            for index in 0..block.count {
                requester.on_frame(Time::ZERO, block.frame(index));
                let completion = requester.next_completion().expect("each answer ends a READ");
                let RequestOutcome::Read(cells) = completion.outcome else { panic!("{completion:?}") };
                assert_eq!(black_box(cells)[0], (completion.token - BASE) as u8);
            }
            outstanding -= block.count;
            done.fetch_add(block.count as u64, Relaxed);
            let _ = answers.empty.send(block);
        } else {
            std::thread::yield_now();
        }
    }
}

/// Answers blocks of requests until the end.
fn serve(responder: &mut Responder<HugeBytes>, requests: &ReceivingEnd, answers: &SendingEnd, is_over: &AtomicBool) {
    let mut free = None;
    while !is_over.load(Relaxed) {
        free = free.or_else(|| answers.empty.try_recv().ok());
        let Some(block) = free.as_ref().and_then(|_| requests.full.try_recv().ok()) else {
            std::thread::yield_now();
            continue;
        };
        let mut answer = free.take().expect("it is there");
        let frames: [&[u8]; MAX_BATCH] = std::array::from_fn(|number| block.frame(number));
        answer.count = 0;
        responder.on_frames(&frames[..block.count], &mut answer, |_, receipt| {
            black_box(receipt);
        });
        // The requester may have ended.
        let _ = answers.full.send(answer);
        let _ = requests.empty.send(block);
    }
}
