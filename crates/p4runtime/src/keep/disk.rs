//! A store in a directory: one file of `redb`, whose transactions are on the disk when they are committed.

use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Changes, Kept, Store, StoreError};

/// The pipeline and whatever else there is one of, by name.
const ABOUT: TableDefinition<&str, &[u8]> = TableDefinition::new("about");
/// What was written, by key.
const WRITTEN: TableDefinition<&[u8], &[u8]> = TableDefinition::new("written");

/// The file in the directory.
const FILE: &str = "p4runtime.redb";
/// How keys and values are to be understood.
const FORMAT: &[u8] = b"1";
/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 64 << 20;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// It cannot be made or opened.
    #[error("cannot use the state directory {0}: {1}")]
    Open(PathBuf, String),
    /// Another process has it.
    #[error("the state directory {0} is in use by another switch")]
    InUse(PathBuf),
    /// Another version made it.
    #[error("the state directory {0} was made by another version of Triplane, in a format that this one does not know")]
    Format(PathBuf),
}

/// A store in a directory, for one process at a time.
pub struct DiskStore {
    database: Database,
}

impl DiskStore {
    /// Opens a directory's store, or makes both. Others than the owner may not read it: tables may hold secrets.
    ///
    /// # Errors
    /// If that is not possible, if another process has it, or if another version made it.
    pub fn open(directory: &Path) -> Result<DiskStore, DiskError> {
        use std::os::unix::fs::DirBuilderExt;
        let cannot = |error: &dyn std::fmt::Display| DiskError::Open(directory.to_owned(), error.to_string());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| cannot(&error))?;
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(directory.join(FILE));
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DiskError::InUse(directory.to_owned()),
            error => cannot(&error),
        })?;
        // A name that was not synced may be gone after a loss of power, and all that is behind it.
        let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| cannot(&error))?;
        let store = DiskStore { database };
        match store.about("format").map_err(|error| cannot(&error))? {
            Some(format) if format != FORMAT => return Err(DiskError::Format(directory.to_owned())),
            Some(_) => {}
            None => store.set_about("format", FORMAT).map_err(|error| cannot(&error))?,
        }
        Ok(store)
    }

    /// Something there is one of, by name, if it was set.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn about(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
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

    /// Sets something there is one of.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn set_about(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(ABOUT)?.insert(name, value)?;
            transaction.open_table(WRITTEN)?;
            Ok(transaction.commit()?)
        };
        write().map_err(failed)
    }
}

impl Store for DiskStore {
    fn load(&self) -> Result<Option<Kept>, StoreError> {
        let Some(config) = self.about("pipeline")? else { return Ok(None) };
        let generation = number(self.about("generation")?.as_deref());
        let read = || -> Result<Vec<Vec<u8>>, redb::Error> {
            let table = self.database.begin_read()?.open_table(WRITTEN)?;
            let mut values = Vec::new();
            for row in table.iter()? {
                values.push(row?.1.value().to_vec());
            }
            Ok(values)
        };
        let values = read().map_err(failed)?;
        Kept::decode(&config, generation, values.iter().map(Vec::as_slice)).map(Some)
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut about = transaction.open_table(ABOUT)?;
                if let Some(config) = &changes.pipeline {
                    let generation = number(about.get("generation")?.map(|bytes| bytes.value().to_vec()).as_deref());
                    about.insert("generation", (generation + 1).to_be_bytes().as_slice())?;
                    about.insert("pipeline", config.as_slice())?;
                    transaction.delete_table(WRITTEN)?;
                }
                let mut written = transaction.open_table(WRITTEN)?;
                for (key, value) in &changes.values {
                    match value {
                        Some(value) => drop(written.insert(key.as_slice(), value.as_slice())?),
                        None => drop(written.remove(key.as_slice())?),
                    }
                }
            }
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
    use crate::keep::MemoryStore;

    /// A directory that goes away with its value.
    struct Directory(PathBuf);

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn directory(name: &str) -> Directory {
        Directory(std::env::temp_dir().join(format!("triplane-{name}-{}", std::process::id())))
    }

    fn changes(pipeline: Option<u64>, values: &[(u8, Option<i32>)]) -> Changes {
        let config = |cookie| {
            let cookie = Some(v1::forwarding_pipeline_config::Cookie { cookie });
            v1::ForwardingPipelineConfig { cookie, ..Default::default() }.encode_to_vec()
        };
        let update = |kind| v1::Update { r#type: kind, entity: None }.encode_to_vec();
        let values = values.iter().map(|(key, value)| (vec![*key], value.map(update)));
        Changes { pipeline: pipeline.map(config), values: values.collect() }
    }

    #[test]
    fn it_has_what_memory_has_also_when_it_is_opened_again() {
        let directory = directory("store");
        let mut memory = MemoryStore::default();
        let steps = [
            changes(Some(7), &[(1, Some(1)), (3, Some(2))]),
            changes(None, &[(2, Some(1)), (1, None), (9, None)]),
            changes(None, &[(2, Some(2))]),
            changes(Some(8), &[(5, Some(1))]),
            changes(None, &[(4, Some(1))]),
        ];
        assert_eq!(DiskStore::open(&directory.0).unwrap().load().unwrap(), None);
        for step in steps {
            memory.commit(&step).unwrap();
            DiskStore::open(&directory.0).unwrap().commit(&step).unwrap();
            let kept = DiskStore::open(&directory.0).unwrap().load().unwrap();
            assert_eq!(kept, memory.load().unwrap());
        }
        assert_eq!(memory.load().unwrap().unwrap().generation, 2);
    }

    #[test]
    fn one_process_has_it_and_another_format_is_not_touched() {
        let directory = directory("one");
        let first = DiskStore::open(&directory.0).unwrap();
        assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::InUse(_))));
        first.set_about("format", b"2").unwrap();
        drop(first);
        assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::Format(_))));
    }
}
