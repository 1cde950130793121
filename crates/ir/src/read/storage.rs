//! Reads header types, headers, stacks and slots.

use super::Declaration;
use super::cursor::TextReader;
use crate::text::{SLOT_KINDS, meaning_of};
use crate::*;

impl TextReader<'_, '_> {
    pub(super) fn header_type(&mut self) -> Option<()> {
        let name = self.declared(self.program.header_types.next_key(), "header type")?;
        let annotations = self.annotations()?;
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            let name = self.name("the name of a field, or `}`")?;
            self.expect(":")?;
            let varbit = self.take("varbit");
            let width = self.number("a width in bits")?;
            let signed = self.take("signed");
            fields.push(HeaderField { name, width, varbit, signed, annotations: self.annotations()? });
        }
        let id = self.program.header_types.push(HeaderType { name: name.clone(), fields, annotations });
        self.names.header_types.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn header_instance(&mut self) -> Option<()> {
        let name = self.declared(self.program.headers.next_key(), "header")?;
        self.expect(":")?;
        let ty = self.reference("header type", |n| &n.header_types, |program| &program.header_types, |ty| &ty.name)?;
        let local = self.take("local");
        let id = self.program.headers.push(Header { name: name.clone(), ty, local });
        self.names.headers.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn slot_declaration(&mut self, item: Declaration<'_>) -> Option<()> {
        let Some(kind) = meaning_of(SLOT_KINDS, item.word) else { return self.expected("a slot") };
        let name = self.declared(self.program.slots.next_key(), "slot")?;
        self.expect(":")?;
        let width = self.number("a width in bits")?;
        let signed = self.take("signed");
        let id = self.program.slots.push(Slot { name: name.clone(), width, kind, signed });
        self.names.slots.entry(name).or_insert(id);
        Some(())
    }

    pub(super) fn stack(&mut self) -> Option<()> {
        let name = self.declared(self.program.stacks.next_key(), "stack")?;
        self.expect(":")?;
        let size = self.number("the number of elements")?;
        self.expect("from")?;
        let first = self.header_id()?;
        self.expect("next")?;
        let next = self.slot()?;
        let id = self.program.stacks.push(Stack { name: name.clone(), first, size, next });
        self.names.stacks.entry(name).or_insert(id);
        Some(())
    }

    /// Reads a slot by its name or number.
    pub(super) fn slot(&mut self) -> Option<SlotId> {
        self.reference("slot", |names| &names.slots, |program| &program.slots, |slot| &slot.name)
    }

    /// Reads a header by its name or number.
    pub(super) fn header_id(&mut self) -> Option<HeaderId> {
        self.reference("header", |names| &names.headers, |program| &program.headers, |header| &header.name)
    }

    /// Reads a stack by its name or number.
    pub(super) fn stack_id(&mut self) -> Option<StackId> {
        self.reference("stack", |names| &names.stacks, |program| &program.stacks, |stack| &stack.name)
    }
}
