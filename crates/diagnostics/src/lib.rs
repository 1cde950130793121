//! Manages source text, positions in it, and diagnostics about it.
//!
//! A [`SourceMap`] owns every file of one compilation. A [`Span`] identifies a range of bytes of one of these
//! files in eight bytes; tokens, the syntax tree, the typed program and the IR carry spans. A mistake in
//! anything a user wrote is a [`Diagnostic`]. [`Diagnostics`] collects them, so that one run reports all
//! mistakes, and renders them with the source line and a caret.
//!
//! [`names`] resolves names that users write against the names that exist, and suggests similar ones.
//! [`visible`] escapes text from untrusted sources so that it cannot act on a terminal.
//!
//! This crate knows no language: files may be P4, JSON, TOML or packet tests.

mod diagnostic;
mod excerpt;
mod map;
pub mod names;
mod render;
mod visible;

pub use diagnostic::{Diagnostic, Diagnostics, Label, Severity};
pub use map::{FileId, SourceFile, SourceMap, SourcePosition, Span};
pub use visible::visible;
