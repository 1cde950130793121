//! Passes of packets through a program with `@resilient` rows, as far as compiled code runs them inline.
//!
//! The objects can undo a pass, and know which row it has used. Most packets of a batch need neither: they use rows
//! that the switch owns. So the pass of a packet of a batch begins in the frame only, in [`word::PASS`]. It is *taken
//! over* by the objects when a function is called that has an effect there, or when the batch stops at the packet. If
//! it ends in the frame and its outputs must wait, the objects find that in a list ([`engine::MAX_INLINE_USES`]).
//! Packets that run alone begin in the objects.

use cranelift_entity::SecondaryMap;
use engine::{InlineArray, InlineRows, InlineWrite, Objects, Requested};
use ir::{LocId, Program, RegisterId, TableId};

use crate::layout::{FrameLayout, word};

/// Values of [`word::PASS`]: the pass runs in the objects.
pub(crate) const RUNNING: u64 = 0;
/// The pass has used no row that is replicated with each write.
pub(crate) const NEW: u64 = 1;
/// Rows are not under ownership, so there are no passes.
pub(crate) const FREE: u64 = 2;
/// It has used the row with number 0, which the switch owns; the others follow.
pub(crate) const FIRST_ROW: u64 = 3;
/// Mask of these numbers. Other bits are flags: `WAITS` (the outputs wait, and the word is negative) and `WRITES`.
pub(crate) const ROW_BITS: u64 = (1 << engine::INLINE_USE_PACKET) - 1;
pub(crate) const WAITS: u64 = 1 << 63;
/// Flag of a pass that has written its row.
pub(crate) const WRITES: u64 = engine::INLINE_USE_WRITES;

const _: () = assert!(crate::scout::BATCH <= engine::MAX_INLINE_USES, "the list has room for the packets of a batch");

/// The words of a frame for arrays that code uses inline, by their places after [`FrameArrays::first`].
pub(crate) mod array_word {
    /// Address of [`engine::Objects::array_addresses`] during a call of the batch loop.
    pub const ADDRESSES: u32 = 0;
    /// The value of [`super::word::PASS`] with which packets begin.
    pub const BEGIN: u32 = 1;
    /// Number of elements that the packet has changed inline.
    pub const WRITES: u32 = 2;
    pub const MAX_WRITES: u32 = 8;
    /// Address of the state of the packet's row, if its outputs wait.
    pub const STATE: u32 = 3;
    /// Two words for each: see [`super::cell_of`], and its value before.
    pub const FIRST_WRITE: u32 = 4;
    pub const COUNT: u32 = FIRST_WRITE + 2 * MAX_WRITES;
}

/// The arrays that code uses inline.
#[derive(Clone, Debug)]
pub(crate) struct FrameArrays {
    pub of: SecondaryMap<RegisterId, Option<InlineArray>>,
    /// The first of their words in frames.
    pub first: u32,
}

impl FrameArrays {
    /// Returns the arrays of a program, if it has any. Their words begin at `first`.
    pub fn new(program: &Program, first: u32) -> Option<FrameArrays> {
        let groups = program.resilient_groups().unwrap_or_default();
        let of = engine::inline_arrays(program, &groups);
        of.values().any(Option::is_some).then_some(FrameArrays { of, first })
    }

    /// Whether some of their rows are replicated with each write.
    pub fn has_waiting_outputs(&self) -> bool {
        self.of.values().flatten().any(|array| matches!(array.rows, InlineRows::EveryWrite { .. }))
    }

    /// Prepares a frame for a batch of packets.
    #[inline]
    pub fn prepare(&self, frame: &mut [u64], objects: &Objects) {
        let first = self.first as usize;
        frame[first + array_word::ADDRESSES as usize] = objects.array_addresses().as_ptr() as u64;
        frame[first + array_word::BEGIN as usize] = if objects.owns_rows() { NEW } else { FREE };
    }

    /// Returns the writes that the packet of a frame has made inline.
    fn writes(&self, frame: &[u64]) -> impl Iterator<Item = InlineWrite> {
        let words = &frame[self.first as usize..];
        let count = words[array_word::WRITES as usize];
        let pairs = words[array_word::FIRST_WRITE as usize..].as_chunks().0.iter().take(count as usize);
        pairs.map(|[cell, before]| InlineWrite {
            register: RegisterId::from_u32((cell >> CELL_REGISTER) as u32),
            index: cell & ((1 << CELL_REGISTER) - 1),
            before: *before,
        })
    }
}

/// The tables whose rows age. Code stores the time of each hit.
#[derive(Clone, Debug)]
pub(crate) struct FrameAging {
    tables: Vec<TableId>,
    /// Word with the time of a hit ([`engine::use_time`]). A word for each table follows: the address of
    /// [`Objects::use_times`] during a call of the batch loop.
    first: u32,
}

impl FrameAging {
    /// Returns the tables of a program, if there are any. Their words begin at `first`.
    pub fn new(program: &Program, first: u32) -> Option<FrameAging> {
        let tables: Vec<TableId> = program.tables.keys().filter(|table| program.has_aging_rows(*table)).collect();
        (!tables.is_empty()).then_some(FrameAging { tables, first })
    }

    pub fn word_count(&self) -> usize {
        1 + self.tables.len()
    }

    /// Returns the words with the address of a table's times, and with the time of the batch.
    pub fn words(&self, table: TableId) -> Option<(u32, u32)> {
        let number = self.tables.iter().position(|aging| *aging == table)?;
        Some((self.first + 1 + number as u32, self.first))
    }

    /// Prepares a frame for a batch of packets.
    #[inline]
    pub fn prepare(&self, frame: &mut [u64], objects: &mut Objects, now_ns: u64) {
        let words = &mut frame[self.first as usize..];
        words[0] = engine::use_time(now_ns);
        for (word, table) in words[1..].iter_mut().zip(&self.tables) {
            *word = objects.use_times(*table).as_mut_ptr() as u64;
        }
    }
}

/// Bit position of the register in a cell. Arrays with 2^32 elements are not used inline.
const CELL_REGISTER: u32 = 32;

/// Returns the number that identifies an element of an array.
pub(crate) fn cell_of(register: RegisterId, index: u64) -> u64 {
    u64::from(register.as_u32()) << CELL_REGISTER | index
}

/// Lets the objects take over the pass of the packet in a frame, unless it runs there. Returns whether its outputs
/// wait, if it has been taken over now.
#[inline(always)]
pub(crate) fn take_over(frame: &mut [u64], layout: &FrameLayout, objects: &mut Objects) -> bool {
    let pass = std::mem::take(&mut frame[word::PASS]);
    if pass != RUNNING {
        take_over_inline(frame, pass, layout, objects);
    }
    pass & WAITS != 0
}

#[inline(never)]
fn take_over_inline(frame: &mut [u64], pass: u64, layout: &FrameLayout, objects: &mut Objects) {
    if pass == FREE {
        frame[word::PASS] = FREE;
        return;
    }
    let arrays = layout.arrays.iter();
    objects.take_over_pass((pass & ROW_BITS).checked_sub(FIRST_ROW), arrays.flat_map(|arrays| arrays.writes(frame)));
}

/// Requests that the outputs of the packet are held, once.
pub(crate) fn hold(frame: &mut [u64], requests: &mut Vec<(Requested, LocId)>) {
    if !requests.iter().any(|(request, _)| *request == Requested::Hold) {
        requests.push((Requested::Hold, LocId::from_u32(0)));
        frame[word::REQUESTS] = requests.len() as u64;
    }
}
