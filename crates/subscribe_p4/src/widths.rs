//! Widths of types.

use p4::ast::StructKind;
use p4::typed::{Program, StructDecl, Type};

/// Returns the width of a type in bits if it is fixed; `None` for `varbit`s, stacks and header unions.
pub(crate) fn fixed(program: &Program, ty: &Type) -> Option<u32> {
    match ty {
        Type::Bit(width) | Type::Int(width) => Some(*width),
        Type::Bool => Some(1),
        Type::New(id) => fixed(program, &program.new_types[*id].underlying),
        Type::Enum(id) => fixed(program, program.enums[*id].underlying.as_ref()?),
        Type::Struct(id) => of_fields(program, &program.structs[*id]),
        _ => None,
    }
}

/// Returns the total width of a struct's or header's fields in bits if it is fixed.
pub(crate) fn of_fields(program: &Program, decl: &StructDecl) -> Option<u32> {
    match decl.kind {
        StructKind::Union => None,
        _ => decl.fields.iter().map(|field| fixed(program, &field.ty)).sum(),
    }
}
