//! The file in which rules that were added are kept: rules as text, with their ids in comments.
//!
//! ```text
//! stock == "GOOGL" : fwd(2) // id 17
//! // removed 17
//! // next 18
//! ```
//!
//! It grows at its end, line by line, so that keeping a rule costs the same whatever is kept already; when the service starts it
//! is written anew without what was removed; `next` is there so that no id is given again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const HEAD: &str = "// Rules that were added while a switch ran, kept by `triplane subscribe serve`. Change this file only while that is not\n\
                    // running; the next start goes on with it.\n";

/// The open file.
pub(crate) struct Kept {
    file: File,
}

/// What such a file says: the text that has rules, and of each rule by the place of its end, the id.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    removed: BTreeSet<u64>,
    next: u64,
}

impl Notes {
    /// The id of a rule that ends at a byte of a text: what the comment behind it says. Rules without one get the next.
    pub fn id(text: &str, end: usize) -> Option<u64> {
        let line = text.get(end..)?.lines().next()?;
        line.trim().strip_prefix("// id ")?.trim().parse().ok()
    }

    pub fn new(text: &str) -> Notes {
        let removed: BTreeSet<u64> =
            text.lines().filter_map(|line| line.trim().strip_prefix("// removed ")?.trim().parse().ok()).collect();
        let ids = text.lines().filter_map(|line| line.rsplit_once("// id ")?.1.trim().parse::<u64>().ok());
        let said = text.lines().filter_map(|line| line.trim().strip_prefix("// next ")?.trim().parse::<u64>().ok());
        let next = ids.chain(removed.iter().copied()).map(|id| id.saturating_add(1)).chain(said).max().unwrap_or(1);
        Notes { removed, next }
    }

    pub fn is_removed(&self, id: u64) -> bool {
        self.removed.contains(&id)
    }

    /// An id that none had.
    pub fn next(&self) -> u64 {
        self.next
    }
}

impl Kept {
    /// Writes the file anew with these rules, and keeps it open.
    pub fn begin<'a>(path: &Path, next: u64, rules: impl Iterator<Item = (u64, &'a str)>) -> std::io::Result<Kept> {
        let mut text = HEAD.to_owned();
        for (id, rule) in rules {
            line(&mut text, id, rule);
        }
        let _ = writeln!(text, "// next {next}");
        let beside = PathBuf::from(format!("{}.new", path.display()));
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        Ok(Kept { file: File::options().append(true).open(path)? })
    }

    /// Notes rules that came; they are on the disk when this returns.
    pub fn add<'a>(&mut self, rules: impl Iterator<Item = (u64, &'a str)>) -> std::io::Result<()> {
        let mut text = String::new();
        rules.for_each(|(id, rule)| line(&mut text, id, rule));
        self.append(&text)
    }

    /// Notes rules that went.
    pub fn remove(&mut self, ids: &[u64]) -> std::io::Result<()> {
        self.append(&ids.iter().map(|id| format!("// removed {id}\n")).collect::<String>())
    }

    fn append(&mut self, text: &str) -> std::io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }
}

fn line(text: &mut String, id: u64, rule: &str) {
    let _ = writeln!(text, "{rule} // id {id}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_with_its_ids() {
        let path = std::env::temp_dir().join(format!("subscription-kept-{}", std::process::id()));
        let mut kept = Kept::begin(&path, 6, [(5, "stock == \"A\" : fwd(1)")].into_iter()).unwrap();
        kept.add([(6, "price > 3\n  : fwd(2)"), (7, "true : fwd(3)")].into_iter()).unwrap();
        kept.remove(&[5, 7]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let notes = Notes::new(&text);
        assert_eq!((notes.next(), [5, 6, 7].map(|id| notes.is_removed(id))), (8, [true, false, true]), "{text}");
        let end = |rule: &str| text.find(rule).unwrap() + rule.len();
        assert_eq!((Notes::id(&text, end("fwd(2)")), Notes::id(&text, end("\"A\" : fwd(1)"))), (Some(6), Some(5)));
        drop(Kept::begin(&path, notes.next(), [].into_iter()).unwrap());
        assert_eq!(Notes::new(&std::fs::read_to_string(&path).unwrap()).next(), 8, "ids are not given again");
        std::fs::remove_file(&path).unwrap();
    }
}
