//! Checks referential integrity between entries.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use diagnostics::{Diagnostics, SourceMap};
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1::field_match::FieldMatchType;
use p4runtime_proto::v1::{self, table_action};

use crate::refers_to::{self, ReferenceSource, ReferenceTarget, Relations};

/// An entity that refers to others, or that others refer to.
#[derive(Clone, Copy, Debug)]
pub enum ReferenceEntity<'a> {
    /// A table entry, with its actions.
    Entry(&'a v1::TableEntry),
    /// A member of an action profile, with its action.
    Member(&'a v1::ActionProfileMember),
    /// The multicast group with this id.
    MulticastGroup(u32),
}

/// Reason why a write is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceError {
    /// The written entity refers to an entry that does not exist.
    Missing {
        /// The referring object: ``action `C.set_nexthop` ``.
        by: String,
        /// The missing entry: ``table `C.nexthop` with `id` ``.
        target: String,
        /// The values of these fields.
        values: String,
    },
    /// The write would remove an entry that is referred to.
    InUse {
        /// The entry: ``table `C.nexthop` with `id` ``.
        target: String,
        /// The values of these fields.
        values: String,
        /// Number of references to it.
        count: usize,
    },
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceError::Missing { by, target, values } => {
                write!(f, "{by} refers to an entry that does not exist: {target} = {values}")
            }
            ReferenceError::InUse { target, values, count } => {
                let plural = if *count == 1 { "reference" } else { "references" };
                write!(f, "this entry is in use by {count} {plural}: {target} = {values}")
            }
        }
    }
}

/// Reference counts by the canonical values of a relation's fields.
type RefCounts = HashMap<Vec<Vec<u8>>, RefCount>;

#[derive(Clone, Copy, Debug, Default)]
struct RefCount {
    provided: usize,
    used: usize,
}

/// The references between the entities of a switch. It processes every write ([`References::replace`]) and stores only
/// values and counts.
#[derive(Clone, Debug, Default)]
pub struct References {
    relations: Relations,
    counts: Vec<RefCounts>,
    /// Existing entities by the keys that callers chose, as far as they refer or can be referred to.
    entities: HashMap<Vec<u8>, EntityReferences>,
}

/// The references that an entity makes, and the values that it provides to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityReferences {
    list: Vec<ReferenceEnd>,
    /// Whether the entity does not specify its action, which then stays as it was.
    keeps_action: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ReferenceEnd {
    relation: usize,
    values: Vec<Vec<u8>>,
    /// The user of the values; `None` if the entity provides them.
    by: Option<ReferenceSource>,
}

impl References {
    /// Reads the `@refers_to` annotations in `info`. Errors in them are added to `diagnostics`, with positions in files
    /// that are added to `map`.
    pub fn new(info: &P4Info, map: &mut SourceMap, diagnostics: &mut Diagnostics) -> References {
        let relations = refers_to::read(info, map, diagnostics);
        let counts = vec![RefCounts::new(); relations.list.len()];
        References { relations, counts, entities: HashMap::new() }
    }

    /// Whether there are no references.
    pub fn is_empty(&self) -> bool {
        self.relations.list.is_empty()
    }

    /// Replaces the entity with key `key`, or removes it (`None`), and returns the previous one.
    ///
    /// # Errors
    /// If the entity would refer to an entry that does not exist afterwards, or if an entry that is referred to would
    /// be removed. Nothing is changed in this case.
    pub fn replace(
        &mut self,
        key: &[u8],
        entity: Option<EntityReferences>,
    ) -> Result<Option<EntityReferences>, ReferenceError> {
        let before = self.force(key, entity);
        let now = self.entities.get(key).map_or(&[][..], |entity_references| &entity_references.list);
        let broken = now.iter().find_map(|end| self.missing(end));
        let gone = before.as_ref().map_or(&[][..], |entity_references| &entity_references.list);
        match broken.or_else(|| gone.iter().find_map(|end| self.in_use(end))) {
            None => Ok(before),
            Some(broken) => {
                self.force(key, before);
                Err(broken)
            }
        }
    }

    /// Like [`References::replace`], but without checks: to undo a write that failed elsewhere, or to load existing
    /// entities in any order.
    pub fn force(&mut self, key: &[u8], entity: Option<EntityReferences>) -> Option<EntityReferences> {
        let before = self.entities.remove(key);
        let mut entity = entity.unwrap_or_default();
        if std::mem::take(&mut entity.keeps_action) {
            let of_action = |end: &&ReferenceEnd| matches!(end.by, Some(ReferenceSource::Action(_)));
            entity.list.extend(before.iter().flat_map(|before| before.list.iter().filter(of_action)).cloned());
        }
        for end in &entity.list {
            let count = self.counts[end.relation].entry(end.values.clone()).or_default();
            *(if end.by.is_some() { &mut count.used } else { &mut count.provided }) += 1;
        }
        for end in before.iter().flat_map(|before| &before.list) {
            let Some(count) = self.counts[end.relation].get_mut(&end.values) else { continue };
            let number = if end.by.is_some() { &mut count.used } else { &mut count.provided };
            *number = number.saturating_sub(1);
            if count.used == 0 && count.provided == 0 {
                self.counts[end.relation].remove(&end.values);
            }
        }
        if !entity.list.is_empty() {
            self.entities.insert(key.to_vec(), entity);
        }
        before
    }

    fn of(&self, end: &ReferenceEnd) -> RefCount {
        self.counts[end.relation].get(&end.values).copied().unwrap_or_default()
    }

    fn missing(&self, end: &ReferenceEnd) -> Option<ReferenceError> {
        let by = end.by.filter(|_| self.of(end).provided == 0)?;
        Some(ReferenceError::Missing {
            by: self.relations.names.get(&by).cloned().unwrap_or_default(),
            target: self.relations.list[end.relation].1.clone(),
            values: shown(&end.values),
        })
    }

    fn in_use(&self, end: &ReferenceEnd) -> Option<ReferenceError> {
        let count = self.of(end);
        (end.by.is_none() && count.provided == 0 && count.used > 0).then(|| ReferenceError::InUse {
            target: self.relations.list[end.relation].1.clone(),
            values: shown(&end.values),
            count: count.used,
        })
    }

    /// Returns the references of an entity, for [`References::replace`].
    pub fn entity_references(&self, entity: ReferenceEntity<'_>) -> EntityReferences {
        let mut out = Vec::new();
        let mut keeps_action = false;
        match entity {
            // A default entry has no match, so it neither provides values nor refers by its match.
            ReferenceEntity::Entry(entry) => {
                keeps_action = entry.action.is_none();
                if !entry.is_default_action {
                    self.ends_of_match(entry, &mut out);
                }
                match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
                    Some(table_action::Type::Action(action)) => self.ends_of_action(action, &mut out),
                    Some(table_action::Type::ActionProfileActionSet(set)) => {
                        let actions = set.action_profile_actions.iter().filter_map(|one| one.action.as_ref());
                        actions.for_each(|action| self.ends_of_action(action, &mut out));
                    }
                    _ => {}
                }
            }
            ReferenceEntity::Member(member) => {
                if let Some(action) = &member.action {
                    self.ends_of_action(action, &mut out);
                }
            }
            ReferenceEntity::MulticastGroup(id) => {
                let values = vec![canonical(&id.to_be_bytes())];
                self.provides(ReferenceTarget::MulticastGroups, |_| Some(values.clone()), &mut out);
            }
        }
        EntityReferences { list: out, keeps_action }
    }

    fn provides(
        &self,
        target: ReferenceTarget,
        values: impl Fn(&[u32]) -> Option<Vec<Vec<u8>>>,
        out: &mut Vec<ReferenceEnd>,
    ) {
        let relations = self.relations.list.iter().enumerate().filter(|(_, (relation, _))| relation.target == target);
        out.extend(relations.filter_map(|(at, (relation, _))| {
            Some(ReferenceEnd { relation: at, values: values(&relation.fields)?, by: None })
        }));
    }

    /// Adds the references that `source` makes. An omitted value refers to nothing.
    fn uses(&self, source: ReferenceSource, values: &BTreeMap<u32, Vec<u8>>, out: &mut Vec<ReferenceEnd>) {
        let relations = self.relations.sources.get(&source).into_iter().flatten();
        out.extend(relations.filter_map(|(relation, from)| {
            let values: Option<_> = from.iter().map(|id| values.get(id).cloned()).collect();
            Some(ReferenceEnd { relation: *relation, values: values?, by: Some(source) })
        }));
    }

    fn ends_of_match(&self, entry: &v1::TableEntry, out: &mut Vec<ReferenceEnd>) {
        let value = |field: &v1::FieldMatch| match field.field_match_type.as_ref()? {
            FieldMatchType::Exact(exact) => Some((field.field_id, canonical(&exact.value))),
            FieldMatchType::Optional(optional) => Some((field.field_id, canonical(&optional.value))),
            _ => None,
        };
        let values: BTreeMap<u32, Vec<u8>> = entry.r#match.iter().filter_map(value).collect();
        let all = |fields: &[u32]| fields.iter().map(|id| values.get(id).cloned()).collect();
        self.provides(ReferenceTarget::Table(entry.table_id), all, out);
        self.uses(ReferenceSource::Match(entry.table_id), &values, out);
    }

    fn ends_of_action(&self, action: &v1::Action, out: &mut Vec<ReferenceEnd>) {
        let source = ReferenceSource::Action(action.action_id);
        if self.relations.sources.contains_key(&source) {
            let values = action.params.iter().map(|param| (param.param_id, canonical(&param.value))).collect();
            self.uses(source, &values, out);
        }
    }
}

/// Strips leading zero bytes; texts never begin with one.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}

/// Formats values for people: printable texts as they are, anything else in hexadecimal.
fn shown(values: &[Vec<u8>]) -> String {
    let values = values.iter().map(|value| match std::str::from_utf8(value) {
        Ok(text) if value.len() > 1 && text.chars().all(|c| c.is_ascii_graphic()) => format!("\"{text}\""),
        _ if value.is_empty() => "0x0".to_owned(),
        _ => value.iter().fold("0x".to_owned(), |out, byte| out + &format!("{byte:02x}")),
    });
    values.collect::<Vec<_>>().join(", ")
}
