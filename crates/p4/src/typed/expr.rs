//! Defines typed expressions.

use diagnostics::Span;

use super::*;
use crate::ast::{BinaryOp, UnaryOp};

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Kind and content.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Source span.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A compile-time value.
    Const(Value),
    /// A variable or parameter, including constructor parameters.
    Var(VarId),
    /// An instance: an extern object, sub-parser, sub-control, or package.
    Instance(InstanceId),
    /// A value set, as an argument.
    ValueSet(ValueSetId),
    /// The enclosing extern instance, in the body of an abstract method.
    This,
    /// Field `.1` of a struct, header, header union or tuple.
    Field(Box<Expr>, usize),
    /// `stack[index]`; the index is `bit<w>` or a constant.
    Element(Box<Expr>, Box<Expr>),
    /// `stack.next` (parsers only)
    Next(Box<Expr>),
    /// `stack.last` (parsers only)
    Last(Box<Expr>),
    /// `stack.lastIndex`, a `bit<32>`
    LastIndex(Box<Expr>),
    /// `e[high:low]`
    Slice(Box<Expr>, u32, u32),
    /// `~e`, `!e`, `-e`
    Unary(UnaryOp, Box<Expr>),
    /// `a op b`. `And` and `Or` evaluate the right side only if needed. `Eq` and `Ne` also compare structs, headers,
    /// tuples and stacks. The operands' type determines signedness: arithmetic on `int<w>` is signed.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`; only the selected side is evaluated.
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion to the expression's type: between `bit`, `int`, `bool`, `error`-free enums and `type`s, or field by
    /// field for a struct-valued expression.
    Cast(Box<Expr>),
    /// A struct, (valid) header, tuple or list, with one expression per field.
    Fields(Vec<Expr>),
    /// `{#}`: an invalid header, or a header union without a valid header.
    Invalid,
    /// A call with a value.
    Call(Box<Call>),
    /// `t.apply().hit`, a `bool`; `.miss` is its negation.
    Hit(Box<Call>),
    /// `.action_run` of an apply, only as the subject of a switch.
    ActionRun(Box<Call>),
}

impl Expr {
    /// Returns its direct subexpressions from left to right. Those of a call are not included; see [`Expr::call`].
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let (few, list): ([Option<&Expr>; 3], &[Expr]) = match &self.kind {
            ExprKind::Const(_)
            | ExprKind::Var(_)
            | ExprKind::Instance(_)
            | ExprKind::ValueSet(_)
            | ExprKind::This
            | ExprKind::Invalid
            | ExprKind::Call(_)
            | ExprKind::Hit(_)
            | ExprKind::ActionRun(_) => ([None; 3], &[]),
            ExprKind::Field(a, _)
            | ExprKind::Next(a)
            | ExprKind::Last(a)
            | ExprKind::LastIndex(a)
            | ExprKind::Slice(a, _, _)
            | ExprKind::Unary(_, a)
            | ExprKind::Cast(a) => ([Some(a), None, None], &[]),
            ExprKind::Element(a, b) | ExprKind::Binary(_, a, b) => ([Some(a), Some(b), None], &[]),
            ExprKind::Ternary(a, b, c) => ([Some(a), Some(b), Some(c)], &[]),
            ExprKind::Fields(list) => ([None; 3], list),
        };
        few.into_iter().flatten().chain(list)
    }

    /// Returns the call whose value or result property it is.
    pub fn call(&self) -> Option<&Call> {
        match &self.kind {
            ExprKind::Call(call) | ExprKind::Hit(call) | ExprKind::ActionRun(call) => Some(call),
            _ => None,
        }
    }
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Callee.
    pub callee: Callee,
    /// Arguments in the order of the parameters.
    pub args: Vec<Arg>,
    /// Indices into `args` in the order of evaluation: as the call states its arguments (section 6.8), and omitted ones
    /// last. It differs from the order of the parameters only for named arguments.
    pub order: Vec<usize>,
    /// Source span.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A value for an `in` or directionless parameter, or an l-value for `out` and `inout`.
    Expr(Expr),
    /// `_` for an `out` parameter: the result is discarded.
    DontCare(Type),
    /// An `@optional` parameter without an argument.
    Absent,
}

/// Callee.
#[derive(Clone, Debug)]
pub enum Callee {
    /// A function.
    Function(FunctionId),
    /// An action, directly.
    Action(ActionId),
    /// `table.apply()`
    Table(TableId),
    /// An extern function with its type arguments.
    ExternFn(ExternFnId, Vec<Type>),
    /// A method of an extern object.
    Method {
        /// The object: an [`ExprKind::Instance`], an element of an array of them, a parameter, or [`ExprKind::This`].
        object: Box<Expr>,
        /// The object's type.
        of: ExternId,
        /// Index into [`ExternDecl::methods`].
        method: usize,
        /// The method's own type arguments.
        type_args: Vec<Type>,
    },
    /// `apply` of a sub-parser or sub-control: an instance, or a constructor parameter.
    Apply(Box<Expr>),
    /// A built-in method of headers, header unions and stacks.
    Builtin(Builtin, Box<Expr>),
}

/// Methods of headers, header unions and stacks (specification sections 8.17 to 8.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `isValid()`
    IsValid,
    /// `setValid()`
    SetValid,
    /// `setInvalid()`
    SetInvalid,
    /// `push_front(n)`; the count is a constant.
    PushFront(u32),
    /// `pop_front(n)`
    PopFront(u32),
    /// `minSizeInBits()` and `minSizeInBytes()` of a type without varbit fold to constants; with a varbit, so do
    /// `maxSize...`.
    Size,
}
