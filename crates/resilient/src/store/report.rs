//! Reports the roles, rows and pools of a node, for metrics and for the operator.

use std::collections::BTreeMap;

use super::StoreNode;
use super::shard::ShardNode;
use crate::layout::ShardId;
use crate::message::{GroupStatus, NumberPool};

/// Maximum number of groups in a status: it fits one datagram.
const MAX_STATUS_GROUPS: usize = 24;

/// Role of a node for a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardRole {
    /// First member: decides who owns a row.
    Head,
    /// Member between head and tail.
    Middle,
    /// Last member: replies to switches.
    Tail,
    /// Only member.
    Only,
    /// Copies the rows in order to become a member.
    Learner,
}

/// A pool of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolReport {
    /// The group of the numbers' rows. It identifies the pool.
    pub group: u64,
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// Number of numbers that are taken, including those of an earlier range.
    pub taken: u64,
}

/// Writes that came with outputs of switches, since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedReport {
    /// Writes whose outputs were forwarded.
    pub writes: u64,
    /// Writes whose outputs were dropped, as the node had too many in memory.
    pub dropped: u64,
}

/// A shard at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardReport {
    /// The shard.
    pub shard: ShardId,
    /// The role.
    pub role: ShardRole,
    /// Whether the node has all operations that the chain acknowledged.
    pub is_active: bool,
    /// Number of rows, including those without values.
    pub rows: u64,
    /// Groups, as they are in the names of rows, with the number of their rows that have values.
    pub groups: Vec<(u64, u64)>,
    /// The pools that were asked for since the node started, at the head.
    pub pools: Vec<PoolReport>,
    /// Number of operations that are kept for a successor.
    pub log: u64,
    /// Number of operations that are not known to be at all nodes of the chain.
    pub pending: u64,
    /// Number of asks that wait for rows of other switches, at the head.
    pub waiting: usize,
    /// Writes with outputs.
    pub carried: CarriedReport,
}

impl StoreNode {
    /// Returns the shards of the node.
    pub fn shard_reports(&self) -> Vec<ShardReport> {
        self.shards.iter().flatten().map(|shard| shard.shard_report(self.is_active(shard.shard))).collect()
    }

    /// Returns the groups with the most rows, over all shards: as many as fit into a status.
    pub(super) fn group_statuses(&self) -> Vec<GroupStatus> {
        let mut groups: BTreeMap<u64, GroupStatus> = BTreeMap::new();
        for shard in self.shards.iter().flatten() {
            for (group, rows) in shard.rows.tally().groups() {
                groups.entry(group).or_insert(GroupStatus { group, rows: 0, range: None }).rows += rows;
            }
            for (group, pool) in shard.pools.seen() {
                let status = groups.entry(*group).or_insert(GroupStatus { group: *group, rows: 0, range: None });
                status.range = Some((pool.first, pool.last));
            }
        }
        let mut groups: Vec<GroupStatus> = groups.into_values().collect();
        groups.sort_by_key(|status| std::cmp::Reverse(status.rows));
        groups.truncate(MAX_STATUS_GROUPS);
        groups
    }
}

impl ShardNode {
    fn shard_report(&self, is_active: bool) -> ShardReport {
        let status = self.status(is_active, self.is_complete());
        let tally = self.rows.tally();
        let pool = |(group, pool): &(u64, NumberPool)| PoolReport {
            group: *group,
            first: pool.first,
            last: pool.last,
            taken: tally.rows(*group),
        };
        ShardReport {
            shard: self.shard,
            role: match (self.is_member, self.is_head, self.is_tail) {
                (false, ..) => ShardRole::Learner,
                (true, true, true) => ShardRole::Only,
                (true, true, false) => ShardRole::Head,
                (true, false, true) => ShardRole::Tail,
                (true, false, false) => ShardRole::Middle,
            },
            is_active,
            rows: status.rows,
            groups: tally.groups().collect(),
            pools: self.pools.seen().iter().map(pool).collect(),
            log: status.log,
            pending: status.pending,
            waiting: self.waiters.len(),
            carried: self.carried,
        }
    }
}
