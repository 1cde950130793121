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
//! ```text
//! rows, one a packet:           where it lies | how it ended | results
//! notes:                        for each chain, where the record of its default action lies
//! notes, for each noted table:  the keys of all packets | what was found for each | a bit for each packet that came to the
//!                               table | where the record lies of what was found first
//! ```
//!
//! A [`Row`] is a line of the cache. What was found is a number of 32 bits whose record lies so many records behind the
//! first, -1 for the default action's in front of that, or [`UNKNOWN`].

use engine::tables::MISS;
use engine::{Objects, record_places};
use ir::{BodyKind, Expr, HeaderId, HeaderRef, MatchKind, Op, Place, Program, SlotId, TableId};
use std::collections::BTreeSet;

use crate::layout::{Layout, Valid};
use crate::walk::{self, Use};
use crate::{Step, Unit, chain};

/// More tables of a unit are not noted.
const MAX_NOTED: usize = 6;
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

/// The rows of a batch.
pub(crate) type Rows = [Row; BATCH];

/// A table in the notes of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub table: TableId,
    /// Words of its key.
    pub words: usize,
    /// Whether hits are counted, so that code has to tell of them.
    pub counts: bool,
    /// Words of its records.
    pub stride: usize,
    /// The words where the keys of all packets begin, and what was found for each.
    pub keys: usize,
    pub found: usize,
    /// The word of bits for the packets that came to the table, and the one with the address of the record behind the
    /// default action's.
    pub reached: usize,
    pub records: usize,
    /// Whether a packet that comes to the table has the key that was noted.
    pub sure: bool,
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
            noted.records = noted.reached + 1;
            notes.words = noted.records + 1;
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
        for (table, step) in applied {
            self.add(program, unit, table, step);
        }
    }

    fn add(&mut self, program: &Program, unit: &Unit, id: TableId, step: usize) {
        let table = &program.tables[id];
        let words = Objects::key_words(table).words;
        let selects = table.keys.iter().any(|key| key.kind == MatchKind::Selector);
        if table.profile.is_some()
            || selects
            || !(1..=MAX_WORDS).contains(&words)
            || self.tables.len() == MAX_NOTED
            || self.of(id).is_some()
            || chain::entries(table).is_some()
        {
            return;
        }
        let counts = table.counter.is_some() || table.meter.is_some() || table.idle_timeout;
        let sure = Self::is_sure(program, unit, id, step);
        let stride = table.actions.iter().map(|action| {
            let params = &program.actions[action.action].params;
            let widths: Vec<u32> = params.iter().map(|param| program.slots[param.slot].width).collect();
            let last = record_places(&widths).into_iter().zip(widths).next_back();
            last.map_or(1, |((word, bit), width)| (word + (bit + width).div_ceil(64) as usize).max(1))
        });
        let stride = stride.max().unwrap_or(1);
        self.tables.push(Noted { table: id, words, counts, stride, keys: 0, found: 0, reached: 0, records: 0, sure });
        self.steps = step + 1;
    }

    /// Whether a packet that comes to a table has the key that its scout noted, if that came there as well. It may come
    /// there another way, but the key is made of what is the same on all ways: fields that nothing in the program writes,
    /// of headers that the parser found, whom the scout follows exactly, and slots that nothing writes before.
    fn is_sure(program: &Program, unit: &Unit, id: TableId, step: usize) -> bool {
        let mut written = Written::default();
        for body in program.bodies.values() {
            walk::body(program, body, &mut |used| {
                if let Use::HeaderWrite(header, field) = used {
                    written.fields.extend(walk::meant(program, header).into_iter().map(|header| (header, field)));
                }
            });
        }
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
        Op::Assign(Place::Slot(slot), _) | Op::Lookahead { dst: Place::Slot(slot), .. } => {
            crate::emit::is_variable(program, *slot)
        }
        Op::Extract(HeaderRef::Header(_), None) | Op::Advance(_) | Op::Verify(..) | Op::Log(..) => true,
        _ => false,
    }
}

/// What is written: slots, and fields of headers (`None` for all of a header).
#[derive(Default)]
struct Written {
    slots: BTreeSet<SlotId>,
    fields: BTreeSet<(HeaderId, Option<u32>)>,
}

impl Written {
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

/// Notes where the records of default actions lie.
pub(crate) fn note_defaults(notes: &Notes, memory: &mut [u64], objects: &Objects) {
    for (word, table) in memory.iter_mut().zip(&notes.defaults) {
        *word = objects.default_record(*table).as_ptr() as u64;
    }
}

/// Asks each table for the keys of the packets from one number to another, and notes what comes of it.
pub(crate) fn ask(notes: &Notes, memory: &mut [u64], from: usize, to: usize, objects: &Objects) {
    let wanted = (u64::MAX << from) & (u64::MAX >> (64 - to));
    for noted in &notes.tables {
        memory[noted.records] = first_record(noted, objects);
        let reached = memory[noted.reached] & wanted;
        let (before, behind) = memory.split_at_mut(noted.found);
        let found = &mut halves(&mut behind[..BATCH / 2])[from..to];
        let keys = &before[noted.keys + from * noted.words..noted.keys + to * noted.words];
        if reached == wanted {
            match objects.find_batch(noted.table, keys, found) {
                true => objects.ask_for_records(noted.table, found),
                false => found.fill(UNKNOWN),
            }
        } else {
            // Of those that did not come to the table nothing is known.
            found.fill(UNKNOWN);
            ask_for_some(noted, keys, reached >> from, found, objects);
        }
    }
}

/// Asks a table for the keys whose bit is set.
fn ask_for_some(noted: &Noted, all: &[u64], mut wanted: u64, noted_as: &mut [u32], objects: &Objects) {
    let (mut keys, mut who, mut count) = ([0; BATCH * MAX_WORDS], [0u8; BATCH], 0);
    while wanted != 0 {
        let number = wanted.trailing_zeros() as usize;
        wanted &= wanted - 1;
        keys[count * noted.words..][..noted.words].copy_from_slice(&all[number * noted.words..][..noted.words]);
        who[count] = number as u8;
        count += 1;
    }
    let mut found = [MISS; BATCH];
    let found = &mut found[..count];
    if count > 0 && objects.find_batch(noted.table, &keys[..count * noted.words], found) {
        objects.ask_for_records(noted.table, found);
        who.iter().zip(found).for_each(|(who, found)| noted_as[usize::from(*who)] = *found);
    }
}

/// Words as twice as many of half the width.
fn halves(words: &mut [u64]) -> &mut [u32] {
    const { assert!(MISS == u32::MAX, "a miss is -1") };
    // SAFETY: any bits are a number, and words are aligned for their halves, so that nothing is left at either end.
    unsafe { words.align_to_mut().1 }
}

/// The address of the record behind that of the default action.
fn first_record(noted: &Noted, objects: &Objects) -> u64 {
    let record = objects.default_record(noted.table);
    assert_eq!(record.len(), noted.stride, "records are as long as the longest list of arguments");
    record.as_ptr_range().end as u64
}
