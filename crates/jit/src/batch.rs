//! Many packets in one call: what is the same for all of them is set up once.

use engine::{BitString, Colour, Now, Objects, Requested};
use ir::{LocId, SlotId};

use crate::calls::Host;
use crate::compiled::{Compiled, Outcome, outcome};
use crate::layout::word;
use crate::packet::{Packet, Shape, out, zero_words};

/// A packet of a batch, before and after code runs on it.
#[derive(Debug)]
pub struct Turn<'a> {
    shape: &'a Shape,
    frame: &'a mut [u64],
    buffer: &'a mut [u8],
    requests: &'a mut Vec<(Requested, LocId)>,
    emitted: &'a BitString,
    replaced: &'a [u8],
}

impl Turn<'_> {
    /// The low 64 bits of a slot.
    #[inline]
    pub fn slot_word(&self, slot: SlotId) -> u64 {
        let layout = self.shape.layout.slots[slot.as_u32() as usize];
        if layout.width == 0 { 0 } else { self.frame[layout.word as usize] }
    }

    /// Sets a slot of up to 64 bits to a number, cut to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        let layout = self.shape.layout.slots[slot.as_u32() as usize];
        match layout.width {
            0 => {}
            1..64 => self.frame[layout.word as usize] = value & ((1 << layout.width) - 1),
            _ => self.frame[layout.word as usize] = value,
        }
    }

    /// Whether anything was asked for.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.frame[word::ASKED] != 0
    }

    /// Takes what was asked for.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        self.frame[word::ASKED] = 0;
        std::mem::take(self.requests)
    }

    /// The parser's error.
    #[inline]
    pub fn parser_error(&self) -> u32 {
        self.frame[word::ERROR] as u32
    }

    /// Where in its buffer the packet that leaves begins; `None` if it is not there.
    #[inline]
    pub fn output_start(&self) -> Option<usize> {
        match self.frame[word::OUT] {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.buffer.as_ptr() as u64) as usize),
        }
    }

    /// The packet that leaves, in a buffer of its own, if it did not find room in its own.
    pub fn replaced(&self) -> Option<Vec<u8>> {
        match self.frame[word::OUT] {
            out::REPLACED => Some(self.replaced.to_vec()),
            out::EMITTED => {
                let packet = self.frame[word::LENGTH] as usize;
                let payload = (self.frame[word::CURSOR] as usize).div_ceil(8);
                let mut whole = self.emitted.as_bytes().to_vec();
                whole.extend_from_slice(&self.buffer[self.buffer.len() - packet + payload..]);
                Some(whole)
            }
            _ => None,
        }
    }
}

impl Compiled {
    /// Runs a fresh unit on packets one after the other, which lie `start` bytes into their buffers. `begin` sets slots
    /// before, `end` looks at what came of it; both get the number of the packet. `packet` lends its frame.
    ///
    /// # Panics
    /// If there is no such unit, it is not fresh, `packet` is another program's, or `start` is beyond a buffer.
    #[allow(clippy::too_many_arguments, reason = "a packet's way in one call")]
    pub fn run_batch<B: AsMut<[u8]>>(
        &self,
        unit: usize,
        packet: &mut Packet,
        objects: &mut Objects,
        now: Now,
        buffers: &mut [B],
        start: usize,
        mut begin: impl FnMut(usize, &mut Turn<'_>),
        mut end: impl FnMut(usize, &mut Turn<'_>, Outcome),
    ) {
        assert!(self.is_fresh(unit), "packets of a batch begin with a fresh unit");
        assert!(std::sync::Arc::ptr_eq(self.shape(), packet.shape()), "the packet was made by this program");
        objects.advance_clock(now.ns);
        packet.restart(Vec::new(), 0);
        let shape = &**self.shape();
        let code = self.code(unit);
        let (inputs_begin, inputs_end) = shape.layout.inputs;
        for (number, buffer) in buffers.iter_mut().enumerate() {
            let buffer = buffer.as_mut();
            let data = &mut buffer[start..];
            let control: &mut [u64; word::COUNT] =
                packet.frame.first_chunk_mut().expect("frames begin with control words");
            control[word::PACKET] = data.as_mut_ptr() as u64;
            control[word::LENGTH] = data.len() as u64;
            control[word::OUT] = out::EMITTED;
            if control[word::ASKED] != 0 {
                control[word::ASKED] = 0;
                packet.requests.clear();
            }
            if packet.emitted.len_bits() > 0 {
                packet.emitted.clear();
            }
            if !packet.colours.is_empty() {
                packet.colours.fill(Colour::Green);
            }
            zero_words(&mut packet.frame[inputs_begin as usize..inputs_end as usize]);
            if !shape.kept_headers.is_empty() {
                packet.clear_kept_headers();
            }
            let mut turn = Turn {
                shape,
                frame: &mut packet.frame,
                buffer: &mut *buffer,
                requests: &mut packet.requests,
                emitted: &packet.emitted,
                replaced: &packet.replaced,
            };
            begin(number, &mut turn);
            let mut host = Host {
                program: &shape.program,
                layout: &shape.layout,
                objects,
                requests: &mut packet.requests,
                colours: &mut packet.colours,
                emitted: &mut packet.emitted,
                replaced: &mut packet.replaced,
                buffer: buffer.as_mut_ptr(),
                now_ns: now.ns,
                covered: &mut packet.covered,
                moved: &mut packet.moved,
            };
            packet.frame[word::HOST] = &raw mut host as u64;
            // SAFETY: as in `Compiled::run`; the packet is the buffer from `start` on, which is borrowed exclusively.
            let ending = unsafe { code(packet.frame.as_mut_ptr()) };
            let outcome = outcome(&packet.frame, ending);
            let mut turn = Turn {
                shape,
                frame: &mut packet.frame,
                buffer: &mut *buffer,
                requests: &mut packet.requests,
                emitted: &packet.emitted,
                replaced: &packet.replaced,
            };
            end(number, &mut turn, outcome);
        }
        // Nothing of the buffers stays in reach.
        packet.take_data();
    }
}
