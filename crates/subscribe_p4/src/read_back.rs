//! From what a generated program's tables were told back to what it means: the other way round than [`entries`](crate::entries),
//! for entries of anybody.

use std::collections::{BTreeMap, BTreeSet};

use subscribe::chain::{CodeRow, Matches, Part, Row, Then};
use subscribe::{
    Chain, Delivery, FieldId, Key, Layout, Match, Operand, State, Target, Update, UpdateFunction, Wide, state,
};

use crate::entries::{Entity, Matched, TableEntry};
use crate::format::Format;
use crate::rules::Rules;
use crate::write::{
    COUNTS, EVERYONE, REST_SESSION, VALIDITY, codes_table, do_table, part_name, place_table, update_table, validity,
    wide_name, with_field,
};

/// The control of the tables that rules fill.
const CONTROL: &str = "Subscriptions.";
/// The table of pairs of ports between which nothing is copied.
const SPLIT_HORIZON: &str = "SubscriptionsEgress.split_horizon";
/// The tables of a stage, as their names end before the place.
const PARTS: [&str; 5] = ["exact", "range", "lpm", "ternary", "rest"];

/// What is wrong with an entity, or strange about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which entity, by its place among those that were given.
    pub at: usize,
    /// Another one that it has to do with.
    pub also: Option<usize>,
    /// Whether nothing can be said of all of them because of it.
    pub is_error: bool,
    /// What it is, in a sentence.
    pub message: String,
}

/// What a program with certain entries does.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// What it does with a message.
    pub chain: Chain,
    /// Where packets without messages go, where they go anywhere.
    pub everyone: Vec<u32>,
    /// Whether what is left of a packet goes round.
    pub goes_round: bool,
    /// Pairs of ports: what comes in at the first does not leave at the second.
    pub split_horizon: BTreeSet<(u32, u32)>,
    /// By aggregate, the keys that have cells of their own.
    pub places: BTreeSet<(usize, Vec<u128>)>,
}

/// The order of the fields in a program with tables of these names, and what its tables can match. Fields of which there is no
/// table are where they are by themselves.
///
/// # Errors
/// If no program has tables of these names: a sentence.
pub fn shape<'a>(tables: impl Iterator<Item = &'a str>, rules: &Rules, of: Target) -> Result<(Layout, Target), String> {
    let format = &rules.format;
    let sensible = Layout::sensible(format, &[]);
    let columns = || sensible.keys().iter().copied().filter(|key| !key.is_validity());
    let mut parts: BTreeMap<String, (Key, &str)> = BTreeMap::new();
    for key in columns() {
        parts.extend(PARTS.iter().map(|part| (placeless(key, part, rules), (key, *part))));
    }
    let mut target = of;
    let mut at: BTreeMap<usize, Key> = BTreeMap::new();
    let of_codes = |name: &str, kind: Wide| {
        let own = |key: Key| name.strip_prefix(CONTROL) == Some(&codes_table(&key.name(format), kind));
        columns().any(own)
    };
    for name in tables {
        if let Some(kind) = [Wide::Lpm, Wide::Ternary].into_iter().find(|kind| of_codes(name, *kind)) {
            (target.wide, target.has_ranges) = (kind, false);
        }
        let Some((part, place)) = name.strip_prefix(CONTROL).and_then(|name| name.rsplit_once('_')) else { continue };
        let (Some((key, part)), Ok(place)) = (parts.get(part), place.parse::<u16>()) else { continue };
        let place = usize::from(place);
        let other = at.insert(place, *key).filter(|other| other != key);
        let elsewhere = at.iter().find(|(other, its)| **other != place && *its == key);
        if other.is_some() || elsewhere.is_some() {
            return Err(format!("`{name}` belongs to a program with another order of fields than what else is there"));
        }
        let matching = match key {
            Key::Field(id) => format.get(*id).matching,
            _ => Match::Any,
        };
        match (matching, *part) {
            (Match::Any, "exact") => target.exact_beside = true,
            (Match::Any, "range") => target.wide = Wide::Range,
            (Match::Any | Match::Range, "lpm") => target.wide = Wide::Lpm,
            (Match::Any | Match::Range, "ternary") => target.wide = Wide::Ternary,
            _ => {}
        }
        if matching == Match::Range && ["exact", "lpm", "ternary"].contains(part) {
            target.has_ranges = false;
            target.exact_beside |= *part == "exact";
        }
    }
    let mut others = columns().filter(|key| !at.values().any(|known| known == key)).collect::<Vec<_>>().into_iter();
    let first = usize::from(sensible.validities() > 0);
    let count = columns().count();
    let order: Vec<Key> =
        (first..first + count).filter_map(|place| at.get(&place).copied().or_else(|| others.next())).collect();
    let named: Vec<String> =
        order.iter().filter(|key| !matches!(key, Key::Slot(_))).map(|key| key.name(format)).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let layout = Layout::forced(format, &named).map_err(|wrong| wrong.to_string())?;
    let right = |(place, key): (&usize, &Key)| layout.keys().get(layout.validities() + place - first) == Some(key);
    match at.iter().all(right) {
        true => Ok((layout, target)),
        false => Err("the tables are in no order that a program of this format has".to_owned()),
    }
}

/// A table's name without its place.
fn placeless(key: Key, part: &str, rules: &Rules) -> String {
    let name = part_name(&key.name(&rules.format), part, 0);
    name.strip_suffix("_0").unwrap_or(&name).to_owned()
}

/// What a table is there for.
#[derive(Clone, Copy)]
enum Role {
    Validity,
    /// A stage's, and the width of what it matches.
    Stage(u16, Part, u32),
    Codes(u16),
    Leaf,
    Do(usize),
    Counts,
    Update(usize),
    Place(usize),
    SplitHorizon,
}

/// What these entities come to in a program whose fields are in this order. The controller's port is one like any other.
pub fn read_back(entities: &[Entity], format: &Format, rules: &Rules, layout: &Layout) -> (Meaning, Vec<Finding>) {
    let mut reader = Reader {
        format,
        rules,
        roles: roles(format, rules, layout),
        groups: BTreeMap::new(),
        findings: Vec::new(),
        meaning: Meaning {
            chain: Chain::new(layout.clone()),
            everyone: Vec::new(),
            goes_round: false,
            split_horizon: BTreeSet::new(),
            places: BTreeSet::new(),
        },
        taken: BTreeMap::new(),
        strangers: BTreeSet::new(),
    };
    for entity in entities {
        match entity {
            Entity::Group(id, ports) => {
                let mut ports = ports.clone();
                ports.sort_unstable();
                if *id == u32::from(EVERYONE) && format.messages.is_some() {
                    reader.meaning.everyone = ports.clone();
                }
                reader.groups.insert(*id, ports);
            }
            Entity::Session(id, _) => {
                reader.meaning.goes_round |= format.messages.is_some() && *id == u32::from(REST_SESSION);
            }
            Entity::Table(_) => {}
        }
    }
    for (at, entity) in entities.iter().enumerate() {
        if let Entity::Table(entry) = entity {
            reader.entry(at, entry);
        }
    }
    let Reader { mut meaning, mut findings, .. } = reader;
    for leaf in meaning.chain.leaves.values_mut() {
        leaf.calls.sort_unstable();
        leaf.updates.sort_unstable();
    }
    for (other, at) in meaning.chain.ambiguous() {
        let message =
            "this entry and another one match the same values with the same priority: which of them counts is not said";
        findings.push(Finding { at, also: Some(other), is_error: true, message: message.to_owned() });
    }
    astray(&meaning.chain, &mut findings);
    (meaning, findings)
}

/// Tells of states that lead back or are asked by nobody.
fn astray(chain: &Chain, findings: &mut Vec<Finding>) {
    for row in &chain.rows {
        if !chain.is_asked(row.stage, row.state) {
            let message = format!("no message comes here in state {:#010x}: another table asks it", row.state);
            findings.push(Finding { at: row.at, also: None, is_error: false, message });
            continue;
        }
        // State 0 is that of messages that nothing matches.
        if let Then::State(next @ 1..) = row.then {
            let here = state::stage_tag(row.stage.into());
            if state::tag(next) <= here && state::tag(next) < state::REMEMBERED - 1 {
                let message = format!(
                    "state {next:#010x} leads back to a table behind which messages are already: they are lost"
                );
                findings.push(Finding { at: row.at, also: None, is_error: false, message });
            }
        }
    }
}

fn roles(format: &Format, rules: &Rules, layout: &Layout) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    let mut add = |name: String, role: Role| roles.insert(format!("{CONTROL}{name}"), role);
    let first = usize::from(layout.validities() > 0);
    add(VALIDITY.to_owned(), Role::Validity);
    for (number, key) in (first..).zip(&layout.keys()[layout.validities()..]) {
        let (stage, column) = (number as u16, key.name(&rules.format));
        let codes = match key {
            Key::Field(id) => rules.format.compressed(*id),
            _ => None,
        };
        let width = codes.unwrap_or_else(|| key.width(&rules.format));
        add(part_name(&column, "exact", number), Role::Stage(stage, Part::Exact, width));
        for wide in [Wide::Range, Wide::Lpm, Wide::Ternary] {
            add(part_name(&column, wide_name(wide), number), Role::Stage(stage, Part::Wide, width));
        }
        add(part_name(&column, "rest", number), Role::Stage(stage, Part::Rest, width));
        if codes.is_some() {
            for kind in [Wide::Range, Wide::Lpm, Wide::Ternary] {
                add(codes_table(&column, kind), Role::Codes(stage));
            }
        }
    }
    add("leaf".to_owned(), Role::Leaf);
    for (at, action) in format.actions.iter().enumerate() {
        add(do_table(&action.name), Role::Do(at));
    }
    add(COUNTS.to_owned(), Role::Counts);
    for (at, counter) in format.counters.iter().enumerate() {
        add(update_table(&counter.name), Role::Update(at));
    }
    for at in 0..format.aggregates.len() {
        add(place_table(at), Role::Place(at));
    }
    roles.insert(SPLIT_HORIZON.to_owned(), Role::SplitHorizon);
    roles
}

struct Reader<'a> {
    format: &'a Format,
    rules: &'a Rules,
    roles: BTreeMap<String, Role>,
    groups: BTreeMap<u32, Vec<u32>>,
    findings: Vec<Finding>,
    meaning: Meaning,
    /// By aggregate, the cells that keys have.
    taken: BTreeMap<(usize, u128), usize>,
    /// Tables that are not the rules'.
    strangers: BTreeSet<String>,
}

impl Reader<'_> {
    fn find(&mut self, at: usize, is_error: bool, message: impl Into<String>) {
        self.findings.push(Finding { at, also: None, is_error, message: message.into() });
    }

    fn entry(&mut self, at: usize, entry: &TableEntry) {
        let Some(role) = self.roles.get(&entry.table).copied() else {
            let is_ours = entry.table.starts_with(CONTROL);
            if is_ours {
                self.find(at, true, format!("a program of this format and order has no table `{}`", entry.table));
            } else if self.strangers.insert(entry.table.clone()) {
                self.find(at, false, format!("`{}` is no table of rules: its entries are not compared", entry.table));
            }
            return;
        };
        let state = exactly(entry, "state").unwrap_or(0) as State;
        let rank = entry.priority.unwrap_or(0);
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
                let matches = Matches::Validity(pattern.collect());
                let Some(then) = self.then(at, entry) else { return };
                self.meaning.chain.rows.push(Row { stage: 0, state: 0, part: Part::Wide, rank, matches, then, at });
            }
            Role::Stage(stage, part, width) => {
                let Some(then) = self.then(at, entry) else { return };
                let rank = match value(entry) {
                    Some(Matched::Lpm(_, length)) => *length,
                    _ => rank,
                };
                let stretches = match value(entry) {
                    None => Some(vec![(0, subscribe::max_of(width))]),
                    Some(matched) => stretches(matched, width),
                };
                let Some(stretches) = stretches else {
                    return self.find(at, true, "this mask leaves more stretches of values than are compared");
                };
                self.meaning.chain.rows.extend(stretches.into_iter().map(|(first, last)| {
                    let matches = Matches::Stretch(first, last);
                    Row { stage, state, part, rank, matches, then: then.clone(), at }
                }));
            }
            Role::Codes(stage) => {
                let Some(code) = param(entry, "code") else { return };
                let width = self.meaning.chain.column(stage).width(&self.rules.format);
                let all = Matched::Range(0, subscribe::max_of(width));
                for (first, last) in stretches(value(entry).unwrap_or(&all), width).unwrap_or_default() {
                    self.meaning.chain.codes.push(CodeRow { stage, first, last, rank, code, at });
                }
            }
            Role::Leaf => {
                if let Some(Then::Ports(ports)) = self.then(at, entry) {
                    self.at_leaf(at, state, false, |leaf| leaf.ports = ports);
                }
            }
            Role::Do(action) => {
                let declared = &self.format.actions[action];
                if entry.action == declared.name {
                    let values = declared.params.iter().map(|(name, _)| param(entry, name).unwrap_or(0)).collect();
                    let call = (subscribe::ActionId(action as u16), values);
                    self.at_leaf(at, state, false, |leaf| leaf.calls.push(call));
                }
            }
            Role::Counts => {
                let Some(slots) = param(entry, "slots") else { return };
                let slots = (0..self.rules.format.slots).filter(|slot| slots >> slot & 1 == 1).collect();
                self.at_leaf(at, state, true, |leaf| leaf.slots = slots);
            }
            Role::Update(counter) => self.update(at, entry, state, counter),
            Role::Place(computed) => self.place(at, entry, computed),
            Role::SplitHorizon => {
                let port = |name| exactly(entry, name).map(|port| port as u32);
                self.meaning.split_horizon.extend(port("from").zip(port("to")));
            }
        }
    }

    /// What an entry of a stage or leaf does. Nothing if that was told as wrong.
    fn then(&mut self, at: usize, entry: &TableEntry) -> Option<Then> {
        let action = entry.action.strip_prefix(CONTROL).unwrap_or(&entry.action);
        let ports = match action {
            "to_state" => return Some(Then::State(param(entry, "state")? as State)),
            "NoAction" => return Some(Then::Nothing),
            "to_port" => vec![param(entry, "port")? as u32],
            "to_group" => {
                let group = param(entry, "group")? as u32;
                match self.groups.get(&group) {
                    Some(ports) => ports.clone(),
                    // Group 0 is none.
                    None if group == 0 => Vec::new(),
                    None => {
                        let message = format!("there is no multicast group {group}: its messages go nowhere");
                        self.find(at, false, message);
                        Vec::new()
                    }
                }
            }
            other => {
                self.find(at, true, format!("tables of rules have no action `{other}`"));
                return None;
            }
        };
        Some(if ports.is_empty() { Then::Nothing } else { Then::Ports(ports) })
    }

    /// Adds to what is done in a state, if it is a leaf, or one whose messages are remembered.
    fn at_leaf(&mut self, at: usize, state: State, is_memory: bool, add: impl FnOnce(&mut Delivery)) {
        let remembers = !self.format.counters.is_empty() || !self.format.aggregates.is_empty();
        let is_asked = match state::tag(state) {
            state::REMEMBERED => remembers,
            state::LEAF => !is_memory,
            _ => false,
        };
        match is_asked {
            true => add(self.meaning.chain.leaves.entry(state).or_default()),
            false => self.find(at, false, format!("no message comes here in state {state:#010x}")),
        }
    }

    fn update(&mut self, at: usize, entry: &TableEntry, state: State, counter: usize) {
        let function = match param(entry, "function") {
            Some(1) => UpdateFunction::Set,
            Some(2) => UpdateFunction::Add,
            Some(3) => UpdateFunction::Subtract,
            Some(4) => UpdateFunction::Min,
            Some(5) => UpdateFunction::Max,
            Some(0) | None => return,
            Some(other) => return self.find(at, true, format!("there is no function {other} of a counter")),
        };
        let action = entry.action.strip_prefix(CONTROL).unwrap_or(&entry.action);
        let with = |name: &str| self.format.fields.iter().position(|field| with_field(&field.name) == name);
        let operand = match action {
            "by_number" => Operand::Number(param(entry, "number").unwrap_or(0)),
            other => match with(other) {
                Some(field) => Operand::Field(FieldId(field as u16)),
                None => return self.find(at, true, format!("tables of rules have no action `{other}`")),
            },
        };
        let counter = subscribe::CounterId(counter as u16);
        self.at_leaf(at, state, true, |leaf| leaf.updates.push(Update { counter, function, operand }));
    }

    fn place(&mut self, at: usize, entry: &TableEntry, computed: usize) {
        let by = &self.format.aggregates[computed].computes.by;
        let names = by.iter().map(|id| &self.format.fields[usize::from(id.0)].name);
        let key: Vec<u128> = names.map(|name| exactly(entry, name).unwrap_or(0)).collect();
        let Some(index) = param(entry, "index") else { return };
        if index >= u128::from(self.format.aggregates[computed].keys) {
            self.find(at, true, format!("cell {index} is none of those for keys that rules name"));
        }
        if let Some(other) = self.taken.insert((computed, index), at) {
            let message = format!("two keys have cell {index}: each would lose what it counted to the other");
            self.findings.push(Finding { at, also: Some(other), is_error: true, message });
        }
        self.meaning.places.insert((computed, key));
    }
}

fn param(entry: &TableEntry, name: &str) -> Option<u128> {
    entry.params.iter().find(|(known, ..)| known == name).map(|(_, _, value)| *value)
}

fn value(entry: &TableEntry) -> Option<&Matched> {
    entry.keys.iter().find(|(name, ..)| name == "value").map(|(_, _, matched)| matched)
}

/// The value of a key that is matched exactly.
fn exactly(entry: &TableEntry, name: &str) -> Option<u128> {
    entry.keys.iter().find(|(known, ..)| known == name).and_then(|(_, _, matched)| match matched {
        Matched::Exact(value) => Some(*value),
        _ => None,
    })
}

/// The stretches of values that a key matches; `None` if they are too many.
fn stretches(matched: &Matched, width: u32) -> Option<Vec<(u128, u128)>> {
    /// Bits of a mask that stand in front of others and are of no matter: so many double the stretches.
    const HOLES: u32 = 10;
    let max = subscribe::max_of(width);
    match *matched {
        Matched::Exact(value) => Some(vec![(value, value)]),
        Matched::Range(first, last) => Some(vec![(first, last)]),
        Matched::Lpm(value, length) => Some(stretches(&Matched::Ternary(value, !behind(length, width) & max), width)?),
        Matched::Ternary(value, mask) => {
            let value = value & mask;
            let below = if mask == 0 { max } else { (1u128 << mask.trailing_zeros()) - 1 };
            let holes = !mask & max & !below;
            if holes.count_ones() > HOLES {
                return None;
            }
            // Each set of bits that are holes, in ascending order.
            let mut out = Vec::with_capacity(1 << holes.count_ones());
            let mut bits = 0u128;
            loop {
                out.push((value | bits, value | bits | below));
                bits = bits.wrapping_sub(holes) & holes;
                if bits == 0 {
                    return Some(out);
                }
            }
        }
    }
}

/// The ones behind a prefix.
fn behind(length: u32, width: u32) -> u128 {
    if length == 0 { subscribe::max_of(width) } else { subscribe::max_of(width).checked_shr(length).unwrap_or(0) }
}
