//! A model of a switch that applies updates strictly.

use std::collections::BTreeMap;

use subscribe::Delivery;
use subscribe_p4::entries::{Entity, Matched, ProgramEntry, Update};

use crate::changes::program::CPU_PORT;

/// Destination of a message, and the actions of the program that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub ports: Vec<u32>,
    pub calls: Vec<Vec<u128>>,
    /// Slots that count the message, if any.
    pub counts: Option<Vec<u128>>,
    /// By counter, the function and its operand, if it is updated.
    pub updates: Vec<Option<Vec<u128>>>,
}

impl Outcome {
    /// Returns the effect of a delivery at the ports.
    pub fn of(delivery: &Delivery, counters: usize) -> Outcome {
        let controller = delivery.to_controller.then_some(CPU_PORT);
        let mut ports: Vec<u32> = delivery.ports.iter().copied().chain(controller).collect();
        ports.sort_unstable();
        ports.dedup();
        let slots = delivery.slots.iter().fold(0, |slots, slot| slots | 1 << slot);
        let added = |counter: usize| {
            let mut of = delivery.updates.iter().filter(|update| usize::from(update.counter.0) == counter);
            of.next().map(|_| vec![2, 1])
        };
        Outcome {
            ports,
            calls: delivery.calls.iter().map(|(_, values)| values.clone()).collect(),
            counts: (slots != 0).then(|| vec![slots]),
            updates: (0..counters).map(added).collect(),
        }
    }
}

type Key = (String, String, Option<u32>);

/// Contents of the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSwitch {
    pub tables: BTreeMap<Key, ProgramEntry>,
    pub groups: BTreeMap<u32, Vec<u32>>,
    pub sessions: BTreeMap<u32, u32>,
}

fn key(entry: &ProgramEntry) -> Key {
    (entry.table.clone(), format!("{:?}", entry.keys), entry.priority)
}

impl ModelSwitch {
    /// Applies an update if P4Runtime permits it.
    pub fn apply(&mut self, update: &Update) {
        let is_possible = match update {
            Update::Insert(Entity::Table(entry)) => self.tables.insert(key(entry), entry.clone()).is_none(),
            // A write without effect is an error.
            Update::Modify(Entity::Table(entry)) => {
                self.tables.insert(key(entry), entry.clone()).is_some_and(|old| old != *entry)
            }
            Update::Delete(Entity::Table(entry)) => self.tables.remove(&key(entry)).is_some(),
            Update::Insert(Entity::Group(id, ports)) => self.groups.insert(*id, ports.clone()).is_none(),
            Update::Modify(Entity::Group(id, ports)) => self.groups.insert(*id, ports.clone()).is_some(),
            Update::Delete(Entity::Group(id, _)) => {
                let id = *id;
                let uses = |entry: &ProgramEntry| {
                    entry.params.iter().any(|(name, _, value)| name == "group" && *value == id.into())
                };
                self.groups.remove(&id).is_some() && !self.tables.values().any(uses)
            }
            Update::Insert(Entity::Session(id, port)) => self.sessions.insert(*id, *port).is_none(),
            Update::Modify(Entity::Session(..)) | Update::Delete(Entity::Session(..)) => false,
        };
        assert!(is_possible, "{update:?} cannot be written");
    }

    /// Entries and groups.
    pub fn size(&self) -> (usize, usize) {
        (self.tables.len(), self.groups.len())
    }

    /// Returns the same contents with groups named by their ports, because group numbers depend on history.
    pub fn without_group_numbers(&self) -> (Vec<(Key, String)>, Vec<Vec<u32>>) {
        let action = |entry: &ProgramEntry| match entry.params.first() {
            Some((name, _, id)) if name == "group" => format!("{:?}", self.groups[&(*id as u32)]),
            _ => format!("{} {:?}", entry.action, entry.params),
        };
        let tables = self.tables.iter().map(|(key, entry)| (key.clone(), action(entry))).collect();
        let mut groups: Vec<Vec<u32>> = self.groups.values().cloned().collect();
        groups.sort();
        (tables, groups)
    }

    pub fn has_raised_priority(&self) -> bool {
        let is_range = |entry: &ProgramEntry| entry.keys.iter().any(|key| matches!(key.2, Matched::Range(..)));
        self.tables.values().any(|entry| is_range(entry) && entry.priority > Some(1))
    }

    /// Returns the entry of a table that these values match.
    pub fn look_up(&self, table: &str, values: &BTreeMap<String, u128>) -> Option<&ProgramEntry> {
        let table = format!("Subscriptions.{table}");
        let of_table = self.tables.values().filter(|entry| entry.table == table);
        let hit = |entry: &&ProgramEntry| {
            entry.keys.iter().all(|(name, width, matched)| {
                let value = values[name];
                match matched {
                    Matched::Exact(wanted) => value == *wanted,
                    Matched::Lpm(wanted, length) => {
                        *length == 0 || value >> (width - length) == wanted >> (width - length)
                    }
                    Matched::Range(first, last) => (first..=last).contains(&&value),
                    Matched::Ternary(wanted, mask) => value & mask == *wanted,
                }
            })
        };
        let rank = |entry: &ProgramEntry| {
            let longest =
                entry.keys.iter().map(|key| if let Matched::Lpm(_, length) = key.2 { length } else { 0 }).max();
            (entry.priority, longest)
        };
        let hits: Vec<&ProgramEntry> = of_table.filter(hit).collect();
        let best = hits.iter().map(|entry| rank(entry)).max()?;
        let mut of_best = hits.into_iter().filter(|entry| rank(entry) == best);
        let first = of_best.next();
        assert_eq!(of_best.next(), None, "which of two entries is hit is not said: {first:?}");
        first
    }
}
