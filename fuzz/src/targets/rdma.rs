//! Sends RoCEv2 frames to both ends: neither panics, memory outside the region of a queue pair's domain does not
//! change, and each request ends at most once.

use ::rdma::{
    AccessRights, FrameList, FramePath, MemoryKey, MemoryRange, ProtectionDomain, QpEndpoint, Receipt, Requester,
    RequesterConfig, Responder, ResponderConfig,
};
use ::switch::Time;
use ::wire::checksum::Addresses;
use ::wire::ethernet::Address;
use ::wire::roce::{Mtu, icrc};
use rng::SplitMix64;

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::{mutate, worker};

const BASE: u64 = 0x1000;
/// Bytes before the IP header.
const ETHERNET: usize = 14;

/// Sequences of frames, each with its length in two bytes before it.
pub struct Frames {
    inputs: Vec<Vec<u8>>,
}

/// Both ends, connected, with requests that are not answered. All numbers are the same in each round.
struct Ends {
    requester: Requester,
    responder: Responder<Vec<u8>>,
    /// Memory of another tenant.
    foreign: MemoryKey,
    sent: FrameList,
}

impl Ends {
    fn new() -> Ends {
        let mut rng = SplitMix64::new(1);
        let mut requester = Requester::new(RequesterConfig::default());
        let mut responder = Responder::new(ResponderConfig::default());
        let own = ProtectionDomain(1);
        let mut register = |domain| {
            let memory = vec![7; 2048];
            responder.register(&mut rng, domain, AccessRights::ALL, BASE, memory).expect("there is a place")
        };
        let (key, foreign) = (register(own), register(ProtectionDomain(2)));
        let addresses = Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let path = FramePath::new(Address([2; 6]), Address([4; 6]), addresses, Mtu::Mtu256);
        let local: QpEndpoint = requester.open(&mut rng, path).expect("there is a place");
        let remote = responder.accept(&mut rng, own, path.reversed(), local).expect("there is a place");
        requester.connect(local.number, remote).expect("it is open");
        let (number, range) = (local.number, |len| MemoryRange { address: BASE, key, len });
        let accepted = [
            requester.read(number, 0, range(256)),
            requester.write(number, 1, BASE, key, &[1; 600]),
            requester.fetch_add(number, 2, BASE + 8, key, 1),
            requester.read(number, 3, range(1000)),
            requester.compare_swap(number, 4, BASE + 16, key, 7, 8),
        ];
        assert!(accepted.iter().all(Result::is_ok), "{accepted:?}");
        let mut sent = FrameList::default();
        requester.transmit(Time::ZERO, &mut sent);
        Ends { requester, responder, foreign, sent }
    }
}

fn joined(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.iter().flat_map(|frame| [&(frame.len() as u16).to_be_bytes()[..], frame].concat()).collect()
}

fn split(mut input: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((len, rest)) = input.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        frames.push(rest[..len].to_vec());
        input = &rest[len..];
    }
    frames
}

impl Frames {
    pub fn new() -> Frames {
        let mut ends = Ends::new();
        let requests: Vec<Vec<u8>> = std::iter::from_fn(|| ends.sent.pop()).collect();
        let mut answers = FrameList::default();
        requests.iter().for_each(|frame| _ = ends.responder.on_frame(frame, &mut answers));
        let answers: Vec<Vec<u8>> = std::iter::from_fn(|| answers.pop()).collect();
        let both: Vec<Vec<u8>> = requests.iter().chain(&answers).cloned().collect();
        Frames { inputs: vec![joined(&requests), joined(&answers), joined(&both)] }
    }
}

impl FuzzTarget for Frames {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let mut frames = split(random.pick::<Vec<u8>>(&self.inputs));
        for _ in 0..=random.below(3) {
            if frames.is_empty() {
                break;
            }
            let at = random.below(frames.len());
            match random.below(4) {
                0 => frames.swap(0, at),
                1 => frames.push(frames[at].clone()),
                _ => mutate::bytes(&mut frames[at], random),
            }
            // Most frames get a valid integrity check.
            if !random.one_in(4) && frames[at].len() > ETHERNET {
                let _ = icrc::seal(&mut frames[at][ETHERNET..]);
            }
        }
        joined(&frames)
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let mut ends = Ends::new();
        let mut answers = FrameList::default();
        for frame in split(input) {
            assert!(!::wire::describe(&frame).is_empty());
            let receipts =
                [ends.responder.on_frame(&frame, &mut answers), ends.requester.on_frame(Time::from_us(1), &frame)];
            assert_ne!(receipts, [Receipt::Ours; 2], "a frame is for one end");
            reached.add(receipts.map(|receipt| receipt == Receipt::Ours));
        }
        let mut tokens = Vec::new();
        while let Some(completion) = ends.requester.next_completion() {
            reached.add(std::mem::discriminant(&completion.outcome));
            assert!(!tokens.contains(&completion.token), "request {} ends twice", completion.token);
            tokens.push(completion.token);
        }
        assert!(tokens.is_sorted() && tokens.len() <= 5, "{tokens:?}");
        ends.requester.tick(Time::from_ms(5));
        ends.requester.transmit(Time::from_ms(5), &mut answers);
        let foreign = ends.responder.memory(ends.foreign).expect("it is registered");
        assert!(foreign.iter().all(|byte| *byte == 7), "the memory of another tenant changed");
        let counts = ends.responder.counts();
        reached.add((counts.reads, counts.writes, counts.atomics, counts.duplicates.min(3), counts.naks));
        let counts = ends.requester.counts();
        reached.add((counts.naks.min(2), counts.implied_naks.min(2), counts.ghosts.min(2), counts.invalid.min(2)));
        reached.add(ends.responder.next_failure().map(|failure| failure.reason));
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
