//! The compiler: rules are lowered to decision diagrams, united, and emitted as table entries.
//!
//! ```text
//! lower ──> union_trie ──> emit, slice
//! (each rule)  (union)     (states, entries, and the change of the tables)
//! ```
//!
//! [`layout`] and [`order_search`] choose the column order; [`effects`], [`slots`], [`aggregates`], [`groups`] and
//! [`codes`] allocate numbers with reference counts; [`prefixes`] expands intervals.

pub(crate) mod aggregates;
pub(crate) mod codes;
pub(crate) mod effects;
pub(crate) mod emit;
pub(crate) mod groups;
pub(crate) mod layout;
pub(crate) mod lower;
pub(crate) mod order_search;
pub(crate) mod prefixes;
pub(crate) mod slice;
pub(crate) mod slots;
pub mod state;
pub(crate) mod state_explosion;
pub(crate) mod union_trie;
