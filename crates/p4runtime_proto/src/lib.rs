//! Provides the messages of P4Runtime, version 1.5, and their encodings.
//!
//! The interface files (`proto/`, unchanged from release v1.5.0 of p4lang/p4runtime, Apache-2.0) are compiled by
//! `cargo xtask protos`; the types below [`p4`] and [`google`] are generated from them and documented there. With the
//! feature `grpc` so is the service: `v1::p4_runtime_server` has the server's trait, `v1::p4_runtime_client` the
//! client, both without a transport. [`MessageFormat`] writes and reads a message as protobuf text, JSON or bytes.
//! [`footprint`] computes the memory that a message will take before it is decoded. [`bytestring`] converts numbers
//! to and from the byte strings of messages, for servers and clients. Only crates that use protobuf
//! import this one.

pub mod bytestring;
pub mod footprint;
mod format;
mod p4info_version;
mod text;

pub use format::{FormatError, MessageFormat, from_bytes, from_json, from_text, to_bytes, to_json, to_text};

#[allow(missing_docs, clippy::all, rustdoc::all, reason = "generated from the interface files, which document it")]
mod generated {
    include!("generated/modules.rs");
}

pub use generated::{google, p4};
/// The messages of `p4/config/v1`: P4Info and the types it describes.
pub use p4::config::v1 as config;
/// The messages of `p4/v1`: requests, entities, packets.
pub use p4::v1;
pub use p4info_version::{ClientVersion, restrict_to_version};
pub use prost;
