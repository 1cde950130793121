//! What outlives the process: the pipeline that packets run, and what was written to it.
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
    /// The pipeline as it was sent.
    pub config: ForwardingPipelineConfig,
    /// How many pipelines there were in this store, this one included.
    pub generation: u64,
    /// What writes everything again, in this order.
    pub updates: Vec<Update>,
}

/// Changes that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Another pipeline (an encoded [`ForwardingPipelineConfig`]). What was under keys before goes with the old one.
    pub pipeline: Option<Vec<u8>>,
    /// Values (encoded [`Update`]s) by key; none for what is deleted.
    pub values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Changes {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.pipeline.is_none() && self.values.is_empty()
    }

    /// Adds what happened after these.
    pub fn extend(&mut self, later: Changes) {
        if later.pipeline.is_some() {
            *self = later;
        } else {
            self.values.extend(later.values);
        }
    }
}

impl Kept {
    /// What these bytes say.
    ///
    /// # Errors
    /// If they are none that a server wrote.
    pub fn decode<'a>(
        config: &[u8],
        generation: u64,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Kept, StoreError> {
        let damaged = |_| StoreError("what is kept there was not written by this version".to_owned());
        Ok(Kept {
            config: ForwardingPipelineConfig::decode(config).map_err(damaged)?,
            generation,
            updates: values.map(Update::decode).collect::<Result<_, _>>().map_err(damaged)?,
        })
    }
}

/// A store that lasts as long as its value.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    pipeline: Option<(Vec<u8>, u64)>,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Store for MemoryStore {
    fn load(&self) -> Result<Option<Kept>, StoreError> {
        let Some((config, generation)) = &self.pipeline else { return Ok(None) };
        Kept::decode(config, *generation, self.values.values().map(Vec::as_slice)).map(Some)
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        if let Some(config) = &changes.pipeline {
            let generation = self.pipeline.as_ref().map_or(0, |(_, generation)| *generation);
            self.pipeline = Some((config.clone(), generation + 1));
            self.values.clear();
        }
        for (key, value) in &changes.values {
            match value {
                Some(value) => drop(self.values.insert(key.clone(), value.clone())),
                None => drop(self.values.remove(key)),
            }
        }
        Ok(())
    }
}
