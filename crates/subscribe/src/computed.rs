//! Aggregates that a program computes, where the program says which.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{Format, Window};
use crate::rule::Aggregate;

/// An aggregate that a program computes, and how much room it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// What is computed.
    pub aggregate: Aggregate,
    /// How many slots compute it: one for each condition of the messages that count, tests of its key aside.
    pub slots: u16,
    /// How many values of its key rules may name. Without a key, 1.
    pub keys: u32,
}

impl Format {
    /// Adds an aggregate that the program computes: from the first on, rules may use these and no others. Its slots
    /// come behind those of the ones before.
    ///
    /// # Panics
    /// If there would be more than 65,535 slots.
    pub fn compute(&mut self, computed: Computed) {
        if self.computed.is_empty() {
            self.slots = 0;
        }
        self.slots = self.slots.checked_add(computed.slots).expect("a program has few slots");
        self.computed.push(computed);
    }

    /// What the program computes; nothing if each slot takes any aggregate.
    pub fn computed(&self) -> &[Computed] {
        &self.computed
    }

    /// What a slot computes, by its place in [`Format::computed`]; `None` if it takes any aggregate.
    pub fn computed_in(&self, slot: u16) -> Option<usize> {
        let mut behind = 0;
        self.computed.iter().position(|computed| {
            behind += computed.slots;
            slot < behind
        })
    }

    /// Whether a rule may use an aggregate.
    pub(crate) fn computes(&self, aggregate: &Aggregate) -> bool {
        match self.computed.is_empty() {
            true => self.slots > 0,
            false => self.computed.iter().any(|computed| computed.aggregate == *aggregate),
        }
    }

    /// The window of an aggregate that names none: that of the only one of its kind, or the format's.
    pub(crate) fn window_of(&self, like: &Aggregate) -> Window {
        let same = |computed: &&Computed| Aggregate { window: like.window, ..computed.aggregate.clone() } == *like;
        let mut of_kind = self.computed.iter().filter(same);
        match (of_kind.next(), of_kind.next()) {
            (Some(only), None) => only.aggregate.window,
            _ => self.window,
        }
    }
}

/// Where a key that rules name has its cells, in all slots of one aggregate. Keys that no rule names have no place; where
/// they count at all, the program finds them cells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Of which aggregate: its place in [`Format::computed`].
    pub computed: u16,
    /// The key: a value for each field of [`Aggregate::by`].
    pub key: Vec<u128>,
    /// Which cell, below [`Computed::keys`].
    pub index: u32,
}

type Key = (u16, Vec<u128>);

/// The keys that rules name, counted by use, and their places.
#[derive(Clone, Default)]
pub(crate) struct Places {
    wanted: BTreeMap<Key, usize>,
    /// How many different keys of each aggregate are wanted.
    counts: BTreeMap<u16, usize>,
    given: BTreeMap<Key, u32>,
    free: BTreeMap<u16, BTreeSet<u32>>,
    /// What was wanted or let go since places were given.
    touched: BTreeSet<Key>,
}

impl Places {
    pub fn hold(&mut self, computed: u16, key: &[u128]) {
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

    /// An aggregate of which more keys are wanted than have room.
    pub fn crowded(&self, format: &Format) -> Option<u16> {
        let too_many =
            |(computed, count): &(&u16, &usize)| **count > format.computed()[usize::from(**computed)].keys as usize;
        self.counts.iter().find(too_many).map(|(computed, _)| *computed)
    }

    /// Gives places to what is wanted and takes those back that are not: the ones that come, and the ones that go.
    pub fn settle(&mut self, format: &Format) -> (Vec<Place>, Vec<Place>) {
        let (mut come, mut go) = (Vec::new(), Vec::new());
        let touched = std::mem::take(&mut self.touched);
        for key in touched.iter().filter(|key| !self.wanted.contains_key(key)) {
            if let Some(index) = self.given.remove(key) {
                self.free.entry(key.0).or_default().insert(index);
                go.push(place(key, index));
            }
        }
        for key in touched.into_iter().filter(|key| self.wanted.contains_key(key)) {
            if self.given.contains_key(&key) {
                continue;
            }
            let keys = format.computed()[usize::from(key.0)].keys;
            let free = self.free.entry(key.0).or_insert_with(|| (0..keys).collect());
            let index = free.pop_first().expect("no more keys are wanted than have room");
            come.push(place(&key, index));
            self.given.insert(key, index);
        }
        (come, go)
    }

    /// All places, by aggregate and key.
    pub fn list(&self) -> Vec<Place> {
        self.given.iter().map(|(key, index)| place(key, *index)).collect()
    }
}

fn place((computed, key): &Key, index: u32) -> Place {
    Place { computed: *computed, key: key.clone(), index }
}
