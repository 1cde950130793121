//! Checks the semantics of entries, beyond their form: restrictions and references.
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
//! **Restrictions** are expressions of the p4-constraints language (public specification: p4lang/p4-constraints,
//! `docs/language-specification.md`). A [`Checker`] is created from a P4Info. It reports errors in the restrictions
//! themselves, with their positions, and then checks entries against them. The [`Violation`] of an entry shows the
//! clause that failed and the values of its operands.
//!
//! ```text
//! annotation ── text, places ──> lex ──> parse ──> check against keys ──> clause ── entry ──> holds, or an explanation
//! ```
//!
//! Where the specification is open, the meaning is that of the reference implementation. An integer compared with a
//! field of `w` bits is taken modulo `2^w` (so `mask == -1` means "all ones"; other constants that do not fit cause a
//! warning). A number compared with a whole ternary, lpm, range or optional key stands for the match of exactly that
//! number. Keys and parameters have the values that the control plane writes, even where a type is translated.
//!
//! A key whose type is translated to a string is a number of 0 bits: its value is that of its bytes, which is 0 only
//! for the empty string, every number beside it counts as 0, and so does its mask. What the reference implementation
//! refuses because it cannot type it (other match kinds, parameters that are strings) does not make a program invalid:
//! the conjuncts with it are left out. A warning explains each.
//!
//! **References** (`@refers_to(table, field)` on match fields and action parameters, the convention of SAI P4) are
//! enforced by [`References`]: an entry can be written only if the entries it refers to exist, and an entry that is
//! referred to can be neither deleted nor changed so that the reference dangles.
//!
//! Both are pure: they know the messages of P4Runtime, but no switches or sessions. Their input has passed the server's
//! syntactic checks; anything else is treated as omitted.

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
pub use references::{EntityReferences, ReferenceEntity, ReferenceError, References};

/// Maximum length of a restriction in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// Maximum nesting depth of parentheses and signs in a restriction.
pub const MAX_DEPTH: usize = 100;
