//! Defines the persistent state: the running pipeline, the saved one that is not committed, and the contents of both.
//!
//! ```text
//!   Server ── StoreChanges ──> writer thread ── one transaction for all pending ──> Store ── durable ──> acknowledged
//! ```
//!
//! The server translates each write to bytes under keys. A [`Store`] keeps these and does not interpret them. In the
//! order of the keys, each value comes after those that it refers to, so values can be written again in that order.

mod disk;
mod writer;

use std::collections::BTreeMap;

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::{ForwardingPipelineConfig, Update};

pub use disk::{DiskError, DiskStore};
pub(crate) use writer::StoreWriter;

/// A store of bytes by key, and of pipelines.
pub trait Store: Send {
    /// Returns the last committed state, or `None` if it has no pipeline.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&self) -> Result<Option<StoredState>, StoreError>;

    /// Applies all changes or none. When this returns they survive a power failure.
    ///
    /// # Errors
    /// If they are not durable. None of them has been applied then.
    fn commit(&mut self, changes: &StoreChanges) -> Result<(), StoreError>;
}

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// The contents of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredState {
    /// The running pipeline. A switch that started without a program has none until a controller commits one.
    pub committed: Option<StoredPipeline>,
    /// Number of pipelines that have run in this store, this one included.
    pub generation: u64,
    /// The saved pipeline that is not committed.
    pub saved: Option<StoredPipeline>,
}

/// A stored pipeline and its contents.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPipeline {
    /// The config as it was sent.
    pub config: ForwardingPipelineConfig,
    /// Updates that write the contents again, in this order.
    pub updates: Vec<Update>,
    /// Chunks of kept arrays, by key.
    pub arrays: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A set of changes that are applied together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreChanges {
    /// Changes of the running pipeline. It may be replaced but never removed.
    pub committed: PipelineChanges,
    /// Changes of the saved pipeline that is not committed.
    pub saved: PipelineChanges,
}

/// Changes of one pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineChanges {
    /// Replaces the pipeline with another (an encoded [`ForwardingPipelineConfig`]) or, with `Some(None)`, removes
    /// it. All former values are removed with it.
    pub pipeline: Option<Option<Vec<u8>>>,
    /// Values (encoded [`Update`]s) by key. `None` deletes the key.
    pub values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Chunks of kept arrays by key, for the running pipeline only. `None` deletes the key.
    pub arrays: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl StoreChanges {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == StoreChanges::default()
    }

    /// Appends later changes.
    pub fn extend(&mut self, later: StoreChanges) {
        self.committed.extend(later.committed);
        self.saved.extend(later.saved);
    }
}

impl PipelineChanges {
    /// Returns the change that removes a pipeline.
    pub(crate) fn gone() -> PipelineChanges {
        PipelineChanges { pipeline: Some(None), ..PipelineChanges::default() }
    }

    /// Appends later changes.
    pub fn extend(&mut self, later: PipelineChanges) {
        if later.pipeline.is_some() {
            *self = later;
        } else {
            self.values.extend(later.values);
            self.arrays.extend(later.arrays);
        }
    }
}

impl StoredPipeline {
    /// Decodes a stored pipeline.
    ///
    /// # Errors
    /// If the bytes were not written by a server of this version.
    pub fn decode<'a>(config: &[u8], values: impl Iterator<Item = &'a [u8]>) -> Result<StoredPipeline, StoreError> {
        let damaged = |_| StoreError("the stored state was not written by this version".to_owned());
        Ok(StoredPipeline {
            config: ForwardingPipelineConfig::decode(config).map_err(damaged)?,
            updates: values.map(Update::decode).collect::<Result<_, _>>().map_err(damaged)?,
            arrays: BTreeMap::new(),
        })
    }
}

/// A store in memory.
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
    arrays: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemoryPipeline {
    fn kept(&self) -> Result<Option<StoredPipeline>, StoreError> {
        let values = self.values.values().map(Vec::as_slice);
        let Some(config) = &self.config else { return Ok(None) };
        Ok(Some(StoredPipeline { arrays: self.arrays.clone(), ..StoredPipeline::decode(config, values)? }))
    }

    fn change(&mut self, changes: &PipelineChanges) {
        if let Some(config) = &changes.pipeline {
            *self = MemoryPipeline { config: config.clone(), ..MemoryPipeline::default() };
        }
        for (kept, changes) in [(&mut self.values, &changes.values), (&mut self.arrays, &changes.arrays)] {
            for (key, value) in changes {
                match value {
                    Some(value) => drop(kept.insert(key.clone(), value.clone())),
                    None => drop(kept.remove(key)),
                }
            }
        }
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<Option<StoredState>, StoreError> {
        let (committed, saved) = (self.committed.kept()?, self.saved.kept()?);
        let is_empty = committed.is_none() && saved.is_none();
        Ok((!is_empty).then_some(StoredState { committed, generation: self.generation, saved }))
    }

    fn commit(&mut self, changes: &StoreChanges) -> Result<(), StoreError> {
        self.generation += u64::from(changes.committed.pipeline.is_some());
        self.committed.change(&changes.committed);
        self.saved.change(&changes.saved);
        Ok(())
    }
}
