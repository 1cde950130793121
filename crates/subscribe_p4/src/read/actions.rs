//! Actions of the program that rules can call.

use diagnostics::{Diagnostic, Diagnostics};
use p4::ast::Direction;
use p4::typed::{Program, Type};

use super::annotation::find;
use crate::format::{Bound, Parts, ProgramAction};

/// Reads the top-level actions with `@query_action`.
pub(super) fn read(program: &Program, parts: &Parts, diagnostics: &mut Diagnostics) -> Vec<ProgramAction> {
    let marked = |action: &&p4::typed::Action| find(&action.annotations, "query_action").is_some();
    let mut actions = Vec::new();
    for action in program.actions.values().filter(marked) {
        if subscribe::WORDS.contains(&&*action.name) {
            let message = format!("rules cannot call `{}`: it is a keyword of the rule language", action.name);
            diagnostics.push(Diagnostic::error("query-action", action.span, message).help("rename the action"));
            continue;
        }
        if action.name != action.local_name {
            let message = format!("`{}` would have different names in the program and in rules", action.local_name);
            diagnostics.push(Diagnostic::error("query-action", action.span, message).help("remove its `@name`"));
        }
        let mut found = ProgramAction { name: action.name.to_string(), bound: Vec::new(), params: Vec::new() };
        for param in &action.params {
            let var = &program.vars[param.var];
            let structure = match &var.ty {
                Type::Struct(id) => Some(&*program.structs[*id].name),
                _ => None,
            };
            match (param.direction, structure, &var.ty) {
                (Direction::None, None, Type::Bit(width @ 1..=128)) => {
                    found.params.push((var.name.to_string(), *width))
                }
                (Direction::None, ..) => diagnostics.push(Diagnostic::error(
                    "query-action",
                    var.span,
                    format!("a rule cannot pass `{}`: its type must be `bit<1>` to `bit<128>`", var.name),
                )),
                (_, Some(name), _) if name == parts.headers => found.bound.push(Bound::Headers),
                (_, Some(name), _) if name == parts.metadata => found.bound.push(Bound::Metadata),
                (_, Some("standard_metadata_t"), _) => found.bound.push(Bound::Standard),
                _ => diagnostics.push(
                    Diagnostic::error(
                        "query-action",
                        var.span,
                        format!("`{}` cannot be bound before the arguments of rules", var.name),
                    )
                    .help("a parameter with a direction must be the headers, the metadata or `standard_metadata_t`"),
                ),
            }
        }
        actions.push(found);
    }
    actions
}
