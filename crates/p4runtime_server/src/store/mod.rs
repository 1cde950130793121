//! Defines the persistent state: the running pipeline, the saved one that is not committed, and the contents of both.
//!
//! ```text
//!   Server ── StoreChanges ──> writer thread ── one transaction for all pending ──> Store ── durable ──> acknowledged
//! ```
//!
//! The server translates each write to bytes under keys. A [`Store`] keeps these rows and does not interpret them. In
//! the order of the keys, each row comes after those that it refers to, so rows can be written again in that order.
//! They are read one at a time, so a restart takes no more memory than the switch and its shadow.

mod disk;
mod writer;

use std::collections::BTreeMap;

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::ForwardingPipelineConfig;

pub use disk::{DiskError, DiskStore};
pub(crate) use writer::StoreWriter;

/// A store of bytes by key, and of pipelines.
pub trait Store: Send {
    /// Returns the stored pipelines without their rows, or `None` if there is none.
    ///
    /// # Errors
    /// If they cannot be read.
    fn load(&self) -> Result<Option<StoredState>, StoreError>;

    /// Passes the keys and values of rows to `visit`, in the order of the keys. Holds one row in memory at a time.
    ///
    /// # Errors
    /// If the rest cannot be read.
    fn visit(&self, rows: StoredRows, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;

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

/// The pipelines of a store, as they were sent.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredState {
    /// The running pipeline. A switch that started without a program has none until a controller commits one.
    pub committed: Option<ForwardingPipelineConfig>,
    /// Number of pipelines that have run in this store, this one included.
    pub generation: u64,
    /// The saved pipeline that is not committed.
    pub saved: Option<ForwardingPipelineConfig>,
}

/// The kinds of rows of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredRows {
    /// Encoded updates that write the contents of the running pipeline again.
    Committed,
    /// The same of the saved pipeline that is not committed.
    Saved,
    /// Chunks of kept arrays, and counters of entries, of the running pipeline.
    Arrays,
}

/// Decodes a stored pipeline.
fn decode_pipeline(config: &[u8]) -> Result<ForwardingPipelineConfig, StoreError> {
    ForwardingPipelineConfig::decode(config).map_err(|_| StoreError("the stored pipeline is damaged".to_owned()))
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
    /// Values (encoded [`Update`](p4runtime_proto::v1::Update)s) by key. `None` deletes the key.
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
    fn kept(&self) -> Result<Option<ForwardingPipelineConfig>, StoreError> {
        self.config.as_deref().map(decode_pipeline).transpose()
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

    fn visit(&self, rows: StoredRows, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let rows = match rows {
            StoredRows::Committed => &self.committed.values,
            StoredRows::Saved => &self.saved.values,
            StoredRows::Arrays => &self.committed.arrays,
        };
        rows.iter().for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn commit(&mut self, changes: &StoreChanges) -> Result<(), StoreError> {
        self.generation += u64::from(changes.committed.pipeline.is_some());
        self.committed.change(&changes.committed);
        self.saved.change(&changes.saved);
        Ok(())
    }
}
