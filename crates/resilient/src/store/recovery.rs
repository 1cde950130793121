//! Restores a node from the entries of its disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use switch::Time;

use super::group_commit::{GroupCommit, LAYOUT, OPERATIONS, ROW, SHARD};
use super::operation_log::{MAX_INDEX, OperationLog};
use super::record::ShardState;
use super::shard::ShardNode;
use super::{ShardContext, StoreConfig, StoreNode};
use crate::layout::{ChainMember, ShardId};
use crate::mutant::Mutant;
use crate::wire_form::{MalformedMessage, MessageReader};

/// A node that is being restored in the same life.
///
/// Sessions are not on the disk. A node that restarts at the head of a chain considers all of them renewed, so it
/// grants no row of another switch before a lease has passed.
#[derive(Debug)]
pub struct StoreRecovery {
    node: StoreNode,
    commit: GroupCommit,
    now: Time,
    states: BTreeMap<ShardId, ShardState>,
}

impl StoreRecovery {
    /// Begins a recovery. `seed` is random.
    pub fn new(config: StoreConfig, me: ChainMember, seed: u64, now: Time) -> StoreRecovery {
        let mut node = StoreNode::joining(config, me, seed);
        node.outbox.is_durable = false;
        StoreRecovery { node, commit: GroupCommit::default(), now, states: BTreeMap::new() }
    }

    /// Adds the next entry, in the order of keys.
    ///
    /// # Errors
    /// If the entry was not made by [`GroupCommit`].
    pub fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), MalformedMessage> {
        let (mut key, mut value) = (MessageReader(key), MessageReader(value));
        let kind = key.u8()?;
        if kind == LAYOUT {
            let layout = Arc::new(value.layout()?);
            self.node.set_layout(self.now, &layout);
            return if key.0.is_empty() && value.0.is_empty() { Ok(()) } else { Err(MalformedMessage) };
        }
        let id = ShardId(key.u16()?);
        let Some(shard) = self.node.shards.get_mut(usize::from(id.0)).and_then(Option::as_mut) else {
            // The node has left the shard's chain.
            return Ok(());
        };
        match kind {
            SHARD => {
                let (content, is_active, first, last) = (value.content()?, value.flag()?, value.u64()?, value.u64()?);
                let epoch_floor = value.u64()?;
                if last > MAX_INDEX || !(1..=last + 1).contains(&first) {
                    return Err(MalformedMessage);
                }
                let state = ShardState { content, is_active, first, last, epoch_floor };
                shard.restore(&state, self.node.config.mutation.is(Mutant::EpochFloorUnpersisted));
                self.states.insert(id, state);
            }
            ROW => {
                let state = value.row_state()?;
                if key.row()? != state.row {
                    return Err(MalformedMessage);
                }
                shard.rows.merge(&state);
            }
            OPERATIONS => {
                let state = self.states.get(&id).ok_or(MalformedMessage)?;
                let first = key.u64()?;
                let mut index = first;
                while !value.0.is_empty() {
                    let operation = value.operation()?;
                    if index >= state.first {
                        if index != shard.log.last() + 1 {
                            return Err(MalformedMessage);
                        }
                        shard.log.push(operation, true);
                    }
                    index = index.checked_add(1).ok_or(MalformedMessage)?;
                }
                self.commit.found_operations(id, first, index.checked_sub(1).ok_or(MalformedMessage)?);
            }
            _ => return Err(MalformedMessage),
        }
        if key.0.is_empty() && value.0.is_empty() { Ok(()) } else { Err(MalformedMessage) }
    }

    /// Whether there was a layout. If not, the node was never part of a store.
    pub fn has_layout(&self) -> bool {
        self.node.layout.epoch() > 0
    }

    /// Returns the node, and the collector of its records.
    ///
    /// # Errors
    /// If entries are missing.
    pub fn finish(mut self) -> Result<(StoreNode, GroupCommit), MalformedMessage> {
        let node = &mut self.node;
        let is_whole = |(id, state): (&ShardId, &ShardState)| {
            node.shards.get(usize::from(id.0)).and_then(Option::as_ref).is_none_or(|it| it.log.last() == state.last)
        };
        if !self.states.iter().all(is_whole) {
            return Err(MalformedMessage);
        }
        node.outbox.take().for_each(drop);
        node.outbox.is_durable = node.config.is_durable;
        let mut context = ShardContext {
            now: self.now,
            config: &node.config,
            layout: &node.layout,
            me: node.me,
            random: &mut node.random,
            outbox: &mut node.outbox,
        };
        for shard in node.shards.iter_mut().flatten() {
            // This also covers a node that becomes the head later.
            shard.wait_for_sessions(&context);
            shard.take_role(&mut context, true);
        }
        Ok((self.node, self.commit))
    }
}

impl ShardNode {
    /// Returns the durable state without rows and operations.
    pub fn state(&self) -> ShardState {
        let (first, last) = (self.log.first(), self.log.last());
        let epoch_floor = self.rows.epoch_floor();
        ShardState { content: self.content, is_active: self.is_active, first, last, epoch_floor }
    }

    /// Restores the state on the disk. Rows and operations follow.
    fn restore(&mut self, state: &ShardState, is_forgotten: bool) {
        self.content = state.content;
        self.is_active = state.is_active;
        self.log = OperationLog::ending_at(state.first - 1);
        if !is_forgotten {
            self.rows.raise_epoch_floor(state.epoch_floor);
        }
    }
}
