//! Pipeline IR: what a packet program does, small enough to hold in the head.
//!
//! The central type is [`Program`]. This page will tell how one is evaluated; see the crate's modules meanwhile.

mod body;
mod expr;
mod objects;
mod print;
mod program;
mod read;
mod text;
mod validate;

pub use body::*;
pub use expr::*;
pub use objects::*;
pub use program::*;
pub use read::parse;
pub use validate::{
    MAX_ALL_ARRAYS, MAX_ARRAY_SIZE, MAX_EXPR_DEPTH, MAX_HEADER_BITS, MAX_NAME, MAX_REGISTER_BITS, Rule, Violation,
    validate,
};
