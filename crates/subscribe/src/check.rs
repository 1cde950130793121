//! Tables as functions: what they do with every message there is, and whether two of them do the same.

use std::collections::HashMap;

use bdd::{Full, Ref, Store};

use crate::evaluate::Message;
use crate::format::{Format, max_of};
use crate::layout::{Key, Layout};
use crate::lower::Lowering;
use crate::rule::Condition;
use crate::tables::{CodeEntry, Delivery, Entry, EntryKey, State, Tables};

/// How two tables differ: a message, and what each does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The message.
    pub message: Message,
    /// What the first does.
    pub first: Delivery,
    /// What the second does.
    pub second: Delivery,
}

/// Deliveries as numbers of sets.
#[derive(Default)]
struct Deliveries {
    numbers: HashMap<Delivery, u32>,
    list: Vec<Delivery>,
}

impl Deliveries {
    fn number(&mut self, delivery: Delivery) -> u32 {
        *self.numbers.entry(delivery).or_insert_with_key(|delivery| {
            self.list.push(delivery.clone());
            self.list.len() as u32 - 1
        })
    }
}

/// Whether two sets of tables do the same with every message, states and numbers of groups aside; if not, a message that
/// shows it. Both are for the same format and the same order of columns. Only messages count for which `possible` holds:
/// which headers can be valid together the format does not say.
///
/// This is exact: tables are read back into diagrams, and equal functions have equal diagrams.
///
/// # Errors
/// If the diagrams pass a limit: a sentence.
pub fn difference(
    first: &Tables,
    second: &Tables,
    format: &Format,
    layout: &Layout,
    possible: &Condition,
    limits: crate::Limits,
) -> Result<Option<Difference>, String> {
    let mut store = Store::new();
    store.limit(limits.into());
    let mut deliveries = Deliveries::default();
    let full = |_: Full| "the tables are larger than the limits allow to compare".to_owned();
    let one = read_back(first, format, layout, &mut store, &mut deliveries).map_err(full)?;
    let other = read_back(second, format, layout, &mut store, &mut deliveries).map_err(full)?;
    let mut lowering = Lowering { store: &mut store, format, layout, aggregates: &[], slots: &[] };
    let [one, other] = [one, other].map(|function| lowering.rule(possible, function).map_err(full));
    let (one, other) = (one?, other?);
    let Some(path) = store.difference(one, other) else { return Ok(None) };
    let mut message = Message::empty(format);
    for (level, value) in path {
        message.put(layout.keys()[level as usize], value);
    }
    let result = |function: Ref| {
        let numbers = store.evaluate(function, |level| message.column(layout.keys()[level as usize]));
        numbers.first().map(|number| deliveries.list[*number as usize].clone()).unwrap_or_default()
    };
    Ok(Some(Difference { first: result(one), second: result(other), message }))
}

/// The function that tables are, from the leaves up.
fn read_back(
    tables: &Tables,
    format: &Format,
    layout: &Layout,
    store: &mut Store,
    deliveries: &mut Deliveries,
) -> Result<Ref, Full> {
    let mut functions: HashMap<State, Ref> = HashMap::new();
    for leaf in &tables.leaves {
        let delivery = Delivery { group: None, ..leaf.delivery.clone() };
        // What does nothing is no rule at all, unless it says drop.
        if delivery != Delivery::default() {
            let number = deliveries.number(delivery);
            functions.insert(leaf.state, store.constant(&[number]));
        }
    }
    let mut sorted: Vec<&Entry> = tables.entries.iter().collect();
    sorted.sort_unstable();
    let validities = layout.validities();
    for of_stage in sorted.chunk_by(|a, b| a.stage == b.stage).rev() {
        let stage = usize::from(of_stage[0].stage);
        let mut changed = Vec::new();
        for entries in of_stage.chunk_by(|a, b| a.state == b.state) {
            let state = entries[0].state;
            let miss = functions.get(&state).copied().unwrap_or(Ref::NOTHING);
            let function = match validities > 0 && stage == 0 {
                true => validity(entries, &functions, miss, store)?,
                false => {
                    let level = validities + stage - usize::from(validities > 0);
                    let key = layout.keys()[level];
                    let codes = match key {
                        Key::Field(id) => format.compressed(id),
                        _ => None,
                    };
                    let arms = column(entries, &functions, miss, codes.unwrap_or(key.width(format)));
                    let arms = match codes {
                        Some(_) => decode(&tables.codes, of_stage[0].stage, &arms),
                        None => arms,
                    };
                    store.node(level as u32, arms)?
                }
            };
            changed.push((state, function));
        }
        // All entries of a stage lead to stages behind it.
        functions.extend(changed);
    }
    Ok(functions.get(&0).copied().unwrap_or(Ref::NOTHING))
}

/// The rank of an entry among those of its state, and the stretch that it matches.
fn stretch(entry: &Entry, width: u32) -> (u32, u128, u128) {
    match &entry.key {
        EntryKey::Exact(value) => (u32::MAX, *value, *value),
        EntryKey::Range(first, last) => (1, *first, *last),
        EntryKey::Prefix { value, length } => {
            let below = if *length == 0 { max_of(width) } else { max_of(width).checked_shr(*length).unwrap_or(0) };
            (length + 1, *value, *value | below)
        }
        EntryKey::Rest | EntryKey::Validity(_) => (0, 0, max_of(width)),
    }
}

/// The arms of a state of a stage for a column, in values or codes.
fn column(entries: &[&Entry], functions: &HashMap<State, Ref>, miss: Ref, width: u32) -> Vec<(u128, Ref)> {
    // From the left, the stretches that are open: the one of the highest rank counts.
    let mut begins: Vec<(u128, u32, u128, Ref)> = Vec::new();
    let mut cuts = vec![0];
    for entry in entries {
        let (rank, first, last) = stretch(entry, width);
        begins.push((first, rank, last, functions.get(&entry.next).copied().unwrap_or(Ref::NOTHING)));
        cuts.push(first);
        cuts.extend(last.checked_add(1).filter(|next| *next <= max_of(width)));
    }
    begins.sort_unstable_by_key(|(first, rank, ..)| (*first, *rank));
    cuts.sort_unstable();
    cuts.dedup();
    let mut open: std::collections::BinaryHeap<(u32, u128, Ref)> = std::collections::BinaryHeap::new();
    let mut next = begins.into_iter().peekable();
    let mut arms = Vec::with_capacity(cuts.len());
    for cut in cuts {
        while let Some((_, rank, last, function)) = next.next_if(|(first, ..)| *first <= cut) {
            open.push((rank, last, function));
        }
        while open.peek().is_some_and(|(_, last, _)| *last < cut) {
            open.pop();
        }
        arms.push((cut, open.peek().map_or(miss, |(_, _, function)| *function)));
    }
    arms
}

/// Arms in codes as arms in values. Values without a code have code 0.
fn decode(codes: &[CodeEntry], stage: u16, arms: &[(u128, Ref)]) -> Vec<(u128, Ref)> {
    let of = |code: u128| arms[arms.partition_point(|(first, _)| *first <= code) - 1].1;
    let mut ranges: Vec<&CodeEntry> = codes.iter().filter(|entry| entry.stage == stage).collect();
    ranges.sort_unstable();
    let mut out = Vec::new();
    let mut next = Some(0);
    for range in ranges {
        if next.is_some_and(|next| next < range.first) {
            out.push((next.unwrap_or(0), of(0)));
        }
        out.push((range.first, of(range.code)));
        next = range.last.checked_add(1);
    }
    // Up to the end of the domain; an arm behind it is never met.
    out.extend(next.map(|next| (next, of(0))));
    out
}

/// The validity table: disjoint patterns, each a conjunction.
fn validity(entries: &[&Entry], functions: &HashMap<State, Ref>, miss: Ref, store: &mut Store) -> Result<Ref, Full> {
    let mut all = Ref::NOTHING;
    let mut matched = Ref::NOTHING;
    for entry in entries {
        let EntryKey::Validity(pattern) = &entry.key else { continue };
        let mut condition = Ref::ALWAYS;
        for (level, wanted) in pattern.iter().enumerate().rev() {
            if let Some(wanted) = wanted {
                let value = u128::from(*wanted);
                condition = store.test(level as u32, &[(value, value)], 1, condition, Ref::NOTHING)?;
            }
        }
        let function = functions.get(&entry.next).copied().unwrap_or(Ref::NOTHING);
        let function = store.keep_where(condition, function)?;
        all = store.union(all, function)?;
        matched = store.union(matched, condition)?;
    }
    let missed = store.keep_unless(matched, miss)?;
    store.union(all, missed)
}
