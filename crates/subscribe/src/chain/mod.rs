//! Tables as a switch has them, whoever wrote them: what they do with a message, and the function that they are.
//!
//! [`Tables`] are what the compiler makes, and are right by construction. A [`Chain`] may hold anything that the tables of
//! a program can be told: rows that overlap, with priorities, states that lead nowhere or back, entries for states that no
//! message has. It means what the program does with it: a state is asked by the stage that its number tells
//! ([`state`](crate::state)), so that one which leads back to an earlier stage, or is no leaf at the end, delivers nothing.

mod ambiguous;
mod diagram;

use std::collections::{BTreeMap, BTreeSet};

use crate::evaluate::Message;
use crate::format::{Format, HeaderId, max_of};
use crate::layout::{Key, Layout};
use crate::state::{stage_tag, tag};
use crate::tables::{Delivery, EntryKey, State, Tables};

pub(crate) use diagram::Deliveries;

/// The tables of a stage, in the order in which a message looks into them: the first that has an entry for it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The exact table.
    Exact,
    /// The one of stretches; and that of validity.
    Wide,
    /// The one of the state alone.
    Rest,
}

/// What a row matches besides the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// Values, or codes, from the first to the second, both included.
    Stretch(u128, u128),
    /// For each header whether it is valid; `None` for no matter.
    Validity(Vec<Option<bool>>),
}

/// What a row does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Then {
    /// The message goes on in this state.
    State(State),
    /// It goes to these ports and nowhere else; ascending.
    Ports(Vec<u32>),
    /// It stays in its state, which nothing behind asks.
    Nothing,
}

/// An entry of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The place of the stage.
    pub stage: u16,
    /// The state that it is for; 0 in the validity table, which does not match it.
    pub state: State,
    /// Which of the stage's tables it is in.
    pub part: Part,
    /// In one table, of two rows that match a value the one with the higher rank counts: a priority, or how long a prefix is.
    pub rank: u32,
    /// What it matches.
    pub matches: Matches,
    /// What it does.
    pub then: Then,
    /// Whatever number its maker knows it by.
    pub at: usize,
}

/// A row of a code table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeRow {
    /// The place of the stage.
    pub stage: u16,
    /// The first value.
    pub first: u128,
    /// The last value.
    pub last: u128,
    /// Of two rows that match a value the one with the higher rank counts.
    pub rank: u32,
    /// What takes the value's place.
    pub code: u128,
    /// Whatever number its maker knows it by.
    pub at: usize,
}

/// Tables as they are.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The order of the stages.
    pub layout: Layout,
    /// In no order.
    pub rows: Vec<Row>,
    /// In no order.
    pub codes: Vec<CodeRow>,
    /// What is done in states that are leaves; groups are not told.
    pub leaves: BTreeMap<State, Delivery>,
}

impl Chain {
    /// No entries.
    pub fn new(layout: Layout) -> Chain {
        Chain { layout, rows: Vec::new(), codes: Vec::new(), leaves: BTreeMap::new() }
    }

    /// Those that the compiler made, of this order.
    pub fn of(tables: &Tables, format: &Format, layout: &Layout) -> Chain {
        let mut chain = Chain::new(layout.clone());
        for (at, entry) in tables.entries.iter().enumerate() {
            let width = chain.width(entry.stage, format);
            let (part, rank, matches) = match &entry.key {
                EntryKey::Exact(value) => (Part::Exact, 0, Matches::Stretch(*value, *value)),
                EntryKey::Range(first, last) => (Part::Wide, 0, Matches::Stretch(*first, *last)),
                EntryKey::Prefix { value, length } => {
                    (Part::Wide, *length, Matches::Stretch(*value, *value | behind(*length, width)))
                }
                EntryKey::Rest => (Part::Rest, 0, Matches::Stretch(0, max_of(width))),
                EntryKey::Validity(pattern) => (Part::Wide, 0, Matches::Validity(pattern.clone())),
            };
            let then = Then::State(entry.next);
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

    /// The same with nothing delivered to these ports.
    pub fn without(&self, ports: &BTreeSet<u32>) -> Chain {
        let mut chain = self.clone();
        for row in &mut chain.rows {
            if let Then::Ports(of) = &mut row.then {
                of.retain(|port| !ports.contains(port));
                if of.is_empty() {
                    row.then = Then::Nothing;
                }
            }
        }
        chain.leaves.values_mut().for_each(|leaf| leaf.ports.retain(|port| !ports.contains(port)));
        chain
    }

    fn has_validity(&self) -> bool {
        self.layout.validities() > 0
    }

    /// The column that a stage looks up; any header's validity for that of all.
    pub fn column(&self, stage: u16) -> Key {
        match stage {
            0 if self.has_validity() => Key::Valid(HeaderId(0)),
            stage => {
                self.layout.keys()[self.layout.validities() + usize::from(stage) - usize::from(self.has_validity())]
            }
        }
    }

    /// The width of what the rows of a stage match: of its codes, if it has some.
    pub fn width(&self, stage: u16, format: &Format) -> u32 {
        codes(self.column(stage), format).unwrap_or_else(|| self.column(stage).width(format))
    }

    /// Whether a message in this state looks into the tables of a stage.
    pub fn is_asked(&self, stage: u16, state: State) -> bool {
        match state {
            // All messages begin so.
            0 => stage == 0 || !self.has_validity(),
            state => tag(state) == stage_tag(stage.into()),
        }
    }

    /// What is done with a message, looked up entry by entry.
    pub fn run(&self, format: &Format, message: &Message) -> Delivery {
        let mut state = 0;
        let stages = self.layout.keys().len() - self.layout.validities() + usize::from(self.has_validity());
        let mut by_stage: Vec<Vec<&Row>> = vec![Vec::new(); stages];
        self.rows.iter().for_each(|row| by_stage[usize::from(row.stage)].push(row));
        for (stage, rows) in (0..).zip(by_stage) {
            if !self.is_asked(stage, state) {
                continue;
            }
            let key = self.column(stage);
            let value = match codes(key, format) {
                Some(_) => {
                    let value = message.column(key);
                    let of_stage = self.codes.iter().filter(|row| row.stage == stage);
                    let hits = of_stage.filter(|row| (row.first..=row.last).contains(&value));
                    hits.max_by_key(|row| row.rank).map_or(0, |row| row.code)
                }
                None => message.column(key),
            };
            let hits = rows.into_iter().filter(|row| {
                row.state == state
                    && match &row.matches {
                        Matches::Stretch(first, last) => (*first..=*last).contains(&value),
                        Matches::Validity(pattern) => fits(pattern, &message.valid),
                    }
            });
            match hits.max_by_key(|row| (std::cmp::Reverse(row.part), row.rank)).map(|row| &row.then) {
                Some(Then::State(next)) => state = *next,
                Some(Then::Ports(ports)) => return Delivery { ports: ports.clone(), ..Delivery::default() },
                Some(Then::Nothing) => return Delivery::default(),
                None => {}
            }
        }
        self.leaves.get(&state).cloned().unwrap_or_default()
    }
}

fn codes(key: Key, format: &Format) -> Option<u32> {
    match key {
        Key::Field(id) => format.compressed(id),
        _ => None,
    }
}

/// The ones behind a prefix.
fn behind(length: u32, width: u32) -> u128 {
    if length == 0 { max_of(width) } else { max_of(width).checked_shr(length).unwrap_or(0) }
}

fn fits(pattern: &[Option<bool>], valid: &[bool]) -> bool {
    pattern.iter().zip(valid).all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == *is))
}
