//! Determines the column order of a diagram: the order in which values are tested.

use std::collections::HashMap;

use crate::compile::order_search;
use crate::format::{CounterId, FieldId, HeaderId, MessageFormat, Subject};
use crate::rule::{Condition, Rule};

/// The value that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKey {
    /// Validity of a header, one bit.
    Valid(HeaderId),
    /// A field.
    Field(FieldId),
    /// A counter.
    Counter(CounterId),
    /// The value of the aggregate in a slot.
    Slot(u16),
}

/// Column order: the validity of every header, then fields, counters and slots. Tables follow it. It is part of the
/// generated program and independent of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    keys: Vec<ColumnKey>,
    columns: HashMap<ColumnKey, u32>,
    validities: usize,
}

/// Error in a requested column order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// No field or counter has this name, or several do.
    Unknown(String),
    /// The name occurs twice.
    Twice(String),
}

impl std::fmt::Display for OrderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OrderError::Unknown(name) => write!(f, "the order names `{name}`, but there is no such field or counter"),
            OrderError::Twice(name) => write!(f, "the order names `{name}` twice"),
        }
    }
}

impl std::error::Error for OrderError {}

impl ColumnLayout {
    /// Returns the order that begins with these fields and counters (named as in rules), followed by the others as
    /// their annotations suggest. The result is independent of rules, so a program and entries compiled separately
    /// agree.
    /// # Errors
    /// [`OrderError`], if a name is unknown or occurs twice.
    pub fn forced(format: &MessageFormat, names: &[&str]) -> Result<ColumnLayout, OrderError> {
        let mut keys = Vec::new();
        for name in names {
            let key = match format.subject(name) {
                Ok(Subject::Field(id)) => ColumnKey::Field(id),
                Ok(Subject::Counter(id)) => ColumnKey::Counter(id),
                _ => return Err(OrderError::Unknown((*name).to_owned())),
            };
            if keys.contains(&key) {
                return Err(OrderError::Twice((*name).to_owned()));
            }
            keys.push(key);
        }
        Ok(Self::completed(format, keys))
    }

    /// Searches for the order that needs the fewest entries for rules like these, on a sample and in bounded time
    /// (about 0.1 s). Equal rules give equal orders. Without rules, the annotations decide: fields for exact match,
    /// then prefixes, then ranges, each in order of declaration. Counters and aggregates come last.
    pub fn sensible<'a>(format: &MessageFormat, rules: impl IntoIterator<Item = &'a Rule>) -> ColumnLayout {
        Self::of_fields(format, order_search::fields(format, rules.into_iter().collect()))
    }

    /// Returns the shortest list of short names, at least one, for which [`ColumnLayout::forced`] returns this order.
    pub fn names(&self, format: &MessageFormat) -> Vec<String> {
        let keys: Vec<ColumnKey> = self.named().collect();
        let least = (1..keys.len()).find(|count| Self::completed(format, keys[..*count].to_vec()).keys == self.keys);
        keys[..least.unwrap_or(keys.len())].iter().map(|key| key.short_name(format)).collect()
    }

    /// Returns the short names of the fields and counters, in order.
    pub fn shown(&self, format: &MessageFormat) -> Vec<String> {
        self.named().map(|key| key.short_name(format)).collect()
    }

    /// Returns the fields and counters, in order.
    fn named(&self) -> impl Iterator<Item = ColumnKey> + '_ {
        self.keys.iter().copied().filter(|key| matches!(key, ColumnKey::Field(_) | ColumnKey::Counter(_)))
    }

    /// Returns the order of these columns followed by all other fields as annotated.
    fn completed(format: &MessageFormat, mut keys: Vec<ColumnKey>) -> ColumnLayout {
        let rest = order_search::annotated(format).into_iter().filter(|key| !keys.contains(key));
        keys.extend(rest.collect::<Vec<ColumnKey>>());
        Self::of_fields(format, keys)
    }

    /// Returns the order of these columns with validity columns before and the remaining columns after them.
    pub(crate) fn of_fields(format: &MessageFormat, fields: Vec<ColumnKey>) -> ColumnLayout {
        let headers = (0..format.headers().len() as u16).map(|id| ColumnKey::Valid(HeaderId(id)));
        let mut keys: Vec<ColumnKey> = headers.chain(fields).collect();
        let counters = (0..format.counters().len() as u16).map(|id| ColumnKey::Counter(CounterId(id)));
        keys.extend(counters.filter(|key| !keys.contains(key)).collect::<Vec<ColumnKey>>());
        keys.extend(slots(format).into_iter().map(ColumnKey::Slot));
        let columns = keys.iter().enumerate().map(|(at, key)| (*key, at as u32)).collect();
        ColumnLayout { keys, columns, validities: format.headers().len() }
    }

    /// Returns the columns in order: all [`ColumnKey::Valid`] come first.
    pub fn keys(&self) -> &[ColumnKey] {
        &self.keys
    }

    /// Returns the number of [`ColumnKey::Valid`] columns.
    pub fn validities(&self) -> usize {
        self.validities
    }

    /// Returns the position of a column in the order.
    pub(crate) fn column(&self, key: ColumnKey) -> u32 {
        self.columns[&key]
    }
}

impl ColumnKey {
    /// Whether the column is the validity of a header.
    pub fn is_validity(self) -> bool {
        matches!(self, ColumnKey::Valid(_))
    }

    /// Returns the width of the column in bits.
    pub fn width(self, format: &MessageFormat) -> u32 {
        match self {
            ColumnKey::Valid(_) => 1,
            ColumnKey::Field(id) => format.get(id).width,
            ColumnKey::Counter(id) => format.get_counter(id).width,
            ColumnKey::Slot(slot) => format.slot_key_width(slot),
        }
    }

    /// Returns the display name of the column: `valid(add_order)`, `add_order.price`, `counter`, `slot 3 max(price) by
    /// stock over 1s`. The aggregate in a slot's name distinguishes it from the same slot of another format.
    pub fn name(self, format: &MessageFormat) -> String {
        match self {
            ColumnKey::Valid(id) => format!("valid({})", format.get_header(id).name),
            ColumnKey::Field(id) => format.get(id).name.clone(),
            ColumnKey::Counter(id) => format.get_counter(id).name.clone(),
            ColumnKey::Slot(slot) => match format.declared_in(slot) {
                Some(declared) => format!("slot {slot} {}", declared.shown(format)),
                None => format!("slot {slot}"),
            },
        }
    }

    /// Returns the shortest unique suffix of the name of a field or counter.
    fn short_name(self, format: &MessageFormat) -> String {
        let name = self.name(format);
        let is_it = |ending: &&str| match (format.subject(ending), self) {
            (Ok(Subject::Field(id)), ColumnKey::Field(own)) => id == own,
            (Ok(Subject::Counter(id)), ColumnKey::Counter(own)) => id == own,
            _ => false,
        };
        let endings = name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]);
        endings.clone().find(is_it).unwrap_or(&name).to_owned()
    }
}

/// Returns the slots interleaved: the first slot of every aggregate, then the second of every aggregate. Rules that
/// test several aggregates under one condition then have theirs side by side. (With all slots of one aggregate before
/// those of the next, the diagram between them would have to remember the results of every rule.)
fn slots(format: &MessageFormat) -> Vec<u16> {
    let mut behind = 0;
    let mut slots = Vec::new();
    for computed in format.computed() {
        slots.extend((0..computed.slots).map(|at| (at, behind + at)));
        behind += computed.slots;
    }
    slots.extend((behind..format.slots).map(|slot| (slot - behind, slot)));
    slots.sort_unstable();
    slots.into_iter().map(|(_, slot)| slot).collect()
}

/// Calls `each` for every test of a condition.
pub(crate) fn visit<'a>(condition: &'a Condition, each: &mut impl FnMut(&'a crate::rule::Test)) {
    match condition {
        Condition::Test(test) => each(test),
        Condition::Not(inner) => visit(inner, each),
        Condition::All(list) | Condition::Any(list) => list.iter().for_each(|part| visit(part, each)),
        Condition::Always | Condition::Never | Condition::Valid { .. } => {}
    }
}
