//! Assigns ids and aliases (P4Runtime specification, sections on ids and on the preamble).
//!
//! An id has the resource type in its top byte and 24 bits below: those of `@id`, or a hash of the name. On a hash
//! collision, the next free number is assigned, with names in alphabetical order. The reference compiler does the same,
//! so both assign the same ids. An alias is the shortest suffix of a name, cut at dots, that no other name has.

use std::collections::{BTreeMap, HashMap, HashSet};

use diagnostics::{Diagnostic, Diagnostics, Span};

pub(crate) use p4runtime_proto::config::p4_ids::Prefix;

#[derive(Default)]
pub(crate) struct Symbols {
    ids: BTreeMap<i32, BTreeMap<String, u32>>,
    assigned: HashMap<u32, Span>,
    names: HashSet<String>,
    /// Number of names with this suffix.
    suffixes: HashMap<String, u32>,
}

impl Symbols {
    /// Registers a name. A name that is already registered keeps its id.
    pub(crate) fn add(
        &mut self,
        prefix: Prefix,
        name: &str,
        id: Option<u32>,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) {
        if self.ids.get(&(prefix as i32)).is_some_and(|names| names.contains_key(name)) {
            return;
        }
        let id = id.and_then(|id| self.given(prefix, id, span, diagnostics)).unwrap_or(0);
        self.ids.entry(prefix as i32).or_default().insert(name.to_owned(), id);
        if self.names.insert(name.to_owned()) {
            for suffix in suffixes(name) {
                *self.suffixes.entry(suffix.to_owned()).or_default() += 1;
            }
        }
    }

    /// Returns the id that `@id` requests, with the resource type in its top byte.
    fn given(&mut self, prefix: Prefix, id: u32, span: Span, diagnostics: &mut Diagnostics) -> Option<u32> {
        let top = (prefix as u32) << 24;
        if id & 0xff00_0000 != 0 && id & 0xff00_0000 != top {
            diagnostics.push(
                Diagnostic::error("id", span, format!("`@id` {id:#010x} has the wrong prefix for this kind of object"))
                    .help(format!("its top byte must be {:#04x}, or 0", prefix as u32)),
            );
            return None;
        }
        let id = id | top;
        if let Some(first) = self.assigned.get(&id) {
            diagnostics
                .push(Diagnostic::error("id", span, format!("duplicate `@id` {id:#010x}")).also(*first, "first here"));
            return None;
        }
        self.assigned.insert(id, span);
        Some(id)
    }

    /// Assigns an id to every name without one. No name may be added afterwards.
    pub(crate) fn assign(&mut self) {
        let assigned = &mut self.assigned;
        for (prefix, names) in &mut self.ids {
            for (name, id) in names {
                if *id != 0 {
                    continue;
                }
                let hash = hash(name.as_bytes());
                // There are 2^24 numbers, far more than a program has names.
                let free = (0..1 << 24)
                    .map(|step| (*prefix as u32) << 24 | hash.wrapping_add(step) & 0x00ff_ffff)
                    .find(|candidate| !assigned.contains_key(candidate));
                if let Some(free) = free {
                    assigned.insert(free, Span::default());
                    *id = free;
                }
            }
        }
    }

    /// Returns the id of a name.
    pub(crate) fn id(&self, prefix: Prefix, name: &str) -> u32 {
        self.ids.get(&(prefix as i32)).and_then(|names| names.get(name)).copied().unwrap_or(0)
    }

    /// Returns the alias of a name.
    pub(crate) fn alias(&self, name: &str) -> String {
        let mut alias = name;
        for suffix in suffixes(name) {
            alias = suffix;
            if self.suffixes.get(suffix).copied().unwrap_or(0) < 2 {
                break;
            }
        }
        alias.to_owned()
    }
}

/// Iterates over the suffixes of `a.b.c`: `c`, `b.c`, `a.b.c`.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('.').map(|(at, _)| &name[at + 1..]).chain([name])
}

/// Jenkins' one-at-a-time hash.
fn hash(name: &[u8]) -> u32 {
    let mut hash = 0u32;
    for byte in name {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Assigns ids to match fields, parameters and the like: those requested and, for the others, the first free number,
/// counting from 1 in order.
pub(crate) fn field_ids(given: &[(Option<u32>, Span)], diagnostics: &mut Diagnostics) -> Vec<u32> {
    let mut taken: HashMap<u32, Span> = HashMap::new();
    for (id, span) in given {
        let Some(id) = id else { continue };
        if *id == 0 {
            diagnostics.push(Diagnostic::error("id", *span, "0 is not a valid `@id`").help("ids start at 1"));
        } else if let Some(first) = taken.get(id) {
            diagnostics
                .push(Diagnostic::error("id", *span, format!("duplicate `@id` {id}")).also(*first, "first here"));
        }
        taken.insert(*id, *span);
    }
    let mut next = 1u32;
    let mut out = Vec::with_capacity(given.len());
    for (id, span) in given {
        match id {
            Some(id) => {
                out.push(*id);
                next += 1;
            }
            None => {
                while taken.contains_key(&next) {
                    next += 1;
                }
                taken.insert(next, *span);
                out.push(next);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_end_that_is_unique_is_the_alias() {
        let mut symbols = Symbols::default();
        let mut diagnostics = Diagnostics::new();
        for name in ["s.c1.t", "s.c2.t", "s.c1.u", "u"] {
            symbols.add(Prefix::Table, name, None, Span::default(), &mut diagnostics);
        }
        let alias = |name| symbols.alias(name);
        assert_eq!([alias("s.c1.t"), alias("s.c2.t"), alias("s.c1.u"), alias("u")], ["c1.t", "c2.t", "c1.u", "u"]);
    }

    #[test]
    fn names_hash_as_everywhere() {
        let mut symbols = Symbols::default();
        symbols.add(Prefix::Action, "NoAction", None, Span::default(), &mut Diagnostics::new());
        symbols.assign();
        assert_eq!(symbols.id(Prefix::Action, "NoAction"), 21257015);
    }

    #[test]
    fn fields_without_id_get_what_is_free() {
        let none = (None, Span::default());
        let some = |id| (Some(id), Span::default());
        let mut diagnostics = Diagnostics::new();
        assert_eq!(field_ids(&[none, some(1), none, some(7), none], &mut diagnostics), [2, 1, 3, 7, 4]);
        assert!(diagnostics.is_empty());
    }
}
