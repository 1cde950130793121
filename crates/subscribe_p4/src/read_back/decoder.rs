//! Decodes single entries.

use std::collections::{BTreeMap, BTreeSet};

use subscribe::chain::{CodeRow, Row, RowKey, RowResult, StageTable};
use subscribe::{
    Aggregate, CounterId, Delivery, FieldId, Function, Operand, StateId, Term, Update, UpdateFunction, state,
};

use super::keys::{exactly, intervals, is_nothing, param, value};
use super::roles::Role;
use super::{CONTROL, Finding, Meaning, is_rule_table};
use crate::entries::{BITMAP_PART, Matched, ProgramEntry};
use crate::format::{Notation, ProgramFormat};
use crate::rule_format::RuleFormat;
use crate::state_entries;
use crate::write::{COMBINES, CONTROLLER, bitmap_params, combined_with, key_parts, validity, with_counter, with_field};

/// Decodes entries one after the other.
pub(super) struct EntryDecoder<'a> {
    pub format: &'a ProgramFormat,
    pub rules: &'a RuleFormat,
    pub roles: BTreeMap<String, Role>,
    pub groups: BTreeMap<u32, Vec<u32>>,
    pub findings: Vec<Finding>,
    pub meaning: Meaning,
    /// Cells of keys, by aggregate.
    pub taken: BTreeMap<(usize, u128), usize>,
    /// Updates of counters by leaf state and counter, with the entry, and whether the operand has a second term.
    pub updates: BTreeMap<(StateId, usize), (usize, UpdateFunction, Term, bool)>,
    /// Second terms of operands by leaf state and counter, with the entry, and whether they are factors.
    pub second_terms: BTreeMap<(StateId, usize), (usize, Term, bool)>,
    /// Tables that do not belong to rules.
    pub strangers: BTreeSet<String>,
}

impl EntryDecoder<'_> {
    fn find(&mut self, at: usize, is_error: bool, message: impl Into<String>) {
        self.findings.push(Finding { at, also: None, is_error, message: message.into() });
    }

    pub fn entry(&mut self, at: usize, entry: &ProgramEntry) {
        let Some(role) = self.roles.get(&entry.table).copied() else {
            if is_rule_table(&entry.table) {
                self.find(at, true, format!("a program of this format and order has no table `{}`", entry.table));
            } else if self.strangers.insert(entry.table.clone()) {
                self.find(at, false, format!("`{}` is not a rule table: its entries are not compared", entry.table));
            }
            return;
        };
        let has_state =
            !matches!(role, Role::Validity | Role::Codes(_) | Role::Place(_) | Role::Link(_) | Role::SplitHorizon);
        let state = if has_state { self.key(at, entry, "state") } else { Some(0) };
        let Some(state) = state.map(|state| state as StateId) else { return };
        // Prefixes have no priority; the longest wins.
        let rank = match value(entry) {
            Some(Matched::Lpm(_, length)) => *length,
            _ => entry.priority.unwrap_or(0),
        };
        match role {
            Role::Validity => {
                let pattern = self.rules.headers.iter().map(|any| {
                    let name = validity(self.format, any);
                    let matched = entry.keys.iter().find(|(key, ..)| *key == name).map(|(_, _, matched)| matched);
                    match matched {
                        Some(Matched::Exact(value)) => Some(*value != 0),
                        Some(Matched::Ternary(value, mask)) => (*mask != 0).then_some(*value != 0),
                        _ => None,
                    }
                });
                let matches = RowKey::Validity(pattern.collect());
                let Some(then) = self.then(at, entry) else { return };
                self.meaning.chain.rows.push(Row {
                    stage: 0,
                    state: 0,
                    part: StageTable::Wide,
                    rank,
                    matches,
                    then,
                    at,
                });
            }
            Role::Stage(stage, part, width) => {
                let Some(then) = self.then(at, entry) else { return };
                let Some(intervals) = self.intervals(at, entry, width) else { return };
                self.meaning.chain.rows.extend(intervals.into_iter().map(|(first, last)| {
                    let matches = RowKey::Stretch(first, last);
                    Row { stage, state, part, rank, matches, then: then.clone(), at }
                }));
            }
            Role::Codes(stage) => {
                // A value without a code has code 0.
                let code = if is_nothing(entry) { Some(0) } else { self.param(at, entry, "code") };
                let width = self.meaning.chain.column(stage).width(&self.rules.format);
                let (Some(code), Some(intervals)) = (code, self.intervals(at, entry, width)) else { return };
                let row = |(first, last)| CodeRow { stage, first, last, rank, code, at };
                self.meaning.chain.codes.extend(intervals.into_iter().map(row));
            }
            Role::Leaf => {
                if let Some(RowResult::Ports(ports)) = self.then(at, entry) {
                    self.at_leaf(at, state, false, |leaf| leaf.ports = ports);
                }
            }
            Role::Do(_) | Role::Counts | Role::Update(_) | Role::Combine(_) | Role::Place(_) | Role::Link(_)
                if is_nothing(entry) => {}
            Role::Do(action) => {
                let declared = &self.format.actions[action];
                if entry.action != declared.name {
                    return self.no_action(at, &entry.action);
                }
                let values = declared.params.iter().map(|(name, _)| self.param(at, entry, name));
                if let Some(values) = values.collect() {
                    let call = (subscribe::ActionId(action as u16), values);
                    self.at_leaf(at, state, false, |leaf| leaf.calls.push(call));
                }
            }
            Role::Counts => {
                let Some(slots) = self.param(at, entry, "slots") else { return };
                let slots = (0..self.rules.format.slots).filter(|slot| slots >> slot & 1 == 1).collect();
                self.at_leaf(at, state, true, |leaf| leaf.slots = slots);
            }
            Role::Update(counter) => self.update(at, entry, state, counter),
            Role::Combine(counter) => self.combine(at, entry, state, counter),
            Role::Place(computed) => self.place(at, entry, computed),
            Role::Link(slot) => self.link(at, entry, slot),
            Role::SplitHorizon => {
                let ports = ["from", "to"].map(|name| self.key(at, entry, name).map(|port| port as u32));
                if let [Some(from), Some(to)] = ports {
                    self.meaning.split_horizon.insert((from, to));
                }
            }
        }
    }

    /// Returns the value of a parameter; reports its absence.
    fn param(&mut self, at: usize, entry: &ProgramEntry, name: &str) -> Option<u128> {
        let found = param(entry, name);
        if found.is_none() {
            let action = entry.action.strip_prefix(CONTROL).unwrap_or(&entry.action);
            self.find(at, true, format!("`{action}` has no value for `{name}` here"));
        }
        found
    }

    /// Returns the value of an exact key; reports its absence.
    fn key(&mut self, at: usize, entry: &ProgramEntry, name: &str) -> Option<u128> {
        let found = exactly(entry, name);
        if found.is_none() {
            self.find(at, true, format!("this entry has no value for `{name}`, which its table matches exactly"));
        }
        found
    }

    /// Returns the intervals that an entry matches; reports if there are too many.
    fn intervals(&mut self, at: usize, entry: &ProgramEntry, width: u32) -> Option<Vec<(u128, u128)>> {
        let found = match value(entry) {
            None => Some(vec![(0, subscribe::max_of(width))]),
            Some(matched) => intervals(matched, width),
        };
        if found.is_none() {
            self.find(at, true, "this mask matches more ranges of values than can be compared");
        }
        found
    }

    fn no_action(&mut self, at: usize, action: &str) {
        self.find(at, true, format!("tables of rules have no action `{action}`"));
    }

    /// Returns the result of an entry of a stage or leaf table; `None` after a reported error.
    fn then(&mut self, at: usize, entry: &ProgramEntry) -> Option<RowResult> {
        let action = entry.action.strip_prefix(CONTROL).unwrap_or(&entry.action);
        let ports = match action {
            "to_state" => return Some(RowResult::State(self.param(at, entry, "state")? as StateId)),
            "NoAction" => return Some(RowResult::Nothing),
            "to_port" => vec![self.param(at, entry, "port")? as u32],
            "to_ports" => self.bitmap(at, entry)?,
            "to_group" => {
                let group = self.param(at, entry, "group")? as u32;
                match self.groups.get(&group) {
                    Some(ports) => ports.clone(),
                    // Group 0 means no group.
                    None if group == 0 => Vec::new(),
                    None => {
                        let message = format!("there is no multicast group {group}: its messages are dropped");
                        self.find(at, false, message);
                        Vec::new()
                    }
                }
            }
            other => {
                self.no_action(at, other);
                return None;
            }
        };
        Some(if ports.is_empty() { RowResult::Nothing } else { RowResult::Ports(ports) })
    }

    /// Returns the ports whose bits are set in the parameters of an action.
    fn bitmap(&mut self, at: usize, entry: &ProgramEntry) -> Option<Vec<u32>> {
        let bits = entry.params.iter().map(|(_, width, _)| width).sum();
        let mut ports = Vec::new();
        for ((name, width), first) in bitmap_params(bits).zip((0..).step_by(BITMAP_PART as usize)) {
            let value = self.param(at, entry, &name)?;
            ports.extend((0..width).filter(|bit| value >> bit & 1 == 1).map(|bit| first + bit));
        }
        // The highest bit is the controller's.
        let high = (bits - 1).min(CONTROLLER);
        ports.iter_mut().filter(|port| **port == high).for_each(|port| *port = CONTROLLER);
        Some(ports)
    }

    /// Extends the delivery of a state, if it is a leaf, or for state updates, a leaf with state.
    fn at_leaf(&mut self, at: usize, state: StateId, is_memory: bool, add: impl FnOnce(&mut Delivery)) {
        let remembers = !self.format.counters.is_empty() || !self.format.aggregates.is_empty();
        let has_tag = match state::tag(state) {
            state::STATEFUL_LEAF => remembers,
            state::LEAF => !is_memory,
            _ => false,
        };
        if has_tag {
            add(self.meaning.chain.leaves.entry(state).or_default())
        } else {
            self.find(at, false, format!("no message reaches this entry in state {state:#010x}"))
        }
    }

    fn update(&mut self, at: usize, entry: &ProgramEntry, state: StateId, counter: usize) {
        let Some(function) = self.param(at, entry, "function") else { return };
        let combines = function & COMBINES != 0;
        let function = match function & !COMBINES {
            0 => return,
            1 => UpdateFunction::Set,
            2 => UpdateFunction::Add,
            3 => UpdateFunction::Subtract,
            4 => UpdateFunction::Min,
            5 => UpdateFunction::Max,
            other => return self.find(at, true, format!("a counter has no function {other}")),
        };
        let action = entry.action.strip_prefix(CONTROL).unwrap_or(&entry.action);
        let term = match action {
            "by_number" => match self.param(at, entry, "number") {
                Some(number) => Term::Number(number),
                None => return,
            },
            other => match self.term(|field| with_field(field) == other, |counter| with_counter(counter) == other) {
                Some(term) => term,
                None => return self.no_action(at, other),
            },
        };
        self.updates.insert((state, counter), (at, function, term, combines));
    }

    fn combine(&mut self, at: usize, entry: &ProgramEntry, state: StateId, counter: usize) {
        let action = entry.action.strip_prefix(CONTROL).unwrap_or(&entry.action);
        let found = [true, false].into_iter().find_map(|is_product| {
            let is = |name: &str| combined_with(name, is_product) == action;
            let term = if is("number") { Some(Term::Number(0)) } else { self.term(is, is) };
            Some((term?, is_product))
        });
        let term = match found {
            Some((Term::Number(_), is_product)) => match self.param(at, entry, "number") {
                Some(number) => (at, Term::Number(number), is_product),
                None => return,
            },
            Some((term, is_product)) => (at, term, is_product),
            None => return self.no_action(at, action),
        };
        self.second_terms.insert((state, counter), term);
    }

    /// Returns the field or counter with this name.
    fn term(&self, is_field: impl Fn(&str) -> bool, is_counter: impl Fn(&str) -> bool) -> Option<Term> {
        let field = self.format.fields.iter().position(|field| is_field(&field.name));
        let counter = || self.format.counters.iter().position(|counter| is_counter(&counter.name));
        match field {
            Some(field) => Some(Term::Field(FieldId(field as u16))),
            None => counter().map(|counter| Term::Counter(CounterId(counter as u16))),
        }
    }

    /// Adds the updates of counters to the leaves when all entries are decoded.
    pub fn finish_updates(&mut self) {
        let mut second_terms = std::mem::take(&mut self.second_terms);
        for ((state, counter), (at, function, first, combines)) in std::mem::take(&mut self.updates) {
            let operand = match second_terms.remove(&(state, counter)).filter(|_| combines) {
                Some((_, second, true)) => Operand::Product(first, second),
                Some((_, second, false)) => Operand::Difference(first, second),
                None => Operand::Term(first),
            };
            let counter = CounterId(counter as u16);
            self.at_leaf(at, state, true, |leaf| leaf.updates.push(Update { counter, function, operand }));
        }
        for (at, ..) in second_terms.into_values() {
            self.find(at, false, "no update in this state has a second term");
        }
    }

    fn link(&mut self, at: usize, entry: &ProgramEntry, slot: u16) {
        let Some(key) = self.key(at, entry, "slot") else { return };
        if key != slot.into() {
            return self.find(
                at,
                false,
                format!("no message reaches this: the table is looked up for slot {slot} only"),
            );
        }
        let fields = &self.format.fields;
        let field = |id: FieldId| fields.get(usize::from(id.0));
        let is_of_format = |aggregate: &Aggregate| {
            let is_number = |id| field(id).is_some_and(|field| field.notation == Notation::Number);
            let has_input = aggregate.function == Function::Count || aggregate.field.is_some_and(is_number);
            has_input && aggregate.fields().all(|id| field(id).is_some())
        };
        match state_entries::parse_link_entry(entry).and_then(|of| of.aggregate).filter(is_of_format) {
            Some(aggregate) => drop(self.meaning.links.insert(slot, aggregate)),
            None => {
                let message =
                    "no rule of this format has such an aggregate: check the function, the window and the fields";
                self.find(at, true, message)
            }
        }
    }

    fn place(&mut self, at: usize, entry: &ProgramEntry, computed: usize) {
        let format = self.format;
        let names: Vec<String> = match &format.aggregates[computed].computes {
            Some(of) => of.by.iter().map(|id| format.fields[usize::from(id.0)].name.clone()).collect(),
            None => key_parts().collect(),
        };
        let key: Option<Vec<u128>> = names.iter().map(|name| self.key(at, entry, name)).collect();
        let (Some(key), Some(index)) = (key, self.param(at, entry, "index")) else { return };
        if index >= u128::from(self.format.aggregates[computed].keys) {
            self.find(at, true, format!("cell {index} is not one for a key that rules name"));
        }
        if let Some(other) = self.taken.insert((computed, index), at) {
            let message = format!("two keys have cell {index}: each would overwrite the value of the other");
            self.findings.push(Finding { at, also: Some(other), is_error: true, message });
        }
        self.meaning.places.insert((computed, key));
    }
}
