//! Implements the P4_16 front end (language specification 1.2.5): text in, a checked and fully typed program out.
//!
//! ```text
//! files ── preprocess ──> tokens ── parse ──> ast ── check ──> typed::Program
//! ```
//!
//! The central types are [`ast::Program`], the program as written, and [`typed::Program`], its meaning: every name
//! resolved, every implicit cast explicit, every type variable replaced, every compile-time value folded. Each stage
//! recovers from errors and continues, so one run reports all mistakes as [`diagnostics::Diagnostics`]; a typed
//! program is returned only if there were none.
//!
//! This crate refuses to know any switch: `core.p4` is part of the language and is included here; architectures
//! (`v1model.p4`) are ordinary files, passed in with [`PreprocessorOptions`].

pub mod ast;
mod check;
pub mod lex;
mod lint;
pub mod parse;
mod preprocess;
pub mod typed;

pub use check::check;
pub use parse::{DiskLoader, Loader, NoFiles, PreprocessorOptions, parse, parse_tokens, tokenize};
