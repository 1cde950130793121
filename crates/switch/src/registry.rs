//! What a switch knows of itself, under stable names.
//!
//! Every number has one name, made of parts between points: `port.1.rx.packets`, `queue.2.0.depth`,
//! `drop.ingress.program`. What is printed for people, exported to a monitoring system, or stamped into a packet is
//! this one number. On the packet's path a number is reached by its [`Stat`], which is an index; names are only
//! looked at when someone registers or reads.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::{Map, Value};

/// A number of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat(u32);

/// Names and numbers.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    values: Vec<u64>,
    names: Vec<String>,
    by_name: HashMap<String, Stat>,
}

impl Registry {
    /// The number with this name, 0 at first.
    pub fn register(&mut self, name: impl Into<String>) -> Stat {
        let name = name.into();
        if let Some(stat) = self.by_name.get(&name) {
            return *stat;
        }
        let stat = Stat(self.values.len() as u32);
        self.values.push(0);
        self.names.push(name.clone());
        self.by_name.insert(name, stat);
        stat
    }

    /// Adds to a number; it stays at the largest there is.
    pub fn add(&mut self, stat: Stat, amount: u64) {
        let value = &mut self.values[stat.0 as usize];
        *value = value.saturating_add(amount);
    }

    /// Takes back what was added to a number; it does not go below 0.
    pub fn take_back(&mut self, stat: Stat, amount: u64) {
        let value = &mut self.values[stat.0 as usize];
        *value = value.saturating_sub(amount);
    }

    /// Sets a number, for what goes up and down.
    pub fn set(&mut self, stat: Stat, value: u64) {
        self.values[stat.0 as usize] = value;
    }

    /// A number.
    pub fn value(&self, stat: Stat) -> u64 {
        self.values[stat.0 as usize]
    }

    /// The number with this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).map(|stat| self.value(*stat))
    }

    /// Every name and number, ordered by the names' parts; parts that are numbers are ordered as numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|a, b| by_parts(&self.names[*a], &self.names[*b]));
        order.into_iter().map(|at| (self.names[at].as_str(), self.values[at]))
    }

    /// Every number that is not 0, a line each, values aligned.
    pub fn render(&self) -> String {
        let shown: Vec<_> = self.iter().filter(|(_, value)| *value != 0).collect();
        let width = shown.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let digits = shown.iter().map(|(_, value)| value.to_string().len()).max().unwrap_or(0);
        shown.iter().map(|(name, value)| format!("{name:width$}  {value:>digits$}\n")).collect()
    }

    /// Every number, as one JSON object from name to number.
    pub fn to_json(&self) -> Value {
        Value::Object(self.iter().map(|(name, value)| (name.to_string(), Value::from(value))).collect::<Map<_, _>>())
    }
}

fn by_parts(a: &str, b: &str) -> Ordering {
    let (mut a_parts, mut b_parts) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a_parts.next(), b_parts.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                _ => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_registered_once_and_ordered_by_their_parts() {
        let mut registry = Registry::default();
        let ten = registry.register("port.10.rx.packets");
        let two = registry.register("port.2.rx.packets");
        assert_eq!(registry.register("port.10.rx.packets"), ten);
        registry.add(ten, 3);
        registry.add(two, 12);
        registry.register("port.3.rx.packets");
        assert_eq!(registry.render(), "port.2.rx.packets   12\nport.10.rx.packets   3\n");
        assert_eq!(registry.get("port.10.rx.packets"), Some(3));
        assert_eq!(registry.get("port.11.rx.packets"), None);
        assert_eq!(
            registry.to_json().to_string(),
            r#"{"port.10.rx.packets":3,"port.2.rx.packets":12,"port.3.rx.packets":0}"#
        );
    }

    #[test]
    fn a_number_stays_at_its_end() {
        let mut registry = Registry::default();
        let stat = registry.register("x");
        registry.set(stat, u64::MAX - 1);
        registry.add(stat, 5);
        assert_eq!(registry.value(stat), u64::MAX);
    }
}
