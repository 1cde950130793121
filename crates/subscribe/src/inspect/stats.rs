//! Computes size statistics.

use crate::compile::emit::EmitContext;
use crate::compile::prefixes::cover;
use crate::subscriptions::Subscriptions;
use crate::tables::{EntryKey, Stage, StageKey, TargetCapabilities, Wide, stages};

/// Number of entries of one stage, by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageSize {
    /// Name of the lookup key: `add_order.price`, or `validity`.
    pub name: String,
    /// Entries of the exact table.
    pub exact: usize,
    /// Entries of the wide table: ranges, prefixes or, for validity, patterns.
    pub wide: usize,
    /// Match kind of the wide table, if there is one; `None` for validity, which is ternary.
    pub kind: Option<Wide>,
    /// Entries of the table of the rest.
    pub rest: usize,
    /// Entries of the code table, if values are mapped to codes first.
    pub codes: usize,
}

impl StageSize {
    /// Returns the number of all entries.
    pub fn all(&self) -> usize {
        self.exact + self.wide + self.rest + self.codes
    }
}

/// Size of a set of rules, its diagram and its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of rules.
    pub rules: usize,
    /// Nodes of the diagram; a node tests one field.
    pub nodes: usize,
    /// Nodes of the equivalent binary diagram of comparisons, as drawn by [`Subscriptions::dot`].
    pub binary_nodes: usize,
    /// Distinct effect sets, including the empty one if it is reached.
    pub sets: usize,
    /// Nodes and sets in memory, including those of intermediate unions.
    pub kept: usize,
    /// Number of states.
    pub states: usize,
    /// Entries, by stage.
    pub stages: Vec<StageSize>,
    /// Entries of the leaf table.
    pub leaves: usize,
    /// Multicast groups.
    pub groups: usize,
    /// Memory in bytes of the diagrams, of the operation caches, and of the rules and their trie.
    pub bytes: [usize; 3],
}

impl Stats {
    /// Returns the number of entries of all stages, without leaves and groups.
    pub fn entries(&self) -> usize {
        self.stages.iter().map(StageSize::all).sum()
    }
}

impl Subscriptions {
    /// Returns the number of nodes and sets in memory, including intermediate unions and garbage.
    pub fn kept(&self) -> usize {
        self.store.len()
    }

    /// Returns the number of entries that these rules need on another target, by stage.
    pub fn sizes(&self, target: &TargetCapabilities) -> Vec<StageSize> {
        self.sizes_in(&stages(&self.format, &self.layout, target))
    }

    fn sizes_in(&self, stages: &[Stage]) -> Vec<StageSize> {
        let named = stages.iter().map(|stage| {
            let name = match &stage.column {
                StageKey::Validity => "validity".to_owned(),
                StageKey::Column(key) => key.name(&self.format),
            };
            StageSize { name, kind: stage.wide, ..StageSize::default() }
        });
        let mut sizes: Vec<StageSize> = named.collect();
        let with = EmitContext { stages, ..self.emit_context() };
        self.emitter.each_entry(&with, |stage, key| {
            *match key {
                EntryKey::Exact(_) => &mut sizes[stage].exact,
                EntryKey::Rest => &mut sizes[stage].rest,
                _ => &mut sizes[stage].wide,
            } += 1;
        });
        for code in self.emitter.code_entries(&with) {
            let at = usize::from(code.stage);
            sizes[at].codes += match (stages[at].code_table, &stages[at].column) {
                (Wide::Lpm | Wide::Ternary, StageKey::Column(key)) => {
                    cover(code.first, code.last, key.width(&self.format)).len()
                }
                _ => 1,
            };
        }
        sizes
    }

    /// Computes the current size. Visits all of the tables.
    pub fn stats(&self) -> Stats {
        let tables = self.tables();
        let reachable = self.store.reachable(self.emitter.root());
        Stats {
            rules: self.rules().count(),
            nodes: reachable.iter().filter(|function| !function.is_set()).count(),
            binary_nodes: reachable.iter().map(|function| self.comparisons(*function).0.len()).sum(),
            sets: reachable.iter().filter(|function| function.is_set()).count(),
            kept: self.store.len(),
            states: self.emitter.states(),
            stages: self.sizes_in(&self.stages),
            leaves: tables.leaves.len(),
            groups: tables.groups.len(),
            bytes: [
                self.store.bytes(),
                self.store.cache_bytes(),
                self.rules.capacity() * size_of::<Option<crate::subscriptions::RuleRecord>>()
                    + self.merge.bytes()
                    + self.emitter.bytes(),
            ],
        }
    }
}
