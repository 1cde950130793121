//! Interning of effects: each distinct effect of a rule gets a number, which terminals of the decision diagram hold.

use std::collections::HashMap;

use crate::format::ActionId;
use crate::rule::{Action, Update};

/// A single effect of a rule. Actions are split into effects so that rules share equal parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Act {
    Port(u32),
    Drop,
    Controller,
    Call(ActionId, Vec<u128>),
    Update(Update),
    /// Counts the message for the aggregate in this slot.
    Slot(u16),
}

impl Act {
    /// Returns the effects of an action.
    pub fn of(action: &Action) -> Vec<Act> {
        match action {
            Action::Forward(ports) => ports.iter().map(|port| Act::Port(*port)).collect(),
            Action::Drop => vec![Act::Drop],
            Action::ToController => vec![Act::Controller],
            Action::Call(id, values) => vec![Act::Call(*id, values.clone())],
            Action::Update(update) => vec![Act::Update(update.clone())],
        }
    }
}

/// Interned effects with reference counts.
#[derive(Clone, Default)]
pub(crate) struct Acts {
    list: Vec<Option<Act>>,
    uses: Vec<usize>,
    numbers: HashMap<Act, u32>,
    /// Numbers with no references. They are reused only once no diagram can refer to them any more.
    idle: Vec<u32>,
    free: Vec<u32>,
}

impl Acts {
    /// Interns an effect, adds a reference to it and returns its number.
    pub fn hold(&mut self, act: Act) -> u32 {
        let number = match self.numbers.get(&act) {
            Some(number) => *number,
            None => {
                let number = self.free.pop().unwrap_or(self.list.len() as u32);
                if number as usize == self.list.len() {
                    self.list.push(None);
                    self.uses.push(0);
                }
                self.list[number as usize] = Some(act.clone());
                self.numbers.insert(act, number);
                number
            }
        };
        self.uses[number as usize] += 1;
        number
    }

    /// Drops one reference.
    pub fn release(&mut self, number: u32) {
        let uses = &mut self.uses[number as usize];
        *uses -= 1;
        if *uses == 0 {
            self.idle.push(number);
        }
    }

    /// Frees all unreferenced numbers. No diagram may refer to them any more.
    pub fn settle(&mut self) {
        for number in std::mem::take(&mut self.idle) {
            if self.uses[number as usize] == 0
                && let Some(act) = self.list[number as usize].take()
            {
                self.numbers.remove(&act);
                self.free.push(number);
            }
        }
    }

    pub fn get(&self, number: u32) -> &Act {
        self.list[number as usize].as_ref().expect("a number in a set is in use")
    }
}
