//! Prints actions, tables and stateful objects.

use std::fmt;

use super::{Out, Printer, separated};
use crate::text::write_name;
use crate::*;

macro_rules! names_of {
    ($($method:ident $id:ident $map:ident;)*) => {
        impl Printer<'_> {$(
            pub(super) fn $method(&self, out: Out<'_>, id: $id) -> fmt::Result {
                let name = self.program.$map.get(id).map(|object| object.name.as_str());
                self.entity(out, id, name, |names| &names.$map)
            }
        )*}
    };
}

names_of! {
    action_name ActionId actions;
    table_name TableId tables;
    register_name RegisterId registers;
    counter_name CounterId counters;
    meter_name MeterId meters;
    profile_name ProfileId profiles;
    value_set_name ValueSetId value_sets;
    digest_name DigestId digests;
}

/// Prints the match of an entry on one key element.
pub(super) fn key_value(out: Out<'_>, value: &KeyValue) -> fmt::Result {
    match value {
        KeyValue::Exact(value) => write!(out, "{value}"),
        KeyValue::Lpm(value, length) => write!(out, "{value}/{length}"),
        KeyValue::Ternary(value, mask) => write!(out, "{value} &&& {mask}"),
        KeyValue::Range(low, high) => write!(out, "{low} .. {high}"),
        KeyValue::Any => out.write_char('_'),
    }
}

impl Printer<'_> {
    pub(super) fn objects(&self, out: Out<'_>) -> fmt::Result {
        let program = self.program;
        for (at, (id, register)) in program.registers.iter().enumerate() {
            out.write_str(if at == 0 { "\nregister " } else { "register " })?;
            self.register_name(out, id)?;
            write!(out, ": {} size {}", register.width, register.size)?;
            self.annotations(out, &register.annotations, " ")?;
            out.write_char('\n')?;
        }
        for (at, (id, counter)) in program.counters.iter().enumerate() {
            out.write_str(if at == 0 { "\ncounter " } else { "counter " })?;
            self.counter_name(out, id)?;
            self.counted(out, counter.unit, counter.size, &counter.annotations)?;
        }
        for (at, (id, meter)) in program.meters.iter().enumerate() {
            out.write_str(if at == 0 { "\nmeter " } else { "meter " })?;
            self.meter_name(out, id)?;
            self.counted(out, meter.unit, meter.size, &meter.annotations)?;
        }
        for (at, (id, profile)) in program.profiles.iter().enumerate() {
            out.write_str(if at == 0 { "\nprofile " } else { "profile " })?;
            self.profile_name(out, id)?;
            write!(out, ": size {} hash {}", profile.size, profile.hash_width)?;
            if let Some(algorithm) = profile.selector {
                write!(out, " selector {algorithm}")?;
            }
            self.annotations(out, &profile.annotations, " ")?;
            out.write_char('\n')?;
        }
        for (at, (id, set)) in program.value_sets.iter().enumerate() {
            out.write_str(if at == 0 { "\nvalue_set " } else { "value_set " })?;
            self.value_set_name(out, id)?;
            write!(out, ": size {} {{", set.size)?;
            for (at, (name, width, kind)) in set.fields.iter().enumerate() {
                out.write_str(if at == 0 { " " } else { "  " })?;
                write_name(out, name)?;
                write!(out, ": {kind} {width}")?;
            }
            out.write_str(" }")?;
            self.annotations(out, &set.annotations, " ")?;
            out.write_char('\n')?;
        }
        for (at, (id, digest)) in program.digests.iter().enumerate() {
            out.write_str(if at == 0 { "\ndigest " } else { "digest " })?;
            self.digest_name(out, id)?;
            out.write_str(" {")?;
            for (at, (name, width)) in digest.fields.iter().enumerate() {
                out.write_str(if at == 0 { " " } else { "  " })?;
                write_name(out, name)?;
                write!(out, ": {width}")?;
            }
            out.write_str(" }\n")?;
        }
        for (at, (id, action)) in program.actions.iter().enumerate() {
            out.write_str(if at == 0 { "\n" } else { "" })?;
            self.action(out, id, action)?;
        }
        for (id, table) in &program.tables {
            out.write_char('\n')?;
            self.table(out, id, table)?;
        }
        Ok(())
    }

    fn counted(&self, out: Out<'_>, unit: Unit, size: Option<u64>, annotations: &[Annotation]) -> fmt::Result {
        write!(out, ": {unit} ")?;
        match size {
            Some(size) => write!(out, "size {size}")?,
            None => out.write_str("direct")?,
        }
        self.annotations(out, annotations, " ")?;
        out.write_char('\n')
    }

    fn action(&self, out: Out<'_>, id: ActionId, action: &Action) -> fmt::Result {
        out.write_str("action ")?;
        self.action_name(out, id)?;
        out.write_char('(')?;
        separated(out, &action.params, ", ", |out, param| {
            write_name(out, &param.name)?;
            out.write_str(": ")?;
            self.slot(out, param.slot)?;
            self.annotations(out, &param.annotations, " ")
        })?;
        out.write_str(") body ")?;
        self.body_name(out, action.body)?;
        self.annotations(out, &action.annotations, " ")?;
        self.loc(out, action.loc)?;
        out.write_char('\n')
    }

    fn table(&self, out: Out<'_>, id: TableId, table: &Table) -> fmt::Result {
        out.write_str("table ")?;
        self.table_name(out, id)?;
        out.write_str(" {")?;
        self.loc(out, table.loc)?;
        self.annotations(out, &table.annotations, "\n  ")?;
        for key in &table.keys {
            out.write_str("\n  key ")?;
            write_name(out, &key.name)?;
            write!(out, ": {} {}{} = ", key.kind, key.width, if key.signed { " signed" } else { "" })?;
            self.expr(out, &key.expr)?;
            self.annotations(out, &key.annotations, " ")?;
        }
        for action in &table.actions {
            out.write_str("\n  action ")?;
            self.action_name(out, action.action)?;
            out.write_str(if action.default_only { " default_only" } else { "" })?;
            out.write_str(if action.table_only { " table_only" } else { "" })?;
        }
        out.write_str("\n  default ")?;
        self.call(out, table, table.default_action.0, &table.default_action.1)?;
        out.write_str(if table.const_default { " const" } else { "" })?;
        if let Some(size) = table.size {
            write!(out, "\n  size {size}")?;
        }
        if let Some(profile) = table.profile {
            out.write_str("\n  profile ")?;
            self.profile_name(out, profile)?;
        }
        if let Some(counter) = table.counter {
            out.write_str("\n  counter ")?;
            self.counter_name(out, counter)?;
        }
        if let Some(meter) = table.meter {
            out.write_str("\n  meter ")?;
            self.meter_name(out, meter)?;
        }
        out.write_str(if table.idle_timeout { "\n  idle_timeout" } else { "" })?;
        out.write_str(if table.largest_priority_wins { "\n  largest_priority_wins" } else { "" })?;
        out.write_str(if table.const_entries { "\n  const_entries" } else { "" })?;
        for entry in &table.entries {
            out.write_str("\n  entry ")?;
            separated(out, &entry.keys, ", ", key_value)?;
            if entry.priority != 0 {
                write!(out, " priority {}", entry.priority)?;
            }
            out.write_str(" -> ")?;
            self.call(out, table, entry.action, &entry.args)?;
            out.write_str(if entry.constant { " const" } else { "" })?;
            self.loc(out, entry.loc)?;
        }
        out.write_str("\n}\n")
    }

    /// Prints one of a table's actions with arguments: by name if it is the first of that name among the table's
    /// actions, else by its index there (`#2`).
    fn call(&self, out: Out<'_>, table: &Table, at: u32, args: &[bits::Bits]) -> fmt::Result {
        let name = |action: &TableAction| self.program.actions.get(action.action).map(|action| action.name.as_str());
        let wanted = table.actions.get(at as usize).and_then(name);
        let first = table.actions.iter().position(|action| wanted.is_some() && name(action) == wanted);
        match wanted {
            Some(wanted) if first == Some(at as usize) => write_name(out, wanted)?,
            _ => write!(out, "#{at}")?,
        }
        out.write_char('(')?;
        separated(out, args, ", ", |out, arg| write!(out, "{arg}"))?;
        out.write_char(')')
    }
}
