//! Tokens (specification section 6.3 and appendix G).

mod token;

pub use token::{Token, TokenKind};
