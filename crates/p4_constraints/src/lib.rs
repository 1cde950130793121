//! What entries have to satisfy besides having the right form: restrictions and references.
//!
//! ```p4
//! @entry_restriction("
//!     ipv4.valid == 0 -> ipv4.dst::mask == 0;   // only match on addresses that are there
//!     ::priority < 1000;
//! ")
//! table acl { key = { hdr.ipv4.isValid() : exact @name("ipv4.valid"); hdr.ipv4.dst : ternary @name("ipv4.dst"); } … }
//!
//! @action_restriction("group != 0")
//! action replicate(@refers_to(multicast_group_table, multicast_group_id) bit<16> group) { … }
//! ```
//!
//! **Restrictions** are expressions of the p4-constraints language (its public specification:
//! p4lang/p4-constraints, `docs/language-specification.md`). A [`Checker`] is made of a P4Info; it reports what is wrong
//! with the restrictions themselves, at their places, and then holds entries against them. The [`Violation`] of an entry
//! shows the clause that failed and the values it saw.
//!
//! ```text
//! annotation ── text, places ──> lex ──> parse ──> check against keys ──> clause ── entry ──> holds, or an explanation
//! ```
//!
//! Where the specification leaves something open, the meaning is that of the reference implementation: an integer that
//! meets a field of `w` bits is taken modulo `2^w` (so `mask == -1` says "all ones"; other constants that do not fit get
//! a warning), and a number that meets a whole ternary, lpm, range or optional key stands for the match of exactly that
//! number. Keys and parameters have the values that the control plane writes, also where a type is translated.
//!
//! **References** (`@refers_to(table, field)` on match fields and action parameters, the convention of SAI P4) are kept
//! by [`References`]: an entry can be written only if what it refers to exists, and what is referred to can neither be
//! deleted nor changed away.
//!
//! Both are pure; they know the messages of P4Runtime and nothing of switches or sessions. What they are given has passed
//! the server's checks of form; what has not is taken as what is left out.

#![forbid(unsafe_code)]

mod annotation;
mod check;
mod checker;
mod clause;
mod expr;
mod lex;
mod parse;
mod references;
mod refers_to;
mod show;
mod value;

pub use checker::{Checker, Violation};
pub use references::{Broken, Item, References, Touches};

/// The longest restriction that is read, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// How deep parentheses and signs may nest in a restriction.
pub const MAX_DEPTH: usize = 100;
