//! Declarations: what a program consists of.

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

/// Annotations kept, typed as far as they were structured.
pub type Annotations = Arc<[Annotation]>;

/// An annotation with its values folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The name behind the `@`.
    pub name: Arc<str>,
    /// What it carries.
    pub body: AnnotationBody,
    /// Where it stands.
    pub span: Span,
}

/// What an annotation carries.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationBody {
    /// `@name`
    Empty,
    /// `@name(...)`: the text between the brackets as written, and its tokens.
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
    /// Members of `error` in the order of declaration; a value is an index.
    pub errors: Vec<Arc<str>>,
    /// Members of `match_kind` in the order of declaration.
    pub match_kinds: Vec<Arc<str>>,
    /// Top-level instances in the order of declaration, the package among them.
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
    /// Where the name stands.
    pub span: Span,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The variable the body knows it by.
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
    /// Names and directions of the parameters; overloads differ in them.
    pub params: Vec<(Arc<str>, Direction)>,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
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
    /// Where the name stands.
    pub span: Span,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Name for the control plane: `drop` at top level, `MyIngress.drop` in a control (`@name` honoured).
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// Parameters: those with a direction are bound by the program, those without by the control plane.
    pub params: Vec<Param>,
    /// Body.
    pub body: Block,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
    pub span: Span,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name for the control plane.
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// Key elements in order.
    pub keys: Vec<TableKey>,
    /// Actions in order; `NoAction` is appended when the program did not name it but it is the default.
    pub actions: Vec<TableAction>,
    /// What a miss runs: an index into `actions` with the values of the directionless parameters.
    pub default_action: (usize, Vec<Expr>),
    /// Whether the default action is `const`.
    pub const_default: bool,
    /// Entries of the program in order.
    pub entries: Vec<TableEntry>,
    /// Whether the entries are `const`: the control plane cannot change the table.
    pub const_entries: bool,
    /// `size`, if given.
    pub size: Option<u64>,
    /// `largest_priority_wins`, true unless the program says otherwise.
    pub largest_priority_wins: bool,
    /// Every other property: `implementation`, `counters`, `meters`, `support_timeout`, ...
    pub properties: Vec<TableProperty>,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
    pub span: Span,
}

/// An element of a table's key.
#[derive(Clone, Debug)]
pub struct TableKey {
    /// What is looked up.
    pub expr: Expr,
    /// `exact`, `lpm`, `ternary`, `range`, `optional`, `selector`, ...
    pub match_kind: Arc<str>,
    /// Name for the control plane: `@name`, or the expression's text in normal form (`hdr.ipv4.dstAddr`).
    pub name: Arc<str>,
    /// Annotations.
    pub annotations: Annotations,
    /// Where it stands.
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
    /// Where it stands.
    pub span: Span,
}

/// An entry that the program gives.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// One keyset for each key element.
    pub keys: Vec<Keyset>,
    /// Index into the table's `actions`.
    pub action: usize,
    /// Values of the action's directionless parameters; compile-time known.
    pub args: Vec<Expr>,
    /// `priority`, given or implied by position, if the table's kinds need one.
    pub priority: Option<i64>,
    /// Whether this very entry is `const`.
    pub is_const: bool,
    /// Annotations.
    pub annotations: Annotations,
    /// Where it stands.
    pub span: Span,
}

/// A property of a table other than the language's own.
#[derive(Clone, Debug)]
pub struct TableProperty {
    /// Name.
    pub name: Arc<str>,
    /// Value: a constant, or [`ExprKind::Instance`] (inline constructor calls become instances of the control).
    pub value: Expr,
    /// Annotations.
    pub annotations: Annotations,
    /// Where it stands.
    pub span: Span,
}

/// What happens in the declarative part of a parser or control when it is applied, in order.
#[derive(Clone, Debug)]
pub enum Local {
    /// A variable; uninitialised ones have no value until written.
    Var(VarId, Option<Expr>),
    /// An instance, which exists once for each instance of the parser or control around it.
    Instance(InstanceId),
    /// A value set, likewise.
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
    /// States in order; `start` is among them, `accept` and `reject` are not.
    pub states: Vec<State>,
    /// Index of `start`.
    pub start: usize,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
    pub span: Span,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct State {
    /// Name.
    pub name: Arc<str>,
    /// Statements.
    pub body: Block,
    /// Where it goes.
    pub transition: Transition,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
    pub span: Span,
}

/// A state to go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The state with this index.
    State(usize),
    /// The packet is parsed.
    Accept,
    /// The packet is refused.
    Reject,
}

/// How a state ends.
#[derive(Clone, Debug)]
pub enum Transition {
    /// Always there.
    Direct(Target, Span),
    /// The first case whose keysets all match; none raises `error.NoMatch`.
    Select {
        /// What is compared.
        exprs: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
        /// Where it stands.
        span: Span,
    },
}

/// A case of `select`.
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// One keyset for each selected expression, or a single value set or `Any` for all of them.
    pub keys: Vec<Keyset>,
    /// Where it goes.
    pub target: Target,
    /// Where it stands.
    pub span: Span,
}

/// A set of values.
#[derive(Clone, Debug)]
pub enum Keyset {
    /// `_`, `default`
    Any(Span),
    /// A single value, in the type of what it is compared with.
    Value(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// `low .. high`, both included.
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
    /// What `apply` does.
    pub body: Block,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
    pub span: Span,
}

/// A package type, one for each list of type arguments.
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
    /// Name for the control plane, `@name` honoured; relative to the declaration around it.
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// `Extern`, `Parser`, `Control` or `Package`.
    pub ty: Type,
    /// How many there are, for an array of extern objects; a use is then an [`ExprKind::Element`] of it.
    pub array: Option<u32>,
    /// Constructor arguments in the order of the constructor's parameters.
    pub args: Vec<Arg>,
    /// The names of the constructor's parameters: overloaded constructors differ in them.
    pub param_names: Vec<Arc<str>>,
    /// Implementations of abstract methods: the method's name and the function.
    pub methods: Vec<(Arc<str>, FunctionId)>,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
    pub span: Span,
}

/// A value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Name for the control plane.
    pub name: Arc<str>,
    /// Name as written.
    pub local_name: Arc<str>,
    /// Element type.
    pub ty: Type,
    /// Size.
    pub size: u64,
    /// Annotations.
    pub annotations: Annotations,
    /// Where the name stands.
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
    /// Structs, headers (valid), tuples, lists: one value a field.
    Fields(Vec<Value>),
    /// An invalid header.
    Invalid,
}
