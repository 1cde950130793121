//! Keeps the layouts of a cluster, so that no two of them ever have the same epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resilient::{ChainMember, LayoutRecord, NodeId, Peer, ShardChain, StoreLayout};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::durable_file::{self, beside};

/// Maximum length of a layout file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Outcome of [`LayoutKeeper::compare_and_swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutSwap {
    /// The record is kept, and survives a crash.
    Kept,
    /// Another record is kept, or none.
    Superseded(Option<LayoutRecord>),
}

/// A place for the record of a cluster's operators. Methods may block.
pub trait LayoutKeeper {
    /// Returns the record that is kept, if there is one. It survives a crash.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&mut self) -> Result<Option<LayoutRecord>, KeeperError>;

    /// Replaces the record whose epoch is one less by this one, or does nothing. The first epoch is 1.
    ///
    /// # Errors
    /// If it is not known which record is kept. A later [`LayoutKeeper::load`] shows it.
    fn compare_and_swap(&mut self, record: &LayoutRecord) -> Result<LayoutSwap, KeeperError>;
}

/// Reason that layouts cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Another operator uses the file.
    #[error("another operator uses {0}")]
    InUse(PathBuf),
    /// The file is damaged.
    #[error("{path} is no layout of a cluster: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The cluster file and the layout have different numbers for a store.
    #[error(
        "the layout in {path} has the store `{name}` with another number than the cluster file, or the file lacks it: \
         stores are numbered in the order of their names, so a new one must come last"
    )]
    OtherStores {
        /// The file.
        path: PathBuf,
        /// The store.
        name: String,
    },
}

/// Keeps layouts in a file. A lock beside it keeps other operators of the machine away.
#[derive(Debug)]
pub struct FileKeeper {
    path: PathBuf,
    numbers: BTreeMap<String, u32>,
    _lock: File,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutFile {
    epoch: u64,
    /// The numbers of all stores, which must not change.
    stores: BTreeMap<String, u32>,
    chains: Vec<ChainSection>,
    drained: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainSection {
    members: Vec<MemberSection>,
    learner: Option<MemberSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberSection {
    store: String,
    life: u64,
}

impl FileKeeper {
    /// Opens the file of a cluster, which need not exist, and locks it.
    ///
    /// # Errors
    /// If another operator uses it, or its directory cannot be written.
    pub fn open(path: &Path, cluster: &Cluster) -> Result<FileKeeper, KeeperError> {
        let lock_path = beside(path, ".lock");
        let failed = |source| KeeperError::Io { path: lock_path.clone(), source };
        let lock = durable_file::lock(&lock_path).map_err(failed)?;
        let lock = lock.ok_or_else(|| KeeperError::InUse(path.to_owned()))?;
        let number = |peer| if let Peer::Node(NodeId(number)) = peer { Some(number) } else { None };
        let numbers = cluster.stores().filter_map(|store| Some((store.name.clone(), number(store.peer)?)));
        Ok(FileKeeper { path: path.to_owned(), numbers: numbers.collect(), _lock: lock })
    }

    fn failed(&self, source: io::Error) -> KeeperError {
        KeeperError::Io { path: self.path.clone(), source }
    }

    fn record(&self, file: LayoutFile) -> Result<LayoutRecord, KeeperError> {
        let number = |name: &str| {
            let number = self.numbers.get(name).filter(|number| file.stores.get(name) == Some(*number));
            let other = || KeeperError::OtherStores { path: self.path.clone(), name: name.to_owned() };
            number.map(|number| NodeId(*number)).ok_or_else(other)
        };
        let member = |section: &MemberSection| Ok(ChainMember { node: number(&section.store)?, life: section.life });
        let chain = |section: &ChainSection| {
            let members = section.members.iter().map(member).collect::<Result<_, _>>()?;
            Ok(ShardChain { members, learner: section.learner.as_ref().map(member).transpose()? })
        };
        if file.epoch == 0 || file.chains.is_empty() || file.chains.iter().any(|chain| chain.members.is_empty()) {
            let reason = "it has no epoch, no chain, or a chain without stores".to_owned();
            return Err(KeeperError::Damaged { path: self.path.clone(), reason });
        }
        let chains = file.chains.iter().map(chain).collect::<Result<_, KeeperError>>()?;
        let drained = file.drained.iter().map(|name| number(name)).collect::<Result<_, KeeperError>>()?;
        Ok(LayoutRecord { layout: Arc::new(StoreLayout::new(file.epoch, chains)), drained })
    }

    fn file(&self, record: &LayoutRecord) -> LayoutFile {
        let name = |node: NodeId| {
            let found = self.numbers.iter().find(|(_, number)| **number == node.0);
            found.map_or_else(String::new, |(name, _)| name.clone())
        };
        let member = |member: &ChainMember| MemberSection { store: name(member.node), life: member.life };
        let chain = |chain: &ShardChain| ChainSection {
            members: chain.members.iter().map(member).collect(),
            learner: chain.learner.as_ref().map(member),
        };
        LayoutFile {
            epoch: record.layout.epoch(),
            stores: self.numbers.clone(),
            chains: record.layout.chains().iter().map(chain).collect(),
            drained: record.drained.iter().map(|node| name(*node)).collect(),
        }
    }
}

impl LayoutKeeper for FileKeeper {
    fn load(&mut self) -> Result<Option<LayoutRecord>, KeeperError> {
        let mut text = String::new();
        match File::open(&self.path) {
            Ok(file) => file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| self.failed(error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        // A rename whose outcome was not known is on the disk from here on.
        durable_file::sync_directory(&self.path).map_err(|error| self.failed(error))?;
        let damaged =
            |error: serde_json::Error| KeeperError::Damaged { path: self.path.clone(), reason: error.to_string() };
        let file = serde_json::from_str(&text).map_err(damaged)?;
        self.record(file).map(Some)
    }

    fn compare_and_swap(&mut self, record: &LayoutRecord) -> Result<LayoutSwap, KeeperError> {
        let kept = self.load()?;
        if record.layout.epoch() != kept.as_ref().map_or(0, |kept| kept.layout.epoch()) + 1 {
            return Ok(LayoutSwap::Superseded(kept));
        }
        let text = serde_json::to_string_pretty(&self.file(record)).expect("the file has names and numbers only");
        durable_file::replace(&self.path, &text).map_err(|error| self.failed(error))?;
        Ok(LayoutSwap::Kept)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn cluster(names: &[&str]) -> Cluster {
        let section = |(at, name): (usize, &&str)| format!("[stores.{name}]\naddress = \"127.0.0.1:{}\"\n", at + 1);
        let stores: String = names.iter().enumerate().map(section).collect();
        Cluster::read(&format!("[operator]\naddress = \"127.0.0.1:99\"\n{stores}"), Path::new(".")).unwrap()
    }

    fn record(epoch: u64) -> LayoutRecord {
        let member = |node| ChainMember::in_life(NodeId(node), 1, u32::MAX);
        let chain = ShardChain { members: vec![member(1), member(2)], learner: Some(member(3)) };
        let layout = Arc::new(StoreLayout::new(epoch, vec![chain]));
        LayoutRecord { layout, drained: BTreeSet::from([NodeId(2)]) }
    }

    /// Returns a path that no other test uses.
    fn path(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("triplane-keeper-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory.join("layout.json")
    }

    #[test]
    fn only_the_next_epoch_is_kept_and_survives() {
        let (path, cluster) = (path("next"), cluster(&["a", "b", "c"]));
        let mut keeper = FileKeeper::open(&path, &cluster).unwrap();
        assert_eq!(keeper.load().unwrap(), None);
        assert_eq!(keeper.compare_and_swap(&record(2)).unwrap(), LayoutSwap::Superseded(None));
        assert_eq!(keeper.compare_and_swap(&record(1)).unwrap(), LayoutSwap::Kept);
        assert_eq!(keeper.compare_and_swap(&record(1)).unwrap(), LayoutSwap::Superseded(Some(record(1))));
        assert_eq!(keeper.compare_and_swap(&record(2)).unwrap(), LayoutSwap::Kept);
        assert!(matches!(FileKeeper::open(&path, &cluster), Err(KeeperError::InUse(_))));
        drop(keeper);
        assert_eq!(FileKeeper::open(&path, &cluster).unwrap().load().unwrap(), Some(record(2)));
    }

    #[test]
    fn files_of_another_cluster_and_damaged_ones_are_refused() {
        let path = path("refused");
        let mut keeper = FileKeeper::open(&path, &cluster(&["a", "b", "c"])).unwrap();
        keeper.compare_and_swap(&record(1)).unwrap();
        drop(keeper);
        for (names, is_right) in [(&["a", "b", "c", "d"][..], true), (&["a", "aa", "b", "c"], false), (&["a"], false)] {
            let loaded = FileKeeper::open(&path, &cluster(names)).unwrap().load();
            assert_eq!(loaded.is_ok(), is_right, "{names:?}: {loaded:?}");
        }
        let whole = fs::read_to_string(&path).unwrap();
        let mut keeper = FileKeeper::open(&path, &cluster(&["a", "b", "c"])).unwrap();
        for damaged in ["", "{}", "[1]", &whole[..whole.len() - 3], &whole.replace("\"epoch\": 1", "\"epoch\": 0")] {
            fs::write(&path, damaged).unwrap();
            assert!(matches!(keeper.load(), Err(KeeperError::Damaged { .. })), "{damaged:?}");
            assert!(keeper.compare_and_swap(&record(1)).is_err());
        }
    }
}
