//! Resolves names and values of a script in the program.

use bits::Bits;
use diagnostics::names::{Endings, NoName, find, nearest};
use diagnostics::{Diagnostic, Span};
use ir::{CounterId, KeyValue, MatchKind, MeterId, ProfileId, TableId};

use super::Binder;
use crate::keys::key_value;
use crate::plan::{Cell, EntryRef};
use crate::script::{ElementRef, Word, WrittenValue};
use crate::value::read;

impl Binder<'_> {
    pub(super) fn error<T>(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> Option<T> {
        self.diagnostics.push(Diagnostic::error(code, span, message));
        None
    }

    /// Returns the candidate with this name, and reports an error if there is none or more than one.
    pub(super) fn find<T: Copy>(&mut self, name: &Word, kind: &str, candidates: &[(T, &str)]) -> Option<T> {
        self.find_in(name, kind, None, candidates)
    }

    /// Does the same among the candidates of `owner`.
    pub(super) fn find_in<T: Copy>(
        &mut self,
        name: &Word,
        kind: &str,
        owner: Option<&str>,
        candidates: &[(T, &str)],
    ) -> Option<T> {
        let shown: String = name.text.chars().take(80).collect();
        let diagnostic = match find(&name.text, candidates, Endings::Anywhere) {
            Ok(found) => return Some(found),
            Err(NoName::Ambiguous(one, other)) => {
                let message = format!("`{shown}` is ambiguous: it is a suffix of more than one {kind}");
                Diagnostic::error("stf-ambiguous", name.span, message).help(format!("write `{one}` or `{other}`"))
            }
            Err(NoName::Unknown) => {
                let message = match owner {
                    Some(owner) => format!("`{owner}` has no {kind} `{shown}`"),
                    None => format!("there is no {kind} `{shown}`"),
                };
                let diagnostic = Diagnostic::error("stf-unknown", name.span, message);
                match nearest(&name.text, candidates.iter().map(|(_, name)| *name)) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None if candidates.is_empty() => diagnostic.help(format!("the program declares no {kind}")),
                    None => {
                        let all = candidates.iter().take(12).map(|(_, name)| format!("`{name}`"));
                        diagnostic.help(format!("there is {}", all.collect::<Vec<_>>().join(", ")))
                    }
                }
            }
        };
        self.diagnostics.push(diagnostic);
        None
    }

    pub(super) fn value(&mut self, word: &Word, width: u32) -> Option<Bits> {
        match read(&word.text, width) {
            Ok(value) => Some(value),
            Err(message) => self.error("stf-value", word.span, message),
        }
    }

    pub(super) fn key(&mut self, written: &WrittenValue, kind: MatchKind, width: u32) -> Option<KeyValue> {
        match key_value(written, kind, width) {
            Ok(value) => Some(value),
            Err(message) => self.error("stf-value", written.span(), message),
        }
    }

    pub(super) fn table(&mut self, name: &Word) -> Option<TableId> {
        let all: Vec<_> = self.program.tables.iter().map(|(id, table)| (id, table.name.as_str())).collect();
        self.find(name, "table", &all)
    }

    pub(super) fn register(&mut self, name: &Word) -> Option<ir::RegisterId> {
        let all: Vec<_> = self.program.registers.iter().map(|(id, register)| (id, register.name.as_str())).collect();
        self.find(name, "register", &all)
    }

    pub(super) fn meter(&mut self, name: &Word) -> Option<MeterId> {
        let all: Vec<_> = self.program.meters.iter().map(|(id, meter)| (id, meter.name.as_str())).collect();
        self.find(name, "meter", &all)
    }

    pub(super) fn profile(&mut self, name: &Word) -> Option<ProfileId> {
        let all: Vec<_> = self.program.profiles.iter().map(|(id, profile)| (id, profile.name.as_str())).collect();
        self.find(name, "action profile", &all)
    }

    pub(super) fn value_set(&mut self, name: &Word) -> Option<ir::ValueSetId> {
        let all: Vec<_> = self.program.value_sets.iter().map(|(id, set)| (id, set.name.as_str())).collect();
        self.find(name, "value set", &all)
    }

    pub(super) fn counter(&mut self, name: &Word, element: &ElementRef) -> Option<Cell<CounterId>> {
        let all: Vec<_> = self.program.counters.iter().map(|(id, counter)| (id, counter.name.as_str())).collect();
        let counter = self.find(name, "counter", &all)?;
        let direct = self.program.counters[counter].size.is_none();
        match element {
            ElementRef::Index(index) if direct => {
                let table = self.program.tables.iter().find(|(_, table)| table.counter == Some(counter));
                Some(self.cell_of_entry(table.map(|(id, _)| id), *index))
            }
            ElementRef::Index(index) => Some(Cell::Array(counter, *index)),
            ElementRef::Entry(id) if direct => self.named_entry(id).map(Cell::Entry),
            ElementRef::Entry(id) => {
                self.error("stf-value", id.span, "an element of this counter must be given by its index")
            }
        }
    }

    pub(super) fn meter_cell(&self, meter: MeterId, index: u64) -> Cell<MeterId> {
        if self.program.meters[meter].size.is_some() {
            return Cell::Array(meter, index);
        }
        let table = self.program.tables.iter().find(|(_, table)| table.meter == Some(meter));
        self.cell_of_entry(table.map(|(id, _)| id), index)
    }

    /// Entries have handles, counted from 0 in each table.
    pub(super) fn cell_of_entry<T>(&self, table: Option<TableId>, handle: u64) -> Cell<T> {
        let mut entries = self.entries.iter().filter(|entry| Some(entry.table) == table);
        let entry = usize::try_from(handle).ok().and_then(|handle| entries.nth(handle));
        entry.map_or(Cell::Nowhere(handle), |entry| Cell::Entry(entry.clone()))
    }

    pub(super) fn named_entry(&mut self, id: &Word) -> Option<EntryRef> {
        match self.ids.get(&id.text) {
            Some(entry) => Some(entry.clone()),
            None => self.error("stf-unknown", id.span, format!("no earlier entry is named `{}`", id.text)),
        }
    }
}

/// Returns the index of the key element that `wanted` names.
pub(super) fn find_key(wanted: &str, names: &[&str]) -> Option<usize> {
    let wanted = stack_element(wanted);
    let plain = |name: &str| name.trim_end_matches('$').to_owned();
    let is = |wanted: &str| {
        let whole = names.iter().position(|name| *name == wanted || plain(name) == wanted);
        let behind = |name: &&str| {
            [(*name).to_owned(), plain(name)].iter().any(|n| n.strip_suffix(wanted).is_some_and(|r| r.ends_with('.')))
        };
        whole.or_else(|| names.iter().position(behind))
    };
    let validity = |header: &str| is(&format!("{header}.$valid$")).or_else(|| is(&format!("{header}.isValid()")));
    is(&wanted)
        .or_else(|| wanted.strip_suffix(".$valid").and_then(validity))
        .or_else(|| wanted.strip_suffix(".$valid$").and_then(validity))
        .or_else(|| wanted.strip_suffix(".valid").and_then(validity))
        .or_else(|| validity(&wanted))
        .or_else(|| if wanted == "valid" { is("$valid$").or_else(|| is("isValid()")) } else { None })
}

/// Scripts write `h[0].f` as `h$0.f`.
fn stack_element(name: &str) -> String {
    let Some((before, after)) = name.rsplit_once('$') else { return name.to_owned() };
    let digits = after.chars().take_while(char::is_ascii_digit).count();
    match digits {
        0 => name.to_owned(),
        _ => format!("{before}[{}]{}", &after[..digits], &after[digits..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_by_their_endings() {
        let names = ["hdr.ipv4.dst", "hdr.extra[0].h", "hdr.ipv4.$valid$", "meta.x"];
        for (wanted, at) in [
            ("hdr.ipv4.dst", Some(0)),
            ("ipv4.dst", Some(0)),
            ("dst", Some(0)),
            ("st", None),
            ("extra$0.h", Some(1)),
            ("extra[0].h", Some(1)),
            ("ipv4.$valid$", Some(2)),
            ("ipv4.$valid", Some(2)),
            ("ipv4.valid", Some(2)),
            ("hdr.ipv4", Some(2)),
            ("valid", Some(2)),
            ("y", None),
        ] {
            assert_eq!(find_key(wanted, &names), at, "{wanted}");
        }
    }
}
