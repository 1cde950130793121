//! Capture files: the reader ends, and gives no frame longer than it says; what the writer writes reads back.

use ::wire::pcap::{MAX_FRAME, Reader, Writer};

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::{corpus, worker};

/// Capture files.
pub struct Captures {
    inputs: Vec<Vec<u8>>,
}

impl Captures {
    pub fn new() -> Captures {
        let mut inputs = corpus::contents(".pcap");
        inputs.extend(corpus::contents(".pcapng"));
        inputs.extend(corpus::contents(".cap"));
        let mut random = Random::new(1);
        for magic in [0xa1b2_c3d4u32, 0xa1b2_3c4d] {
            inputs.push(classic(magic, false, &mut random));
            inputs.push(classic(magic, true, &mut random));
        }
        inputs.push(ng(false, &mut random));
        inputs.push(ng(true, &mut random));
        Captures { inputs }
    }
}

impl FuzzTarget for Captures {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let (input, other) = (random.below(self.inputs.len()), random.below(self.inputs.len()));
        let mut data = self.inputs[input].clone();
        for _ in 0..=random.below(4) {
            crate::mutate::bytes(&mut data, random);
        }
        if random.one_in(4) {
            // Blocks of one section after those of another.
            let cut = random.below(self.inputs[other].len());
            data.extend_from_slice(&self.inputs[other][cut / 4 * 4..]);
        }
        data.truncate(64 << 10);
        data
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let mut reader = match Reader::new(input) {
            Ok(reader) => reader,
            Err(error) => {
                reached.add(std::mem::discriminant(&error));
                return reached.list();
            }
        };
        let mut frames = Vec::new();
        loop {
            match reader.read() {
                Ok(Some(frame)) => {
                    assert!(frame.data.len() <= MAX_FRAME as usize, "a frame of {} bytes", frame.data.len());
                    frames.push(frame);
                }
                Ok(None) => break,
                Err(error) => {
                    reached.add(std::mem::discriminant(&error));
                    break;
                }
            }
            // A frame takes at least its header: sixteen bytes, or twelve in a simple packet block.
            assert!(frames.len() <= input.len() / 12, "more frames than the file has room for");
        }
        assert!(matches!(reader.read(), Ok(None)), "there are frames after the end");
        assert_eq!(reader.packets(), frames.len() as u64);
        reached.add(("frames", frames.len().min(4)));
        rewrites(&frames);
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}

/// Asserts that frames that were read, written and read again are the same.
fn rewrites(frames: &[::wire::pcap::Captured]) {
    let mut writer = Writer::new(Vec::new()).expect("memory takes a header");
    let mut written = Vec::new();
    for frame in frames {
        // The classic format has 32 bits for seconds.
        let representable = frame.time_ns / 1_000_000_000 <= u64::from(u32::MAX);
        if writer.write(frame.time_ns, &frame.data).is_ok() && representable {
            written.push((frame.time_ns, &frame.data));
        } else if representable {
            panic!("a frame that was read cannot be written: {} bytes at {} ns", frame.data.len(), frame.time_ns);
        } else {
            return;
        }
    }
    let bytes = writer.into_inner();
    let reader = Reader::new(bytes.as_slice()).expect("what was written has a header");
    let again: Vec<_> = reader.map(|frame| frame.expect("what was written can be read")).collect();
    let again: Vec<_> = again.iter().map(|frame| (frame.time_ns, &frame.data)).collect();
    assert_eq!(again, written);
}

fn classic(magic: u32, big: bool, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let long = |out: &mut Vec<u8>, value: u32| {
        out.extend_from_slice(&if big { value.to_be_bytes() } else { value.to_le_bytes() });
    };
    let version = if big { 0x0002_0004 } else { 0x0004_0002 };
    for value in [magic, version, 0, 0, 65535, 1] {
        long(&mut out, value);
    }
    for _ in 0..3 {
        let data = {
            let size = random.below(80);
            random.bytes(size)
        };
        for value in [7, 500_000, data.len() as u32, data.len() as u32 + 4] {
            long(&mut out, value);
        }
        out.extend_from_slice(&data);
    }
    out
}

/// A section, an interface, and one packet of each kind of block.
fn ng(big: bool, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let long = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let short = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut block = |kind: u32, body: &[u8]| {
        let total = body.len() as u32 + 12;
        for part in [&long(kind)[..], &long(total), body, &long(total)] {
            out.extend_from_slice(part);
        }
    };
    let data = random.bytes(20);
    block(0x0a0d_0d0a, &[&long(0x1a2b_3c4d)[..], &short(1), &short(0), &[0xff; 8]].concat());
    let options = [&short(9)[..], &short(1), &[9, 0, 0, 0], &short(0), &short(0)].concat();
    block(1, &[&short(1)[..], &short(0), &long(0), &options].concat());
    block(6, &[&long(0)[..], &long(1), &long(2), &long(20), &long(20), &data].concat());
    block(3, &[&long(20)[..], &data].concat());
    block(5, &[&long(0)[..], &long(0), &long(0)].concat());
    out
}
