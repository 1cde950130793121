//! Generates frames.

use std::sync::Arc;

use crate::zipf::Zipf;
use crate::{Size, Spec, frame};
use rng::SplitMix64;

/// Length in bytes of a tag at the end of a frame.
pub const TAG_LEN: usize = 16;

const IMIX: [usize; 12] = [60, 60, 60, 60, 60, 60, 60, 566, 566, 566, 566, 1514];

const TAG_MARK: u64 = 0x7472_6961_6e67_6c65;

/// An endless source of frames.
#[derive(Clone, Debug)]
pub struct Generator {
    source: FrameSource,
}

#[derive(Clone, Debug)]
enum FrameSource {
    Made { spec: Box<Spec>, zipf: Option<Zipf>, rng: SplitMix64 },
    Replayed { frames: Arc<[Vec<u8>]>, ports: Vec<u32>, next: usize },
}

impl Generator {
    /// Creates a generator for a specification.
    ///
    /// # Panics
    /// If the specification has no flows or no ports, or its frames are shorter than their headers.
    pub fn new(spec: &Spec) -> Generator {
        assert!(spec.flows > 0 && !spec.ports.is_empty(), "no traffic at all");
        let least = match spec.size {
            Size::Between(low, high) => low.min(high),
            Size::Imix => usize::MAX,
        };
        assert!(least >= spec.headers_len(), "frames of {least} bytes have no room for their headers");
        let zipf = spec.zipf.map(|exponent| Zipf::new(spec.flows, exponent));
        Generator { source: FrameSource::Made { zipf, rng: SplitMix64::new(spec.seed), spec: Box::new(spec.clone()) } }
    }

    /// Creates a generator that repeats these frames in order; each frame always arrives on the same port.
    ///
    /// # Panics
    /// If there are no frames or no ports.
    pub fn replay(frames: impl Into<Arc<[Vec<u8>]>>, ports: Vec<u32>) -> Generator {
        let frames = frames.into();
        assert!(!frames.is_empty() && !ports.is_empty(), "no traffic at all");
        Generator { source: FrameSource::Replayed { frames, ports, next: 0 } }
    }

    /// Replaces the contents of `frame` by the next frame. Returns the ingress port of the switch.
    pub fn next(&mut self, frame: &mut Vec<u8>) -> u32 {
        self.make(&[], frame)
    }

    /// Returns the next frame with a number in the last [`TAG_LEN`] bytes of the payload, if there is space, so that
    /// the frame can be recognized after a switch. Replayed frames are unchanged.
    pub fn next_tagged(&mut self, number: u64, frame: &mut Vec<u8>) -> u32 {
        let mut tag = [0; TAG_LEN];
        tag[..8].copy_from_slice(&TAG_MARK.to_be_bytes());
        tag[8..].copy_from_slice(&number.to_be_bytes());
        self.make(&tag, frame)
    }

    fn make(&mut self, tag: &[u8], frame: &mut Vec<u8>) -> u32 {
        match &mut self.source {
            FrameSource::Made { spec, zipf, rng } => {
                let flow = match zipf {
                    Some(zipf) => zipf.next(rng),
                    None => rng.below(spec.flows),
                };
                let size = match spec.size {
                    Size::Between(low, high) => low + rng.below((high - low) as u64 + 1) as usize,
                    Size::Imix => IMIX[rng.below(12) as usize].max(spec.headers_len()),
                };
                frame::write(spec, flow, size, tag, frame);
                spec.ports[(flow % spec.ports.len() as u64) as usize]
            }
            FrameSource::Replayed { frames, ports, next } => {
                let at = *next;
                *next = if at + 1 == frames.len() { 0 } else { at + 1 };
                frame.clear();
                frame.extend_from_slice(&frames[at]);
                ports[at % ports.len()]
            }
        }
    }
}

/// Returns the number that [`Generator::next_tagged`] appended to a frame, even if padding follows.
pub fn tag_of(frame: &[u8]) -> Option<u64> {
    let mark = TAG_MARK.to_be_bytes();
    let at = frame.windows(TAG_LEN).rposition(|window| window[..8] == mark)?;
    frame[at + 8..at + TAG_LEN].try_into().ok().map(u64::from_be_bytes)
}
