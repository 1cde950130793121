//! Lint: rules that only `drop` messages which other rules deliver. All matching rules apply, and `drop` has no effect
//! on them.

use std::collections::HashMap;

use bdd::{LimitExceeded, Limits, Ref, Store};

use crate::compile::lower::Lowering;
use crate::lint::finding::LintFinding;
use crate::lint::never_matches::MessageFacts;
use crate::rule::{Condition, Rule, RuleAction};
use crate::subscriptions::{RuleId, Subscriptions};

/// Budget of the analysis: about 0.1 s.
const LIMITS: Limits = Limits { nodes: 1 << 20, bytes: 128 << 20, steps: 2_000_000 };

impl Subscriptions {
    /// Finds rules that only `drop` messages which another rule delivers, with one such rule each. Rules with
    /// aggregates are not checked. Only messages that satisfy `possible` count. The work is bounded: beyond the bound
    /// findings may be missing.
    pub fn lint_ineffective_drops(&self, possible: &Condition) -> Vec<LintFinding> {
        let only_drops = |rule: &Rule| rule.actions.iter().all(|action| *action == RuleAction::Drop);
        let asked = self.rules().filter(|(_, rule)| rule.aggregates.is_empty());
        let (drops, others): (Vec<_>, Vec<_>) = asked.partition(|(_, rule)| only_drops(rule));
        let mut found = Vec::new();
        if !drops.is_empty() {
            // Findings made before the budget was exhausted are valid.
            let _ = self.look(&drops, &others, possible, &mut found);
        }
        found
    }

    fn look(
        &self,
        drops: &[(RuleId, &Rule)],
        others: &[(RuleId, &Rule)],
        possible: &Condition,
        found: &mut Vec<LintFinding>,
    ) -> Result<(), LimitExceeded> {
        let mut store = Store::new();
        store.set_limits(LIMITS);
        let possible = MessageFacts::new(self, possible, &mut store)?.possible;
        let (format, layout) = (&self.format, &self.layout);
        let matched = |rule: &Rule, store: &mut Store| {
            Lowering { store, format, layout, aggregates: &[], slots: &[] }.rule(&rule.condition, Ref::ALWAYS)
        };
        let mut known: HashMap<RuleId, Ref> = HashMap::new();
        for (id, rule) in drops {
            let dropped = matched(rule, &mut store)?;
            let dropped = store.keep_where(possible, dropped)?;
            for (other, its) in others {
                let delivered = match known.get(other) {
                    Some(delivered) => *delivered,
                    None => *known.entry(*other).or_insert(matched(its, &mut store)?),
                };
                if store.keep_where(delivered, dropped)? != Ref::NOTHING {
                    found.push(LintFinding::IneffectiveDrop { rule: *id, delivered: *other });
                    break;
                }
            }
        }
        Ok(())
    }
}
