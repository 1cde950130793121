//! Provides the messages of the service, generated from `proto/triplane/subscriptions/v1/subscriptions.proto`.

#[allow(missing_docs, clippy::all, rustdoc::all, reason = "generated from the interface file, which documents it")]
mod generated {
    include!("generated/modules.rs");
}

pub use generated::triplane::subscriptions::v1::*;
