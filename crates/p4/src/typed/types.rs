//! Defines types, which contain no type variables.

use std::sync::Arc;

use cranelift_entity::entity_impl;
use diagnostics::Span;

use super::Annotations;

/// An `enum` or serialisable enum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnumId(u32);
entity_impl!(EnumId, "enum");

/// A struct, header or header union.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StructId(u32);
entity_impl!(StructId, "struct");

/// A `type T name` declaration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NewTypeId(u32);
entity_impl!(NewTypeId, "newtype");

/// An extern object type, one per list of type arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternId(u32);
entity_impl!(ExternId, "extern");

/// A type. Typedefs are resolved; `type` declarations are kept, because the control plane may translate them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `void`
    Void,
    /// `bool`
    Bool,
    /// `int`: compile time only.
    Integer,
    /// `bit<w>`
    Bit(u32),
    /// `int<w>`
    Int(u32),
    /// `varbit<max>`
    Varbit(u32),
    /// `string`: compile time only.
    String,
    /// `error`
    Error,
    /// `match_kind`: compile time only.
    MatchKind,
    /// An enum, serialisable or not.
    Enum(EnumId),
    /// A struct, header or header union, as stated in the declaration.
    Struct(StructId),
    /// A `type` declaration.
    New(NewTypeId),
    /// A header (or header union) stack.
    Stack(Box<Type>, u32),
    /// `tuple<...>`, and the type of a list expression for which no other is expected.
    Tuple(Vec<Type>),
    /// `list<T>`: compile time only.
    List(Box<Type>),
    /// `set<T>`: keysets and value sets.
    Set(Box<Type>),
    /// An extern object.
    Extern(ExternId),
    /// A parser, as a constructor argument.
    Parser(super::ParserId),
    /// A control, as a constructor argument.
    Control(super::ControlId),
    /// An instantiated package.
    Package(super::PackageId),
    /// The result of `table.apply()`.
    TableResult(super::TableId),
    /// A package or constructor parameter with an omitted argument.
    Absent,
    /// `parser P<..>(..)`: the type of a constructor parameter that accepts any parser with this signature. Name and
    /// type arguments; the argument itself is an instance of a [`Type::Parser`].
    ParserType(Arc<str>, Vec<Type>),
    /// `control C<..>(..)`: as `ParserType`, but for a control.
    ControlType(Arc<str>, Vec<Type>),
}

/// An `enum`.
#[derive(Clone, Debug)]
pub struct EnumDecl {
    /// Name.
    pub name: Arc<str>,
    /// The underlying type, for a serialisable enum.
    pub underlying: Option<Type>,
    /// Members in order; a plain enum's values are 0, 1, 2, ...
    pub members: Vec<EnumMember>,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A member of an enum.
#[derive(Clone, Debug)]
pub struct EnumMember {
    /// Name.
    pub name: Arc<str>,
    /// Value; its width is the underlying type's, or 32 bits for a plain enum.
    pub value: bits::Bits,
    /// Annotations.
    pub annotations: Annotations,
}

/// A struct, header or header union.
#[derive(Clone, Debug)]
pub struct StructDecl {
    /// Kind of the declaration.
    pub kind: crate::ast::StructKind,
    /// Name; with its type arguments (`pair<bit<8>, bool>`) if it specialises a generic declaration.
    pub name: Arc<str>,
    /// Fields in order.
    pub fields: Vec<FieldDecl>,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A field.
#[derive(Clone, Debug)]
pub struct FieldDecl {
    /// Name.
    pub name: Arc<str>,
    /// Type.
    pub ty: Type,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A `type T name` declaration.
#[derive(Clone, Debug)]
pub struct NewTypeDecl {
    /// Name.
    pub name: Arc<str>,
    /// The underlying type.
    pub underlying: Type,
    /// Annotations, including `@p4runtime_translation`.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// An extern object type.
#[derive(Clone, Debug)]
pub struct ExternDecl {
    /// Name without type arguments (`register`).
    pub name: Arc<str>,
    /// Type arguments.
    pub type_args: Vec<Type>,
    /// Methods, without constructors.
    pub methods: Vec<ExternMethod>,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A method of an extern object.
#[derive(Clone, Debug)]
pub struct ExternMethod {
    /// Name.
    pub name: Arc<str>,
    /// Names and directions of the parameters, which distinguish overloads.
    pub params: Vec<(Arc<str>, crate::ast::Direction)>,
    /// Whether the instance implements it ([`super::Instance::methods`]).
    pub is_abstract: bool,
    /// Annotations.
    pub annotations: Annotations,
}
