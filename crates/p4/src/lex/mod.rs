//! Tokens, and the scanner that splits text into them (specification section 6.3 and appendix G).
//!
//! The scanner works line by line for the preprocessor: it reports the beginning of a line, and whether white space
//! precedes a token. An error inside a token (a digit outside the base, a string without a closing quote) is attached
//! to the token and reported only when the token is used, so that text disabled by `#if 0` may contain anything.

mod display;
mod literal;
mod scan;
mod splice;
mod token;

pub use literal::unescape;
pub(crate) use literal::{TokenError, read_int};
pub(crate) use scan::{Interner, RawKind, RawToken, Scanner, StringLine, word_length};
pub(crate) use splice::SplicedText;
pub use token::{Token, TokenKind};
