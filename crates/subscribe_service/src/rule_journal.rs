//! Keeps the journal of rules that were added: a file with one JSON object in each line.
//!
//! ```text
//! {"kept_rules":1}
//! {"id":17,"rule":"stock == \"GOOGL\" : fwd(2)","owner":"alice@example.com"}
//! {"removed":17}
//! {"next":18}
//! ```
//!
//! Changes are appended, so the cost of a change does not depend on the length of the journal. At the start of the
//! service the journal is compacted: removed rules are dropped. `next` prevents that an id is reused. The text of a
//! rule is a JSON string, so it cannot be mistaken for another record. A last line without a line feed was never
//! acknowledged, and is ignored.
//!
//! The open file is locked against other services. An append fails if the path no longer leads to the open file.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::rule_files::{FileError, FileLoader};

/// Maximum id in a journal, which leaves as many ids for later rules.
const MAX_ID: u64 = u64::MAX / 2;

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum JournalLine {
    /// The first line: the kind of the file, and the version of its format.
    Head { kept_rules: u32 },
    /// An added rule, with the user that added it, if that is known.
    Rule {
        id: u64,
        rule: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// A removed rule.
    Removed { removed: u64 },
    /// The first id that no rule has had.
    Next { next: u64 },
}

const HEAD: JournalLine = JournalLine::Head { kept_rules: 1 };

/// Emits a line.
fn emit(text: &mut String, line: &JournalLine) {
    text.push_str(&serde_json::to_string(line).expect("numbers and texts are JSON"));
    text.push('\n');
}

/// A journal that cannot be used. The texts follow the file's name in a sentence.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system cannot open the file.
    #[error("cannot be opened: {0}")]
    Open(#[source] Error),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// The path leads to a directory, a pipe or a device.
    #[error("is not a regular file: rules cannot be stored there")]
    NotRegular,
    /// Another service has locked the file.
    #[error("is in use by another service")]
    InUse,
    /// The operating system cannot lock the file.
    #[error("cannot be locked: {0}")]
    Lock(#[source] Error),
    /// The path leads to another file than the open one.
    #[error("was removed or replaced while in use")]
    Replaced,
    /// The file has other content.
    #[error("is not a file of stored rules and is left unchanged")]
    NotAJournal,
    /// A line has a mistake. Lines are numbered from 1.
    #[error("is invalid in line {number}: {mistake}; remove the line")]
    Line {
        /// The number of the line.
        number: usize,
        /// The mistake.
        mistake: LineMistake,
    },
}

/// A mistake in a line of a journal.
#[derive(Debug, thiserror::Error)]
pub enum LineMistake {
    /// The line is not one of the known JSON objects.
    #[error("not a rule with an id")]
    NotARule,
    /// The line is a second first line.
    #[error("repeated file header")]
    SecondHead,
    /// The id is out of range.
    #[error("{0} is not a valid rule id")]
    InvalidId(u64),
    /// An earlier rule has the id.
    #[error("duplicate rule id {0}")]
    DuplicateId(u64),
}

/// A rule to store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredRule<'a> {
    pub text: &'a str,
    pub owner: Option<&'a str>,
}

impl StoredRule<'_> {
    fn line(self, id: u64) -> JournalLine {
        JournalLine::Rule { id, rule: self.text.to_owned(), owner: self.owner.map(str::to_owned) }
    }
}

/// A rule of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalRule {
    pub text: String,
    /// The user that added it, if that is known.
    pub owner: Option<String>,
}

/// The content of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalContent {
    /// The rules, by their ids.
    pub rules: BTreeMap<u64, JournalRule>,
    /// The first id that no rule has had.
    pub next: u64,
}

impl JournalContent {
    /// Parses the text of a journal. An empty text is an empty journal.
    ///
    /// # Errors
    /// If the text is not a journal, or a line cannot be parsed.
    fn parse(text: &str) -> Result<JournalContent, JournalError> {
        let mut content = JournalContent { rules: BTreeMap::new(), next: 1 };
        // A text after the last line feed is a line that was never finished.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        if whole.is_empty() && !text.is_empty() || !whole.is_empty() && !is_head(whole) {
            return Err(JournalError::NotAJournal);
        }
        for (at, line) in whole.lines().enumerate().skip(1) {
            let wrong = |mistake| JournalError::Line { number: at + 1, mistake };
            let line = serde_json::from_str(line).map_err(|_| wrong(LineMistake::NotARule))?;
            let (JournalLine::Rule { id, .. } | JournalLine::Removed { removed: id } | JournalLine::Next { next: id }) =
                line
            else {
                return Err(wrong(LineMistake::SecondHead));
            };
            if id == 0 || id > MAX_ID {
                return Err(wrong(LineMistake::InvalidId(id)));
            }
            content.next = content.next.max(if matches!(line, JournalLine::Next { .. }) { id } else { id + 1 });
            let before = match line {
                JournalLine::Rule { id, rule: text, owner } => content.rules.insert(id, JournalRule { text, owner }),
                JournalLine::Removed { removed } => content.rules.remove(&removed).and(None),
                _ => None,
            };
            if before.is_some() {
                return Err(wrong(LineMistake::DuplicateId(id)));
            }
        }
        Ok(content)
    }
}

/// Whether a text begins with the first line of a journal.
fn is_head(text: &str) -> bool {
    let line = text.lines().next().map(serde_json::from_str);
    matches!(line, Some(Ok(JournalLine::Head { kept_rules: 1 })))
}

/// The operations on storage that can fail, so that tests can inject failures.
pub(crate) trait JournalStorage {
    /// Appends a text to the file. A failure may leave a part of it there.
    fn write(&self, file: &mut File, text: &[u8]) -> std::io::Result<()> {
        file.write_all(text)
    }

    /// Waits until the file is on stable storage.
    fn sync(&self, file: &File) -> std::io::Result<()> {
        file.sync_all()
    }

    /// Truncates the file to `length` bytes.
    fn truncate(&self, file: &File, length: u64) -> std::io::Result<()> {
        file.set_len(length)
    }
}

/// The storage of this machine.
pub(crate) struct LocalStorage;

impl JournalStorage for LocalStorage {}

/// The open journal, locked against other services.
pub(crate) struct RuleJournal<M = LocalStorage> {
    path: PathBuf,
    file: File,
    /// Length in bytes of the acknowledged lines.
    length_bytes: u64,
    /// Whether lines of a failed append may follow, now or after a power failure.
    is_torn: bool,
    storage: M,
}

impl RuleJournal {
    /// Opens a journal, or creates an empty one, and returns its content. The file is not changed.
    ///
    /// # Errors
    /// If the file cannot be opened or locked, or is not a journal.
    pub fn open(path: &Path) -> Result<(RuleJournal, JournalContent), JournalError> {
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(JournalError::NotRegular);
        }
        // Subscriptions are private to the user that runs the service.
        let file = File::options().create(true).append(true).mode(0o600).open(path).map_err(JournalError::Open)?;
        // Compaction replaces the file itself, not a symbolic link that leads to it.
        let path = &path.canonicalize().map_err(JournalError::Open)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::InUse);
            }
            Err(TryLockError::Error(error)) => return Err(JournalError::Lock(error)),
        }
        let journal =
            RuleJournal { path: path.to_owned(), file, length_bytes: 0, is_torn: false, storage: LocalStorage };
        journal.check_path()?;
        let content = JournalContent::parse(&FileLoader::default().read(path)?)?;
        Ok((journal, content))
    }
}

impl<M: JournalStorage> RuleJournal<M> {
    /// Replaces the file by one with these rules only.
    pub fn compact<'a>(
        &mut self,
        next: u64,
        rules: impl Iterator<Item = (u64, StoredRule<'a>)>,
    ) -> std::io::Result<()> {
        let mut text = String::new();
        emit(&mut text, &HEAD);
        rules.for_each(|(id, rule)| emit(&mut text, &rule.line(id)));
        emit(&mut text, &JournalLine::Next { next });
        let mut new_path = self.path.clone().into_os_string();
        new_path.push(".new");
        // A service that was stopped here may have left this file, or another user may have put a link here.
        match std::fs::remove_file(&new_path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let before = self.file.metadata()?;
        let mut file = File::options().create_new(true).append(true).mode(before.mode()).open(&new_path)?;
        let replaced = self.fill(&mut file, &before, &text).and_then(|()| std::fs::rename(&new_path, &self.path));
        replaced.inspect_err(|_| {
            // If this fails, the next compaction removes it.
            let _ = std::fs::remove_file(&new_path);
        })?;
        if let Some(directory) = self.path.parent() {
            // Without this a power failure could lose the new name.
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            File::open(directory).and_then(|directory| self.storage.sync(&directory))?;
        }
        (self.file, self.length_bytes, self.is_torn) = (file, text.len() as u64, false);
        Ok(())
    }

    /// Writes a new file, with the owner, the permissions and the lock of the one that it replaces.
    fn fill(&self, file: &mut File, before: &std::fs::Metadata, text: &str) -> std::io::Result<()> {
        file.set_permissions(before.permissions())?;
        // Only root may change the owner. Without it, both files have one owner.
        let _ = fchown(&*file, Some(before.uid()), Some(before.gid()));
        // The lock is taken before the file has its final name.
        file.try_lock().map_err(Error::from)?;
        self.storage.write(file, text.as_bytes())?;
        self.storage.sync(file)
    }

    /// Appends added rules. They are on stable storage when this returns.
    pub fn add<'a>(&mut self, rules: impl Iterator<Item = (u64, StoredRule<'a>)>) -> std::io::Result<()> {
        let mut text = String::new();
        rules.for_each(|(id, rule)| emit(&mut text, &rule.line(id)));
        self.append(&text)
    }

    /// Appends the removal of rules.
    pub fn remove(&mut self, ids: &[u64]) -> std::io::Result<()> {
        let mut text = String::new();
        ids.iter().for_each(|id| emit(&mut text, &JournalLine::Removed { removed: *id }));
        self.append(&text)
    }

    /// Appends that ids below this one were in use.
    pub fn reserve_ids(&mut self, next: u64) -> std::io::Result<()> {
        let mut text = String::new();
        emit(&mut text, &JournalLine::Next { next });
        self.append(&text)
    }

    /// Appends lines, all or none.
    fn append(&mut self, text: &str) -> std::io::Result<()> {
        self.check_path().map_err(Error::other)?;
        if self.is_torn {
            self.repair()?;
        }
        let written = self.storage.write(&mut self.file, text.as_bytes()).and_then(|()| self.storage.sync(&self.file));
        match written {
            Ok(()) => self.length_bytes += text.len() as u64,
            Err(_) => {
                self.is_torn = true;
                // A repair that fails is tried again before the next append.
                let _ = self.repair();
            }
        }
        written
    }

    /// Removes the lines of a failed append from stable storage. A line that reappeared at the next start would be a
    /// rule that no client has.
    fn repair(&mut self) -> std::io::Result<()> {
        self.storage.truncate(&self.file, self.length_bytes)?;
        self.storage.sync(&self.file)?;
        self.is_torn = false;
        Ok(())
    }

    /// Checks that the path leads to the open file.
    fn check_path(&self) -> Result<(), JournalError> {
        let open = self.file.metadata().map_err(JournalError::Open)?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => Ok(()),
            _ => Err(JournalError::Replaced),
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

    /// Storage on which the named operations fail, once for each name.
    #[derive(Default)]
    struct Failing(std::cell::RefCell<Vec<&'static str>>);

    impl Failing {
        fn fails(&self, what: &str) -> bool {
            let mut left = self.0.borrow_mut();
            let at = left.iter().position(|fails| *fails == what);
            at.is_some_and(|at| left.remove(at) == what)
        }
    }

    fn rule(text: &str) -> StoredRule<'_> {
        StoredRule { text, owner: None }
    }

    fn owned(text: &str) -> StoredRule<'_> {
        StoredRule { text, owner: Some("alice \"}\n") }
    }

    fn full() -> Error {
        Error::from(std::io::ErrorKind::StorageFull)
    }

    impl JournalStorage for Failing {
        fn write(&self, file: &mut File, text: &[u8]) -> std::io::Result<()> {
            if self.fails("write") {
                file.write_all(&text[..text.len() / 2]).and(Err(full()))
            } else {
                file.write_all(text)
            }
        }

        fn sync(&self, file: &File) -> std::io::Result<()> {
            if self.fails("sync") { Err(full()) } else { file.sync_all() }
        }

        fn truncate(&self, file: &File, length: u64) -> std::io::Result<()> {
            if self.fails("truncate") { Err(full()) } else { file.set_len(length) }
        }
    }

    /// Creates a journal with one rule on failing storage. Returns it with its directory, its path and its content.
    fn failing(name: &str) -> (RuleJournal<Failing>, PathBuf, PathBuf, Vec<u8>) {
        let directory = directory(name);
        let rules = directory.join("rules");
        let (RuleJournal { path, file, length_bytes, is_torn, .. }, _) = RuleJournal::open(&rules).unwrap();
        let mut journal = RuleJournal { path, file, length_bytes, is_torn, storage: Failing::default() };
        journal.compact(2, [(1, rule("true : fwd(1)"))].into_iter()).unwrap();
        let before = std::fs::read(&rules).unwrap();
        (journal, directory, rules, before)
    }

    #[test]
    fn a_failed_append_leaves_no_line_in_the_file() {
        let (mut journal, directory, path, before) = failing("failing");
        let cases: [&[&str]; 4] = [&["write"], &["sync"], &["write", "sync"], &["sync", "sync", "sync"]];
        for (id, fails) in (2..).zip(cases) {
            *journal.storage.0.borrow_mut() = fails.to_vec();
            assert!(journal.add([(id, rule("true : fwd(2)"))].into_iter()).is_err(), "{fails:?}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{fails:?}");
            journal.storage.0.borrow_mut().clear();
        }
        journal.reserve_ids(2).unwrap();
        let before = std::fs::read(&path).unwrap();
        // What cannot be taken away at once is taken away before anything is added, and nothing is added until then.
        *journal.storage.0.borrow_mut() = vec!["write", "truncate", "truncate"];
        assert!(journal.add([(7, rule("true : fwd(2)"))].into_iter()).is_err());
        assert!(std::fs::read(&path).unwrap().len() > before.len(), "the disk did not fail");
        assert_eq!(read(&path).rules.len(), 1, "half a line is not a rule");
        assert!(journal.add([(8, rule("true : fwd(2)"))].into_iter()).is_err(), "it is added behind half a line");
        journal.add([(9, rule("true : fwd(9)"))].into_iter()).unwrap();
        assert_eq!(read(&path).rules.into_keys().collect::<Vec<u64>>(), [1, 9]);
        // A line that is whole and refused is not left to the next start, either.
        *journal.storage.0.borrow_mut() = vec!["sync", "truncate"];
        assert!(journal.remove(&[9]).is_err());
        journal.reserve_ids(20).unwrap();
        assert_eq!(read(&path).rules.into_keys().collect::<Vec<u64>>(), [1, 9]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_failed_compaction_leaves_the_file_unchanged() {
        let (mut journal, directory, path, before) = failing("anew");
        for fails in ["write", "sync"] {
            *journal.storage.0.borrow_mut() = vec![fails];
            assert!(journal.compact(5, [(4, rule("true : fwd(4)"))].into_iter()).is_err(), "{fails}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{fails}");
            assert!(!directory.join("rules.new").exists(), "{fails}");
        }
        journal.add([(5, rule("true : fwd(5)"))].into_iter()).unwrap();
        assert_eq!(read(&path).rules.into_keys().collect::<Vec<u64>>(), [1, 5]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    fn read(path: &Path) -> JournalContent {
        JournalContent::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn rules_of_any_text_are_read_again_with_their_ids() {
        let directory = directory("kept");
        let path = directory.join("rules");
        let (mut journal, content) = RuleJournal::open(&path).unwrap();
        assert_eq!(content, JournalContent { next: 1, ..JournalContent::default() });
        journal.compact(6, [(5, rule("stock == \"A\" : fwd(1)"))].into_iter()).unwrap();
        let sly = "price > 3 // id 99\n// removed 5\n{\"removed\":5}\n : fwd(2)";
        journal.add([(6, owned(sly)), (7, rule("true : fwd(3)"))].into_iter()).unwrap();
        journal.remove(&[7]).unwrap();
        let expected = [(5, "stock == \"A\" : fwd(1)", None), (6, sly, Some("alice \"}\n"))];
        let expected = expected
            .map(|(id, text, owner)| (id, JournalRule { text: text.to_owned(), owner: owner.map(str::to_owned) }));
        assert_eq!(read(&path), JournalContent { rules: expected.into(), next: 8 });
        journal.reserve_ids(12).unwrap();
        journal.compact(read(&path).next, [].into_iter()).unwrap();
        assert_eq!(read(&path), JournalContent { next: 12, ..JournalContent::default() }, "ids are not given again");
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
        let (mut journal, _) = RuleJournal::open(&name).unwrap();
        journal.compact(2, [(1, rule("true : fwd(1)"))].into_iter()).unwrap();
        journal.add([(2, rule("true : fwd(2)"))].into_iter()).unwrap();
        assert!(std::fs::symlink_metadata(&name).unwrap().is_symlink());
        assert_eq!(read(&target).rules.into_keys().collect::<Vec<u64>>(), [1, 2]);
        assert_eq!(std::fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "somebody's");
        let alone = directory.join("alone");
        RuleJournal::open(&alone).unwrap().0.compact(1, [].into_iter()).unwrap();
        assert_eq!(std::fs::metadata(&alone).unwrap().mode() & 0o777, 0o600);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_journal_belongs_to_one_service() {
        let directory = directory("lock");
        let path = directory.join("rules");
        let (mut journal, _) = RuleJournal::open(&path).unwrap();
        let second = || RuleJournal::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(second().contains("in use by another service"));
        journal.compact(1, [].into_iter()).unwrap();
        assert!(second().contains("in use by another service"), "the new file is locked, too");
        std::fs::remove_file(&path).unwrap();
        assert!(
            journal
                .add([(1, rule("true : fwd(1)"))].into_iter())
                .unwrap_err()
                .to_string()
                .contains("removed or replaced")
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn unfinished_lines_are_ignored_and_other_files_are_left_alone() {
        let whole = "{\"kept_rules\":1}\n{\"id\":2,\"rule\":\"true : fwd(1)\"}\n";
        let content = JournalContent::parse(&format!("{whole}{{\"id\":3,\"rule\":\"tr")).unwrap();
        assert_eq!((content.rules.len(), content.next), (1, 3));
        for (text, why) in [
            ("stock == \"A\" : fwd(1)\n", "not a file of stored rules"),
            ("stock == \"A\" : fwd(1)", "not a file of stored rules"),
            ("{\"kept_rules\":2}\n", "not a file of stored rules"),
            ("{\"kept_rules\":1}\n{\"id\":2}\n{\"next\":3}\n", "in line 2: not a rule with an id"),
            ("{\"kept_rules\":1}\n{\"kept_rules\":1}\n", "repeated file header"),
            (
                "{\"kept_rules\":1}\n{\"id\":18446744073709551615,\"rule\":\"\"}\n",
                "18446744073709551615 is not a valid rule id",
            ),
            ("{\"kept_rules\":1}\n{\"id\":2,\"rule\":\"\"}\n{\"id\":2,\"rule\":\"\"}\n", "line 3: duplicate rule id 2"),
        ] {
            let error = JournalContent::parse(text).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
