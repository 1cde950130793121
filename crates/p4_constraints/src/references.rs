//! References between entries: what has to exist, and what has to stay.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use diagnostics::{Diagnostics, SourceMap};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::field_match::FieldMatchType;
use p4runtime_proto::v1::{self, table_action};

use crate::refers_to::{self, Relations, Source, Target};

/// Something that refers, or is referred to.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// An entry of a table, with the actions in it.
    Entry(&'a v1::TableEntry),
    /// A member of an action profile, with its action.
    Member(&'a v1::ActionProfileMember),
    /// The multicast group with this id.
    MulticastGroup(u32),
}

/// Why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// What is written refers to something that is not there.
    Missing {
        /// Who refers: ``action `C.set_nexthop` ``.
        by: String,
        /// What there should be: ``table `C.nexthop` with `id` ``.
        target: String,
        /// The values of these fields.
        values: String,
    },
    /// What is taken away is referred to.
    InUse {
        /// What it is: ``table `C.nexthop` with `id` ``.
        target: String,
        /// The values of these fields.
        values: String,
        /// How many refer to it.
        count: usize,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Missing { by, target, values } => {
                write!(f, "{by} refers to an entry that does not exist: {target} = {values}")
            }
            Broken::InUse { target, values, count } => {
                let plural = if *count == 1 { "reference" } else { "references" };
                write!(f, "this entry is in use by {count} {plural}: {target} = {values}")
            }
        }
    }
}

/// Values of a relation's fields, canonical, and how many provide and use them.
type Counts = HashMap<Vec<Vec<u8>>, Count>;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    provided: usize,
    used: usize,
}

/// What refers to what in a switch. It sees every write ([`References::replace`]) and remembers values and counts only.
#[derive(Clone, Debug, Default)]
pub struct References {
    relations: Relations,
    counts: Vec<Counts>,
    /// What is there, by the names that callers give it, as far as it refers or can be referred to.
    held: HashMap<Vec<u8>, Touches>,
}

/// How an item refers, and is referred to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    list: Vec<Touch>,
    /// The item says nothing of its action, which stays as it was.
    keeps_action: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Touch {
    relation: usize,
    values: Vec<Vec<u8>>,
    /// Who uses it; `None` if the item provides it.
    by: Option<Source>,
}

impl References {
    /// Reads the `@refers_to` annotations in `info`; what is wrong with them is added to `diagnostics`, in files that are
    /// added to `map`.
    pub fn new(info: &P4Info, map: &mut SourceMap, diagnostics: &mut Diagnostics) -> References {
        let relations = refers_to::read(info, map, diagnostics);
        let counts = vec![Counts::new(); relations.list.len()];
        References { relations, counts, held: HashMap::new() }
    }

    /// Whether nothing refers to anything.
    pub fn is_empty(&self) -> bool {
        self.relations.list.is_empty()
    }

    /// Puts an item in the place of the one that has the name `key`, or takes it away (`None`), and gives what was there.
    ///
    /// # Errors
    /// If anything of the item refers to something that is not there then, or something that is referred to would be
    /// gone. Nothing has changed then.
    pub fn replace(&mut self, key: &[u8], item: Option<Touches>) -> Result<Option<Touches>, Broken> {
        let before = self.force(key, item);
        let now = self.held.get(key).map_or(&[][..], |touches| &touches.list);
        let broken = now.iter().find_map(|touch| self.missing(touch));
        let gone = before.as_ref().map_or(&[][..], |touches| &touches.list);
        match broken.or_else(|| gone.iter().find_map(|touch| self.in_use(touch))) {
            None => Ok(before),
            Some(broken) => {
                self.force(key, before);
                Err(broken)
            }
        }
    }

    /// Like [`References::replace`] without asking: to take back a write that failed elsewhere, or to begin with what is
    /// there in any order.
    pub fn force(&mut self, key: &[u8], item: Option<Touches>) -> Option<Touches> {
        let before = self.held.remove(key);
        let mut item = item.unwrap_or_default();
        if std::mem::take(&mut item.keeps_action) {
            let of_action = |touch: &&Touch| matches!(touch.by, Some(Source::Action(_)));
            item.list.extend(before.iter().flat_map(|before| before.list.iter().filter(of_action)).cloned());
        }
        for touch in &item.list {
            let count = self.counts[touch.relation].entry(touch.values.clone()).or_default();
            *(if touch.by.is_some() { &mut count.used } else { &mut count.provided }) += 1;
        }
        for touch in before.iter().flat_map(|before| &before.list) {
            let Some(count) = self.counts[touch.relation].get_mut(&touch.values) else { continue };
            let number = if touch.by.is_some() { &mut count.used } else { &mut count.provided };
            *number = number.saturating_sub(1);
            if count.used == 0 && count.provided == 0 {
                self.counts[touch.relation].remove(&touch.values);
            }
        }
        if !item.list.is_empty() {
            self.held.insert(key.to_vec(), item);
        }
        before
    }

    fn of(&self, touch: &Touch) -> Count {
        self.counts[touch.relation].get(&touch.values).copied().unwrap_or_default()
    }

    fn missing(&self, touch: &Touch) -> Option<Broken> {
        let by = touch.by.filter(|_| self.of(touch).provided == 0)?;
        Some(Broken::Missing {
            by: self.relations.names.get(&by).cloned().unwrap_or_default(),
            target: self.relations.list[touch.relation].1.clone(),
            values: shown(&touch.values),
        })
    }

    fn in_use(&self, touch: &Touch) -> Option<Broken> {
        let count = self.of(touch);
        (touch.by.is_none() && count.provided == 0 && count.used > 0).then(|| Broken::InUse {
            target: self.relations.list[touch.relation].1.clone(),
            values: shown(&touch.values),
            count: count.used,
        })
    }

    /// How an item refers and is referred to; to be given to [`References::replace`].
    pub fn touches(&self, item: Item<'_>) -> Touches {
        let mut out = Vec::new();
        let mut keeps_action = false;
        match item {
            // Default entries match nothing, and so neither have values to refer to nor refer by their match.
            Item::Entry(entry) => {
                keeps_action = entry.action.is_none();
                if !entry.is_default_action {
                    self.touches_of_match(entry, &mut out);
                }
                match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
                    Some(table_action::Type::Action(action)) => self.touches_of_action(action, &mut out),
                    Some(table_action::Type::ActionProfileActionSet(set)) => {
                        let actions = set.action_profile_actions.iter().filter_map(|one| one.action.as_ref());
                        actions.for_each(|action| self.touches_of_action(action, &mut out));
                    }
                    _ => {}
                }
            }
            Item::Member(member) => {
                if let Some(action) = &member.action {
                    self.touches_of_action(action, &mut out);
                }
            }
            Item::MulticastGroup(id) => {
                let values = vec![canonical(&id.to_be_bytes())];
                self.provides(Target::MulticastGroups, |_| Some(values.clone()), &mut out);
            }
        }
        Touches { list: out, keeps_action }
    }

    fn provides(&self, target: Target, values: impl Fn(&[u32]) -> Option<Vec<Vec<u8>>>, out: &mut Vec<Touch>) {
        let relations = self.relations.list.iter().enumerate().filter(|(_, (relation, _))| relation.target == target);
        out.extend(relations.filter_map(|(at, (relation, _))| {
            Some(Touch { relation: at, values: values(&relation.fields)?, by: None })
        }));
    }

    /// Adds how `source` uses what it refers to. A value that is left out refers to nothing.
    fn uses(&self, source: Source, values: &BTreeMap<u32, Vec<u8>>, out: &mut Vec<Touch>) {
        let relations = self.relations.sources.get(&source).into_iter().flatten();
        out.extend(relations.filter_map(|(relation, from)| {
            let values: Option<_> = from.iter().map(|id| values.get(id).cloned()).collect();
            Some(Touch { relation: *relation, values: values?, by: Some(source) })
        }));
    }

    fn touches_of_match(&self, entry: &v1::TableEntry, out: &mut Vec<Touch>) {
        let value = |field: &v1::FieldMatch| match field.field_match_type.as_ref()? {
            FieldMatchType::Exact(exact) => Some((field.field_id, canonical(&exact.value))),
            FieldMatchType::Optional(optional) => Some((field.field_id, canonical(&optional.value))),
            _ => None,
        };
        let values: BTreeMap<u32, Vec<u8>> = entry.r#match.iter().filter_map(value).collect();
        let all = |fields: &[u32]| fields.iter().map(|id| values.get(id).cloned()).collect();
        self.provides(Target::Table(entry.table_id), all, out);
        self.uses(Source::Match(entry.table_id), &values, out);
    }

    fn touches_of_action(&self, action: &v1::Action, out: &mut Vec<Touch>) {
        let source = Source::Action(action.action_id);
        if self.relations.sources.contains_key(&source) {
            let values = action.params.iter().map(|param| (param.param_id, canonical(&param.value))).collect();
            self.uses(source, &values, out);
        }
    }
}

/// Without the zeros in front; texts never begin with one.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}

/// Values for people: readable texts as they are, all else in hexadecimal.
fn shown(values: &[Vec<u8>]) -> String {
    let values = values.iter().map(|value| match std::str::from_utf8(value) {
        Ok(text) if value.len() > 1 && text.chars().all(|c| c.is_ascii_graphic()) => format!("\"{text}\""),
        _ if value.is_empty() => "0x0".to_owned(),
        _ => value.iter().fold("0x".to_owned(), |out, byte| out + &format!("{byte:02x}")),
    });
    values.collect::<Vec<_>>().join(", ")
}
