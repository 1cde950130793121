//! The integration tests of `subscribe`, in one binary, so that their dependencies are linked once.

mod agreement;
mod crossing;
mod language;
mod order;
mod questions;
mod state;
mod support;
mod words;
