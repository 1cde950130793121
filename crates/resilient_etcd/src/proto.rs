//! Provides the part of etcd's interface that is used, generated from `proto/etcdserverpb/etcd.proto`.

#[allow(missing_docs, clippy::all, rustdoc::all, reason = "generated from the interface file, which documents it")]
mod generated {
    include!("generated/modules.rs");
}

pub use generated::etcdserverpb::*;
