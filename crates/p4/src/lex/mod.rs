//! Tokens and how text falls into them (specification section 6.3 and appendix G).
//!
//! The scanner works line by line for the sake of the preprocessor: it reports where a line begins and whether white
//! space stands before a token. What is wrong inside a token (a digit that the base does not have, a string without
//! an end) travels with the token and is reported only when the token is used, so that text which `#if 0` hides may
//! hold anything.

mod display;
mod literal;
mod scan;
mod splice;
mod token;

pub(crate) use literal::{Flaw, read_int};
pub(crate) use scan::{Raw, RawKind, Scanner, Words};
pub(crate) use splice::Spliced;
pub use token::{Token, TokenKind};
