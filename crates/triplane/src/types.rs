//! Prints a checked program: its types, parsers, controls and tables, names resolved.

use std::fmt::Write;

use p4::ast::{Direction, StructKind};
use p4::typed::{Local, Param, Program, Transition, TransitionTarget, Type};

/// Prints the declarations of a program.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    let printer = Printer { program };
    // Writing to a string cannot fail.
    let _ = printer.declarations(&mut out);
    out
}

struct Printer<'a> {
    program: &'a Program,
}

impl Printer<'_> {
    fn declarations(&self, out: &mut String) -> std::fmt::Result {
        let program = self.program;
        for decl in program.enums.values() {
            let underlying = decl.underlying.as_ref().map(|ty| format!("{} ", self.ty(ty))).unwrap_or_default();
            writeln!(out, "enum {underlying}{}", decl.name)?;
            for member in &decl.members {
                writeln!(out, "    {} = {:#x}", member.name, member.value)?;
            }
        }
        for decl in program.new_types.values() {
            writeln!(out, "type {} = {}", decl.name, self.ty(&decl.underlying))?;
        }
        for decl in program.structs.values() {
            let kind = match decl.kind {
                StructKind::Struct => "struct",
                StructKind::Header => "header",
                StructKind::Union => "header_union",
            };
            writeln!(out, "{kind} {}", decl.name)?;
            let width = decl.fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
            for field in &decl.fields {
                writeln!(out, "    {:width$}  {}", field.name, self.ty(&field.ty))?;
            }
        }
        for parser in program.parsers.values() {
            writeln!(out, "parser {}({})", parser.name, self.params(&parser.params))?;
            self.locals(out, &parser.locals)?;
            for state in &parser.states {
                let name = |target: &TransitionTarget| match target {
                    TransitionTarget::State(index) => parser.states[*index].name.to_string(),
                    TransitionTarget::Accept => "accept".to_owned(),
                    TransitionTarget::Reject => "reject".to_owned(),
                };
                let mut targets = match &state.transition {
                    Transition::Direct(target, _) => vec![name(target)],
                    Transition::Select { cases, .. } => cases.iter().map(|case| name(&case.target)).collect(),
                };
                targets.dedup();
                writeln!(out, "    state {} -> {}", state.name, targets.join(", "))?;
            }
        }
        for control in program.controls.values() {
            writeln!(out, "control {}({})", control.name, self.params(&control.params))?;
            self.locals(out, &control.locals)?;
            for action in control.actions.iter().map(|id| &program.actions[*id]) {
                writeln!(out, "    action {}({})", action.name, self.params(&action.params))?;
            }
            for table in control.tables.iter().map(|id| &program.tables[*id]) {
                writeln!(out, "    table {}", table.name)?;
                for key in &table.keys {
                    writeln!(out, "        key {}: {} {}", key.name, self.ty(&key.expr.ty), key.match_kind)?;
                }
                let actions = table.actions.iter().map(|entry| program.actions[entry.action].name.as_ref());
                writeln!(out, "        actions {}", actions.collect::<Vec<_>>().join(", "))?;
                let default = table.actions.get(table.default_action.0);
                if let Some(default) = default {
                    let is_const = if table.const_default { "const " } else { "" };
                    writeln!(out, "        {is_const}default {}", program.actions[default.action].name)?;
                }
                if let Some(size) = table.size {
                    writeln!(out, "        size {size}")?;
                }
                if !table.entries.is_empty() {
                    writeln!(out, "        {} entries in the program", table.entries.len())?;
                }
            }
        }
        for id in &program.top_level {
            let instance = &program.instances[*id];
            writeln!(out, "instance {}: {}", instance.name, self.ty(&instance.ty))?;
        }
        Ok(())
    }

    fn locals(&self, out: &mut String, locals: &[Local]) -> std::fmt::Result {
        for local in locals {
            match local {
                Local::Var(var, _) => {
                    let var = &self.program.vars[*var];
                    writeln!(out, "    var {}: {}", var.name, self.ty(&var.ty))?;
                }
                Local::Instance(id) => {
                    let instance = &self.program.instances[*id];
                    writeln!(out, "    instance {}: {}", instance.name, self.ty(&instance.ty))?;
                }
                Local::ValueSet(id) => {
                    let set = &self.program.value_sets[*id];
                    writeln!(out, "    value_set {}: {}", set.name, self.ty(&set.ty))?;
                }
            }
        }
        Ok(())
    }

    fn params(&self, params: &[Param]) -> String {
        let param = |param: &Param| {
            let direction = match param.direction {
                Direction::None => "",
                Direction::In => "in ",
                Direction::Out => "out ",
                Direction::InOut => "inout ",
            };
            let var = &self.program.vars[param.var];
            format!("{direction}{} {}", self.ty(&var.ty), var.name)
        };
        params.iter().map(param).collect::<Vec<_>>().join(", ")
    }

    fn ty(&self, ty: &Type) -> String {
        let program = self.program;
        let list = |types: &[Type]| types.iter().map(|ty| self.ty(ty)).collect::<Vec<_>>().join(", ");
        let applied = |name: &str, args: &[Type]| match args {
            [] => name.to_owned(),
            _ => format!("{name}<{}>", list(args)),
        };
        match ty {
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Integer => "int".into(),
            Type::Bit(width) => format!("bit<{width}>"),
            Type::Int(width) => format!("int<{width}>"),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::String => "string".into(),
            Type::Error => "error".into(),
            Type::MatchKind => "match_kind".into(),
            Type::Enum(id) => program.enums[*id].name.to_string(),
            Type::Struct(id) => program.structs[*id].name.to_string(),
            Type::New(id) => program.new_types[*id].name.to_string(),
            Type::Stack(element, size) => format!("{}[{size}]", self.ty(element)),
            Type::Tuple(types) => format!("tuple<{}>", list(types)),
            Type::List(element) => format!("list<{}>", self.ty(element)),
            Type::Set(element) => format!("set<{}>", self.ty(element)),
            Type::Extern(id) => applied(&program.externs[*id].name, &program.externs[*id].type_args),
            Type::Parser(id) => format!("parser {}", program.parsers[*id].name),
            Type::Control(id) => format!("control {}", program.controls[*id].name),
            Type::ParserType(name, args) | Type::ControlType(name, args) => applied(name, args),
            Type::Package(id) => applied(&program.packages[*id].name, &program.packages[*id].type_args),
            Type::TableResult(id) => format!("result of {}", program.tables[*id].name),
            Type::Absent => "nothing".into(),
        }
    }
}
