//! The columns of a diagram: what is tested, in which order.

use std::collections::HashMap;

use crate::format::{CounterId, FieldId, Format, HeaderId, Subject};
use crate::order;
use crate::rule::{Condition, Rule};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// Whether a header is valid, one bit.
    Valid(HeaderId),
    /// A field.
    Field(FieldId),
    /// A counter.
    Counter(CounterId),
    /// The value of the aggregate in a slot.
    Slot(u16),
}

/// The order of the columns: the validity of every header, then fields, counters and slots. Tables follow it, so it
/// belongs to the generated program and does not change with the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    keys: Vec<Key>,
    columns: HashMap<Key, u32>,
    validities: usize,
}

/// What is wrong with an order that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// There is no field or counter of this name, or several.
    Unknown(String),
    /// It comes twice.
    Twice(String),
}

impl std::fmt::Display for OrderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OrderError::Unknown(name) => write!(f, "the order names `{name}`, and there is no such field or counter"),
            OrderError::Twice(name) => write!(f, "the order names `{name}` twice"),
        }
    }
}

impl std::error::Error for OrderError {}

impl Layout {
    /// These fields and counters first, in this order (names as rules write them); then the others as their annotations
    /// suggest. No rules are asked, so that a program and entries made apart agree.
    ///
    /// # Errors
    /// [`OrderError`], if a name is none or comes twice.
    pub fn forced(format: &Format, names: &[&str]) -> Result<Layout, OrderError> {
        let mut keys = Vec::new();
        for name in names {
            let key = match format.subject(name) {
                Ok(Subject::Field(id)) => Key::Field(id),
                Ok(Subject::Counter(id)) => Key::Counter(id),
                _ => return Err(OrderError::Unknown((*name).to_owned())),
            };
            if keys.contains(&key) {
                return Err(OrderError::Twice((*name).to_owned()));
            }
            keys.push(key);
        }
        Ok(Self::completed(format, keys))
    }

    /// The order in which rules like these make few entries, found on a sample of them in bounded time (a tenth of a second
    /// or so); the same for the same rules. Without rules it is what the annotations suggest: fields that are asked for values,
    /// then prefixes, then ranges, and as declared. Counters and aggregates come last.
    pub fn sensible<'a>(format: &Format, rules: impl IntoIterator<Item = &'a Rule>) -> Layout {
        Self::of_fields(format, order::fields(format, rules.into_iter().collect()))
    }

    /// The names by which [`Layout::forced`] gives this order, as few and as short as do, and one at least.
    pub fn names(&self, format: &Format) -> Vec<String> {
        let keys: Vec<Key> = self.named().collect();
        let least = (1..keys.len()).find(|count| Self::completed(format, keys[..*count].to_vec()).keys == self.keys);
        keys[..least.unwrap_or(keys.len())].iter().map(|key| key.short_name(format)).collect()
    }

    /// What rules call the fields and counters, in order.
    pub fn shown(&self, format: &Format) -> Vec<String> {
        self.named().map(|key| key.short_name(format)).collect()
    }

    /// Fields and counters in order.
    fn named(&self) -> impl Iterator<Item = Key> + '_ {
        self.keys.iter().copied().filter(|key| matches!(key, Key::Field(_) | Key::Counter(_)))
    }

    /// These columns, and all other fields behind them as annotated.
    fn completed(format: &Format, mut keys: Vec<Key>) -> Layout {
        let rest = order::annotated(format).into_iter().filter(|key| !keys.contains(key));
        keys.extend(rest.collect::<Vec<Key>>());
        Self::of_fields(format, keys)
    }

    /// These columns, and what else there is before and behind them.
    pub(crate) fn of_fields(format: &Format, fields: Vec<Key>) -> Layout {
        let headers = (0..format.headers().len() as u16).map(|id| Key::Valid(HeaderId(id)));
        let mut keys: Vec<Key> = headers.chain(fields).collect();
        let counters = (0..format.counters().len() as u16).map(|id| Key::Counter(CounterId(id)));
        keys.extend(counters.filter(|key| !keys.contains(key)).collect::<Vec<Key>>());
        keys.extend(slots(format).into_iter().map(Key::Slot));
        let columns = keys.iter().enumerate().map(|(at, key)| (*key, at as u32)).collect();
        Layout { keys, columns, validities: format.headers().len() }
    }

    /// The columns in order: all [`Key::Valid`] come first.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// How many columns are [`Key::Valid`].
    pub fn validities(&self) -> usize {
        self.validities
    }

    /// Where a key is in the order.
    pub(crate) fn column(&self, key: Key) -> u32 {
        self.columns[&key]
    }
}

impl Key {
    /// Whether the column is the validity of a header.
    pub fn is_validity(self) -> bool {
        matches!(self, Key::Valid(_))
    }

    /// The width of the column, in bits.
    pub fn width(self, format: &Format) -> u32 {
        match self {
            Key::Valid(_) => 1,
            Key::Field(id) => format.get(id).width,
            Key::Counter(id) => format.get_counter(id).width,
            Key::Slot(_) => format.slot_width,
        }
    }

    /// What the column is called: `valid(add_order)`, `add_order.price`, `counter`, `slot 3 max(price) by stock over 1s`. With
    /// what it computes a slot does not pass for the slot of another format.
    pub fn name(self, format: &Format) -> String {
        match self {
            Key::Valid(id) => format!("valid({})", format.get_header(id).name),
            Key::Field(id) => format.get(id).name.clone(),
            Key::Counter(id) => format.get_counter(id).name.clone(),
            Key::Slot(slot) => match format.computed_in(slot) {
                Some(at) => format!("slot {slot} {}", format.computed()[at].aggregate.shown(format)),
                None => format!("slot {slot}"),
            },
        }
    }

    /// The shortest ending of the name of a field or counter that means it.
    fn short_name(self, format: &Format) -> String {
        let name = self.name(format);
        let is_it = |ending: &&str| match (format.subject(ending), self) {
            (Ok(Subject::Field(id)), Key::Field(own)) => id == own,
            (Ok(Subject::Counter(id)), Key::Counter(own)) => id == own,
            _ => false,
        };
        let endings = name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]);
        endings.clone().find(is_it).unwrap_or(&name).to_owned()
    }
}

/// The first slot of every aggregate, then the second of every one: rules that test several aggregates under one condition have
/// theirs side by side. (With all of one aggregate before those of the next, a diagram would remember between them what every
/// rule found.)
fn slots(format: &Format) -> Vec<u16> {
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

/// Every test of a condition.
pub(crate) fn visit<'a>(condition: &'a Condition, each: &mut impl FnMut(&'a crate::rule::Test)) {
    match condition {
        Condition::Test(test) => each(test),
        Condition::Not(inner) => visit(inner, each),
        Condition::All(list) | Condition::Any(list) => list.iter().for_each(|part| visit(part, each)),
        Condition::Always | Condition::Never | Condition::Valid { .. } => {}
    }
}
