//! What the packets of a batch will ask tables for, found out before any of them runs.
//!
//! A lookup in a large table waits for memory, and one packet after the other waits alone. So a fresh unit that applies
//! tables has a second function, its *scout*: the same parser and controls up to the last table, without anything that
//! could be noticed. It writes the keys that it comes to into the packet's *notes*. When all packets of a batch have been
//! scouted, each table is asked for all of its keys at once, and the notes get the records of what was found. The packet
//! itself then compares its key with the noted one, and looks up for itself only if they differ.
//!
//! So a scout may guess: it takes actions to do nothing and checksums to be right, and a wrong guess costs time only.
//!
//! ```text
//! notes of a packet, for each noted table:   record's address | what was found | words of the key
//! ```
//!
//! The address is 0 where nothing is known, and 1 while the table has yet to be asked.

use engine::Objects;
use engine::tables::MISS;
use ir::{BodyKind, MatchKind, Program, TableId};

use crate::layout::{Layout, Valid};
use crate::walk::{self, Use};
use crate::{Step, Unit};

/// More tables of a unit are not noted.
const MAX_NOTED: usize = 6;
/// Larger keys are not noted.
const MAX_WORDS: usize = 6;
/// How many packets are scouted before the first of them runs.
pub(crate) const BATCH: usize = 32;

/// Words of the notes of a packet are at most so many.
pub(crate) const MAX_STRIDE: usize = MAX_NOTED * (KEY + MAX_WORDS);

/// Words of a note before the key.
pub(crate) const RECORD: usize = 0;
pub(crate) const FOUND: usize = 1;
pub(crate) const KEY: usize = 2;

/// A table in the notes of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub table: TableId,
    /// Word index of its note.
    pub at: usize,
    /// Words of its key.
    pub words: usize,
    /// Whether hits are counted, so that code has to tell of them.
    pub counts: bool,
}

/// The notes of a unit's packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub tables: Vec<Noted>,
    /// Words of one packet's notes.
    pub stride: usize,
    /// Whether keys have parts that the architecture sets, or a parser selects on what it sets.
    pub takes_inputs: bool,
    /// How many of the unit's steps there is something to note in.
    pub steps: usize,
}

impl Notes {
    /// What can be noted of a unit.
    pub fn new(program: &Program, layout: &Layout, inputs: &[ir::SlotId], unit: &Unit) -> Notes {
        let mut notes = Notes::default();
        if !unit.fresh || !layout.byte_cursor {
            return notes;
        }
        for (index, step) in unit.steps.iter().enumerate() {
            let Step::Run(body) = step else { continue };
            let mut in_registers = true;
            let parses = program.bodies[*body].kind == BodyKind::Parser;
            walk::body(program, &program.bodies[*body], &mut |used| match used {
                Use::Apply(table) => notes.add(program, inputs, table, index),
                Use::Header(header) | Use::HeaderWrite(header) | Use::Validity(header) | Use::Extract(header) => {
                    let bit = |header| matches!(layout.header(header).valid, Valid::Bit { .. });
                    in_registers &= walk::meant(program, header).into_iter().all(bit);
                }
                // A parser that does not know where a packet came in would go another way.
                Use::Read(slot) => notes.takes_inputs |= parses && inputs.contains(&slot),
                Use::Write(_) => {}
            });
            if !in_registers {
                // Where such headers lie is in the frame, which a scout leaves alone.
                return Notes::default();
            }
        }
        notes
    }

    fn add(&mut self, program: &Program, inputs: &[ir::SlotId], id: TableId, step: usize) {
        let table = &program.tables[id];
        let words = Objects::key_words(table).words;
        let selects = table.keys.iter().any(|key| key.kind == MatchKind::Selector);
        if table.profile.is_some()
            || selects
            || !(1..=MAX_WORDS).contains(&words)
            || self.tables.len() == MAX_NOTED
            || self.of(id).is_some()
        {
            return;
        }
        let counts = table.counter.is_some() || table.meter.is_some() || table.idle_timeout;
        self.tables.push(Noted { table: id, at: self.stride, words, counts });
        self.stride += KEY + words;
        self.steps = step + 1;
        for key in &table.keys {
            walk::slots_of(&key.expr, &mut |slot| self.takes_inputs |= inputs.contains(&slot));
        }
    }

    /// The note of a table.
    pub fn of(&self, table: TableId) -> Option<Noted> {
        self.tables.iter().find(|noted| noted.table == table).copied()
    }
}

/// Puts the keys for a table one after the other, and says whose they are and how many. `N` is the number of words, 0 for
/// any.
#[inline(always)]
fn collect<const N: usize>(
    noted: &Noted,
    stride: usize,
    words: &[u64],
    keys: &mut [u64; BATCH * MAX_WORDS],
    who: &mut [u8; BATCH],
) -> usize {
    let size = if N == 0 { noted.words } else { N };
    let mut count = 0;
    for (number, packet) in words.chunks_exact(stride).enumerate() {
        let note = &packet[noted.at..][..KEY + size];
        // Written in any case, and over again if nobody asks.
        keys[count * size..][..size].copy_from_slice(&note[KEY..]);
        who[count] = number as u8;
        count += usize::from(note[RECORD] != 0);
    }
    count
}

/// Asks each table for the keys in the notes of some packets.
pub(crate) fn ask(notes: &Notes, words: &mut [u64], objects: &Objects) {
    let mut keys = [0; BATCH * MAX_WORDS];
    let mut found = [MISS; BATCH];
    let mut who = [0u8; BATCH];
    for noted in &notes.tables {
        let count = match noted.words {
            1 => collect::<1>(noted, notes.stride, words, &mut keys, &mut who),
            2 => collect::<2>(noted, notes.stride, words, &mut keys, &mut who),
            _ => collect::<0>(noted, notes.stride, words, &mut keys, &mut who),
        };
        if count == 0 {
            continue;
        }
        let found = &mut found[..count];
        let answered = objects.find_batch(noted.table, &keys[..count * noted.words], found);
        if !answered {
            who[..count].iter().for_each(|number| words[usize::from(*number) * notes.stride + noted.at + RECORD] = 0);
            continue;
        }
        objects.records(noted.table, found, |at, record| {
            let note = &mut words[usize::from(who[at]) * notes.stride + noted.at..];
            note[RECORD] = record.as_ptr() as u64;
            note[FOUND] = u64::from(found[at]);
        });
    }
}
