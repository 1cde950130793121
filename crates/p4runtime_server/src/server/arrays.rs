//! Records the elements of kept arrays, and the counters of entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::Program;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use switch::SwitchControl;
use v1::entity::Entity;

use super::Server;
use crate::array_mirror::{ArrayChunk, ArrayMirror, ENTRY_COUNT, KeptArrays, RestoredArrays};
use crate::caller::Caller;
use crate::entity_key::{EntityKey, has_translated_key, moved_rows};
use crate::read::EntityReader;
use crate::role::RoleAccess;
use crate::schema::Schema;
use crate::store::{Store, StoreError, StoredRows};
use crate::translate::{EntityTranslator, Overlay, parse_key};

/// What a write to the running pipeline may have changed: chunks of arrays, and keys of entries with counters.
#[derive(Debug)]
pub(crate) struct TouchedElements {
    pub(crate) program: Arc<Program>,
    pub(crate) chunks: Vec<ArrayChunk>,
    pub(crate) entries: Vec<v1::TableEntry>,
}

/// Returns the key of the row with the counter of an entry, and the entry's place in the shadow. `None` if the table
/// has no direct counter or the key is invalid.
fn row_key(schema: &Schema, entry: &v1::TableEntry) -> Option<(Vec<u8>, EntityKey)> {
    let table = schema.tables.get(&entry.table_id).filter(|table| table.counter.is_some())?;
    let key = parse_key(table, entry).ok()?;
    let entity = EntityKey::Entry(table.id, key.bytes);
    Some(([&[ENTRY_COUNT][..], &entity.key()].concat(), entity))
}

impl Server {
    /// Creates the mirror of a program, if arrays are kept.
    pub(super) fn new_mirror(&self, program: &Arc<Program>) -> Option<ArrayMirror> {
        let kept = self.settings.kept_arrays;
        (kept != KeptArrays::default()).then(|| ArrayMirror::new(program, kept))
    }

    /// Restores the elements of kept arrays and the counters of entries from their stored rows, after
    /// [`Server::with_restored`].
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn restore_arrays(
        &mut self,
        store: &dyn Store,
        switch: &mut dyn SwitchControl,
    ) -> Result<RestoredArrays, StoreError> {
        let mirror = self.committed.as_ref().and_then(|state| self.new_mirror(state.pipeline.program()));
        let Some(mut mirror) = mirror else { return Ok(RestoredArrays::default()) };
        let (mut report, mut gone) = (RestoredArrays::default(), std::mem::take(&mut self.gone_arrays));
        let mut moved = Vec::new();
        store.visit(StoredRows::Arrays, &mut |key, row| {
            if key.first() != Some(&ENTRY_COUNT) {
                mirror.restore_row(key, row, switch.objects_mut(), &mut report, &mut gone);
            } else if mirror.keeps_entry_counts() {
                // What is stored stays known, so that a row without its entry is deleted.
                mirror.update_row(key.to_vec(), Some(row.to_vec()), &mut Default::default());
                match self.restore_entry_count(key, row, switch) {
                    Ok(new) => {
                        report.elements += 1;
                        if new != key {
                            moved.push((key.to_vec(), new, row.to_vec()));
                        }
                    }
                    Err(lost) => {
                        report.lose_array(lost);
                        mirror.update_row(key.to_vec(), None, &mut gone);
                    }
                }
            }
        })?;
        for (key, row) in moved_rows(moved) {
            mirror.update_row(key, row, &mut gone);
        }
        (self.mirror, self.gone_arrays) = (Some(mirror), gone);
        Ok(report)
    }

    /// Writes the stored counter of an entry. Returns the key that its row has now; the error says what is lost.
    fn restore_entry_count(&self, key: &[u8], row: &[u8], switch: &mut dyn SwitchControl) -> Result<Vec<u8>, String> {
        let state = self.committed.as_ref().ok_or_else(|| "counters of entries".to_owned())?;
        let (schema, shadow) = (&*state.pipeline.schema, &state.shadow);
        let damaged = || format!("the damaged counter of {}", EntityKey::describe(schema, &key[1..]));
        let counter = v1::DirectCounterEntry::decode(row).map_err(|_| damaged())?;
        let place = counter.table_entry.as_ref().and_then(|entry| row_key(schema, entry)).map(|(place, _)| place);
        let id = counter.table_entry.as_ref().map_or(0, |entry| entry.table_id);
        // Numbers of translated strings are assigned anew at each start.
        let is_renumbered = has_translated_key(schema, id);
        let place = place.unwrap_or_else(|| key.to_vec());
        if place != key && !is_renumbered {
            return Err(damaged());
        }
        let table = schema.tables.get(&id).map_or_else(|| format!("{id:#010x}"), |table| table.name.clone());
        let entity = Some(v1::Entity { entity: Some(Entity::DirectCounterEntry(counter)) });
        let update = v1::Update { r#type: v1::update::Type::Modify.into(), entity };
        let mut translator =
            EntityTranslator { schema, shadow, ports: &self.settings.ports, overlay: Overlay::default() };
        let planned = translator.update(&update).ok();
        let written = planned.and_then(|planned| planned.op.run(switch).ok());
        written.map(|_| place).ok_or_else(|| format!("counters of entries of table {table}"))
    }

    /// Returns the kept arrays' program and all of their chunks; `None` if nothing is kept.
    pub(crate) fn kept_chunks(&self) -> Option<(Arc<Program>, Vec<ArrayChunk>)> {
        let mirror = self.mirror.as_ref()?;
        Some((mirror.program().clone(), mirror.chunks()))
    }

    /// Returns a read of the counters of these entries of the running pipeline, or of all with `None`. Returns `None`
    /// if they are not kept.
    pub(crate) fn read_entry_counts(&self, entries: Option<Vec<v1::TableEntry>>) -> Option<EntityReader> {
        self.mirror.as_ref().filter(|mirror| mirror.keeps_entry_counts())?;
        let state = self.committed.as_ref()?;
        let schema = state.pipeline.schema.clone();
        let wanted = entries.unwrap_or_else(|| vec![v1::TableEntry::default()]).into_iter().map(|entry| {
            let wanted = v1::DirectCounterEntry { table_entry: Some(entry), data: None };
            v1::Entity { entity: Some(Entity::DirectCounterEntry(wanted)) }
        });
        let readable = Caller::Anyone.readable(&schema);
        Some(EntityReader::new(schema, state.shadow.clone(), RoleAccess::default(), readable, wanted.collect()))
    }

    /// Returns what a write to the running pipeline may change.
    pub(crate) fn touched_elements(&self, request: &v1::WriteRequest) -> Option<TouchedElements> {
        let (Some(mirror), Some(state), None) = (&self.mirror, &self.committed, &self.saved) else { return None };
        let schema = &*state.pipeline.schema;
        let (mut chunks, mut entries, mut whole) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for update in &request.updates {
            let Some(entity) = update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) else { continue };
            // Many updates may set one array as a whole.
            let array = match entity {
                Entity::RegisterEntry(entry) if entry.index.is_none() => Some((true, entry.register_id)),
                Entity::CounterEntry(entry) if entry.index.is_none() => Some((false, entry.counter_id)),
                _ => None,
            };
            if array.is_some_and(|array| !whole.insert(array)) {
                continue;
            }
            for chunk in mirror.touched(entity, schema) {
                chunks.insert(chunk.place(), chunk);
            }
            let (entry, is_counted) = match entity {
                Entity::TableEntry(entry) => (Some(entry), entry.counter_data.is_some()),
                Entity::DirectCounterEntry(counter) => (counter.table_entry.as_ref(), true),
                _ => (None, false),
            };
            // A deleted or new entry has no count any more.
            if mirror.keeps_entry_counts()
                && let Some(entry) = entry
                && let Some((key, _)) = row_key(schema, entry)
                && (is_counted || mirror.has_row(&key))
            {
                let v1::TableEntry { table_id, r#match, priority, .. } = entry.clone();
                entries.insert(key, v1::TableEntry { table_id, r#match, priority, ..Default::default() });
            }
        }
        let (chunks, entries) = (chunks.into_values().collect(), entries.into_values().collect());
        Some(TouchedElements { program: mirror.program().clone(), chunks, entries })
    }

    /// Records the content of chunks of `program`, for the store.
    pub(crate) fn record_chunks(&mut self, program: &Arc<Program>, content: Vec<(ArrayChunk, Vec<u64>)>) {
        let (Some(mirror), Some(changes)) = (&mut self.mirror, &mut self.changes) else { return };
        if !Arc::ptr_eq(mirror.program(), program) {
            return;
        }
        for (chunk, words) in content {
            mirror.update(chunk, &words, &mut changes.committed.arrays);
        }
    }

    /// Records counters of entries of `program`, as they were read in this turn. Entries that are gone have none.
    pub(crate) fn record_entry_counts(&mut self, program: &Arc<Program>, counters: Vec<Entity>) {
        let (Some(mirror), Some(changes), Some(state)) = (&mut self.mirror, &mut self.changes, &self.committed) else {
            return;
        };
        if !Arc::ptr_eq(mirror.program(), program) {
            return;
        }
        for entity in counters {
            let Entity::DirectCounterEntry(counter) = entity else { continue };
            let entry = counter.table_entry.as_ref();
            let Some((key, entity)) = entry.and_then(|entry| row_key(&state.pipeline.schema, entry)) else { continue };
            let EntityKey::Entry(table, place) = &entity else { continue };
            let is_counted = counter.data.is_some_and(|data| data != v1::CounterData::default());
            let is_there = is_counted && state.shadow.entry(*table, place).is_some();
            mirror.update_row(key, is_there.then(|| counter.encode_to_vec()), &mut changes.committed.arrays);
        }
    }
}
