//! Keeps the counters of a switch under stable names.
//!
//! Each counter has one name, with parts separated by points: `port.1.rx.packets`, `queue.2.0.depth`,
//! `drop.ingress.program`. The same number is printed for people, exported to a monitoring system, or stamped into a
//! packet. The fast path accesses a counter by its [`Stat`], which is an index; names are used only for registering
//! and reading.
//!
//! Workers share the names of a registry and have counters of their own, in memory that the owner of the registry
//! reads and adds up on request. Counting therefore remains a plain addition.

use std::cmp::Ordering::{self, Equal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

/// A counter of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat(u32);

impl Stat {
    /// Returns the counter that was registered `count` counters after this one.
    #[inline]
    pub(crate) fn after(self, count: u32) -> Stat {
        Stat(self.0 + count)
    }
}

/// The names, and the counters of one worker; at the owner, the sums over all workers.
#[derive(Debug, Default)]
pub struct Registry {
    names: Arc<Mutex<CounterNames>>,
    /// This worker's counters. Only the worker writes them; they are atomic because others read them.
    values: Arc<[AtomicU64]>,
    /// The counters as others access them.
    column: Arc<Column>,
    /// At the owner, the workers' counters.
    workers: Vec<Arc<Column>>,
}

#[derive(Debug, Default)]
struct CounterNames {
    names: Vec<String>,
    by_name: HashMap<String, Stat>,
}

/// The counters of a worker. The array is replaced when it must grow.
#[derive(Debug, Default)]
struct Column(Mutex<Arc<[AtomicU64]>>);

/// The guarded data are consistent at every point at which a thread can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Column {
    fn value(&self, stat: Stat) -> u64 {
        lock(&self.0).get(stat.0 as usize).map_or(0, |value| value.load(Relaxed))
    }
}

impl Registry {
    /// Returns the counter with this name, and creates it with the value 0 if necessary.
    pub fn register(&mut self, name: impl Into<String>) -> Stat {
        let name = name.into();
        let mut names = lock(&self.names);
        let stat = match names.by_name.get(&name) {
            Some(stat) => *stat,
            None => {
                let stat = Stat(names.names.len() as u32);
                names.names.push(name.clone());
                names.by_name.insert(name, stat);
                stat
            }
        };
        drop(names);
        self.make_room(stat);
        stat
    }

    fn make_room(&mut self, stat: Stat) {
        if (stat.0 as usize) < self.values.len() {
            return;
        }
        let room = (stat.0 as usize + 1).next_power_of_two().max(64);
        let old = self.values.iter().map(|value| value.load(Relaxed)).chain(std::iter::repeat(0));
        self.values = old.take(room).map(AtomicU64::new).collect();
        *lock(&self.column.0) = Arc::clone(&self.values);
    }

    /// Creates the registry of another worker: the same names with counters of its own, which are added to those of
    /// this registry.
    pub fn worker(&mut self) -> Registry {
        let column = Arc::new(Column::default());
        self.workers.push(Arc::clone(&column));
        let mut registry =
            Registry { names: Arc::clone(&self.names), values: Arc::default(), column, workers: Vec::new() };
        registry.make_room(Stat(self.values.len() as u32));
        registry
    }

    /// Returns this worker's part of a counter.
    #[inline]
    fn own(&self, stat: Stat) -> &AtomicU64 {
        &self.values[stat.0 as usize]
    }

    /// Adds to a counter. It saturates at its maximum.
    #[inline]
    pub fn add(&mut self, stat: Stat, amount: u64) {
        let own = self.own(stat);
        own.store(own.load(Relaxed).saturating_add(amount), Relaxed);
    }

    /// Prefetches a counter that will be changed soon.
    #[inline]
    pub(crate) fn prefetch(&self, stat: Stat) {
        tables::prefetch(&self.values, stat.0 as usize);
    }

    /// Subtracts what was added too much.
    pub fn take_back(&mut self, stat: Stat, amount: u64) {
        let own = self.own(stat);
        own.store(own.load(Relaxed).saturating_sub(amount), Relaxed);
    }

    /// Sets a gauge, such as a queue depth; with several workers, this worker's part of it.
    #[inline]
    pub fn set(&mut self, stat: Stat, value: u64) {
        self.own(stat).store(value, Relaxed);
    }

    /// Adds the counters of another registry to those of the same names, as far as `is_chosen` accepts the name.
    pub fn add_all(&mut self, other: &Registry, is_chosen: impl Fn(&str) -> bool) {
        for (name, value) in other.iter().filter(|(name, value)| *value > 0 && is_chosen(name)) {
            let stat = self.register(name);
            self.add(stat, value);
        }
    }

    /// Returns the value of a counter.
    pub fn value(&self, stat: Stat) -> u64 {
        let own = self.values.get(stat.0 as usize).map_or(0, |value| value.load(Relaxed));
        self.workers.iter().fold(own, |sum, worker| sum.saturating_add(worker.value(stat)))
    }

    /// Returns the value of the counter with this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        let stat = lock(&self.names).by_name.get(name).copied();
        stat.map(|stat| self.value(stat))
    }

    /// Returns all names and values, ordered by the parts of the names; numeric parts are ordered as numbers.
    pub fn iter(&self) -> impl Iterator<Item = (String, u64)> {
        let names = lock(&self.names).names.clone();
        let mut all: Vec<_> = names.into_iter().zip(0..).map(|(name, at)| (name, self.value(Stat(at)))).collect();
        all.sort_by(|(a, _), (b, _)| by_parts(a, b));
        all.into_iter()
    }

    /// Renders all counters that are not 0, one per line, with aligned values.
    pub fn render(&self) -> String {
        let shown: Vec<_> = self.iter().filter(|(_, value)| *value != 0).collect();
        let width = shown.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let digits = shown.iter().map(|(_, value)| value.to_string().len()).max().unwrap_or(0);
        shown.iter().map(|(name, value)| format!("{name:width$}  {value:>digits$}\n")).collect()
    }

    /// Returns all counters as one JSON object from name to value.
    pub fn to_json(&self) -> Value {
        Value::Object(self.iter().map(|(name, value)| (name, Value::from(value))).collect::<Map<_, _>>())
    }
}

fn by_parts(a: &str, b: &str) -> Ordering {
    let (mut a_parts, mut b_parts) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a_parts.next(), b_parts.next()) {
            (None, None) => return Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                _ => a.cmp(b),
            },
        };
        if order != Equal {
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
    fn the_owner_adds_up_what_workers_count() {
        let mut owner = Registry::default();
        let rx = owner.register("rx");
        owner.add(rx, 1);
        let mut workers: Vec<Registry> = (0..3).map(|_| owner.worker()).collect();
        std::thread::scope(|scope| {
            for (number, worker) in workers.iter_mut().enumerate() {
                scope.spawn(move || {
                    (0..1000).for_each(|_| worker.add(rx, 2));
                    // Names registered later, some by all workers and many by one.
                    let both = worker.register("drop");
                    worker.add(both, 1);
                    let own = (0..300).map(|at| worker.register(format!("{number}.{at}"))).last().unwrap();
                    worker.add(own, number as u64);
                });
            }
        });
        assert_eq!((owner.get("rx"), owner.get("drop"), owner.get("2.299")), (Some(6001), Some(3), Some(2)));
        assert_eq!(workers[0].get("rx"), Some(2000), "a worker knows its own");
        drop(workers);
        assert_eq!(owner.value(rx), 6001);
        let late = owner.register("late");
        owner.add(late, 5);
        assert_eq!(owner.value(late), 5);
    }

    #[test]
    fn counters_of_another_registry_are_added() {
        let (mut before, mut after) = (Registry::default(), Registry::default());
        for (name, value) in [("rx", 3), ("tx", 5), ("depth", 2), ("none", 0)] {
            let stat = before.register(name);
            before.add(stat, value);
        }
        let mut worker = before.worker();
        let rx = worker.register("rx");
        worker.add(rx, 4);
        let tx = after.register("tx");
        after.add(tx, 1);
        after.add_all(&before, |name| name != "depth");
        assert_eq!(
            (after.get("rx"), after.get("tx"), after.get("depth"), after.get("none")),
            (Some(7), Some(6), None, None)
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
