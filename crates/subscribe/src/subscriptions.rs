//! Maintains a changing set of rules and its tables.

use std::collections::{BTreeMap, HashMap};

use bdd::{Ref, Store};

use crate::compile::aggregates::{KeyCells, MAX_LINKED_KEY_FIELDS};
use crate::compile::effects::{Effect, EffectInterner};
use crate::compile::emit::{EmitContext, EmitError, Emitter, deliver};
use crate::compile::layout::{ColumnKey, ColumnLayout, visit};
use crate::compile::lower::Lowering;
use crate::compile::slots::{SlotIdentity, SlotUse, Slots, apart_from_key, counted, named};
use crate::compile::union_trie::{Stopped, UnionTrie};
use crate::compile::{state, state_explosion};
use crate::format::{MessageFormat, Subject};
use crate::reference::evaluate::{Message, View};
use crate::refusal::Refusal;
use crate::rule::{Aggregate, Condition, Rule};
use crate::tables::{Delivery, Stage, StateId, TableChange, Tables, TargetCapabilities, stages};

/// Number of a rule in [`Subscriptions`]. The number of a removed rule is reused eventually.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// Limits on the size of a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of nodes and sets of diagrams, including intermediate ones.
    pub nodes: usize,
    /// Maximum memory of diagrams, in bytes.
    pub bytes: usize,
    /// Maximum number of steps of one change; a step takes some tens of nanoseconds.
    pub steps: u64,
    /// Maximum number of entries of one field's tables, which is the capacity of the switch. Entries to be added and
    /// entries to be deleted both count. An interval of codes that is expanded to prefixes counts as one.
    pub entries: usize,
}

impl Default for Limits {
    /// Allows a few gigabytes, a few minutes, and the entries that a generated program's tables hold.
    fn default() -> Self {
        Limits { nodes: 40_000_000, bytes: 4 << 30, steps: 4_000_000_000, entries: 1 << 20 }
    }
}

impl From<Limits> for bdd::Limits {
    fn from(Limits { nodes, bytes, steps, .. }: Limits) -> bdd::Limits {
        bdd::Limits { nodes, bytes, steps }
    }
}

/// Guarantee for messages during the writes of a [`TableChange`]. The terms are those of Reitblatt et al., Abstractions
/// for Network Update (SIGCOMM 2012).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// The target applies all writes at once; no message sees a part of them. A change is then minimal.
    #[default]
    Atomic,
    /// The target applies writes one after the other, and each message sees either the old rules or the new ones. A
    /// state survives a change only if the same messages reach it before and after; all other changes use new states,
    /// which takes more writes. The guarantee holds if the target
    ///
    /// 1. creates groups, leaves and the entries of new states, which no entry leads to yet;
    /// 2. changes the entries of [`kept`](TableChange::kept) states: more specific ones are inserted before less
    ///    specific ones (exact values, longer prefixes, the rest), then modified, then deleted in the opposite order. A
    ///    new range or pattern that overlaps a deleted one takes precedence over it by priority;
    /// 3. deletes whatever is unreachable, once all messages in flight have left.
    ///
    /// A message leaves the kept states at exactly one entry, either the old or the new one. (A rule without any test
    /// has the initial state of all messages as its leaf. If it calls actions, these are written separately.)
    PerMessageConsistent,
}

/// Options of the compiler besides the format and the column order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Capabilities of the target's tables.
    pub target: TargetCapabilities,
    /// Limits on memory and work.
    pub limits: Limits,
    /// Update guarantee.
    pub update_mode: UpdateMode,
    /// Lowest generation of a slot's values. With a number that grows from run to run, such as the time in seconds, no
    /// run reads values that an earlier one left in a slot which was free in between.
    pub first_generation: u32,
}

/// Result of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedChange {
    /// Added rules, in the order of the argument.
    pub added: Vec<RuleId>,
    /// Changes to the switch's tables.
    pub change: TableChange,
    /// Slots whose use changes; their state is reset.
    pub slots: Vec<SlotUse>,
}

/// A rule with the resources that it references.
#[derive(Clone)]
pub(crate) struct RuleRecord {
    pub rule: Rule,
    /// Key in the trie.
    key: u64,
    /// Numbers of its effects.
    effects: Vec<u32>,
    /// One record per aggregate of the rule.
    aggregates: Vec<AggregateRecord>,
}

/// An aggregate of a rule with the resources that it references.
#[derive(Clone)]
pub(crate) struct AggregateRecord {
    slot: u16,
    /// Identity of the slot's state.
    over: (Aggregate, Condition),
    /// Condition on messages that count for this rule.
    counted: Condition,
    /// For a declared aggregate, its index and the keys that the rule names.
    keys: Option<(u16, Vec<Vec<u128>>)>,
    /// Number of the effect.
    effect: u32,
}

impl RuleRecord {
    pub fn slots(&self) -> Vec<u16> {
        self.aggregates.iter().map(|aggregate| aggregate.slot).collect()
    }

    pub fn effects(&self) -> &[u32] {
        &self.effects
    }

    /// Returns the slot of each aggregate with the condition on messages that count.
    pub fn counted(&self) -> impl Iterator<Item = (u16, &Condition)> {
        self.aggregates.iter().map(|aggregate| (aggregate.slot, &aggregate.counted))
    }
}

/// A set of rules, its decision diagram, and the tables of a switch. The crate documentation gives an overview.
#[derive(Clone)]
pub struct Subscriptions {
    pub(crate) format: MessageFormat,
    pub(crate) layout: ColumnLayout,
    pub(crate) stages: Vec<Stage>,
    pub(crate) options: CompileOptions,
    pub(crate) store: Store,
    pub(crate) effects: EffectInterner,
    pub(crate) merge: UnionTrie,
    pub(crate) emitter: Emitter,
    pub(crate) rules: Vec<Option<RuleRecord>>,
    free: Vec<u32>,
    slots: Slots,
    key_cells: KeyCells,
}

impl Subscriptions {
    /// Creates an empty set of rules.
    pub fn new(format: MessageFormat, layout: ColumnLayout, options: CompileOptions) -> Subscriptions {
        Subscriptions {
            stages: stages(&format, &layout, &options.target),
            store: Store::new(),
            effects: EffectInterner::default(),
            merge: UnionTrie::new(),
            emitter: Emitter::new(&format, &layout, &options),
            rules: Vec::new(),
            free: Vec::new(),
            slots: Slots::new(format.slots, options.first_generation),
            key_cells: KeyCells::default(),
            format,
            layout,
            options,
        }
    }

    /// Returns the vocabulary of the rules.
    pub fn format(&self) -> &MessageFormat {
        &self.format
    }

    /// Returns the column order.
    pub fn layout(&self) -> &ColumnLayout {
        &self.layout
    }

    /// Returns the stages that [`StageEntry::stage`](crate::StageEntry::stage) refers to.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the rules, by number.
    pub fn rules(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        self.records().map(|(id, record)| (id, &record.rule))
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = (RuleId, &RuleRecord)> {
        self.rules.iter().enumerate().filter_map(|(at, record)| Some((RuleId(at as u32), record.as_ref()?)))
    }

    /// Returns the rule with this number, if there is one.
    pub fn rule(&self, id: RuleId) -> Option<&Rule> {
        Some(&self.rules.get(id.0 as usize)?.as_ref()?.rule)
    }

    /// Returns the aggregates in use.
    pub fn slots(&self) -> Vec<SlotUse> {
        self.slots.list()
    }

    /// Returns the aggregate in a slot, if the slot is in use.
    pub(crate) fn aggregate_in(&self, slot: u16) -> Option<&Aggregate> {
        self.slots.aggregate_in(slot)
    }

    /// Returns the linked slots in use.
    fn linked(&self) -> impl Iterator<Item = SlotUse> {
        self.slots().into_iter().filter(|of| self.format.is_linked(of.slot))
    }

    /// Returns the aggregates of the linked slots in use.
    pub fn links(&self) -> BTreeMap<u16, Aggregate> {
        self.linked().filter_map(|of| Some((of.slot, of.aggregate?))).collect()
    }

    /// Returns the identities of the linked slots in use.
    pub fn linked_identities(&self) -> BTreeMap<u16, SlotIdentity> {
        self.linked().map(|of| (of.slot, of.identity)).collect()
    }

    /// Returns a generation above those of all slots.
    pub fn next_generation(&self) -> u32 {
        self.slots.next_generation()
    }

    /// Replaces the generations of slots by those at a switch, where a slot holds the same state there. Values in the
    /// switch stay valid.
    pub fn restore_generations(&mut self, known: &BTreeMap<u16, SlotIdentity>) {
        self.slots.restore_generations(known);
    }

    /// Reserves the slots that states have at a switch, before rules are added. A state that the rules of the next
    /// change have gets its slot and its generation, so that its values stay valid.
    pub fn reserve_slots(&mut self, known: &BTreeMap<u16, SlotIdentity>) {
        self.slots.reserve(known);
    }

    /// Removes and adds rules in one step. Unknown numbers are ignored.
    ///
    /// # Errors
    /// [`Refusal`], if the resulting rules cannot be compiled; nothing changes then.
    pub fn change(&mut self, remove: &[RuleId], add: Vec<Rule>) -> Result<AppliedChange, Refusal> {
        let removed: Vec<(u32, RuleRecord)> = remove.iter().filter_map(|id| self.take(*id)).collect();
        let mut added = Vec::with_capacity(add.len());
        let mut refused = None;
        for rule in add {
            match self.put(rule) {
                Ok(id) => added.push(id),
                Err(refusal) => {
                    refused = Some(refusal);
                    break;
                }
            }
        }
        let limits = self.options.limits;
        let limits: bdd::Limits = limits.into();
        let outcome = match refused {
            Some(refusal) => Err(refusal),
            None => match self.key_cells.crowded(&self.format) {
                Some(computed) => Err(Refusal::keys(self, computed)),
                None => self.recompile(limits),
            },
        };
        match outcome {
            Ok(mut change) => {
                (change.new_key_cells, change.old_key_cells) = self.key_cells.settle(&self.format);
                let slots = self.slots.settle();
                change.links = slots.iter().filter(|of| self.format.is_linked(of.slot)).cloned().collect();
                self.effects.free_unused();
                self.free.extend(removed.iter().map(|(at, _)| *at));
                Ok(AppliedChange { added, change, slots })
            }
            Err(refusal) => {
                for id in added {
                    let (at, _) = self.take(id).expect("it was just added");
                    self.free.push(at);
                }
                for (at, record) in removed {
                    self.put_back(at, record);
                }
                let back = self.recompile(bdd::Limits::NONE);
                assert!(matches!(&back, Ok(change) if change.is_empty()), "what was before can be again");
                self.effects.free_unused();
                Err(refusal)
            }
        }
    }

    /// Recompiles the diagram and the tables for the current rules.
    fn recompile(&mut self, limits: bdd::Limits) -> Result<TableChange, Refusal> {
        let root = self.refresh(limits)?;
        let with = EmitContext {
            store: &self.store,
            format: &self.format,
            layout: &self.layout,
            stages: &self.stages,
            effects: &self.effects,
        };
        self.emitter.update_to(root, &with).map_err(|refused| match refused {
            EmitError::Groups(_) | EmitError::Entries(..) => {
                self.state_explosion().unwrap_or_else(|| self.refusal(root, refused))
            }
            _ => self.refusal(root, refused),
        })
    }

    /// Returns the diagram of the current rules.
    fn refresh(&mut self, limits: bdd::Limits) -> Result<Ref, Refusal> {
        // A small budget first: state explosion is diagnosed before it uses all memory.
        let may_cross = limits != bdd::Limits::NONE && self.slots.used() >= state_explosion::MIN_STATES;
        if may_cross {
            let nodes = limits.nodes.min(self.store.len() + state_explosion::EXTRA_NODES);
            let first =
                self.union(bdd::Limits { nodes, steps: limits.steps.min(state_explosion::FIRST_STEPS), ..limits });
            match first {
                Ok(root) => return Ok(root),
                Err(_) => self.state_explosion().map_or(Ok(()), Err)?,
            }
        }
        self.union(limits).map_err(|Stopped { full, rules }| Refusal::too_large(self, full, rules))
    }

    fn state_explosion(&self) -> Option<Refusal> {
        (self.slots.used() >= state_explosion::MIN_STATES)
            .then(|| self.exploding_rules())
            .flatten()
            .map(Refusal::StateExplosion)
    }

    fn union(&mut self, limits: bdd::Limits) -> Result<Ref, Stopped> {
        self.store.set_limits(limits);
        let Subscriptions { merge, store, rules, format, layout, emitter, .. } = self;
        let mut lower = |store: &mut Store, rule: u32| {
            let record = rules[rule as usize].as_ref().expect("only rules that are there hang in the trie");
            let slots = record.slots();
            let mut then = store.constant(&record.effects);
            let mut lowering = Lowering { store, format, layout, aggregates: &record.rule.aggregates, slots: &slots };
            let mut union = lowering.rule(&record.rule.condition, then)?;
            for AggregateRecord { counted, effect, .. } in &record.aggregates {
                then = lowering.store.constant(&[*effect]);
                let counts = lowering.rule(counted, then)?;
                union = lowering.store.union(union, counts)?;
            }
            Ok(union)
        };
        merge.refresh(store, &[emitter.root()], &mut lower)
    }

    fn put(&mut self, rule: Rule) -> Result<RuleId, Refusal> {
        let mut aggregates = Vec::new();
        for aggregate in &rule.aggregates {
            let counted = counted(&rule, aggregate, &self.format);
            let over = (aggregate.clone(), apart_from_key(&counted, &aggregate.by));
            let Some(slot) = self.slots.acquire(over.clone(), &self.format) else {
                self.release_aggregates(aggregates);
                return Err(Refusal::slots(self, rule, &over.0));
            };
            let computed = self.format.computed_in(slot);
            let mut keys = computed.and_then(|at| Some((at as u16, named(&counted, &aggregate.by)?)));
            if let Some((_, keys)) = keys.as_mut().filter(|_| self.format.is_linked(slot)) {
                // Keys of linked slots have a fixed number of parts.
                keys.iter_mut().for_each(|key| key.resize(MAX_LINKED_KEY_FIELDS, 0));
            }
            if let Some((computed, keys)) = &keys {
                keys.iter().for_each(|key| self.key_cells.acquire(*computed, key));
            }
            aggregates.push(AggregateRecord {
                slot,
                over,
                counted,
                keys,
                effect: self.effects.acquire(Effect::Slot(slot)),
            });
        }
        let effects = rule.actions.iter().flat_map(Effect::of).map(|effect| self.effects.acquire(effect)).collect();
        let at = self.free.pop().unwrap_or(self.rules.len() as u32);
        if at as usize == self.rules.len() {
            self.rules.push(None);
        }
        let key = self.key(&rule, at);
        self.rules[at as usize] = Some(RuleRecord { rule, key, effects, aggregates });
        self.merge.insert(key, at);
        Ok(RuleId(at))
    }

    fn release_aggregates(&mut self, record: Vec<AggregateRecord>) {
        for AggregateRecord { over, keys, effect, .. } in record {
            self.slots.release(&over);
            self.effects.release(effect);
            if let Some((computed, keys)) = keys {
                keys.iter().for_each(|key| self.key_cells.release(computed, key));
            }
        }
    }

    /// Removes a rule; its number stays reserved.
    fn take(&mut self, id: RuleId) -> Option<(u32, RuleRecord)> {
        let record = self.rules.get_mut(id.0 as usize)?.take()?;
        self.merge.remove(record.key, id.0);
        record.effects.iter().for_each(|effect| self.effects.release(*effect));
        self.release_aggregates(record.aggregates.clone());
        Some((id.0, record))
    }

    /// Restores a removed rule.
    fn put_back(&mut self, at: u32, mut record: RuleRecord) {
        record.effects =
            record.rule.actions.iter().flat_map(Effect::of).map(|effect| self.effects.acquire(effect)).collect();
        for AggregateRecord { slot, over, keys, effect, .. } in &mut record.aggregates {
            self.slots.hold_again(over.clone(), *slot);
            *effect = self.effects.acquire(Effect::Slot(*slot));
            if let Some((computed, keys)) = keys {
                keys.iter().for_each(|key| self.key_cells.acquire(*computed, key));
            }
        }
        self.merge.insert(record.key, at);
        self.rules[at as usize] = Some(record);
    }

    /// Returns the key of a rule in the trie. Rules that test the first column for the same value are neighbours,
    /// ordered by their bounds. The union of two neighbours then has little work where only one of them applies.
    fn key(&self, rule: &Rule, at: u32) -> u64 {
        let mut tests: Vec<(u32, &crate::Ranges)> = Vec::new();
        visit(&rule.condition, &mut |test| {
            let column = match test.subject {
                Subject::Field(id) => self.layout.column(ColumnKey::Field(id)),
                Subject::Counter(id) => self.layout.column(ColumnKey::Counter(id)),
                Subject::Aggregate(_) => return,
            };
            if tests.len() < 8 {
                tests.push((column, &test.values));
            }
        });
        tests.sort_by_key(|(column, _)| *column);
        let value = tests.first().filter(|(_, values)| matches!(values.list(), [(first, last)] if first == last));
        let group = value.map_or(0, |value| hash(value) >> 40);
        let bounds = tests.get(usize::from(value.is_some())).and_then(|(_, values)| values.list().first());
        let bound = bounds.map_or(0, |(first, last)| scale(if *first == 0 { *last } else { *first }));
        group << 40 | bound << 16 | hash(&at) >> 48
    }

    pub(crate) fn emit_context(&self) -> EmitContext<'_> {
        EmitContext {
            store: &self.store,
            format: &self.format,
            layout: &self.layout,
            stages: &self.stages,
            effects: &self.effects,
        }
    }

    /// Returns the full contents of the switch's tables.
    pub fn tables(&self) -> Tables {
        let (key_cells, links) = (self.key_cells.list(), self.linked().collect());
        Tables { key_cells, links, ..self.emitter.tables(&self.emit_context()) }
    }

    /// Gives states other numbers, as a switch that holds the same tables has them. A state that is not named keeps its
    /// number, unless another one gets it.
    ///
    /// # Panics
    /// If two states get one number, or one of another tag.
    pub fn rename_states(&mut self, names: &HashMap<StateId, StateId>) {
        let keeps_tag = |(old, new): (&StateId, &StateId)| state::tag(*old) == state::tag(*new);
        assert!(names.iter().all(keeps_tag), "a state keeps its tag");
        self.emitter.rename_states(names);
    }

    /// Evaluates each rule on a message separately. The result has no group.
    pub fn evaluate(&self, message: &Message) -> Delivery {
        let mut numbers = Vec::new();
        for (_, record) in self.records() {
            let slots = record.slots();
            let view = self.view(record, message, &slots);
            if view.holds(&record.rule.condition) {
                numbers.extend_from_slice(&record.effects);
            }
            for aggregate in &record.aggregates {
                if view.holds(&aggregate.counted) {
                    numbers.push(aggregate.effect);
                }
            }
        }
        self.delivery(numbers)
    }

    pub(crate) fn view<'a>(&'a self, record: &'a RuleRecord, message: &'a Message, slots: &'a [u16]) -> View<'a> {
        View { format: &self.format, message, aggregates: &record.rule.aggregates, slots }
    }

    /// Evaluates the decision diagram on a message. The result has no group.
    pub fn evaluate_diagram(&self, message: &Message) -> Delivery {
        let numbers = self
            .store
            .evaluate(self.emitter.root(), |level| message.column(&self.format, self.layout.keys()[level as usize]));
        self.delivery(numbers.to_vec())
    }

    /// Combines effects to a delivery.
    fn delivery(&self, mut numbers: Vec<u32>) -> Delivery {
        numbers.sort_unstable();
        numbers.dedup();
        crate::compile::emit::delivery(&self.effects, &numbers)
    }

    /// Returns the delivery of an effect set.
    pub(crate) fn delivery_of(&self, set: Ref) -> Delivery {
        deliver(&self.emit_context(), set)
    }
}

/// Maps a number monotonically to 24 bits: its bit length and its leading bits.
fn scale(number: u128) -> u64 {
    let bits = 128 - number.leading_zeros();
    let mantissa = if bits > 17 { number >> (bits - 17) } else { number << (17 - bits) };
    u64::from(bits) << 16 | mantissa as u64 & 0xffff
}

fn hash(of: &impl std::hash::Hash) -> u64 {
    use std::hash::BuildHasher;
    foldhash::fast::FixedState::with_seed(1).hash_one(of)
}
