//! The file in which rules that were added are kept: a JSON object a line.
//!
//! ```text
//! {"kept_rules":1}
//! {"id":17,"rule":"stock == \"GOOGL\" : fwd(2)"}
//! {"removed":17}
//! {"next":18}
//! ```
//!
//! It grows at its end, line by line, so that keeping a rule costs the same whatever is kept already; when the service starts it
//! is written anew without what was removed; `next` is there so that no id is given again. What a rule's text says is never
//! taken for a note. A last line without an end was not acknowledged, and is left out.
//!
//! Whoever has it open has locked it, and it is one's own only as long as its name leads to it.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::Disk;

/// The largest id that is taken from a file: there are others behind it.
const MOST: u64 = u64::MAX / 2;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    /// What kind of file this is, and which form of it.
    Head { kept_rules: u32 },
    /// A rule that came.
    Rule { id: u64, rule: String },
    /// A rule that went.
    Removed { removed: u64 },
    /// No rule has had this id, or a higher one.
    Next { next: u64 },
}

const HEAD: Line = Line::Head { kept_rules: 1 };

fn write(text: &mut String, line: &Line) {
    text.push_str(&serde_json::to_string(line).expect("numbers and texts are JSON"));
    text.push('\n');
}

/// What such a file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The rules, by their ids.
    pub rules: BTreeMap<u64, String>,
    /// An id that none had.
    pub next: u64,
}

impl Notes {
    /// Reads the text of a file; an empty one says nothing.
    ///
    /// # Errors
    /// What it is that cannot be read, for people.
    fn read(text: &str) -> Result<Notes, String> {
        let mut notes = Notes { rules: BTreeMap::new(), next: 1 };
        // What follows the last line's end is a line that was never finished.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        if whole.is_empty() && !text.is_empty() || !whole.is_empty() && !is_head(whole) {
            return Err(
                "holds something else than kept rules, and is left as it is: give --keep a file of its own".to_owned()
            );
        }
        for (at, line) in whole.lines().enumerate().skip(1) {
            let wrong = |why: &str| format!("cannot be understood in line {}: {why}; take the line away", at + 1);
            let line = serde_json::from_str(line).map_err(|_| wrong("it is no rule with an id"))?;
            let (Line::Rule { id, .. } | Line::Removed { removed: id } | Line::Next { next: id }) = line else {
                return Err(wrong("a file of kept rules begins once"));
            };
            if id == 0 || id > MOST {
                return Err(wrong(&format!("{id} is no id of a rule")));
            }
            notes.next = notes.next.max(if matches!(line, Line::Next { .. }) { id } else { id + 1 });
            let before = match line {
                Line::Rule { id, rule } => notes.rules.insert(id, rule),
                Line::Removed { removed } => notes.rules.remove(&removed).and(None),
                _ => None,
            };
            if before.is_some() {
                return Err(wrong(&format!("there is a rule {id} before it")));
            }
        }
        Ok(notes)
    }
}

fn is_head(text: &str) -> bool {
    let line = text.lines().next().map(serde_json::from_str);
    matches!(line, Some(Ok(Line::Head { kept_rules: 1 })))
}

/// What is asked of the disk, so that tests can have each of these go wrong.
pub(crate) trait Medium {
    /// Writes all of the text at the file's end, or a part and fails.
    fn write(&self, file: &mut File, text: &[u8]) -> std::io::Result<()> {
        file.write_all(text)
    }

    /// Waits until the file is on the disk.
    fn sync(&self, file: &File) -> std::io::Result<()> {
        file.sync_all()
    }

    /// Takes away what is behind `length` bytes.
    fn cut(&self, file: &File, length: u64) -> std::io::Result<()> {
        file.set_len(length)
    }
}

/// The disk that there is.
pub(crate) struct Disks;

impl Medium for Disks {}

/// The open file, which nobody else has.
pub(crate) struct Kept<M = Disks> {
    path: PathBuf,
    file: File,
    /// Its length without what could not be written whole.
    length: u64,
    /// What is behind that length, or may still be there when the power fails: it was refused.
    is_torn: bool,
    medium: M,
}

impl Kept {
    /// Opens a file, or makes it; and what it says. It is not changed.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn open(path: &Path) -> Result<(Kept, Notes), String> {
        let failed = |error: Error| format!("cannot be opened: {error}");
        if std::fs::metadata(path).is_ok_and(|of| !of.is_file()) {
            return Err("is no regular file: rules cannot be kept there".to_owned());
        }
        // Who subscribes to what is nobody else's business.
        let file = File::options().create(true).append(true).mode(0o600).open(path).map_err(failed)?;
        // What is written anew takes the place of the file, not of a link that leads to it.
        let path = &path.canonicalize().map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err("is in use by another service: give each a file of its own for --keep".to_owned());
            }
            Err(TryLockError::Error(error)) => return Err(format!("cannot be locked: {error}")),
        }
        let kept = Kept { path: path.to_owned(), file, length: 0, is_torn: false, medium: Disks };
        kept.is_ours().map_err(|error| error.to_string())?;
        let notes = Notes::read(&Disk::default().read(path)?)?;
        Ok((kept, notes))
    }
}

impl<M: Medium> Kept<M> {
    /// Writes the file anew with these rules.
    pub fn begin<'a>(&mut self, next: u64, rules: impl Iterator<Item = (u64, &'a str)>) -> std::io::Result<()> {
        let mut text = String::new();
        write(&mut text, &HEAD);
        rules.for_each(|(id, rule)| write(&mut text, &Line::Rule { id, rule: rule.to_owned() }));
        write(&mut text, &Line::Next { next });
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        // What is left of a service that was stopped while it wrote, or a link that somebody put there.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let before = self.file.metadata()?;
        let mut file = File::options().create_new(true).append(true).mode(before.mode()).open(&beside)?;
        file.set_permissions(before.permissions())?;
        // Only root may give files away: others own both.
        let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
        // Before anybody can find it under the other name.
        file.try_lock().map_err(Error::from)?;
        self.medium.write(&mut file, text.as_bytes())?;
        self.medium.sync(&file)?;
        std::fs::rename(&beside, &self.path)?;
        if let Some(directory) = self.path.parent() {
            // A name that is not on the disk yet would be lost with the power.
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            File::open(directory).and_then(|directory| self.medium.sync(&directory))?;
        }
        (self.file, self.length, self.is_torn) = (file, text.len() as u64, false);
        Ok(())
    }

    /// Notes rules that came; they are on the disk when this returns.
    pub fn add<'a>(&mut self, rules: impl Iterator<Item = (u64, &'a str)>) -> std::io::Result<()> {
        let mut text = String::new();
        rules.for_each(|(id, rule)| write(&mut text, &Line::Rule { id, rule: rule.to_owned() }));
        self.append(&text)
    }

    /// Notes rules that went.
    pub fn remove(&mut self, ids: &[u64]) -> std::io::Result<()> {
        let mut text = String::new();
        ids.iter().for_each(|id| write(&mut text, &Line::Removed { removed: *id }));
        self.append(&text)
    }

    /// Notes that ids below this one were given.
    pub fn next(&mut self, next: u64) -> std::io::Result<()> {
        let mut text = String::new();
        write(&mut text, &Line::Next { next });
        self.append(&text)
    }

    /// Adds lines, all of them or none.
    fn append(&mut self, text: &str) -> std::io::Result<()> {
        self.is_ours()?;
        if self.is_torn {
            self.mend()?;
        }
        let written = self.medium.write(&mut self.file, text.as_bytes()).and_then(|()| self.medium.sync(&self.file));
        match written {
            Ok(()) => self.length += text.len() as u64,
            Err(_) => {
                self.is_torn = true;
                // If this fails as well, it is tried again before anything else is added.
                let _ = self.mend();
            }
        }
        written
    }

    /// Takes away what was refused, for good: a line that comes back with the next start would be a rule that nobody has.
    fn mend(&mut self) -> std::io::Result<()> {
        self.medium.cut(&self.file, self.length)?;
        self.medium.sync(&self.file)?;
        self.is_torn = false;
        Ok(())
    }

    /// That what has the name is what is open.
    fn is_ours(&self) -> std::io::Result<()> {
        let of = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (of.dev(), of.ino()) => Ok(()),
            _ => Err(Error::other("was taken away or replaced while it was in use")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("subscription-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// A disk on which the things that are named go wrong, as often as they are.
    #[derive(Default)]
    struct Failing(std::cell::RefCell<Vec<&'static str>>);

    impl Failing {
        fn fails(&self, what: &str) -> bool {
            let mut left = self.0.borrow_mut();
            let at = left.iter().position(|fails| *fails == what);
            at.is_some_and(|at| left.remove(at) == what)
        }
    }

    fn full() -> Error {
        Error::from(std::io::ErrorKind::StorageFull)
    }

    impl Medium for Failing {
        fn write(&self, file: &mut File, text: &[u8]) -> std::io::Result<()> {
            match self.fails("write") {
                true => file.write_all(&text[..text.len() / 2]).and(Err(full())),
                false => file.write_all(text),
            }
        }

        fn sync(&self, file: &File) -> std::io::Result<()> {
            if self.fails("sync") { Err(full()) } else { file.sync_all() }
        }

        fn cut(&self, file: &File, length: u64) -> std::io::Result<()> {
            if self.fails("cut") { Err(full()) } else { file.set_len(length) }
        }
    }

    /// A file with one rule, on a disk that fails as it is told; the file's directory, its path, and what is in it.
    fn failing(name: &str) -> (Kept<Failing>, PathBuf, PathBuf, Vec<u8>) {
        let directory = directory(name);
        let rules = directory.join("rules");
        let (Kept { path, file, length, is_torn, .. }, _) = Kept::open(&rules).unwrap();
        let mut kept = Kept { path, file, length, is_torn, medium: Failing::default() };
        kept.begin(2, [(1, "true : fwd(1)")].into_iter()).unwrap();
        let before = std::fs::read(&rules).unwrap();
        (kept, directory, rules, before)
    }

    #[test]
    fn what_is_refused_is_not_in_the_file_whatever_went_wrong() {
        let (mut kept, directory, path, before) = failing("failing");
        let cases: [&[&str]; 4] = [&["write"], &["sync"], &["write", "sync"], &["sync", "sync", "sync"]];
        for (id, fails) in (2..).zip(cases) {
            *kept.medium.0.borrow_mut() = fails.to_vec();
            assert!(kept.add([(id, "true : fwd(2)")].into_iter()).is_err(), "{fails:?}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{fails:?}");
            kept.medium.0.borrow_mut().clear();
        }
        kept.next(2).unwrap();
        let before = std::fs::read(&path).unwrap();
        // What cannot be taken away at once is taken away before anything is added, and nothing is added until then.
        *kept.medium.0.borrow_mut() = vec!["write", "cut", "cut"];
        assert!(kept.add([(7, "true : fwd(2)")].into_iter()).is_err());
        assert!(std::fs::read(&path).unwrap().len() > before.len(), "the disk did not fail");
        assert_eq!(read(&path).rules.len(), 1, "half a line is no rule");
        assert!(kept.add([(8, "true : fwd(2)")].into_iter()).is_err(), "it is added behind half a line");
        kept.add([(9, "true : fwd(9)")].into_iter()).unwrap();
        assert_eq!(read(&path).rules.into_keys().collect::<Vec<u64>>(), [1, 9]);
        // A line that is whole and refused is not left to the next start, either.
        *kept.medium.0.borrow_mut() = vec!["sync", "cut"];
        assert!(kept.remove(&[9]).is_err());
        kept.next(20).unwrap();
        assert_eq!(read(&path).rules.into_keys().collect::<Vec<u64>>(), [1, 9]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_anew_stays_as_it_was() {
        let (mut kept, directory, path, before) = failing("anew");
        for fails in ["write", "sync"] {
            *kept.medium.0.borrow_mut() = vec![fails];
            assert!(kept.begin(5, [(4, "true : fwd(4)")].into_iter()).is_err(), "{fails}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{fails}");
        }
        kept.add([(5, "true : fwd(5)")].into_iter()).unwrap();
        assert_eq!(read(&path).rules.into_keys().collect::<Vec<u64>>(), [1, 5]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    fn read(path: &Path) -> Notes {
        Notes::read(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_again_with_its_ids_whatever_rules_say() {
        let directory = directory("kept");
        let path = directory.join("rules");
        let (mut kept, notes) = Kept::open(&path).unwrap();
        assert_eq!(notes, Notes { next: 1, ..Notes::default() });
        kept.begin(6, [(5, "stock == \"A\" : fwd(1)")].into_iter()).unwrap();
        let sly = "price > 3 // id 99\n// removed 5\n{\"removed\":5}\n : fwd(2)";
        kept.add([(6, sly), (7, "true : fwd(3)")].into_iter()).unwrap();
        kept.remove(&[7]).unwrap();
        let expected = [(5, "stock == \"A\" : fwd(1)"), (6, sly)].map(|(id, rule)| (id, rule.to_owned()));
        assert_eq!(read(&path), Notes { rules: expected.into(), next: 8 });
        kept.next(12).unwrap();
        kept.begin(read(&path).next, [].into_iter()).unwrap();
        assert_eq!(read(&path), Notes { next: 12, ..Notes::default() }, "ids are not given again");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn links_and_modes_stay_and_nothing_else_is_written_through_a_link() {
        let directory = directory("links");
        let [name, target, other] = ["rules", "target", "other"].map(|name| directory.join(name));
        std::fs::write(&target, "").unwrap();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::write(&other, "somebody's").unwrap();
        symlink("target", &name).unwrap();
        symlink("other", directory.join("target.new")).unwrap();
        let (mut kept, _) = Kept::open(&name).unwrap();
        kept.begin(2, [(1, "true : fwd(1)")].into_iter()).unwrap();
        kept.add([(2, "true : fwd(2)")].into_iter()).unwrap();
        assert!(std::fs::symlink_metadata(&name).unwrap().is_symlink());
        assert_eq!(read(&target).rules.into_keys().collect::<Vec<u64>>(), [1, 2]);
        assert_eq!(std::fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "somebody's");
        let alone = directory.join("alone");
        Kept::open(&alone).unwrap().0.begin(1, [].into_iter()).unwrap();
        assert_eq!(std::fs::metadata(&alone).unwrap().mode() & 0o777, 0o600);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_is_one_service_s_and_stays_it() {
        let directory = directory("lock");
        let path = directory.join("rules");
        let (mut kept, _) = Kept::open(&path).unwrap();
        let second = || Kept::open(&path).map(|_| ()).unwrap_err();
        assert!(second().contains("in use by another service"));
        kept.begin(1, [].into_iter()).unwrap();
        assert!(second().contains("in use by another service"), "the new file is locked, too");
        std::fs::remove_file(&path).unwrap();
        assert!(kept.add([(1, "true : fwd(1)")].into_iter()).unwrap_err().to_string().contains("taken away"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_was_not_written_whole_is_left_out_and_other_files_are_left_alone() {
        let whole = "{\"kept_rules\":1}\n{\"id\":2,\"rule\":\"true : fwd(1)\"}\n";
        let notes = Notes::read(&format!("{whole}{{\"id\":3,\"rule\":\"tr")).unwrap();
        assert_eq!((notes.rules.len(), notes.next), (1, 3));
        for (text, why) in [
            ("stock == \"A\" : fwd(1)\n", "something else than kept rules"),
            ("stock == \"A\" : fwd(1)", "something else than kept rules"),
            ("{\"kept_rules\":2}\n", "something else than kept rules"),
            ("{\"kept_rules\":1}\n{\"id\":2}\n{\"next\":3}\n", "in line 2: it is no rule with an id"),
            ("{\"kept_rules\":1}\n{\"kept_rules\":1}\n", "begins once"),
            ("{\"kept_rules\":1}\n{\"id\":18446744073709551615,\"rule\":\"\"}\n", "18446744073709551615 is no id"),
            (
                "{\"kept_rules\":1}\n{\"id\":2,\"rule\":\"\"}\n{\"id\":2,\"rule\":\"\"}\n",
                "line 3: there is a rule 2 before it",
            ),
        ] {
            let error = Notes::read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
