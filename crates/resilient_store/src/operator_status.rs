//! The status of a cluster as its operator sees it, and the commands of users.

use serde::{Deserialize, Serialize};

/// A request on the operator's socket: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum OperatorRequest {
    /// Asks for the status.
    Status,
    /// Lets a store leave the chain.
    Drain {
        /// Its name.
        store: String,
    },
    /// Lets a store that was drained join the chain again.
    Undrain {
        /// Its name.
        store: String,
    },
    /// Replaces a store of the chain.
    Replace {
        /// Its name.
        store: String,
        /// The name of the other store; any spare if omitted.
        with: Option<String>,
    },
}

/// The answer to a request: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorResponse {
    /// The status after the request.
    Status(OperatorStatus),
    /// The reason for which the request was refused.
    Refused(String),
}

/// The status of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorStatus {
    /// The epoch of the layout; 0 if there is none yet.
    pub epoch: u64,
    /// Number of stores that each chain should have.
    pub wanted: usize,
    /// The chain of each shard, in the order of the shards.
    pub chains: Vec<ChainStatus>,
    /// All stores in the order of their names.
    pub stores: Vec<StoreStatus>,
    /// Whether a change or a command of a user is under way.
    pub is_changing: bool,
    /// The reason for which the layout cannot be changed.
    pub blocked_reason: Option<String>,
    /// The last changes, oldest first.
    pub history: Vec<HistoryLine>,
}

impl OperatorStatus {
    /// Whether a store is a member of a chain.
    pub fn is_member(&self, store: &str) -> bool {
        self.chains.iter().any(|chain| chain.members.iter().any(|member| member == store))
    }

    /// Whether a store is a member of a chain, or copies the rows of one.
    pub fn is_in_a_chain(&self, store: &str) -> bool {
        self.is_member(store) || self.chains.iter().any(|chain| chain.learner.as_deref() == Some(store))
    }
}

/// The chain of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainStatus {
    /// The names of the members, from head to tail.
    pub members: Vec<String>,
    /// The name of the store that copies the rows.
    pub learner: Option<String>,
}

/// The role of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreRole {
    /// First member: decides which switches have a row.
    Head,
    /// Member between head and tail.
    Middle,
    /// Last member: replies to switches.
    Tail,
    /// Only member.
    Only,
    /// Store that copies the rows in order to join the chain.
    Learner,
    /// Store outside the chain, drained or not.
    Spare,
}

impl StoreRole {
    /// Whether a store with the role is a member of the chain.
    pub fn is_member(self) -> bool {
        !matches!(self, StoreRole::Learner | StoreRole::Spare)
    }

    /// Returns the role of a member by its position in a chain of this length.
    pub fn of_member(position: usize, length: usize) -> StoreRole {
        match (position == 0, position + 1 == length) {
            (true, true) => StoreRole::Only,
            (true, false) => StoreRole::Head,
            (false, true) => StoreRole::Tail,
            (false, false) => StoreRole::Middle,
        }
    }
}

/// The status of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Its name.
    pub name: String,
    /// Its role for each shard, in the order of the shards.
    pub roles: Vec<StoreRole>,
    /// Whether it answers.
    pub answers: bool,
    /// Whether it is drained.
    pub is_drained: bool,
    /// Whether it has all operations that its chains have acknowledged.
    pub is_active: bool,
    /// Number of its lives, if it has answered. A store in memory begins one at each start.
    pub lives: Option<u32>,
    /// Number of its rows.
    pub rows: u64,
    /// Number of operations that it keeps for its successor.
    pub log: u64,
    /// Number of operations that it has applied, and that are not known to be at all nodes of the chain.
    pub pending: u64,
    /// The share of the rows that a learner has copied, in percent: the smallest one of its shards.
    pub copied_percent: Option<u8>,
    /// The groups with the most rows, at most 24.
    pub groups: Vec<GroupRows>,
}

/// The rows of a group at a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRows {
    /// The number of the group: stores do not know its name.
    pub group: u64,
    /// Number of rows that have values. For a pool, the number of its numbers that are taken.
    pub rows: u64,
    /// The first and last number of a pool, at the head.
    pub range: Option<(u64, u64)>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Its sequence number.
    pub number: u64,
    /// The time, in seconds since 1970.
    pub time_s: u64,
    /// The change.
    pub text: String,
}
