//! Interns effects: each distinct effect of a rule gets a number, which the decision diagram stores in its terminals.

use std::collections::HashMap;

use crate::format::ActionId;
use crate::rule::{RuleAction, Update};

/// A single effect of a rule. Actions are split into effects so that rules share equal parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Effect {
    Port(u32),
    Controller,
    Call(ActionId, Vec<u128>),
    Update(Update),
    /// Updates the aggregate in this slot (see [`super::slots`]) with the message.
    Slot(u16),
}

impl Effect {
    /// Returns the effects of an action. `drop` has none: a message is dropped if no rule delivers it.
    pub fn of(action: &RuleAction) -> Vec<Effect> {
        match action {
            RuleAction::Forward(ports) => ports.iter().map(|port| Effect::Port(*port)).collect(),
            RuleAction::Drop => Vec::new(),
            RuleAction::ToController => vec![Effect::Controller],
            RuleAction::Call(id, values) => vec![Effect::Call(*id, values.clone())],
            RuleAction::Update(update) => vec![Effect::Update(update.clone())],
        }
    }
}

/// Interned effects with reference counts.
#[derive(Clone, Default)]
pub(crate) struct EffectInterner {
    effects: Vec<Option<Effect>>,
    uses: Vec<usize>,
    numbers: HashMap<Effect, u32>,
    /// Numbers whose count has dropped to zero; some may be in use again, or listed twice. They are reused only once no
    /// diagram can refer to them any more.
    idle: Vec<u32>,
    free: Vec<u32>,
}

impl EffectInterner {
    /// Interns an effect, adds a reference to it and returns its number.
    pub fn acquire(&mut self, effect: Effect) -> u32 {
        let number = match self.numbers.get(&effect) {
            Some(number) => *number,
            None => {
                let number = self.free.pop().unwrap_or(self.effects.len() as u32);
                if number as usize == self.effects.len() {
                    self.effects.push(None);
                    self.uses.push(0);
                }
                self.effects[number as usize] = Some(effect.clone());
                self.numbers.insert(effect, number);
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
    pub fn free_unused(&mut self) {
        for number in std::mem::take(&mut self.idle) {
            if self.uses[number as usize] == 0
                && let Some(effect) = self.effects[number as usize].take()
            {
                self.numbers.remove(&effect);
                self.free.push(number);
            }
        }
    }

    pub fn get(&self, number: u32) -> &Effect {
        self.effects[number as usize].as_ref().expect("numbers in diagrams are live")
    }
}
