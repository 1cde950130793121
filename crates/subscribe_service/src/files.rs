//! The file of rules: reading it with what it includes, and noticing that it changed.
//!
//! Files are looked at a few times a second. That works wherever files do (editors that write a new file and rename it, network
//! file systems, directories that are mounted anew), and costs some calls of `stat`.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest file of rules, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// How long files have to stay the same before they are read: whoever writes one is then done with it.
const SETTLED: Duration = Duration::from_millis(200);

/// What tells a file from what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp([i64; 5], u64);

fn stamp(path: &Path) -> Option<Stamp> {
    let of = std::fs::metadata(path).ok()?;
    Some(Stamp([of.ino() as i64, of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec()], of.size()))
}

/// Files as they were when they were read, and since when they are otherwise.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    files: Vec<(PathBuf, Option<Stamp>)>,
    other: Option<(Vec<Option<Stamp>>, Instant)>,
}

impl Watched {
    /// Reads the files anew, whatever they are.
    pub fn forget(&mut self) {
        self.files.iter_mut().for_each(|(_, stamp)| *stamp = Some(Stamp([-1; 5], 0)));
    }

    /// Whether the files are others than those that were read, and have been so for a while.
    pub fn has_changed(&mut self, now: Instant) -> bool {
        let stamps: Vec<Option<Stamp>> = self.files.iter().map(|(path, _)| stamp(path)).collect();
        if stamps.iter().eq(self.files.iter().map(|(_, known)| known)) {
            self.other = None;
            return false;
        }
        match &self.other {
            Some((seen, since)) if *seen == stamps => now.duration_since(*since) >= SETTLED,
            _ => {
                self.other = Some((stamps, now));
                false
            }
        }
    }
}

/// Reads files, and notes which.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    files: Vec<(PathBuf, Option<Stamp>)>,
}

impl Disk {
    /// Reads a file's text; the reason if it cannot.
    pub fn read(&mut self, path: &Path) -> Result<String, String> {
        // From before it is read: what changes meanwhile is noticed later.
        self.files.push((path.to_owned(), stamp(path)));
        let failed = |error: std::io::Error| format!("cannot be read: {error}");
        // Opening something else may wait for ever.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err("is no file of text: rules are read from regular files".to_owned());
        }
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        match file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)? as u64 > MAX_BYTES {
            true => Err(format!("has more than {} MB", MAX_BYTES >> 20)),
            false => Ok(text),
        }
    }

    /// What was read, to be watched.
    pub fn watched(self) -> Watched {
        Watched { files: self.files, other: None }
    }
}

impl subscribe::Loader for Disk {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = self.read(&path)?;
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
            let mut disk = Disk::default();
            let text = disk.read(path);
            (text, disk.watched())
        };
        let start = Instant::now();
        let later = |millis: u64| start + Duration::from_millis(millis);
        let (text, mut watched) = read(&path);
        assert!(text.as_deref() == Ok("one") && !watched.has_changed(later(0)) && !watched.has_changed(later(900)));

        // As an editor does it; and a writer that is not done yet.
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
