//! The status of a cluster as its operator knows it, and the commands that users give.

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
        /// The other store's name, if it is not to be any spare.
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
    /// Number of stores that the chain should have.
    pub wanted: usize,
    /// The chain.
    pub chain: ChainStatus,
    /// All stores in the order of their names.
    pub stores: Vec<StoreStatus>,
    /// The last changes, oldest first.
    pub history: Vec<HistoryLine>,
}

/// The chain of stores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainStatus {
    /// The names of the members, from head to tail.
    pub members: Vec<String>,
    /// The name of the store that copies the rows.
    pub learner: Option<String>,
}

/// The role of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreRole {
    /// First member: decides who owns a row.
    Head,
    /// Member between head and tail.
    Middle,
    /// Last member: replies to switches.
    Tail,
    /// Only member.
    Only,
    /// Store that copies the rows in order to join the chain.
    Learner,
    /// Store outside of the chain, drained or not.
    Spare,
}

/// The status of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: StoreRole,
    /// Whether it answers.
    pub answers: bool,
    /// Whether it is drained.
    pub is_drained: bool,
    /// Whether it has everything that the chain has acknowledged.
    pub is_active: bool,
    /// Number of its lives, if it has answered. A store in memory begins one at each start.
    pub lives: Option<u32>,
    /// Number of its rows.
    pub rows: u64,
    /// Number of operations that it keeps for its successor.
    pub log: u64,
    /// Number of operations that it has applied, and that are not known to be at the whole chain.
    pub pending: u64,
    /// The share of the rows that a learner has copied, in percent.
    pub copied_percent: Option<u8>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Its number, which grows by 1.
    pub number: u64,
    /// The time, in seconds since 1970.
    pub time_s: u64,
    /// The change.
    pub text: String,
}
