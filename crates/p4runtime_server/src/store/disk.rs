//! Implements a store in a directory: one file of `redb`, whose transactions are durable when they are committed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::{PipelineChanges, Store, StoreChanges, StoreError, StoredPipeline, StoredState};

/// The pipelines and other single values, by name.
const ABOUT: TableDefinition<&str, &[u8]> = TableDefinition::new("about");
/// Updates of the running pipeline, by key.
const WRITTEN: TableDefinition<&[u8], &[u8]> = TableDefinition::new("written");
/// Updates of the saved pipeline that is not committed, by key.
const WRITTEN_TO_SAVED: TableDefinition<&[u8], &[u8]> = TableDefinition::new("written-to-saved");
/// Chunks of register and counter arrays of the running pipeline, by key.
const ARRAYS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("arrays");
/// Names of the two pipelines.
const PIPELINE: &str = "pipeline";
const SAVED: &str = "saved";

/// Name of the file in the directory.
const FILE: &str = "p4runtime.redb";
/// Version of the file's format.
const FORMAT: &[u8] = b"3";
/// Former versions: without a saved pipeline, and without arrays.
const WITHOUT_SAVED: &[u8] = b"1";
const WITHOUT_ARRAYS: &[u8] = b"2";
/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 64 << 20;

/// An error from opening a directory.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The directory cannot be created or opened.
    #[error("cannot use the state directory {0}: {1}")]
    Open(PathBuf, String),
    /// Another process uses the directory.
    #[error("the state directory {0} is in use by another switch")]
    InUse(PathBuf),
    /// Every user of the machine can replace the files of the directory.
    #[error("the state directory {0} can be written by every user; run `chmod o-w {0}` or use another one")]
    Shared(PathBuf),
    /// Another version wrote the directory.
    #[error(
        "the state directory {0} was written by another version of Triplane in a format that this version cannot read"
    )]
    Format(PathBuf),
}

/// A store in a directory, for one process at a time.
pub struct DiskStore {
    database: Database,
}

impl DiskStore {
    /// Opens the store of a directory and creates both if necessary. Only the owner may read the file, since tables may
    /// hold secrets.
    ///
    /// # Errors
    /// If the directory cannot be created or opened, every user may write to it, another process uses it, or another
    /// version wrote it.
    pub fn open(directory: &Path) -> Result<DiskStore, DiskError> {
        let cannot = |error: &dyn std::fmt::Display| DiskError::Open(directory.to_owned(), error.to_string());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| cannot(&error))?;
        let mode = std::fs::metadata(directory).map_err(|error| cannot(&error))?.permissions().mode();
        if mode & 0o002 != 0 {
            return Err(DiskError::Shared(directory.to_owned()));
        }
        let file = open_private(&directory.join(FILE)).map_err(|error| cannot(&error))?;
        let database = FileBackend::new(file)
            .and_then(|backend| Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend));
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DiskError::InUse(directory.to_owned()),
            error => cannot(&error),
        })?;
        // Without a sync, the directory entry and everything in it may be lost on a power failure.
        let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| cannot(&error))?;
        let store = DiskStore { database };
        match store.metadata("format").map_err(|error| cannot(&error))? {
            Some(format) if format == FORMAT => {}
            Some(format) if format != WITHOUT_SAVED && format != WITHOUT_ARRAYS => {
                return Err(DiskError::Format(directory.to_owned()));
            }
            _ => store.set_metadata("format", FORMAT).map_err(|error| cannot(&error))?,
        }
        Ok(store)
    }

    /// Returns a single value by name, if it is set.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn metadata(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || -> Result<_, redb::Error> {
            let transaction = self.database.begin_read()?;
            match transaction.open_table(ABOUT) {
                Ok(table) => Ok(table.get(name)?.map(|value| value.value().to_vec())),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        read().map_err(failed)
    }

    /// Sets a single value.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn set_metadata(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(ABOUT)?.insert(name, value)?;
            transaction.open_table(WRITTEN)?;
            Ok(transaction.commit()?)
        };
        write().map_err(failed)
    }

    /// Returns the rows of a table, in the order of their keys.
    fn rows(&self, table: ByteTable) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, StoreError> {
        let read = || -> Result<_, redb::Error> {
            let table = match self.database.begin_read()?.open_table(table) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
                table => table?,
            };
            let mut rows = BTreeMap::new();
            for row in table.iter()? {
                let (key, value) = row?;
                rows.insert(key.value().to_vec(), value.value().to_vec());
            }
            Ok(rows)
        };
        read().map_err(failed)
    }

    fn kept(&self, name: &str, written: ByteTable) -> Result<Option<StoredPipeline>, StoreError> {
        let Some(config) = self.metadata(name)? else { return Ok(None) };
        let values = self.rows(written)?;
        StoredPipeline::decode(&config, values.values().map(Vec::as_slice)).map(Some)
    }
}

/// Opens a file that only its owner may read, and creates it if necessary.
fn open_private(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    // An earlier version may have created it for others as well.
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

type ByteTable = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// Applies the changes of one pipeline in a transaction.
fn change(
    transaction: &WriteTransaction,
    changes: &PipelineChanges,
    name: &str,
    written: ByteTable,
) -> Result<(), redb::Error> {
    if let Some(config) = &changes.pipeline {
        let mut about = transaction.open_table(ABOUT)?;
        match config {
            Some(config) => drop(about.insert(name, config.as_slice())?),
            None => drop(about.remove(name)?),
        }
        transaction.delete_table(written)?;
    }
    change_rows(transaction, written, &changes.values)
}

/// Inserts and removes rows of a table in a transaction.
fn change_rows(
    transaction: &WriteTransaction,
    table: ByteTable,
    rows: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
) -> Result<(), redb::Error> {
    let mut table = transaction.open_table(table)?;
    for (key, value) in rows {
        match value {
            Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
            None => drop(table.remove(key.as_slice())?),
        }
    }
    Ok(())
}

impl Store for DiskStore {
    fn load(&self) -> Result<Option<StoredState>, StoreError> {
        let (mut committed, saved) = (self.kept(PIPELINE, WRITTEN)?, self.kept(SAVED, WRITTEN_TO_SAVED)?);
        if let Some(committed) = &mut committed {
            committed.arrays = self.rows(ARRAYS)?;
        }
        let is_empty = committed.is_none() && saved.is_none();
        let generation = number(self.metadata("generation")?.as_deref());
        Ok((!is_empty).then_some(StoredState { committed, generation, saved }))
    }

    fn commit(&mut self, changes: &StoreChanges) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            if changes.committed.pipeline.is_some() {
                let mut about = transaction.open_table(ABOUT)?;
                let generation = number(about.get("generation")?.map(|bytes| bytes.value().to_vec()).as_deref());
                about.insert("generation", (generation + 1).to_be_bytes().as_slice())?;
                transaction.delete_table(ARRAYS)?;
            }
            change_rows(&transaction, ARRAYS, &changes.committed.arrays)?;
            change(&transaction, &changes.committed, PIPELINE, WRITTEN)?;
            change(&transaction, &changes.saved, SAVED, WRITTEN_TO_SAVED)?;
            Ok(transaction.commit()?)
        };
        write().map_err(failed)
    }
}

fn failed(error: redb::Error) -> StoreError {
    StoreError(error.to_string())
}

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::prost::Message;
    use p4runtime_proto::v1;

    use super::*;
    use crate::store::MemoryStore;

    /// A directory that is removed on drop.
    struct TempDirectory(PathBuf);

    impl Drop for TempDirectory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn directory(name: &str) -> TempDirectory {
        TempDirectory(std::env::temp_dir().join(format!("triplane-{name}-{}", std::process::id())))
    }

    fn changes(pipeline: Option<u64>, values: &[(u8, Option<i32>)]) -> PipelineChanges {
        let config = |cookie| {
            let cookie = Some(v1::forwarding_pipeline_config::Cookie { cookie });
            v1::ForwardingPipelineConfig { cookie, ..Default::default() }.encode_to_vec()
        };
        let update = |kind| v1::Update { r#type: kind, entity: None }.encode_to_vec();
        let values = values.iter().map(|(key, value)| (vec![*key], value.map(update)));
        PipelineChanges {
            pipeline: pipeline.map(|cookie| Some(config(cookie))),
            values: values.collect(),
            arrays: BTreeMap::new(),
        }
    }

    #[test]
    fn a_reopened_store_has_the_content_of_the_model() {
        let directory = directory("store");
        let mut memory = MemoryStore::default();
        let none = PipelineChanges::default;
        let steps = [
            (none(), changes(Some(6), &[(1, Some(2))])),
            (changes(Some(7), &[(1, Some(1)), (3, Some(2))]), PipelineChanges::gone()),
            (changes(None, &[(2, Some(1)), (1, None), (9, None)]), none()),
            (changes(None, &[(2, Some(2))]), changes(Some(8), &[(5, Some(1))])),
            (none(), changes(None, &[(4, Some(1)), (5, None)])),
            (changes(Some(8), &[(4, Some(1))]), PipelineChanges::gone()),
            (changes(None, &[(5, Some(1))]), none()),
        ];
        assert_eq!(DiskStore::open(&directory.0).unwrap().load().unwrap(), None);
        for (number, (committed, saved)) in steps.into_iter().enumerate() {
            let step = StoreChanges { committed, saved };
            memory.commit(&step).unwrap();
            DiskStore::open(&directory.0).unwrap().commit(&step).unwrap();
            let kept = DiskStore::open(&directory.0).unwrap().load().unwrap();
            assert_eq!(kept, memory.load().unwrap());
            let kept = kept.unwrap();
            assert_eq!(kept.committed.is_some(), number > 0);
            assert_eq!(kept.saved.is_some(), [0, 3, 4].contains(&number));
        }
        assert_eq!(memory.load().unwrap().unwrap().generation, 2);
    }

    #[test]
    fn stores_without_a_saved_pipeline_are_read() {
        let directory = directory("before");
        let mut first = DiskStore::open(&directory.0).unwrap();
        let step = StoreChanges { committed: changes(Some(7), &[(1, Some(1))]), saved: PipelineChanges::default() };
        first.commit(&step).unwrap();
        first.set_metadata("format", WITHOUT_SAVED).unwrap();
        drop(first);
        let again = DiskStore::open(&directory.0).unwrap();
        assert_eq!(again.load().unwrap().unwrap().committed.unwrap().updates.len(), 1);
        assert_eq!(again.metadata("format").unwrap().as_deref(), Some(FORMAT));
    }

    #[test]
    fn only_the_owner_may_read_the_file() {
        let directory = directory("private");
        let file = directory.0.join(FILE);
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        // The directory is that of a user who created it before.
        std::fs::create_dir(&directory.0).unwrap();
        set(&directory.0, 0o755);
        drop(DiskStore::open(&directory.0).unwrap());
        assert_eq!(mode(), 0o600);
        set(&file, 0o644);
        drop(DiskStore::open(&directory.0).unwrap());
        assert_eq!(mode(), 0o600);
        set(&directory.0, 0o777);
        let refused = DiskStore::open(&directory.0).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("can be written by every user")));
    }

    #[test]
    fn one_process_has_it_and_another_format_is_not_touched() {
        let directory = directory("one");
        let first = DiskStore::open(&directory.0).unwrap();
        assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::InUse(_))));
        first.set_metadata("format", b"4").unwrap();
        drop(first);
        assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::Format(_))));
    }
}
