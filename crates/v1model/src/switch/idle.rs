//! Implements idle timeouts: the control plane is notified when an entry had no hit for its timeout, and again after
//! each further timeout without a hit (P4Runtime specification, Table Idle Timeout Notification).

use std::collections::HashMap;

use ir::{KeyValue, Program, TableId};
use switch::{Notification, Time};

use super::Switch;

/// Interval between sweeps of the entries. Timeouts are rounded up to it (as in BMv2).
const SWEEP_NS: u64 = 1_000_000_000;

/// An entry, and the time since which it is idle.
type ReportedEntry = (TableId, Vec<KeyValue>, i32, u64);

/// The next sweep, the tables to sweep, and the entries already reported.
#[derive(Debug, Default)]
pub(super) struct Idle {
    tables: Vec<TableId>,
    now: Time,
    next: Option<Time>,
    /// Reported entries, with the time of the last notification.
    reported: HashMap<ReportedEntry, Time>,
}

impl Idle {
    /// Watches the tables whose entries age.
    pub fn new(program: &Program) -> Idle {
        let tables = program.tables.iter().filter(|(_, table)| table.idle_timeout).map(|(id, _)| id);
        Idle { tables: tables.collect(), ..Idle::default() }
    }

    /// Starts sweeping, since the control plane may have written entries.
    pub fn wake(&mut self) {
        if !self.tables.is_empty() && self.next.is_none() {
            self.next = Some(self.now.after_ns(SWEEP_NS));
        }
    }

    /// Returns the time of the next sweep; `None` while no entry can time out.
    pub fn next_event(&self) -> Option<Time> {
        self.next
    }
}

impl Switch {
    /// Notifies the control plane of entries that became idle, if a sweep is due.
    pub(super) fn sweep_idle(&mut self, now: Time) {
        self.idle.now = now;
        if self.idle.next.is_none_or(|next| next > now) {
            return;
        }
        let mut reported = HashMap::new();
        let mut any_ages = false;
        for table in self.idle.tables.clone() {
            self.collect_hits(table);
            any_ages |= self.objects.has_aging_entries(table);
            let idle: Vec<_> =
                self.objects.idle_entries(table, now.as_ns()).map(|i| (i.entry.clone(), i.last_hit_ns)).collect();
            for (entry, last_hit_ns) in idle {
                let key = (table, entry.keys.clone(), entry.priority, last_hit_ns);
                let last = self.idle.reported.get(&key).copied();
                let due = last.is_none_or(|last| now.since_ns(last) >= entry.idle_timeout_ns);
                if due {
                    self.notify(Notification::IdleTimeout { table, entry: Box::new(entry), time: now });
                }
                reported.insert(key, last.filter(|_| !due).unwrap_or(now));
            }
        }
        self.idle.reported = reported;
        self.idle.next = any_ages.then(|| now.after_ns(SWEEP_NS));
    }
}
