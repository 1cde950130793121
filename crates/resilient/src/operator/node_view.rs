//! Keeps the last answer of a node.

use crate::layout::ShardId;
use crate::message::{NodeStatus, ShardStatus};

/// An operator's knowledge of a node.
#[derive(Debug, Default)]
pub(super) struct NodeView {
    /// The answer to the newest request that was answered.
    pub status: Option<NodeStatus>,
    /// Number of requests since then.
    pub unanswered: u32,
    pub is_suspected: bool,
}

impl NodeView {
    /// Records an answer, unless it is older than the last one.
    pub fn answered(&mut self, status: &NodeStatus) -> bool {
        let is_new = self.status.as_ref().is_none_or(|last| last.number <= status.number);
        if is_new {
            self.status = Some(status.clone());
            self.unanswered = 0;
        }
        is_new
    }

    /// Returns the epoch of the node's layout.
    pub fn epoch(&self) -> Option<u64> {
        self.status.as_ref().map(|status| status.layout)
    }

    /// Returns the status of a shard at the node.
    pub fn shard(&self, shard: ShardId) -> Option<&ShardStatus> {
        self.status.as_ref()?.shards.iter().find(|status| status.shard == shard)
    }
}
