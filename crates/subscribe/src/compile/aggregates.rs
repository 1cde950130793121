//! Allocates register cells for the keys of the aggregates that a program computes.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{MessageFormat, Window};
use crate::rule::{Aggregate, AggregateWindow};

/// An aggregate that a program computes, with its capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedAggregate {
    /// The aggregate; `None` for a linked slot, whose aggregate a rule chooses and an entry selects.
    pub aggregate: Option<Aggregate>,
    /// Number of slots that compute it. Each distinct condition on the counted messages needs one slot; tests of the
    /// aggregate's key do not count.
    pub slots: u16,
    /// Maximum number of key values that rules may name; 1 if there is no key.
    pub keys: u32,
}

/// Maximum number of key fields of a linked aggregate.
pub const MAX_LINKED_KEY_FIELDS: usize = 2;

/// Upper limit, exclusive, of the length of a time window in microseconds: half the period of the switch's 48-bit
/// clock.
pub const WINDOW_LIMIT_US: u64 = 1 << 47;

impl Aggregate {
    /// Whether a linked slot can compute the aggregate: it has at most [`MAX_LINKED_KEY_FIELDS`] key fields, and its
    /// window is shorter than [`WINDOW_LIMIT_US`].
    pub fn is_linkable(&self) -> bool {
        let is_too_long = matches!(self.window.length(), Some(Window::Micros(WINDOW_LIMIT_US..)));
        self.by.len() <= MAX_LINKED_KEY_FIELDS && !is_too_long
    }
}

impl MessageFormat {
    /// Adds an aggregate that the program computes, or a linked slot. From the first one on, rules may use only
    /// declared aggregates, and others only in linked slots. Its slots follow those of the previous ones.
    ///
    /// # Panics
    /// If there are more than 65,535 slots, or `computed` has several linked slots: each has keys of its own.
    pub fn compute(&mut self, computed: ComputedAggregate) {
        if self.computed.is_empty() {
            self.slots = 0;
        }
        assert!(computed.aggregate.is_some() || computed.slots == 1, "linked slots are added one by one");
        self.slots = self.slots.checked_add(computed.slots).expect("a program has few slots");
        self.computed.push(computed);
    }

    /// Returns the declared aggregates; empty if each slot takes any aggregate.
    pub fn computed(&self) -> &[ComputedAggregate] {
        &self.computed
    }

    /// Returns the index into [`MessageFormat::computed`] of the aggregate that a slot computes; `None` if the format
    /// declares none.
    pub fn computed_in(&self, slot: u16) -> Option<usize> {
        let mut behind = 0;
        self.computed.iter().position(|computed| {
            behind += computed.slots;
            slot < behind
        })
    }

    /// Returns the declared aggregate that a slot computes; `None` for a linked slot.
    pub fn declared_in(&self, slot: u16) -> Option<&Aggregate> {
        self.computed[self.computed_in(slot)?].aggregate.as_ref()
    }

    /// Returns a copy for display, in which linked slots have these aggregates. Not for tables: the widths of values
    /// differ.
    pub fn with_links(&self, links: &BTreeMap<u16, Aggregate>) -> MessageFormat {
        let mut format = self.clone();
        for (slot, aggregate) in links.iter().filter(|(slot, _)| self.is_linked(**slot)) {
            if let Some(at) = self.computed_in(*slot) {
                format.computed[at].aggregate = Some(aggregate.clone());
            }
        }
        format
    }

    /// Whether rules choose the slot's aggregate.
    pub fn is_linked(&self, slot: u16) -> bool {
        self.declared_in(slot).is_none()
    }

    /// Returns the slots of an aggregate, by its index in [`MessageFormat::computed`].
    pub fn slots_of(&self, computed: usize) -> std::ops::Range<u16> {
        let first = self.computed[..computed].iter().map(|before| before.slots).sum();
        first..first + self.computed[computed].slots
    }

    /// Whether a slot can compute an aggregate.
    pub(crate) fn slot_takes(&self, slot: u16, aggregate: &Aggregate) -> bool {
        match self.declared_in(slot) {
            Some(declared) => declared == aggregate,
            None => self.computed.is_empty() || aggregate.is_linkable(),
        }
    }

    /// Whether a rule may use an aggregate.
    pub(crate) fn computes(&self, aggregate: &Aggregate) -> bool {
        (0..self.slots).any(|slot| self.slot_takes(slot, aggregate))
    }

    /// Returns the width in bits of a slot's values. An average, a minimum or a maximum is no wider than its field.
    fn slot_bits(&self, slot: u16) -> u32 {
        let field = self.declared_in(slot).filter(|of| !of.function.is_total()).and_then(|of| of.field);
        field.map_or(self.slot_width, |field| self.get(field).width.min(self.slot_width))
    }

    /// Returns the largest value of a slot.
    pub(crate) fn slot_max(&self, slot: u16) -> u128 {
        crate::format::max_of(self.slot_bits(slot))
    }

    /// Returns the number that stands in the tables for a slot without a value, one more than the largest value; `None`
    /// if the slot always has a value.
    pub fn no_value(&self, slot: u16) -> Option<u128> {
        let is_total = self.declared_in(slot).is_some_and(|of| of.function.is_total());
        (!is_total).then(|| 1 << self.slot_bits(slot))
    }

    /// Returns the width in bits of a slot's key in the tables.
    pub(crate) fn slot_key_width(&self, slot: u16) -> u32 {
        self.slot_bits(slot) + u32::from(self.no_value(slot).is_some())
    }

    /// Returns the window of an aggregate that names none: the window of the only declared aggregate of its kind, or
    /// the default.
    pub(crate) fn window_of(&self, like: &Aggregate) -> AggregateWindow {
        let same = |declared: &&Aggregate| Aggregate { window: like.window, ..(*declared).clone() } == *like;
        let mut of_kind = self.computed.iter().filter_map(|computed| computed.aggregate.as_ref()).filter(same);
        match (of_kind.next(), of_kind.next()) {
            (Some(only), None) => only.window,
            _ => like.function.default_window(),
        }
    }
}

/// The register cell of a key that rules name, in all slots of one aggregate. Keys that no rule names have no cell
/// here; if they are counted at all, the program allocates their cells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyCell {
    /// The aggregate, as an index into [`MessageFormat::computed`].
    pub computed: u16,
    /// The key: one value per field of [`Aggregate::by`].
    pub key: Vec<u128>,
    /// Index of the cell, below [`ComputedAggregate::keys`].
    pub index: u32,
}

type AggregateKey = (u16, Vec<u128>);

/// Keys that rules name, with reference counts and cells.
#[derive(Clone, Default)]
pub(crate) struct KeyCells {
    wanted: BTreeMap<AggregateKey, usize>,
    /// Number of distinct wanted keys per aggregate.
    counts: BTreeMap<u16, usize>,
    assigned: BTreeMap<AggregateKey, u32>,
    free: BTreeMap<u16, BTreeSet<u32>>,
    /// Keys wanted or released since cells were last assigned.
    touched: BTreeSet<AggregateKey>,
}

impl KeyCells {
    pub fn acquire(&mut self, computed: u16, key: &[u128]) {
        let key = (computed, key.to_vec());
        let uses = self.wanted.entry(key.clone()).or_default();
        *uses += 1;
        if *uses == 1 {
            *self.counts.entry(computed).or_default() += 1;
            self.touched.insert(key);
        }
    }

    pub fn release(&mut self, computed: u16, key: &[u128]) {
        let key = (computed, key.to_vec());
        let uses = self.wanted.get_mut(&key).expect("what is released was held");
        *uses -= 1;
        if *uses == 0 {
            self.wanted.remove(&key);
            *self.counts.get_mut(&computed).expect("it was counted") -= 1;
            self.touched.insert(key);
        }
    }

    /// Returns an aggregate with more wanted keys than cells.
    pub fn crowded(&self, format: &MessageFormat) -> Option<u16> {
        let too_many =
            |(computed, count): &(&u16, &usize)| **count > format.computed()[usize::from(**computed)].keys as usize;
        self.counts.iter().find(too_many).map(|(computed, _)| *computed)
    }

    /// Assigns cells to wanted keys and frees the cells of others. Returns the assigned and the freed cells.
    pub fn settle(&mut self, format: &MessageFormat) -> (Vec<KeyCell>, Vec<KeyCell>) {
        let (mut come, mut go) = (Vec::new(), Vec::new());
        let touched = std::mem::take(&mut self.touched);
        for key in touched.iter().filter(|key| !self.wanted.contains_key(key)) {
            if let Some(index) = self.assigned.remove(key) {
                self.free.entry(key.0).or_default().insert(index);
                go.push(key_cell(key, index));
            }
        }
        for key in touched.into_iter().filter(|key| self.wanted.contains_key(key)) {
            if self.assigned.contains_key(&key) {
                continue;
            }
            let keys = format.computed()[usize::from(key.0)].keys;
            let free = self.free.entry(key.0).or_insert_with(|| (0..keys).collect());
            let index = free.pop_first().expect("no more keys are wanted than have room");
            come.push(key_cell(&key, index));
            self.assigned.insert(key, index);
        }
        (come, go)
    }

    /// Returns all cells, by aggregate and key.
    pub fn list(&self) -> Vec<KeyCell> {
        self.assigned.iter().map(|(key, index)| key_cell(key, *index)).collect()
    }
}

fn key_cell((computed, key): &AggregateKey, index: u32) -> KeyCell {
    KeyCell { computed: *computed, key: key.clone(), index }
}
