//! The changes of a node's durable state.

use std::sync::Arc;

use crate::layout::{ShardId, StoreLayout};
use crate::message::{Content, Operation, RowRecord};
use crate::row::RowId;

/// A change of a node's durable state. Any prefix of the records yields a state that the node had.
// Most values are of the large variant, and boxing it would be slower.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreRecord {
    /// The node has this layout.
    Layout {
        /// The layout.
        layout: Arc<StoreLayout>,
        /// Shards whose rows the node forgets because it left their chains.
        left: Vec<ShardId>,
    },
    /// A shard changed.
    Shard {
        /// The shard.
        shard: ShardId,
        /// Its state after the change, without rows and operations.
        state: ShardState,
        /// The change of its rows and operations.
        change: ShardChange,
    },
}

/// The durable state of a shard without its rows and operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardState {
    /// The part of the rows that the node has.
    pub content: Content,
    /// Whether the node has had all operations that the chain acknowledged.
    pub is_active: bool,
    /// Index of the oldest operation that is kept, or the next index.
    pub first: u64,
    /// Index of the last operation.
    pub last: u64,
    /// The highest epoch of a row that was removed.
    pub epoch_floor: u64,
}

impl Default for ShardState {
    fn default() -> Self {
        ShardState { content: Content::Empty, is_active: false, first: 1, last: 0, epoch_floor: 0 }
    }
}

/// A change of a shard's rows and operations.
// Most values are of the large variant, and boxing it would be slower.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardChange {
    /// None.
    Nothing,
    /// The node dropped all of them.
    Cleared,
    /// Rows were copied. These are their states.
    Copied(Vec<RowRecord>),
    /// An operation was applied.
    Applied {
        /// The state of its row.
        row: Option<RowRecord>,
        /// The state of the row of a number that it has created.
        number: Option<Box<RowRecord>>,
        /// The operation, if a successor may need it after a restart.
        kept: Option<Operation>,
    },
    /// A row was removed.
    Removed {
        /// The row.
        row: RowId,
        /// Its partner, which was removed with it.
        partner: Option<RowId>,
        /// The operation, if a successor may need it after a restart.
        kept: Option<Operation>,
    },
}
