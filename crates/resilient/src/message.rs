//! The messages between switches and store nodes, and between the nodes of a chain.

use std::sync::Arc;

use crate::carried::CarriedOutputs;
use crate::holders::{RowAccess, RowHolders};
use crate::layout::{NodeId, OperatorId, ShardId, StoreLayout, SwitchId};
use crate::row::{RowId, RowValues};

/// A switch between two of its starts. The incarnation is a random number that it draws at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId {
    /// The switch.
    pub switch: SwitchId,
    /// The number of its start.
    pub incarnation: u64,
}

/// A receiver of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// A switch.
    Switch(SwitchId),
    /// A store node.
    Node(NodeId),
    /// An operator, which changes the layout.
    Operator(OperatorId),
}

impl Peer {
    /// Returns the number of a store node; `None` for other peers.
    pub fn node(self) -> Option<NodeId> {
        if let Peer::Node(node) = self { Some(node) } else { None }
    }

    /// Returns the number of a switch; `None` for other peers.
    pub fn switch(self) -> Option<SwitchId> {
        if let Peer::Switch(switch) = self { Some(switch) } else { None }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreMessage {
    /// From a switch to the head of a chain.
    Request(Request),
    /// From the tail of a chain to a switch. The head sends recalls and refusals itself.
    Reply(Reply),
    /// From a node to its successor.
    Forward(Forward),
    /// From a node to its predecessor.
    Progress(Progress),
    /// A layout, for a switch or node whose layout is older.
    Layout(Arc<StoreLayout>),
    /// A request for the receiver's layout, if it is newer than this epoch.
    LayoutRequest(u64),
    /// From the operator to a node.
    StatusRequest(StatusRequest),
    /// From a node to the operator.
    Status(NodeStatus),
}

impl StoreMessage {
    /// Whether this acknowledges a write. No row is granted or lost by it.
    pub fn is_acknowledgement(&self) -> bool {
        matches!(self, StoreMessage::Reply(Reply { body: ReplyBody::Acked { .. }, .. }))
    }
}

/// A switch's request. A node refuses it if its layout has another epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The epoch of the sender's layout.
    pub layout: u64,
    /// The sender.
    pub owner: OwnerId,
    /// The request itself.
    pub body: RequestBody,
}

/// The kinds of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestBody {
    /// Renews the session of the switch at a shard.
    Renew {
        /// The shard.
        shard: ShardId,
        /// A number that stands for the time at which this request was first sent.
        nonce: u64,
    },
    /// Asks for a row.
    Acquire {
        /// The row.
        row: RowId,
        /// The number of the ask, which grows with each ask of the switch.
        ask: u64,
        /// Action of the store if the row has no values.
        if_missing: IfMissing,
        /// New idle time of the row, in milliseconds; 0 if it does not age.
        idle_ms: u32,
        /// The use that the switch asks for.
        access: RowAccess,
    },
    /// Writes a row's values.
    Write {
        /// The row.
        row: RowId,
        /// The epoch of the grant.
        epoch: u64,
        /// The number of the write, which grows with each write of the row.
        seq: u64,
        /// All values of the row; `None` removes them.
        values: Option<RowValues>,
        /// Outputs that travel with this write. Only its first send has them.
        outputs: Option<CarriedOutputs>,
    },
    /// Gives a row back.
    Release {
        /// The row.
        row: RowId,
        /// The epoch of the grant.
        epoch: u64,
        /// Whether no packet has used the row for its idle time.
        is_idle: bool,
    },
}

impl RequestBody {
    /// Returns the row that the request is about.
    pub fn row(&self) -> Option<&RowId> {
        match self {
            RequestBody::Renew { .. } => None,
            RequestBody::Acquire { row, .. } | RequestBody::Write { row, .. } | RequestBody::Release { row, .. } => {
                Some(row)
            }
        }
    }
}

/// Action of a store if a switch asks for a row without values: one that was never written, or was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum IfMissing {
    /// It grants the row as it is.
    #[default]
    Grant,
    /// It answers [`RefusalReason::NoSuchRow`].
    Refuse,
    /// It gives the row these values.
    Create(RowValues),
    /// It gives the row a free number of a pool as its values.
    Allocate(NumberPool),
}

/// Numbers that rows get when they are created. In a pool that is not shared, each number belongs to one row, and has
/// a row of its own: the [partner](RowId::partner) of that row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberPool {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// Length of a number in keys and values, in bytes.
    pub bytes: u8,
    /// Whether several rows may have the same number.
    pub is_shared: bool,
}

impl NumberPool {
    /// Returns a number as a key and value; `None` if the length is 0 or more than 8.
    pub fn to_bytes(&self, number: u64) -> Option<[u8; 8]> {
        let mut bytes = [0; 8];
        let length = usize::from(self.bytes);
        let from = 8usize.checked_sub(length).filter(|_| length > 0)?;
        bytes[..length].copy_from_slice(&number.to_be_bytes()[from..]);
        Some(bytes)
    }
}

/// A reply to a switch. The switch ignores it if it has another incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The receiver.
    pub owner: OwnerId,
    /// The reply itself.
    pub body: ReplyBody,
}

/// The kinds of replies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyBody {
    /// The session was renewed.
    Renewed {
        /// The shard.
        shard: ShardId,
        /// The number of the request.
        nonce: u64,
    },
    /// The switch may use the row.
    Granted {
        /// The row.
        row: RowId,
        /// The ask.
        ask: u64,
        /// The epoch of this grant.
        epoch: u64,
        /// The number of the row's last write. The owner continues from it.
        seq: u64,
        /// The row's values; `None` if it was never written, or was removed.
        values: Option<RowValues>,
        /// Whether the switch may only read the row, since others may read it, too.
        is_shared: bool,
    },
    /// The switch does not get the row.
    Refused {
        /// The row.
        row: RowId,
        /// The ask.
        ask: u64,
        /// The reason.
        reason: RefusalReason,
    },
    /// Another switch waits for the row.
    Recall {
        /// The row.
        row: RowId,
        /// The epoch of the grant that is to end.
        epoch: u64,
    },
    /// All writes of this epoch up to `seq` are safe.
    Acked {
        /// The row.
        row: RowId,
        /// The epoch of the grant.
        epoch: u64,
        /// The newest write.
        seq: u64,
        /// The outputs that travelled with this write. An acknowledgement of a repeated write has none.
        outputs: Option<CarriedOutputs>,
    },
    /// The epoch of a write has ended. It was not applied, and never will be.
    Stale {
        /// The row.
        row: RowId,
        /// The epoch of the write.
        epoch: u64,
    },
    /// The row was given back.
    Released {
        /// The row.
        row: RowId,
        /// The epoch of the grant that has ended.
        epoch: u64,
    },
    /// Probes the owner of a row with an idle time. A switch that no longer has the row releases it.
    Probe {
        /// The row.
        row: RowId,
        /// The epoch of the grant.
        epoch: u64,
    },
}

impl ReplyBody {
    /// Returns the row that the reply is about.
    pub fn row(&self) -> Option<&RowId> {
        match self {
            ReplyBody::Renewed { .. } => None,
            ReplyBody::Granted { row, .. }
            | ReplyBody::Refused { row, .. }
            | ReplyBody::Recall { row, .. }
            | ReplyBody::Acked { row, .. }
            | ReplyBody::Stale { row, .. }
            | ReplyBody::Released { row, .. }
            | ReplyBody::Probe { row, .. } => Some(row),
        }
    }
}

/// Reason for which a switch does not get a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// The switch owns its maximum number of rows.
    ReplicaFull,
    /// The switch has its maximum number of asks under way.
    TooManyAsks,
    /// Too many switches wait for the row.
    RowContended,
    /// Too many asks wait for rows of the shard.
    ShardContended,
    /// The store has its maximum number of rows.
    StoreFull,
    /// The row has no values, and the switch asked for one that has.
    NoSuchRow,
    /// All numbers of the pool are taken.
    PoolExhausted,
}

/// A step of a chain, in the order that the head decides. Every node applies it, and the tail replies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Renews a session.
    Renew {
        /// The switch.
        owner: OwnerId,
        /// The number of the request.
        nonce: u64,
    },
    /// Grants a row. A repeated grant has the epoch of the first.
    Grant {
        /// The switch that gets it.
        owner: OwnerId,
        /// The row.
        row: RowId,
        /// The ask.
        ask: u64,
        /// The epoch of the grant.
        epoch: u64,
        /// The values that the row gets if it has none.
        created: Option<CreatedRow>,
        /// New idle time of the row, in milliseconds; 0 if it does not age.
        idle_ms: u32,
        /// Whether the switch only reads the row, and others may do so, too.
        is_shared: bool,
    },
    /// Reports that a row has no values.
    Miss {
        /// The switch that asked.
        owner: OwnerId,
        /// The row.
        row: RowId,
        /// The ask.
        ask: u64,
    },
    /// Writes a row, if the epoch is that of the row and `seq` is new.
    Write {
        /// The writer.
        owner: OwnerId,
        /// The row.
        row: RowId,
        /// The epoch of its grant.
        epoch: u64,
        /// The number of the write.
        seq: u64,
        /// The values.
        values: Option<RowValues>,
        /// Outputs that travel with the write. Nodes drop them when they have forwarded them.
        outputs: Option<CarriedOutputs>,
    },
    /// Ends a grant of a row, if the epoch is that of its owner or of one of its readers.
    Release {
        /// The switch that had the row.
        owner: OwnerId,
        /// The row.
        row: RowId,
        /// The epoch of its grant.
        epoch: u64,
    },
    /// Removes a row that no packet has used for its idle time.
    Remove {
        /// The row.
        row: RowId,
        /// Its partner, which is removed with it.
        partner: Option<RowId>,
        /// The highest epoch that any of them had. Later grants have higher epochs.
        epoch: u64,
    },
}

/// The first values of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreatedRow {
    /// The values.
    pub values: RowValues,
    /// The row of the number that was allocated. It is created together with this one.
    pub number: Option<RowId>,
}

impl Operation {
    /// Returns the second row that the operation changes: the row of the number that it assigns, or the partner of the
    /// row that it removes.
    pub fn second_row(&self) -> Option<&RowId> {
        match self {
            Operation::Grant { created: Some(created), .. } => created.number.as_ref(),
            Operation::Remove { partner, .. } => partner.as_ref(),
            _ => None,
        }
    }

    /// Returns the row that the operation changes.
    pub fn row(&self) -> Option<&RowId> {
        match self {
            Operation::Renew { .. } => None,
            Operation::Grant { row, .. }
            | Operation::Miss { row, .. }
            | Operation::Write { row, .. }
            | Operation::Release { row, .. }
            | Operation::Remove { row, .. } => Some(row),
        }
    }
}

/// The complete state of a row, as a learner copies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowRecord {
    /// The row.
    pub row: RowId,
    /// The switches that have not given the row back.
    pub holders: RowHolders,
    /// The ask of the last grant.
    pub ask: u64,
    /// The epoch of the last grant.
    pub epoch: u64,
    /// The number of the last write.
    pub seq: u64,
    /// The values.
    pub values: Option<RowValues>,
    /// Time without use after which the row is removed, in milliseconds; 0 if it does not age.
    pub idle_ms: u32,
}

/// Operations and copied rows for a successor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    /// The epoch of the sender's layout.
    pub layout: u64,
    /// The shard.
    pub shard: ShardId,
    /// The oldest operation that the sender can still send.
    pub base: u64,
    /// The last operation that the sender had when it took its layout, or when it became active after that. A new
    /// member is active once it has this operation. `None` if the sender is not active itself.
    pub floor: Option<u64>,
    /// The index of the first operation.
    pub first: u64,
    /// Operations with consecutive indexes.
    pub operations: Vec<Operation>,
    /// A part of a copy.
    pub chunk: Option<CopyChunk>,
}

/// A part of a copy of all rows. It belongs between two operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CopyChunk {
    /// A random number of this copy.
    pub copy: u64,
    /// The sender's position of this part.
    pub position: u64,
    /// The sender's position of the next part. There may be fewer rows than positions between them.
    pub next: u64,
    /// The operation after which these are the states of the rows.
    pub at: u64,
    /// Whether this is the last part.
    pub is_last: bool,
    /// The highest epoch of any row removed so far.
    pub epoch_floor: u64,
    /// The rows.
    pub rows: Vec<RowRecord>,
}

/// The progress of a successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The epoch of the sender's layout.
    pub layout: u64,
    /// The shard.
    pub shard: ShardId,
    /// The rows that the sender has.
    pub content: Content,
    /// The last operation that it has applied.
    pub applied: u64,
    /// The last operation that all nodes of the chain have applied, as far as the sender knows.
    pub stable: u64,
    /// Whether the sender has had all operations that the chain acknowledged. Otherwise it needs [`Forward::floor`].
    pub is_active: bool,
}

/// The part of a shard's rows that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// None.
    Empty,
    /// The rows of a copy before `position`.
    Copying {
        /// The copy.
        copy: u64,
        /// The position of the next part.
        position: u64,
    },
    /// All.
    Complete,
}

/// A request for the status of a node. The node sends its layout, too, if it is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusRequest {
    /// The number of the request, which the answer repeats.
    pub number: u64,
    /// The epoch of the operator's layout.
    pub layout: u64,
}

/// The status of a node in one life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeStatus {
    /// The number of the request.
    pub number: u64,
    /// The life of the node.
    pub life: u64,
    /// The epoch of its layout, or 0. The other fields refer to this layout.
    pub layout: u64,
    /// The shards that it is a member or learner of.
    pub shards: Vec<ShardStatus>,
    /// Some of the groups that it has rows of.
    pub groups: Vec<GroupStatus>,
}

/// The rows of a group at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupStatus {
    /// The group, as in the names of its rows.
    pub group: u64,
    /// Number of its rows that have values. For a pool, the number of its numbers that are taken.
    pub rows: u64,
    /// The first and last number of a pool, if the node knows that it is one.
    pub range: Option<(u64, u64)>,
}

/// The status of a shard at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardStatus {
    /// The shard.
    pub shard: ShardId,
    /// Whether the node is a member with all operations that the chain has ever acknowledged.
    pub is_active: bool,
    /// Whether the node is a learner that has all rows.
    pub is_complete: bool,
    /// Number of rows, including those without values.
    pub rows: u64,
    /// Number of operations that are kept for a successor.
    pub log: u64,
    /// Number of operations that the node has applied, and that are not known to be at all nodes of the chain.
    pub pending: u64,
}
