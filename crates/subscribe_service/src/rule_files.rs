//! Reads the rules file and its includes, and notices changes.
//!
//! Files are polled with `stat` a few times a second. That works with editors that write a new file and rename it, with
//! network file systems, and with directories that are mounted again.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use subscribe::IncludeError;

/// Maximum size of a rules file: 1 GiB.
const MAX_BYTES: u64 = 1 << 30;
/// Time that files have to stay the same before they are read. Their writer has finished then.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// The metadata that changes with a file: inode, times and size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp([i64; 5], u64);

/// Reads the metadata of a file, if there is one.
fn stamp(path: &Path) -> Option<FileStamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(FileStamp(
        [metadata.ino() as i64, metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()],
        metadata.size(),
    ))
}

/// The files that were read, with their metadata at that time, and the metadata that they have changed to since.
#[derive(Debug, Default)]
pub(crate) struct FileWatch {
    files: Vec<(PathBuf, Option<FileStamp>)>,
    changed: Option<(Vec<Option<FileStamp>>, Instant)>,
}

impl FileWatch {
    /// Returns the files that were read.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Makes all files count as changed.
    pub fn invalidate(&mut self) {
        self.files.iter_mut().for_each(|(_, stamp)| *stamp = Some(FileStamp([-1; 5], 0)));
    }

    /// Whether files have changed since they were read, and have stayed the same for the settle time.
    pub fn has_changed(&mut self, now: Instant) -> bool {
        let stamps: Vec<Option<FileStamp>> = self.files.iter().map(|(path, _)| stamp(path)).collect();
        if stamps.iter().eq(self.files.iter().map(|(_, known)| known)) {
            self.changed = None;
            return false;
        }
        match &self.changed {
            Some((seen, since)) if *seen == stamps => now.duration_since(*since) >= SETTLE_TIME,
            _ => {
                self.changed = Some((stamps, now));
                false
            }
        }
    }
}

/// A file that cannot be read as rules. The texts follow the file's name in a sentence.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system reports an error.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The file is a directory, a pipe or a device.
    #[error("is not a regular file: rules are read from regular files only")]
    NotRegular,
    /// The file is too large.
    #[error("is larger than {} MB", MAX_BYTES >> 20)]
    TooLarge,
}

/// A loader of files that remembers which ones it has read.
#[derive(Debug, Default)]
pub(crate) struct FileLoader {
    files: Vec<(PathBuf, Option<FileStamp>)>,
}

impl FileLoader {
    /// Reads the text of a file.
    pub fn read(&mut self, path: &Path) -> Result<String, FileError> {
        // The metadata is taken before the text: a change in between is noticed later.
        self.files.push((path.to_owned(), stamp(path)));
        // Opening a pipe could wait for ever.
        if !std::fs::metadata(path)?.is_file() {
            return Err(FileError::NotRegular);
        }
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        if file.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
            return Err(FileError::TooLarge);
        }
        Ok(text)
    }

    /// Starts to watch the files that were read.
    pub fn watch(self) -> FileWatch {
        FileWatch { files: self.files, changed: None }
    }
}

impl subscribe::Loader for FileLoader {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), IncludeError> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = self.read(&path).map_err(|error| IncludeError::Unreadable(error.into()))?;
        Ok((path.display().to_string(), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_written_renamed_or_gone_are_noticed_once_they_are_still() {
        let directory = std::env::temp_dir().join(format!("subscription-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("rules.sub");
        std::fs::write(&path, "one").unwrap();
        let read = |path: &Path| {
            let mut loader = FileLoader::default();
            let text = loader.read(path).map_err(|error| error.to_string());
            (text, loader.watch())
        };
        let start = Instant::now();
        let later = |millis: u64| start + Duration::from_millis(millis);
        let (text, mut watched) = read(&path);
        assert!(text.as_deref() == Ok("one") && !watched.has_changed(later(0)) && !watched.has_changed(later(900)));

        // An editor renames a new file; another writer has not finished yet.
        std::fs::write(directory.join("new"), "two").unwrap();
        std::fs::rename(directory.join("new"), &path).unwrap();
        assert!(!watched.has_changed(later(1_000)) && !watched.has_changed(later(1_100)));
        std::fs::write(&path, "two and").unwrap();
        assert!(!watched.has_changed(later(1_250)), "it is being written");
        assert!(!watched.has_changed(later(1_400)) && watched.has_changed(later(1_500)));

        let (text, mut watched) = read(&path);
        assert_eq!(text.as_deref(), Ok("two and"));
        std::fs::remove_file(&path).unwrap();
        assert!(!watched.has_changed(later(2_000)) && watched.has_changed(later(2_300)));
        let (text, mut watched) = read(&path);
        assert!(text.is_err_and(|why| why.contains("cannot be read")));
        std::fs::write(&path, "three").unwrap();
        assert!(!watched.has_changed(later(3_000)) && watched.has_changed(later(3_300)));
        assert!(read(&directory).0.is_err_and(|why| why.contains("regular files")));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
