//! Checks TLS certificates and private keys before a connection uses them, and names the cause of a failed handshake.
//!
//! ```text
//!   PEM files ── check_certificates, check_key ──> CredentialError, if one cannot be used
//!   error of a connection ── HandshakeFailure::of ──> HandshakeFailure, if TLS caused it
//! ```
//!
//! The TLS library reads the same files later, but reports only that one of them is wrong, or nothing: it leaves out
//! authorities that it cannot parse, and offers certificates that have expired. The crate opens no files and reads no
//! clock: contents and time are arguments. Its errors are facts; callers know the names of files and options.

#![forbid(unsafe_code)]

mod check;
mod handshake;

pub use check::{CredentialError, check_certificates, check_key};
pub use handshake::HandshakeFailure;
