//! Converts the function that a chain of tables computes to a decision diagram: each state becomes a node, from the
//! last stage to the first.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use bdd::{LimitExceeded, Ref, Store};

use super::{Row, RowKey, RowResult, TableChain, codes};
use crate::compile::layout::{ColumnKey, ColumnLayout};
use crate::compile::lower::balanced;
use crate::format::{MessageFormat, max_of};
use crate::tables::{Delivery, StateId};

/// Deliveries, interned as terminals of the diagram.
#[derive(Default)]
pub(crate) struct Deliveries(HashMap<Delivery, u32>);

impl Deliveries {
    /// Returns the constant function with this delivery.
    fn constant(&mut self, delivery: &Delivery, store: &mut Store) -> Ref {
        // An empty delivery equals no matching rule, unless it says drop.
        if *delivery == Delivery::default() {
            return Ref::NOTHING;
        }
        let next = self.0.len() as u32;
        let number = *self.0.entry(delivery.clone()).or_insert(next);
        store.constant(&[number])
    }
}

impl TableChain {
    /// Returns the function that the tables compute, in the column order `layout`, which may differ from the chain's
    /// own.
    pub(crate) fn diagram(
        &self,
        format: &MessageFormat,
        layout: &ColumnLayout,
        store: &mut Store,
        deliveries: &mut Deliveries,
    ) -> Result<Ref, LimitExceeded> {
        let is_own = self.layout.keys() == layout.keys();
        let mut functions: HashMap<StateId, Ref> = HashMap::new();
        for (state, delivery) in &self.leaves {
            functions.insert(*state, deliveries.constant(delivery, store));
        }
        let mut sorted: Vec<&Row> = self.rows.iter().filter(|row| self.is_looked_up(row.stage, row.state)).collect();
        sorted.sort_by_key(|row| (row.stage, row.state));
        for of_stage in sorted.chunk_by(|a, b| a.stage == b.stage).rev() {
            let stage = of_stage[0].stage;
            let key = self.column(stage);
            let codes = codes(key, format).map(|_| self.decoded(stage, key.width(format)));
            let mut changed = Vec::new();
            for rows in of_stage.chunk_by(|a, b| a.state == b.state) {
                let state = rows[0].state;
                let miss = functions.get(&state).copied().unwrap_or(Ref::NOTHING);
                let mut then = |then: &RowResult| match then {
                    RowResult::State(next) => functions.get(next).copied().unwrap_or(Ref::NOTHING),
                    RowResult::Ports(ports) => {
                        deliveries.constant(&Delivery { ports: ports.clone(), ..Delivery::default() }, store)
                    }
                    RowResult::Nothing => Ref::NOTHING,
                };
                let rows: Vec<(&Row, Ref)> = rows.iter().map(|row| (*row, then(&row.then))).collect();
                let function = match key {
                    ColumnKey::Valid(_) => validity(rows, miss, store)?,
                    key => {
                        let arms = arms(&rows, miss, self.width(stage, format));
                        let arms = match &codes {
                            Some(codes) => in_values(codes, &arms),
                            None => arms,
                        };
                        let level = layout.column(key);
                        if is_own {
                            store.node(level, arms)?
                        } else {
                            anywhere(level, &arms, max_of(key.width(format)), store)?
                        }
                    }
                };
                changed.push((state, function));
            }
            // States of this stage become visible only now: a transition from a later stage finds no function.
            functions.extend(changed);
        }
        Ok(functions.get(&0).copied().unwrap_or(Ref::NOTHING))
    }

    /// Returns the step function from values to codes of a stage. Values without a row have code 0.
    fn decoded(&self, stage: u16, width: u32) -> Vec<(u128, u128)> {
        let of_stage = self.codes.iter().filter(|row| row.stage == stage);
        sweep(of_stage.map(|row| (row.first, row.last, (row.rank, row.code))).collect(), max_of(width))
            .into_iter()
            .map(|(first, best)| (first, best.map_or(0, |(_, code)| code)))
            .collect()
    }
}

/// Returns the step function that maps each value to the greatest of the intervals that cover it, if any.
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

/// Returns the arms of one state in one stage, in values or in codes.
fn arms(rows: &[(&Row, Ref)], miss: Ref, width: u32) -> Vec<(u128, Ref)> {
    let stretch = |(row, function): &(&Row, Ref)| match row.matches {
        RowKey::Stretch(first, last) => Some((first, last, ((std::cmp::Reverse(row.part), row.rank), *function))),
        RowKey::Validity(_) => None,
    };
    let swept = sweep(rows.iter().filter_map(stretch).collect(), max_of(width));
    swept.into_iter().map(|(first, best)| (first, best.map_or(miss, |(_, function)| function))).collect()
}

/// Converts arms in codes to arms in values.
fn in_values(codes: &[(u128, u128)], arms: &[(u128, Ref)]) -> Vec<(u128, Ref)> {
    let of = |code: u128| arms[arms.partition_point(|(first, _)| *first <= code) - 1].1;
    codes.iter().map(|(first, code)| (*first, of(*code))).collect()
}

/// Returns the function with these arms. The arms' functions may test columns before this one.
fn anywhere(level: u32, arms: &[(u128, Ref)], max: u128, store: &mut Store) -> Result<Ref, LimitExceeded> {
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

/// Returns the function of the validity table. Each pattern is a conjunction; validity columns come first in every
/// order, in order of declaration.
fn validity(mut rows: Vec<(&Row, Ref)>, miss: Ref, store: &mut Store) -> Result<Ref, LimitExceeded> {
    rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.rank));
    let mut all = Ref::NOTHING;
    let mut matched = Ref::NOTHING;
    for (row, function) in rows {
        let RowKey::Validity(pattern) = &row.matches else { continue };
        let mut condition = Ref::ALWAYS;
        for (level, wanted) in pattern.iter().enumerate().rev() {
            if let Some(wanted) = wanted {
                let value = u128::from(*wanted);
                condition = store.test(level as u32, &[(value, value)], 1, condition, Ref::NOTHING)?;
            }
        }
        let function = store.keep_where(condition, function)?;
        // A row of a higher rank takes precedence.
        let function = store.keep_unless(matched, function)?;
        all = store.union(all, function)?;
        matched = store.union(matched, condition)?;
    }
    let missed = store.keep_unless(matched, miss)?;
    store.union(all, missed)
}
