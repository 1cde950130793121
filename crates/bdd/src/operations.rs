//! Implements the operations on functions: union of sets, and the logic of conditions.
//!
//! All operations descend two diagrams at once, arm by arm. The depth is bounded by the number of levels, since a node
//! has all tests of a level.

use std::hash::BuildHasher;

use crate::store::{CacheEntry, LimitExceeded, Ref, Store};

/// The operation where both operands are sets, or where one of them decides alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// Union of both sets.
    Union = 1,
    /// The second operand where the first, a condition, holds; nothing elsewhere.
    Where = 2,
    /// Nothing where the first operand, a condition, holds; the second elsewhere.
    Unless = 3,
}

/// Maximum number of entries in the operation cache, which grows with the store.
const MAX_MEMORY: usize = 1 << 22;

impl Store {
    /// Returns the function whose set is the union of both functions' sets; for conditions, "or".
    ///
    /// # Errors
    /// [`LimitExceeded`], if a limit is reached.
    pub fn union(&mut self, a: Ref, b: Ref) -> Result<Ref, LimitExceeded> {
        self.fit_memory();
        self.apply(Operator::Union, a, b)
    }

    /// Returns the function that is `then` where `condition` holds, nothing elsewhere; for two conditions, "and".
    ///
    /// # Errors
    /// [`LimitExceeded`], if a limit is reached.
    pub fn keep_where(&mut self, condition: Ref, then: Ref) -> Result<Ref, LimitExceeded> {
        self.fit_memory();
        self.apply(Operator::Where, condition, then)
    }

    /// Returns the function that is `otherwise` where `condition` does not hold, nothing elsewhere. With
    /// [`Ref::ALWAYS`], "not".
    ///
    /// # Errors
    /// [`LimitExceeded`], if a limit is reached.
    pub fn keep_unless(&mut self, condition: Ref, otherwise: Ref) -> Result<Ref, LimitExceeded> {
        self.fit_memory();
        self.apply(Operator::Unless, condition, otherwise)
    }

    fn fit_memory(&mut self) {
        let wanted = (self.len() / 2).next_power_of_two().min(MAX_MEMORY);
        if wanted > self.cache.len() {
            let old = std::mem::replace(&mut self.cache, vec![None; wanted]);
            for entry in old.into_iter().flatten() {
                self.cache_result(entry);
            }
        }
    }

    fn slot(&self, key: (u32, Ref, Ref)) -> usize {
        self.hasher.hash_one(key) as usize & (self.cache.len() - 1)
    }

    fn cache_result(&mut self, entry: CacheEntry) {
        let slot = self.slot(entry.key);
        self.cache[slot] = Some(entry);
    }

    /// Returns the result, if one operand decides it.
    fn decided(operator: Operator, a: Ref, b: Ref) -> Option<Ref> {
        match operator {
            Operator::Union if a == b || b == Ref::NOTHING => Some(a),
            Operator::Union if a == Ref::NOTHING => Some(b),
            Operator::Where if a == Ref::NOTHING || b == Ref::NOTHING => Some(Ref::NOTHING),
            Operator::Where if a == Ref::ALWAYS => Some(b),
            Operator::Unless if a == Ref::ALWAYS || b == Ref::NOTHING => Some(Ref::NOTHING),
            Operator::Unless if a == Ref::NOTHING => Some(b),
            _ => None,
        }
    }

    fn apply(&mut self, operator: Operator, a: Ref, b: Ref) -> Result<Ref, LimitExceeded> {
        if let Some(result) = Self::decided(operator, a, b) {
            return Ok(result);
        }
        let (a, b) = if operator == Operator::Union && b < a { (b, a) } else { (a, b) };
        let key = (operator as u32, a, b);
        if let Some(entry) = &self.cache[self.slot(key)]
            && entry.key == key
        {
            return Ok(entry.result);
        }
        self.limits.steps = self.limits.steps.checked_sub(1).ok_or(LimitExceeded::Steps)?;
        let result = match (self.level(a), self.level(b)) {
            (None, None) => {
                assert!(operator == Operator::Union, "the set of a condition is empty or says always");
                if self.len() >= self.limits.nodes {
                    return Err(LimitExceeded::Nodes);
                }
                if self.bytes() > self.limits.bytes {
                    return Err(LimitExceeded::Bytes);
                }
                Ref::of_set(self.sets.union(a.index(), b.index(), &self.hasher))
            }
            (Some(level), Some(other)) if level == other => self.both(operator, level, a, b)?,
            (Some(level), other) if other.is_none_or(|other| level < other) => {
                self.each(level, a, |store, child| store.apply(operator, child, b))?
            }
            (_, level) => {
                let level = level.expect("one of them is a node");
                self.each(level, b, |store, child| store.apply(operator, a, child))?
            }
        };
        self.cache_result(CacheEntry { key, result });
        Ok(result)
    }

    /// Combines two nodes of one level arm by arm.
    fn both(&mut self, operator: Operator, level: u32, a: Ref, b: Ref) -> Result<Ref, LimitExceeded> {
        let base = self.arms_stack.len();
        let (mut at_a, mut at_b, mut first) = (0, 0, 0);
        loop {
            let (node_a, node_b) = (self.get(a), self.get(b));
            let (child_a, child_b) = (node_a.children[at_a], node_b.children[at_b]);
            let (cut_a, cut_b) = (node_a.cuts.get(at_a).copied(), node_b.cuts.get(at_b).copied());
            let child = match Self::decided(operator, child_a, child_b) {
                Some(child) => child,
                None => self.apply(operator, child_a, child_b).inspect_err(|_| self.arms_stack.truncate(base))?,
            };
            self.push_arm(base, first, child);
            let next = match (cut_a, cut_b) {
                (None, None) => break,
                (Some(a), Some(b)) => a.min(b),
                (Some(one), None) | (None, Some(one)) => one,
            };
            at_a += usize::from(cut_a == Some(next));
            at_b += usize::from(cut_b == Some(next));
            first = next;
        }
        // A long node is as much work as its arms, though it is one step for its parent.
        self.limits.steps = self.limits.steps.saturating_sub((at_a + at_b) as u64 / 4);
        self.intern(level, base)
    }

    /// Returns the node with an operation applied to every child.
    fn each(
        &mut self,
        level: u32,
        of: Ref,
        mut change: impl FnMut(&mut Store, Ref) -> Result<Ref, LimitExceeded>,
    ) -> Result<Ref, LimitExceeded> {
        let base = self.arms_stack.len();
        for at in 0..self.get(of).children.len() {
            let node = self.get(of);
            let (first, child) = (if at == 0 { 0 } else { node.cuts[at - 1] }, node.children[at]);
            let child = change(self, child).inspect_err(|_| self.arms_stack.truncate(base))?;
            self.push_arm(base, first, child);
        }
        self.intern(level, base)
    }
}
