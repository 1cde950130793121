//! Implements a store in a directory: one file of `redb`, whose transactions are durable when they are committed.
//!
//! Every page of the file has a checksum, and opening checks them all: what is read afterwards is what was written. A
//! file that is damaged, empty or of another kind is refused and left as it is.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use p4runtime_proto::v1::ForwardingPipelineConfig;
use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::{PipelineChanges, Store, StoreChanges, StoreError, StoredRows, StoredState, decode_pipeline};

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

/// Name of the file in the directory, and its name until it is complete.
const FILE: &str = "p4runtime.redb";
const NEW_FILE: &str = "p4runtime.redb.new";
/// The first bytes of every file of `redb`.
const MAGIC: [u8; 9] = *b"redb\x1A\x0A\xA9\x0D\x0A";
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
    /// version wrote it. If its file is damaged, empty or of another kind; the file is left unchanged then.
    pub fn open(directory: &Path) -> Result<DiskStore, DiskError> {
        let cannot = |error: &dyn std::fmt::Display| DiskError::Open(directory.to_owned(), error.to_string());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| cannot(&error))?;
        let mode = std::fs::metadata(directory).map_err(|error| cannot(&error))?.permissions().mode();
        if mode & 0o002 != 0 {
            return Err(DiskError::Shared(directory.to_owned()));
        }
        let store = match File::options().read(true).write(true).open(directory.join(FILE)) {
            Ok(file) => DiskStore::existing(directory, file)?,
            Err(error) if error.kind() == ErrorKind::NotFound => DiskStore::create(directory)?,
            Err(error) => return Err(cannot(&error)),
        };
        // Without a sync, the directory entry and everything in it may be lost on a power failure.
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| cannot(&error))?;
        match store.metadata("format").map_err(|error| cannot(&error))? {
            Some(format) if format == FORMAT => {}
            Some(format) if format == WITHOUT_SAVED || format == WITHOUT_ARRAYS => {
                store.set_metadata("format", FORMAT).map_err(|error| cannot(&error))?;
            }
            _ => return Err(DiskError::Format(directory.to_owned())),
        }
        Ok(store)
    }

    /// Opens the file of a directory.
    fn existing(directory: &Path, mut file: File) -> Result<DiskStore, DiskError> {
        let refuse = |why: &str| Err(DiskError::Open(directory.to_owned(), format!("its file {FILE} {why}")));
        let cannot = |error: std::io::Error| DiskError::Open(directory.to_owned(), error.to_string());
        let metadata = file.metadata().map_err(cannot)?;
        if !metadata.is_file() {
            return refuse("is not a regular file");
        }
        if metadata.len() == 0 {
            return refuse("is empty, so its state is lost; remove the file to start without state");
        }
        let mut magic = [0; MAGIC.len()];
        if file.read_exact(&mut magic).is_err() || magic != MAGIC {
            return refuse("is not a state file, and is left unchanged");
        }
        // An earlier version may have created it for others as well.
        if metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(cannot)?;
        }
        let store = DiskStore::of_file(directory, file)?;
        // A start that was interrupted may have left it. It has nothing that the file does not have.
        let _ = std::fs::remove_file(directory.join(NEW_FILE));
        Ok(store)
    }

    /// Creates the file of a directory. It gets its name when it is complete, so that an interrupted start leaves no
    /// file that the next one refuses.
    fn create(directory: &Path) -> Result<DiskStore, DiskError> {
        let cannot = |error: &dyn std::fmt::Display| DiskError::Open(directory.to_owned(), error.to_string());
        let (new, path) = (directory.join(NEW_FILE), directory.join(FILE));
        let open = || {
            let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&new);
            DiskStore::of_file(directory, file.map_err(|error| cannot(&error))?)
        };
        let store = match open() {
            Err(DiskError::Open(..)) => {
                // An interrupted start has left half of it.
                std::fs::remove_file(&new).map_err(|error| cannot(&error))?;
                open()?
            }
            opened => opened?,
        };
        store.set_metadata("format", FORMAT).map_err(|error| cannot(&error))?;
        match std::fs::hard_link(&new, &path) {
            // Another process was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(DiskError::InUse(directory.to_owned())),
            Ok(()) => std::fs::remove_file(&new).map_err(|error| cannot(&error)),
            // A file system without links.
            Err(_) => std::fs::rename(&new, &path).map_err(|error| cannot(&error)),
        }?;
        Ok(store)
    }

    /// Opens a file as a database and checks all of it.
    fn of_file(directory: &Path, file: File) -> Result<DiskStore, DiskError> {
        let damaged = |why: &str| {
            let remedy = "restore it from a copy, or move it away to start without state";
            DiskError::Open(directory.to_owned(), format!("its file is damaged ({why}); {remedy}"))
        };
        let open = || {
            let mut builder = Database::builder();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
            builder.create_with_backend(FileBackend::new(file)?)
        };
        // Before the check has ended, damage may break the assertions of the library.
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(Ok(database)) => Ok(DiskStore { database }),
            Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => Err(DiskError::InUse(directory.to_owned())),
            Ok(Err(DatabaseError::UpgradeRequired(_))) => Err(DiskError::Format(directory.to_owned())),
            Ok(Err(error)) => Err(damaged(error.to_string().trim_end_matches('.'))),
            Err(_) => Err(damaged("its structure is invalid")),
        }
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

    fn kept(&self, name: &str) -> Result<Option<ForwardingPipelineConfig>, StoreError> {
        self.metadata(name)?.as_deref().map(decode_pipeline).transpose()
    }
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
        let (committed, saved) = (self.kept(PIPELINE)?, self.kept(SAVED)?);
        let is_empty = committed.is_none() && saved.is_none();
        let generation = number(self.metadata("generation")?.as_deref());
        Ok((!is_empty).then_some(StoredState { committed, generation, saved }))
    }

    fn visit(&self, rows: StoredRows, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let table = match rows {
            StoredRows::Committed => WRITTEN,
            StoredRows::Saved => WRITTEN_TO_SAVED,
            StoredRows::Arrays => ARRAYS,
        };
        let mut read = || -> Result<_, redb::Error> {
            let table = match self.database.begin_read()?.open_table(table) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
                table => table?,
            };
            for row in table.iter()? {
                let (key, value) = row?;
                visit(key.value(), value.value());
            }
            Ok(())
        };
        read().map_err(failed)
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
#[path = "disk_tests.rs"]
mod tests;
