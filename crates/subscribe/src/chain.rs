//! Tables as a switch has them, whoever wrote them: what they do with a message, and the function that they are.
//!
//! [`Tables`] are what the compiler makes, and are right by construction. A [`Chain`] may hold anything that the tables of
//! a program can be told: rows that overlap, with priorities, states that lead nowhere or back, entries for states that no
//! message has. It means what the program does with it: a state is asked by the stage that its number tells
//! ([`state`](crate::state)), so that one which leads back to an earlier stage, or is no leaf at the end, delivers nothing.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use bdd::{Full, Ref, Store};

use crate::evaluate::Message;
use crate::format::{Format, HeaderId, max_of};
use crate::layout::{Key, Layout};
use crate::lower::balanced;
use crate::state::{stage_tag, tag};
use crate::tables::{Delivery, EntryKey, State, Tables};

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

/// Deliveries as numbers of sets.
#[derive(Default)]
pub(crate) struct Deliveries(HashMap<Delivery, u32>);

impl Deliveries {
    /// The function that gives this everywhere.
    fn constant(&mut self, delivery: &Delivery, store: &mut Store) -> Ref {
        // What does nothing is no rule at all, unless it says drop.
        if *delivery == Delivery::default() {
            return Ref::NOTHING;
        }
        let next = self.0.len() as u32;
        let number = *self.0.entry(delivery.clone()).or_insert(next);
        store.constant(&[number])
    }
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

    /// Pairs of rows of which nothing says which one counts where both match, and which do different things: by the
    /// numbers that their maker knows them by. One pair for each row at most.
    pub fn ambiguous(&self) -> Vec<(usize, usize)> {
        /// More patterns of validity than this are not compared with each other.
        const PATTERNS: usize = 4096;
        let mut out = Vec::new();
        let mut stretches = Vec::new();
        let mut patterns = Vec::new();
        for row in &self.rows {
            match &row.matches {
                Matches::Stretch(first, last) => {
                    stretches.push(((row.stage, row.state, row.part, row.rank), *first, *last, &row.then, row.at));
                }
                Matches::Validity(pattern) => patterns.push((row, pattern)),
            }
        }
        overlaps(stretches, &mut out);
        let codes = self.codes.iter().map(|row| ((row.stage, row.rank), row.first, row.last, row.code, row.at));
        overlaps(codes.collect(), &mut out);
        patterns.truncate(PATTERNS);
        for (at, (row, pattern)) in patterns.iter().enumerate() {
            let meets = |other: &[Option<bool>]| {
                pattern.iter().zip(other).all(|(one, other)| one.is_none() || other.is_none() || one == other)
            };
            let clash = |(other, its): &&(&Row, &Vec<Option<bool>>)| {
                other.rank == row.rank && other.then != row.then && meets(its)
            };
            out.extend(patterns[..at].iter().find(clash).map(|(other, _)| (other.at, row.at)));
        }
        out
    }

    /// The function that the tables are, in the order of `layout`, which need not be their own.
    pub(crate) fn diagram(
        &self,
        format: &Format,
        layout: &Layout,
        store: &mut Store,
        deliveries: &mut Deliveries,
    ) -> Result<Ref, Full> {
        let is_own = self.layout.keys() == layout.keys();
        let mut functions: HashMap<State, Ref> = HashMap::new();
        for (state, delivery) in &self.leaves {
            functions.insert(*state, deliveries.constant(delivery, store));
        }
        let mut sorted: Vec<&Row> = self.rows.iter().filter(|row| self.is_asked(row.stage, row.state)).collect();
        sorted.sort_by_key(|row| (row.stage, row.state));
        for of_stage in sorted.chunk_by(|a, b| a.stage == b.stage).rev() {
            let stage = of_stage[0].stage;
            let key = self.column(stage);
            let codes = codes(key, format).map(|_| self.decoded(stage, key.width(format)));
            let mut changed = Vec::new();
            for rows in of_stage.chunk_by(|a, b| a.state == b.state) {
                let state = rows[0].state;
                let miss = functions.get(&state).copied().unwrap_or(Ref::NOTHING);
                let mut then = |then: &Then| match then {
                    Then::State(next) => functions.get(next).copied().unwrap_or(Ref::NOTHING),
                    Then::Ports(ports) => {
                        deliveries.constant(&Delivery { ports: ports.clone(), ..Delivery::default() }, store)
                    }
                    Then::Nothing => Ref::NOTHING,
                };
                let rows: Vec<(&Row, Ref)> = rows.iter().map(|row| (*row, then(&row.then))).collect();
                let function = match key {
                    Key::Valid(_) => validity(rows, miss, store)?,
                    key => {
                        let arms = arms(&rows, miss, self.width(stage, format));
                        let arms = match &codes {
                            Some(codes) => in_values(codes, &arms),
                            None => arms,
                        };
                        let level = layout.column(key);
                        match is_own {
                            true => store.node(level, arms)?,
                            false => anywhere(level, &arms, max_of(key.width(format)), store)?,
                        }
                    }
                };
                changed.push((state, function));
            }
            // What leads to a stage that was asked before finds nothing there.
            functions.extend(changed);
        }
        Ok(functions.get(&0).copied().unwrap_or(Ref::NOTHING))
    }

    /// The codes of a stage: from which values on there is which. Values without a row have code 0.
    fn decoded(&self, stage: u16, width: u32) -> Vec<(u128, u128)> {
        let of_stage = self.codes.iter().filter(|row| row.stage == stage);
        sweep(of_stage.map(|row| (row.first, row.last, (row.rank, row.code))).collect(), max_of(width))
            .into_iter()
            .map(|(first, best)| (first, best.map_or(0, |(_, code)| code)))
            .collect()
    }
}

fn codes(key: Key, format: &Format) -> Option<u32> {
    match key {
        Key::Field(id) => format.compressed(id),
        _ => None,
    }
}

/// The ones behind a prefix.
pub(crate) fn behind(length: u32, width: u32) -> u128 {
    if length == 0 { max_of(width) } else { max_of(width).checked_shr(length).unwrap_or(0) }
}

fn fits(pattern: &[Option<bool>], valid: &[bool]) -> bool {
    pattern.iter().zip(valid).all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == *is))
}

/// Stretches of one group that overlap and say different things.
fn overlaps<G: Ord, T: PartialEq>(mut all: Vec<(G, u128, u128, T, usize)>, out: &mut Vec<(usize, usize)>) {
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let mut furthest = &group[0];
        for next in &group[1..] {
            if next.1 <= furthest.2 && next.3 != furthest.3 {
                out.push((furthest.4, next.4));
            }
            if next.2 > furthest.2 {
                furthest = next;
            }
        }
    }
}

/// From which value on which of some stretches is the greatest that covers it, if one does.
fn sweep<T: Ord + Copy>(mut stretches: Vec<(u128, u128, T)>, max: u128) -> Vec<(u128, Option<T>)> {
    let ends = stretches.iter().filter(|(_, last, _)| *last < max).map(|(_, last, _)| last + 1);
    let mut cuts: Vec<u128> = stretches.iter().map(|(first, ..)| *first).chain(ends).chain([0]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    stretches.sort_unstable_by_key(|(first, ..)| *first);
    let mut next = stretches.into_iter().peekable();
    let mut open: BinaryHeap<(T, u128)> = BinaryHeap::new();
    let mut out = Vec::with_capacity(cuts.len());
    for cut in cuts {
        while let Some((_, last, what)) = next.next_if(|(first, ..)| *first <= cut) {
            open.push((what, last));
        }
        while open.peek().is_some_and(|(_, last)| *last < cut) {
            open.pop();
        }
        out.push((cut, open.peek().map(|(what, _)| *what)));
    }
    out
}

/// The arms of a state of a stage, in values or codes.
fn arms(rows: &[(&Row, Ref)], miss: Ref, width: u32) -> Vec<(u128, Ref)> {
    let stretch = |(row, function): &(&Row, Ref)| match row.matches {
        Matches::Stretch(first, last) => Some((first, last, ((std::cmp::Reverse(row.part), row.rank), *function))),
        Matches::Validity(_) => None,
    };
    let swept = sweep(rows.iter().filter_map(stretch).collect(), max_of(width));
    swept.into_iter().map(|(first, best)| (first, best.map_or(miss, |(_, function)| function))).collect()
}

/// Arms in codes as arms in values.
fn in_values(codes: &[(u128, u128)], arms: &[(u128, Ref)]) -> Vec<(u128, Ref)> {
    let of = |code: u128| arms[arms.partition_point(|(first, _)| *first <= code) - 1].1;
    codes.iter().map(|(first, code)| (*first, of(*code))).collect()
}

/// The function with these arms, whose functions may ask for what comes before their own column.
fn anywhere(level: u32, arms: &[(u128, Ref)], max: u128, store: &mut Store) -> Result<Ref, Full> {
    let mut stretches: BTreeMap<Ref, Vec<(u128, u128)>> = BTreeMap::new();
    for (at, (first, function)) in arms.iter().enumerate().filter(|(_, (_, function))| *function != Ref::NOTHING) {
        let last = arms.get(at + 1).map_or(max, |(next, _)| next - 1);
        let of = stretches.entry(*function).or_default();
        match of.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(*first) => *end = last,
            _ => of.push((*first, last)),
        }
    }
    let mut all = Vec::with_capacity(stretches.len());
    for (function, of) in stretches {
        let holds = store.test(level, &of, max, Ref::ALWAYS, Ref::NOTHING)?;
        all.push(store.keep_where(holds, function)?);
    }
    balanced(store, &mut all)
}

/// The validity table: patterns, each a conjunction. Columns of validity come first in every order, as declared.
fn validity(mut rows: Vec<(&Row, Ref)>, miss: Ref, store: &mut Store) -> Result<Ref, Full> {
    rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.rank));
    let mut all = Ref::NOTHING;
    let mut matched = Ref::NOTHING;
    for (row, function) in rows {
        let Matches::Validity(pattern) = &row.matches else { continue };
        let mut condition = Ref::ALWAYS;
        for (level, wanted) in pattern.iter().enumerate().rev() {
            if let Some(wanted) = wanted {
                let value = u128::from(*wanted);
                condition = store.test(level as u32, &[(value, value)], 1, condition, Ref::NOTHING)?;
            }
        }
        let function = store.keep_where(condition, function)?;
        // Where a row of a higher rank matches, that one counts.
        let function = store.keep_unless(matched, function)?;
        all = store.union(all, function)?;
        matched = store.union(matched, condition)?;
    }
    let missed = store.keep_unless(matched, miss)?;
    store.union(all, missed)
}
