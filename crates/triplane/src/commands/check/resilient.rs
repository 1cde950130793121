//! Lists the state of a program that survives the switch: its groups, and their arrays and tables.

use std::fmt::Write;
use std::num::NonZeroU32;

use ir::{
    NumberRange, Program, ReplicationMode, ResilientGroup, ResilientTable, RowOrigin, SnapshotSettings, StaleAction,
};
use serde_json::{Value, json};

use crate::output::grouped;

/// Returns the groups of a valid program.
fn groups(program: &Program) -> Vec<ResilientGroup> {
    program.resilient_groups().expect("a valid program has valid annotations")
}

/// Returns a group's maximum number of rows: that of its tables, or of the numbers of its pool.
fn rows(program: &Program, group: &ResilientGroup, all: &[ResilientGroup]) -> u64 {
    let sizes = group.tables.iter().map(|table| program.tables[table.table].size);
    let places = sizes.min().map_or(group.rows, |size| size.unwrap_or(ir::DEFAULT_TABLE_ROWS));
    match group.origin {
        RowOrigin::Number(NumberRange { first, last, is_shared: false }) => {
            places.min(last.saturating_sub(first).saturating_add(1))
        }
        RowOrigin::Reverse(of) => places.min(rows(program, &all[of], all)),
        _ => places,
    }
}

fn bytes(widths: impl IntoIterator<Item = u32>) -> u64 {
    widths.into_iter().map(|width| u64::from(width.div_ceil(8))).sum()
}

/// Returns the lengths of a key and of a row's values, in bytes.
fn lengths(program: &Program, group: &ResilientGroup) -> (u64, u64) {
    match group.tables.first() {
        Some(table) => (bytes(table.key_widths(program)), bytes(table.data_widths(program))),
        None => (4, group.row_bytes(program)),
    }
}

/// Describes the event at which a group's changes are replicated.
fn mode(program: &Program, group: &ResilientGroup) -> String {
    let ReplicationMode::Snapshots(settings) = group.mode else {
        let is_table = !group.tables.is_empty();
        return if is_table { "the stores create entries" } else { "each write is replicated" }.to_owned();
    };
    let stale = match (settings.bound_ns, settings.when_stale) {
        (None, _) => "of any age".to_owned(),
        (Some(bound_ns), StaleAction::Drop) => {
            format!("stale after {}: packets that use the row are dropped", time(bound_ns))
        }
        (Some(bound_ns), StaleAction::Flag(flag)) => {
            format!("stale after {}: `{}` is 1", time(bound_ns), program.registers[flag].name)
        }
    };
    let rate = grouped(bytes_per_second(program, group, settings));
    format!("a snapshot every {}, up to {rate} bytes/s of values per row; {stale}", time(settings.every_ns))
}

/// Returns a time as a whole number, in the largest unit that gives one.
fn time(ns: u64) -> String {
    let units: [(u64, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let unit = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    unit.map(|(unit, name)| format!("{} {name}", ns / unit)).unwrap_or_default()
}

/// Returns the bytes a second of the snapshots of one row, if packets change all of its pages in each interval.
fn bytes_per_second(program: &Program, group: &ResilientGroup, settings: SnapshotSettings) -> u64 {
    let rate = u128::from(group.row_bytes(program)) * 1_000_000_000 / u128::from(settings.every_ns);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Describes the end of rows that packets do not use, if they have one.
fn aging(group: &ResilientGroup) -> String {
    let aging =
        |ms: NonZeroU32| format!("; a row is removed after {} without use", time(u64::from(ms.get()) * 1_000_000));
    group.idle_ms.map(aging).unwrap_or_default()
}

/// Describes the outcome of a miss if the row does not exist.
fn miss(group: &ResilientGroup, table: &ResilientTable, all: &[ResilientGroup]) -> String {
    match (&group.origin, table.makes_rows) {
        (RowOrigin::Number(NumberRange { first, last, is_shared: false }), true) => {
            format!("a miss makes the row, with a number of the pool {first}-{last} that no other row has")
        }
        (RowOrigin::Number(NumberRange { first, last, is_shared: true }), true) => {
            format!("a miss makes the row, with any number of {first}-{last}")
        }
        (RowOrigin::Added, true) => "a miss makes the row".to_owned(),
        (RowOrigin::Reverse(of), _) => {
            format!("a miss creates no row: the rows are those of \"{}\", looked up by number", all[*of].name)
        }
        _ => "a miss makes no row: other tables of the group do".to_owned(),
    }
}

/// Returns one line for each group, and one for each array or table of it.
pub fn to_text(program: &Program) -> String {
    let all = groups(program);
    let mut text = String::new();
    for group in &all {
        let (key, values) = lengths(program, group);
        let key = match group.tables.is_empty() {
            true => "an index as its key".to_owned(),
            false => format!("a key of {key} bytes"),
        };
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "resilient group \"{}\": at most {} rows, each with {key} and {values} bytes of values; {}{}",
            group.name,
            grouped(rows(program, group, &all)),
            mode(program, group),
            aging(group)
        );
        for register in group.registers.iter().map(|register| &program.registers[*register]) {
            _ = writeln!(
                text,
                "  register {}: bit<{}>; a row that was never written is 0",
                register.name, register.width
            );
        }
        for table in &group.tables {
            let (name, action) = (&program.tables[table.table].name, table.entry_action(program));
            let (action, miss) = (&program.actions[action].name, miss(group, table, &all));
            _ = writeln!(text, "  table {name}: entries with {action}; {miss}");
        }
    }
    text
}

/// Returns the groups as JSON: an empty list for a program without resilient state.
pub fn to_json(program: &Program) -> Value {
    let all = groups(program);
    let group = |group: &ResilientGroup| {
        let (key_bytes, value_bytes) = lengths(program, group);
        let registers = group.registers.iter().map(|register| &program.registers[*register]);
        let table = |table: &ResilientTable| {
            json!({
                "name": program.tables[table.table].name,
                "action": program.actions[table.entry_action(program)].name,
                "makes_rows": table.makes_rows,
                "miss": miss(group, table, &all),
            })
        };
        let (mode, settings) = match group.mode {
            ReplicationMode::EveryWrite => ("every_write", None),
            ReplicationMode::Snapshots(settings) => ("snapshots", Some(settings)),
        };
        let stale = settings.map(|settings| match settings.when_stale {
            StaleAction::Drop => "drop",
            StaleAction::Flag(flag) => &program.registers[flag].name,
        });
        let (numbers, is_shared, reverse_of) = match group.origin {
            RowOrigin::Number(NumberRange { first, last, is_shared }) => (Some([first, last]), Some(is_shared), None),
            RowOrigin::Reverse(of) => (None, None, Some(&all[of].name)),
            RowOrigin::Start | RowOrigin::Added => (None, None, None),
        };
        json!({
            "group": group.name,
            "rows": rows(program, group, &all),
            "key_bytes": key_bytes,
            "value_bytes": value_bytes,
            "mode": mode,
            "every_ns": settings.map(|settings| settings.every_ns),
            "bound_ns": settings.and_then(|settings| settings.bound_ns),
            "stale": stale,
            "bytes_per_second": settings.map(|settings| bytes_per_second(program, group, settings)),
            "idle_ms": group.idle_ms,
            "numbers": numbers,
            "numbers_are_shared": is_shared,
            "reverse_of": reverse_of,
            "registers": registers.map(|it| json!({ "name": it.name, "bits": it.width })).collect::<Vec<_>>(),
            "tables": group.tables.iter().map(table).collect::<Vec<_>>(),
        })
    };
    Value::Array(all.iter().map(group).collect())
}
