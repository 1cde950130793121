//! Reverts a change that the switch did not take.

use std::collections::BTreeMap;

use subscribe::{Refusal, Rule, RuleId, Subscriptions};
use subscribe_p4::entries::Installer;

use super::compile_error::render_without_source;
use super::{AppliedChange, HeldRule, RuleSet, RuleSetError};

/// The rules that a change added and removed, and the state before it.
pub(super) struct UndoRecord<'a> {
    pub added: Vec<u64>,
    pub removed: Vec<(u64, HeldRule, Rule)>,
    /// The compiled rules before the change, for a switch that applies updates one after the other: with the same
    /// numbers of states it can be repaired from any update at which it stopped.
    pub before: Option<Box<(Subscriptions, Installer<'a>)>>,
    /// Number of compilations from scratch before the change. `before` is useless after another one, which a switch
    /// with another order of fields causes, for example.
    pub compiled: u64,
}

impl<'a> RuleSet<'a> {
    /// Reverts a change. The switch has to be compared with [`RuleSet::full_install`] afterwards.
    ///
    /// # Errors
    /// If the earlier rules cannot be compiled any more. The change stays then.
    pub fn undo(&mut self, changed: AppliedChange<'a>) -> Result<(), RuleSetError> {
        self.undo_change(changed.undo)
    }

    pub(super) fn undo_change(&mut self, undo: UndoRecord<'a>) -> Result<(), RuleSetError> {
        let UndoRecord { added, removed, before, compiled } = undo;
        let gone: Vec<(u64, HeldRule)> = added.iter().filter_map(|id| Some((*id, self.release(*id)?))).collect();
        if let Some(before) = before.filter(|_| compiled == self.compiled) {
            (self.subscriptions, self.installer) = *before;
            removed.into_iter().for_each(|(id, held, _)| self.hold(id, held));
            return Ok(());
        }
        self.bump_generation();
        let ids: Vec<RuleId> = gone.iter().map(|(_, held)| held.rule).collect();
        let rules: Vec<Rule> = removed.iter().map(|(_, _, rule)| rule.clone()).collect();
        let back = match self.subscriptions.change(&ids, rules.clone()) {
            Ok(applied) => Ok(applied.added),
            // The decision diagrams of both changes together may exceed a limit that those of one do not.
            Err(_) => self.compile_back(rules),
        };
        let back = match back {
            Ok(back) => back,
            Err(refusal) => {
                gone.into_iter().for_each(|(id, held)| self.hold(id, held));
                return Err(render_without_source(&refusal));
            }
        };
        for ((id, held, _), rule) in removed.into_iter().zip(back) {
            self.hold(id, HeldRule { rule, ..held });
        }
        self.renumber()
    }

    /// Compiles the current rules and these from scratch, and returns the compiler's ids of these. The set is unchanged
    /// if they cannot be compiled.
    fn compile_back(&mut self, rules: Vec<Rule>) -> Result<Vec<RuleId>, Refusal> {
        let kept: Vec<(u64, Rule)> = self
            .held
            .iter()
            .filter_map(|(id, held)| Some((*id, self.subscriptions.rule(held.rule)?.clone())))
            .collect();
        let all = kept.iter().map(|(_, rule)| rule.clone()).chain(rules).collect();
        let mut subscriptions = self.without_rules(&self.written.layout, self.update_mode, &BTreeMap::new());
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
