//! Lowers conditions to decision diagrams.

use bdd::{LimitExceeded, Ref, Store};

use crate::compile::layout::{ColumnKey, ColumnLayout};
use crate::format::{HeaderId, MessageFormat, Subject, max_of};
use crate::ranges::Ranges;
use crate::rule::{Aggregate, Condition, Test};

/// Lowers the conditions of one rule.
pub(crate) struct Lowering<'a> {
    pub store: &'a mut Store,
    pub format: &'a MessageFormat,
    pub layout: &'a ColumnLayout,
    pub aggregates: &'a [Aggregate],
    /// Slot of each aggregate.
    pub slots: &'a [u16],
}

impl Lowering<'_> {
    /// Returns the function that is `then` where the condition holds and nothing elsewhere.
    pub fn rule(&mut self, condition: &Condition, then: Ref) -> Result<Ref, LimitExceeded> {
        // Most rules are a conjunction of a few tests of different fields: a chain of nodes, built from its end.
        let mut chain: Vec<(u32, Ranges)> = Vec::new();
        let mut others = Vec::new();
        let parts = match condition {
            Condition::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        for part in parts {
            match part {
                Condition::Test(test) => self.chain(test, &mut chain),
                Condition::Valid { header, .. } => chain.push((self.valid(*header), Ranges::span(1, 1))),
                other => others.push(other),
            }
        }
        let mut result = self.make_chain(chain, then)?;
        for other in others {
            let holds = self.condition(other)?;
            result = self.store.keep_where(holds, result)?;
        }
        Ok(result)
    }

    fn condition(&mut self, condition: &Condition) -> Result<Ref, LimitExceeded> {
        match condition {
            Condition::Always => Ok(Ref::ALWAYS),
            Condition::Never => Ok(Ref::NOTHING),
            Condition::Valid { .. } | Condition::Test(_) | Condition::All(_) => self.rule(condition, Ref::ALWAYS),
            Condition::Not(inner) => {
                let inner = self.condition(inner)?;
                self.store.keep_unless(inner, Ref::ALWAYS)
            }
            Condition::Any(list) => {
                // A balanced union avoids visiting the beginning of long lists repeatedly.
                let mut parts = list.iter().map(|part| self.condition(part)).collect::<Result<Vec<_>, _>>()?;
                balanced(self.store, &mut parts)
            }
        }
    }

    fn valid(&self, header: HeaderId) -> u32 {
        self.layout.column(ColumnKey::Valid(header))
    }

    /// Appends the values that a test requires in each column.
    fn chain(&self, test: &Test, chain: &mut Vec<(u32, Ranges)>) {
        let mut needs = |field: crate::format::FieldId| {
            if let Some(header) = self.format.get(field).header {
                chain.push((self.valid(header), Ranges::span(1, 1)));
            }
        };
        let mut values = test.values.clone();
        let key = match test.subject {
            Subject::Field(id) => {
                needs(id);
                ColumnKey::Field(id)
            }
            Subject::Counter(id) => ColumnKey::Counter(id),
            Subject::Aggregate(at) => {
                self.aggregates[usize::from(at)].fields().for_each(needs);
                let slot = self.slots[usize::from(at)];
                // The number that stands for no value is none of those that a test asks for.
                values = values.intersection(&Ranges::span(0, self.format.slot_max(slot)));
                ColumnKey::Slot(slot)
            }
        };
        chain.push((self.layout.column(key), values));
    }

    fn make_chain(&mut self, mut chain: Vec<(u32, Ranges)>, then: Ref) -> Result<Ref, LimitExceeded> {
        chain.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
        chain.dedup_by(|one, kept| {
            let same = one.0 == kept.0;
            if same {
                kept.1 = kept.1.intersection(&one.1);
            }
            same
        });
        let mut result = then;
        for (level, values) in &chain {
            let max = max_of(self.layout.keys()[*level as usize].width(self.format));
            result = self.store.test(*level, values.list(), max, result, Ref::NOTHING)?;
        }
        Ok(result)
    }
}

/// Returns the union of all functions, combined pairwise.
pub(crate) fn balanced(store: &mut Store, parts: &mut Vec<Ref>) -> Result<Ref, LimitExceeded> {
    while parts.len() > 1 {
        let mut kept = 0;
        for at in (0..parts.len()).step_by(2) {
            parts[kept] = match parts.get(at + 1) {
                Some(second) => store.union(parts[at], *second)?,
                None => parts[at],
            };
            kept += 1;
        }
        parts.truncate(kept);
    }
    Ok(parts.first().copied().unwrap_or(Ref::NOTHING))
}
