//! Reference semantics of counters and aggregates, against which registers in a data plane are tested.
//!
//! A message is first tested against the values before it; then the updates of its delivery are applied. Time is an
//! argument. A window begins with the first counted message after the end of the previous one; reads between two
//! windows see the initial values. Results saturate at their width.

use std::collections::HashMap;

use crate::compile::slots::SlotUse;
use crate::format::{MessageFormat, Window, max_of};
use crate::reference::evaluate::Message;
use crate::rule::{Aggregate, Function, Operand, Update, UpdateFunction};
use crate::tables::Delivery;

/// The contents of one window.
#[derive(Clone, Copy, Debug, Default)]
struct WindowState {
    /// End of a time window, in microseconds.
    end: u64,
    /// Number of updates.
    count: u128,
    /// Sum of the updates, or the counter's value.
    sum: u128,
    min: u128,
    max: u128,
}

impl WindowState {
    /// Returns the contents at a given time.
    fn at(self, window: Option<Window>, micros: u64) -> WindowState {
        match window {
            Some(Window::Micros(length)) if micros >= self.end => {
                WindowState { end: micros.saturating_add(length), ..WindowState::default() }
            }
            Some(Window::Packets(length)) if self.count >= u128::from(length) => WindowState::default(),
            _ => self,
        }
    }
}

/// Window contents by the values of an aggregate's key.
type ByKey = HashMap<Vec<u128>, WindowState>;

/// Counters and aggregates between messages.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    counters: Vec<WindowState>,
    /// By slot: the aggregate, and its windows by key.
    slots: Vec<Option<(Aggregate, ByKey)>>,
}

impl Memory {
    /// Returns counters at 0 and no aggregates.
    pub fn new(format: &MessageFormat) -> Memory {
        Memory {
            counters: vec![WindowState::default(); format.counters().len()],
            slots: vec![None; usize::from(format.slots)],
        }
    }

    /// Assigns slots to other aggregates according to [`AppliedChange::slots`](crate::AppliedChange::slots). Their
    /// state is reset.
    pub fn assign(&mut self, uses: &[SlotUse]) {
        for of in uses {
            self.slots[usize::from(of.slot)] = of.aggregate.clone().map(|aggregate| (aggregate, HashMap::new()));
        }
    }

    /// Fills in the counters and slots that a message's tests read at a given time.
    pub fn fill(&self, format: &MessageFormat, message: &mut Message, micros: u64) {
        for (at, seen) in self.counters.iter().enumerate() {
            message.counters[at] = seen.at(format.counters()[at].window, micros).sum;
        }
        for (at, slot) in self.slots.iter().enumerate() {
            let Some((aggregate, by_key)) = slot else { continue };
            let max = max_of(format.slot_width);
            let seen = key(format, message, aggregate).and_then(|key| by_key.get(&key)).copied().unwrap_or_default();
            let seen = seen.at(Some(aggregate.window), micros);
            message.slots[at] = match aggregate.function {
                Function::Min if seen.count == 0 => max,
                Function::Count => seen.count,
                Function::Sum => seen.sum,
                Function::Avg => seen.sum.checked_div(seen.count).unwrap_or(0),
                Function::Min => seen.min,
                Function::Max => seen.max,
            }
            .min(max);
        }
    }

    /// Applies the updates of a message's delivery.
    pub fn update(&mut self, format: &MessageFormat, message: &Message, delivery: &Delivery, micros: u64) {
        for update in &delivery.updates {
            self.count(format, message, update, micros);
        }
        for slot in &delivery.slots {
            let Some((aggregate, by_key)) = &mut self.slots[usize::from(*slot)] else { continue };
            let Some(key) = key(format, message, aggregate) else { continue };
            let max = max_of(format.slot_width);
            let value = aggregate.field.and_then(|field| message.field(format, field)).unwrap_or(0).min(max);
            let entry = by_key.entry(key).or_default();
            let seen = entry.at(Some(aggregate.window), micros);
            let is_first = seen.count == 0;
            *entry = WindowState {
                end: seen.end,
                count: seen.count + 1,
                sum: seen.sum.saturating_add(value).min(max),
                min: if is_first { value } else { seen.min.min(value) },
                max: seen.max.max(value),
            };
        }
    }

    fn count(&mut self, format: &MessageFormat, message: &Message, update: &Update, micros: u64) {
        let counter = format.get_counter(update.counter);
        let operand = match update.operand {
            Operand::Number(number) => Some(number),
            Operand::Field(field) => message.field(format, field),
        };
        let Some(operand) = operand else { return };
        let seen = &mut self.counters[usize::from(update.counter.0)];
        *seen = seen.at(counter.window, micros);
        seen.count += 1;
        seen.sum = match update.function {
            UpdateFunction::Set => operand,
            UpdateFunction::Add => seen.sum.saturating_add(operand),
            UpdateFunction::Subtract => seen.sum.saturating_sub(operand),
            UpdateFunction::Min => seen.sum.min(operand),
            UpdateFunction::Max => seen.sum.max(operand),
        }
        .min(max_of(counter.width));
    }
}

/// Returns the values of an aggregate's key in a message; `None` if a required field is absent.
fn key(format: &MessageFormat, message: &Message, aggregate: &Aggregate) -> Option<Vec<u128>> {
    let is_there = aggregate.fields().all(|field| message.field(format, field).is_some());
    let values = aggregate.by.iter().map(|field| message.field(format, *field));
    if is_there { values.collect() } else { None }
}
