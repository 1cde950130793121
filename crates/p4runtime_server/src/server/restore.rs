//! Writes contents again: stored rows to a switch that was just built, and those of one pipeline to another.

use std::collections::{BTreeMap, BTreeSet};

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use switch::SwitchControl;

use super::{PipelineState, Server};
use crate::entity_key::{EntityKey, moved_rows};
use crate::pipeline::Pipeline;
use crate::shadow::{ShadowChange, ShadowState};
use crate::status::Refusal;
use crate::store::{Store, StoreError, StoredRows};
use crate::translate::{EntityTranslator, Overlay};

impl Server {
    /// Restores a running pipeline: applies its stored rows to `switch`, which was just built for it. Also returns the
    /// number of rows, and those that no longer fit or are damaged; the others are restored.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn with_restored(
        mut self,
        pipeline: Pipeline,
        store: &dyn Store,
        switch: &mut dyn SwitchControl,
    ) -> Result<(Server, RestoredUpdates), StoreError> {
        let (shadow, restored, moved) = restore(&pipeline, &self.settings.ports, store, StoredRows::Committed, switch)?;
        self.moved_rows.committed.values = moved;
        self.committed = Some(PipelineState::new(pipeline, shadow));
        Ok((self, restored))
    }

    /// Restores a pipeline that was saved and not committed. `switch` will run it after the commit.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn with_saved(
        mut self,
        pipeline: Pipeline,
        store: &dyn Store,
        mut switch: Box<dyn SwitchControl>,
    ) -> Result<(Server, RestoredUpdates), StoreError> {
        let (shadow, restored, moved) =
            restore(&pipeline, &self.settings.ports, store, StoredRows::Saved, &mut *switch)?;
        self.moved_rows.saved.values = moved;
        self.saved = Some((PipelineState::new(pipeline, shadow), switch));
        Ok((self, restored))
    }
}

/// The outcome of writing contents again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredUpdates {
    /// Number of updates that were written.
    pub written: usize,
    /// Number of updates that could not be written.
    pub lost: usize,
    /// Messages about the first of these, each with the name of its entity.
    pub messages: Vec<String>,
}

impl RestoredUpdates {
    /// Maximum number of messages.
    const MESSAGES: usize = 8;

    fn lose(&mut self, message: impl FnOnce() -> String) {
        self.lost += 1;
        if self.messages.len() < RestoredUpdates::MESSAGES {
            self.messages.push(message());
        }
    }
}

/// Writes contents to a switch that was just built.
struct ContentWriter<'a> {
    pipeline: &'a Pipeline,
    ports: &'a BTreeSet<u32>,
    switch: &'a mut dyn SwitchControl,
    shadow: ShadowState,
    outcome: RestoredUpdates,
    /// Rows that have another key now: old key, new key, row.
    moved: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
}

impl<'a> ContentWriter<'a> {
    fn new(pipeline: &'a Pipeline, ports: &'a BTreeSet<u32>, switch: &'a mut dyn SwitchControl) -> Self {
        let shadow = ShadowState::of(&pipeline.schema, switch);
        ContentWriter { pipeline, ports, switch, shadow, outcome: RestoredUpdates::default(), moved: Vec::new() }
    }

    /// Applies an update to the switch. Returns the change of the shadow.
    fn run(&mut self, update: &v1::Update) -> Result<ShadowChange, Refusal> {
        let (schema, ports, shadow) = (&*self.pipeline.schema, self.ports, &self.shadow);
        let mut translator = EntityTranslator { schema, shadow, ports, overlay: Overlay::default() };
        let planned = translator.update(update)?;
        match planned.op.run(self.switch) {
            Ok(_) => Ok(planned.change),
            // The program's own entries exist already, and may have been modified.
            Err(engine::EntryError::Duplicate) => {
                let again = v1::Update { r#type: v1::update::Type::Modify.into(), ..update.clone() };
                let planned = translator.update(&again)?;
                let run = planned.op.run(self.switch);
                run.map(|_| planned.change).map_err(|error| Refusal::from_engine_error(&error, &planned.subject))
            }
            Err(error) => Err(Refusal::from_engine_error(&error, &planned.subject)),
        }
    }

    /// Applies an update to the switch and to the shadow.
    fn write(&mut self, update: &v1::Update) {
        match self.run(update) {
            Ok(change) => {
                self.shadow.apply(change);
                self.outcome.written += 1;
            }
            Err(refusal) => self.outcome.lose(|| refusal.message),
        }
    }

    /// Applies a stored row. A row of another entity than its key says is damaged.
    fn write_row(&mut self, key: &[u8], value: &[u8]) {
        let pipeline = self.pipeline;
        let is_of_key = |update: &v1::Update| EntityKey::is_of(&pipeline.schema, update, key);
        let written = match v1::Update::decode(value).ok().filter(is_of_key) {
            Some(update) => {
                let run = self.run(&update);
                if let Some(new) =
                    EntityKey::renumbered(&pipeline.schema, &update).filter(|new| run.is_ok() && new != key)
                {
                    self.moved.push((key.to_vec(), new, value.to_vec()));
                }
                run.map_err(|refusal| refusal.message)
            }
            None => Err("the stored row is damaged".to_owned()),
        };
        match written {
            Ok(change) => {
                self.shadow.apply(change);
                self.outcome.written += 1;
            }
            Err(why) => {
                self.outcome.lose(|| format!("{}: {why}", EntityKey::describe(&pipeline.schema, key)));
            }
        }
    }
}

/// Changes of stored rows, by key. `None` deletes a row.
type RowChanges = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Restores the stored contents of a switch that was just built, one row at a time.
fn restore(
    pipeline: &Pipeline,
    ports: &BTreeSet<u32>,
    store: &dyn Store,
    rows: StoredRows,
    switch: &mut dyn SwitchControl,
) -> Result<(ShadowState, RestoredUpdates, RowChanges), StoreError> {
    let mut writer = ContentWriter::new(pipeline, ports, switch);
    // The program's own entries that were deleted are not among the rows.
    let mut own = writer.shadow.replay();
    own.retain(|update| matches!(entity_of(update), Some(v1::entity::Entity::TableEntry(it)) if !it.is_default_action));
    for mut update in own {
        update.r#type = v1::update::Type::Delete.into();
        writer.write(&update);
    }
    writer.outcome.written = 0;
    store.visit(rows, &mut |key, value| writer.write_row(key, value))?;
    Ok((writer.shadow, writer.outcome, moved_rows(writer.moved)))
}

fn entity_of(update: &v1::Update) -> Option<&v1::entity::Entity> {
    update.entity.as_ref()?.entity.as_ref()
}

/// Writes the contents of one pipeline to a switch that runs another.
///
/// # Errors
/// `INVALID_ARGUMENT`, naming the first update that does not fit.
pub(crate) fn reconcile(
    pipeline: &Pipeline,
    ports: &BTreeSet<u32>,
    updates: &[v1::Update],
    switch: &mut dyn SwitchControl,
) -> Result<ShadowState, Refusal> {
    let mut writer = ContentWriter::new(pipeline, ports, switch);
    updates.iter().for_each(|update| writer.write(update));
    match (&writer.outcome.messages[..], writer.outcome.lost) {
        ([], _) => Ok(writer.shadow),
        ([first, ..], lost) => Err(Refusal::invalid(format!(
            "{lost} of {} entities do not fit the new program; the first: {first}",
            updates.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use compiler::Source;
    use v1model::{Config, Switch, V1Model};

    use super::*;
    use crate::key::EntryKey;
    use crate::server::Settings;
    use crate::store::{MemoryStore, PipelineChanges, StoreChanges};

    const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
@p4runtime_translation("names", string)
type bit<16> name_t;
struct H {}
struct M { name_t name; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action a(bit<9> port) { s.egress_spec = port; }
    table t { key = { m.name : exact; } actions = { a; } }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

    /// Names `b` and `c` had the numbers 2 and 3 when they were stored, since `a` had 1. Without `a`, they get 1 and 2.
    #[test]
    fn rows_of_renumbered_strings_are_moved_to_their_new_keys() {
        let compiled = compiler::expect_program(&Source::without_files("names.p4", PROGRAM), &V1Model);
        let (program, info) = (Arc::new(compiled.ir), compiled.p4info);
        let table = info.tables[0].preamble.as_ref().expect("it has an id").id;
        let action_id = info.tables[0].action_refs[0].id;
        let key = |number: u8| EntityKey::Entry(table, EntryKey::from(&[0, number, 0, 0, 0, 0][..])).key();
        let row = |name: &str| {
            let exact = v1::field_match::Exact { value: name.as_bytes().to_vec() };
            let field_match_type = Some(v1::field_match::FieldMatchType::Exact(exact));
            let param = v1::action::Param { param_id: 1, value: vec![1] };
            let action = v1::Action { action_id, params: vec![param] };
            let entry = v1::TableEntry {
                table_id: table,
                r#match: vec![v1::FieldMatch { field_id: 1, field_match_type }],
                action: Some(v1::TableAction { r#type: Some(v1::table_action::Type::Action(action)) }),
                ..Default::default()
            };
            let entity = Some(v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) });
            v1::Update { r#type: v1::update::Type::Insert.into(), entity }.encode_to_vec()
        };
        let values = [(key(2), Some(row("b"))), (key(3), Some(row("c")))].into();
        let committed = PipelineChanges { pipeline: Some(Some(Vec::new())), values, ..Default::default() };
        let mut store = MemoryStore::default();
        store.commit(&StoreChanges { committed, ..Default::default() }).expect("memory can be written");
        let restart = |store: &MemoryStore| {
            let mut switch = Switch::new(program.clone(), Config::with_ports(2)).expect("the switch runs it");
            let pipeline = Pipeline::new(program.clone(), info.clone(), PROGRAM.into());
            let server = Server::new(Settings::new(&V1Model, [0, 1], None));
            let (mut server, restored) = server.with_restored(pipeline, store, &mut switch).expect("it can be read");
            assert_eq!((restored.written, restored.messages), (2, Vec::new()));
            server.record_changes();
            server.take_changes()
        };
        let moved = restart(&store);
        let expected = [(key(1), Some(row("b"))), (key(2), Some(row("c"))), (key(3), None)];
        assert_eq!(moved.committed.values, expected.into());
        store.commit(&moved).expect("memory can be written");
        assert!(restart(&store).is_empty(), "they have these numbers again");
    }
}
