//! The helpers that several tests share.

pub mod checked;
pub mod entry;
