//! Defines what an operator reports to users.

use super::LayoutOperator;
use crate::layout::{ChainMember, NodeId, ShardChain, ShardId};
use crate::message::NodeStatus;

/// A remark for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorNote {
    /// A node does not answer.
    Suspected(NodeId),
    /// A node answers again.
    Answers(NodeId),
    /// A chain has changed.
    Changed {
        /// The shard.
        shard: ShardId,
        /// The change.
        change: ChainChange,
        /// The new chain.
        chain: ShardChain,
    },
    /// A node is to leave its chains, or may join chains again.
    Drained(NodeId, bool),
    /// Another operator has made the layout with this epoch.
    Superseded(u64),
    /// The first layout waits until enough nodes answer.
    WaitsForNodes {
        /// Number of nodes that answer.
        ready: usize,
        /// Number of nodes of a chain.
        wanted: usize,
    },
    /// Nodes have a newer layout, with this epoch, than the committed record. Nothing is changed.
    RecordLost(u64),
    /// All members of a shard have lost their memory.
    RowsLost(ShardId),
}

/// A change of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainChange {
    /// The first chain.
    Founded,
    /// Members were removed.
    Removed(Vec<ChainMember>, RemovalReason),
    /// A node begins to copy the rows.
    Learns(ChainMember),
    /// A node that copied the rows was removed.
    LearnerDropped(ChainMember),
    /// A node that has all rows is the new tail.
    Joined(ChainMember),
}

/// The reason for which members were removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// They do not answer, or have lost their memory.
    Gone,
    /// They were drained.
    Drained,
    /// The head has no rows, and cannot get any.
    Unfounded,
    /// The chain is longer than configured.
    Surplus,
}

/// The state of a node as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The node.
    pub node: NodeId,
    /// Whether it answers.
    pub answers: bool,
    /// Whether it is drained.
    pub is_drained: bool,
    /// Its last status.
    pub status: Option<NodeStatus>,
}

impl LayoutOperator {
    /// Whether a change or a user's command is pending.
    pub fn is_changing(&self) -> bool {
        self.proposal.is_some() || !self.commands.is_empty()
    }

    /// Returns the state of all nodes in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = NodeReport> + '_ {
        self.nodes.iter().map(|(node, view)| NodeReport {
            node: *node,
            answers: !view.is_suspected && view.status.is_some(),
            is_drained: self.is_drained(*node),
            status: view.status.clone(),
        })
    }

    /// Returns the rows that a learner has copied, and the number of rows of the node that it copies from.
    pub fn copied(&self, shard: ShardId) -> Option<(ChainMember, u64, u64)> {
        let chain = self.record.layout.chain(shard)?;
        let (learner, tail) = (chain.learner?, chain.members.last()?);
        let rows = |member: ChainMember| {
            let view = self.nodes.get(&member.node)?;
            let is_alive = view.status.as_ref().is_some_and(|status| status.life == member.life);
            view.shard(shard).filter(|_| is_alive).map(|status| status.rows)
        };
        Some((learner, rows(learner).unwrap_or(0), rows(*tail)?))
    }
}
