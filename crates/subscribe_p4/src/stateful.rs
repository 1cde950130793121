//! What the tables that keep counters and aggregates are told.

use subscribe::{Delivery, Operand, Place, Update, UpdateFunction};

use crate::entries::{Entity, Matched, Params, TableEntry};
use crate::format::Format;
use crate::rules::Rules;
use crate::write::{COUNTS, place_table, update_table, with_field};

/// A table, and what it does with messages of a leaf.
type Told = (String, (String, Params));

/// What a leaf has the aggregates count.
pub(crate) fn counts(delivery: &Delivery, rules: &Rules) -> Option<Told> {
    let slots = delivery.slots.iter().fold(0u128, |slots, slot| slots | 1 << slot);
    let params = vec![("slots".to_owned(), u32::from(rules.format.slots), slots)];
    (slots != 0).then(|| (COUNTS.to_owned(), ("Subscriptions.count_for".to_owned(), params)))
}

/// How a leaf updates a counter.
pub(crate) fn update(delivery: &Delivery, counter: usize, format: &Format) -> Option<Told> {
    let mut updates = delivery.updates.iter().filter(|update| usize::from(update.counter.0) == counter);
    let Update { function, operand, .. } = updates.next()?;
    assert!(updates.next().is_none(), "the target takes one update of a counter");
    let mut params = vec![("function".to_owned(), 3, number(*function))];
    let action = match operand {
        Operand::Number(number) => {
            params.push(("number".to_owned(), 64, *number));
            "by_number".to_owned()
        }
        Operand::Field(id) => with_field(&format.fields[usize::from(id.0)].name),
    };
    Some((update_table(&format.counters[counter].name), (format!("Subscriptions.{action}"), params)))
}

/// How the program numbers functions.
fn number(function: UpdateFunction) -> u128 {
    match function {
        UpdateFunction::Set => 1,
        UpdateFunction::Add => 2,
        UpdateFunction::Subtract => 3,
        UpdateFunction::Min => 4,
        UpdateFunction::Max => 5,
    }
}

/// The entry of a key's place.
pub(crate) fn place(place: &Place, format: &Format) -> Entity {
    let by = &format.aggregates[usize::from(place.computed)].computes.by;
    let fields = by.iter().map(|id| &format.fields[usize::from(id.0)]);
    let keys = fields.zip(&place.key).map(|(field, value)| (field.name.clone(), field.width, Matched::Exact(*value)));
    Entity::Table(TableEntry {
        table: format!("Subscriptions.{}", place_table(place.computed.into())),
        keys: keys.collect(),
        priority: None,
        action: format!("Subscriptions.to_{}", place_table(place.computed.into())),
        params: vec![("index".to_owned(), 32, place.index.into())],
    })
}
