//! Reference semantics of counters and aggregates, against which registers in a data plane are tested.
//!
//! A message is first tested against the values before it; then the updates of its delivery are applied. Time is an
//! argument. A window begins with the first counted message after the end of the previous one; reads between two
//! windows see an empty window, or with `over previous` the one that ended. Results saturate at their width.

use std::collections::HashMap;

use crate::compile::slots::SlotUse;
use crate::format::{MessageFormat, Window, max_of};
use crate::reference::evaluate::Message;
use crate::rule::{Aggregate, AggregateWindow, Function, Operand, Term, Update, UpdateFunction};
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

/// State of an aggregate for one key.
#[derive(Clone, Copy, Debug, Default)]
struct KeyState {
    /// The current window; the only one of an aggregate without windows.
    current: WindowState,
    /// The last complete window.
    previous: WindowState,
    /// The moving average, with [`AggregateWindow::fraction_bits`].
    moving: u128,
}

impl KeyState {
    /// Returns the state at a given time.
    fn at(self, window: AggregateWindow, micros: u64) -> KeyState {
        let current = self.current.at(window.length(), micros);
        let is_complete = current.count == 0 && self.current.count > 0;
        KeyState { current, previous: if is_complete { self.current } else { self.previous }, ..self }
    }

    /// Returns the value of the aggregate, if it has one.
    fn value(&self, aggregate: &Aggregate) -> Option<u128> {
        let seen = match aggregate.window {
            AggregateWindow::Previous(_) => self.previous,
            _ => self.current,
        };
        let is_any = seen.count > 0;
        match aggregate.function {
            Function::Count => Some(seen.count),
            Function::Sum => Some(seen.sum),
            Function::Avg => seen.sum.checked_div(seen.count),
            Function::Min => is_any.then_some(seen.min),
            Function::Max => is_any.then_some(seen.max),
            Function::Ewma => {
                let bits = aggregate.window.fraction_bits();
                is_any.then_some((self.moving + (1 << bits >> 1)) >> bits)
            }
        }
    }

    /// Adds a value to the current window; sums are at most `max`.
    fn add(&mut self, window: AggregateWindow, value: u128, max: u128) {
        let seen = self.current;
        let is_first = seen.count == 0;
        if let AggregateWindow::Decaying { shift } = window {
            let value = value << window.fraction_bits();
            self.moving = match value.checked_sub(self.moving) {
                _ if is_first => value,
                Some(above) => self.moving + (above >> shift),
                None => self.moving - ((self.moving - value) >> shift),
            };
        }
        self.current = WindowState {
            end: seen.end,
            count: seen.count + 1,
            sum: seen.sum.saturating_add(value).min(max),
            min: if is_first { value } else { seen.min.min(value) },
            max: seen.max.max(value),
        };
    }
}

/// State by the values of an aggregate's key.
type ByKey = HashMap<Vec<u128>, KeyState>;

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
            message.slots[at] = seen.at(aggregate.window, micros).value(aggregate).map(|value| value.min(max));
        }
    }

    /// Applies the updates of a message's delivery.
    pub fn update(&mut self, format: &MessageFormat, message: &Message, delivery: &Delivery, micros: u64) {
        // Updates see the counters before the message.
        let values = self.counters.iter().zip(format.counters());
        let before: Vec<u128> = values.map(|(seen, counter)| seen.at(counter.window, micros).sum).collect();
        for update in &delivery.updates {
            self.count(format, (message, &before), update, micros);
        }
        for slot in &delivery.slots {
            let Some((aggregate, by_key)) = &mut self.slots[usize::from(*slot)] else { continue };
            let Some(key) = key(format, message, aggregate) else { continue };
            let max = max_of(format.slot_width);
            let value = aggregate.field.and_then(|field| message.field(format, field)).unwrap_or(0).min(max);
            let entry = by_key.entry(key).or_default();
            *entry = entry.at(aggregate.window, micros);
            entry.add(aggregate.window, value, max);
        }
    }

    fn count(&mut self, format: &MessageFormat, (message, before): (&Message, &[u128]), update: &Update, micros: u64) {
        let counter = format.get_counter(update.counter);
        let max = max_of(counter.width);
        let term = |term: Term| match term {
            Term::Number(number) => Some(number.min(max)),
            Term::Field(field) => message.field(format, field).map(|value| value.min(max)),
            Term::Counter(id) => Some(before[usize::from(id.0)]),
        };
        let both = |one: Term, other: Term| Some((term(one)?, term(other)?));
        let operand = match update.operand {
            Operand::Term(of) => term(of),
            Operand::Product(one, other) => both(one, other).map(|(one, other)| one.saturating_mul(other).min(max)),
            Operand::Difference(one, other) => both(one, other).map(|(one, other)| one.saturating_sub(other)),
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
