//! A batch of frames has the same effects as its frames one by one; sinks without room lose answers only.

use rdma::{FrameList, FrameSink, MAX_BATCH, Receipt, RequestOutcome};
use rng::SplitMix64;
use switch::Time;
use wire::roce::Mtu;

use crate::pair::{BASE, Pair};

/// Returns the frames of random requests, some of them damaged, repeated or left out.
fn requests(pair: &mut Pair, rng: &mut SplitMix64, count: u64) -> Vec<Vec<u8>> {
    for token in 0..count {
        let offset = rng.below(120) * 8;
        let (number, address) = (pair.number, BASE + offset);
        match rng.below(4) {
            0 => pair.requester.write(number, token, address, pair.key, &[token as u8; 24]),
            1 => pair.requester.fetch_add(number, token, address, pair.key, token),
            _ => pair.requester.read(number, token, pair.range(offset, rng.below(600) as u32)),
        }
        .unwrap();
    }
    let mut frames = pair.requests(Time::ZERO);
    let copies: Vec<_> = frames.iter().filter(|_| rng.percent(10)).cloned().collect();
    frames.extend(copies);
    frames.retain(|_| rng.percent(97));
    for frame in &mut frames {
        if rng.percent(5) {
            let at = rng.below(frame.len() as u64) as usize;
            frame[at] ^= 4;
        }
    }
    frames
}

#[test]
fn a_batch_is_its_frames_in_order() {
    for seed in 0..200 {
        let mut rng = SplitMix64::new(seed);
        let [mut one, mut other] = [(); 2].map(|()| Pair::new(Mtu::Mtu256, 4096));
        let mut same = rng.clone();
        let frames = requests(&mut one, &mut rng, 16);
        assert_eq!(frames, requests(&mut other, &mut same, 16), "equal seeds give equal frames");
        let mut expected = Vec::new();
        let mut receipts = Vec::new();
        let mut sink = FrameList::default();
        for frame in &frames {
            receipts.push(one.responder.on_frame(frame, &mut sink));
        }
        while let Some(frame) = sink.pop() {
            expected.push(frame);
        }
        let mut answers = FrameList::default();
        let mut received = Vec::new();
        for batch in frames.chunks(MAX_BATCH) {
            let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
            other.responder.on_frames(&batch, &mut answers, |_, receipt| received.push(receipt));
        }
        let answers: Vec<_> = std::iter::from_fn(|| answers.pop()).collect();
        assert_eq!((answers, received), (expected, receipts), "seed {seed}");
        assert_eq!(one.responder.memory(one.key), other.responder.memory(other.key));
        assert_eq!(one.responder.counts(), other.responder.counts());
    }
}

/// A sink with room for some frames.
struct NarrowSink {
    frames: FrameList,
    room: usize,
}

impl FrameSink for NarrowSink {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.room == 0 { None } else { self.frames.room(len) }
    }

    fn commit(&mut self, len: usize) {
        self.room -= 1;
        self.frames.commit(len);
    }
}

#[test]
fn without_room_nothing_is_lost_for_good() {
    let mut pair = Pair::new(Mtu::Mtu256, 4096);
    let writes = 20;
    for token in 0..writes {
        pair.requester.write(pair.number, token, BASE + token * 8, pair.key, &token.to_le_bytes()).unwrap();
    }
    pair.requester.read(pair.number, 99, pair.range(0, 2000)).unwrap();
    let mut now = Time::ZERO;
    let mut ended = Vec::new();
    for _ in 0..100 {
        let mut narrow = NarrowSink { frames: FrameList::default(), room: 3 };
        pair.requester.transmit(now, &mut narrow);
        let mut answers = NarrowSink { frames: FrameList::default(), room: 2 };
        while let Some(frame) = narrow.frames.pop() {
            assert_eq!(pair.responder.on_frame(&frame, &mut answers), Receipt::Ours);
        }
        while let Some(frame) = answers.frames.pop() {
            pair.requester.on_frame(now, &frame);
        }
        while let Some(completion) = pair.requester.next_completion() {
            assert!(!matches!(completion.outcome, RequestOutcome::Failed(_)), "{completion:?}");
            ended.push(completion.token);
        }
        now = now.after_ns(200_000);
        pair.requester.tick(now);
    }
    assert_eq!(ended, (0..writes).chain([99]).collect::<Vec<_>>());
    assert!(pair.responder.counts().no_room > 0, "{:?}", pair.responder.counts());
}
