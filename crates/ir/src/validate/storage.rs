//! Validates header types, headers, stacks, slots, field lists and roles.

use cranelift_entity::EntityRef;

use super::{Checker, Location, MAX_DATA_BITS, Rule};
use crate::*;

impl<'p> Checker<'p> {
    pub(super) fn storage(&mut self) {
        let program = self.program;
        self.name_length(&program.arch);
        program.errors.iter().for_each(|error| self.name_length(error));
        self.unique(program.header_types.values().map(|ty| ty.name.as_str()));
        self.unique(program.headers.values().filter(|header| !header.local).map(|header| header.name.as_str()));
        self.unique(program.stacks.values().map(|stack| stack.name.as_str()));
        let metadata = program.slots.values().filter(|slot| slot.kind == SlotKind::Metadata);
        self.unique(metadata.map(|slot| slot.name.as_str()));
        for ty in program.header_types.values() {
            self.at = Location::Object("header type", &ty.name);
            self.header_type(ty);
        }
        for header in program.headers.values() {
            self.at = Location::Object("header", &header.name);
            self.name_length(&header.name);
            self.get(&program.header_types, header.ty);
        }
        let mut stacked = vec![false; program.headers.len()];
        for stack in program.stacks.values() {
            self.at = Location::Object("stack", &stack.name);
            self.stack(stack, &mut stacked);
        }
        for slot in program.slots.values() {
            self.at = Location::Object("slot", &slot.name);
            self.name_length(&slot.name);
            self.width_limit(slot.width);
        }
        self.at = Location::Program;
        for (list, kept) in &program.field_lists {
            for kept in kept {
                match kept {
                    FieldListItem::Slot(id) => {
                        let kind = self.get(&program.slots, *id).map(|slot| slot.kind);
                        self.require(kind.is_none_or(|kind| kind == SlotKind::Metadata), Rule::FieldLists, || {
                            format!("field list {list} keeps {id}, which is not metadata")
                        });
                    }
                    FieldListItem::Header(id) => {
                        let local = self.get(&program.headers, *id).is_some_and(|header| header.local);
                        self.require(!local, Rule::FieldLists, || format!("field list {list} keeps the local {id}"));
                    }
                }
            }
        }
        for (role, body) in &program.blocks {
            self.name_length(role);
            let Some(found) = self.get(&program.bodies, *body) else { continue };
            let wanted = if role == "parser" { BodyKind::Parser } else { BodyKind::Control };
            self.require(found.kind == wanted, Rule::Roles, || {
                format!("{role} is {}, of kind {:?} and not {wanted:?}", found.name, found.kind)
            });
        }
    }

    fn header_type(&mut self, ty: &'p HeaderType) {
        self.annotations(&ty.annotations);
        self.unique(ty.fields.iter().map(|field| field.name.as_str()));
        for field in &ty.fields {
            self.width_limit(field.width);
            self.annotations(&field.annotations);
        }
        let total: u64 = ty.fields.iter().map(|field| u64::from(field.width)).sum();
        self.require(total <= MAX_DATA_BITS, Rule::WidthLimit, || format!("{total} bits in all"));
        let variable = ty.fields.iter().filter(|field| field.varbit).count();
        self.require(variable <= 1, Rule::OneVarbit, || format!("{variable} varbit fields"));
    }

    fn stack(&mut self, stack: &Stack, stacked: &mut [bool]) {
        let program = self.program;
        self.require(stack.size > 0, Rule::StackElements, || "it has no elements".to_owned());
        if let Some(next) = self.get(&program.slots, stack.next) {
            self.require(next.width == 32, Rule::StackElements, || {
                format!("the index {} is {} bits wide", next.name, next.width)
            });
        }
        let Some(first) = self.get(&program.headers, stack.first) else { return };
        let start = stack.first.index();
        let Some(end) = start.checked_add(stack.size as usize).filter(|end| *end <= program.headers.len()) else {
            self.broken(Rule::IdInRange, format!("there are no {} headers from {}", stack.size, stack.first));
            return;
        };
        for (at, taken) in stacked.iter_mut().enumerate().take(end).skip(start) {
            let element = &program.headers[HeaderId::new(at)];
            // Report only the first wrong element: many stacks over the same headers would take long to check.
            if element.ty != first.ty {
                return self
                    .broken(Rule::StackElements, format!("{} has another type than {}", element.name, first.name));
            }
            if std::mem::replace(taken, true) {
                return self.broken(Rule::StackElements, format!("{} is in two stacks", element.name));
            }
        }
    }
}
