//! Looks up the keys that a scout recorded, many at once.

use engine::Objects;
use engine::tables::inline_lookup::GROUP;
use engine::tables::{InlineLookup, MISS};

use super::{BATCH, MAX_PREFETCHED, MAX_WORDS, PrefetchLayout, PrefetchedTable, UNKNOWN, called, dense, each, hashed};

/// All keys are looked up together if at least one of this many is wanted: compacting the wanted ones costs more than
/// looking up all.
const FULL_LOOKUP_RATIO: usize = 2;
/// Another round is worthwhile if at least one of this many packets can get further.
const FOLLOW_RATIO: usize = 4;
/// Divisor of the near size for several tables together: a packet waits for one table after the other.
const CHAINED_DIVISOR: usize = 4;
/// Divisor of the near size for each table alone, where several are not near together: the nearest cache.
const SMALL_DIVISOR: usize = 64;

/// The part of the prefetch memory that is the same for all packets of all batches until a table changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefetchState {
    /// The unit that the memory belongs to.
    pub unit: usize,
    /// The [`Objects::revision`] that the memory was prepared for.
    pub revision: u64,
    /// Maximum size in bytes of a near table.
    pub near: usize,
    /// Whether any table needs bulk lookups because its keys are not looked up inline.
    pub needs_bulk_lookup: bool,
}

/// Writes the part of the prefetch memory that is the same for all packets: addresses of records, and descriptors of
/// inline lookups. All tables are looked up inline if together they are near (`near` bytes, divided by
/// [`CHAINED_DIVISOR`] for several tables). Otherwise, of several tables, dense arrays and those of at most `near` /
/// [`SMALL_DIVISOR`] bytes are. Does nothing if the state equals `before`.
pub(crate) fn prepare(
    prefetch: &PrefetchLayout,
    memory: &mut [u64],
    (unit, near): (usize, usize),
    before: Option<PrefetchState>,
    objects: &Objects,
) -> PrefetchState {
    let revision = objects.revision();
    if let Some(before) = before.filter(|it| (it.unit, it.revision, it.near) == (unit, revision, near)) {
        return before;
    }
    store_default_records(prefetch, memory, objects);
    let mut lookups = [const { None }; MAX_PREFETCHED];
    let mut all = Some(0usize);
    for (lookup, prefetched) in lookups.iter_mut().zip(&prefetch.tables) {
        *lookup = objects.inline_lookup(prefetched.table);
        all = all.zip(*lookup).map(|(all, (_, bytes))| all + bytes);
    }
    let asked_near = near;
    let near = if prefetch.has_scout { near } else { usize::MAX };
    let several = prefetch.tables.len() > 1;
    let together = if several { near / CHAINED_DIVISOR } else { near };
    let all_near = all.is_some_and(|all| all <= together);
    let mut needs_bulk_lookup = false;
    for (prefetched, lookup) in prefetch.tables.iter().zip(lookups) {
        memory[prefetched.records] = first_record(prefetched, objects);
        // Bulk lookups may include unwanted keys, so every key must be valid.
        memory[prefetched.keys..][..prefetched.words * BATCH].fill(0);
        // If this batch was not scouted, the keys in memory may be those of an earlier batch.
        memory[prefetched.reached] = 0;
        let lookup = lookup.filter(|(lookup, bytes)| {
            all_near || several && (matches!(lookup, InlineLookup::Dense(_)) || *bytes <= near / SMALL_DIVISOR)
        });
        if !store_inline_lookup(prefetched, memory, lookup.map(|(lookup, _)| lookup), objects) {
            needs_bulk_lookup = true;
        }
    }
    clear_results(prefetch, memory, 0);
    let needs_bulk_lookup = needs_bulk_lookup && prefetch.has_scout;
    PrefetchState { unit, revision, near: asked_near, needs_bulk_lookup }
}

/// Clears the results of the packets from an index on.
pub(crate) fn clear_results(prefetch: &PrefetchLayout, memory: &mut [u64], from: usize) {
    for prefetched in &prefetch.tables {
        // Results of array lookups are never stored.
        if !is_listed(prefetched, memory) {
            keys_and_results(prefetched, memory).1[from..].fill(UNKNOWN);
        }
    }
}

/// Looks up the keys of the packets `from..to` in each table and stores the results. Returns whether it is worthwhile
/// to follow them.
pub(crate) fn look_up(
    prefetch: &PrefetchLayout,
    memory: &mut [u64],
    from: usize,
    to: usize,
    objects: &Objects,
) -> bool {
    let of = (u64::MAX << from) & (u64::MAX >> (64 - to));
    look_up_masked(prefetch, memory, of, |prefetched| prefetched.reached, objects)
}

/// Looks up the keys that `count` packets recorded in the last round, like [`look_up`].
pub(crate) fn look_up_round(prefetch: &PrefetchLayout, memory: &mut [u64], count: usize, objects: &Objects) -> bool {
    for prefetched in &prefetch.tables {
        memory[prefetched.reached] |= memory[prefetched.fresh];
    }
    look_up_masked(prefetch, memory, u64::MAX >> (64 - count), |prefetched| prefetched.fresh, objects)
}

/// Looks up the keys of the packets in `of` that are also in the table's bitmap. Returns whether enough packets reached
/// a table that is followed by another one with bulk lookups.
fn look_up_masked(
    prefetch: &PrefetchLayout,
    memory: &mut [u64],
    of: u64,
    bits: fn(&PrefetchedTable) -> usize,
    objects: &Objects,
) -> bool {
    let (mut reached, mut before) = (0, 0);
    for prefetched in &prefetch.tables {
        if is_inline(prefetched, memory) {
            continue;
        }
        reached += std::mem::take(&mut before);
        let wanted = memory[bits(prefetched)] & of;
        if wanted == 0 {
            continue;
        }
        before = wanted.count_ones() as usize;
        let (keys, found) = keys_and_results(prefetched, memory);
        if before * FULL_LOOKUP_RATIO >= of.count_ones() as usize {
            look_up_most(prefetched, keys, (wanted, of), found, objects)
        } else {
            look_up_some(prefetched, keys, wanted, found, objects)
        }
    }
    reached * FOLLOW_RATIO >= of.count_ones() as usize
}

/// Returns the keys of all packets for a table, and the result for each.
fn keys_and_results<'m>(prefetched: &PrefetchedTable, memory: &'m mut [u64]) -> (&'m [u64], &'m mut [u32]) {
    let (before, behind) = memory.split_at_mut(prefetched.found);
    (&before[prefetched.keys..], halves(&mut behind[..BATCH / 2]))
}

/// Looks up the keys of the packets in `wanted`, a large part of `of`. The keys of the others, which may be those of an
/// earlier batch, are looked up with them, but their results are discarded.
fn look_up_most(
    prefetched: &PrefetchedTable,
    keys: &[u64],
    (wanted, of): (u64, u64),
    found: &mut [u32],
    objects: &Objects,
) {
    let before: [u32; BATCH] = *found.first_chunk().expect("there is a result for each packet of a batch");
    let (from, to) = (of.trailing_zeros() as usize, 64 - of.leading_zeros() as usize);
    match objects.find_batch(
        prefetched.table,
        &keys[from * prefetched.words..to * prefetched.words],
        &mut found[from..to],
    ) {
        true => objects.ask_for_records(prefetched.table, &found[from..to]),
        false => found[from..to].fill(UNKNOWN),
    }
    let mut rest = of & !wanted;
    while rest != 0 {
        let number = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        found[number] = before[number];
    }
}

/// Looks up only the keys of the packets in `wanted`.
fn look_up_some(prefetched: &PrefetchedTable, all: &[u64], mut wanted: u64, noted_as: &mut [u32], objects: &Objects) {
    let (mut keys, mut who, mut count) = ([0; BATCH * MAX_WORDS], [0u8; BATCH], 0);
    while wanted != 0 {
        let number = wanted.trailing_zeros() as usize;
        wanted &= wanted - 1;
        // Word by word, since there are few words.
        for word in 0..prefetched.words {
            keys[count * prefetched.words + word] = all[number * prefetched.words + word];
        }
        who[count] = number as u8;
        count += 1;
    }
    let mut found = [MISS; BATCH];
    let found = &mut found[..count];
    if objects.find_batch(prefetched.table, &keys[..count * prefetched.words], found) {
        objects.ask_for_records(prefetched.table, found);
        who.iter().zip(found).for_each(|(who, found)| noted_as[usize::from(*who)] = *found);
    }
}

/// Stores the addresses of the records of default actions.
fn store_default_records(prefetch: &PrefetchLayout, memory: &mut [u64], objects: &Objects) {
    for (word, table) in memory.iter_mut().zip(&prefetch.defaults) {
        *word = objects.default_record(*table).as_ptr() as u64;
    }
}

/// Writes the descriptor of a table's inline lookup, if it has one and code for it was generated. Returns whether both
/// hold.
fn store_inline_lookup(
    prefetched: &PrefetchedTable,
    memory: &mut [u64],
    lookup: Option<InlineLookup<'_>>,
    objects: &Objects,
) -> bool {
    if let Some(at) = prefetched.each {
        memory[at..][..each::WORDS].fill(0);
        return lookup.is_some() && store_all_records(prefetched, &mut memory[at..][..each::WORDS], objects);
    }
    // A 0 in each of these words disables its lookup.
    let lookups = [prefetched.dense.map(|at| at + dense::LEN), prefetched.hashed.map(|at| at + hashed::GROUPS)];
    let lookups = lookups.into_iter().chain([prefetched.called.map(|at| at + called::FUNCTION)]);
    lookups.flatten().for_each(|at| memory[at] = 0);
    match lookup {
        Some(InlineLookup::Dense(keys)) if let Some(at) = prefetched.dense => {
            memory[at + dense::HANDLES] = keys.handles.as_ptr() as u64;
            memory[at + dense::LEN] = keys.handles.len() as u64;
            memory[at + dense::FIRST] = keys.first;
            memory[at + dense::SHIFT] = keys.shift.into();
        }
        Some(InlineLookup::Hashed(keys)) if let Some(at) = prefetched.hashed => {
            assert_eq!(
                keys.slots.len(),
                keys.tags.len() * GROUP * (prefetched.words + 1),
                "a slot has a key and a handle"
            );
            memory[at + hashed::GROUPS] = keys.tags.len() as u64;
            memory[at + hashed::TAGS] = keys.tags.as_ptr() as u64;
            memory[at + hashed::SLOTS] = keys.slots.as_ptr() as u64;
        }
        Some(InlineLookup::Called(table)) if let Some(at) = prefetched.called => {
            assert_eq!(table.words(), prefetched.words, "the function and the descriptor agree on the key size");
            memory[at + called::FUNCTION] = table.function() as usize as u64;
            memory[at + called::TABLE] = table.table() as u64;
        }
        _ => return false,
    }
    is_inline(prefetched, memory)
}

/// Enumerates the records of all keys, possible or not. Returns whether the table supports it.
fn store_all_records(prefetched: &PrefetchedTable, records: &mut [u64], objects: &Objects) -> bool {
    let keys: [u64; each::WORDS] = std::array::from_fn(|key| key as u64);
    let mut found = [MISS; each::WORDS];
    let count = 1 << prefetched.bits;
    let is_said = objects.find_batch(prefetched.table, &keys[..count], &mut found[..count]);
    for (record, found) in records.iter_mut().zip(found).take(if is_said { count } else { 0 }) {
        let behind = i64::from(found as i32) * prefetched.stride as i64 * 8;
        *record = first_record(prefetched, objects).wrapping_add_signed(behind);
    }
    is_said
}

/// Whether keys are looked up in an array of records.
fn is_listed(prefetched: &PrefetchedTable, memory: &[u64]) -> bool {
    let says = |at: Option<usize>, word: usize| at.is_some_and(|at| memory[at + word] != 0);
    says(prefetched.each, 0) || says(prefetched.dense, dense::LEN)
}

/// Whether keys are looked up in a table inline, so it needs no bulk lookup.
pub(super) fn is_inline(prefetched: &PrefetchedTable, memory: &[u64]) -> bool {
    let says = |at: Option<usize>, word: usize| at.is_some_and(|at| memory[at + word] != 0);
    is_listed(prefetched, memory)
        || says(prefetched.hashed, hashed::GROUPS)
        || says(prefetched.called, called::FUNCTION)
}

/// Reinterprets words as twice as many half words.
fn halves(words: &mut [u64]) -> &mut [u32] {
    const { assert!(MISS == u32::MAX, "a miss is -1") };
    // SAFETY: any bits are a valid `u32`, and words are aligned for their halves, so nothing is left at either end.
    unsafe { words.align_to_mut().1 }
}

/// Returns the address of the record after that of the default action.
fn first_record(prefetched: &PrefetchedTable, objects: &Objects) -> u64 {
    let record = objects.default_record(prefetched.table);
    assert_eq!(record.len(), prefetched.stride, "records are as long as the longest list of arguments");
    record.as_ptr_range().end as u64
}
