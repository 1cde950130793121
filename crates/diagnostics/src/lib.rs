//! Source text, places in it, and what there is to say about them.
//!
//! A [`SourceMap`] owns every file of one compilation; a [`Span`] names a stretch of one of them in eight bytes and
//! is carried by tokens, syntax, typed programs and IR. A mistake in anything a user wrote is a [`Diagnostic`]; a
//! [`Diagnostics`] collects them, so that one run reports all, and renders them with the source line and a caret.
//!
//! [`names`] holds names that people write against those there are, and finds what they may have meant. [`visible`] shows what
//! others wrote without letting it act on a terminal.
//!
//! This crate knows no language: files may be P4, JSON, TOML or packet tests.

mod diagnostic;
mod excerpt;
mod map;
pub mod names;
mod render;
mod visible;

pub use diagnostic::{Diagnostic, Diagnostics, Label, Severity};
pub use map::{FileId, Place, SourceFile, SourceMap, Span};
pub use visible::visible;
