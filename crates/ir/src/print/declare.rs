//! Prints a program's top level: header types, headers, stacks and slots. Also numbers source positions.

use std::fmt::{self, Write};

use cranelift_entity::EntityRef;

use super::{Out, Printer, separated, write_position};
use crate::text::write_name;
use crate::*;

/// Fields that together take fewer columns are printed on one line.
const FIELD_COLUMNS: usize = 110;

impl Printer<'_> {
    pub(super) fn program(&self, out: Out<'_>) -> fmt::Result {
        let program = self.program;
        out.write_str("program ")?;
        write_name(out, &program.arch)?;
        out.write_char('\n')?;
        if !program.errors.is_empty() {
            out.write_str("errors {")?;
            for error in &program.errors {
                out.write_char(' ')?;
                write_name(out, error)?;
            }
            out.write_str(" }\n")?;
        }
        self.storage(out)?;
        self.objects(out)?;
        gap(out, program.field_lists.len())?;
        for (list, items) in &program.field_lists {
            write!(out, "field_list {list} {{")?;
            for item in items {
                match item {
                    FieldListItem::Slot(slot) => {
                        out.write_str(" slot ")?;
                        self.slot(out, *slot)?;
                    }
                    FieldListItem::Header(header) => {
                        out.write_str(" header ")?;
                        self.header(out, *header)?;
                    }
                }
            }
            out.write_str(" }\n")?;
        }
        gap(out, program.blocks.len())?;
        for (role, body) in &program.blocks {
            self.role(out, role, *body)?;
        }
        for (id, body) in &program.bodies {
            out.write_char('\n')?;
            self.body(out, id, body)?;
        }
        if !program.locs_are_in_order() {
            out.write_str("\nplaces {\n")?;
            for position in program.locs.values() {
                out.write_str("  ; ")?;
                write_position(out, position)?;
                out.write_char('\n')?;
            }
            out.write_str("}\n")?;
        }
        Ok(())
    }

    fn storage(&self, out: Out<'_>) -> fmt::Result {
        let program = self.program;
        gap(out, program.header_types.len())?;
        for (id, ty) in &program.header_types {
            self.header_type(out, id, ty)?;
        }
        gap(out, program.headers.len())?;
        for (id, header) in &program.headers {
            out.write_str("header ")?;
            self.header(out, id)?;
            out.write_str(": ")?;
            self.header_type_name(out, header.ty)?;
            out.write_str(if header.local { " local\n" } else { "\n" })?;
        }
        for (id, stack) in &program.stacks {
            out.write_str("stack ")?;
            self.stack(out, id)?;
            write!(out, ": {} from ", stack.size)?;
            self.header(out, stack.first)?;
            out.write_str(" next ")?;
            self.slot(out, stack.next)?;
            out.write_char('\n')?;
        }
        gap(out, program.slots.len())?;
        for (id, slot) in &program.slots {
            write!(out, "{} ", slot.kind)?;
            self.slot(out, id)?;
            writeln!(out, ": {}{}", slot.width, if slot.signed { " signed" } else { "" })?;
        }
        Ok(())
    }

    fn header_type(&self, out: Out<'_>, id: HeaderTypeId, ty: &HeaderType) -> fmt::Result {
        let mut fields = Vec::new();
        for field in &ty.fields {
            let mut text = String::new();
            write_name(&mut text, &field.name)?;
            let (varbit, signed) =
                (if field.varbit { "varbit " } else { "" }, if field.signed { " signed" } else { "" });
            write!(text, ": {varbit}{}{signed}", field.width)?;
            self.annotations(&mut text, &field.annotations, " ")?;
            fields.push(text);
        }
        out.write_str("header_type ")?;
        self.header_type_name(out, id)?;
        self.annotations(out, &ty.annotations, " ")?;
        let (before, between, after) = match fields.iter().map(|field| field.len() + 2).sum::<usize>() {
            0..FIELD_COLUMNS => (" ", "  ", " "),
            _ => ("\n  ", "\n  ", "\n"),
        };
        write!(out, " {{{before}")?;
        separated(out, &fields, between, |out, field| out.write_str(field))?;
        writeln!(out, "{after}}}")
    }

    fn header_type_name(&self, out: Out<'_>, id: HeaderTypeId) -> fmt::Result {
        let name = self.program.header_types.get(id).map(|ty| ty.name.as_str());
        self.entity(out, id, name, |names| &names.header_types)
    }
}

/// Prints an empty line before a list that is not empty.
fn gap(out: Out<'_>, len: usize) -> fmt::Result {
    if len == 0 { Ok(()) } else { out.write_char('\n') }
}

/// Returns the unknown position: no file, line 0, column 0.
pub(crate) fn unknown_position() -> diagnostics::SourcePosition {
    diagnostics::SourcePosition { file: String::new(), line: 0, column: 0 }
}

impl Program {
    /// Creates an empty program for an architecture, whose only source position is the unknown one.
    pub fn new(arch: &str) -> Program {
        let mut program = Program { arch: arch.to_owned(), ..Program::default() };
        program.locs.push(unknown_position());
        program
    }

    /// Renumbers the source positions in the order in which the text form mentions them, and drops duplicates and
    /// unreferenced ones. The text of such a program needs no list of positions at its end.
    pub fn renumber_locs(&mut self) {
        let mut order: cranelift_entity::PrimaryMap<LocId, diagnostics::SourcePosition> = Default::default();
        order.push(unknown_position());
        let mut known = std::collections::HashMap::new();
        let old = std::mem::take(&mut self.locs);
        self.each_loc_mut(&mut |loc| {
            let Some(position) = old.get(*loc).filter(|position| loc.index() != 0 && **position != unknown_position())
            else {
                *loc = LocId::new(0);
                return;
            };
            *loc = *known.entry(position.clone()).or_insert_with(|| order.push(position.clone()));
        });
        self.locs = order;
    }

    /// Whether parsing the text form reproduces the current numbers of the source positions.
    fn locs_are_in_order(&self) -> bool {
        if self.locs.values().next() != Some(&unknown_position()) {
            return false;
        }
        let distinct: std::collections::HashSet<_> = self.locs.values().collect();
        let mut seen = 0;
        let mut in_order = distinct.len() == self.locs.len();
        self.each_loc(&mut |loc| match loc.index() {
            at if at == seen + 1 => seen = at,
            at => in_order &= at <= seen,
        });
        in_order && seen + 1 == self.locs.len()
    }

    fn each_loc(&self, visit: &mut dyn FnMut(LocId)) {
        self.actions.values().for_each(|action| visit(action.loc));
        for table in self.tables.values() {
            visit(table.loc);
            table.entries.iter().for_each(|entry| visit(entry.loc));
        }
        for block in self.bodies.values().flat_map(|body| body.blocks.values()) {
            block.instrs.iter().for_each(|instr| visit(instr.loc));
            visit(block.loc);
        }
    }

    fn each_loc_mut(&mut self, visit: &mut dyn FnMut(&mut LocId)) {
        self.actions.values_mut().for_each(|action| visit(&mut action.loc));
        for table in self.tables.values_mut() {
            visit(&mut table.loc);
            table.entries.iter_mut().for_each(|entry| visit(&mut entry.loc));
        }
        for block in self.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
            block.instrs.iter_mut().for_each(|instr| visit(&mut instr.loc));
            visit(&mut block.loc);
        }
    }
}
