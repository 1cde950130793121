//! Decides the lifetime of scoped storage, which is declared inside a body or an instance: storage used by only one
//! body becomes local to it, storage used by several lives as long as the packet, and unused storage is removed.
//!
//! ```text
//! control c { bit<8> x; action a() { x = 1; } table t { actions = { a; } } apply { t.apply(); y = x; } }
//!                                     x is used by the action's body and by the control's: metadata
//! ```

use std::collections::{HashMap, HashSet};

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ir::{BodyId, BodyKind, HeaderId, Op, Program, SlotId, SlotKind};

use super::ScopedStorage;
use super::visit::{StorageUse, body_uses, expr_uses};

/// Users of a storage unit: one body, or several. `Several` also stands for a single action whose storage must keep its
/// value between two of its runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UseScope {
    One(BodyId),
    Several,
}

/// The users of each slot and header.
#[derive(Default)]
struct UseScopes {
    slots: HashMap<SlotId, UseScope>,
    headers: HashMap<HeaderId, UseScope>,
}

/// Decides the lifetime of every scoped slot and header.
pub(super) fn decide(program: &mut Program, scoped: &ScopedStorage) {
    let users = users(program, scoped);
    for slot in &scoped.slots {
        let shared = users.slots.get(slot) == Some(&UseScope::Several);
        program.slots[*slot].kind = if shared { SlotKind::Metadata } else { SlotKind::Local };
    }
    for header in &scoped.headers {
        program.headers[*header].local = users.headers.get(header) != Some(&UseScope::Several);
    }
    // The elements of a stack have the same lifetime.
    for stack in program.stacks.keys() {
        let elements: Vec<HeaderId> = program.stacks[stack].elements().collect();
        let local = elements.iter().all(|header| program.headers[*header].local);
        elements.iter().for_each(|header| program.headers[*header].local = local);
    }
    remove_unused(program, scoped, &users);
}

/// Collects the users. The program is not changed; [`body_uses`] takes mutable references for [`renumber`].
fn users(program: &mut Program, scoped: &ScopedStorage) -> UseScopes {
    let mut users = UseScopes::default();
    let stacks = program.stacks.clone();
    for (id, body) in program.bodies.iter_mut() {
        let is_action = body.kind == BodyKind::Action;
        let mut visit = |used: StorageUse<'_>| {
            let user = |outlives: bool| if outlives && is_action { UseScope::Several } else { UseScope::One(id) };
            let mut add_header = |header: HeaderId| {
                let new = user(scoped.instance_headers.contains(&header));
                merge(users.headers.entry(header).or_insert(UseScope::One(id)), new);
            };
            match used {
                StorageUse::Read(slot) | StorageUse::Write(slot) => {
                    let new = user(scoped.instance_slots.contains(slot));
                    merge(users.slots.entry(*slot).or_insert(UseScope::One(id)), new);
                }
                StorageUse::Header(used) => add_header(*used),
                StorageUse::Stack(stack) => stacks[stack].elements().for_each(add_header),
            }
        };
        body_uses(body, &mut visit);
        // A table's keys are evaluated where it is applied.
        for instr in body.blocks.values().flat_map(|block| &block.instrs) {
            if let Op::Apply { table, .. } = instr.op {
                program.tables[table].keys.iter_mut().for_each(|key| expr_uses(&mut key.expr, &mut visit));
            }
        }
    }
    // A table that no body reaches is still visible to the control plane, and keeps the storage its keys read.
    for key in program.tables.values_mut().flat_map(|table| &mut table.keys) {
        // Any body will do: it only keeps unused storage from being removed.
        let any_body = UseScope::One(BodyId::new(0));
        expr_uses(&mut key.expr, &mut |used| match used {
            StorageUse::Read(slot) | StorageUse::Write(slot) => {
                users.slots.entry(*slot).or_insert(any_body);
            }
            StorageUse::Header(header) => {
                users.headers.entry(*header).or_insert(any_body);
            }
            StorageUse::Stack(stack) => stacks[stack].elements().for_each(|header| {
                users.headers.entry(header).or_insert(any_body);
            }),
        });
    }
    users
}

fn merge(old: &mut UseScope, new: UseScope) {
    if *old != new {
        *old = UseScope::Several;
    }
}

/// Removes unused scoped storage and renumbers the rest. Stacks are kept whole.
fn remove_unused(program: &mut Program, scoped: &ScopedStorage, users: &UseScopes) {
    let mut in_stacks: HashSet<HeaderId> = HashSet::new();
    let mut next_slots: HashSet<SlotId> = HashSet::new();
    for (id, stack) in &program.stacks {
        in_stacks.extend(program.stacks[id].elements());
        next_slots.insert(stack.next);
    }
    let keep_slot =
        |id: SlotId| !scoped.slots.contains(&id) || users.slots.contains_key(&id) || next_slots.contains(&id);
    let keep_header =
        |id: HeaderId| !scoped.headers.contains(&id) || users.headers.contains_key(&id) || in_stacks.contains(&id);
    let mut slots: SecondaryMap<SlotId, SlotId> = SecondaryMap::with_default(SlotId::new(0));
    let mut kept = PrimaryMap::new();
    for (id, slot) in std::mem::take(&mut program.slots) {
        if keep_slot(id) {
            slots[id] = kept.push(slot);
        }
    }
    program.slots = kept;
    let mut headers: SecondaryMap<HeaderId, HeaderId> = SecondaryMap::with_default(HeaderId::new(0));
    let mut kept = PrimaryMap::new();
    for (id, header) in std::mem::take(&mut program.headers) {
        if keep_header(id) {
            headers[id] = kept.push(header);
        }
    }
    program.headers = kept;
    renumber(program, &slots, &headers);
}

fn renumber(program: &mut Program, slots: &SecondaryMap<SlotId, SlotId>, headers: &SecondaryMap<HeaderId, HeaderId>) {
    let mut visit = |used: StorageUse<'_>| match used {
        StorageUse::Read(slot) | StorageUse::Write(slot) => *slot = slots[*slot],
        StorageUse::Header(header) => *header = headers[*header],
        StorageUse::Stack(_) => {}
    };
    program.bodies.values_mut().for_each(|body| body_uses(body, &mut visit));
    let keys = program.tables.values_mut().flat_map(|table| &mut table.keys);
    keys.for_each(|key| expr_uses(&mut key.expr, &mut visit));
    for stack in program.stacks.values_mut() {
        stack.first = headers[stack.first];
        stack.next = slots[stack.next];
    }
    for param in program.actions.values_mut().flat_map(|action| &mut action.params) {
        param.slot = slots[param.slot];
    }
    for item in program.field_lists.values_mut().flatten() {
        match item {
            ir::FieldListItem::Slot(slot) => *slot = slots[*slot],
            ir::FieldListItem::Header(header) => *header = headers[*header],
        }
    }
}
