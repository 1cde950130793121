//! Validates actions, tables, arrays, profiles, value sets and digests.

use std::collections::HashSet;

use bits::Bits;

use super::{Checker, Location, MAX_ALL_ARRAYS, MAX_ARRAY_SIZE, MAX_DATA_BITS, MAX_REGISTER_BITS, Rule};
use crate::*;

impl<'p> Checker<'p> {
    pub(super) fn objects(&mut self) {
        self.at = Location::Program;
        let program = self.program;
        self.unique(program.tables.values().map(|table| table.name.as_str()));
        self.unique(program.registers.values().map(|register| register.name.as_str()));
        self.unique(program.counters.values().map(|counter| counter.name.as_str()));
        self.unique(program.meters.values().map(|meter| meter.name.as_str()));
        self.unique(program.profiles.values().map(|profile| profile.name.as_str()));
        self.unique(program.value_sets.values().map(|set| set.name.as_str()));
        self.unique(program.digests.values().map(|digest| digest.name.as_str()));
        self.arrays();
        for profile in program.profiles.values() {
            self.at = Location::Object("profile", &profile.name);
            self.width_limit(profile.hash_width);
            self.annotations(&profile.annotations);
        }
        for set in program.value_sets.values() {
            self.at = Location::Object("value set", &set.name);
            self.annotations(&set.annotations);
            for (name, width, kind) in &set.fields {
                self.name_length(name);
                self.width_limit(*width);
                self.require(*kind != MatchKind::Selector, Rule::KeyKinds, || format!("{name} is a selector"));
            }
        }
        for digest in program.digests.values() {
            self.at = Location::Object("digest", &digest.name);
            for (name, width) in &digest.fields {
                self.name_length(name);
                self.width_limit(*width);
            }
        }
        for action in program.actions.values() {
            self.at = Location::Object("action", &action.name);
            self.action(action);
        }
        let mut direct = HashSet::new();
        for table in program.tables.values() {
            self.at = Location::Object("table", &table.name);
            self.table(table);
            self.direct_objects(table, &mut direct);
        }
    }

    fn arrays(&mut self) {
        let program = self.program;
        let mut total = 0u64;
        for register in program.registers.values() {
            self.at = Location::Object("register", &register.name);
            self.annotations(&register.annotations);
            self.width_limit(register.width);
            let bits = register.size.saturating_mul(u64::from(register.width));
            self.require(bits <= MAX_REGISTER_BITS, Rule::SizeLimit, || format!("{bits} bits"));
            self.array(register.size, &mut total);
        }
        for counter in program.counters.values() {
            self.at = Location::Object("counter", &counter.name);
            self.annotations(&counter.annotations);
            self.array(counter.size.unwrap_or(0), &mut total);
        }
        for meter in program.meters.values() {
            self.at = Location::Object("meter", &meter.name);
            self.annotations(&meter.annotations);
            self.require(meter.unit != Unit::PacketsAndBytes, Rule::MeterUnit, || "it measures both".to_owned());
            self.array(meter.size.unwrap_or(0), &mut total);
        }
        self.at = Location::Program;
        self.require(total <= MAX_ALL_ARRAYS, Rule::SizeLimit, || format!("{total} array elements in all"));
    }

    fn array(&mut self, size: u64, total: &mut u64) {
        self.require(size <= MAX_ARRAY_SIZE, Rule::SizeLimit, || format!("{size} elements"));
        *total = total.saturating_add(size.min(MAX_ARRAY_SIZE));
    }

    fn action(&mut self, action: &'p Action) {
        let program = self.program;
        self.name_length(&action.name);
        self.annotations(&action.annotations);
        self.get(&program.locs, action.loc);
        if let Some(body) = self.get(&program.bodies, action.body) {
            self.require(body.kind == BodyKind::Action, Rule::ActionBody, || {
                format!("its body {} is of kind {:?}", body.name, body.kind)
            });
        }
        self.unique(action.params.iter().map(|param| param.name.as_str()));
        let mut total = 0u64;
        for param in &action.params {
            self.annotations(&param.annotations);
            let Some(slot) = self.get(&program.slots, param.slot) else { continue };
            total += u64::from(slot.width);
            let new = slot.kind == SlotKind::Argument && self.owners.insert(param.slot, action.body).is_none();
            self.require(new, Rule::Arguments, || {
                format!(
                    "the slot {1} of parameter {0} is of kind {2}, or another parameter's",
                    param.name, slot.name, slot.kind
                )
            });
        }
        self.require(total <= MAX_DATA_BITS, Rule::WidthLimit, || format!("{total} bits of parameters"));
    }

    fn table(&mut self, table: &'p Table) {
        let program = self.program;
        self.annotations(&table.annotations);
        self.get(&program.locs, table.loc);
        let profile = table.profile.and_then(|profile| self.get(&program.profiles, profile));
        let lpm = table.keys.iter().filter(|key| key.kind == MatchKind::Lpm).count();
        self.require(lpm <= 1, Rule::KeyKinds, || format!("it has {lpm} lpm keys"));
        for key in &table.keys {
            self.name_length(&key.name);
            self.annotations(&key.annotations);
            self.width_limit(key.width);
            let width = self.expr(None, &key.expr);
            self.require(width.is_none_or(|width| width == key.width), Rule::KeyWidth, || {
                format!("key {} is {} bits wide, its expression {}", key.name, key.width, width.unwrap_or(0))
            });
            let selects = profile.is_some_and(|profile| profile.selector.is_some());
            self.require(key.kind != MatchKind::Selector || selects, Rule::KeyKinds, || {
                format!("key {} is a selector, but there is none", key.name)
            });
        }
        let mut names = HashSet::new();
        for action in &table.actions {
            let Some(action) = self.get(&program.actions, action.action) else { continue };
            let new = names.insert(action.name.as_str());
            self.require(new, Rule::UniqueName, || format!("two of its actions are called {:?}", action.name));
        }
        let (default, args) = &table.default_action;
        if let Some(default) = self.call(table, *default, args, "the default action") {
            self.require(!default.table_only, Rule::ActionUse, || "the default action is for entries only".to_owned());
        }
        let prioritised = |key: &Key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        let prioritised = table.keys.iter().any(prioritised);
        for (at, entry) in table.entries.iter().enumerate() {
            self.get(&program.locs, entry.loc);
            if let Some(action) = self.call(table, entry.action, &entry.args, &format!("entry {at}")) {
                self.require(!action.default_only, Rule::ActionUse, || {
                    format!("the action of entry {at} is for the default only")
                });
            }
            let fits = entry.priority == 0 || (prioritised && entry.priority > 0);
            self.require(fits, Rule::Priority, || format!("entry {at} has priority {}", entry.priority));
            self.entry_keys(table, at, entry);
        }
    }

    /// Checks that an action receives the arguments of its parameters.
    fn call(&mut self, table: &'p Table, action: u32, args: &[Bits], what: &str) -> Option<&'p TableAction> {
        let Some(found) = table.actions.get(action as usize) else {
            self.broken(Rule::IdInRange, format!("{what} is action {action}, but there are {}", table.actions.len()));
            return None;
        };
        let wanted = self.program.actions.get(found.action)?;
        let widths = wanted.params.iter().map(|param| self.program.slots.get(param.slot).map(|slot| slot.width));
        let fits = widths.len() == args.len()
            && widths.zip(args).all(|(width, arg)| width.is_none_or(|width| width == arg.width()));
        self.require(fits, Rule::ActionData, || format!("{what}: the arguments {args:?} do not fit {}", wanted.name));
        Some(found)
    }

    fn entry_keys(&mut self, table: &'p Table, at: usize, entry: &Entry) {
        let keys: Vec<_> = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        self.require(keys.len() == entry.keys.len(), Rule::EntryKeys, || {
            format!("entry {at} has {} values for {} keys", entry.keys.len(), keys.len())
        });
        for (key, value) in keys.iter().zip(&entry.keys) {
            self.require(key_fits(key, value), Rule::EntryKeys, || {
                format!("entry {at}: {value} does not fit key {}, {} {}", key.name, key.kind, key.width)
            });
        }
    }

    fn direct_objects(&mut self, table: &Table, seen: &mut HashSet<(bool, u32)>) {
        let program = self.program;
        if let Some(id) = table.counter
            && let Some(counter) = self.get(&program.counters, id)
        {
            let sound = counter.size.is_none() && seen.insert((true, id.as_u32()));
            self.require(sound, Rule::DirectObjects, || {
                format!("the counter {} is an array or another table's", counter.name)
            });
        }
        if let Some(id) = table.meter
            && let Some(meter) = self.get(&program.meters, id)
        {
            let sound = meter.size.is_none() && seen.insert((false, id.as_u32()));
            self.require(sound, Rule::DirectObjects, || {
                format!("the meter {} is an array or another table's", meter.name)
            });
        }
    }
}

/// Whether an entry's value has the key's kind and width, with no bit set that is not compared.
fn key_fits(key: &Key, value: &KeyValue) -> bool {
    let wide = |value: &Bits| value.width() == key.width;
    match (key.kind, value) {
        (MatchKind::Exact | MatchKind::Optional, KeyValue::Exact(value)) => wide(value),
        (MatchKind::Optional, KeyValue::Any) => true,
        (MatchKind::Lpm, KeyValue::Lpm(value, length)) => {
            let behind = key.width.checked_sub(*length);
            wide(value) && behind.is_some_and(|behind| value.resize(behind).is_zero())
        }
        (MatchKind::Ternary, KeyValue::Ternary(value, mask)) => wide(value) && wide(mask) && value.and(mask) == *value,
        (MatchKind::Range, KeyValue::Range(low, high)) => {
            let order = || if key.signed { low.signed_cmp(high) } else { low.unsigned_cmp(high) };
            wide(low) && wide(high) && order().is_le()
        }
        _ => false,
    }
}
