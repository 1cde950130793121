//! Entries that time out: the control plane is told when an entry has gone without a hit for as long as it said, and
//! again after as long if nothing hits it still (P4Runtime specification, Table Idle Timeout Notification).

use std::collections::HashMap;

use ir::{KeyValue, Program, TableId};
use switch::{Notification, Time};

use super::Switch;

/// Entries are looked through this often, which rounds their timeouts up (BMv2 does the same).
const SWEEP_NS: u64 = 1_000_000_000;

/// An entry, and since when it is idle.
type Told = (TableId, Vec<KeyValue>, i32, u64);

/// When to look through which tables, and what the control plane knows already.
#[derive(Debug, Default)]
pub(super) struct Idle {
    tables: Vec<TableId>,
    now: Time,
    next: Option<Time>,
    /// What was told, and when last.
    told: HashMap<Told, Time>,
}

impl Idle {
    /// Looks after the tables whose entries age.
    pub fn new(program: &Program) -> Idle {
        let tables = program.tables.iter().filter(|(_, table)| table.idle_timeout).map(|(id, _)| id);
        Idle { tables: tables.collect(), ..Idle::default() }
    }

    /// The control plane may have written entries: they are looked through from now on.
    pub fn wake(&mut self) {
        if !self.tables.is_empty() && self.next.is_none() {
            self.next = Some(self.now.after_ns(SWEEP_NS));
        }
    }

    /// When to look again; `None` while no entry can time out.
    pub fn next_event(&self) -> Option<Time> {
        self.next
    }
}

impl Switch {
    /// Tells the control plane of entries that have become idle, if it is time to look.
    pub(super) fn sweep_idle(&mut self, now: Time) {
        self.idle.now = now;
        if self.idle.next.is_none_or(|next| next > now) {
            return;
        }
        let mut told = HashMap::new();
        let mut any_ages = false;
        for table in self.idle.tables.clone() {
            any_ages |= self.objects.has_aging_entries(table);
            let idle: Vec<_> =
                self.objects.idle_entries(table, now.as_ns()).map(|i| (i.entry.clone(), i.last_hit_ns)).collect();
            for (entry, last_hit_ns) in idle {
                let key = (table, entry.keys.clone(), entry.priority, last_hit_ns);
                let last = self.idle.told.get(&key).copied();
                let due = last.is_none_or(|last| now.since_ns(last) >= entry.idle_timeout_ns);
                if due {
                    self.notify(Notification::IdleTimeout { table, entry: Box::new(entry), time: now });
                }
                told.insert(key, last.filter(|_| !due).unwrap_or(now));
            }
        }
        self.idle.told = told;
        self.idle.next = any_ages.then(|| now.after_ns(SWEEP_NS));
    }
}
