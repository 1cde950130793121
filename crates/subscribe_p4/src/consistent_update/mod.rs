//! Consistent updates: the order of writes for targets without atomic batches.
//!
//! The guarantee is a per-message variant of the per-packet consistency of Reitblatt et al., Abstractions for Network
//! Update (SIGCOMM 2012): every message is matched entirely by the old rules or entirely by the new ones. Entries of
//! new states are installed first, where no message reaches them. The entries of surviving states then change in an
//! order in which each message meets either the old entry or the new one. Unreachable entries are deleted last.

pub(crate) mod order;
pub(crate) mod repair;
