//! Defines the checked program: every name resolved, every expression typed, every implicit cast explicit.
//!
//! Invariants of every [`Program`] returned by the checker, on which consumers may rely:
//!
//! - It is monomorphic. Generic structs, headers, functions, parsers, controls and extern objects appear once for each
//!   list of type arguments with which they are used; [`Type`] has no type variable. Calls to generic extern functions
//!   and methods carry their type arguments.
//! - Operands have the types that their operators require: both operands of an addition have the same type, a shift's
//!   right operand is `bit<W>` or a constant, a condition is `bool`. A conversion is an [`ExprKind::Cast`].
//! - A local compile-time known value, as the specification calls it, is an [`ExprKind::Const`]. Values that depend on
//!   constructor parameters stay expressions over [`ExprKind::Var`]; they become constants at instantiation.
//! - Arguments are in the order of the parameters; an omitted one holds its default, an omitted `@optional` one is
//!   [`Arg::Absent`]. [`Call::order`] records their source order, which is the order of evaluation. Directions and
//!   l-values have been checked.
//! - Struct, header and list expressions have all their fields, in declaration order, with `...` expanded.
//! - Arbitrary-precision `int` appears in constants and constructor parameters only, never in run-time expressions.
//! - Compound assignment, `switch` fall-through, tuples in `select`, overloads and named arguments are resolved.
//!
//! Control-plane names (the `name` of items of [`Program`]) are fully qualified according to the P4Runtime
//! specification and `@name`/`@hidden`: `MyIngress.ipv4_lpm`. The names in a parser or control that is instantiated in
//! several places are relative to it; the consumer that instantiates it adds the instance's name as a prefix.

mod expr;
mod items;
mod stmt;
mod types;

pub use expr::*;
pub use items::*;
pub use stmt::*;
pub use types::*;
