//! Emits table entries from decision diagrams, and incremental updates from one diagram to the next.
//!
//! States are stable numbers of nodes: a node keeps its state while the diagram contains it, and a new node in the
//! position of an old one inherits the old state. If one of many arms of a node changes, one entry changes. Nodes are
//! reference-counted by the arms that lead to them. The cost of an update is proportional to the nodes added and
//! removed, independent of the size of the diagram.

mod consistent;
mod difference;
mod inheritance;
mod state_pool;
mod uses;

use std::collections::{BTreeMap, HashMap, HashSet};

use bdd::{Ref, Store};

use crate::compile::codes::Codes;
use crate::compile::effects::{Effect, EffectInterner};
use crate::compile::groups::Groups;
use crate::compile::layout::{ColumnKey, ColumnLayout};
use crate::compile::slice;
use crate::compile::state;
use crate::format::MessageFormat;
use crate::subscriptions::{CompileOptions, UpdateMode};
use crate::tables::{Delivery, Stage, StateId, TableChange, Wide};

use state_pool::StatePool;

/// Maximum number of entries in the validity table.
const MAX_VALIDITY: usize = 1 << 14;

type NodeHasher = foldhash::fast::FixedState;

#[derive(Clone)]
struct NodeRecord {
    state: StateId,
    /// Approximate number of entries.
    entries: u32,
    uses: usize,
}

/// Validity patterns with the function that applies to each.
type Frontier = Vec<(Vec<Option<bool>>, Ref)>;

/// The entry point of messages into a diagram.
#[derive(Clone, Debug)]
struct EntryPoint {
    root: Ref,
    /// Empty for a format without headers. The root itself then has state 0, because no validity is tested.
    frontier: Frontier,
}

impl EntryPoint {
    /// Returns the functions that state 0 leads to, once per edge.
    fn functions<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = Ref> + 'a {
        let direct = self.direct().into_iter().flat_map(|root| store.arms(root)).map(|(_, child)| child);
        direct.chain(self.frontier.iter().map(|(_, function)| *function))
    }

    /// Returns the root if the root itself has state 0.
    fn direct(&self) -> Option<Ref> {
        self.frontier.is_empty().then_some(self.root)
    }
}

/// Reason that a diagram cannot be emitted as tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EmitError {
    /// The rules distinguish more combinations of valid headers than the validity table can hold.
    Validity,
    /// Too many entries for this level, with the limit.
    Entries(u32, usize),
    /// More states in one stage than there are numbers.
    States,
    /// More groups than the target has; the limit.
    Groups(u32),
    /// More bounds for this level than there are codes of this width in bits.
    Codes(u32, u32),
    /// Two rules for the same message run an action with different arguments: the effect set and the action.
    Calls(Ref, crate::ActionId),
    /// A message updates a counter twice, and the target supports one update: the effect set and the counter.
    Updates(Ref, crate::CounterId),
}

/// Read-only inputs of the emitter.
pub(crate) struct EmitContext<'a> {
    pub store: &'a Store,
    pub format: &'a MessageFormat,
    pub layout: &'a ColumnLayout,
    pub stages: &'a [Stage],
    pub effects: &'a EffectInterner,
}

/// The diagram in the tables, as states of its nodes.
#[derive(Clone)]
pub(crate) struct Emitter {
    entry_point: EntryPoint,
    nodes: HashMap<Ref, NodeRecord, NodeHasher>,
    states: StatePool,
    groups: Groups,
    /// Codes by level, for fields that have codes.
    codes: BTreeMap<u32, Codes>,
    update_mode: UpdateMode,
    one_update: bool,
    carries: bool,
    /// Number of entries per level.
    entries: BTreeMap<u32, usize>,
    max_entries: usize,
}

/// Nodes that an update adds and removes.
#[derive(Default)]
struct NodeDelta {
    fresh: Vec<Ref>,
    /// Removed nodes with their states.
    dead: BTreeMap<Ref, StateId>,
    /// New nodes with the old ones that hold the arms that both have; see [`uses`].
    replaced: HashMap<Ref, Ref, NodeHasher>,
    /// The same pairs the other way round, until the old node is removed.
    heirs: HashMap<Ref, Ref, NodeHasher>,
}

impl Emitter {
    pub fn new(format: &MessageFormat, layout: &ColumnLayout, options: &CompileOptions) -> Emitter {
        let codes = layout.keys().iter().enumerate().filter_map(|(level, key)| match key {
            ColumnKey::Field(id) => Some((level as u32, Codes::new(format.compressed(*id)?, format.get(*id).max()))),
            _ => None,
        });
        Emitter {
            entry_point: EntryPoint { root: Ref::NOTHING, frontier: Vec::new() },
            nodes: HashMap::default(),
            states: StatePool::default(),
            groups: Groups::new(options.target.max_group, options.target.needs_groups),
            codes: codes.collect(),
            update_mode: options.update_mode,
            one_update: options.target.one_update,
            carries: options.target.carries,
            entries: BTreeMap::new(),
            max_entries: options.limits.entries,
        }
    }

    /// Returns the diagram that is in the tables.
    pub fn root(&self) -> Ref {
        self.entry_point.root
    }

    /// Returns the number of states besides state 0.
    pub fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the memory used, in bytes.
    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * (size_of::<(Ref, NodeRecord)>() + 1) + self.groups.bytes()
    }

    /// Updates the tables to another diagram and returns the change.
    ///
    /// # Errors
    /// [`EmitError`]; the emitter is then unchanged.
    pub fn update_to(&mut self, root: Ref, with: &EmitContext<'_>) -> Result<TableChange, EmitError> {
        if root == self.entry_point.root {
            return Ok(TableChange::default());
        }
        let mut frontier = Frontier::new();
        let levels = with.layout.validities() as u32;
        let mut pattern = vec![None; levels as usize];
        if levels > 0 && !patterns(with.store, root, levels, &mut pattern, &mut frontier) {
            return Err(EmitError::Validity);
        }
        let new = EntryPoint { root, frontier };
        let mut delta = NodeDelta::default();
        self.acquire_entry_point(&new, with, &mut delta);
        if let Err(refused) = self.check(root, &delta.fresh, with) {
            let mut back = NodeDelta { replaced: delta.replaced, ..NodeDelta::default() };
            new.functions(with.store).for_each(|function| self.release(function, with.store, &mut back));
            return Err(refused);
        }
        let old = std::mem::replace(&mut self.entry_point, new);
        old.functions(with.store).for_each(|function| self.release(function, with.store, &mut delta));
        self.acquire_shared_arms(with, &mut delta);
        let inherited = match self.update_mode {
            UpdateMode::Atomic => self.inherit(&old, with, &delta),
            UpdateMode::PerMessageConsistent => self.inherit_consistently(&old, with, &delta),
        };
        self.assign_states(&delta, &inherited, with);
        let (old_codes, spread) = self.update_codes(&old, with.store, &delta);
        let change = self.difference(&old, with, &delta, &inherited, (&old_codes, &spread));
        let taken: HashSet<StateId> = inherited.values().map(|old| delta.dead[old]).collect();
        let gone = delta.dead.values().filter(|state| !taken.contains(state));
        gone.for_each(|state| self.states.give_back(*state));
        Ok(change)
    }

    /// Checks that all new nodes fit in the tables.
    fn check(&mut self, root: Ref, fresh: &[Ref], with: &EmitContext<'_>) -> Result<(), EmitError> {
        let mut ports: HashSet<Vec<u32>> = HashSet::new();
        for set in fresh.iter().copied().chain([root]).filter(|function| function.is_set()) {
            let delivery = deliver(with, set);
            if let Some(pair) = delivery.calls.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(EmitError::Calls(set, pair[0].0));
            }
            let twice = delivery.updates.windows(2).find(|pair| pair[0].counter == pair[1].counter);
            if let Some(pair) = twice.filter(|_| self.one_update) {
                return Err(EmitError::Updates(set, pair[0].counter));
            }
            if !self.groups.has(&delivery.ports) {
                ports.insert(delivery.ports);
            }
        }
        for (level, codes) in &self.codes {
            let of_level =
                fresh.iter().copied().chain([root]).filter(|function| with.store.level(*function) == Some(*level));
            let bounds: HashSet<u128> = of_level.flat_map(|of| with.store.arms(of).map(|(first, _)| first)).collect();
            let new = bounds.iter().filter(|bound| !codes.has(**bound)).count();
            // Removed bounds count too.
            if !codes.fits(new) {
                return Err(EmitError::Codes(*level, codes.width()));
            }
        }
        // Entries and states to be removed count too, because they are deleted last.
        if let Some((level, _)) = self.entries.iter().find(|(_, entries)| **entries > self.max_entries) {
            return Err(EmitError::Entries(*level, self.max_entries));
        }
        let mut tags: BTreeMap<u32, usize> = BTreeMap::new();
        fresh.iter().for_each(|function| *tags.entry(with.tag(*function)).or_default() += 1);
        if tags.into_iter().any(|(tag, new)| new > self.states.room(tag)) {
            return Err(EmitError::States);
        }
        // Groups to be removed count too, because they are deleted last.
        if self.groups.len() + ports.len() > self.groups.max() as usize {
            return Err(EmitError::Groups(self.groups.max()));
        }
        Ok(())
    }

    /// Gives states other numbers. A state that is not named keeps its number, unless another one gets it.
    ///
    /// # Panics
    /// If two states get one number.
    pub fn rename_states(&mut self, names: &HashMap<StateId, StateId>) {
        let targets: HashSet<StateId> = names.values().copied().collect();
        let mut taken = HashSet::new();
        let mut homeless = Vec::new();
        for (function, node) in &mut self.nodes {
            match names.get(&node.state) {
                Some(new) => node.state = *new,
                None if targets.contains(&node.state) => {
                    homeless.push((node.state, *function));
                    continue;
                }
                None => {}
            }
            assert!(taken.insert(node.state), "two states get one number");
        }
        self.states = StatePool::of(&taken);
        homeless.sort_unstable();
        for (old, function) in homeless {
            let state = self.states.take(state::tag(old));
            if let Some(node) = self.nodes.get_mut(&function) {
                node.state = state;
            }
        }
    }

    fn state(&self, function: Ref) -> StateId {
        self.nodes.get(&function).map_or(0, |node| node.state)
    }
}

impl EmitContext<'_> {
    /// Returns the state tag of a function.
    pub fn tag(&self, function: Ref) -> u32 {
        let leaf = || {
            let is_kept = |effect: &Effect| matches!(effect, Effect::Update(_) | Effect::Slot(_));
            let is_remembered = self.store.set(function).iter().any(|number| is_kept(self.effects.get(*number)));
            if is_remembered { state::STATEFUL_LEAF } else { state::LEAF }
        };
        self.store.level(function).map_or_else(leaf, |level| state::stage_tag(self.stage(level).0))
    }

    /// Returns the approximate number of entries of a node: one per arm, or the prefixes that cover the arms. With
    /// codes, it is the number of arms, because codes are not assigned yet.
    fn entries(&self, function: Ref, level: u32) -> usize {
        let (stage, width) = self.stage(level);
        let stage = &self.stages[stage];
        let has_prefixes = matches!(stage.wide, Some(Wide::Lpm | Wide::Ternary)) && stage.codes.is_none();
        if !has_prefixes {
            return self.store.arms(function).len();
        }
        // States are not assigned yet. Any numbering that distinguishes children as states will is sufficient.
        let mut known: HashMap<Ref, StateId, NodeHasher> = HashMap::default();
        known.insert(Ref::NOTHING, 0);
        let arms: Vec<(u128, StateId)> = self
            .store
            .arms(function)
            .map(|(first, child)| {
                let next = known.len() as StateId;
                (first, *known.entry(child).or_insert(next))
            })
            .collect();
        slice::entries(&arms, width, None, stage).len()
    }

    /// Returns the stage of a level after the validity levels, and the width in bits of its lookup key.
    pub fn stage(&self, level: u32) -> (usize, u32) {
        let validities = self.layout.validities();
        let stage = level as usize - validities + usize::from(validities > 0);
        (stage, self.layout.keys()[level as usize].width(self.format))
    }
}

/// Returns the delivery of an effect set, without its group.
pub(crate) fn deliver(with: &EmitContext<'_>, set: Ref) -> Delivery {
    delivery(with.effects, with.store.set(set))
}

/// Returns the delivery of these effects, without its group.
pub(crate) fn delivery(effects: &EffectInterner, numbers: &[u32]) -> Delivery {
    let mut delivery = Delivery::default();
    for number in numbers {
        match effects.get(*number) {
            Effect::Port(port) => delivery.ports.push(*port),
            Effect::Controller => delivery.to_controller = true,
            Effect::Call(id, values) => delivery.calls.push((*id, values.clone())),
            Effect::Update(update) => delivery.updates.push(update.clone()),
            Effect::Slot(slot) => delivery.slots.push(*slot),
        }
    }
    delivery.ports.sort_unstable();
    delivery.calls.sort_unstable();
    delivery.updates.sort_unstable();
    delivery.slots.sort_unstable();
    delivery
}

/// Collects the validity patterns that a function distinguishes, with the function for each. Returns `false` if there
/// are too many.
fn patterns(store: &Store, of: Ref, levels: u32, pattern: &mut Vec<Option<bool>>, out: &mut Frontier) -> bool {
    let level = store.level(of).filter(|level| *level < levels);
    let Some(level) = level else {
        out.push((pattern.clone(), of));
        return out.len() <= MAX_VALIDITY;
    };
    store.arms(of).all(|(first, child)| {
        pattern[level as usize] = Some(first == 1);
        let fits = patterns(store, child, levels, pattern, out);
        pattern[level as usize] = None;
        fits
    })
}

/// Returns pairs of children of two nodes for the same values, one pair per interval with its first value, by ascending
/// values.
fn children(store: &Store, old: Ref, new: Ref) -> impl Iterator<Item = (u128, Ref, Ref)> {
    merged(store.arms(old), store.arms(new))
}

/// Returns the pairs of [`children`] without those of the arms with which both nodes begin and end, except for the last
/// one before and the first one after the others.
fn differing_children(store: &Store, old: Ref, new: Ref) -> impl Iterator<Item = (u128, Ref, Ref)> {
    let (front, back) = store.common_arms(old, new);
    let arms = |of: Ref| {
        let end = store.arm_count(of) - back.saturating_sub(1);
        store.arms_in(of, front.saturating_sub(1)..end)
    };
    merged(arms(old), arms(new))
}

/// Merges the arms of two nodes that begin at the same value.
fn merged(
    old: impl Iterator<Item = (u128, Ref)>,
    new: impl Iterator<Item = (u128, Ref)>,
) -> impl Iterator<Item = (u128, Ref, Ref)> {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    let (mut old_child, mut new_child) = (Ref::NOTHING, Ref::NOTHING);
    std::iter::from_fn(move || {
        let first = [old.peek(), new.peek()].into_iter().flatten().map(|(first, _)| *first).min()?;
        old_child = old.next_if(|(at, _)| *at == first).map_or(old_child, |(_, child)| child);
        new_child = new.next_if(|(at, _)| *at == first).map_or(new_child, |(_, child)| child);
        Some((first, old_child, new_child))
    })
}
