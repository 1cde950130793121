//! What outlives the process: the pipeline that packets run, the one that is saved to be committed later, and what was
//! written to each.
//!
//! ```text
//!   Server ── Changes ──> keeper (a thread) ── one transaction for all that waits ──> Store ── durable ──> acknowledged
//! ```
//!
//! The server says what each write changes as bytes under keys; a [`Store`] keeps these and knows no more of them. Keys
//! are in the order in which their values can be written again: each finds what it refers to.

mod disk;
mod keeper;

use std::collections::BTreeMap;

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::{ForwardingPipelineConfig, Update};

pub use disk::{DiskError, DiskStore};
pub(crate) use keeper::Keeper;

/// Something that keeps bytes under keys, and a pipeline.
pub trait Store: Send {
    /// What was committed last, or nothing if there never was a pipeline.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&self) -> Result<Option<Kept>, StoreError>;

    /// Makes all of these changes, or none. When this returns they survive a loss of power.
    ///
    /// # Errors
    /// If they are not durable. None of them has taken place then.
    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError>;
}

/// Why a store fails.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// What a store has.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The pipeline that packets run.
    pub committed: KeptPipeline,
    /// How many pipelines packets have run in this store, this one included.
    pub generation: u64,
    /// One that was saved and not committed.
    pub saved: Option<KeptPipeline>,
}

/// A pipeline that was kept, and what was written to it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptPipeline {
    /// As it was sent.
    pub config: ForwardingPipelineConfig,
    /// What writes everything again, in this order.
    pub updates: Vec<Update>,
}

/// Changes that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Of the pipeline that packets run. It may become another; a store never comes to be without.
    pub committed: PipelineChanges,
    /// Of the one that is saved and not committed.
    pub saved: PipelineChanges,
}

/// Changes of one pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineChanges {
    /// Another pipeline in its place (an encoded [`ForwardingPipelineConfig`]), or none any more. What was under keys
    /// before goes with the old one.
    pub pipeline: Option<Option<Vec<u8>>>,
    /// Values (encoded [`Update`]s) by key; none for what is deleted.
    pub values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Changes {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    /// Adds what happened after these.
    pub fn extend(&mut self, later: Changes) {
        self.committed.extend(later.committed);
        self.saved.extend(later.saved);
    }
}

impl PipelineChanges {
    /// There is no such pipeline any more.
    pub(crate) fn gone() -> PipelineChanges {
        PipelineChanges { pipeline: Some(None), ..PipelineChanges::default() }
    }

    /// Adds what happened after these.
    pub fn extend(&mut self, later: PipelineChanges) {
        if later.pipeline.is_some() {
            *self = later;
        } else {
            self.values.extend(later.values);
        }
    }
}

impl KeptPipeline {
    /// What these bytes say.
    ///
    /// # Errors
    /// If they are none that a server wrote.
    pub fn decode<'a>(config: &[u8], values: impl Iterator<Item = &'a [u8]>) -> Result<KeptPipeline, StoreError> {
        let damaged = |_| StoreError("what is kept there was not written by this version".to_owned());
        Ok(KeptPipeline {
            config: ForwardingPipelineConfig::decode(config).map_err(damaged)?,
            updates: values.map(Update::decode).collect::<Result<_, _>>().map_err(damaged)?,
        })
    }
}

/// A store that lasts as long as its value.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    generation: u64,
    committed: MemoryPipeline,
    saved: MemoryPipeline,
}

#[derive(Clone, Debug, Default)]
struct MemoryPipeline {
    config: Option<Vec<u8>>,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemoryPipeline {
    fn kept(&self) -> Result<Option<KeptPipeline>, StoreError> {
        let values = self.values.values().map(Vec::as_slice);
        self.config.as_ref().map(|config| KeptPipeline::decode(config, values)).transpose()
    }

    fn change(&mut self, changes: &PipelineChanges) {
        if let Some(config) = &changes.pipeline {
            *self = MemoryPipeline { config: config.clone(), values: BTreeMap::new() };
        }
        for (key, value) in &changes.values {
            match value {
                Some(value) => drop(self.values.insert(key.clone(), value.clone())),
                None => drop(self.values.remove(key)),
            }
        }
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<Option<Kept>, StoreError> {
        let Some(committed) = self.committed.kept()? else { return Ok(None) };
        Ok(Some(Kept { committed, generation: self.generation, saved: self.saved.kept()? }))
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.generation += u64::from(changes.committed.pipeline.is_some());
        self.committed.change(&changes.committed);
        self.saved.change(&changes.saved);
        Ok(())
    }
}
