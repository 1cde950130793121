//! The link to a successor: operations in order over a network that loses, repeats and reorders.

use switch::Time;

use super::ShardContext;
use super::row_table::RowTable;
use super::shard::ShardNode;
use crate::layout::ChainMember;
use crate::message::{Content, CopyChunk, Forward, Operation, Peer, Progress, RowRecord, StoreMessage};
use crate::mutant::Mutant;

/// Maximum number of operations that are sent without a report.
const MAX_WINDOW: u64 = 4096;

/// Number of operations that are sent at first, and after a loss. Each report of progress doubles it.
const FIRST_WINDOW: u64 = 16;

/// Bytes of an operation or row beside its values.
const FIXED_BYTES: usize = 80;

/// Length of a reader of a copied row.
const READER_BYTES: usize = 28;

/// Progress of a copy of all rows.
#[derive(Clone, Copy, Debug, Hash)]
struct CopyCursor {
    copy: u64,
    /// The rows before this position were copied, as the successor reports. A part that is retransmitted may have
    /// another length.
    position: usize,
    /// The operation after which the next part was sent.
    sent_at: Option<u64>,
    /// Number of positions when the copy began. Later rows are created by operations.
    end: usize,
}

#[derive(Clone, Copy, Debug, Hash)]
enum LinkState {
    /// The successor has not reported yet.
    Unknown,
    /// The successor has all rows. Late reports of that copy are ignored.
    Streaming {
        copy: Option<u64>,
    },
    Copying(CopyCursor),
}

/// The link to a successor.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug)]
pub(super) struct SuccessorLink {
    pub to: ChainMember,
    state: LinkState,
    /// The last operation that the successor has reported.
    acked: u64,
    /// The last operation that was sent.
    sent: u64,
    /// Number of operations that may be sent without a report.
    window: u64,
    pub due: Option<Time>,
    /// Whether a message has to be sent even without operations.
    must_send: bool,
    /// Whether the successor is a member, and has not reported that it is active.
    awaits_active: bool,
}

impl SuccessorLink {
    pub fn new(to: ChainMember, is_member: bool) -> SuccessorLink {
        SuccessorLink {
            to,
            state: LinkState::Unknown,
            acked: 0,
            sent: 0,
            window: FIRST_WINDOW,
            due: None,
            must_send: true,
            awaits_active: is_member,
        }
    }

    /// Restarts in a new layout. A successor that gets the layout later than this node refuses earlier messages.
    pub fn enter_layout(&mut self, is_member: bool) {
        self.awaits_active = is_member;
        self.resend();
    }

    /// Goes back to the position that the successor has reported.
    pub fn resend(&mut self) {
        self.sent = self.acked;
        self.window = FIRST_WINDOW;
        self.due = None;
        if let LinkState::Copying(cursor) = &mut self.state {
            cursor.sent_at = None;
        }
        self.must_send = true;
    }

    /// Returns the last operation and the part of a copy that the successor has reported.
    fn position(&self) -> (u64, Option<(u64, usize)>) {
        match self.state {
            LinkState::Unknown => (0, None),
            LinkState::Streaming { .. } => (self.acked, None),
            LinkState::Copying(cursor) => (self.acked, Some((cursor.copy, cursor.position))),
        }
    }

    /// Whether something was sent that the successor has not reported.
    fn is_waiting(&self) -> bool {
        let has_chunk = matches!(self.state, LinkState::Copying(cursor) if cursor.sent_at.is_some());
        self.sent > self.acked || has_chunk || self.awaits_active || matches!(self.state, LinkState::Unknown)
    }

    fn is_starting_copy(&self) -> bool {
        matches!(self.state, LinkState::Copying(cursor) if cursor.position == 0)
    }

    /// Returns the last operation that the successor does not need any more.
    fn needs_after(&self) -> u64 {
        match self.state {
            LinkState::Unknown => 0,
            LinkState::Streaming { .. } | LinkState::Copying(_) => self.acked,
        }
    }
}

impl ShardNode {
    /// Handles a successor's report.
    pub fn progressed(&mut self, context: &mut ShardContext<'_>, from: Peer, progress: Progress) {
        let is_from = self.link.as_ref().is_some_and(|link| Peer::Node(link.to.node) == from);
        let is_complete = self.is_complete() || context.is(Mutant::IncompleteServes);
        if !is_from || !is_complete || progress.applied > self.log.last() {
            return;
        }
        self.advance(context, progress);
        if !self.is_tail && progress.stable > self.stable {
            self.stable = progress.stable.min(self.log.last());
            self.report_due = true;
        }
    }

    /// Brings the link to the state that the successor reports.
    fn advance(&mut self, context: &mut ShardContext<'_>, progress: Progress) {
        let Some(link) = self.link.as_mut() else { return };
        let before = link.position();
        match (progress.content, &mut link.state) {
            (Content::Complete, LinkState::Streaming { .. }) => link.acked = link.acked.max(progress.applied),
            (Content::Complete, state) => {
                if progress.applied + 1 < self.log.first() {
                    return;
                }
                let copy = if let LinkState::Copying(cursor) = state { Some(cursor.copy) } else { None };
                *state = LinkState::Streaming { copy };
                link.acked = progress.applied;
                link.sent = progress.applied;
                if context.is(Mutant::UnstableForgotten) {
                    (link.acked, link.sent) = (self.log.last(), self.log.last());
                }
            }
            (Content::Copying { copy, position }, LinkState::Copying(cursor)) if cursor.copy == copy => {
                link.acked = link.acked.max(progress.applied);
                let position = usize::try_from(position).unwrap_or(usize::MAX).min(cursor.end);
                // A later operation was applied before the part arrived: it has to be sent again.
                let is_missed = cursor.sent_at.is_some_and(|at| at < progress.applied);
                if cursor.position == 0 && position > 0 {
                    // The successor needs the operations after the first part that it took.
                    link.sent = progress.applied;
                }
                if position > cursor.position || (position == cursor.position && is_missed) {
                    (cursor.position, cursor.sent_at) = (position, None);
                }
            }
            (Content::Copying { copy, .. }, LinkState::Streaming { copy: Some(done) }) if copy == *done => {}
            (Content::Empty | Content::Copying { .. }, LinkState::Copying(cursor)) if cursor.position == 0 => {}
            (Content::Empty | Content::Copying { .. }, state) => {
                let copy = context.random.next_u64();
                let cursor = CopyCursor { copy, position: 0, sent_at: None, end: self.rows.positions() };
                *state = LinkState::Copying(cursor);
                (link.acked, link.sent) = (self.log.last(), self.log.last());
            }
        }
        link.sent = link.sent.max(link.acked);
        link.awaits_active &= !progress.is_active;
        // Only progress puts off the next retransmission.
        if link.position() != before {
            link.window = (2 * link.window).min(MAX_WINDOW);
            link.due = Some(context.now.after_ns(context.config.retransmit_ns.max(1)));
        }
        link.due = link.due.filter(|_| link.is_waiting());
    }

    /// Sends what the successor lacks, reports to the predecessor, and drops operations that are no longer needed.
    pub fn flush(&mut self, context: &mut ShardContext<'_>) {
        if self.is_tail && self.is_complete() {
            self.stable = self.log.last();
        }
        if self.is_complete() || context.is(Mutant::IncompleteServes) {
            while self.forward(context) {}
        }
        if std::mem::take(&mut self.report_due) {
            self.report(context);
        }
        let needed = self.link.as_ref().map_or(self.stable, |link| self.stable.min(link.needs_after()));
        // A learner that is slow or dead does not stop the chain. It starts its copy again.
        let is_learner_slow = self.is_tail && self.log.len() > context.config.max_log / 2;
        self.log.trim(if is_learner_slow { self.stable } else { needed });
    }

    /// Sends one message to the successor, and returns whether there is more to send.
    fn forward(&mut self, context: &mut ShardContext<'_>) -> bool {
        let Some(link) = self.link.as_mut() else { return false };
        if link.is_starting_copy() {
            // A successor without rows can apply no operation. The first part of the copy includes all of them.
            link.sent = self.log.last();
        }
        let mut operations: Vec<Operation> = Vec::new();
        let first = link.sent + 1;
        let mut chunk = None;
        if !matches!(link.state, LinkState::Unknown) && first >= self.log.first() {
            let mut bytes = context.config.max_frame_bytes;
            let window = (link.acked + link.window).saturating_sub(link.sent) as usize;
            for operation in self.log.from(first).take(window) {
                let length = FIXED_BYTES + value_bytes(operation);
                if length > bytes && !operations.is_empty() {
                    break;
                }
                bytes = bytes.saturating_sub(length);
                operations.push(operation.clone());
            }
            // The outputs of a lost message are lost, too.
            self.log.forget_outputs(first, operations.len());
            link.sent += operations.len() as u64;
            if let LinkState::Copying(cursor) = &mut link.state
                && cursor.sent_at.is_none()
                && link.sent == self.log.last()
            {
                if cursor.position == 0 {
                    // The copy begins with this message. It has the rows of all operations before.
                    cursor.end = self.rows.positions();
                }
                chunk = Some(cursor.chunk(&self.rows, link.sent, context));
            }
        }
        if operations.is_empty() && chunk.is_none() && !std::mem::take(&mut link.must_send) {
            return false;
        }
        link.must_send = false;
        link.due.get_or_insert(context.now.after_ns(context.config.retransmit_ns.max(1)));
        let forward = Forward {
            layout: context.layout.epoch(),
            shard: self.shard,
            base: self.log.first(),
            floor: self.is_active.then_some(self.floor),
            first,
            operations,
            chunk,
        };
        context.outbox.send_node(link.to.node, StoreMessage::Forward(forward));
        link.sent < self.log.last().min(link.acked + link.window) && !matches!(link.state, LinkState::Unknown)
    }
}

impl CopyCursor {
    /// Returns the next part of the copy.
    fn chunk(&mut self, rows: &RowTable, at: u64, context: &ShardContext<'_>) -> CopyChunk {
        let mut bytes = context.config.max_frame_bytes;
        let mut fits = |row: &RowRecord| {
            let values = row.values.as_ref().map_or(0, |values| values.bytes().len());
            let length = FIXED_BYTES + values + READER_BYTES * row.holders.readers().len();
            let is_first = bytes == context.config.max_frame_bytes;
            let fits = length <= bytes || is_first;
            bytes = bytes.saturating_sub(length);
            fits
        };
        let mut part: Vec<RowRecord> = Vec::new();
        let mut next = self.end;
        for (position, row) in rows.range(self.position..self.end) {
            if !fits(row) {
                next = position;
                break;
            }
            part.push(row.clone());
        }
        self.sent_at = Some(at);
        CopyChunk {
            copy: self.copy,
            position: self.position as u64,
            next: next as u64,
            at,
            is_last: next == self.end,
            epoch_floor: rows.epoch_floor(),
            rows: part,
        }
    }
}

fn value_bytes(operation: &Operation) -> usize {
    match operation {
        Operation::Write { values: Some(values), .. } => values.bytes().len() + operation.carried_bytes(),
        operation => operation.carried_bytes(),
    }
}
