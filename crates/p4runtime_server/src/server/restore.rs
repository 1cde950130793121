//! Writes contents again: stored rows to a switch that was just built, and those of one pipeline to another.

use std::collections::BTreeSet;

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use switch::SwitchControl;

use super::{PipelineState, Server};
use crate::entity_key::EntityKey;
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
        let (shadow, restored) = restore(&pipeline, &self.settings.ports, store, StoredRows::Committed, switch)?;
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
        let (shadow, restored) = restore(&pipeline, &self.settings.ports, store, StoredRows::Saved, &mut *switch)?;
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
}

impl<'a> ContentWriter<'a> {
    fn new(pipeline: &'a Pipeline, ports: &'a BTreeSet<u32>, switch: &'a mut dyn SwitchControl) -> Self {
        let shadow = ShadowState::of(&pipeline.schema, switch);
        ContentWriter { pipeline, ports, switch, shadow, outcome: RestoredUpdates::default() }
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
            Some(update) => self.run(&update).map_err(|refusal| refusal.message),
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

/// Restores the stored contents of a switch that was just built, one row at a time.
fn restore(
    pipeline: &Pipeline,
    ports: &BTreeSet<u32>,
    store: &dyn Store,
    rows: StoredRows,
    switch: &mut dyn SwitchControl,
) -> Result<(ShadowState, RestoredUpdates), StoreError> {
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
    Ok((writer.shadow, writer.outcome))
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
