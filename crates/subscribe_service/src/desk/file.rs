//! The file of rules, and the one in which added rules are kept, as the desk takes them in.

use std::path::Path;

use subscribe::NoIncludes;

use super::{Desk, Refused};
use crate::book::{Origin, Read};
use crate::files::{Disk, Watched};
use crate::kept::Kept;
use crate::status::Event;

impl Desk<'_> {
    /// Reads the rules that were added before.
    pub(super) fn take_up(&mut self, path: &Path) -> Result<Read, String> {
        let (kept, notes) = Kept::open(path).map_err(|why| format!("{} {why}", path.display()))?;
        let text: Vec<&str> = notes.rules.values().map(String::as_str).collect();
        let mut read = self.book.read(&path.display().to_string(), text.join("\n"), &mut NoIncludes);
        if read.diagnostics.has_errors() {
            return Err(read.diagnostics.render(&read.map, false));
        }
        let mut rules = std::mem::take(&mut read.rules);
        if rules.len() != notes.rules.len() {
            return Err(format!("{} has lines that are not one rule each", path.display()));
        }
        rules.iter_mut().zip(notes.rules.keys()).for_each(|(rule, id)| rule.id = Some(*id));
        self.book.number_from(notes.next);
        self.kept = Some(kept);
        read.rules = rules;
        Ok(read)
    }

    /// Reads the file; or what is wrong with it, for people.
    pub(super) fn read_file(&mut self) -> (Result<Read, String>, Watched) {
        let mut disk = Disk::default();
        let name = self.file.display().to_string();
        let read = match disk.read(&self.file) {
            Ok(text) => {
                let read = self.book.read(&name, text, &mut disk);
                match read.diagnostics.has_errors() {
                    true => Err(read.diagnostics.render(&read.map, false)),
                    false => Ok(read),
                }
            }
            Err(why) => Err(format!("{name} {why}")),
        };
        (read, disk.watched())
    }

    /// Takes the file in as it is now.
    pub(super) fn reload(&mut self) {
        let (read, watched) = self.read_file();
        self.watched = watched;
        let done = read.map_err(Refused::Mistakes).and_then(|read| {
            let (go, come) = self.book.reload(&read.rules);
            let counts = (come.len(), go.len());
            if counts == (0, 0) {
                return Ok((counts, 0));
            }
            self.warn(&read);
            if self.switch.is_ready() {
                return self.change(&go, come, Origin::File, &read).map(|(_, writes)| (counts, writes));
            }
            // The switch is told when it is there. What it holds then is of rules from before this change.
            self.book.part();
            let changed = self.book.change(&go, come, Origin::File, &read).map_err(Refused::Mistakes)?;
            self.list(&go, &changed.ids);
            let _ = self.keep(&[], &[], Origin::File);
            if self.switch.refuses() {
                self.switch.settle(&mut self.book, &*self.tell);
            }
            Ok((counts, 0))
        });
        match done {
            Ok(((0, 0), _)) if self.mistakes.is_empty() => {}
            Ok(((come, go), writes)) => {
                self.mistakes.clear();
                (self.tell)(Event::Reloaded(come, go, writes));
            }
            // It is read again once the switch is there.
            Err(Refused::Away(_)) => self.watched.forget(),
            Err(
                Refused::Mistakes(why)
                | Refused::TooMuch(why)
                | Refused::NotFound(why)
                | Refused::InFile(why)
                | Refused::BySwitch(why)
                | Refused::NotKept(why),
            ) => {
                self.mistakes.clone_from(&why);
                (self.tell)(Event::Mistakes(why));
            }
        }
    }
}
