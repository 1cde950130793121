//! Defines the syntax tree: a program as written, with a span on every node and no names resolved.
//!
//! The types are named after the nonterminals of the grammar (specification section 6.2 and appendix G). Statements and
//! expressions are trees of boxes. Constructs that could not be parsed are absent and have been reported.

mod expr;
mod stmt;

pub use expr::*;
pub use stmt::*;

use std::sync::Arc;

use diagnostics::Span;

/// A name and its span.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The name itself.
    pub name: Arc<str>,
    /// Source span.
    pub span: Span,
}

/// A whole program: its declarations in order, those of included files first.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Top-level declarations.
    pub decls: Vec<Decl>,
}

/// `@name`, `@name(...)` or `@name[...]` (specification section 20). `@pragma name ...` is the unstructured form.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The name after the `@`.
    pub name: Ident,
    /// Body in brackets or parentheses.
    pub body: AnnotationBody,
    /// The whole annotation.
    pub span: Span,
}

/// Body of an annotation.
#[derive(Clone, Debug)]
pub enum AnnotationBody {
    /// `@name`
    Empty,
    /// `@name(any tokens)`: kept as tokens with their text; consumers of the annotation may parse them as a list of
    /// expressions.
    Unstructured(Vec<crate::lex::Token>),
    /// `@name[e1, e2]`
    Expressions(Vec<Expr>),
    /// `@name[k1 = e1, k2 = e2]`
    KeyValues(Vec<(Ident, Expr)>),
}

/// Annotations of one declaration.
pub type Annotations = Vec<Annotation>;

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeRef {
    /// Form of the type.
    pub kind: TypeRefKind,
    /// Source span.
    pub span: Span,
}

/// The syntactic forms of a type.
#[derive(Clone, Debug)]
pub enum TypeRefKind {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `void`
    Void,
    /// `int`, of arbitrary precision.
    Integer,
    /// `bit`, `bit<w>`; `None` means width 1.
    Bit(Option<Box<Expr>>),
    /// `int<w>`
    Int(Box<Expr>),
    /// `varbit<w>`
    Varbit(Box<Expr>),
    /// A type name, with a leading dot if `absolute`, and type arguments, if any.
    Named {
        /// Whether the name begins with a dot and is looked up at top level.
        absolute: bool,
        /// The name.
        name: Ident,
        /// `<T1, T2>`
        args: Vec<TypeRef>,
    },
    /// `H[4]`
    Stack(Box<TypeRef>, Box<Expr>),
    /// `tuple<T1, T2>`
    Tuple(Vec<TypeRef>),
    /// `list<T>`
    List(Box<TypeRef>),
    /// `_`: to be inferred.
    DontCare,
}

/// `in`, `out`, `inout`, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// No direction: a compile-time or action-data parameter.
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its annotations (`@optional` among them).
    pub annotations: Annotations,
    /// Its direction.
    pub direction: Direction,
    /// Its type.
    pub ty: TypeRef,
    /// Its name.
    pub name: Ident,
    /// `= default`
    pub default: Option<Expr>,
    /// The whole parameter.
    pub span: Span,
}

/// A field of a struct, header or header union.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its annotations.
    pub annotations: Annotations,
    /// Its type.
    pub ty: TypeRef,
    /// Its name.
    pub name: Ident,
}

/// A declaration, top-level or local.
#[derive(Clone, Debug)]
pub struct Decl {
    /// Its annotations.
    pub annotations: Annotations,
    /// Kind and content.
    pub kind: DeclKind,
    /// From the first token after the annotations to the last.
    pub span: Span,
}

impl Decl {
    /// Returns the name that the declaration introduces, if it is a single one.
    pub fn name(&self) -> Option<&Ident> {
        Some(match &self.kind {
            DeclKind::Const { name, .. }
            | DeclKind::Variable { name, .. }
            | DeclKind::Enum { name, .. }
            | DeclKind::Struct { name, .. }
            | DeclKind::Typedef { name, .. }
            | DeclKind::NewType { name, .. }
            | DeclKind::ExternObject { name, .. }
            | DeclKind::Action { name, .. }
            | DeclKind::ValueSet { name, .. } => name,
            DeclKind::Instance(instance) => &instance.name,
            DeclKind::ExternFunction(proto) | DeclKind::Function { proto, .. } => &proto.name,
            DeclKind::ParserType(ty) | DeclKind::ControlType(ty) | DeclKind::PackageType(ty) => &ty.name,
            DeclKind::Parser(parser) => &parser.ty.name,
            DeclKind::Control(control) => &control.ty.name,
            DeclKind::Table(table) => &table.name,
            DeclKind::Errors(_) | DeclKind::MatchKinds(_) => return None,
        })
    }
}

/// `struct`, `header` or `header_union`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructKind {
    /// `struct`
    Struct,
    /// `header`
    Header,
    /// `header_union`
    Union,
}

/// The kinds of declaration.
#[derive(Clone, Debug)]
pub enum DeclKind {
    /// `const T name = value;`
    Const {
        /// Declared type.
        ty: TypeRef,
        /// Name.
        name: Ident,
        /// Value.
        value: Expr,
    },
    /// `T name;`, `T name = init;` (local only)
    Variable {
        /// Declared type.
        ty: TypeRef,
        /// Name.
        name: Ident,
        /// Initial value.
        init: Option<Expr>,
    },
    /// `T(args) name;`, with an optional block of abstract-method implementations.
    Instance(InstanceDecl),
    /// `error { a, b }`
    Errors(Vec<Ident>),
    /// `match_kind { a, b }`
    MatchKinds(Vec<(Annotations, Ident)>),
    /// `enum name { a, b }` and `enum bit<8> name { a = 1 }`
    Enum {
        /// The underlying type of a serialisable enum.
        underlying: Option<TypeRef>,
        /// Name.
        name: Ident,
        /// Members with their values, if given.
        members: Vec<(Annotations, Ident, Option<Expr>)>,
    },
    /// `struct`, `header`, `header_union`
    Struct {
        /// Kind of the declaration.
        kind: StructKind,
        /// Name.
        name: Ident,
        /// `<T, U>`
        type_params: Vec<Ident>,
        /// Fields.
        fields: Vec<Field>,
    },
    /// `typedef T name;`
    Typedef {
        /// The aliased type.
        ty: TypeRef,
        /// Name.
        name: Ident,
    },
    /// `type T name;`
    NewType {
        /// The underlying type.
        ty: TypeRef,
        /// Name.
        name: Ident,
    },
    /// `extern name { methods }`
    ExternObject {
        /// Name.
        name: Ident,
        /// `<T, U>`
        type_params: Vec<Ident>,
        /// Constructors and methods.
        methods: Vec<Method>,
    },
    /// `extern T f(params);`
    ExternFunction(FunctionProto),
    /// `T f(params) { ... }`
    Function {
        /// Name, result, parameters.
        proto: FunctionProto,
        /// Body.
        body: Block,
    },
    /// `action a(params) { ... }`
    Action {
        /// Name.
        name: Ident,
        /// Parameters.
        params: Vec<Param>,
        /// Body.
        body: Block,
    },
    /// `parser P<T>(params);`
    ParserType(PipelineType),
    /// `control C<T>(params);`
    ControlType(PipelineType),
    /// `package P<T>(params);`
    PackageType(PipelineType),
    /// `parser P(params)(ctor params) { ... }`
    Parser(ParserDecl),
    /// `control C(params)(ctor params) { ... }`
    Control(ControlDecl),
    /// `table t { ... }` (local to a control)
    Table(TableDecl),
    /// `value_set<T>(size) name;` (local to a parser or top level)
    ValueSet {
        /// Element type.
        ty: TypeRef,
        /// Size.
        size: Expr,
        /// Name.
        name: Ident,
    },
}

/// `T(args) name = { implementations };`
#[derive(Clone, Debug)]
pub struct InstanceDecl {
    /// Instantiated type.
    pub ty: TypeRef,
    /// Constructor arguments.
    pub args: Vec<Arg>,
    /// Name.
    pub name: Ident,
    /// Implementations of abstract methods, and instances among them.
    pub body: Option<Vec<Decl>>,
}

/// Name, result and parameters of a function or method.
#[derive(Clone, Debug)]
pub struct FunctionProto {
    /// Result type.
    pub ret: TypeRef,
    /// Name.
    pub name: Ident,
    /// `<T, U>`
    pub type_params: Vec<Ident>,
    /// Parameters.
    pub params: Vec<Param>,
}

/// A method of an extern object.
#[derive(Clone, Debug)]
pub struct Method {
    /// Its annotations.
    pub annotations: Annotations,
    /// Whether the instance must implement it.
    pub is_abstract: bool,
    /// Whether it is a constructor: its name is the object's, and `proto.ret` is void.
    pub is_constructor: bool,
    /// The rest.
    pub proto: FunctionProto,
}

/// The signature of a parser, control or package.
#[derive(Clone, Debug)]
pub struct PipelineType {
    /// Name.
    pub name: Ident,
    /// `<T, U>`
    pub type_params: Vec<Ident>,
    /// Run-time parameters (constructor parameters for a package).
    pub params: Vec<Param>,
}

/// A parser with its body.
#[derive(Clone, Debug)]
pub struct ParserDecl {
    /// Name and parameters.
    pub ty: PipelineType,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    /// Constants, variables, instances, value sets.
    pub locals: Vec<Decl>,
    /// States in order.
    pub states: Vec<State>,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct State {
    /// Its annotations.
    pub annotations: Annotations,
    /// Name.
    pub name: Ident,
    /// Statements in order.
    pub statements: Vec<Stmt>,
    /// Transition; absent means `reject`.
    pub transition: Option<Transition>,
    /// The whole state.
    pub span: Span,
}

/// Transition at the end of a state.
#[derive(Clone, Debug)]
pub enum Transition {
    /// `transition name;`
    Direct(Ident),
    /// `transition select(e1, e2) { ... }`
    Select {
        /// The selected expressions.
        exprs: Vec<Expr>,
        /// The cases in order.
        cases: Vec<SelectCase>,
        /// From `select` to the closing brace.
        span: Span,
    },
}

/// `keyset: state;`
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// `default`, `_`, ranges, masks, expressions; one per selected expression, tuples flattened.
    pub keys: Vec<Expr>,
    /// Target state.
    pub state: Ident,
    /// The whole case.
    pub span: Span,
}

/// A control with its body.
#[derive(Clone, Debug)]
pub struct ControlDecl {
    /// Name and parameters.
    pub ty: PipelineType,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    /// Constants, variables, instances, actions, tables.
    pub locals: Vec<Decl>,
    /// Body of `apply`.
    pub body: Block,
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableDecl {
    /// Name.
    pub name: Ident,
    /// Properties in order.
    pub properties: Vec<TableProperty>,
}

/// A property of a table.
#[derive(Clone, Debug)]
pub struct TableProperty {
    /// Its annotations.
    pub annotations: Annotations,
    /// Whether it is preceded by `const`.
    pub is_const: bool,
    /// Kind of the property.
    pub kind: TablePropertyKind,
    /// From its name to the `;` or `}`.
    pub span: Span,
}

/// The kinds of table property.
#[derive(Clone, Debug)]
pub enum TablePropertyKind {
    /// `key = { e : kind @annotations; ... }`
    Key(Vec<KeyElement>),
    /// `actions = { a; b(x); ... }`
    Actions(Vec<ActionRef>),
    /// `entries = { ... }`
    Entries(Vec<EntryDecl>),
    /// `name = value;`, including `default_action` and `size`.
    Custom {
        /// The property's name.
        name: Ident,
        /// Its value; an `implementation = action_profile(8)` is a call expression.
        value: Expr,
    },
}

/// `expression : match_kind annotations;`
#[derive(Clone, Debug)]
pub struct KeyElement {
    /// Expression to look up.
    pub expr: Expr,
    /// Match kind.
    pub match_kind: Ident,
    /// Annotations, including `@name`.
    pub annotations: Annotations,
}

/// `annotations name(args);` in `actions`.
#[derive(Clone, Debug)]
pub struct ActionRef {
    /// Annotations, including `@tableonly` and `@defaultonly`.
    pub annotations: Annotations,
    /// Whether the name begins with a dot.
    pub absolute: bool,
    /// The action.
    pub name: Ident,
    /// Bound arguments, if written.
    pub args: Option<Vec<Arg>>,
    /// The whole reference.
    pub span: Span,
}

/// An entry of `entries`.
#[derive(Clone, Debug)]
pub struct EntryDecl {
    /// Whether it is preceded by `const`.
    pub is_const: bool,
    /// `priority = e :`
    pub priority: Option<Expr>,
    /// One keyset per key element.
    pub keys: Vec<Expr>,
    /// The action with its arguments.
    pub action: ActionRef,
    /// Annotations after the action.
    pub annotations: Annotations,
    /// The whole entry.
    pub span: Span,
}
