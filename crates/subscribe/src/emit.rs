//! Diagrams to tables, and from one diagram to the next the least change of the tables.
//!
//! States are numbers of nodes, and they are stable: a node keeps its state for as long as the diagram has it, and a new
//! node at the place of an old one takes the state over. So of a node with many arms of which one changes, one entry
//! changes. Nodes are counted by the arms that lead to them, as far as they changed: the cost of a change is that of the
//! nodes that come and go, whatever the size of the diagram.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use bdd::{Ref, Store};

use crate::acts::{Act, Acts};
use crate::codes::Codes;
use crate::format::Format;
use crate::groups::Groups;
use crate::layout::{Key, Layout};
use crate::slice;
use crate::tables::{Change, Delivery, Entry, EntryKey, Leaf, Stage, State, Tables};

/// How many entries the validity table may have.
const MAX_VALIDITY: usize = 1 << 14;

type Fast = foldhash::fast::FixedState;

struct Held {
    state: State,
    uses: usize,
}

/// A pattern of validity, and the function that holds for it.
type Frontier = Vec<(Vec<Option<bool>>, Ref)>;

/// Why a diagram cannot become tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Rules tell more combinations of valid headers apart than the validity table can hold.
    Validity,
    /// More groups than the target has.
    Groups(u32),
    /// More bounds of a level than codes of so many bits.
    Codes(u32, u32),
    /// Two rules for the same message run an action with different arguments: the set of acts, and the action.
    Calls(Ref, crate::ActionId),
}

/// What everything is looked up in while entries are made.
pub(crate) struct Surroundings<'a> {
    pub store: &'a Store,
    pub format: &'a Format,
    pub layout: &'a Layout,
    pub stages: &'a [Stage],
    pub acts: &'a Acts,
}

/// What the tables hold, as states of a diagram.
pub(crate) struct Emitter {
    root: Ref,
    frontier: Frontier,
    held: HashMap<Ref, Held, Fast>,
    free: BinaryHeap<Reverse<State>>,
    next: State,
    groups: Groups,
    /// By level, for fields that have them.
    codes: BTreeMap<u32, Codes>,
}

/// Nodes that come and go.
#[derive(Default)]
struct Turnover {
    fresh: Vec<Ref>,
    /// With the states that they had.
    dead: BTreeMap<Ref, State>,
}

impl Emitter {
    pub fn new(format: &Format, layout: &Layout, max_group: u32) -> Emitter {
        let codes = layout.keys().iter().enumerate().filter_map(|(level, key)| match key {
            Key::Field(id) => Some((level as u32, Codes::new(format.compressed(*id)?, format.get(*id).max()))),
            _ => None,
        });
        Emitter {
            root: Ref::NOTHING,
            frontier: Vec::new(),
            held: HashMap::default(),
            free: BinaryHeap::new(),
            next: 1,
            groups: Groups::new(max_group),
            codes: codes.collect(),
        }
    }

    /// The diagram that the tables are of.
    pub fn root(&self) -> Ref {
        self.root
    }

    /// How many states there are, the first not included.
    pub fn states(&self) -> usize {
        self.held.len()
    }

    /// Bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.held.capacity() * (size_of::<(Ref, Held)>() + 1) + self.groups.bytes()
    }

    /// Goes over to another diagram.
    ///
    /// # Errors
    /// [`Refused`]; then everything is as before.
    pub fn turn_to(&mut self, root: Ref, with: &Surroundings<'_>) -> Result<Change, Refused> {
        if root == self.root {
            return Ok(Change::default());
        }
        let mut frontier = Frontier::new();
        let levels = with.layout.validities() as u32;
        let mut pattern = vec![None; levels as usize];
        if levels > 0 && !patterns(with.store, root, levels, &mut pattern, &mut frontier) {
            return Err(Refused::Validity);
        }
        let mut turnover = Turnover::default();
        self.acquire_root(root, &frontier, with.store, &mut turnover);
        if let Err(refused) = self.check(root, &turnover.fresh, with) {
            let mut back = Turnover::default();
            self.release_root(root, &frontier, with.store, &mut back);
            return Err(refused);
        }
        let (old_root, old_frontier) = (self.root, std::mem::take(&mut self.frontier));
        self.release_root(old_root, &old_frontier, with.store, &mut turnover);
        let inherited = self.inherit((old_root, root), (&old_frontier, &frontier), with, &turnover);
        let (old_codes, spread) = self.turn_codes((old_root, root), (&old_frontier, &frontier), with.store, &turnover);
        let change = self.difference(
            (old_root, root),
            (&old_frontier, &frontier),
            with,
            &turnover,
            &inherited,
            (&old_codes, &spread),
        );
        let taken: HashSet<State> = inherited.values().map(|old| turnover.dead[old]).collect();
        self.free.extend(turnover.dead.values().filter(|state| !taken.contains(state)).map(|state| Reverse(*state)));
        self.root = root;
        self.frontier = frontier;
        Ok(change)
    }

    fn acquire_root(&mut self, root: Ref, frontier: &Frontier, store: &Store, turnover: &mut Turnover) {
        match self.is_direct(store, root, frontier) {
            true => store.arms(root).for_each(|(_, child)| self.acquire(child, store, turnover)),
            false => frontier.iter().for_each(|(_, function)| self.acquire(*function, store, turnover)),
        }
    }

    fn release_root(&mut self, root: Ref, frontier: &Frontier, store: &Store, turnover: &mut Turnover) {
        match self.is_direct(store, root, frontier) {
            true => store.arms(root).for_each(|(_, child)| self.release(child, store, turnover)),
            false => frontier.iter().for_each(|(_, function)| self.release(*function, store, turnover)),
        }
    }

    /// Whether the root itself has state 0, as it asks for no validity.
    fn is_direct(&self, _: &Store, root: Ref, frontier: &Frontier) -> bool {
        frontier.iter().all(|(pattern, function)| *function == root && pattern.iter().all(Option::is_none))
    }

    fn acquire(&mut self, function: Ref, store: &Store, turnover: &mut Turnover) {
        if function == Ref::NOTHING {
            return;
        }
        let held = self.held.entry(function).or_insert(Held { state: 0, uses: 0 });
        held.uses += 1;
        if held.uses == 1 {
            turnover.fresh.push(function);
            store.arms(function).for_each(|(_, child)| self.acquire(child, store, turnover));
        }
    }

    fn release(&mut self, function: Ref, store: &Store, turnover: &mut Turnover) {
        if function == Ref::NOTHING {
            return;
        }
        let held = self.held.get_mut(&function).expect("what is released was held");
        held.uses -= 1;
        if held.uses == 0 {
            turnover.dead.insert(function, held.state);
            self.held.remove(&function);
            store.arms(function).for_each(|(_, child)| self.release(child, store, turnover));
        }
    }

    /// Whether everything new can be in tables.
    fn check(&mut self, root: Ref, fresh: &[Ref], with: &Surroundings<'_>) -> Result<(), Refused> {
        let mut ports: HashSet<Vec<u32>> = HashSet::new();
        for set in fresh.iter().copied().chain([root]).filter(|function| function.is_set()) {
            let delivery = deliver(with, set);
            if let Some(pair) = delivery.calls.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Refused::Calls(set, pair[0].0));
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
            // Bounds that go are counted too.
            if !codes.fits(new) {
                return Err(Refused::Codes(*level, codes.width()));
            }
        }
        // Groups that go are counted too: they are deleted last.
        if self.groups.len() + ports.len() > self.groups.max() as usize {
            return Err(Refused::Groups(self.groups.max()));
        }
        Ok(())
    }

    /// Finds for new nodes the old ones whose place they take, and gives the others states of their own.
    fn inherit(
        &mut self,
        (old_root, root): (Ref, Ref),
        (old_frontier, frontier): (&Frontier, &Frontier),
        with: &Surroundings<'_>,
        turnover: &Turnover,
    ) -> HashMap<Ref, Ref, Fast> {
        let fresh: HashSet<Ref, Fast> = turnover.fresh.iter().copied().collect();
        let mut inherited: HashMap<Ref, Ref, Fast> = HashMap::default();
        let mut taken: HashSet<Ref, Fast> = HashSet::default();
        let mut waiting: Vec<(Ref, Ref)> = Vec::new();
        let old_direct = self.is_direct(with.store, old_root, old_frontier);
        if self.is_direct(with.store, root, frontier) && old_direct {
            below(with.store, old_root, root, &mut waiting);
        } else {
            let old: HashMap<&Vec<Option<bool>>, Ref> =
                old_frontier.iter().map(|(pattern, of)| (pattern, *of)).collect();
            waiting.extend(frontier.iter().rev().filter_map(|(pattern, new)| Some((*old.get(pattern)?, *new))));
        }
        let mut seen: HashSet<(Ref, Ref), Fast> = HashSet::default();
        while let Some((old, new)) = waiting.pop() {
            let worth = old != new && fresh.contains(&new) && turnover.dead.contains_key(&old);
            if !worth || with.store.level(old) != with.store.level(new) || !seen.insert((old, new)) {
                continue;
            }
            if !inherited.contains_key(&new) && !taken.contains(&old) {
                inherited.insert(new, old);
                taken.insert(old);
            }
            below(with.store, old, new, &mut waiting);
        }
        for function in &turnover.fresh {
            let state = match inherited.get(function) {
                Some(old) => turnover.dead[old],
                None => match self.free.pop() {
                    Some(Reverse(state)) => state,
                    None => {
                        self.next += 1;
                        self.next - 1
                    }
                },
            };
            self.held.get_mut(function).expect("it was acquired").state = state;
        }
        inherited
    }

    /// Brings the codes up to date; the codes from before, and the levels whose codes are all new.
    fn turn_codes(
        &mut self,
        (old_root, root): (Ref, Ref),
        (old_frontier, frontier): (&Frontier, &Frontier),
        store: &Store,
        turnover: &Turnover,
    ) -> (BTreeMap<u32, Codes>, Vec<u32>) {
        let new_direct = self.is_direct(store, root, frontier).then_some(root);
        let old_direct = self.is_direct(store, old_root, old_frontier).then_some(old_root);
        let (mut before, mut spread) = (BTreeMap::new(), Vec::new());
        for (level, codes) in &mut self.codes {
            let here = |function: &Ref| store.level(*function) == Some(*level);
            let fresh: Vec<Ref> = turnover.fresh.iter().copied().chain(new_direct).filter(here).collect();
            let dead: Vec<Ref> = turnover.dead.keys().copied().chain(old_direct).filter(here).collect();
            if fresh.is_empty() && dead.is_empty() {
                continue;
            }
            before.insert(*level, codes.clone());
            let bounds = |of: Ref| store.arms(of).map(|(first, _)| first).skip(1);
            let moved = fresh.into_iter().flat_map(bounds).fold(false, |moved, bound| codes.hold(bound) | moved);
            if moved {
                spread.push(*level);
            }
            dead.into_iter().flat_map(bounds).for_each(|bound| codes.release(bound));
        }
        (before, spread)
    }

    fn state(&self, function: Ref) -> State {
        self.held.get(&function).map_or(0, |held| held.state)
    }

    /// The entries of a node under a state, by key; in codes where the level has some.
    fn entries_of(
        function: Ref,
        codes: Option<&Codes>,
        with: &Surroundings<'_>,
        state_of: impl Fn(Ref) -> State,
    ) -> Vec<(EntryKey, State)> {
        let Some(level) = with.store.level(function) else { return Vec::new() };
        let (stage, mut width) = with.stage(level);
        let arms = with.store.arms(function).map(|(first, child)| (first, state_of(child)));
        let mut arms: Vec<(u128, State)> = arms.collect();
        if let Some(codes) = codes {
            (arms, width) = (codes.arms(&arms), codes.width());
        }
        let mut entries = slice::entries(&arms, width, &with.stages[stage]);
        entries.sort_unstable();
        entries
    }

    /// The codes of the level that a node asks.
    fn codes_of(&self, function: Ref, with: &Surroundings<'_>) -> Option<&Codes> {
        self.codes.get(&with.store.level(function)?)
    }

    fn difference(
        &mut self,
        (old_root, root): (Ref, Ref),
        (old_frontier, frontier): (&Frontier, &Frontier),
        with: &Surroundings<'_>,
        turnover: &Turnover,
        inherited: &HashMap<Ref, Ref, Fast>,
        (old_codes, spread): (&BTreeMap<u32, Codes>, &[u32]),
    ) -> Change {
        let mut change = Change::default();
        let old_state = |function: Ref| turnover.dead.get(&function).copied().unwrap_or_else(|| self.state(function));
        let no_set = |function: &Ref| !function.is_set();
        // The root without validity, whose state is 0 as it is for nothing at all.
        let of_root = |function: Ref, frontier: &Frontier| match self.is_direct(with.store, function, frontier) {
            true => function,
            false => Ref::NOTHING,
        };
        let (old_direct, new_direct) = (of_root(old_root, old_frontier), of_root(root, frontier));
        let mut pairs: Vec<(Option<Ref>, Option<Ref>, State)> = vec![(Some(old_direct), Some(new_direct), 0)];
        let taken: HashSet<Ref, Fast> = inherited.values().copied().collect();
        pairs.extend(turnover.fresh.iter().map(|new| (inherited.get(new).copied(), Some(*new), self.state(*new))));
        let gone = turnover.dead.iter().filter(|(old, _)| !taken.contains(*old));
        pairs.extend(gone.map(|(old, state)| (Some(*old), None, *state)));
        // Where all codes are new, so are the entries of states that stay.
        if !spread.is_empty() {
            let fresh: HashSet<Ref, Fast> = turnover.fresh.iter().copied().collect();
            let is_spread = |of: &Ref| with.store.level(*of).is_some_and(|level| spread.contains(&level));
            let stays = self.held.iter().filter(|(of, _)| is_spread(of) && !fresh.contains(*of));
            let mut stays: Vec<_> = stays.map(|(of, held)| (Some(*of), Some(*of), held.state)).collect();
            stays.sort_unstable();
            pairs.extend(stays);
        }
        let codes_before = |of: Ref| {
            let level = with.store.level(of)?;
            old_codes.get(&level).or_else(|| self.codes.get(&level))
        };
        for (old, new, state) in &pairs {
            let level = |function: &Option<Ref>| function.filter(no_set).and_then(|of| with.store.level(of));
            let before = old.map_or(Vec::new(), |old| Self::entries_of(old, codes_before(old), with, old_state));
            let after = new.map_or(Vec::new(), |new| {
                Self::entries_of(new, self.codes_of(new, with), with, |child| self.state(child))
            });
            let old_stage = level(old).map_or(0, |level| with.stage(level).0 as u16);
            let new_stage = level(new).map_or(0, |level| with.stage(level).0 as u16);
            let entry = |stage: u16, (key, next): (EntryKey, State)| Entry { stage, state: *state, key, next };
            let before = before.into_iter().map(|of| entry(old_stage, of)).collect();
            let after = after.into_iter().map(|of| entry(new_stage, of)).collect();
            merge(before, after, &mut change);
        }
        let validity = |frontier: &Frontier, direct: Ref, state_of: &dyn Fn(Ref) -> State| -> Vec<Entry> {
            if direct != Ref::NOTHING {
                return Vec::new();
            }
            let useful = frontier.iter().filter(|(_, function)| *function != Ref::NOTHING);
            let mut entries: Vec<Entry> = useful
                .map(|(pattern, function)| Entry {
                    stage: 0,
                    state: 0,
                    key: EntryKey::Validity(pattern.clone()),
                    next: state_of(*function),
                })
                .collect();
            entries.sort_unstable();
            entries
        };
        let before = validity(old_frontier, old_direct, &old_state);
        let after = validity(frontier, new_direct, &|function| self.state(function));
        merge(before, after, &mut change);
        for (level, before) in old_codes {
            let stage = with.stage(*level).0 as u16;
            let (before, after) = (before.entries(stage), self.codes[level].entries(stage));
            let (old, new): (HashSet<_>, HashSet<_>) = (before.iter().collect(), after.iter().collect());
            change.old_codes.extend(before.iter().filter(|entry| !new.contains(entry)).cloned());
            change.new_codes.extend(after.iter().filter(|entry| !old.contains(entry)).cloned());
        }
        self.leaves(&pairs, with, &mut change);
        change
    }

    fn leaves(&mut self, pairs: &[(Option<Ref>, Option<Ref>, State)], with: &Surroundings<'_>, change: &mut Change) {
        let set = |function: &Option<Ref>| function.filter(|of| of.is_set() && *of != Ref::NOTHING);
        // All new groups are taken before any old one goes, so that what both have stays.
        let mut old_ports = Vec::new();
        for (old, new, state) in pairs {
            let after = set(new).map(|new| {
                let mut delivery = deliver(with, new);
                delivery.group = self.groups.hold(&delivery.ports, &mut change.new_groups);
                Leaf { state: *state, delivery }
            });
            let is_old = set(old).map(|old| old_ports.push(deliver(with, old).ports)).is_some();
            match (is_old, after) {
                (true, Some(leaf)) => change.modified_leaves.push(leaf),
                (false, Some(leaf)) => change.new_leaves.push(leaf),
                (true, None) => change.old_leaves.push(*state),
                (false, None) => {}
            }
        }
        for ports in old_ports {
            self.groups.release(&ports, &mut change.old_groups);
        }
    }

    /// All that the tables hold.
    pub fn tables(&self, with: &Surroundings<'_>) -> Tables {
        let mut tables = Tables { groups: self.groups.list(), ..Tables::default() };
        let direct = self.is_direct(with.store, self.root, &self.frontier);
        let functions = self.held.iter().map(|(function, held)| (*function, held.state));
        for (function, state) in functions.chain(direct.then_some((self.root, 0))) {
            if function == Ref::NOTHING {
                continue;
            }
            if function.is_set() {
                let mut delivery = deliver(with, function);
                delivery.group = self.groups.find(&delivery.ports);
                tables.leaves.push(Leaf { state, delivery });
                continue;
            }
            let stage = with.stage(with.store.level(function).unwrap_or(0)).0 as u16;
            let entries = Self::entries_of(function, self.codes_of(function, with), with, |child| self.state(child));
            tables.entries.extend(entries.into_iter().map(|(key, next)| Entry { stage, state, key, next }));
        }
        if !direct {
            let useful = self.frontier.iter().filter(|(_, function)| *function != Ref::NOTHING);
            tables.entries.extend(useful.map(|(pattern, function)| Entry {
                stage: 0,
                state: 0,
                key: EntryKey::Validity(pattern.clone()),
                next: self.state(*function),
            }));
        }
        for (level, codes) in &self.codes {
            tables.codes.extend(codes.entries(with.stage(*level).0 as u16));
        }
        tables.entries.sort_unstable();
        tables.leaves.sort_unstable_by_key(|leaf| leaf.state);
        tables
    }
}

impl Surroundings<'_> {
    /// The stage of a level behind those of validity, and the width of what it looks up.
    pub fn stage(&self, level: u32) -> (usize, u32) {
        let validities = self.layout.validities();
        let stage = level as usize - validities + usize::from(validities > 0);
        (stage, self.layout.keys()[level as usize].width(self.format))
    }
}

/// What a set of acts comes to, without its group.
pub(crate) fn deliver(with: &Surroundings<'_>, set: Ref) -> Delivery {
    delivery(with.acts, with.store.set(set))
}

/// What acts come to, without the group.
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

/// The patterns of validity that a function tells apart, and what holds for each; `false` if there are too many.
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

/// Pairs of children of two nodes of a level that hold for a value together, the first pair to be taken off first.
fn below(store: &Store, old: Ref, new: Ref, waiting: &mut Vec<(Ref, Ref)>) {
    if store.level(old) != store.level(new) || old.is_set() {
        return;
    }
    let from = waiting.len();
    let mut old_arms = store.arms(old).peekable();
    let mut new_arms = store.arms(new).peekable();
    let (mut old_child, mut new_child) = (Ref::NOTHING, Ref::NOTHING);
    loop {
        let firsts = (old_arms.peek().map(|(first, _)| *first), new_arms.peek().map(|(first, _)| *first));
        let first = match firsts {
            (Some(one), Some(other)) => one.min(other),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => break,
        };
        if let Some((_, child)) = old_arms.next_if(|(at, _)| *at == first) {
            old_child = child;
        }
        if let Some((_, child)) = new_arms.next_if(|(at, _)| *at == first) {
            new_child = child;
        }
        if old_child != new_child {
            waiting.push((old_child, new_child));
        }
    }
    waiting[from..].reverse();
}

/// What is to be done to come from some entries to others, both in order.
fn merge(before: Vec<Entry>, after: Vec<Entry>, change: &mut Change) {
    let place = |entry: &Entry| (entry.stage, entry.state, entry.key.clone());
    let mut before = before.into_iter().peekable();
    for entry in after {
        while let Some(old) = before.next_if(|old| place(old) < place(&entry)) {
            change.deleted.push(old);
        }
        match before.next_if(|old| place(old) == place(&entry)) {
            Some(old) if old.next == entry.next => {}
            Some(_) => change.modified.push(entry),
            None => change.inserted.push(entry),
        }
    }
    change.deleted.extend(before);
}
