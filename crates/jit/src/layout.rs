//! Computes the memory layout of a program's storage while compiled code works on a packet.
//!
//! A *frame* is one block of memory for each packet in the pipeline, cut into 64-bit words:
//!
//! ```text
//! control words | validity masks | places | widths of varbit fields | slots | scratch | homes of headers | zeros | sink
//! | arrays | use times
//! ```
//!
//! A header's *place* is the address of its bytes: its *home* in the frame before extraction, inside the packet
//! afterwards. Fields are big-endian and packed as on the wire, so the same code accesses both; a varbit field
//! follows the fixed fields at the next byte. The scratch words are for slots that code does not hold in registers.
//! Beyond the end of a stack, reads go to the zeros and writes to the sink.

use ir::{Expr, HeaderId, HeaderRef, HeaderType, Program, SlotId};

use crate::pass::{FrameAging, FrameArrays, array_word};
use crate::{Unsupported, walk};

/// Control words, by index.
pub(crate) mod word {
    /// Address of the packet's first byte.
    pub const PACKET: usize = 0;
    /// Length of the packet in bytes.
    pub const LENGTH: usize = 1;
    /// Number of bits that parsers consumed.
    pub const CURSOR: usize = 2;
    /// The parser error.
    pub const ERROR: usize = 3;
    /// Address of the [`crate::host::Host`] while code runs.
    pub const HOST: usize = 4;
    /// Index of the step that ended last.
    pub const STEP: usize = 5;
    /// Source location or table to blame for the ending.
    pub const BLAME: usize = 6;
    /// Form of the outgoing packet: see [`crate::packet`].
    pub const OUT: usize = 7;
    /// Total size of the valid headers in bytes when the unit measured it.
    pub const MEASURED: usize = 8;
    /// Number of pending requests.
    pub const REQUESTS: usize = 9;
    /// Address of the first byte of the packet's buffer.
    pub const BUFFER: usize = 10;
    /// Result of a cold call: see [`crate::emit`].
    pub const RESULT: usize = 11;
    /// Time of the run in microseconds.
    pub const NOW_US: usize = 12;
    /// State of the packet's pass: see [`crate::pass`].
    pub const PASS: usize = 13;
    /// The first of the results that steps have kept.
    pub const RESULTS: usize = 14;
    /// Number of control words.
    pub const COUNT: usize = RESULTS + crate::RESULTS;
}

/// Maximum size of a frame in bytes.
const MAX_FRAME: usize = 8 << 20;

/// The memory layout of a header type.
#[derive(Clone, Debug)]
pub(crate) struct TypeLayout {
    /// Bit offset of each field, including the start of the varbit field.
    pub offsets: Vec<u32>,
    /// Size of the fixed fields in bits.
    pub fixed_bits: u32,
    /// Size of the fixed fields in bytes.
    pub fixed_bytes: u32,
    /// Maximum width of the varbit field in bits.
    pub varbit_max: Option<u32>,
    /// Whether the memory layout equals the wire layout: whole bytes, with the varbit field last.
    pub plain: bool,
    /// Size of a home in bytes, a multiple of 8.
    pub home_bytes: u32,
}

impl TypeLayout {
    fn new(ty: &HeaderType) -> Self {
        let fixed_bits = ty.fixed_bits();
        let fixed_bytes = fixed_bits.div_ceil(8);
        let mut at = 0;
        let offset = |field: &ir::HeaderField| {
            if field.varbit {
                fixed_bytes * 8
            } else {
                let here = at;
                at += field.width;
                here
            }
        };
        let offsets = ty.fields.iter().map(offset).collect();
        let varbit = ty.varbit_field();
        let varbit_max = varbit.map(|field| ty.fields[field].width);
        let last = varbit.is_none_or(|field| field + 1 == ty.fields.len());
        let bytes = fixed_bytes + varbit_max.unwrap_or(0).div_ceil(8);
        TypeLayout {
            offsets,
            fixed_bits,
            fixed_bytes,
            varbit_max,
            plain: fixed_bits.is_multiple_of(8) && last,
            home_bytes: bytes.next_multiple_of(8).max(8),
        }
    }
}

/// The position of one header's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderLayout {
    /// Byte offset of the home.
    pub home: u32,
    /// Word index of the place.
    pub place: u32,
    /// Word index of the width of the varbit field, for types that have one.
    pub width: Option<u32>,
    /// Position of the validity bit.
    pub valid: Valid,
}

/// The position of a validity bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Valid {
    /// A bit of a mask word, which compiled code keeps in a register.
    Bit { mask: u32, bit: u32 },
    /// A word of its own, for stacks with computed indices.
    Word(u32),
}

/// The position of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotLayout {
    /// Index of its first word.
    pub word: u32,
    /// Width in bits.
    pub width: u32,
    placed: bool,
}

/// The layout of a program's frames.
#[derive(Clone, Debug)]
pub(crate) struct FrameLayout {
    pub types: Vec<TypeLayout>,
    pub headers: Vec<HeaderLayout>,
    /// Word index of the first validity mask, and number of masks.
    pub masks: (u32, u32),
    pub slots: Vec<SlotLayout>,
    /// Word range (from, to) of the slots that a fresh unit loads from the frame: those that the architecture sets,
    /// then those that field lists preserve.
    pub inputs: (u32, u32),
    /// Number of these slots that the architecture sets.
    pub given: u32,
    /// Distance in words from a slot to its scratch words.
    pub scratch: u32,
    /// Byte offsets of the zeros and of the sink; both are as large as the largest home.
    pub zeros: u32,
    pub sink: u32,
    /// Size of a frame in words.
    pub words: usize,
    /// Whether a parser's cursor is always byte-aligned.
    pub byte_cursor: bool,
    /// The resilient arrays that code uses inline, if there are any.
    pub arrays: Option<FrameArrays>,
    /// The tables whose rows age, if there are any.
    pub aging: Option<FrameAging>,
}

impl FrameLayout {
    /// Lays out frames. `given` are the slots that the architecture sets, `kept` those that field lists preserve.
    pub fn new(
        program: &Program,
        given: &[SlotId],
        kept: &[SlotId],
        has_scratch: bool,
    ) -> Result<FrameLayout, Unsupported> {
        let types: Vec<TypeLayout> = program.header_types.values().map(TypeLayout::new).collect();
        let mut computed = vec![false; program.stacks.len()];
        let mut note = |header: &HeaderRef| {
            if let HeaderRef::Element(stack, index) = header
                && !matches!(**index, Expr::Const(_))
            {
                computed[stack.as_u32() as usize] = true;
            }
        };
        walk::headers(program, &mut note);
        let mut in_words = vec![false; program.headers.len()];
        for (id, stack) in &program.stacks {
            if computed[id.as_u32() as usize] {
                for index in 0..stack.size {
                    in_words[(stack.first.as_u32() + index) as usize] = true;
                }
            }
        }

        let mut next = word::COUNT as u32;
        let bits = in_words.iter().filter(|in_words| !**in_words).count() as u32;
        let masks = (next, bits.div_ceil(64));
        next += masks.1;
        let mut take = |count: u32| {
            let at = next;
            next += count;
            at
        };
        let mut headers = Vec::new();
        let mut bit = 0;
        let places = take(program.headers.len() as u32);
        let words = take(program.headers.len() as u32);
        let widths = take(program.headers.len() as u32);
        for (id, header) in &program.headers {
            let at = id.as_u32();
            let valid = if in_words[at as usize] {
                Valid::Word(words + at)
            } else {
                bit += 1;
                Valid::Bit { mask: (bit - 1) / 64, bit: (bit - 1) % 64 }
            };
            let ty = &types[header.ty.as_u32() as usize];
            let width = ty.varbit_max.map(|_| widths + at);
            headers.push(HeaderLayout { home: 0, place: places + at, width, valid });
        }
        let mut slots = vec![SlotLayout::default(); program.slots.len()];
        // Assigns words to slots, one after the other. Returns the word after the last.
        let mut place = |group: &[SlotId]| {
            for slot in group {
                let (at, width) = (slot.as_u32() as usize, program.slots[*slot].width);
                if !slots[at].placed {
                    // A slot of no bits has a word too, so that setters need no check.
                    let word = take(width.div_ceil(64).max(1));
                    slots[at] = SlotLayout { word, width, placed: true };
                }
            }
            take(0)
        };
        let begin = place(&[]);
        let given = place(given) - begin;
        let inputs = (begin, place(kept));
        let end = place(&program.slots.keys().collect::<Vec<_>>());
        let scratch = end - begin;
        let words = if has_scratch { next + scratch } else { next };
        let mut bytes = words as usize * 8;
        let mut largest_home = 8;
        for (id, header) in &program.headers {
            let size = types[header.ty.as_u32() as usize].home_bytes;
            headers[id.as_u32() as usize].home = bytes as u32;
            bytes += size as usize;
            largest_home = largest_home.max(size);
            if bytes > MAX_FRAME {
                return Err(Unsupported::TooLarge);
            }
        }
        let zeros = bytes as u32;
        let sink = zeros + largest_home;
        bytes += 2 * largest_home as usize;
        let arrays = FrameArrays::new(program, (bytes / 8) as u32);
        bytes += arrays.as_ref().map_or(0, |_| array_word::COUNT as usize * 8);
        let aging = FrameAging::new(program, (bytes / 8) as u32);
        bytes += aging.as_ref().map_or(0, |aging| aging.word_count() * 8);
        let byte_cursor = program.bodies.values().all(|body| walk::keeps_to_bytes(program, &types, body));
        Ok(FrameLayout {
            types,
            headers,
            masks,
            slots,
            inputs,
            given,
            scratch,
            zeros,
            sink,
            words: bytes / 8,
            byte_cursor,
            arrays,
            aging,
        })
    }

    pub fn header(&self, header: HeaderId) -> &HeaderLayout {
        &self.headers[header.as_u32() as usize]
    }

    pub fn ty(&self, program: &Program, header: HeaderId) -> &TypeLayout {
        &self.types[program.headers[header].ty.as_u32() as usize]
    }

    pub fn slot(&self, slot: SlotId) -> u32 {
        self.slots[slot.as_u32() as usize].word
    }
}
