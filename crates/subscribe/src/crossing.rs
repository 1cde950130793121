//! Rules whose aggregates meet in one message, and come to more together than tables can hold.
//!
//! What a message does may be another thing for each combination of true and false tests. Tests of one aggregate's state follow
//! from one another; those of different states do not, so that 20 rules with states of their own, which all can be for one
//! message, double the diagram 20 times. The fields of a message part rules, its states never do.

use bdd::{Limits, Ref, Store};

use crate::evaluate::Message;
use crate::layout::Key;
use crate::lower::{Lowering, balanced};
use crate::rule::Rule;
use crate::subscriptions::{Held, Subscriptions};

/// Fewer states than this never make a diagram too large.
pub(crate) const FEW: usize = 8;
/// How far a diagram may grow before somebody asks whether rules cross: nodes besides those that are there, and steps.
pub(crate) const NODES: usize = 1 << 18;
pub(crate) const STEPS: u64 = 20_000_000;
/// Rules that make more nodes than this for one message cross.
const CROSSED: usize = 1 << 14;

impl Subscriptions {
    /// The rules that cross in the message that can count for the most states, if they are why the diagram is too large.
    pub(crate) fn crossing(&self) -> Option<Vec<Rule>> {
        let mut store = Store::new();
        let limits = |store: &Store| Limits { nodes: store.len() + NODES, bytes: usize::MAX, steps: STEPS };
        store.limit(limits(&store));
        let message = self.most_states(&mut store)?;
        let mut rules = Vec::new();
        let mut functions = Vec::new();
        for (_, held) in self.held().filter(|(_, held)| !held.slots().is_empty()) {
            let then = store.constant(held.acts());
            let whole = self.lowering(&mut store, held, &held.slots()).rule(&held.rule.condition, then).ok()?;
            let left = self.beyond_fields(&store, whole, &message);
            if !left.is_set() {
                rules.push(held.rule.clone());
                functions.push(left);
            }
        }
        // What is left of all rules for this message is a part of their diagram, whatever else is in it.
        store.limit(limits(&store));
        let crossed = match balanced(&mut store, &mut functions) {
            Ok(all) => store.reachable(all).len() > CROSSED,
            Err(_) => true,
        };
        (crossed && rules.len() >= FEW).then_some(rules)
    }

    /// A message that can count for as many states as any.
    fn most_states(&self, store: &mut Store) -> Option<Message> {
        let mut parts = Vec::new();
        for (_, held) in self.held() {
            let slots = held.slots();
            for (slot, counted) in held.counted() {
                let then = store.constant(&[slot.into()]);
                parts.push(self.lowering(store, held, &slots).rule(counted, then).ok()?);
            }
        }
        let all = balanced(store, &mut parts).ok()?;
        let sets = store.reachable(all).into_iter().filter(|function| function.is_set());
        let most = sets.max_by_key(|set| store.set(*set).len())?;
        Some(self.message_for(store, all, most))
    }

    fn lowering<'a>(&'a self, store: &'a mut Store, held: &'a Held, slots: &'a [u16]) -> Lowering<'a> {
        Lowering { store, format: &self.format, layout: &self.layout, aggregates: &held.rule.aggregates, slots }
    }

    /// What a diagram says of a message as far as its states decide. They are the last columns.
    fn beyond_fields(&self, store: &Store, function: Ref, message: &Message) -> Ref {
        let mut at = function;
        while let Some(level) = store.level(at) {
            let key = self.layout.keys()[level as usize];
            if matches!(key, Key::Slot(_)) {
                break;
            }
            let value = message.column(key);
            let arm = store.arms(at).take_while(|(first, _)| *first <= value).last();
            (_, at) = arm.expect("the first arm begins at 0");
        }
        at
    }
}
