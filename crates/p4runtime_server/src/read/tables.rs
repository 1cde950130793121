//! Reads of tables: entries, default entries, and the counters and meters of entries (specification 9.1.6, 9.1.7).

use std::sync::Arc;

use p4runtime_proto::v1;
use v1::entity::Entity;

use super::{PIECE, PieceSource, ReadPiece, once};
use crate::cow_map::MapCursor;
use crate::schema::{Schema, TableSchema};
use crate::shadow::{ShadowState, decode};
use crate::status::Refusal;
use crate::translate::{counter_data, parse_key};

/// The view of entries that a read requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryView {
    Entry,
    Counter,
    Meter,
}

/// Reads entries, default entries, and direct counters and meters (specification 9.1.6).
pub(super) fn tables(
    schema: Arc<Schema>,
    shadow: Arc<ShadowState>,
    wanted: v1::TableEntry,
    view: EntryView,
) -> Result<PieceSource, Refusal> {
    if wanted.meter_counter_data.is_some() {
        return Err(Refusal::unimplemented("meters do not count colours; leave meter_counter_data unset"));
    }
    let filter = Filter::of(&wanted);
    if wanted.table_id == 0 {
        if filter.is_set() || !wanted.r#match.is_empty() {
            return Err(Refusal::invalid("a read of all tables takes no match, action, priority or metadata"));
        }
    } else {
        let table = schema.table(wanted.table_id)?;
        let about = |refusal: Refusal| refusal.about(&format!("table {}", table.name));
        if wanted.time_since_last_hit.is_some() && (!table.idle_timeout || wanted.is_default_action) {
            return Err(about(Refusal::invalid("its entries do not age; leave time_since_last_hit unset")));
        }
        match view {
            EntryView::Counter if table.counter.is_none() => {
                return Err(about(Refusal::invalid("the table has no direct counter")));
            }
            EntryView::Meter if table.meter.is_none() => {
                return Err(about(Refusal::invalid("the table has no direct meter")));
            }
            _ => {}
        }
        if wanted.is_default_action && (!wanted.r#match.is_empty() || wanted.priority != 0) {
            return Err(about(Refusal::invalid("the default entry has neither match fields nor a priority")));
        }
        if view != EntryView::Entry && wanted.is_default_action {
            return Err(about(Refusal::unimplemented("misses are neither counted nor metered")));
        }
        if !wanted.is_default_action && !wanted.r#match.is_empty() && (wanted.priority != 0 || !table.needs_priority())
        {
            let key = parse_key(table, &wanted).map_err(about)?;
            let found = shadow.entry(table.id, &key.bytes).filter(|entry| filter.passes(entry));
            if found.is_none() && view != EntryView::Entry {
                return Err(about(Refusal::not_found("there is no such entry")));
            }
            let entries = found.into_iter().collect();
            let mut piece = Some(finish(&schema, &wanted, view, entries));
            return Ok(Box::new(move || piece.take()));
        }
    }
    let chosen: Vec<u32> = match wanted.table_id {
        0 => schema.tables.keys().copied().collect(),
        id => vec![id],
    };
    if wanted.is_default_action {
        let defaults = chosen.iter().filter_map(|id| shadow.defaults.get(id)).filter(|entry| filter.passes(entry));
        return Ok(once(defaults.map(|entry| Entity::TableEntry(entry.clone())).collect()));
    }
    // In a table with priorities, a match without a priority selects all priorities.
    let same_match = if wanted.r#match.is_empty() {
        None
    } else {
        let table = schema.table(wanted.table_id)?;
        let key = parse_key(table, &v1::TableEntry { priority: 1, ..wanted.clone() })?;
        Some(crate::translate::print_matches(&table.fields, &key.keys))
    };
    let mut tables = chosen.into_iter().peekable();
    let mut cursor = MapCursor::default();
    Ok(Box::new(move || {
        loop {
            let id = *tables.peek()?;
            let entries = shadow.tables.get(&id).map(|entries| entries.next(&mut cursor, PIECE)).unwrap_or_default();
            if entries.is_empty() {
                tables.next();
                cursor = MapCursor::default();
                continue;
            }
            let entries = entries.into_iter().map(|(_, entry)| decode(entry));
            let entries = entries.filter(|entry| filter.passes(entry));
            let entries = entries.filter(|entry| same_match.as_ref().is_none_or(|wanted| entry.r#match == *wanted));
            return Some(finish(&schema, &wanted, view, entries.collect()));
        }
    }))
}

/// Properties that an entry must have.
struct Filter {
    action: Option<u32>,
    priority: i32,
    controller_metadata: u64,
    metadata: Vec<u8>,
}

#[expect(deprecated, reason = "clients still use controller_metadata")]
impl Filter {
    fn of(wanted: &v1::TableEntry) -> Filter {
        use v1::table_action::Type;
        let action = wanted.action.as_ref().and_then(|action| match &action.r#type {
            Some(Type::Action(action)) => Some(action.action_id),
            _ => None,
        });
        Filter {
            action,
            priority: wanted.priority,
            controller_metadata: wanted.controller_metadata,
            metadata: wanted.metadata.clone(),
        }
    }

    fn is_set(&self) -> bool {
        self.action.is_some() || self.priority != 0 || self.controller_metadata != 0 || !self.metadata.is_empty()
    }

    fn passes(&self, entry: &v1::TableEntry) -> bool {
        let action = Filter::of(entry).action;
        (self.action.is_none() || self.action == action)
            && (self.priority == 0 || self.priority == entry.priority)
            && (self.controller_metadata == 0 || self.controller_metadata == entry.controller_metadata)
            && (self.metadata.is_empty() || self.metadata == entry.metadata)
    }
}

/// Completes entries as requested: counters and times are queried from the switch.
fn finish(
    schema: &Arc<Schema>,
    wanted: &v1::TableEntry,
    view: EntryView,
    mut entries: Vec<v1::TableEntry>,
) -> ReadPiece {
    let (counters, times) = (wanted.counter_data.is_some(), wanted.time_since_last_hit.is_some());
    if wanted.meter_config.is_none() {
        entries.iter_mut().for_each(|entry| entry.meter_config = None);
    }
    let table = entries.first().and_then(|entry| schema.tables.get(&entry.table_id));
    let live = table.is_some_and(|table| (counters && table.counter.is_some()) || (times && table.idle_timeout));
    if !live {
        let known = |entry: v1::TableEntry| schema.tables.get(&entry.table_id).and_then(|it| shaped(it, view, entry));
        return ReadPiece::Ready(entries.into_iter().filter_map(known).collect());
    }
    let schema = schema.clone();
    ReadPiece::Live(Box::new(move |switch, now_ns| {
        let complete = |mut entry: v1::TableEntry| {
            let table = schema.tables.get(&entry.table_id)?;
            let key = parse_key(table, &entry).ok()?;
            // The entry may have been deleted.
            let installed = switch.objects().get(table.ir, &key.keys, key.priority).ok()?;
            if counters && let Some(counter) = table.counter {
                let unit = counter_unit(&schema, table, counter);
                entry.counter_data = Some(counter_data(installed.counter.in_unit(unit)));
            }
            if times && table.idle_timeout {
                let elapsed = now_ns.saturating_sub(installed.last_hit_ns);
                entry.time_since_last_hit = Some(v1::table_entry::IdleTimeout { elapsed_ns: elapsed as i64 });
            }
            shaped(table, view, entry)
        };
        entries.into_iter().filter_map(complete).collect()
    }))
}

fn counter_unit(schema: &Schema, table: &TableSchema, _: u32) -> ir::Unit {
    let counter = schema.program.tables[table.ir].counter;
    counter.map_or(ir::Unit::PacketsAndBytes, |counter| schema.program.counters[counter].unit)
}

fn shaped(table: &TableSchema, view: EntryView, entry: v1::TableEntry) -> Option<Entity> {
    match view {
        EntryView::Entry => Some(Entity::TableEntry(entry)),
        EntryView::Counter => {
            table.counter?;
            let data = entry.counter_data;
            Some(Entity::DirectCounterEntry(v1::DirectCounterEntry { table_entry: Some(key_only(entry)), data }))
        }
        EntryView::Meter => {
            table.meter?;
            let config = entry.meter_config;
            Some(Entity::DirectMeterEntry(v1::DirectMeterEntry {
                table_entry: Some(key_only(entry)),
                config,
                counter_data: None,
            }))
        }
    }
}

/// Reduces an entry to its key.
pub(super) fn key_only(entry: v1::TableEntry) -> v1::TableEntry {
    v1::TableEntry {
        table_id: entry.table_id,
        r#match: entry.r#match,
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..Default::default()
    }
}
