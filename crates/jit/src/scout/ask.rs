//! Asking tables for what was noted.

use engine::Objects;
use engine::tables::in_place::GROUP;
use engine::tables::{InPlace, MISS};

use super::{BATCH, MAX_NOTED, MAX_WORDS, Noted, Notes, UNKNOWN, called, close, each, hashed};

/// Keys are asked for all together where one of so many is wanted: to take the others out costs more than to ask for them.
const MOST: usize = 2;
/// A round more is worth it where one of so many packets can come farther.
const ENOUGH: usize = 4;
/// A packet waits for one table after the other, so that several are near together only in such a part of the bytes,
const CHAINED: usize = 4;
/// and where they are not, each alone only in such a part: the nearest cache.
const SMALL: usize = 64;

/// What notes say that is the same for all packets of all batches as long as the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// The unit whose notes they are.
    pub unit: usize,
    /// [`Objects::revision`].
    pub revision: u64,
    /// A table that takes at most so many bytes is near.
    pub near: usize,
    /// Whether there is a table that has to be asked, since keys are not looked up in it in place.
    pub is_any_open: bool,
}

/// Notes what is the same for all packets: where records lie, and how keys are looked up in place, which they are where
/// all tables are near by `near` bytes, [`CHAINED`] and [`SMALL`]. Of several tables that are not, it is those that are
/// small, and arrays. Nothing is done where that is as it was `before`.
pub(crate) fn prepare(
    notes: &Notes,
    memory: &mut [u64],
    (unit, near): (usize, usize),
    before: Option<Prepared>,
    objects: &Objects,
) -> Prepared {
    let revision = objects.revision();
    if let Some(before) = before.filter(|it| (it.unit, it.revision, it.near) == (unit, revision, near)) {
        return before;
    }
    note_defaults(notes, memory, objects);
    let mut ways = [const { None }; MAX_NOTED];
    let mut all = Some(0usize);
    for (way, noted) in ways.iter_mut().zip(&notes.tables) {
        *way = objects.in_place(noted.table);
        all = all.zip(*way).map(|(all, (_, bytes))| all + bytes);
    }
    let several = notes.tables.len() > 1;
    let together = if several { near / CHAINED } else { near };
    let all_near = all.is_some_and(|all| all <= together);
    let mut is_any_open = false;
    for (noted, way) in notes.tables.iter().zip(ways) {
        memory[noted.records] = first_record(noted, objects);
        // Whatever is asked for is a key of the table.
        memory[noted.keys..][..noted.words * BATCH].fill(0);
        // Keys that are noted may be those of a batch before, if this one was not scouted.
        memory[noted.reached] = 0;
        let way = way
            .filter(|(way, bytes)| all_near || several && (matches!(way, InPlace::Close(_)) || *bytes <= near / SMALL));
        if !note_in_place(noted, memory, way.map(|(way, _)| way), objects) {
            is_any_open = true;
        }
    }
    forget(notes, memory, 0);
    Prepared { unit, revision, near, is_any_open }
}

/// Nothing is known of the packets from a number on.
pub(crate) fn forget(notes: &Notes, memory: &mut [u64], from: usize) {
    for noted in &notes.tables {
        // What is looked up in an array is never noted.
        if !is_listed(noted, memory) {
            found_of(noted, memory).1[from..].fill(UNKNOWN);
        }
    }
}

/// Asks each table for the keys of the packets from one number to another, and notes what comes of it. Whether it is
/// worth it to follow that.
pub(crate) fn ask(notes: &Notes, memory: &mut [u64], from: usize, to: usize, objects: &Objects) -> bool {
    let of = (u64::MAX << from) & (u64::MAX >> (64 - to));
    ask_for(notes, memory, of, |noted| noted.reached, objects)
}

/// The same for the keys that were noted when what had been found was followed, of so many packets.
pub(crate) fn ask_more(notes: &Notes, memory: &mut [u64], count: usize, objects: &Objects) -> bool {
    for noted in &notes.tables {
        memory[noted.reached] |= memory[noted.fresh];
    }
    ask_for(notes, memory, u64::MAX >> (64 - count), |noted| noted.fresh, objects)
}

/// Asks for the keys of some packets, where the tables' words of bits have them. Whether enough packets came to a table
/// behind which there are others that have to be asked.
fn ask_for(notes: &Notes, memory: &mut [u64], of: u64, bits: fn(&Noted) -> usize, objects: &Objects) -> bool {
    let (mut came, mut before) = (0, 0);
    for noted in &notes.tables {
        if is_in_place(noted, memory) {
            continue;
        }
        came += std::mem::take(&mut before);
        let wanted = memory[bits(noted)] & of;
        if wanted == 0 {
            continue;
        }
        before = wanted.count_ones() as usize;
        let (keys, found) = found_of(noted, memory);
        match before * MOST >= of.count_ones() as usize {
            true => ask_for_most(noted, keys, (wanted, of), found, objects),
            false => ask_for_some(noted, keys, wanted, found, objects),
        }
    }
    came * ENOUGH >= of.count_ones() as usize
}

/// The keys of all packets for a table, and what was found for each.
fn found_of<'m>(noted: &Noted, memory: &'m mut [u64]) -> (&'m [u64], &'m mut [u32]) {
    let (before, behind) = memory.split_at_mut(noted.found);
    (&before[noted.keys..], halves(&mut behind[..BATCH / 2]))
}

/// Asks a table for the keys whose bit is set in the first word, which are most of those in the second. The rest, whose keys
/// may be of a batch before, are asked for with them, and keep what was found.
fn ask_for_most(noted: &Noted, keys: &[u64], (wanted, of): (u64, u64), found: &mut [u32], objects: &Objects) {
    let before: [u32; BATCH] = *found.first_chunk().expect("there is something found for each packet of a batch");
    let (from, to) = (of.trailing_zeros() as usize, 64 - of.leading_zeros() as usize);
    match objects.find_batch(noted.table, &keys[from * noted.words..to * noted.words], &mut found[from..to]) {
        true => objects.ask_for_records(noted.table, &found[from..to]),
        false => found[from..to].fill(UNKNOWN),
    }
    let mut rest = of & !wanted;
    while rest != 0 {
        let number = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        found[number] = before[number];
    }
}

/// Asks a table for the keys whose bit is set.
fn ask_for_some(noted: &Noted, all: &[u64], mut wanted: u64, noted_as: &mut [u32], objects: &Objects) {
    let (mut keys, mut who, mut count) = ([0; BATCH * MAX_WORDS], [0u8; BATCH], 0);
    while wanted != 0 {
        let number = wanted.trailing_zeros() as usize;
        wanted &= wanted - 1;
        // Word by word: there are few.
        for word in 0..noted.words {
            keys[count * noted.words + word] = all[number * noted.words + word];
        }
        who[count] = number as u8;
        count += 1;
    }
    let mut found = [MISS; BATCH];
    let found = &mut found[..count];
    if objects.find_batch(noted.table, &keys[..count * noted.words], found) {
        objects.ask_for_records(noted.table, found);
        who.iter().zip(found).for_each(|(who, found)| noted_as[usize::from(*who)] = *found);
    }
}

/// Notes where the records of default actions lie.
fn note_defaults(notes: &Notes, memory: &mut [u64], objects: &Objects) {
    for (word, table) in memory.iter_mut().zip(&notes.defaults) {
        *word = objects.default_record(*table).as_ptr() as u64;
    }
}

/// Notes how a table's keys are looked up in place, if they are and code is made for that. Whether they are.
fn note_in_place(noted: &Noted, memory: &mut [u64], way: Option<InPlace<'_>>, objects: &Objects) -> bool {
    if let Some(at) = noted.each {
        memory[at..][..each::WORDS].fill(0);
        return way.is_some() && note_each(noted, &mut memory[at..][..each::WORDS], objects);
    }
    // Each of these says by a 0 that keys are not looked up so.
    let ways = [noted.close.map(|at| at + close::LEN), noted.hashed.map(|at| at + hashed::GROUPS)];
    let ways = ways.into_iter().chain([noted.called.map(|at| at + called::FUNCTION)]);
    ways.flatten().for_each(|at| memory[at] = 0);
    match way {
        Some(InPlace::Close(keys)) if let Some(at) = noted.close => {
            memory[at + close::HANDLES] = keys.handles.as_ptr() as u64;
            memory[at + close::LEN] = keys.handles.len() as u64;
            memory[at + close::FIRST] = keys.first;
            memory[at + close::SHIFT] = keys.shift.into();
        }
        Some(InPlace::Hashed(keys)) if let Some(at) = noted.hashed => {
            assert_eq!(keys.slots.len(), keys.tags.len() * GROUP * (noted.words + 1), "a slot has a key and a handle");
            memory[at + hashed::GROUPS] = keys.tags.len() as u64;
            memory[at + hashed::TAGS] = keys.tags.as_ptr() as u64;
            memory[at + hashed::SLOTS] = keys.slots.as_ptr() as u64;
        }
        Some(InPlace::Called(table)) if let Some(at) = noted.called => {
            assert_eq!(table.words(), noted.words, "a function reads the words of a key");
            memory[at + called::FUNCTION] = table.function() as usize as u64;
            memory[at + called::TABLE] = table.table() as u64;
        }
        _ => return false,
    }
    is_in_place(noted, memory)
}

/// Notes the records of all keys, and some that no packet has. Whether the table says them.
fn note_each(noted: &Noted, records: &mut [u64], objects: &Objects) -> bool {
    let keys: [u64; each::WORDS] = std::array::from_fn(|key| key as u64);
    let mut found = [MISS; each::WORDS];
    let count = 1 << noted.bits;
    let is_said = objects.find_batch(noted.table, &keys[..count], &mut found[..count]);
    for (record, found) in records.iter_mut().zip(found).take(if is_said { count } else { 0 }) {
        let behind = i64::from(found as i32) * noted.stride as i64 * 8;
        *record = first_record(noted, objects).wrapping_add_signed(behind);
    }
    is_said
}

/// Whether keys are looked up in an array.
fn is_listed(noted: &Noted, memory: &[u64]) -> bool {
    let says = |at: Option<usize>, word: usize| at.is_some_and(|at| memory[at + word] != 0);
    says(noted.each, 0) || says(noted.close, close::LEN)
}

/// Whether keys are looked up in a table in place, so that it is not asked.
pub(super) fn is_in_place(noted: &Noted, memory: &[u64]) -> bool {
    let says = |at: Option<usize>, word: usize| at.is_some_and(|at| memory[at + word] != 0);
    is_listed(noted, memory) || says(noted.hashed, hashed::GROUPS) || says(noted.called, called::FUNCTION)
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
