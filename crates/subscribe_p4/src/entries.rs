//! From the tables of compiled rules to what the generated program's tables are told.

use std::collections::{BTreeMap, BTreeSet};

use subscribe::{
    Change, CodeEntry, Delivery, Entry, EntryKey, Group, Layout, Leaf, Stage, StageKey, State, Tables, Wide,
};

use crate::format::Format;
use crate::groups;
use crate::rules::Rules;
use crate::stateful;
use crate::turn::{Raised, Rounds, least_specific_first, least_specific_last, overlapped};
use crate::write::{
    EVERYONE, Options, REST_SESSION, VALIDITY, codes_table, do_table, part_name, to_code, validity, wide_name,
};

/// What a key of a table matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matched {
    /// This value.
    Exact(u128),
    /// Values with these first bits: the value and how many.
    Lpm(u128, u32),
    /// From the first to the second, both included.
    Range(u128, u128),
    /// A value where the mask has ones.
    Ternary(u128, u128),
}

/// Names of an action's parameters, their widths in bits, and values.
pub type Params = Vec<(String, u32, u128)>;

/// An entry of a table of the generated program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// The table's full name.
    pub table: String,
    /// The keys' names, widths in bits, and what they match. One that is left out matches anything.
    pub keys: Vec<(String, u32, Matched)>,
    /// For tables that have priorities.
    pub priority: Option<u32>,
    /// The action's full name.
    pub action: String,
    /// The parameters' names, widths in bits, and values.
    pub params: Params,
}

/// Something a switch can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A table's entry.
    Table(TableEntry),
    /// A multicast group: its number and ports.
    Group(u32, Vec<u32>),
    /// A mirror session: its number and port.
    Session(u32, u32),
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// It is new.
    Insert(Entity),
    /// It takes the place of the one with its key.
    Modify(Entity),
    /// It goes; only its key matters.
    Delete(Entity),
}

/// Puts the tables of compiled rules into a program's terms, and remembers what the program was told beside them: groups
/// with the controller in them, and the one of everyone.
#[derive(Clone, Debug)]
pub struct Installer<'a> {
    format: &'a Format,
    rules: &'a Rules,
    stages: Vec<Stage>,
    cpu_port: u32,
    /// Whether entries say where to that lead to leaves where messages are delivered and no more.
    carries: bool,
    /// What each leaf delivers.
    leaves: BTreeMap<State, Delivery>,
    /// Groups with the controller's port, by their ports, with how many leaves use them.
    with_controller: BTreeMap<Vec<u32>, (u32, usize)>,
    /// Numbers that groups with the controller had before, and have again.
    known: BTreeMap<Vec<u32>, u32>,
    /// Numbers that groups with the controller may have.
    free: BTreeSet<u32>,
    /// Numbers of groups that go at the end of the change that is made: no other has them before.
    leaving: Vec<u32>,
    /// How many leaves deliver to each port.
    ports: BTreeMap<u32, usize>,
    /// Whether the target takes writes one after the other.
    in_turn: bool,
    /// Entries of another priority than their own.
    raised: Raised,
}

/// What a change takes, for targets that take writes one after the other ([`subscribe::Writes::InTurn`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// What nothing leads to yet.
    pub prepare: Vec<Update>,
    /// What turns messages from the old rules to the new ones, each message at one of these: in rounds, before each of
    /// which the messages on their way have to leave.
    pub turn: Vec<Vec<Update>>,
    /// What nothing leads to any more, once the messages on their way have left.
    pub clean: Vec<Update>,
}

impl Steps {
    /// All of them, in order.
    pub fn all(self) -> Vec<Update> {
        [self.prepare, self.turn.concat(), self.clean].concat()
    }

    /// How many writes there are.
    pub fn len(&self) -> usize {
        self.prepare.len() + self.turn.iter().map(Vec::len).sum::<usize>() + self.clean.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// There are more different sets of ports with the controller than numbers for groups of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyGroups;

impl std::fmt::Display for TooManyGroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = groups::WITH_CONTROLLER.len();
        write!(f, "the rules deliver to more than {most} different sets of ports together with the controller")
    }
}

impl std::error::Error for TooManyGroups {}

impl<'a> Installer<'a> {
    /// For a program written with these. The controller's packets go to `cpu_port`.
    pub fn new(format: &'a Format, rules: &'a Rules, layout: &Layout, options: &Options, cpu_port: u32) -> Self {
        let stages = subscribe::stages(&rules.format, layout, &options.target);
        Installer {
            format,
            rules,
            stages,
            cpu_port,
            carries: options.target.carries,
            leaves: BTreeMap::new(),
            with_controller: BTreeMap::new(),
            known: BTreeMap::new(),
            free: groups::WITH_CONTROLLER.collect(),
            leaving: Vec::new(),
            ports: BTreeMap::new(),
            in_turn: false,
            raised: Raised::default(),
        }
    }

    /// For a target that takes writes one after the other, and rules that are compiled for that.
    #[must_use]
    pub fn in_turn(self) -> Self {
        Installer { in_turn: true, ..self }
    }

    /// For a program that has no entries any more, but is to get those again that it has by this one: what has a number or a
    /// priority keeps it.
    #[must_use]
    pub fn again(&self) -> Self {
        let known: BTreeMap<Vec<u32>, u32> =
            self.with_controller.iter().map(|(ports, (id, _))| (ports.clone(), *id)).collect();
        let taken: BTreeSet<u32> = known.values().copied().collect();
        Installer {
            stages: self.stages.clone(),
            with_controller: BTreeMap::new(),
            free: groups::WITH_CONTROLLER.filter(|id| !taken.contains(id)).collect(),
            known,
            leaving: Vec::new(),
            leaves: BTreeMap::new(),
            ports: BTreeMap::new(),
            raised: self.raised.clone(),
            ..*self
        }
    }

    /// What a program without entries is told for these tables, in an order in which it can be written.
    ///
    /// # Errors
    /// [`TooManyGroups`]; then this is of no use any more.
    pub fn install(&mut self, tables: &Tables) -> Result<Vec<Update>, TooManyGroups> {
        self.install_in(tables, Vec::new()).map(Steps::all)
    }

    /// The same in steps: no message is delivered before the second one.
    ///
    /// # Errors
    /// [`TooManyGroups`]; then this is of no use any more.
    pub fn install_steps(&mut self, tables: &Tables) -> Result<Steps, TooManyGroups> {
        self.install_in(tables, vec![0])
    }

    fn install_in(&mut self, tables: &Tables, kept: Vec<State>) -> Result<Steps, TooManyGroups> {
        let mut updates = Vec::new();
        if self.format.messages.is_some() {
            updates.push(Update::Insert(Entity::Session(REST_SESSION.into(), self.cpu_port)));
            updates.push(Update::Insert(Entity::Group(EVERYONE.into(), Vec::new())));
        }
        let mut steps = self.steps(&Change {
            new_places: tables.places.clone(),
            new_groups: tables.groups.clone(),
            new_leaves: tables.leaves.clone(),
            new_codes: tables.codes.clone(),
            inserted: tables.entries.clone(),
            kept,
            ..Change::default()
        })?;
        updates.append(&mut steps.prepare);
        self.free.extend(std::mem::take(&mut self.known).into_values());
        Ok(Steps { prepare: updates, ..steps })
    }

    /// What a program with [`Options::split_horizon`] is told so that nothing that came in on the first port of a pair leaves on
    /// the second.
    pub fn split_horizon(pairs: &[(u32, u32)]) -> Vec<Update> {
        let port = |name: &str, port: u32| (name.to_owned(), 9, Matched::Exact(port.into()));
        let entry = |(from, to): &(u32, u32)| TableEntry {
            table: "SubscriptionsEgress.split_horizon".to_owned(),
            keys: vec![port("from", *from), port("to", *to)],
            priority: None,
            action: "NoAction".to_owned(),
            params: Vec::new(),
        };
        pairs.iter().map(|pair| Update::Insert(Entity::Table(entry(pair)))).collect()
    }

    /// What it is told for a change, as far as all of it is done at once; in an order in which it can be written.
    ///
    /// # Errors
    /// [`TooManyGroups`]; then this is of no use any more.
    pub fn change(&mut self, change: &Change) -> Result<Vec<Update>, TooManyGroups> {
        self.steps(change).map(Steps::all)
    }

    /// What it is told for a change, in steps. If the rules are compiled for writes one after the other, then a message
    /// sees the old rules or the new ones as long as these are made in order, with a pause before each round and before the last step.
    ///
    /// # Errors
    /// [`TooManyGroups`]; then this is of no use any more.
    pub fn steps(&mut self, change: &Change) -> Result<Steps, TooManyGroups> {
        assert!(!self.in_turn || change.new_codes.is_empty(), "codes change together or not at all");
        let everyone: Vec<u32> = self.ports.keys().copied().collect();
        let is_kept = |state: State| change.kept.binary_search(&state).is_ok();
        let new_groups = change.new_groups.iter().map(|group| Update::Insert(group_entity(group)));
        let new_places = change.new_places.iter().map(|place| Update::Insert(stateful::place(place, self.format)));
        let mut steps = Steps { prepare: new_places.chain(new_groups).collect(), ..Steps::default() };
        let mut old_groups = Vec::new();
        for leaf in &change.new_leaves {
            self.leaf(leaf, &mut steps.prepare, &mut old_groups)?;
        }
        let mut rounds = Rounds::default();
        self.codes(change).into_iter().for_each(|update| rounds.besides(update));
        for leaf in &change.modified_leaves {
            let mut updates = Vec::new();
            self.leaf(leaf, &mut updates, &mut old_groups)?;
            rounds.leaf(leaf.state, updates);
        }
        let (turned, fresh): (Vec<&Entry>, Vec<&Entry>) =
            change.inserted.iter().partition(|entry| is_kept(entry.state));
        let (turned_off, gone): (Vec<&Entry>, Vec<&Entry>) =
            change.deleted.iter().partition(|entry| is_kept(entry.state));
        let table = |this: &Self, entry: &Entry| Entity::Table(this.entry(entry));
        steps.prepare.extend(fresh.into_iter().map(|entry| Update::Insert(table(self, entry))));
        let turned_off = least_specific_first(turned_off);
        let old: Vec<Update> = turned_off.iter().map(|entry| Update::Delete(table(self, entry))).collect();
        if self.in_turn {
            let above = overlapped(&turned, &turned_off, &self.raised);
            turned_off.iter().for_each(|entry| self.raised.remove(entry));
            self.raised.extend(above);
        }
        for entry in least_specific_last(turned) {
            rounds.entry(entry, Update::Insert(table(self, entry)));
        }
        for entry in &change.modified {
            rounds.entry(entry, Update::Modify(table(self, entry)));
        }
        turned_off.iter().zip(old).for_each(|(entry, update)| rounds.entry(entry, update));
        steps.clean.extend(gone.iter().map(|entry| Update::Delete(table(self, entry))));
        gone.iter().for_each(|entry| self.raised.remove(entry));
        for state in &change.old_leaves {
            let nothing = Leaf { state: *state, delivery: Delivery::default() };
            let mut updates = Vec::new();
            self.leaf(&nothing, &mut updates, &mut old_groups)?;
            match is_kept(*state) {
                true => rounds.leaf(*state, updates),
                false => steps.clean.append(&mut updates),
            }
        }
        steps.clean.extend(old_groups);
        let old = change.old_groups.iter().map(|id| Entity::Group(groups::compiled(*id), Vec::new()));
        steps.clean.extend(old.map(Update::Delete));
        let old_places = change.old_places.iter().map(|place| Update::Delete(stateful::place(place, self.format)));
        steps.clean.extend(old_places);
        self.free.extend(self.leaving.drain(..));
        let now: Vec<u32> = self.ports.keys().copied().collect();
        if self.format.messages.is_some() && now != everyone {
            rounds.besides(Update::Modify(Entity::Group(EVERYONE.into(), now)));
        }
        steps.turn = rounds.done();
        Ok(steps)
    }

    /// Takes a leaf from what it was to what it is.
    fn leaf(
        &mut self,
        leaf: &Leaf,
        updates: &mut Vec<Update>,
        old_groups: &mut Vec<Update>,
    ) -> Result<(), TooManyGroups> {
        let before = self.leaves.remove(&leaf.state).unwrap_or_default();
        let state = vec![("state".to_owned(), 32, Matched::Exact(leaf.state.into()))];
        // The new group has to be there before the leaf, the old one until behind it.
        let new_action = self.target(&leaf.delivery, true, updates)?;
        let old_action = self.target(&before, false, old_groups)?;
        let entity = |table: String, (action, params): (String, Params)| {
            Entity::Table(TableEntry {
                table: format!("Subscriptions.{table}"),
                keys: state.clone(),
                priority: None,
                action,
                params,
            })
        };
        let step = |before: Option<Entity>, now: Option<Entity>| match (before, now) {
            (None, None) => None,
            (None, Some(now)) => Some(Update::Insert(now)),
            (Some(before), None) => Some(Update::Delete(before)),
            (Some(before), Some(now)) => (before != now).then_some(Update::Modify(now)),
        };
        let carries = self.carries;
        let at_leaf = |delivery: &Delivery, action: Option<_>| {
            // Those that lead there carry it.
            let action = action.filter(|_| !(carries && delivery.is_plain()));
            action.map(|action| entity("leaf".to_owned(), action))
        };
        updates.extend(step(at_leaf(&before, old_action), at_leaf(&leaf.delivery, new_action)));
        for (number, action) in self.format.actions.iter().enumerate() {
            let call = |delivery: &Delivery| {
                let (_, values) = delivery.calls.iter().find(|(id, _)| usize::from(id.0) == number)?;
                let params = action.params.iter().zip(values);
                let params = params.map(|((name, width), value)| (name.clone(), *width, *value)).collect();
                Some(entity(do_table(&action.name), (action.name.clone(), params)))
            };
            updates.extend(step(call(&before), call(&leaf.delivery)));
        }
        let counts =
            |delivery: &Delivery| stateful::counts(delivery, self.rules).map(|(table, action)| entity(table, action));
        updates.extend(step(counts(&before), counts(&leaf.delivery)));
        for counter in 0..self.format.counters.len() {
            let told = |delivery: &Delivery| stateful::update(delivery, counter, self.format);
            let update = |delivery: &Delivery| told(delivery).map(|(table, action)| entity(table, action));
            updates.extend(step(update(&before), update(&leaf.delivery)));
        }
        self.count_ports(&before, &leaf.delivery);
        if leaf.delivery != Delivery::default() {
            self.leaves.insert(leaf.state, leaf.delivery.clone());
        }
        Ok(())
    }

    fn count_ports(&mut self, before: &Delivery, now: &Delivery) {
        for port in &now.ports {
            *self.ports.entry(*port).or_default() += 1;
        }
        for port in &before.ports {
            let uses = self.ports.get_mut(port).expect("what was delivered was counted");
            *uses -= 1;
            if *uses == 0 {
                self.ports.remove(port);
            }
        }
    }

    /// The leaf's action for a delivery; `comes` or goes, with the group that it needs.
    fn target(
        &mut self,
        delivery: &Delivery,
        comes: bool,
        updates: &mut Vec<Update>,
    ) -> Result<Option<(String, Params)>, TooManyGroups> {
        Ok(match (&delivery.ports[..], delivery.to_controller) {
            (_, false) => to_ports(delivery),
            ([], true) => Some(to_port(self.cpu_port)),
            (ports, true) => Some(to_group(self.controller_group(ports, comes, updates)?)),
        })
    }

    fn controller_group(
        &mut self,
        ports: &[u32],
        comes: bool,
        updates: &mut Vec<Update>,
    ) -> Result<u32, TooManyGroups> {
        if let Some((id, uses)) = self.with_controller.get_mut(ports) {
            let id = *id;
            *uses = if comes { *uses + 1 } else { *uses - 1 };
            if *uses == 0 {
                self.with_controller.remove(ports);
                self.leaving.push(id);
                updates.push(Update::Delete(Entity::Group(id, Vec::new())));
            }
            return Ok(id);
        }
        assert!(comes, "a group that goes was there");
        let id = self.known.remove(ports).or_else(|| self.free.pop_last()).ok_or(TooManyGroups)?;
        self.with_controller.insert(ports.to_vec(), (id, 1));
        let mut all = ports.to_vec();
        if !all.contains(&self.cpu_port) {
            all.push(self.cpu_port);
        }
        updates.push(Update::Insert(Entity::Group(id, all)));
        Ok(id)
    }

    /// What becomes of the codes. All of it belongs together, and to what else the change says.
    fn codes(&self, change: &Change) -> Vec<Update> {
        let all = |codes: &[CodeEntry]| -> Vec<TableEntry> { codes.iter().flat_map(|code| self.code(code)).collect() };
        let (old, new) = (all(&change.old_codes), all(&change.new_codes));
        let key = |entry: &TableEntry| (entry.table.clone(), entry.keys.clone());
        let known: BTreeMap<_, _> = old.iter().map(|entry| (key(entry), &entry.params)).collect();
        let stay: BTreeSet<_> = new.iter().map(key).collect();
        let gone = old.iter().filter(|entry| !stay.contains(&key(entry))).cloned();
        let told = new.into_iter().filter_map(|entry| match known.get(&key(&entry)) {
            // Of a stretch that became another, some prefixes may be as they were.
            Some(params) if **params == entry.params => None,
            Some(_) => Some(Update::Modify(Entity::Table(entry))),
            None => Some(Update::Insert(Entity::Table(entry))),
        });
        gone.map(|entry| Update::Delete(Entity::Table(entry))).chain(told).collect()
    }

    /// The entries of a stage's code table for a code: one range, or as many prefixes as that is.
    fn code(&self, code: &CodeEntry) -> Vec<TableEntry> {
        let (stage, format) = (&self.stages[usize::from(code.stage)], &self.rules.format);
        let (StageKey::Column(key), Some(bits)) = (&stage.column, stage.codes) else {
            panic!("a stage without codes has no entries for them")
        };
        let column = key.name(format);
        let (kind, width) = (stage.code_table, key.width(format));
        let entry = |matched: Matched| TableEntry {
            table: format!("Subscriptions.{}", codes_table(&column, kind)),
            keys: vec![("value".to_owned(), width, matched)],
            priority: (kind != Wide::Lpm).then_some(1),
            action: format!("Subscriptions.{}", to_code(&column)),
            params: vec![("code".to_owned(), bits, code.code)],
        };
        if kind == Wide::Range {
            return vec![entry(Matched::Range(code.first, code.last))];
        }
        let prefixes = subscribe::cover(code.first, code.last, width).into_iter();
        prefixes.map(|(value, length)| entry(prefix(kind, value, length, width))).collect()
    }

    /// An entry of a stage.
    fn entry(&self, entry: &Entry) -> TableEntry {
        let stage = &self.stages[usize::from(entry.stage)];
        let state = || ("state".to_owned(), 32, Matched::Exact(entry.state.into()));
        let (column, width) = match &stage.column {
            StageKey::Validity => (String::new(), 1),
            StageKey::Column(key) => {
                let format = &self.rules.format;
                (key.name(format), stage.codes.unwrap_or_else(|| key.width(format)))
            }
        };
        let value = |matched: Matched| ("value".to_owned(), width, matched);
        let part = |part: &str| part_name(&column, part, entry.stage.into());
        let wide = |matched: Matched| {
            let kind = stage.wide.expect("the stage has such a table");
            (part(wide_name(kind)), vec![state(), value(matched)])
        };
        let mut priority = None;
        let (table, keys) = match &entry.key {
            EntryKey::Validity(wanted) => {
                priority = Some(self.raised.priority(entry));
                let named = self.rules.headers.iter().zip(wanted);
                let asked = named.filter_map(|(any, wanted)| Some((validity(self.format, any), (*wanted)?)));
                let keys = asked.map(|(name, wanted)| (name, 1, Matched::Ternary(wanted.into(), 1)));
                (VALIDITY.to_owned(), keys.collect())
            }
            EntryKey::Rest => (part("rest"), vec![state()]),
            EntryKey::Exact(wanted) => (part("exact"), vec![state(), value(Matched::Exact(*wanted))]),
            EntryKey::Range(first, last) => {
                priority = Some(self.raised.priority(entry));
                wide(Matched::Range(*first, *last))
            }
            EntryKey::Prefix { value: first, length } => {
                let kind = stage.wide.expect("the stage has such a table");
                priority = (kind != Wide::Lpm).then(|| entry.priority());
                wide(prefix(kind, *first, *length, width))
            }
        };
        let carried = self.leaves.get(&entry.next).filter(|delivery| self.carries && delivery.is_plain());
        let to_state = || ("Subscriptions.to_state".to_owned(), vec![("state".to_owned(), 32, entry.next.into())]);
        let (action, params) = carried.and_then(to_ports).unwrap_or_else(to_state);
        TableEntry { table: format!("Subscriptions.{table}"), keys, priority, action, params }
    }
}

/// A prefix as the key of a table of prefixes or of masks.
fn prefix(kind: Wide, value: u128, length: u32, width: u32) -> Matched {
    let ones = subscribe::max_of(width);
    match kind {
        Wide::Lpm => Matched::Lpm(value, length),
        _ => Matched::Ternary(value, if length == 0 { 0 } else { ones << (width - length) & ones }),
    }
}

fn to_port(port: u32) -> (String, Params) {
    ("Subscriptions.to_port".to_owned(), vec![("port".to_owned(), 9, port.into())])
}

fn to_group(group: u32) -> (String, Params) {
    ("Subscriptions.to_group".to_owned(), vec![("group".to_owned(), 16, group.into())])
}

/// What takes messages to the ports of a delivery, if it has any.
fn to_ports(delivery: &Delivery) -> Option<(String, Params)> {
    match (&delivery.ports[..], delivery.group) {
        ([], _) => None,
        ([port], _) => Some(to_port(*port)),
        (_, group) => Some(to_group(groups::compiled(group.expect("several ports have a group")))),
    }
}

fn group_entity(group: &Group) -> Entity {
    Entity::Group(groups::compiled(group.id), group.ports.clone())
}
