//! Resolves names to entities.
//!
//! The printer resolves names as the parser does: if an unquoted name would not be read back as the intended entity,
//! because another entity shares the name, the printer appends the entity's number (`tmp#slot12`).

use std::collections::HashMap;
use std::hash::Hash;

use cranelift_entity::{EntityRef, PrimaryMap};

use crate::*;

/// For each kind of entity, the first entity with each name.
#[derive(Default)]
pub(crate) struct NameIndex {
    pub(crate) header_types: Index<HeaderTypeId>,
    pub(crate) headers: Index<HeaderId>,
    pub(crate) stacks: Index<StackId>,
    pub(crate) slots: Index<SlotId>,
    pub(crate) actions: Index<ActionId>,
    pub(crate) tables: Index<TableId>,
    pub(crate) registers: Index<RegisterId>,
    pub(crate) counters: Index<CounterId>,
    pub(crate) meters: Index<MeterId>,
    pub(crate) profiles: Index<ProfileId>,
    pub(crate) value_sets: Index<ValueSetId>,
    pub(crate) digests: Index<DigestId>,
    pub(crate) bodies: Index<BodyId>,
}

pub(crate) type Index<K> = HashMap<String, K>;

/// The entity that an unquoted name denotes as a value or an l-value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedValue {
    /// A slot.
    Slot(SlotId),
    /// A field of a header.
    Field(HeaderId, u32),
}

impl NameIndex {
    /// Indexes the names of a program.
    pub(crate) fn of(program: &Program) -> NameIndex {
        NameIndex {
            header_types: index(&program.header_types, |x| &x.name),
            headers: index(&program.headers, |x| &x.name),
            stacks: index(&program.stacks, |x| &x.name),
            slots: index(&program.slots, |x| &x.name),
            actions: index(&program.actions, |x| &x.name),
            tables: index(&program.tables, |x| &x.name),
            registers: index(&program.registers, |x| &x.name),
            counters: index(&program.counters, |x| &x.name),
            meters: index(&program.meters, |x| &x.name),
            profiles: index(&program.profiles, |x| &x.name),
            value_sets: index(&program.value_sets, |x| &x.name),
            digests: index(&program.digests, |x| &x.name),
            bodies: index(&program.bodies, |x| &x.name),
        }
    }

    /// Resolves an unquoted name as a value: the slot of that name, else a field of the header whose name is a
    /// prefix of it. Longer prefixes are tried first.
    pub(crate) fn value(&self, program: &Program, name: &str) -> Option<NamedValue> {
        if let Some(slot) = self.slots.get(name) {
            return Some(NamedValue::Slot(*slot));
        }
        for (dot, _) in name.rmatch_indices('.') {
            let Some(header) = self.headers.get(&name[..dot]) else { continue };
            if let Some(field) = field_named(program, program.headers[*header].ty, &name[dot + 1..]) {
                return Some(NamedValue::Field(*header, field));
            }
        }
        None
    }
}

/// Returns the first field with this name.
pub(crate) fn field_named(program: &Program, ty: HeaderTypeId, name: &str) -> Option<u32> {
    let fields = &program.header_types.get(ty)?.fields;
    fields.iter().position(|field| field.name == name).and_then(|index| u32::try_from(index).ok())
}

/// Indexes the first entity of each name in a map.
pub(crate) fn index<K: EntityRef + Hash, V>(map: &PrimaryMap<K, V>, name: impl Fn(&V) -> &String) -> Index<K> {
    let mut index = Index::new();
    for (id, value) in map {
        index.entry(name(value).clone()).or_insert(id);
    }
    index
}
