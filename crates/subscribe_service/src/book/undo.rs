//! Changes that are made as if they had not been.

use subscribe::{Refusal, Rule, RuleId, Subscriptions};
use subscribe_p4::entries::Installer;

use super::told::told_anywhere;
use super::{Book, Changed, Held, subscriptions};

/// What a change took away and brought.
pub(super) struct Undo<'a> {
    pub added: Vec<u64>,
    pub removed: Vec<(u64, Held, Rule)>,
    /// What was compiled, for a switch that takes writes one after the other: states have to have the numbers that they had, so
    /// that it can be taken back from where it stopped.
    pub before: Option<Box<(Subscriptions, Installer<'a>)>>,
    /// How often everything had been compiled from nothing. What was there before is of no use once that happened again, for a
    /// switch of another order, say.
    pub compiled: u64,
}

impl<'a> Book<'a> {
    /// Makes a change as if it had not been. What the switch has is to be held against [`Book::everything`] then.
    ///
    /// # Errors
    /// If what was before cannot be compiled any more, for people; then the change stays.
    pub fn undo(&mut self, changed: Changed<'a>) -> Result<(), String> {
        self.undo_change(changed.undo)
    }

    pub(super) fn undo_change(&mut self, undo: Undo<'a>) -> Result<(), String> {
        let Undo { added, removed, before, compiled } = undo;
        let gone: Vec<(u64, Held)> = added.iter().filter_map(|id| Some((*id, self.let_go(*id)?))).collect();
        if let Some(before) = before.filter(|_| compiled == self.compiled) {
            (self.subscriptions, self.installer) = *before;
            removed.into_iter().for_each(|(id, held, _)| self.hold(id, held));
            return Ok(());
        }
        self.part();
        let ids: Vec<RuleId> = gone.iter().map(|(_, held)| held.rule).collect();
        let rules: Vec<Rule> = removed.iter().map(|(_, _, rule)| rule.clone()).collect();
        let back = match self.subscriptions.change(&ids, rules.clone()) {
            Ok(applied) => Ok(applied.added),
            // The diagrams of both may be too many where either are not.
            Err(_) => self.compile_back(rules),
        };
        let back = match back {
            Ok(back) => back,
            Err(refusal) => {
                gone.into_iter().for_each(|(id, held)| self.hold(id, held));
                return Err(told_anywhere(&refusal));
            }
        };
        for ((id, held, _), rule) in removed.into_iter().zip(back) {
            self.hold(id, Held { rule, ..held });
        }
        self.install_anew()
    }

    /// Compiles what is held and these rules from nothing; their numbers. If they are refused, everything is as before.
    fn compile_back(&mut self, rules: Vec<Rule>) -> Result<Vec<RuleId>, Refusal> {
        let kept: Vec<(u64, Rule)> = self
            .held
            .iter()
            .filter_map(|(id, held)| Some((*id, self.subscriptions.rule(held.rule)?.clone())))
            .collect();
        let all = kept.iter().map(|(_, rule)| rule.clone()).chain(rules).collect();
        let mut subscriptions = subscriptions(self.program, &self.written.layout, self.writes);
        let mut numbers = subscriptions.change(&[], all)?.added;
        self.subscriptions = subscriptions;
        self.compiled += 1;
        let back = numbers.split_off(kept.len());
        for ((id, _), rule) in kept.iter().zip(numbers) {
            if let Some(held) = self.held.get_mut(id) {
                held.rule = rule;
            }
        }
        Ok(back)
    }
}
