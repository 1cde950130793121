//! Helpers shared by several tests.

pub mod checked;
pub mod entry;
