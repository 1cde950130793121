//! Reads and writes the record of a cluster's operators as JSON, in which stores have names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use resilient::{ChainMember, LayoutRecord, NodeId, ShardChain, StoreLayout};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;

/// Maximum length of a record's text, in bytes.
pub const MAX_LAYOUT_BYTES: usize = 1 << 20;

/// Names and numbers of the stores of a cluster, for the conversion between records and text.
#[derive(Clone, Debug)]
pub struct LayoutText {
    numbers: BTreeMap<String, u32>,
    shards: usize,
}

/// The reason for which a text is not a record of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutTextError {
    /// The text is damaged.
    #[error("it is not a valid cluster layout: {0}")]
    Damaged(String),
    /// The cluster file and the text have different numbers for a store.
    #[error(
        "it has the store `{0}` with another number than the cluster file, or the file lacks it: stores are numbered \
         in the order of their names, so a new one must come last"
    )]
    OtherStores(String),
    /// The cluster file and the text have different numbers of shards.
    #[error("it has {kept} shards, and the cluster file has shards = {wanted}: their number cannot be changed")]
    OtherShards {
        /// Number of shards of the text.
        kept: usize,
        /// Number of shards of the cluster file.
        wanted: usize,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordSection {
    epoch: u64,
    /// The numbers of all stores, which must not change.
    stores: BTreeMap<String, u32>,
    chains: Vec<ChainSection>,
    drained: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainSection {
    members: Vec<LifeSection>,
    learner: Option<LifeSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LifeSection {
    store: String,
    life: u64,
}

impl LayoutText {
    /// Creates the names of a cluster's stores, with their numbers and the number of shards.
    pub fn new(cluster: &Cluster) -> LayoutText {
        let numbers = cluster.stores().filter_map(|store| Some((store.name.clone(), store.peer.node()?.0)));
        LayoutText { numbers: numbers.collect(), shards: usize::from(cluster.shards()) }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the text is damaged or too long, or has other stores or another number of shards than the cluster.
    pub fn parse(&self, text: &[u8]) -> Result<LayoutRecord, LayoutTextError> {
        if text.len() > MAX_LAYOUT_BYTES {
            return Err(LayoutTextError::Damaged(format!("it is longer than {MAX_LAYOUT_BYTES} bytes")));
        }
        let record: RecordSection =
            serde_json::from_slice(text).map_err(|error| LayoutTextError::Damaged(error.to_string()))?;
        let number = |name: &str| {
            let number = self.numbers.get(name).filter(|number| record.stores.get(name) == Some(*number));
            number.map(|number| NodeId(*number)).ok_or_else(|| LayoutTextError::OtherStores(name.to_owned()))
        };
        let member = |section: &LifeSection| Ok(ChainMember { node: number(&section.store)?, life: section.life });
        let chain = |section: &ChainSection| {
            let members = section.members.iter().map(member).collect::<Result<_, _>>()?;
            Ok(ShardChain { members, learner: section.learner.as_ref().map(member).transpose()? })
        };
        if record.epoch == 0 || record.chains.is_empty() || record.chains.iter().any(|chain| chain.members.is_empty()) {
            return Err(LayoutTextError::Damaged("it has no epoch, no chain, or a chain without stores".to_owned()));
        }
        let (kept, wanted) = (record.chains.len(), self.shards);
        if kept != wanted {
            return Err(LayoutTextError::OtherShards { kept, wanted });
        }
        let chains = record.chains.iter().map(chain).collect::<Result<_, LayoutTextError>>()?;
        let drained = record.drained.iter().map(|name| number(name)).collect::<Result<_, LayoutTextError>>()?;
        Ok(LayoutRecord { layout: Arc::new(StoreLayout::new(record.epoch, chains)), drained })
    }

    /// Writes a record.
    pub fn emit(&self, record: &LayoutRecord) -> String {
        let name = |node: NodeId| {
            let found = self.numbers.iter().find(|(_, number)| **number == node.0);
            found.map_or_else(String::new, |(name, _)| name.clone())
        };
        let member = |member: &ChainMember| LifeSection { store: name(member.node), life: member.life };
        let chain = |chain: &ShardChain| ChainSection {
            members: chain.members.iter().map(member).collect(),
            learner: chain.learner.as_ref().map(member),
        };
        let section = RecordSection {
            epoch: record.layout.epoch(),
            stores: self.numbers.clone(),
            chains: record.layout.chains().iter().map(chain).collect(),
            drained: record.drained.iter().map(|node| name(*node)).collect(),
        };
        serde_json::to_string_pretty(&section).expect("the record has names and numbers only")
    }
}
