//! Looks up values by name: counters of the switch, and the program's tables, counters and registers.
//!
//! | name | value |
//! |---|---|
//! | `port.1.rx.packets`, `queue.2.0.depth`, `drop.ingress.program`, ... | a counter of [`switch::Registry`] |
//! | `table.T.entries` | number of entries in table T |
//! | `counter.C.I.packets`, `counter.C.I.bytes` | element I of counter array C |
//! | `register.R.I` | element I of register array R, its low 64 bits |
//!
//! T, C and R are the names the control plane uses, including their dots (`MyIngress.ipv4_lpm`).

use serde_json::{Map, Value};

use super::Switch;

impl Switch {
    /// Returns the value of the counter or object with this name; `None` if there is none.
    pub fn value(&self, name: &str) -> Option<u64> {
        if let Some(value) = self.registry.get(name) {
            return Some(value);
        }
        let (kind, rest) = name.split_once('.')?;
        match kind {
            "table" => {
                let table = self.program.table_named(rest.strip_suffix(".entries")?)?;
                Some(self.objects.entry_count(table) as u64)
            }
            "register" => {
                let (register, index) = rest.rsplit_once('.')?;
                let (id, _) = self.program.registers.iter().find(|(_, r)| r.name == register)?;
                Some(self.objects.register(id, index.parse().ok()?).ok()?.low_u64())
            }
            "counter" => {
                let (rest, unit) = rest.rsplit_once('.')?;
                let (counter, index) = rest.rsplit_once('.')?;
                let (id, _) = self.program.counters.iter().find(|(_, c)| c.name == counter)?;
                let value = self.objects.counter(id, index.parse().ok()?).ok()?;
                match unit {
                    "packets" => Some(value.packets),
                    "bytes" => Some(value.bytes),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the switch's counters and the sizes of its tables as one JSON object from name to value.
    pub fn values_json(&self) -> Value {
        let mut all = match self.registry.to_json() {
            Value::Object(all) => all,
            _ => Map::new(),
        };
        for (id, table) in &self.program.tables {
            all.insert(format!("table.{}.entries", table.name), self.objects.entry_count(id).into());
        }
        Value::Object(all)
    }
}
