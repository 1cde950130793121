//! Target lowering: the part of lowering that an architecture defines.

use std::sync::Arc;

use diagnostics::Span;
use p4::ast::Direction;
use p4::typed::{ExternDecl, Type};

use crate::instance::InstRef;
use crate::lowering::Lowering;
use crate::place::Lval;
use crate::value::Val;

/// An object that exists while a program is compiled: what an instance, or a parameter that stands for one, means.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// The packet that is parsed.
    PacketIn,
    /// The packet that is put together.
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
    /// Something only the architecture knows, by a number of its own.
    Other(u32),
}

/// One of the architecture's programmable blocks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The role, as in [`ir::Program::blocks`].
    pub role: &'static str,
    /// The parser or control that plays it.
    pub object: Object,
    /// What each of its parameters is, in order.
    pub params: Vec<BlockParam>,
}

/// What a parameter of a programmable block is.
#[derive(Clone, Debug)]
pub enum BlockParam {
    /// An object (`packet_in`, `packet_out`).
    Object(Object),
    /// Storage that every block whose parameter has the same name here shares: `hdr`, `meta`.
    Shared(String),
}

/// A call of an extern function or method with its arguments evaluated.
pub struct ExternCall<'a> {
    /// Name of the function or method.
    pub name: &'a str,
    /// The object's type, for a method.
    pub of: Option<&'a ExternDecl>,
    /// Type arguments of the function or method.
    pub type_args: &'a [Type],
    /// Arguments in the order of the parameters.
    pub args: Vec<ExternArg>,
    /// The type of the call's value.
    pub ret: &'a Type,
    /// Where it stands.
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
    /// Where the result goes, for `out` and `inout`.
    pub lval: Option<Lval>,
    /// A slot that holds the result until it can be written where it belongs.
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
    /// Annotations.
    pub annotations: Vec<ir::Annotation>,
    /// Where it stands.
    pub span: Span,
}

/// The lowering of an architecture's own constructs: its package, blocks, externs, table properties and match kinds.
///
/// What a method does not know it reports with [`Lowering::unsupported`]; it never panics on what a program says.
pub trait TargetLowering {
    /// Name, as in [`ir::Program::arch`].
    fn name(&self) -> &str;

    /// Which parser or control plays which role, and what their parameters are. `package` is the package's name and
    /// `args` what its constructor was given. `None` (with a diagnostic) when the package is not one of this
    /// architecture's.
    fn bind(&self, cx: &mut Lowering<'_>, package: &str, args: &[Val], span: Span) -> Option<Vec<Block>>;

    /// Lowers a call of an extern function; the value of the call, if it has one.
    fn extern_fn(&self, cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) -> Val;

    /// Lowers a call of a method; the value of the call, if it has one.
    fn extern_method(&self, cx: &mut Lowering<'_>, object: &Object, call: &mut ExternCall<'_>) -> Val;

    /// Makes an extern object.
    fn extern_instance(&self, cx: &mut Lowering<'_>, instance: &ExternInstance<'_>) -> Object;

    /// Takes note of a table property that is not the language's own.
    fn table_property(&self, cx: &mut Lowering<'_>, table: &mut ir::Table, name: &str, value: &Val, span: Span);

    /// How a match kind is matched, for kinds beyond `exact`, `lpm` and `ternary`.
    fn match_kind(&self, name: &str) -> Option<ir::MatchKind>;

    /// Called when every block is lowered: what is left to say about the whole program.
    fn finish(&self, cx: &mut Lowering<'_>);
}
