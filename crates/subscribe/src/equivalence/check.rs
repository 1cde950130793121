//! Checks the equivalence of two sets of tables over all messages.

use std::fmt;

use bdd::{LimitExceeded, Ref, Store};

use crate::compile::layout::{ColumnKey, ColumnLayout};
use crate::compile::lower::Lowering;
use crate::equivalence::chain::{Deliveries, TableChain};
use crate::format::MessageFormat;
use crate::reference::evaluate::Message;
use crate::rule::Condition;
use crate::tables::{Delivery, Tables};

/// A counterexample to the equivalence of two sets of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// A message that the two treat differently.
    pub message: Message,
    /// Delivery by the first.
    pub first: Delivery,
    /// Delivery by the second.
    pub second: Delivery,
}

/// Tables whose decision diagrams exceed a limit, so they cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLargeToCompare;

impl fmt::Display for TooLargeToCompare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tables are larger than the limits allow to compare")
    }
}

impl std::error::Error for TooLargeToCompare {}

/// Checks that two sets of tables deliver every message alike and returns a counterexample if they do not. State and
/// group numbers are not compared. Both sets are for the same format and column order. Only messages that satisfy
/// `possible` count, because the format does not say which headers and values can occur together.
///
/// The check is exact: tables are converted to decision diagrams in normal form, where equal functions have equal
/// diagrams.
///
/// # Errors
/// If the diagrams exceed a limit.
pub fn difference(
    first: &Tables,
    second: &Tables,
    format: &MessageFormat,
    layout: &ColumnLayout,
    possible: &Condition,
    limits: crate::Limits,
) -> Result<Option<Difference>, TooLargeToCompare> {
    let [first, second] = [first, second].map(|tables| TableChain::of(tables, format, layout));
    compare(&first, &second, format, possible, limits)
}

/// Compares tables as installed on switches; each side may have its own column order. See [`difference`].
///
/// # Errors
/// If the diagrams exceed a limit.
pub fn compare(
    first: &TableChain,
    second: &TableChain,
    format: &MessageFormat,
    possible: &Condition,
    limits: crate::Limits,
) -> Result<Option<Difference>, TooLargeToCompare> {
    walk(first, second, format, possible, limits).map_err(|_| TooLargeToCompare)
}

fn walk(
    first: &TableChain,
    second: &TableChain,
    format: &MessageFormat,
    possible: &Condition,
    limits: crate::Limits,
) -> Result<Option<Difference>, LimitExceeded> {
    let layout = &first.layout;
    let mut store = Store::new();
    store.set_limits(limits.into());
    let mut deliveries = Deliveries::default();
    let one = first.diagram(format, layout, &mut store, &mut deliveries)?;
    let other = second.diagram(format, layout, &mut store, &mut deliveries)?;
    // Equal diagrams need no look at the possible messages.
    if one == other {
        return Ok(None);
    }
    let there = absent_is_zero(format, layout, &mut store)?;
    let mut lowering = Lowering { store: &mut store, format, layout, aggregates: &[], slots: &[] };
    let possible = lowering.rule(possible, Ref::ALWAYS)?;
    let there = store.keep_where(possible, there)?;
    let one = store.keep_where(there, one)?;
    let other = store.keep_where(there, other)?;
    let Some(path) = store.difference(one, other) else { return Ok(None) };
    let mut message = Message::empty(format);
    for (level, value) in path {
        message.put(format, layout.keys()[level as usize], value);
    }
    let [first, second] = [first, second].map(|chain| chain.run(format, &message));
    assert_ne!(first, second, "diagrams are what tables do: {message:?}");
    Ok(Some(Difference { message, first, second }))
}

/// Returns the condition that every field of an invalid header reads as 0, as it does in tables. Compiled tables do not
/// look such fields up; others may.
fn absent_is_zero(format: &MessageFormat, layout: &ColumnLayout, store: &mut Store) -> Result<Ref, LimitExceeded> {
    let mut all = Ref::ALWAYS;
    for key in layout.keys().iter().rev() {
        let ColumnKey::Field(id) = key else { continue };
        let Some(header) = format.get(*id).header else { continue };
        let max = format.get(*id).max();
        let is_zero = store.test(layout.column(*key), &[(0, 0)], max, Ref::ALWAYS, Ref::NOTHING)?;
        let is_there = store.test(layout.column(ColumnKey::Valid(header)), &[(1, 1)], 1, Ref::ALWAYS, Ref::NOTHING)?;
        let either = store.union(is_there, is_zero)?;
        all = store.keep_where(either, all)?;
    }
    Ok(all)
}
