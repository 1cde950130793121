//! Translates compiled tables to entries of the generated program.

use std::collections::{BTreeMap, BTreeSet};

use subscribe::{
    CodeEntry, ColumnLayout, Delivery, EntryKey, Leaf, PortGroup, Stage, StageEntry, StageKey, StateId, TableChange,
    Tables, Wide,
};

use crate::consistent_update::order::{Phases, PriorityBoost, least_specific_first, least_specific_last, overlapped};
use crate::format::ProgramFormat;
use crate::groups;
use crate::rule_format::RuleFormat;
use crate::state_entries;
use crate::write::{
    CONTROLLER, EVERYONE, ProgramOptions, REST_SESSION, VALIDITY, bitmap_params, codes_table, do_table,
    match_kind_name, part_name, to_code, validity,
};

/// Match of one key of a table entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matched {
    /// This value.
    Exact(u128),
    /// Values that begin with these bits: the value and the prefix length.
    Lpm(u128, u32),
    /// From the first to the second, both inclusive.
    Range(u128, u128),
    /// Value and mask.
    Ternary(u128, u128),
}

/// Width in bits of the parameters that hold a bitmap of ports; the last may be narrower.
pub(crate) const BITMAP_PART: u32 = 128;

/// Names of an action's parameters, their widths in bits, and their values.
pub type Params = Vec<(String, u32, u128)>;

/// An entry of a table of the generated program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEntry {
    /// The table's full name.
    pub table: String,
    /// Names of the keys, widths in bits, and matches. A key that is absent matches any value.
    pub keys: Vec<(String, u32, Matched)>,
    /// Priority, for tables that have priorities.
    pub priority: Option<u32>,
    /// The action's full name.
    pub action: String,
    /// Names of the parameters, widths in bits, and values.
    pub params: Params,
}

/// An entity of a switch that rules write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A table entry.
    Table(ProgramEntry),
    /// A multicast group: its number and its ports.
    Group(u32, Vec<u32>),
    /// A mirror session: its number and its port.
    Session(u32, u32),
}

/// A write of one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Creates the entity.
    Insert(Entity),
    /// Replaces the entity with the same key.
    Modify(Entity),
    /// Deletes the entity; only its key matters.
    Delete(Entity),
}

/// Translates the tables of compiled rules to a program's entries. Keeps track of state that the compiler does not
/// know: groups that include the controller, and the group of all ports.
#[derive(Clone, Debug)]
pub struct Installer<'a> {
    format: &'a ProgramFormat,
    rules: &'a RuleFormat,
    stages: Vec<Stage>,
    cpu_port: u32,
    /// Whether entries that lead to plain leaves contain the delivery themselves.
    carries: bool,
    /// Width of bitmaps of ports, in programs that have them.
    bitmap: Option<u32>,
    /// Delivery of each leaf.
    leaves: BTreeMap<StateId, Delivery>,
    /// Groups that include the controller's port, by their other ports, with the number of leaves that use them.
    with_controller: BTreeMap<Vec<u32>, (u32, usize)>,
    /// Numbers of groups from an earlier installation, to be reused.
    known: BTreeMap<Vec<u32>, u32>,
    /// Free numbers for groups that include the controller.
    free: BTreeSet<u32>,
    /// Numbers of groups that are deleted at the end of the current change; they are not reused before.
    leaving: Vec<u32>,
    /// Number of leaves that deliver to each port.
    ports: BTreeMap<u32, usize>,
    /// Slots that are linked to aggregates.
    linked: BTreeSet<u16>,
    /// Whether the target takes writes one after the other.
    per_message_consistent: bool,
    /// Entries with a priority other than the default.
    boost: PriorityBoost,
}

/// The writes of a change in an order for targets without atomic writes
/// ([`subscribe::UpdateMode::PerMessageConsistent`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdatePlan {
    /// Writes of entities that no message reaches yet.
    pub prepare: Vec<Update>,
    /// Writes that move messages from the old rules to the new ones; each message sees the change at exactly one of
    /// them. They come in phases; all messages in flight must leave before each phase.
    pub transition: Vec<Vec<Update>>,
    /// Writes of entities that no message reaches any more, to be made after all messages in flight have left.
    pub cleanup: Vec<Update>,
}

impl UpdatePlan {
    /// Returns all writes, in order.
    pub fn all(self) -> Vec<Update> {
        [self.prepare, self.transition.concat(), self.cleanup].concat()
    }

    /// Returns the number of writes.
    pub fn len(&self) -> usize {
        self.prepare.len() + self.transition.iter().map(Vec::len).sum::<usize>() + self.cleanup.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason why a program cannot deliver what rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// There are more distinct port sets that include the controller than group numbers for them.
    #[error(
        "the rules deliver to more than {} different sets of ports together with the controller",
        groups::WITH_CONTROLLER.len()
    )]
    TooManyGroups,
    /// A port has no bit in the program's bitmaps.
    #[error("the rules deliver to port {port}; the program has ports 0 to {max}")]
    Port {
        /// The port.
        port: u32,
        /// The largest port of the program.
        max: u32,
    },
}

impl<'a> Installer<'a> {
    /// Creates an installer for a program generated with these arguments. Packets for the controller go to `cpu_port`.
    pub fn new(
        format: &'a ProgramFormat,
        rules: &'a RuleFormat,
        layout: &ColumnLayout,
        options: &ProgramOptions,
        cpu_port: u32,
    ) -> Self {
        let stages = subscribe::stages(&rules.format, layout, &options.target);
        Installer {
            format,
            rules,
            stages,
            cpu_port,
            carries: options.target.carries,
            bitmap: options.bitmap,
            leaves: BTreeMap::new(),
            with_controller: BTreeMap::new(),
            known: BTreeMap::new(),
            free: groups::WITH_CONTROLLER.collect(),
            leaving: Vec::new(),
            ports: BTreeMap::new(),
            linked: BTreeSet::new(),
            per_message_consistent: false,
            boost: PriorityBoost::default(),
        }
    }

    /// Selects a target that takes writes one after the other. The rules must be compiled for this mode.
    #[must_use]
    pub fn per_message_consistent(self) -> Self {
        Installer { per_message_consistent: true, ..self }
    }

    /// Returns an installer for the same program after it lost all entries. Group numbers and priorities are reused.
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
            linked: BTreeSet::new(),
            boost: self.boost.clone(),
            ..*self
        }
    }

    /// Returns the writes that install these tables in a program without entries, in a valid order.
    ///
    /// # Errors
    /// [`DeliveryError`]; the installer is then unusable.
    pub fn install(&mut self, tables: &Tables) -> Result<Vec<Update>, DeliveryError> {
        self.install_in(tables, Vec::new()).map(UpdatePlan::all)
    }

    /// Returns the same writes as a plan: no message is delivered before its transition.
    ///
    /// # Errors
    /// [`DeliveryError`]; the installer is then unusable.
    pub fn install_steps(&mut self, tables: &Tables) -> Result<UpdatePlan, DeliveryError> {
        self.install_in(tables, vec![0])
    }

    fn install_in(&mut self, tables: &Tables, kept: Vec<StateId>) -> Result<UpdatePlan, DeliveryError> {
        let mut updates = Vec::new();
        if self.format.messages.is_some() {
            updates.push(Update::Insert(Entity::Session(REST_SESSION.into(), self.cpu_port)));
            updates.push(Update::Insert(Entity::Group(EVERYONE.into(), Vec::new())));
        }
        let mut steps = self.steps(&TableChange {
            new_key_cells: tables.key_cells.clone(),
            links: tables.links.clone(),
            new_groups: tables.groups.clone(),
            new_leaves: tables.leaves.clone(),
            new_codes: tables.codes.clone(),
            inserted: tables.entries.clone(),
            kept,
            ..TableChange::default()
        })?;
        updates.append(&mut steps.prepare);
        self.free.extend(std::mem::take(&mut self.known).into_values());
        Ok(UpdatePlan { prepare: updates, ..steps })
    }

    /// Returns the writes of a change for a target that applies all of them atomically, in a valid order.
    ///
    /// # Errors
    /// [`DeliveryError`]; the installer is then unusable.
    pub fn change(&mut self, change: &TableChange) -> Result<Vec<Update>, DeliveryError> {
        self.steps(change).map(UpdatePlan::all)
    }

    /// Returns the writes of a change as a plan. If the rules are compiled for per-message consistency, each message
    /// sees either the old rules or the new ones, provided that the writes are made in order, with a pause before each
    /// phase and before the cleanup.
    ///
    /// # Errors
    /// [`DeliveryError`]; the installer is then unusable.
    pub fn steps(&mut self, change: &TableChange) -> Result<UpdatePlan, DeliveryError> {
        assert!(!self.per_message_consistent || change.new_codes.is_empty(), "codes change together or not at all");
        let everyone: Vec<u32> = self.ports.keys().copied().collect();
        let is_kept = |state: StateId| change.kept.binary_search(&state).is_ok();
        let new_groups = change.new_groups.iter().map(|group| Update::Insert(group_entity(group)));
        let new_key_cells =
            change.new_key_cells.iter().map(|cell| Update::Insert(state_entries::key_cell(cell, self.format)));
        let mut steps = UpdatePlan { prepare: new_key_cells.chain(new_groups).collect(), ..UpdatePlan::default() };
        let mut phases = Phases::default();
        let mut old_links = Vec::new();
        for of in &change.links {
            match state_entries::link_update(of, &mut self.linked) {
                Some(update @ Update::Insert(_)) => steps.prepare.push(update),
                Some(update @ Update::Modify(_)) => phases.independent(update),
                other => old_links.extend(other),
            }
        }
        let mut old_groups = Vec::new();
        for leaf in &change.new_leaves {
            self.leaf(leaf, &mut steps.prepare, &mut old_groups)?;
        }
        self.codes(change).into_iter().for_each(|update| phases.independent(update));
        for leaf in &change.modified_leaves {
            let mut updates = Vec::new();
            self.leaf(leaf, &mut updates, &mut old_groups)?;
            phases.leaf(leaf.state, updates);
        }
        let (turned, fresh): (Vec<&StageEntry>, Vec<&StageEntry>) =
            change.inserted.iter().partition(|entry| is_kept(entry.state));
        let (turned_off, gone): (Vec<&StageEntry>, Vec<&StageEntry>) =
            change.deleted.iter().partition(|entry| is_kept(entry.state));
        let table = |this: &Self, entry: &StageEntry| Entity::Table(this.entry(entry));
        steps.prepare.extend(fresh.into_iter().map(|entry| Update::Insert(table(self, entry))));
        let turned_off = least_specific_first(turned_off);
        let old: Vec<Update> = turned_off.iter().map(|entry| Update::Delete(table(self, entry))).collect();
        if self.per_message_consistent {
            let above = overlapped(&turned, &turned_off, &self.boost);
            turned_off.iter().for_each(|entry| self.boost.remove(entry));
            self.boost.extend(above);
        }
        for entry in least_specific_last(turned) {
            phases.entry(entry, Update::Insert(table(self, entry)));
        }
        for entry in &change.modified {
            phases.entry(entry, Update::Modify(table(self, entry)));
        }
        turned_off.iter().zip(old).for_each(|(entry, update)| phases.entry(entry, update));
        steps.cleanup.extend(gone.iter().map(|entry| Update::Delete(table(self, entry))));
        gone.iter().for_each(|entry| self.boost.remove(entry));
        for state in &change.old_leaves {
            let nothing = Leaf { state: *state, delivery: Delivery::default() };
            let mut updates = Vec::new();
            self.leaf(&nothing, &mut updates, &mut old_groups)?;
            if is_kept(*state) { phases.leaf(*state, updates) } else { steps.cleanup.append(&mut updates) }
        }
        steps.cleanup.extend(old_groups);
        let old = change.old_groups.iter().map(|id| Entity::Group(groups::compiled(*id), Vec::new()));
        steps.cleanup.extend(old.map(Update::Delete));
        let old_key_cells =
            change.old_key_cells.iter().map(|cell| Update::Delete(state_entries::key_cell(cell, self.format)));
        steps.cleanup.extend(old_key_cells);
        steps.cleanup.append(&mut old_links);
        self.free.extend(self.leaving.drain(..));
        let now: Vec<u32> = self.ports.keys().copied().collect();
        if self.format.messages.is_some() && now != everyone {
            phases.independent(Update::Modify(Entity::Group(EVERYONE.into(), now)));
        }
        steps.transition = phases.done();
        Ok(steps)
    }

    /// Writes a leaf's new delivery.
    fn leaf(
        &mut self,
        leaf: &Leaf,
        updates: &mut Vec<Update>,
        old_groups: &mut Vec<Update>,
    ) -> Result<(), DeliveryError> {
        let before = self.leaves.remove(&leaf.state).unwrap_or_default();
        let state = vec![("state".to_owned(), 32, Matched::Exact(leaf.state.into()))];
        // The new group must exist before the leaf, the old one until after it.
        let new_action = self.target(&leaf.delivery, true, updates)?;
        let old_action = self.target(&before, false, old_groups)?;
        let entity = |table: String, (action, params): (String, Params)| {
            Entity::Table(ProgramEntry {
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
            // The entries that lead to a plain leaf contain its delivery.
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
        let counts = |delivery: &Delivery| {
            state_entries::counts(delivery, self.rules).map(|(table, action)| entity(table, action))
        };
        updates.extend(step(counts(&before), counts(&leaf.delivery)));
        for counter in 0..self.format.counters.len() {
            for told in [state_entries::combine, state_entries::update] {
                let told = |delivery: &Delivery| told(delivery, counter, self.format);
                let update = |delivery: &Delivery| told(delivery).map(|(table, action)| entity(table, action));
                updates.extend(step(update(&before), update(&leaf.delivery)));
            }
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

    /// Returns the leaf action of a delivery, and acquires (`comes`) or releases the group that it needs.
    fn target(
        &mut self,
        delivery: &Delivery,
        comes: bool,
        updates: &mut Vec<Update>,
    ) -> Result<Option<(String, Params)>, DeliveryError> {
        if let Some(bits) = self.bitmap {
            return self.bitmap_of(delivery, bits);
        }
        Ok(match (&delivery.ports[..], delivery.to_controller) {
            (_, false) => to_ports(delivery),
            ([], true) => Some(to_port(self.cpu_port)),
            (ports, true) => Some(to_group(self.controller_group(ports, comes, updates)?)),
        })
    }

    /// Returns the action of a delivery in a program with bitmaps of this width.
    fn bitmap_of(&self, delivery: &Delivery, bits: u32) -> Result<Option<(String, Params)>, DeliveryError> {
        // The highest bit is that of the controller's usual port. Of 512 bits, it is the bit of this number.
        let high = (bits - 1).min(CONTROLLER);
        let ports = delivery.ports.iter().copied().chain(delivery.to_controller.then_some(self.cpu_port));
        let bit = |port: u32| match port {
            CONTROLLER => Ok(high),
            port if port < high => Ok(port),
            port => Err(DeliveryError::Port { port, max: high - 1 }),
        };
        let mut all: Vec<u32> = ports.map(bit).collect::<Result<_, _>>()?;
        all.sort_unstable();
        all.dedup();
        let params = bitmap_params(bits).zip((0..).step_by(BITMAP_PART as usize)).map(|((name, width), first)| {
            let own = all.iter().filter(|bit| (first..first + width).contains(*bit));
            (name, width, own.fold(0, |value, bit| value | 1 << (bit - first)))
        });
        let one = |bit: u32| if bit == high { CONTROLLER } else { bit };
        Ok(match all[..] {
            [] => None,
            [only] => {
                let port = ("port".to_owned(), 9, one(only).into());
                Some(("Subscriptions.to_port".to_owned(), std::iter::once(port).chain(params).collect()))
            }
            _ => Some(("Subscriptions.to_ports".to_owned(), params.collect())),
        })
    }

    fn controller_group(
        &mut self,
        ports: &[u32],
        comes: bool,
        updates: &mut Vec<Update>,
    ) -> Result<u32, DeliveryError> {
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
        let id = self.known.remove(ports).or_else(|| self.free.pop_last()).ok_or(DeliveryError::TooManyGroups)?;
        self.with_controller.insert(ports.to_vec(), (id, 1));
        let mut all = ports.to_vec();
        if !all.contains(&self.cpu_port) {
            all.push(self.cpu_port);
        }
        updates.push(Update::Insert(Entity::Group(id, all)));
        Ok(id)
    }

    /// Returns the writes of code tables. They must be applied together with the rest of the change.
    fn codes(&self, change: &TableChange) -> Vec<Update> {
        let all =
            |codes: &[CodeEntry]| -> Vec<ProgramEntry> { codes.iter().flat_map(|code| self.code(code)).collect() };
        let (old, new) = (all(&change.old_codes), all(&change.new_codes));
        let key = |entry: &ProgramEntry| (entry.table.clone(), entry.keys.clone());
        let known: BTreeMap<_, _> = old.iter().map(|entry| (key(entry), &entry.params)).collect();
        let stay: BTreeSet<_> = new.iter().map(key).collect();
        let gone = old.iter().filter(|entry| !stay.contains(&key(entry))).cloned();
        let told = new.into_iter().filter_map(|entry| match known.get(&key(&entry)) {
            // Some prefixes of a changed interval may be unchanged.
            Some(params) if **params == entry.params => None,
            Some(_) => Some(Update::Modify(Entity::Table(entry))),
            None => Some(Update::Insert(Entity::Table(entry))),
        });
        gone.map(|entry| Update::Delete(Entity::Table(entry))).chain(told).collect()
    }

    /// Returns the entries of a code table for a code: one range, or the prefixes that cover it.
    fn code(&self, code: &CodeEntry) -> Vec<ProgramEntry> {
        let (stage, format) = (&self.stages[usize::from(code.stage)], &self.rules.format);
        let (StageKey::Column(key), Some(bits)) = (&stage.column, stage.codes) else {
            panic!("a stage without codes has no entries for them")
        };
        let column = key.name(format);
        let (kind, width) = (stage.code_table, key.width(format));
        let entry = |matched: Matched| ProgramEntry {
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

    /// Translates an entry of a stage.
    fn entry(&self, entry: &StageEntry) -> ProgramEntry {
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
            (part(match_kind_name(kind)), vec![state(), value(matched)])
        };
        let mut priority = None;
        let (table, keys) = match &entry.key {
            EntryKey::Validity(wanted) => {
                priority = Some(self.boost.priority(entry));
                let named = self.rules.headers.iter().zip(wanted);
                let asked = named.filter_map(|(any, wanted)| Some((validity(self.format, any), (*wanted)?)));
                let keys = asked.map(|(name, wanted)| (name, 1, Matched::Ternary(wanted.into(), 1)));
                (VALIDITY.to_owned(), keys.collect())
            }
            EntryKey::Rest => (part("rest"), vec![state()]),
            EntryKey::Exact(wanted) => (part("exact"), vec![state(), value(Matched::Exact(*wanted))]),
            EntryKey::Range(first, last) => {
                priority = Some(self.boost.priority(entry));
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
        let delivered = carried.and_then(|delivery| match self.bitmap {
            // Its leaf has been checked.
            Some(bits) => self.bitmap_of(delivery, bits).ok().flatten(),
            None => to_ports(delivery),
        });
        let (action, params) = delivered.unwrap_or_else(to_state);
        ProgramEntry { table: format!("Subscriptions.{table}"), keys, priority, action, params }
    }
}

/// Returns a prefix as the key of an lpm or a ternary table.
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

/// Returns the action that sends messages to the ports of a delivery, if it has any.
fn to_ports(delivery: &Delivery) -> Option<(String, Params)> {
    match (&delivery.ports[..], delivery.group) {
        ([], _) => None,
        ([port], _) => Some(to_port(*port)),
        (_, group) => Some(to_group(groups::compiled(group.expect("several ports have a group")))),
    }
}

fn group_entity(group: &PortGroup) -> Entity {
    Entity::Group(groups::compiled(group.id), group.ports.clone())
}
