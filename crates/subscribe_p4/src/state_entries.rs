//! Entries of the tables that update counters and aggregates.

use std::collections::BTreeSet;

use subscribe::{Delivery, KeyCell, Operand, SlotUse, Term, Update, UpdateFunction};

use crate::entries::{self, Entity, Matched, Params, ProgramEntry};
use crate::format::ProgramFormat;
use crate::rule_format::RuleFormat;
use crate::write::{
    COMBINES, COUNTS, combine_table, combined_with, key_parts, key_width, link_params, link_table, parse_link,
    place_table, update_table, with_counter, with_field,
};

/// A table, and the action of its entry for a leaf.
type LeafEntry = (String, (String, Params));

/// Returns the entry that makes a leaf count for aggregates.
pub(crate) fn counts(delivery: &Delivery, rules: &RuleFormat) -> Option<LeafEntry> {
    let slots = delivery.slots.iter().fold(0u128, |slots, slot| slots | 1 << slot);
    let params = vec![("slots".to_owned(), u32::from(rules.format.slots), slots)];
    (slots != 0).then(|| (COUNTS.to_owned(), ("Subscriptions.count_for".to_owned(), params)))
}

/// Returns the update of a counter in a delivery.
fn update_of(delivery: &Delivery, counter: usize) -> Option<&Update> {
    let mut updates = delivery.updates.iter().filter(|update| usize::from(update.counter.0) == counter);
    let update = updates.next()?;
    assert!(updates.next().is_none(), "the target takes one update of a counter");
    Some(update)
}

/// Returns the entry that makes a leaf update a counter.
pub(crate) fn update(delivery: &Delivery, counter: usize, format: &ProgramFormat) -> Option<LeafEntry> {
    let Update { function, operand, .. } = update_of(delivery, counter)?;
    let (term, combines) = match operand {
        Operand::Term(term) => (term, 0),
        Operand::Product(term, _) | Operand::Difference(term, _) => (term, COMBINES),
    };
    let mut params = vec![("function".to_owned(), 4, number(*function) | combines)];
    let action = match term {
        Term::Number(number) => {
            params.push(("number".to_owned(), 64, *number));
            "by_number".to_owned()
        }
        Term::Field(id) => with_field(&format.fields[usize::from(id.0)].name),
        Term::Counter(id) => with_counter(&format.counters[usize::from(id.0)].name),
    };
    Some((update_table(&format.counters[counter].name), (format!("Subscriptions.{action}"), params)))
}

/// Returns the entry for the second term of a counter's update in a leaf, if it has one.
pub(crate) fn combine(delivery: &Delivery, counter: usize, format: &ProgramFormat) -> Option<LeafEntry> {
    let (term, is_product) = match update_of(delivery, counter)?.operand {
        Operand::Term(_) => return None,
        Operand::Product(_, term) => (term, true),
        Operand::Difference(_, term) => (term, false),
    };
    let (name, params) = match term {
        Term::Number(number) => ("number", vec![("number".to_owned(), 64, number)]),
        Term::Field(id) => (&*format.fields[usize::from(id.0)].name, Vec::new()),
        Term::Counter(id) => (&*format.counters[usize::from(id.0)].name, Vec::new()),
    };
    let action = combined_with(name, is_product);
    Some((combine_table(&format.counters[counter].name), (format!("Subscriptions.{action}"), params)))
}

/// Returns the number of a function in the program.
fn number(function: UpdateFunction) -> u128 {
    match function {
        UpdateFunction::Set => 1,
        UpdateFunction::Add => 2,
        UpdateFunction::Subtract => 3,
        UpdateFunction::Min => 4,
        UpdateFunction::Max => 5,
    }
}

/// Returns the entry that links a slot to its aggregate. Without one, only the key matters.
fn link_entry(of: &SlotUse) -> Entity {
    let table = link_table(of.slot);
    Entity::Table(ProgramEntry {
        keys: vec![("slot".to_owned(), 16, Matched::Exact(of.slot.into()))],
        priority: None,
        action: format!("Subscriptions.to_{table}"),
        params: of.aggregate.as_ref().map(|aggregate| link_params(of, aggregate)).unwrap_or_default(),
        table: format!("Subscriptions.{table}"),
    })
}

/// Returns the slot and the aggregate that an entry links; `None` if no message reaches the entry, or no rule can have
/// such an aggregate.
pub(crate) fn parse_link_entry(entry: &ProgramEntry) -> Option<SlotUse> {
    let slot = entry.table.strip_prefix(&format!("Subscriptions.{}", link_table("")))?.parse().ok()?;
    let is_reached =
        entry.keys.iter().any(|(name, _, matched)| name == "slot" && *matched == Matched::Exact(u128::from(slot)));
    let param = |name: &str| Some(entry.params.iter().find(|(other, ..)| other == name)?.2);
    parse_link(slot, param).filter(|_| is_reached)
}

/// Returns the update of a slot's link. `linked` has the slots that are linked.
pub(crate) fn link_update(of: &SlotUse, linked: &mut BTreeSet<u16>) -> Option<entries::Update> {
    let entry = link_entry(of);
    match of.aggregate {
        Some(_) if linked.insert(of.slot) => Some(entries::Update::Insert(entry)),
        Some(_) => Some(entries::Update::Modify(entry)),
        None => linked.remove(&of.slot).then_some(entries::Update::Delete(entry)),
    }
}

/// Returns the entry for the cell of a key.
pub(crate) fn key_cell(key_cell: &KeyCell, format: &ProgramFormat) -> Entity {
    let parts: Vec<(String, u32)> = match &format.aggregates[usize::from(key_cell.computed)].computes {
        Some(of) => {
            let fields = of.by.iter().map(|id| &format.fields[usize::from(id.0)]);
            fields.map(|field| (field.name.clone(), field.width)).collect()
        }
        None => key_parts().map(|part| (part, key_width(format))).collect(),
    };
    let keys = parts.into_iter().zip(&key_cell.key).map(|((name, width), value)| (name, width, Matched::Exact(*value)));
    Entity::Table(ProgramEntry {
        table: format!("Subscriptions.{}", place_table(key_cell.computed.into())),
        keys: keys.collect(),
        priority: None,
        action: format!("Subscriptions.to_{}", place_table(key_cell.computed.into())),
        params: vec![("index".to_owned(), 32, key_cell.index.into())],
    })
}
