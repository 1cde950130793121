//! Emission of table entries from decision diagrams, and incremental updates from one diagram to the next.
//!
//! States are stable numbers of nodes: a node keeps its state while the diagram contains it, and a new node in the
//! position of an old one inherits the old state. If one of many arms of a node changes, one entry changes. Nodes are
//! reference-counted by the arms that lead to them. The cost of an update is proportional to the nodes added and
//! removed, independent of the size of the diagram.

mod difference;
mod exclusive;
mod inherit;
mod states;

use std::collections::{BTreeMap, HashMap, HashSet};

use bdd::{Ref, Store};

use crate::acts::{Act, Acts};
use crate::codes::Codes;
use crate::format::Format;
use crate::groups::Groups;
use crate::layout::{Key, Layout};
use crate::slice;
use crate::state;
use crate::subscriptions::{Options, Writes};
use crate::tables::{Change, Delivery, Stage, State, Wide};

use states::States;

/// Maximum number of entries in the validity table.
const MAX_VALIDITY: usize = 1 << 14;

type Fast = foldhash::fast::FixedState;

#[derive(Clone)]
struct Held {
    state: State,
    /// Approximate number of entries.
    entries: u32,
    uses: usize,
}

/// Validity patterns with the function that applies to each.
type Frontier = Vec<(Vec<Option<bool>>, Ref)>;

/// The entry point of messages into a diagram.
#[derive(Clone, Debug)]
struct Entrance {
    root: Ref,
    /// Empty for a format without headers. The root itself then has state 0, because no validity is tested.
    frontier: Frontier,
}

impl Entrance {
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
pub(crate) enum Refused {
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
pub(crate) struct Surroundings<'a> {
    pub store: &'a Store,
    pub format: &'a Format,
    pub layout: &'a Layout,
    pub stages: &'a [Stage],
    pub acts: &'a Acts,
}

/// The diagram in the tables, as states of its nodes.
#[derive(Clone)]
pub(crate) struct Emitter {
    entrance: Entrance,
    held: HashMap<Ref, Held, Fast>,
    states: States,
    groups: Groups,
    /// Codes by level, for fields that have codes.
    codes: BTreeMap<u32, Codes>,
    writes: Writes,
    one_update: bool,
    carries: bool,
    /// Number of entries per level.
    entries: BTreeMap<u32, usize>,
    max_entries: usize,
}

/// Nodes that an update adds and removes.
#[derive(Default)]
struct Turnover {
    fresh: Vec<Ref>,
    /// Removed nodes with their states.
    dead: BTreeMap<Ref, State>,
}

impl Emitter {
    pub fn new(format: &Format, layout: &Layout, options: &Options) -> Emitter {
        let codes = layout.keys().iter().enumerate().filter_map(|(level, key)| match key {
            Key::Field(id) => Some((level as u32, Codes::new(format.compressed(*id)?, format.get(*id).max()))),
            _ => None,
        });
        Emitter {
            entrance: Entrance { root: Ref::NOTHING, frontier: Vec::new() },
            held: HashMap::default(),
            states: States::default(),
            groups: Groups::new(options.target.max_group),
            codes: codes.collect(),
            writes: options.writes,
            one_update: options.target.one_update,
            carries: options.target.carries,
            entries: BTreeMap::new(),
            max_entries: options.limits.entries,
        }
    }

    /// Returns the diagram that is in the tables.
    pub fn root(&self) -> Ref {
        self.entrance.root
    }

    /// Returns the number of states besides state 0.
    pub fn states(&self) -> usize {
        self.held.len()
    }

    /// Returns the memory used, in bytes.
    pub fn bytes(&self) -> usize {
        self.held.capacity() * (size_of::<(Ref, Held)>() + 1) + self.groups.bytes()
    }

    /// Updates the tables to another diagram and returns the change.
    ///
    /// # Errors
    /// [`Refused`]; the emitter is then unchanged.
    pub fn turn_to(&mut self, root: Ref, with: &Surroundings<'_>) -> Result<Change, Refused> {
        if root == self.entrance.root {
            return Ok(Change::default());
        }
        let mut frontier = Frontier::new();
        let levels = with.layout.validities() as u32;
        let mut pattern = vec![None; levels as usize];
        if levels > 0 && !patterns(with.store, root, levels, &mut pattern, &mut frontier) {
            return Err(Refused::Validity);
        }
        let new = Entrance { root, frontier };
        let mut turnover = Turnover::default();
        new.functions(with.store).for_each(|function| self.acquire(function, with, &mut turnover));
        if let Err(refused) = self.check(root, &turnover.fresh, with) {
            let mut back = Turnover::default();
            new.functions(with.store).for_each(|function| self.release(function, with.store, &mut back));
            return Err(refused);
        }
        let old = std::mem::replace(&mut self.entrance, new);
        old.functions(with.store).for_each(|function| self.release(function, with.store, &mut turnover));
        let inherited = match self.writes {
            Writes::Together => self.inherit(&old, with, &turnover),
            Writes::InTurn => self.exclusive(&old, with, &turnover),
        };
        self.allot(&turnover, &inherited, with);
        let (old_codes, spread) = self.turn_codes(&old, with.store, &turnover);
        let change = self.difference(&old, with, &turnover, &inherited, (&old_codes, &spread));
        let taken: HashSet<State> = inherited.values().map(|old| turnover.dead[old]).collect();
        let gone = turnover.dead.values().filter(|state| !taken.contains(state));
        gone.for_each(|state| self.states.give_back(*state));
        Ok(change)
    }

    fn acquire(&mut self, function: Ref, with: &Surroundings<'_>, turnover: &mut Turnover) {
        if function == Ref::NOTHING {
            return;
        }
        let held = self.held.entry(function).or_insert(Held { state: 0, entries: 0, uses: 0 });
        held.uses += 1;
        if held.uses == 1 {
            turnover.fresh.push(function);
            if let Some(level) = with.store.level(function) {
                let entries = with.entries(function, level);
                held.entries = u32::try_from(entries).unwrap_or(u32::MAX);
                *self.entries.entry(level).or_default() += held.entries as usize;
            }
            with.store.arms(function).for_each(|(_, child)| self.acquire(child, with, turnover));
        }
    }

    fn release(&mut self, function: Ref, store: &Store, turnover: &mut Turnover) {
        if function == Ref::NOTHING {
            return;
        }
        let held = self.held.get_mut(&function).expect("what is released was held");
        held.uses -= 1;
        if held.uses == 0 {
            let entries = held.entries as usize;
            turnover.dead.insert(function, held.state);
            self.held.remove(&function);
            if let Some(of_level) = store.level(function).and_then(|level| self.entries.get_mut(&level)) {
                *of_level -= entries;
            }
            store.arms(function).for_each(|(_, child)| self.release(child, store, turnover));
        }
    }

    /// Checks that all new nodes fit in the tables.
    fn check(&mut self, root: Ref, fresh: &[Ref], with: &Surroundings<'_>) -> Result<(), Refused> {
        let mut ports: HashSet<Vec<u32>> = HashSet::new();
        for set in fresh.iter().copied().chain([root]).filter(|function| function.is_set()) {
            let delivery = deliver(with, set);
            if let Some(pair) = delivery.calls.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Refused::Calls(set, pair[0].0));
            }
            let twice = delivery.updates.windows(2).find(|pair| pair[0].counter == pair[1].counter);
            if let Some(pair) = twice.filter(|_| self.one_update) {
                return Err(Refused::Updates(set, pair[0].counter));
            }
            if delivery.ports.len() > 1 && !self.groups.has(&delivery.ports) {
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
                return Err(Refused::Codes(*level, codes.width()));
            }
        }
        // Entries and states to be removed count too, because they are deleted last.
        if let Some((level, _)) = self.entries.iter().find(|(_, entries)| **entries > self.max_entries) {
            return Err(Refused::Entries(*level, self.max_entries));
        }
        let mut tags: BTreeMap<u32, usize> = BTreeMap::new();
        fresh.iter().for_each(|function| *tags.entry(with.tag(*function)).or_default() += 1);
        if tags.into_iter().any(|(tag, new)| new > self.states.room(tag)) {
            return Err(Refused::States);
        }
        // Groups to be removed count too, because they are deleted last.
        if self.groups.len() + ports.len() > self.groups.max() as usize {
            return Err(Refused::Groups(self.groups.max()));
        }
        Ok(())
    }

    fn state(&self, function: Ref) -> State {
        self.held.get(&function).map_or(0, |held| held.state)
    }
}

impl Surroundings<'_> {
    /// Returns the state tag of a function.
    pub fn tag(&self, function: Ref) -> u32 {
        let leaf = || {
            let is_kept = |act: &Act| matches!(act, Act::Update(_) | Act::Slot(_));
            let is_remembered = self.store.set(function).iter().any(|number| is_kept(self.acts.get(*number)));
            if is_remembered { state::REMEMBERED } else { state::LEAF }
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
        let mut known: HashMap<Ref, State, Fast> = HashMap::default();
        known.insert(Ref::NOTHING, 0);
        let arms: Vec<(u128, State)> = self
            .store
            .arms(function)
            .map(|(first, child)| {
                let next = known.len() as State;
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
pub(crate) fn deliver(with: &Surroundings<'_>, set: Ref) -> Delivery {
    delivery(with.acts, with.store.set(set))
}

/// Returns the delivery of these effects, without its group.
pub(crate) fn delivery(acts: &Acts, numbers: &[u32]) -> Delivery {
    let mut delivery = Delivery::default();
    for number in numbers {
        match acts.get(*number) {
            Act::Port(port) => delivery.ports.push(*port),
            Act::Drop => delivery.drop = true,
            Act::Controller => delivery.to_controller = true,
            Act::Call(id, values) => delivery.calls.push((*id, values.clone())),
            Act::Update(update) => delivery.updates.push(update.clone()),
            Act::Slot(slot) => delivery.slots.push(*slot),
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

/// Returns pairs of children of two nodes for the same values, one pair per interval, by ascending values.
fn children(store: &Store, old: Ref, new: Ref) -> impl Iterator<Item = (Ref, Ref)> {
    let (mut old_arms, mut new_arms) = (store.arms(old).peekable(), store.arms(new).peekable());
    let (mut old_child, mut new_child) = (Ref::NOTHING, Ref::NOTHING);
    std::iter::from_fn(move || {
        let first = [old_arms.peek(), new_arms.peek()].into_iter().flatten().map(|(first, _)| *first).min()?;
        old_child = old_arms.next_if(|(at, _)| *at == first).map_or(old_child, |(_, child)| child);
        new_child = new_arms.next_if(|(at, _)| *at == first).map_or(new_child, |(_, child)| child);
        Some((old_child, new_child))
    })
}
