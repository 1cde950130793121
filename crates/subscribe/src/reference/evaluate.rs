//! Reference semantics of rules: direct evaluation, against which all faster implementations are tested.

use crate::compile::layout::ColumnKey;
use crate::format::{FieldId, HeaderId, MessageFormat, Subject};
use crate::rule::{Aggregate, Condition, Rule};

/// A message with the counter and aggregate values that its tests read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Validity of each header, by [`HeaderId`].
    pub valid: Vec<bool>,
    /// Value of each field, by [`FieldId`]; ignored if the field's header is not valid.
    pub fields: Vec<u128>,
    /// Value of each counter before this message, by [`CounterId`](crate::CounterId).
    pub counters: Vec<u128>,
    /// Value of each slot's aggregate before this message, for this message's key; `None` if it has no value.
    pub slots: Vec<Option<u128>>,
}

impl Message {
    /// Returns a message of zeros without a valid header, before which there was no other message.
    pub fn empty(format: &MessageFormat) -> Message {
        Message {
            valid: vec![false; format.headers().len()],
            fields: vec![0; format.fields().len()],
            counters: vec![0; format.counters().len()],
            slots: (0..format.slots).map(|slot| format.no_value(slot).is_none().then_some(0)).collect(),
        }
    }

    /// Sets a field and makes its header valid.
    pub fn set(&mut self, format: &MessageFormat, field: FieldId, value: u128) {
        self.fields[usize::from(field.0)] = value;
        if let Some(header) = format.get(field).header {
            self.valid[usize::from(header.0)] = true;
        }
    }

    /// Whether a header is valid.
    pub fn is_valid(&self, header: HeaderId) -> bool {
        self.valid[usize::from(header.0)]
    }

    /// Returns the value of a field if its header is valid.
    pub fn field(&self, format: &MessageFormat, field: FieldId) -> Option<u128> {
        let header = format.get(field).header;
        header.is_none_or(|header| self.is_valid(header)).then(|| self.fields[usize::from(field.0)])
    }

    /// Sets the value of a column.
    pub fn put(&mut self, format: &MessageFormat, key: ColumnKey, value: u128) {
        match key {
            ColumnKey::Valid(id) => self.valid[usize::from(id.0)] = value != 0,
            ColumnKey::Field(id) => self.fields[usize::from(id.0)] = value,
            ColumnKey::Counter(id) => self.counters[usize::from(id.0)] = value,
            ColumnKey::Slot(slot) => {
                let is_value = format.no_value(slot).is_none_or(|none| value < none);
                self.slots[usize::from(slot)] = is_value.then_some(value);
            }
        }
    }

    /// Returns the value of a column.
    pub fn column(&self, format: &MessageFormat, key: ColumnKey) -> u128 {
        match key {
            ColumnKey::Valid(id) => u128::from(self.is_valid(id)),
            ColumnKey::Field(id) => self.fields[usize::from(id.0)],
            ColumnKey::Counter(id) => self.counters[usize::from(id.0)],
            ColumnKey::Slot(slot) => {
                let value = self.slots[usize::from(slot)];
                value.or_else(|| format.no_value(slot)).unwrap_or(0)
            }
        }
    }
}

/// A message from the perspective of one rule.
pub(crate) struct View<'a> {
    pub format: &'a MessageFormat,
    pub message: &'a Message,
    /// Aggregates of the rule; `slots` has the slot of each.
    pub aggregates: &'a [Aggregate],
    pub slots: &'a [u16],
}

impl View<'_> {
    /// Returns the value that a test reads; `None` if a header is not valid, or an aggregate has no value.
    pub fn value(&self, subject: Subject) -> Option<u128> {
        match subject {
            Subject::Field(id) => self.message.field(self.format, id),
            Subject::Counter(id) => Some(self.message.counters[usize::from(id.0)]),
            Subject::Aggregate(at) => {
                let mut fields = self.aggregates[usize::from(at)].fields();
                let is_there = fields.all(|id| self.message.field(self.format, id).is_some());
                if is_there { self.message.slots[usize::from(self.slots[usize::from(at)])] } else { None }
            }
        }
    }

    pub fn holds(&self, condition: &Condition) -> bool {
        condition.holds(&|header| self.message.is_valid(header), &|subject| self.value(subject))
    }
}

impl Condition {
    /// Whether the condition holds, given header validity and the values of fields, counters and aggregates.
    pub fn holds(&self, valid: &impl Fn(HeaderId) -> bool, value: &impl Fn(Subject) -> Option<u128>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Never => false,
            Condition::Valid { header, .. } => valid(*header),
            // A test of a subject without a value is false.
            Condition::Test(test) => value(test.subject).is_some_and(|value| test.values.contains(value)),
            Condition::Not(inner) => !inner.holds(valid, value),
            Condition::All(list) => list.iter().all(|part| part.holds(valid, value)),
            Condition::Any(list) => list.iter().any(|part| part.holds(valid, value)),
        }
    }
}

impl Rule {
    /// Whether the rule matches a message. The message's slots hold the rule's aggregates in the order of
    /// [`Rule::aggregates`]. This is for a single rule; [`Subscriptions`](crate::Subscriptions) evaluates many.
    pub fn matches(&self, format: &MessageFormat, message: &Message) -> bool {
        let slots: Vec<u16> = (0..self.aggregates.len() as u16).collect();
        View { format, message, aggregates: &self.aggregates, slots: &slots }.holds(&self.condition)
    }
}

impl Aggregate {
    /// Returns every field that must be present for the aggregate to have a value: its input and its key.
    pub fn fields(&self) -> impl Iterator<Item = FieldId> + '_ {
        self.field.iter().chain(&self.by).copied()
    }
}
