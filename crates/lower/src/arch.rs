//! Defines [`ArchitectureLowering`], the trait through which an architecture takes part in lowering.

use std::sync::Arc;

use diagnostics::Span;
use p4::ast::Direction;
use p4::typed::{ExternDecl, Type};

use crate::instance::InstRef;
use crate::lowering::Lowering;
use crate::lvalue::Lval;
use crate::value::Val;

/// A compile-time object: what an instance, or a parameter bound to one, denotes.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// The packet being parsed.
    PacketIn,
    /// The packet being assembled.
    PacketOut,
    /// A parser.
    Parser(InstRef),
    /// A control.
    Control(InstRef),
    /// A package: the values of its constructor's arguments.
    Package(Vec<Val>),
    /// A register array.
    Register(ir::RegisterId),
    /// A counter array or direct counter.
    Counter(ir::CounterId),
    /// A meter array or direct meter.
    Meter(ir::MeterId),
    /// An action profile or selector.
    Profile(ir::ProfileId),
    /// An architecture-specific object, by an index that the architecture assigns.
    Other(u32),
}

/// One of the architecture's programmable blocks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The role, as in [`ir::Program::blocks`].
    pub role: &'static str,
    /// The parser or control in this role.
    pub object: Object,
    /// What each of its parameters is bound to, in order.
    pub params: Vec<BlockParam>,
}

/// What a parameter of a programmable block is bound to.
#[derive(Clone, Debug)]
pub enum BlockParam {
    /// An object (`packet_in`, `packet_out`).
    Object(Object),
    /// Storage shared by all blocks with a parameter of this name: `hdr`, `meta`.
    Shared(String),
}

/// A call to an extern function or method with its arguments evaluated.
pub struct ExternCall<'a> {
    /// Name of the function or method.
    pub name: &'a str,
    /// The type of the receiver, for a method; `None` for a function.
    pub receiver_type: Option<&'a ExternDecl>,
    /// Type arguments of the function or method.
    pub type_args: &'a [Type],
    /// Arguments in the order of the parameters.
    pub args: Vec<ExternArg>,
    /// The return type.
    pub ret: &'a Type,
    /// Source span of the whole call.
    pub span: Span,
}

/// An argument of an extern call.
pub struct ExternArg {
    /// The parameter's name.
    pub name: Arc<str>,
    /// The parameter's direction.
    pub direction: Direction,
    /// The argument's type.
    pub ty: Type,
    /// The value; for an `out` parameter [`Val::Absent`].
    pub val: Val,
    /// Destination of the result, for `out` and `inout`.
    pub lval: Option<Lval>,
    /// A slot that holds the result until it can be written to its destination.
    pub(crate) pending: Option<ir::SlotId>,
}

/// An extern object's constructor call with its arguments evaluated.
pub struct ExternInstance<'a> {
    /// The object's type.
    pub decl: &'a ExternDecl,
    /// Full name for the control plane.
    pub name: String,
    /// Arguments in the order of the parameters.
    pub args: Vec<Val>,
    /// Names of the constructor's parameters.
    pub param_names: &'a [Arc<str>],
    /// Annotations of the declaration.
    pub annotations: Vec<ir::Annotation>,
    /// Source span of the declaration.
    pub span: Span,
}

/// The lowering of an architecture's own constructs: its package, blocks, externs, table properties and match kinds.
///
/// Implementations report unsupported constructs with [`Lowering::unsupported`], and must not panic on any program.
pub trait ArchitectureLowering {
    /// Name, as in [`ir::Program::arch`].
    fn name(&self) -> &str;

    /// Returns an example of the declaration of `main`.
    fn main_form(&self) -> &str;

    /// Binds parsers and controls to roles, and says what their parameters are bound to. `package` is the package's
    /// name and `args` are the arguments of its constructor. Returns `None` (with a diagnostic) when the package is not
    /// one of this architecture's.
    fn bind(&self, cx: &mut Lowering<'_>, package: &str, args: &[Val], span: Span) -> Option<Vec<Block>>;

    /// Lowers a call to an extern function. Returns the value of the call, if it has one.
    fn extern_fn(&self, cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) -> Val;

    /// Lowers a call to an extern object's method. Returns the value of the call, if it has one.
    fn extern_method(&self, cx: &mut Lowering<'_>, object: &Object, call: &mut ExternCall<'_>) -> Val;

    /// Creates an extern object.
    fn extern_instance(&self, cx: &mut Lowering<'_>, instance: &ExternInstance<'_>) -> Object;

    /// Processes a table property that the language does not define.
    fn table_property(&self, cx: &mut Lowering<'_>, table: &mut ir::Table, name: &str, value: &Val, span: Span);

    /// Resolves a match kind other than `exact`, `lpm` and `ternary`; `None` if it is unknown.
    fn match_kind(&self, name: &str) -> Option<ir::MatchKind>;

    /// Finishes the program; called after every block is lowered.
    fn finish(&self, cx: &mut Lowering<'_>);
}
