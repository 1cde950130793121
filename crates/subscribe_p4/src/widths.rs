//! How many bits types have.

use p4::ast::StructKind;
use p4::typed::{Program, StructDecl, Type};

/// The bits of a type, if they are always as many: not those of `varbit`s, stacks and header unions.
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

/// The bits of all fields of a struct or header together, if they are always as many.
pub(crate) fn of_fields(program: &Program, decl: &StructDecl) -> Option<u32> {
    match decl.kind {
        StructKind::Union => None,
        _ => decl.fields.iter().map(|field| fixed(program, &field.ty)).sum(),
    }
}
