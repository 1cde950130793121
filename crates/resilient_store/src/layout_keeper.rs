//! Keeps the layouts of a cluster, so that no two of them ever have the same epoch.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use resilient::LayoutRecord;

use crate::cluster::Cluster;
use crate::durable_file::{self, beside};
use crate::layout_text::{LayoutText, LayoutTextError, MAX_LAYOUT_BYTES};

/// Outcome of [`LayoutKeeper::compare_and_swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutSwap {
    /// The record is committed, and survives a crash.
    Kept,
    /// There is another record, or none.
    Superseded(Option<LayoutRecord>),
}

/// The storage of the record of a cluster's operators. Methods may block: they are called in a thread of their own.
pub trait LayoutKeeper {
    /// Returns the committed record, if there is one. It survives a crash.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&mut self) -> Result<Option<LayoutRecord>, KeeperError>;

    /// Replaces the record with the previous epoch by this one, or does nothing. The first epoch is 1.
    ///
    /// # Errors
    /// If the outcome is unknown. The swap may still take effect later, unless another swap succeeds first.
    /// A later [`LayoutKeeper::load`] returns the record that is stored.
    fn compare_and_swap(&mut self, record: &LayoutRecord) -> Result<LayoutSwap, KeeperError>;

    /// Returns the interval at which the record is loaded, to detect failures and changes. `None` for storage that only
    /// this operator uses.
    fn check_interval(&self) -> Option<Duration> {
        None
    }
}

/// The reason for which layouts cannot be stored.
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
    /// The record is damaged, or belongs to another cluster.
    #[error("cannot use the layout in {place}: {source}")]
    Text {
        /// The file or key that has it.
        place: String,
        /// The reason.
        source: LayoutTextError,
    },
    /// The service that stores the record does not answer, or refuses to.
    #[error("{0}")]
    Service(String),
}

/// Keeps layouts in a file. A lock file excludes other operators on this machine.
#[derive(Debug)]
pub struct FileKeeper {
    path: PathBuf,
    text: LayoutText,
    _lock: File,
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
        Ok(FileKeeper { path: path.to_owned(), text: LayoutText::new(cluster), _lock: lock })
    }

    fn failed(&self, source: io::Error) -> KeeperError {
        KeeperError::Io { path: self.path.clone(), source }
    }
}

impl LayoutKeeper for FileKeeper {
    fn load(&mut self) -> Result<Option<LayoutRecord>, KeeperError> {
        let mut text = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(MAX_LAYOUT_BYTES as u64 + 1).read_to_end(&mut text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        }
        .map_err(|error| self.failed(error))?;
        // From here on, a rename whose outcome was unknown is on the disk.
        durable_file::sync_directory(&self.path).map_err(|error| self.failed(error))?;
        let failed = |source| KeeperError::Text { place: self.path.display().to_string(), source };
        self.text.parse(&text).map(Some).map_err(failed)
    }

    fn compare_and_swap(&mut self, record: &LayoutRecord) -> Result<LayoutSwap, KeeperError> {
        let kept = self.load()?;
        if !record.follows(kept.as_ref()) {
            return Ok(LayoutSwap::Superseded(kept));
        }
        durable_file::replace(&self.path, &self.text.emit(record)).map_err(|error| self.failed(error))?;
        Ok(LayoutSwap::Kept)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::Arc;

    use resilient::{ChainMember, NodeId, ShardChain, StoreLayout};

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
            assert!(
                matches!(keeper.load(), Err(KeeperError::Text { source: LayoutTextError::Damaged(_), .. })),
                "{damaged:?}"
            );
            assert!(keeper.compare_and_swap(&record(1)).is_err());
        }
    }
}
