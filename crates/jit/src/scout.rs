//! Scouts: the key-prefetch pass of a batch, and the memory that it writes.
//! A lookup in a large table stalls on memory, and packets processed one by one stall one by one. So a fresh unit that
//! applies tables has a *scout*: the same parser and controls up to the last table, stripped of side effects. It writes
//! the lookup keys that it computes into the memory of the batch. When all packets have been scouted, each table looks
//! up all of its keys at once with software prefetch, and the results are stored beside the keys. The packet itself
//! then compares its key with the prefetched one, and performs a normal lookup only if they differ.
//!
//! So a scout may guess: it assumes that actions do nothing and that checksums are correct. A wrong guess costs time,
//! never correctness. Where the key cannot be wrong, the packet need not compare: see [`PrefetchLayout::is_certain`].
//!
//! Where actions determine the key of a later table (a state, a next hop), a single pass does not reach these keys. So
//! the scout has a second function, which repeats the pass and runs the actions that have been found meanwhile: it
//! *follows* results, one table of the dependency chain farther each time. See [`rounds`].
//!
//! ```text
//! rows, one per packet:               packet address and length | how the unit ended | results
//! prefetch memory, per chain:         address of the record of its default action
//! prefetch memory, per table:         the keys of all packets | a result for each packet | bitmap of the packets that
//!                                     reached the table in any round | the same for the last round | address of the
//!                                     record after the default action's | the words of [`each`], [`dense`],
//!                                     [`hashed`], [`called`]
//! ```
//!
//! A [`Row`] is one cache line. A result is a 32-bit record index, counted from the first record; -1 is the record of
//! the default action, which lies in front of the first, and [`UNKNOWN`] means that there is no result.

mod bulk_lookup;
mod rounds;
#[cfg(test)]
mod tests;

use engine::tables::LISTED_BITS;
use engine::{Objects, record_places};
use ir::{BodyKind, Expr, HeaderId, HeaderRef, LValue, MatchKind, Op, Program, SlotId, TableId};
use std::collections::BTreeSet;

pub(crate) use bulk_lookup::{PrefetchState, clear_results, look_up, look_up_round, prepare};

use crate::layout::{FrameLayout, Valid};
use crate::walk::{self, Use};
use crate::{Step, Unit, chain};

/// Maximum number of tables of a unit that are prefetched.
const MAX_PREFETCHED: usize = 12;
/// Maximum number of words of a key that is prefetched.
const MAX_WORDS: usize = 6;
/// Number of packets that are scouted before the first of them runs.
pub(crate) const BATCH: usize = 32;
/// Maximum number of results in a row.
pub(crate) const RESULTS: usize = engine::MAX_RESULTS;

/// Bit of [`Row::ended`] that is set if code specialised for the packet's parser path processed it to its end.
pub(crate) const SPECIAL: u64 = 1 << 8;
/// Bit positions of the step and of the parser's error in [`Row::ended`].
pub(crate) const STEP: u32 = 16;
pub(crate) const ERROR: u32 = 32;

/// Result of a lookup that has not been made.
pub(crate) const UNKNOWN: u32 = -2i32 as u32;

/// Per-packet state of a batch.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Row {
    /// Address of the packet's first byte.
    pub packet: u64,
    /// Length of the packet in bytes.
    pub length: u64,
    /// Address of the first byte of its buffer.
    pub buffer: u64,
    /// Form of the outgoing packet: see [`crate::packet::out`].
    pub out: u64,
    /// Return code of the unit in the lowest 8 bits, then [`SPECIAL`], the step at which it ended, and the parser's
    /// error.
    pub ended: u64,
    /// Results of the unit.
    pub results: [u64; RESULTS],
}

const _: () = assert!(size_of::<Row>() == 64, "a row is a line of the cache");

/// Rows of a batch.
pub(crate) type Rows = [Row; BATCH];

/// A prefetched table of a unit, with the position of its data in the prefetch memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchedTable {
    pub table: TableId,
    /// Size of the key in words and in bits.
    pub words: usize,
    pub bits: u32,
    /// Whether hits are counted, so code has to report them.
    pub counts: bool,
    /// Size of a record in words.
    pub stride: usize,
    /// Word indices of the keys of all packets, and of the result for each.
    pub keys: usize,
    pub found: usize,
    /// Word indices of the bitmaps of the packets that reached the table, in any round and in the last round; and of
    /// the word with the address of the record after the default action's.
    pub reached: usize,
    pub fresh: usize,
    pub records: usize,
    /// Whether a packet that reaches the table certainly has the prefetched key.
    pub is_certain: bool,
    /// Word index of the descriptor of an inline lookup: [`each`], for tables with few possible keys,
    pub each: Option<usize>,
    /// [`dense`], for others whose keys may form a dense range,
    pub dense: Option<usize>,
    /// [`hashed`], for tables with exact keys,
    pub hashed: Option<usize>,
    /// and [`called`], for tables with a range key.
    pub called: Option<usize>,
}

impl PrefetchedTable {
    /// Whether code for an inline lookup is generated.
    pub fn has_inline_lookup(&self) -> bool {
        self.each.is_some() || self.dense.is_some() || self.hashed.is_some() || self.called.is_some()
    }
}

/// Descriptor of a table whose keys have so few bits that all records are enumerated: the address of the record of each
/// key, all 0 if this is not the case.
pub(crate) mod each {
    pub const BITS: u32 = 3;
    pub const WORDS: usize = 1 << BITS;
}

/// Descriptor of a table whose keys form a dense range ([`engine::tables::inline_lookup::DenseKeys`]).
pub(crate) mod dense {
    /// Address of the handles, and their number: 0 if the keys are not dense.
    pub const HANDLES: usize = 0;
    pub const LEN: usize = 1;
    pub const FIRST: usize = 2;
    pub const SHIFT: usize = 3;
    pub const WORDS: usize = 4;
}

/// Descriptor of a table whose keys are found by hash ([`engine::tables::inline_lookup::HashedKeys`]).
pub(crate) mod hashed {
    /// Number of groups: 0 if keys are not looked up this way.
    pub const GROUPS: usize = 0;
    pub const TAGS: usize = 1;
    pub const SLOTS: usize = 2;
    pub const WORDS: usize = 3;
}

/// Descriptor of a table that is searched by a function ([`engine::tables::inline_lookup::Called`]).
pub(crate) mod called {
    /// Address of the function: 0 if keys are not looked up this way.
    pub const FUNCTION: usize = 0;
    pub const TABLE: usize = 1;
    pub const WORDS: usize = 2;
}

/// The layout of the prefetch memory of a unit's batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefetchLayout {
    pub tables: Vec<PrefetchedTable>,
    /// Tables compiled to [chains](chain) whose default action may change; each has a word.
    pub defaults: Vec<TableId>,
    pub results: Vec<SlotId>,
    /// Size of the prefetch memory in words.
    pub words: usize,
    /// Number of the unit's steps, from the first, that contain a prefetched table.
    pub steps: usize,
    /// Whether there is a scout. A large unit that applies tables several times has none if most of them can be
    /// searched inline: the prefetch memory has one key of each table, and a scout would double the code.
    pub has_scout: bool,
    /// Number of passes of the scout that follow earlier results: 0 if no key depends on them.
    pub rounds: usize,
}

impl PrefetchLayout {
    /// Lays out the prefetch memory of a unit, which may be large; without tables unless `ahead` is set.
    pub fn new(program: &Program, layout: &FrameLayout, unit: &Unit, ahead: bool, is_large: bool) -> PrefetchLayout {
        let mut prefetch =
            PrefetchLayout { results: unit.results.clone().unwrap_or_default(), ..PrefetchLayout::default() };
        if ahead && layout.byte_cursor {
            prefetch.tables(program, layout, unit, is_large);
        }
        for id in walk::tables(program, &unit.steps) {
            let table = &program.tables[id];
            if !table.const_default && chain::entries(table).is_some() {
                prefetch.defaults.push(id);
            }
        }
        prefetch.words = prefetch.defaults.len();
        for prefetched in &mut prefetch.tables {
            prefetched.keys = prefetch.words;
            prefetched.found = prefetched.keys + prefetched.words * BATCH;
            prefetched.reached = prefetched.found + BATCH / 2;
            prefetched.fresh = prefetched.reached + 1;
            prefetched.records = prefetched.fresh + 1;
            prefetch.words = prefetched.records + 1;
            let ways = [&mut prefetched.each, &mut prefetched.dense, &mut prefetched.hashed, &mut prefetched.called];
            for (way, words) in ways.into_iter().zip([each::WORDS, dense::WORDS, hashed::WORDS, called::WORDS]) {
                if let Some(at) = way {
                    *at = prefetch.words;
                    prefetch.words += words;
                }
            }
        }
        prefetch
    }

    fn tables(&mut self, program: &Program, layout: &FrameLayout, unit: &Unit, is_large: bool) {
        let mut applied = Vec::new();
        for (index, step) in unit.steps.iter().enumerate() {
            let Step::Run(body) = step else { continue };
            let mut in_registers = true;
            walk::body(program, &program.bodies[*body], &mut |used| match used {
                Use::Apply(table) => applied.push((table, index)),
                Use::Header(header) | Use::HeaderWrite(header, _) | Use::Validity(header) | Use::Extract(header) => {
                    let bit = |header| matches!(layout.header(header).valid, Valid::Bit { .. });
                    in_registers &= walk::candidates(program, header).into_iter().all(bit);
                }
                Use::Read(_) | Use::Write(_) => {}
            });
            if !in_registers {
                // Addresses of such headers are in the frame, which a scout leaves alone.
                return;
            }
        }
        let fields = written_fields(program);
        for (table, step) in &applied {
            self.add(program, unit, *table, *step, &fields);
        }
        if let [alone] = &mut self.tables[..]
            && !fields.is_empty()
        {
            // With a single table, packets wait for no other lookup; an inline lookup may stall on the headers that the
            // packet has just written, which prefetching all keys avoids. Dense arrays keep theirs, which takes few
            // instructions.
            (alone.hashed, alone.called) = (None, None);
        }
        let prefetched: Vec<TableId> = applied.iter().map(|(id, _)| *id).filter(|id| self.of(*id).is_some()).collect();
        self.rounds = rounds::rounds(program, unit, &prefetched);
        let is_repeated = prefetched.len() > self.tables.len();
        let inline = self.tables.iter().filter(|prefetched| prefetched.has_inline_lookup()).count();
        let is_searched_inline = inline * 4 >= self.tables.len() * 3;
        let is_too_large = is_large && is_repeated && is_searched_inline;
        self.has_scout = !self.tables.is_empty() && !is_too_large;
    }

    fn add(&mut self, program: &Program, unit: &Unit, id: TableId, step: usize, fields: &Fields) {
        let table = &program.tables[id];
        let words = Objects::key_words(table).words;
        if table.profile.is_some()
            || !(1..=MAX_WORDS).contains(&words)
            || self.tables.len() == MAX_PREFETCHED
            || self.of(id).is_some()
            || chain::entries(table).is_some()
        {
            return;
        }
        let counts = table.records_hits();
        let is_certain = Self::is_certain(program, unit, id, step, fields);
        let stride = table.actions.iter().map(|action| {
            let params = &program.actions[action.action].params;
            let widths: Vec<u32> = params.iter().map(|param| program.slots[param.slot].width).collect();
            let last = record_places(&widths).into_iter().zip(widths).next_back();
            last.map_or(1, |((word, bit), width)| (word + (bit + width).div_ceil(64) as usize).max(1))
        });
        let stride = stride.max().unwrap_or(1);
        let exact = table.keys.iter().all(|key| key.kind == MatchKind::Exact);
        let bits = table.keys.iter().map(|key| key.width).sum::<u32>();
        // Counting hits needs more than the record; so does a miss that may have to wait.
        let each = words == 1 && bits <= each::BITS && !counts && !table.waits_for_entries();
        let ranges = table.keys.iter().filter(|key| key.kind == MatchKind::Range).count();
        let rest_exact = table.keys.iter().all(|key| matches!(key.kind, MatchKind::Exact | MatchKind::Range));
        self.tables.push(PrefetchedTable {
            table: id,
            words,
            bits,
            counts,
            stride,
            keys: 0,
            found: 0,
            reached: 0,
            fresh: 0,
            records: 0,
            is_certain,
            each: each.then_some(0),
            dense: (!each && words == 1 && (exact || bits <= LISTED_BITS)).then_some(0),
            hashed: (!each && exact).then_some(0),
            called: (!each && ranges == 1 && rest_exact).then_some(0),
        });
        self.steps = step + 1;
    }

    /// Whether a packet that reaches a table certainly has the key that its scout recorded, if the scout reached the
    /// table as well. The packet may reach it by another path, but the key consists of values that are equal on all
    /// paths: fields that nothing in the program writes, in headers that the parser extracted (which the scout follows
    /// exactly), and slots that no earlier instruction writes.
    fn is_certain(program: &Program, unit: &Unit, id: TableId, step: usize, fields: &Fields) -> bool {
        let mut written = WriteSet { slots: BTreeSet::new(), fields };
        let mut parsed = false;
        for step in &unit.steps[..=step] {
            match step {
                Step::Run(body) => {
                    let parses = program.bodies[*body].kind == BodyKind::Parser;
                    let mut instrs = program.bodies[*body].blocks.values().flat_map(|block| &block.instrs);
                    if parses && (parsed || !instrs.all(|instr| is_followed(program, &instr.op))) {
                        return false;
                    }
                    // A parser after an instruction that the scout does not execute cannot be followed.
                    parsed = true;
                    walk::whole_body(program, *body, &mut |used| {
                        if let Use::Write(slot) = used {
                            written.slots.insert(slot);
                        }
                    });
                }
                Step::ErrorTo(slot)
                | Step::LengthTo(slot)
                | Step::PresentLengthTo(slot)
                | Step::Copy(slot, _)
                | Step::TimeTo(slot)
                | Step::InputTo(_, slot)
                | Step::Set(slot, _) => {
                    written.slots.insert(*slot);
                }
                Step::Measure
                | Step::StopUnless(..)
                | Step::DropIf(..)
                | Step::Keep(..)
                | Step::StopIfRequested
                | Step::StopUnlessWaiting(_) => {}
            }
        }
        program.tables[id].keys.iter().all(|key| written.leaves(&key.expr))
    }

    /// Returns the prefetch data of a table.
    pub fn of(&self, table: TableId) -> Option<PrefetchedTable> {
        self.tables.iter().find(|prefetched| prefetched.table == table).copied()
    }
}

/// Whether a scout executes this instruction of a parser.
fn is_followed(program: &Program, op: &Op) -> bool {
    match op {
        Op::Assign(LValue::Slot(slot), _) | Op::Lookahead { dst: LValue::Slot(slot), .. } => {
            crate::emit::is_variable(program, *slot)
        }
        Op::Extract(HeaderRef::Header(_), None) | Op::Advance(_) | Op::Verify(..) | Op::Log(..) => true,
        _ => false,
    }
}

/// Fields of headers; `None` stands for the whole header.
type Fields = BTreeSet<(HeaderId, Option<u32>)>;

/// Returns the fields that any instruction of a program writes.
fn written_fields(program: &Program) -> Fields {
    let mut fields = Fields::new();
    for body in program.bodies.values() {
        walk::body(program, body, &mut |used| {
            if let Use::HeaderWrite(header, field) = used {
                fields.extend(walk::candidates(program, header).into_iter().map(|header| (header, field)));
            }
        });
    }
    fields
}

/// The fields and slots that have been written.
struct WriteSet<'a> {
    slots: BTreeSet<SlotId>,
    fields: &'a Fields,
}

impl WriteSet<'_> {
    /// Whether the value of an expression depends on none of them.
    fn leaves(&self, value: &Expr) -> bool {
        let all = |parts: &[&Expr]| parts.iter().all(|part| self.leaves(part));
        match value {
            Expr::Const(_) | Expr::PacketLength => true,
            Expr::Slot(slot) => !self.slots.contains(slot),
            Expr::Field(HeaderRef::Header(header), field) => {
                !self.fields.contains(&(*header, Some(*field))) && !self.fields.contains(&(*header, None))
            }
            Expr::Unary(_, a) | Expr::Slice(a, ..) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => all(&[a]),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => all(&[a, b]),
            Expr::Choose(a, b, c) => all(&[a, b, c]),
            Expr::Field(..) | Expr::Valid(_) | Expr::VarbitWidth(..) | Expr::VarbitEq(_) => false,
        }
    }
}
