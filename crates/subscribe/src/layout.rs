//! The columns of a diagram: what is tested, in which order.

use std::collections::{BTreeSet, HashMap};

use crate::format::{CounterId, FieldId, Format, HeaderId, Match, Subject};
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
#[derive(Clone, Debug)]
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
    /// These fields and counters first, in this order (names as rules write them); then the others by
    /// [`Layout::sensible`].
    ///
    /// # Errors
    /// [`OrderError`], if a name is none or comes twice.
    pub fn forced(format: &Format, names: &[&str], rules: &[Rule]) -> Result<Layout, OrderError> {
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
        Ok(Self::with(format, keys, rules))
    }

    /// An order that suits most rules like these, which may be none: fields that are only asked for values before those
    /// that are asked for ranges (values part the rules into groups that do not meet any more), among them those with
    /// fewer different bounds first, then as declared. Counters and aggregates come last.
    pub fn sensible(format: &Format, rules: &[Rule]) -> Layout {
        Self::with(format, Vec::new(), rules)
    }

    fn with(format: &Format, forced: Vec<Key>, rules: &[Rule]) -> Layout {
        // Bounds and whether there are ranges, by field.
        let mut bounds: Vec<(bool, BTreeSet<u128>)> = vec![Default::default(); format.fields().len()];
        for rule in rules {
            visit(&rule.condition, &mut |test| {
                if let Subject::Field(id) = test.subject {
                    let (ranges, bounds) = &mut bounds[usize::from(id.0)];
                    // `!=` has two long ranges, and asks for a value all the same.
                    let max = format.get(id).max();
                    let of_values = |list: &[(u128, u128)]| list.iter().all(|(first, last)| first == last);
                    *ranges |= !of_values(test.values.list()) && !of_values(test.values.complement(max).list());
                    bounds.extend(test.values.list().iter().flat_map(|(first, last)| [*first, *last]));
                }
            });
        }
        let fields = (0..format.fields().len() as u16).map(FieldId);
        let mut rest: Vec<Key> = fields.map(Key::Field).filter(|key| !forced.contains(key)).collect();
        rest.sort_by_key(|key| {
            let Key::Field(id) = *key else { return (0, false, 0) };
            let (ranges, bounds) = &bounds[usize::from(id.0)];
            let kind = match format.get(id).matching {
                Match::Exact => 0,
                Match::Lpm => 1,
                Match::Any | Match::Range => 2,
            };
            // Without rules, the annotation says what is to be expected.
            if rules.is_empty() { (kind, false, 0) } else { (u8::from(*ranges), kind > 0, bounds.len()) }
        });
        let counters = (0..format.counters().len() as u16).map(|id| Key::Counter(CounterId(id)));
        rest.extend(counters.filter(|key| !forced.contains(key)));
        rest.extend(slots(format).into_iter().map(Key::Slot));
        let headers = (0..format.headers().len() as u16).map(|id| Key::Valid(HeaderId(id)));
        let keys: Vec<Key> = headers.chain(forced).chain(rest).collect();
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

    /// What the column is called: `valid(add_order)`, `add_order.price`, `counter`, `slot 3`.
    pub fn name(self, format: &Format) -> String {
        match self {
            Key::Valid(id) => format!("valid({})", format.get_header(id).name),
            Key::Field(id) => format.get(id).name.clone(),
            Key::Counter(id) => format.get_counter(id).name.clone(),
            Key::Slot(slot) => format!("slot {slot}"),
        }
    }

    /// What people are told of the column: as [`Key::name`], with what a slot computes.
    pub(crate) fn described(self, format: &Format) -> String {
        let computed = match self {
            Key::Slot(slot) => format.computed_in(slot).map(|at| &format.computed()[at].aggregate),
            _ => None,
        };
        match computed {
            Some(aggregate) => format!("{}: {}", self.name(format), aggregate.shown(format)),
            None => self.name(format),
        }
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
