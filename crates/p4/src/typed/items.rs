//! Defines the declarations of a typed program.

use std::sync::Arc;

use bits::Bits;
use cranelift_entity::{PrimaryMap, entity_impl};
use diagnostics::Span;

use super::*;
use crate::ast::Direction;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )*};
}

ids! {
    /// A variable or parameter, unique in the program.
    VarId "var";
    /// A function.
    FunctionId "fn";
    /// An extern function.
    ExternFnId "extern_fn";
    /// An action, top-level or of a control.
    ActionId "action";
    /// A table.
    TableId "table";
    /// A parser.
    ParserId "parser";
    /// A control.
    ControlId "control";
    /// A package type.
    PackageId "package";
    /// An instantiated extern object, parser, control or package.
    InstanceId "inst";
    /// A value set.
    ValueSetId "value_set";
}

/// Annotations, typed where they are structured.
pub type Annotations = Arc<[Annotation]>;

/// An annotation with its values folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The name after the `@`.
    pub name: Arc<str>,
    /// Body.
    pub body: AnnotationBody,
    /// Source span.
    pub span: Span,
}

/// Body of an annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationBody {
    /// `@name`
    Empty,
    /// `@name(...)`: the text between the parentheses as written, and its tokens.
    Unstructured(Arc<str>, Vec<crate::lex::Token>),
    /// `@name[e1, e2]`
    Expressions(Vec<Value>),
    /// `@name[k = e]`
    KeyValues(Vec<(Arc<str>, Value)>),
}

/// A whole checked program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Enums.
    pub enums: PrimaryMap<EnumId, EnumDecl>,
    /// Structs, headers and header unions.
    pub structs: PrimaryMap<StructId, StructDecl>,
    /// `type` declarations.
    pub new_types: PrimaryMap<NewTypeId, NewTypeDecl>,
    /// Extern object types.
    pub externs: PrimaryMap<ExternId, ExternDecl>,
    /// Extern functions.
    pub extern_fns: PrimaryMap<ExternFnId, ExternFn>,
    /// Functions.
    pub functions: PrimaryMap<FunctionId, Function>,
    /// Actions.
    pub actions: PrimaryMap<ActionId, Action>,
    /// Tables.
    pub tables: PrimaryMap<TableId, Table>,
    /// Parsers.
    pub parsers: PrimaryMap<ParserId, Parser>,
    /// Controls.
    pub controls: PrimaryMap<ControlId, Control>,
    /// Package types.
    pub packages: PrimaryMap<PackageId, Package>,
    /// Instances.
    pub instances: PrimaryMap<InstanceId, Instance>,
    /// Value sets.
    pub value_sets: PrimaryMap<ValueSetId, ValueSet>,
    /// Variables and parameters.
    pub vars: PrimaryMap<VarId, Var>,
    /// Members of `error` in the order of declaration; an error value is an index into them.
    pub errors: Vec<Arc<str>>,
    /// Members of `match_kind` in the order of declaration.
    pub match_kinds: Vec<Arc<str>>,
    /// Top-level instances in the order of declaration, including the package.
    pub top_level: Vec<InstanceId>,
    /// The package instance named `main`.
    pub main: Option<InstanceId>,
    /// Every type name declared, with annotations, for P4Info: `type` names and structs a program declares.
    pub pkg_annotations: Annotations,
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub struct Var {
    /// Name as written.
    pub name: Arc<str>,
    /// Type.
    pub ty: Type,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The variable that represents it in the body.
    pub var: VarId,
    /// Direction.
    pub direction: Direction,
    /// Whether it is `@optional`.
    pub optional: bool,
}

/// An extern function.
#[derive(Clone, Debug)]
pub struct ExternFn {
    /// Name.
    pub name: Arc<str>,
    /// Names and directions of the parameters, which distinguish overloads.
    pub params: Vec<(Arc<str>, Direction)>,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name.
    pub name: Arc<str>,
    /// Parameters.
    pub params: Vec<Param>,
    /// Result.
    pub ret: Type,
    /// Body.
    pub body: Block,
    /// Span of the name.
    pub span: Span,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Control-plane name: `drop` at top level, `MyIngress.drop` in a control (or as set by `@name`).
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// Parameters: the program binds those with a direction, the control plane those without.
    pub params: Vec<Param>,
    /// Body.
    pub body: Block,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Control-plane name.
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// Key elements in order.
    pub keys: Vec<TableKey>,
    /// Actions in order; `NoAction` is appended if it is the default action and the program does not list it.
    pub actions: Vec<TableAction>,
    /// Action of a miss: an index into `actions`, and the values of the directionless parameters.
    pub default_action: (usize, Vec<Expr>),
    /// Whether the default action is `const`.
    pub const_default: bool,
    /// Entries declared in the program, in order.
    pub entries: Vec<TableEntry>,
    /// Whether the entries are `const`, so the control plane cannot change the table.
    pub const_entries: bool,
    /// `size`, if given.
    pub size: Option<u64>,
    /// `largest_priority_wins`; true unless the program sets it to false.
    pub largest_priority_wins: bool,
    /// Every other property: `implementation`, `counters`, `meters`, `support_timeout`, ...
    pub properties: Vec<TableProperty>,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// An element of a table's key.
#[derive(Clone, Debug)]
pub struct TableKey {
    /// Expression to look up.
    pub expr: Expr,
    /// `exact`, `lpm`, `ternary`, `range`, `optional`, `selector`, ...
    pub match_kind: Arc<str>,
    /// Control-plane name: `@name`, or the expression's text in normal form (`hdr.ipv4.dstAddr`).
    pub name: Arc<str>,
    /// Annotations.
    pub annotations: Annotations,
    /// Source span.
    pub span: Span,
}

/// An element of a table's `actions`.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// Arguments of the parameters that have a direction, in order.
    pub args: Vec<Arg>,
    /// Annotations: `@tableonly`, `@defaultonly`.
    pub annotations: Annotations,
    /// Source span.
    pub span: Span,
}

/// An entry declared in the program.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// One keyset for each key element.
    pub keys: Vec<Keyset>,
    /// Index into the table's `actions`.
    pub action: usize,
    /// Values of the action's directionless parameters; compile-time known.
    pub args: Vec<Expr>,
    /// `priority`, explicit or implied by position, if the table's match kinds need one.
    pub priority: Option<i64>,
    /// Whether this entry itself is `const`.
    pub is_const: bool,
    /// Annotations.
    pub annotations: Annotations,
    /// Source span.
    pub span: Span,
}

/// A property of a table that the language does not define.
#[derive(Clone, Debug)]
pub struct TableProperty {
    /// Name.
    pub name: Arc<str>,
    /// Value: a constant, or [`ExprKind::Instance`] (inline constructor calls become instances of the control).
    pub value: Expr,
    /// Annotations.
    pub annotations: Annotations,
    /// Source span.
    pub span: Span,
}

/// Declarations of a parser or control that take effect when it is applied, in order.
#[derive(Clone, Debug)]
pub enum Local {
    /// A variable; without an initial value it has none until written.
    Var(VarId, Option<Expr>),
    /// An instance, which exists once per instance of the enclosing parser or control.
    Instance(InstanceId),
    /// A value set, which exists once per instance of the enclosing parser or control.
    ValueSet(ValueSetId),
}

/// A parser.
#[derive(Clone, Debug)]
pub struct Parser {
    /// Name.
    pub name: Arc<str>,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    /// Variables and instances in order.
    pub locals: Vec<Local>,
    /// States in order, including `start`, but not `accept` and `reject`.
    pub states: Vec<State>,
    /// Index of `start`.
    pub start: usize,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct State {
    /// Name.
    pub name: Arc<str>,
    /// Statements.
    pub body: Block,
    /// Target state.
    pub transition: Transition,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// Target of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionTarget {
    /// The state with this index.
    State(usize),
    /// Accepts the packet.
    Accept,
    /// Rejects the packet.
    Reject,
}

/// Transition at the end of a state.
#[derive(Clone, Debug)]
pub enum Transition {
    /// Unconditional transition.
    Direct(TransitionTarget, Span),
    /// The first case with keysets that all match; raises `error.NoMatch` if there is none.
    Select {
        /// Compared expressions.
        exprs: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
        /// Source span.
        span: Span,
    },
}

/// A case of `select`.
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// One keyset for each selected expression, or a single value set or `Any` for all of them.
    pub keys: Vec<Keyset>,
    /// Target state.
    pub target: TransitionTarget,
    /// Source span.
    pub span: Span,
}

/// A set of values.
#[derive(Clone, Debug)]
pub enum Keyset {
    /// `_`, `default`
    Any(Span),
    /// A single value, with the type of the expression it is compared with.
    Value(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// `low .. high`, both inclusive.
    Range(Expr, Expr),
    /// A value set.
    ValueSet(ValueSetId, Span),
}

/// A control.
#[derive(Clone, Debug)]
pub struct Control {
    /// Name.
    pub name: Arc<str>,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    /// Variables and instances in order.
    pub locals: Vec<Local>,
    /// Actions in order.
    pub actions: Vec<ActionId>,
    /// Tables in order.
    pub tables: Vec<TableId>,
    /// Body of `apply`.
    pub body: Block,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A package type, one per list of type arguments.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name (`V1Switch`).
    pub name: Arc<str>,
    /// Type arguments.
    pub type_args: Vec<Type>,
    /// Names of the constructor parameters.
    pub params: Vec<Arc<str>>,
    /// Annotations.
    pub annotations: Annotations,
}

/// An instantiated extern object, parser, control or package.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Control-plane name (or as set by `@name`), relative to the enclosing declaration.
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// `Extern`, `Parser`, `Control` or `Package`.
    pub ty: Type,
    /// Number of elements of an array of extern objects; each use is then an [`ExprKind::Element`] of it.
    pub array: Option<u32>,
    /// Constructor arguments in the order of the constructor's parameters.
    pub args: Vec<Arg>,
    /// Names of the constructor's parameters, which distinguish overloaded constructors.
    pub param_names: Vec<Arc<str>>,
    /// Implementations of abstract methods: the method's name and the function.
    pub methods: Vec<(Arc<str>, FunctionId)>,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Control-plane name.
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// Element type.
    pub ty: Type,
    /// Size.
    pub size: u64,
    /// Annotations.
    pub annotations: Annotations,
    /// Span of the name.
    pub span: Span,
}

/// A value known at compile time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `int`
    Integer(num_bigint::BigInt),
    /// `bit<w>`, `int<w>` and members of enums (32 bits wide for plain ones, see [`EnumMember::value`]).
    Bits(Bits),
    /// `string`
    String(Arc<str>),
    /// An index into [`Program::errors`].
    Error(usize),
    /// An index into [`Program::match_kinds`].
    MatchKind(usize),
    /// Structs, headers (valid), tuples, lists: one value per field.
    Fields(Vec<Value>),
    /// An invalid header.
    Invalid,
}
