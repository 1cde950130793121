//! Pipeline IR: what a packet program does, small enough to hold in the head.
//!
//! The central type is [`Program`]. This page will tell how one is evaluated; see the crate's modules meanwhile.

mod body;
mod expr;
mod objects;
mod program;

pub use body::*;
pub use expr::*;
pub use objects::*;
pub use program::*;
