//! Tables as installed on a switch by any controller: their result for a message, and the function that they compute.
//!
//! [`Tables`] come from the compiler and are correct by construction. A [`TableChain`] may hold anything that the
//! tables of a program accept: overlapping rows with priorities, states that lead nowhere or back, entries for states
//! that no message reaches. Its meaning is the program's: a state is looked up only by the stage that its tag names
//! ([`state`](crate::compile::state)). A message whose state leads back to an earlier stage, or is not a leaf at the
//! end, is delivered nowhere.

mod ambiguous;
mod diagram;

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::layout::{ColumnKey, ColumnLayout};
use crate::compile::state::{stage_tag, tag};
use crate::format::{HeaderId, MessageFormat, max_of};
use crate::reference::evaluate::Message;
use crate::tables::{Delivery, EntryKey, StateId, Tables};

pub(crate) use diagram::Deliveries;

/// A table of a stage, in lookup order: the first table with a matching entry decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StageTable {
    /// The exact table.
    Exact,
    /// The table of intervals, or the validity table.
    Wide,
    /// The table that matches the state alone.
    Rest,
}

/// Key of a row besides the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// Values, or codes, from the first to the second, both inclusive.
    Stretch(u128, u128),
    /// Required validity of each header; `None` matches both.
    Validity(Vec<Option<bool>>),
}

/// Result of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowResult {
    /// Moves the message to this state.
    State(StateId),
    /// Delivers the message to these ports only; ascending.
    Ports(Vec<u32>),
    /// Leaves the message in its state, which no later stage looks up.
    Nothing,
}

/// An entry of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index of the stage.
    pub stage: u16,
    /// State that the row matches; 0 in the validity table, which does not match the state.
    pub state: StateId,
    /// The table of the stage that holds the row.
    pub part: StageTable,
    /// Precedence within one table: a priority, or a prefix length. The highest rank wins.
    pub rank: u32,
    /// Values that the row matches.
    pub matches: RowKey,
    /// Result of the row.
    pub then: RowResult,
    /// Identifier that the caller chose for the row.
    pub at: usize,
}

/// A row of a code table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeRow {
    /// Index of the stage.
    pub stage: u16,
    /// First value.
    pub first: u128,
    /// Last value.
    pub last: u128,
    /// Precedence: the highest rank wins.
    pub rank: u32,
    /// Code that replaces the value.
    pub code: u128,
    /// Identifier that the caller chose for the row.
    pub at: usize,
}

/// The tables of a program as installed.
#[derive(Clone, Debug)]
pub struct TableChain {
    /// Column order of the stages.
    pub layout: ColumnLayout,
    /// Rows, in no particular order.
    pub rows: Vec<Row>,
    /// Code rows, in no particular order.
    pub codes: Vec<CodeRow>,
    /// Deliveries of leaf states, without multicast groups.
    pub leaves: BTreeMap<StateId, Delivery>,
}

impl TableChain {
    /// Returns a chain without entries.
    pub fn new(layout: ColumnLayout) -> TableChain {
        TableChain { layout, rows: Vec::new(), codes: Vec::new(), leaves: BTreeMap::new() }
    }

    /// Returns the chain of tables that the compiler emitted for this column order.
    pub fn of(tables: &Tables, format: &MessageFormat, layout: &ColumnLayout) -> TableChain {
        let mut chain = TableChain::new(layout.clone());
        for (at, entry) in tables.entries.iter().enumerate() {
            let width = chain.width(entry.stage, format);
            let (part, rank, matches) = match &entry.key {
                EntryKey::Exact(value) => (StageTable::Exact, 0, RowKey::Stretch(*value, *value)),
                EntryKey::Range(first, last) => (StageTable::Wide, 0, RowKey::Stretch(*first, *last)),
                EntryKey::Prefix { value, length } => {
                    (StageTable::Wide, *length, RowKey::Stretch(*value, *value | behind(*length, width)))
                }
                EntryKey::Rest => (StageTable::Rest, 0, RowKey::Stretch(0, max_of(width))),
                EntryKey::Validity(pattern) => (StageTable::Wide, 0, RowKey::Validity(pattern.clone())),
            };
            let then = RowResult::State(entry.next);
            chain.rows.push(Row { stage: entry.stage, state: entry.state, part, rank, matches, then, at });
        }
        for (at, code) in tables.codes.iter().enumerate() {
            let (stage, first, last, code) = (code.stage, code.first, code.last, code.code);
            chain.codes.push(CodeRow { stage, first, last, rank: 0, code, at });
        }
        let leaf = |leaf: &crate::Leaf| (leaf.state, Delivery { group: None, ..leaf.delivery.clone() });
        chain.leaves = tables.leaves.iter().map(leaf).collect();
        chain
    }

    /// Returns a copy that delivers nothing to these ports.
    pub fn without(&self, ports: &BTreeSet<u32>) -> TableChain {
        let mut chain = self.clone();
        for row in &mut chain.rows {
            if let RowResult::Ports(of) = &mut row.then {
                of.retain(|port| !ports.contains(port));
                if of.is_empty() {
                    row.then = RowResult::Nothing;
                }
            }
        }
        chain.leaves.values_mut().for_each(|leaf| leaf.ports.retain(|port| !ports.contains(port)));
        chain
    }

    fn has_validity(&self) -> bool {
        self.layout.validities() > 0
    }

    /// Returns the column that a stage looks up; the first header's validity for the validity stage.
    pub fn column(&self, stage: u16) -> ColumnKey {
        match stage {
            0 if self.has_validity() => ColumnKey::Valid(HeaderId(0)),
            stage => {
                self.layout.keys()[self.layout.validities() + usize::from(stage) - usize::from(self.has_validity())]
            }
        }
    }

    /// Returns the width in bits of the values that the rows of a stage match; for a stage with codes, the width of the
    /// codes.
    pub fn width(&self, stage: u16, format: &MessageFormat) -> u32 {
        codes(self.column(stage), format).unwrap_or_else(|| self.column(stage).width(format))
    }

    /// Whether a message in this state is looked up in the tables of a stage.
    pub fn is_looked_up(&self, stage: u16, state: StateId) -> bool {
        match state {
            // Initial state of every message.
            0 => stage == 0 || !self.has_validity(),
            state => tag(state) == stage_tag(stage.into()),
        }
    }

    /// Returns the delivery of a message, by linear search over the rows.
    pub fn run(&self, format: &MessageFormat, message: &Message) -> Delivery {
        let mut state = 0;
        let stages = self.layout.keys().len() - self.layout.validities() + usize::from(self.has_validity());
        let mut by_stage: Vec<Vec<&Row>> = vec![Vec::new(); stages];
        self.rows.iter().for_each(|row| by_stage[usize::from(row.stage)].push(row));
        for (stage, rows) in (0..).zip(by_stage) {
            if !self.is_looked_up(stage, state) {
                continue;
            }
            let key = self.column(stage);
            let value = match codes(key, format) {
                Some(_) => {
                    let value = message.column(format, key);
                    let of_stage = self.codes.iter().filter(|row| row.stage == stage);
                    let hits = of_stage.filter(|row| (row.first..=row.last).contains(&value));
                    hits.max_by_key(|row| row.rank).map_or(0, |row| row.code)
                }
                None => message.column(format, key),
            };
            let hits = rows.into_iter().filter(|row| {
                row.state == state
                    && match &row.matches {
                        RowKey::Stretch(first, last) => (*first..=*last).contains(&value),
                        RowKey::Validity(pattern) => fits(pattern, &message.valid),
                    }
            });
            match hits.max_by_key(|row| (std::cmp::Reverse(row.part), row.rank)).map(|row| &row.then) {
                Some(RowResult::State(next)) => state = *next,
                Some(RowResult::Ports(ports)) => return Delivery { ports: ports.clone(), ..Delivery::default() },
                Some(RowResult::Nothing) => return Delivery::default(),
                None => {}
            }
        }
        self.leaves.get(&state).cloned().unwrap_or_default()
    }
}

fn codes(key: ColumnKey, format: &MessageFormat) -> Option<u32> {
    match key {
        ColumnKey::Field(id) => format.compressed(id),
        _ => None,
    }
}

/// Returns a mask of the bits after a prefix.
fn behind(length: u32, width: u32) -> u128 {
    if length == 0 { max_of(width) } else { max_of(width).checked_shr(length).unwrap_or(0) }
}

fn fits(pattern: &[Option<bool>], valid: &[bool]) -> bool {
    pattern.iter().zip(valid).all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == *is))
}
