//! Asking tables for what was noted.

use engine::Objects;
use engine::tables::MISS;

use super::{BATCH, MAX_WORDS, Noted, Notes, UNKNOWN, close};

/// A round more is worth it where one of so many packets can come farther.
const ENOUGH: usize = 4;

/// Notes what is the same for all packets: where records lie, and how close keys are looked up. Nothing is known of the
/// packets from a number on. Whether there is a table that has to be asked.
pub(crate) fn prepare(notes: &Notes, memory: &mut [u64], from: usize, objects: &Objects) -> bool {
    let mut is_any_open = false;
    for noted in &notes.tables {
        memory[noted.records] = first_record(noted, objects);
        if !note_close(noted, memory, objects) {
            is_any_open = true;
            found_of(noted, memory).1[from..].fill(UNKNOWN);
        }
    }
    is_any_open
}

/// Asks each table for the keys of the packets from one number to another, and notes what comes of it. Whether it is worth it
/// to follow that.
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
        if is_close(noted, memory) {
            continue;
        }
        came += std::mem::take(&mut before);
        let wanted = memory[bits(noted)] & of;
        if wanted == 0 {
            continue;
        }
        before = wanted.count_ones() as usize;
        let (keys, found) = found_of(noted, memory);
        if wanted != of {
            ask_for_some(noted, keys, wanted, found, objects);
            continue;
        }
        let (from, to) = (of.trailing_zeros() as usize, 64 - of.leading_zeros() as usize);
        let found = &mut found[from..to];
        match objects.find_batch(noted.table, &keys[from * noted.words..to * noted.words], found) {
            true => objects.ask_for_records(noted.table, found),
            false => found.fill(UNKNOWN),
        }
    }
    came * ENOUGH >= of.count_ones() as usize
}

/// The keys of all packets for a table, and what was found for each.
fn found_of<'m>(noted: &Noted, memory: &'m mut [u64]) -> (&'m [u64], &'m mut [u32]) {
    let (before, behind) = memory.split_at_mut(noted.found);
    (&before[noted.keys..], halves(&mut behind[..BATCH / 2]))
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
pub(crate) fn note_defaults(notes: &Notes, memory: &mut [u64], objects: &Objects) {
    for (word, table) in memory.iter_mut().zip(&notes.defaults) {
        *word = objects.default_record(*table).as_ptr() as u64;
    }
}

/// Notes how a table's keys are looked up in line. Whether they are.
fn note_close(noted: &Noted, memory: &mut [u64], objects: &Objects) -> bool {
    let Some(at) = noted.close else { return false };
    // No length says that keys are not close.
    let keys = objects.close_keys(noted.table).filter(|keys| !keys.handles.is_empty());
    let Some(keys) = keys else {
        memory[at + close::LEN] = 0;
        return false;
    };
    memory[at + close::HANDLES] = keys.handles.as_ptr() as u64;
    memory[at + close::LEN] = keys.handles.len() as u64;
    memory[at + close::FIRST] = keys.first;
    memory[at + close::SHIFT] = keys.shift.into();
    true
}

fn is_close(noted: &Noted, memory: &[u64]) -> bool {
    noted.close.is_some_and(|at| memory[at + close::LEN] != 0)
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
