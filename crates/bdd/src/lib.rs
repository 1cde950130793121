//! Implements ordered multi-terminal decision diagrams over numbers: functions from a few unsigned fields to sets of
//! actions.
//!
//! The central type is [`Store`]. It owns nodes and sets; a [`Ref`] names one of them, and with it a function. A *node*
//! tests one field (its *level*; levels ascend along every path) and has *arms*: intervals that partition the field's
//! domain, each with the function that holds there. A *set* is a terminal: sorted numbers with a meaning that the
//! caller defines.
//!
//! ```text
//!            price                      cuts      51, 101
//!   0..50 / 51..100 \ 101..             children  {}, {1}, {1, 2}
//!      {}    {1}    {1, 2}
//! ```
//!
//! One node holds all tests of a field on a path, so the three reductions always hold by construction: *isomorphic*
//! nodes are one (everything is interned), there are no *redundant* tests (neighbouring arms differ, and a node has two
//! or more), and no test is *implied* by an earlier one of the same field (there is no earlier one). The diagram of a
//! function is therefore unique for an order of the fields: two functions are equal exactly if their `Ref`s are.
//!
//! A binary decision diagram of comparisons, as in the literature, has one node for each cut.
//!
//! The store keeps everything until [`Store::collect`] is called with the functions that are still needed. Operations
//! stop with [`LimitExceeded`] when a limit is reached, and leave the store valid. The crate knows no packets, rules or
//! tables.

#![forbid(unsafe_code)]

mod arms;
mod collect;
mod operations;
mod set;
mod store;
mod walk;

#[cfg(test)]
mod tests;

pub use store::{LimitExceeded, Limits, Ref, Store};
