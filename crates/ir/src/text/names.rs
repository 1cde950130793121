//! Which entity a name means.
//!
//! The printer asks the same question as the reader: if a bare name would not be read back as the entity that is
//! meant, because another one has the name too, the printer adds the entity's number (`tmp#slot12`).

use std::collections::HashMap;
use std::hash::Hash;

use cranelift_entity::{EntityRef, PrimaryMap};

use crate::*;

/// The first entity of each name, by kind.
#[derive(Default)]
pub(crate) struct Names {
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

/// What a bare name means where a value or the place of one is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A slot.
    Slot(SlotId),
    /// A field of a header.
    Field(HeaderId, u32),
}

impl Names {
    /// The names of a program.
    pub(crate) fn of(program: &Program) -> Names {
        Names {
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

    /// What a bare name means as a value: a slot of that name, else the field of a header whose name is a prefix, the
    /// longest such header first.
    pub(crate) fn value(&self, program: &Program, name: &str) -> Option<Named> {
        if let Some(slot) = self.slots.get(name) {
            return Some(Named::Slot(*slot));
        }
        for (dot, _) in name.rmatch_indices('.') {
            let Some(header) = self.headers.get(&name[..dot]) else { continue };
            if let Some(field) = field_named(program, program.headers[*header].ty, &name[dot + 1..]) {
                return Some(Named::Field(*header, field));
            }
        }
        None
    }
}

/// The first field of this name.
pub(crate) fn field_named(program: &Program, ty: HeaderTypeId, name: &str) -> Option<u32> {
    let fields = &program.header_types.get(ty)?.fields;
    fields.iter().position(|field| field.name == name).and_then(|at| u32::try_from(at).ok())
}

/// The first entity of each name in a map.
pub(crate) fn index<K: EntityRef + Hash, V>(map: &PrimaryMap<K, V>, name: impl Fn(&V) -> &String) -> Index<K> {
    let mut index = Index::new();
    for (id, value) in map {
        index.entry(name(value).clone()).or_insert(id);
    }
    index
}
