//! Whether two sets of tables do the same with every message there is.

use bdd::{Full, Ref, Store};

use crate::chain::{Chain, Deliveries};
use crate::evaluate::Message;
use crate::format::Format;
use crate::layout::{Key, Layout};
use crate::lower::Lowering;
use crate::rule::Condition;
use crate::tables::{Delivery, Tables};

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

/// Whether two sets of tables do the same with every message, states and numbers of groups aside; if not, a message that
/// shows it. Both are for the same format and the same order of columns. Only messages count for which `possible` holds:
/// which headers can be valid together,
/// and with which values, the format does not say.
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
    let [first, second] = [first, second].map(|tables| Chain::of(tables, format, layout));
    compare(&first, &second, format, possible, limits)
}

/// The same of tables as switches have them, each in an order of its own.
///
/// # Errors
/// If the diagrams pass a limit: a sentence.
pub fn compare(
    first: &Chain,
    second: &Chain,
    format: &Format,
    possible: &Condition,
    limits: crate::Limits,
) -> Result<Option<Difference>, String> {
    let found = walk(first, second, format, possible, limits);
    found.map_err(|_| "the tables are larger than the limits allow to compare".to_owned())
}

fn walk(
    first: &Chain,
    second: &Chain,
    format: &Format,
    possible: &Condition,
    limits: crate::Limits,
) -> Result<Option<Difference>, Full> {
    let layout = &first.layout;
    let mut store = Store::new();
    store.limit(limits.into());
    let mut deliveries = Deliveries::default();
    let one = first.diagram(format, layout, &mut store, &mut deliveries)?;
    let other = second.diagram(format, layout, &mut store, &mut deliveries)?;
    // Most that are the same are so without a look at which messages there can be.
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
        message.put(layout.keys()[level as usize], value);
    }
    let [first, second] = [first, second].map(|chain| chain.run(format, &message));
    assert_ne!(first, second, "diagrams are what tables do: {message:?}");
    Ok(Some(Difference { message, first, second }))
}

/// Tables find 0 where a field's header is not valid. Tables of rules do not look there; others may.
fn absent_is_zero(format: &Format, layout: &Layout, store: &mut Store) -> Result<Ref, Full> {
    let mut all = Ref::ALWAYS;
    for key in layout.keys().iter().rev() {
        let Key::Field(id) = key else { continue };
        let Some(header) = format.get(*id).header else { continue };
        let max = format.get(*id).max();
        let is_zero = store.test(layout.column(*key), &[(0, 0)], max, Ref::ALWAYS, Ref::NOTHING)?;
        let is_there = store.test(layout.column(Key::Valid(header)), &[(1, 1)], 1, Ref::ALWAYS, Ref::NOTHING)?;
        let either = store.union(is_there, is_zero)?;
        all = store.keep_where(either, all)?;
    }
    Ok(all)
}
