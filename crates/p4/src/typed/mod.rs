//! The checked program: every name resolved, every expression typed, every implicit cast written out.
//!
//! What holds of every [`Program`] the checker hands out, and what a consumer may therefore rely on:
//!
//! - It is monomorphic. Generic structs, headers, functions, parsers, controls and extern objects appear once for each
//!   list of type arguments they are used with; [`Type`] has no type variable. Calls of generic extern functions and
//!   methods carry their type arguments.
//! - Operands have the types their operators need: both sides of an addition have one type, a shift's right side is
//!   `bit` or a constant, a condition is `bool`. A conversion is an [`ExprKind::Cast`].
//! - What the specification calls a local compile-time known value is an [`ExprKind::Const`]. Values that depend on
//!   constructor parameters stay expressions over [`ExprKind::Var`]; they become constants at instantiation.
//! - Arguments stand in the order of the parameters; an omitted one holds its default, an omitted `@optional` one is
//!   [`Arg::Absent`]. Directions and lvalues have been checked.
//! - Struct, header and list expressions have all their fields, in declaration order, `...` filled in.
//! - Arbitrary-precision `int` appears in constants and constructor parameters only, never in run-time expressions.
//! - Compound assignment, `switch` fall-through, tuples in `select`, overloads and named arguments are resolved.
//!
//! Names for the control plane ([`Program`] items' `name`) are fully qualified as the P4Runtime specification and
//! `@name`/`@hidden` demand: `MyIngress.ipv4_lpm`. For a parser or control that is instantiated in several places the
//! names here are relative to it; the consumer that instantiates prefixes the instance's name.

mod expr;
mod items;
mod stmt;
mod types;

pub use expr::*;
pub use items::*;
pub use stmt::*;
pub use types::*;
