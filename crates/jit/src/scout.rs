//! What a batch keeps of its packets, and what they will ask tables for, found out before any of them runs.
//!
//! A lookup in a large table waits for memory, and one packet after the other waits alone. So a fresh unit that applies
//! tables has a *scout*: the same parser and controls up to the last table, without anything that could be noticed. It
//! writes the keys that it comes to into the memory of the batch. When all packets have been scouted, each table is asked
//! for all of its keys at once, and what was found is noted beside the keys. The packet itself then compares its key with
//! the noted one, and looks up for itself only if they differ.
//!
//! So a scout may guess: it takes actions to do nothing and checksums to be right, and a wrong guess costs time only.
//! Where it cannot be wrong about a key, the packet need not compare: see [`Notes::is_sure`].
//!
//! Where actions say what later tables are asked (a state, a next hop), the scout does not come to these keys. So it has a
//! second function, which goes the same way once more and runs the actions that were found meanwhile: it *follows*, one
//! table of the chain farther each time. See [`rounds`].
//!
//! ```text
//! rows, one a packet:           where it lies | how it ended | results
//! notes:                        for each chain, where the record of its default action lies
//! notes, for each noted table:  the keys of all packets | what was found for each | a bit for each packet that came to
//!                               the table ever | the same of the last round | where the record behind the default
//!                               action's lies | the words of [`each`], [`close`], [`hashed`], [`called`]
//! ```
//!
//! A [`Row`] is a line of the cache. What was found is a number of 32 bits whose record lies so many records behind the
//! first, -1 for the default action's in front of that, or [`UNKNOWN`].

mod ask;
mod rounds;
#[cfg(test)]
mod tests;

use engine::tables::LISTED_BITS;
use engine::{Objects, record_places};
use ir::{BodyKind, Expr, HeaderId, HeaderRef, LValue, MatchKind, Op, Program, SlotId, TableId};
use std::collections::BTreeSet;

pub(crate) use ask::{Prepared, ask, ask_more, forget, prepare};

use crate::layout::{Layout, Valid};
use crate::walk::{self, Use};
use crate::{Step, Unit, chain};

/// More tables of a unit are not noted.
const MAX_NOTED: usize = 12;
/// Larger keys are not noted.
const MAX_WORDS: usize = 6;
/// How many packets are scouted before the first of them runs.
pub(crate) const BATCH: usize = 32;
/// So many results have room in a row.
pub(crate) const RESULTS: usize = 3;

/// The bit of [`Row::ended`] that says that code made for the packet's way through the parser saw it to its end.
pub(crate) const SPECIAL: u64 = 1 << 8;
/// The lowest bits of the step and of the parser's error in [`Row::ended`].
pub(crate) const STEP: u32 = 16;
pub(crate) const ERROR: u32 = 32;

/// What is noted as found where nothing is known.
pub(crate) const UNKNOWN: u32 = -2i32 as u32;

/// What a batch keeps of a packet.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Row {
    /// Address of the packet's first byte.
    pub packet: u64,
    /// Length of the packet in bytes.
    pub length: u64,
    /// Address of the first byte of its buffer.
    pub buffer: u64,
    /// How the outgoing packet is made: see [`crate::packet::out`].
    pub out: u64,
    /// How the unit ended in the lowest 8 bits, then [`SPECIAL`], the step that it ended with, and the parser's error.
    pub ended: u64,
    /// The unit's results.
    pub results: [u64; RESULTS],
}

const _: () = assert!(size_of::<Row>() == 64, "a row is a line of the cache");

/// The rows of a batch.
pub(crate) type Rows = [Row; BATCH];

/// A table in the notes of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub table: TableId,
    /// Words of its key, and bits.
    pub words: usize,
    pub bits: u32,
    /// Whether hits are counted, so that code has to tell of them.
    pub counts: bool,
    /// Words of its records.
    pub stride: usize,
    /// The words where the keys of all packets begin, and what was found for each.
    pub keys: usize,
    pub found: usize,
    /// The words of bits for the packets that came to the table, ever and in the last round; and the one with the address
    /// of the record behind the default action's.
    pub reached: usize,
    pub fresh: usize,
    pub records: usize,
    /// Whether a packet that comes to the table has the key that was noted.
    pub sure: bool,
    /// Where it is noted how keys are looked up in place: [`each`], in tables that have few keys,
    pub each: Option<usize>,
    /// [`close`], in others whose keys may be close to each other,
    pub close: Option<usize>,
    /// [`hashed`], in tables whose keys are exact,
    pub hashed: Option<usize>,
    /// and [`called`], in tables with a range.
    pub called: Option<usize>,
}

impl Noted {
    /// Whether code is made that looks keys up in place.
    pub fn is_ever_in_place(&self) -> bool {
        self.each.is_some() || self.close.is_some() || self.hashed.is_some() || self.called.is_some()
    }
}

/// The words that are noted of a table whose keys have so few bits that what each of them gives is known before: the
/// address of its record, all 0 where it is not.
pub(crate) mod each {
    pub const BITS: u32 = 3;
    pub const WORDS: usize = 1 << BITS;
}

/// The words that are noted of a table whose keys are close to each other ([`engine::tables::in_place::CloseKeys`]).
pub(crate) mod close {
    /// The address of the handles, and how many there are: none where keys are not close.
    pub const HANDLES: usize = 0;
    pub const LEN: usize = 1;
    pub const FIRST: usize = 2;
    pub const SHIFT: usize = 3;
    pub const WORDS: usize = 4;
}

/// The words that are noted of a table whose keys are found by a hash ([`engine::tables::in_place::HashedKeys`]).
pub(crate) mod hashed {
    /// How many groups there are: none where keys are not looked up so.
    pub const GROUPS: usize = 0;
    pub const TAGS: usize = 1;
    pub const SLOTS: usize = 2;
    pub const WORDS: usize = 3;
}

/// The words that are noted of a table that is a function ([`engine::tables::in_place::Called`]).
pub(crate) mod called {
    /// 0 where keys are not looked up so.
    pub const FUNCTION: usize = 0;
    pub const TABLE: usize = 1;
    pub const WORDS: usize = 2;
}

/// What a unit's batches keep of their packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub tables: Vec<Noted>,
    /// The tables that are [chains](chain) and may get another default action, each of which has a word.
    pub defaults: Vec<TableId>,
    pub results: Vec<SlotId>,
    /// How many words there are.
    pub words: usize,
    /// How many of the unit's steps there is something to note in.
    pub steps: usize,
    /// How often the way is gone again to follow what was found: not at all where no key depends on that.
    pub rounds: usize,
}

impl Notes {
    /// What can be noted of a unit; nothing of tables unless it is `ahead` of the packets.
    pub fn new(program: &Program, layout: &Layout, unit: &Unit, ahead: bool) -> Notes {
        let mut notes = Notes { results: unit.results.clone().unwrap_or_default(), ..Notes::default() };
        if ahead && layout.byte_cursor {
            notes.tables(program, layout, unit);
        }
        for id in walk::tables(program, &unit.steps) {
            let table = &program.tables[id];
            if !table.const_default && chain::entries(table).is_some() {
                notes.defaults.push(id);
            }
        }
        notes.words = notes.defaults.len();
        for noted in &mut notes.tables {
            noted.keys = notes.words;
            noted.found = noted.keys + noted.words * BATCH;
            noted.reached = noted.found + BATCH / 2;
            noted.fresh = noted.reached + 1;
            noted.records = noted.fresh + 1;
            notes.words = noted.records + 1;
            let ways = [&mut noted.each, &mut noted.close, &mut noted.hashed, &mut noted.called];
            for (way, words) in ways.into_iter().zip([each::WORDS, close::WORDS, hashed::WORDS, called::WORDS]) {
                if let Some(at) = way {
                    *at = notes.words;
                    notes.words += words;
                }
            }
        }
        notes
    }

    fn tables(&mut self, program: &Program, layout: &Layout, unit: &Unit) {
        let mut applied = Vec::new();
        for (index, step) in unit.steps.iter().enumerate() {
            let Step::Run(body) = step else { continue };
            let mut in_registers = true;
            walk::body(program, &program.bodies[*body], &mut |used| match used {
                Use::Apply(table) => applied.push((table, index)),
                Use::Header(header) | Use::HeaderWrite(header, _) | Use::Validity(header) | Use::Extract(header) => {
                    let bit = |header| matches!(layout.header(header).valid, Valid::Bit { .. });
                    in_registers &= walk::meant(program, header).into_iter().all(bit);
                }
                Use::Read(_) | Use::Write(_) => {}
            });
            if !in_registers {
                // Where such headers lie is in the frame, which a scout leaves alone.
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
            // No table waits for another, and a lookup in place may wait for what a packet has just written into its
            // headers, which asking for all keys before does not. Arrays stay, where it takes few instructions.
            (alone.hashed, alone.called) = (None, None);
        }
        let noted: Vec<TableId> = applied.iter().map(|(id, _)| *id).filter(|id| self.of(*id).is_some()).collect();
        self.rounds = rounds::rounds(program, unit, &noted);
    }

    fn add(&mut self, program: &Program, unit: &Unit, id: TableId, step: usize, fields: &Fields) {
        let table = &program.tables[id];
        let words = Objects::key_words(table).words;
        if table.profile.is_some()
            || !(1..=MAX_WORDS).contains(&words)
            || self.tables.len() == MAX_NOTED
            || self.of(id).is_some()
            || chain::entries(table).is_some()
        {
            return;
        }
        let counts = table.records_hits();
        let sure = Self::is_sure(program, unit, id, step, fields);
        let stride = table.actions.iter().map(|action| {
            let params = &program.actions[action.action].params;
            let widths: Vec<u32> = params.iter().map(|param| program.slots[param.slot].width).collect();
            let last = record_places(&widths).into_iter().zip(widths).next_back();
            last.map_or(1, |((word, bit), width)| (word + (bit + width).div_ceil(64) as usize).max(1))
        });
        let stride = stride.max().unwrap_or(1);
        let exact = table.keys.iter().all(|key| key.kind == MatchKind::Exact);
        let bits = table.keys.iter().map(|key| key.width).sum::<u32>();
        // Where hits are counted it takes more than the record.
        let each = words == 1 && bits <= each::BITS && !counts;
        let ranges = table.keys.iter().filter(|key| key.kind == MatchKind::Range).count();
        let rest_exact = table.keys.iter().all(|key| matches!(key.kind, MatchKind::Exact | MatchKind::Range));
        self.tables.push(Noted {
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
            sure,
            each: each.then_some(0),
            close: (!each && words == 1 && (exact || bits <= LISTED_BITS)).then_some(0),
            hashed: (!each && exact).then_some(0),
            called: (!each && ranges == 1 && rest_exact).then_some(0),
        });
        self.steps = step + 1;
    }

    /// Whether a packet that comes to a table has the key that its scout noted, if that came there as well. It may come
    /// there another way, but the key is made of what is the same on all ways: fields that nothing in the program writes,
    /// of headers that the parser found, whom the scout follows exactly, and slots that nothing writes before.
    fn is_sure(program: &Program, unit: &Unit, id: TableId, step: usize, fields: &Fields) -> bool {
        let mut written = Written { slots: BTreeSet::new(), fields };
        let mut parsed = false;
        for step in &unit.steps[..=step] {
            match step {
                Step::Run(body) => {
                    let parses = program.bodies[*body].kind == BodyKind::Parser;
                    let mut instrs = program.bodies[*body].blocks.values().flat_map(|block| &block.instrs);
                    if parses && (parsed || !instrs.all(|instr| is_followed(program, &instr.op))) {
                        return false;
                    }
                    // No parser may come behind what is not followed.
                    parsed = true;
                    walk::whole_body(program, *body, &mut |used| {
                        if let Use::Write(slot) = used {
                            written.slots.insert(slot);
                        }
                    });
                }
                Step::ErrorTo(slot) | Step::LengthTo(slot) | Step::Copy(slot, _) | Step::Set(slot, _) => {
                    written.slots.insert(*slot);
                }
                Step::Measure | Step::StopUnless(..) | Step::DropIf(..) | Step::StopIfAsked => {}
            }
        }
        program.tables[id].keys.iter().all(|key| written.leaves(&key.expr))
    }

    /// The note of a table.
    pub fn of(&self, table: TableId) -> Option<Noted> {
        self.tables.iter().find(|noted| noted.table == table).copied()
    }
}

/// Whether a scout does what an instruction of a parser does.
fn is_followed(program: &Program, op: &Op) -> bool {
    match op {
        Op::Assign(LValue::Slot(slot), _) | Op::Lookahead { dst: LValue::Slot(slot), .. } => {
            crate::emit::is_variable(program, *slot)
        }
        Op::Extract(HeaderRef::Header(_), None) | Op::Advance(_) | Op::Verify(..) | Op::Log(..) => true,
        _ => false,
    }
}

/// Fields of headers, `None` for all of a header.
type Fields = BTreeSet<(HeaderId, Option<u32>)>;

/// The fields that anything in a program writes.
fn written_fields(program: &Program) -> Fields {
    let mut fields = Fields::new();
    for body in program.bodies.values() {
        walk::body(program, body, &mut |used| {
            if let Use::HeaderWrite(header, field) = used {
                fields.extend(walk::meant(program, header).into_iter().map(|header| (header, field)));
            }
        });
    }
    fields
}

/// What is written.
struct Written<'a> {
    slots: BTreeSet<SlotId>,
    fields: &'a Fields,
}

impl Written<'_> {
    /// Whether the value of an expression does not depend on any of it.
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
