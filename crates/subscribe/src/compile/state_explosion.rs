//! State explosion: one message is subject to many rules that test independent aggregates.
//!
//! Each combination of test results can need a delivery of its own. Tests of one aggregate's state imply one another;
//! tests of different states do not. Twenty rules with separate states that all apply to one message therefore double
//! the diagram 20 times. The fields of a message separate rules, its states never do.

use bdd::{Limits, Ref, Store};

use crate::compile::layout::ColumnKey;
use crate::compile::lower::{Lowering, balanced};
use crate::reference::evaluate::Message;
use crate::rule::Rule;
use crate::subscriptions::{RuleRecord, Subscriptions};

/// Minimum number of states that can make a diagram too large.
pub(crate) const MIN_STATES: usize = 8;
/// Budget of the first attempt, before the explosion is diagnosed: additional nodes, and steps.
pub(crate) const EXTRA_NODES: usize = 1 << 18;
pub(crate) const FIRST_STEPS: u64 = 20_000_000;
/// Number of nodes for one message above which its rules count as exploding.
const EXPLOSION_NODES: usize = 1 << 14;

impl Subscriptions {
    /// Returns the rules that apply to the message with the most states, if they are the reason that the diagram is too
    /// large.
    pub(crate) fn exploding_rules(&self) -> Option<Vec<Rule>> {
        let mut store = Store::new();
        let limits = |store: &Store| Limits { nodes: store.len() + EXTRA_NODES, bytes: usize::MAX, steps: FIRST_STEPS };
        store.set_limits(limits(&store));
        let message = self.most_states(&mut store)?;
        let mut rules = Vec::new();
        let mut functions = Vec::new();
        for (_, record) in self.records().filter(|(_, record)| !record.slots().is_empty()) {
            let then = store.constant(record.effects());
            let whole = self.lowering(&mut store, record, &record.slots()).rule(&record.rule.condition, then).ok()?;
            let left = self.beyond_fields(&store, whole, &message);
            if !left.is_set() {
                rules.push(record.rule.clone());
                functions.push(left);
            }
        }
        // The rest of all rules for this message is a subgraph of their diagram.
        store.set_limits(limits(&store));
        let crossed = match balanced(&mut store, &mut functions) {
            Ok(all) => store.reachable(all).len() > EXPLOSION_NODES,
            Err(_) => true,
        };
        (crossed && rules.len() >= MIN_STATES).then_some(rules)
    }

    /// Returns a message that counts for a maximum number of states.
    fn most_states(&self, store: &mut Store) -> Option<Message> {
        let mut parts = Vec::new();
        for (_, record) in self.records() {
            let slots = record.slots();
            for (slot, counted) in record.counted() {
                let then = store.constant(&[slot.into()]);
                parts.push(self.lowering(store, record, &slots).rule(counted, then).ok()?);
            }
        }
        let all = balanced(store, &mut parts).ok()?;
        let sets = store.reachable(all).into_iter().filter(|function| function.is_set());
        let most = sets.max_by_key(|set| store.set(*set).len())?;
        Some(self.message_for(store, all, most))
    }

    fn lowering<'a>(&'a self, store: &'a mut Store, record: &'a RuleRecord, slots: &'a [u16]) -> Lowering<'a> {
        Lowering { store, format: &self.format, layout: &self.layout, aggregates: &record.rule.aggregates, slots }
    }

    /// Follows a diagram by the message's fields and returns the subdiagram over states, which are the last columns.
    fn beyond_fields(&self, store: &Store, function: Ref, message: &Message) -> Ref {
        let mut at = function;
        while let Some(level) = store.level(at) {
            let key = self.layout.keys()[level as usize];
            if matches!(key, ColumnKey::Slot(_)) {
                break;
            }
            let value = message.column(&self.format, key);
            let arm = store.arms(at).take_while(|(first, _)| *first <= value).last();
            (_, at) = arm.expect("the first arm begins at 0");
        }
        at
    }
}
