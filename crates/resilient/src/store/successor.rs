//! The link from a predecessor: operations are applied in order, and copied rows between them.

use super::ShardContext;
use super::operation_log::{MAX_INDEX, OperationLog};
use super::record::ShardChange;
use super::shard::ShardNode;
use crate::message::{Content, CopyChunk, Forward, Operation, Peer, Progress, StoreMessage};
use crate::mutant::Mutant;

/// Maximum number of messages that are kept until the operations before theirs have come.
const MAX_EARLY: usize = 1024;

impl ShardNode {
    /// Handles operations and copied rows from the predecessor.
    pub fn forwarded(&mut self, context: &mut ShardContext<'_>, from: Peer, forward: Forward) {
        let predecessor = context.layout.chain(self.shard).and_then(|chain| chain.predecessor(context.me));
        let is_from = predecessor.is_some_and(|member| Peer::Node(member.node) == from);
        if !is_from && !context.is(Mutant::LayoutIgnored) {
            return;
        }
        let highest = forward.chunk.as_ref().map_or(0, |chunk| chunk.at).max(forward.first).max(forward.base);
        if highest > MAX_INDEX {
            return;
        }
        self.report_due = true;
        let lacks_operations = forward.base > self.log.last() + 1;
        if self.content != Content::Empty && lacks_operations && !self.is_active {
            self.clear(context);
            self.report_due = true;
        }
        let begins = forward.chunk.as_ref().is_some_and(|chunk| chunk.position == 0);
        if begins && !self.is_complete() {
            self.begin_copy(context, forward.chunk.as_ref());
        }
        if self.content == Content::Empty {
            return;
        }
        if forward.chunk.is_some() {
            self.next_chunk = forward.chunk;
        }
        if forward.first <= self.log.last() + 1 || context.is(Mutant::GapAccepted) {
            self.apply_new(context, forward.first, forward.operations);
        } else if !forward.operations.is_empty() && self.early.len() < MAX_EARLY {
            self.early.insert(forward.first, forward.operations);
        }
        while let Some(early) = self.early.first_entry().filter(|early| *early.key() <= self.log.last() + 1) {
            let (first, operations) = early.remove_entry();
            self.apply_new(context, first, operations);
        }
        self.take_chunk(context);
        let has_floor =
            forward.floor.is_some_and(|floor| self.log.last() >= floor) || context.is(Mutant::InactiveServes);
        if self.is_member && self.is_complete() && has_floor && !self.is_active {
            self.activate(context);
        }
    }

    /// Applies the operations that were not applied yet.
    fn apply_new(&mut self, context: &mut ShardContext<'_>, first: u64, operations: Vec<Operation>) {
        self.rows.fetch(operations.iter().filter_map(Operation::row));
        for (index, operation) in (first..).zip(operations) {
            if index > self.log.last() {
                self.take_chunk(context);
                self.apply(context, operation);
            }
        }
    }

    /// Applies the next part of a copy if all operations before it were applied, and none after it.
    fn take_chunk(&mut self, context: &mut ShardContext<'_>) {
        if let Some(chunk) = self.next_chunk.take_if(|chunk| chunk.at <= self.log.last())
            && self.expects(context, &chunk)
        {
            self.copy(context, &chunk);
            self.content_record = self.persist(context, |shard| {
                let states = chunk.rows.iter().filter_map(|row| shard.rows.get(&row.row));
                ShardChange::Copied(states.cloned().collect())
            });
        }
    }

    /// Forgets the rows of an earlier copy when a new one begins.
    fn begin_copy(&mut self, context: &mut ShardContext<'_>, chunk: Option<&CopyChunk>) {
        let Some(chunk) = chunk else { return };
        if matches!(self.content, Content::Copying { copy, .. } if copy == chunk.copy) {
            return;
        }
        self.clear(context);
        self.content = Content::Copying { copy: chunk.copy, position: 0 };
        self.log = OperationLog::ending_at(chunk.at);
    }

    /// Whether a part of a copy is the next one. Its rows include the operations up to `at`, and no later ones.
    fn expects(&self, context: &ShardContext<'_>, chunk: &CopyChunk) -> bool {
        let is_next = self.content == Content::Copying { copy: chunk.copy, position: chunk.position };
        is_next && (self.log.last() == chunk.at || context.is(Mutant::ChunkUnordered))
    }

    /// Handles a part of a copy.
    fn copy(&mut self, context: &mut ShardContext<'_>, chunk: &CopyChunk) {
        chunk.rows.iter().for_each(|row| self.rows.merge(row));
        if !context.is(Mutant::EpochFloorUncopied) {
            self.rows.raise_epoch_floor(chunk.epoch_floor);
        }
        let position = chunk.next;
        self.content = Content::Copying { copy: chunk.copy, position };
        if chunk.is_last || context.is(Mutant::IncompleteServes) {
            self.content = Content::Complete;
        }
    }

    /// Reports its progress to the predecessor.
    pub fn report(&mut self, context: &mut ShardContext<'_>) {
        let predecessor = context.layout.chain(self.shard).and_then(|chain| chain.predecessor(context.me));
        let Some(predecessor) = predecessor else { return };
        let progress = Progress {
            layout: context.layout.epoch(),
            shard: self.shard,
            content: self.content,
            applied: self.log.last(),
            stable: self.stable,
            is_active: self.is_active,
        };
        context.outbox.send_node(predecessor.node, StoreMessage::Progress(progress));
    }
}
