//! The effects of a node, in an order that is safe for a disk.

use std::collections::VecDeque;

use crate::layout::NodeId;
use crate::message::{OwnerId, Peer, Reply, ReplyBody, StoreMessage};
use crate::store::{StoreEvent, StoreRecord};

/// Effects. A message waits for all records that were emitted before it.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug, Default)]
pub(super) struct Outbox {
    ready: Vec<StoreEvent>,
    held: VecDeque<(u64, StoreEvent)>,
    /// Length of the outputs in waiting messages, in bytes.
    carried_bytes: usize,
    /// Number of the last record.
    last: u64,
    /// Number of the last record that is on disk.
    persisted: u64,
    pub is_durable: bool,
    /// Whether messages do not wait, for a mutant.
    sends_unpersisted: bool,
}

impl Outbox {
    pub fn new(is_durable: bool, sends_unpersisted: bool) -> Outbox {
        Outbox { is_durable, sends_unpersisted, ..Outbox::default() }
    }

    pub fn send(&mut self, to: Peer, message: StoreMessage) {
        let is_ready = self.persisted == self.last || self.sends_unpersisted;
        self.carried_bytes += if is_ready { 0 } else { message.carried_bytes() };
        let event = StoreEvent::Send { to, message };
        if is_ready {
            self.ready.push(event);
        } else {
            self.held.push_back((self.last, event));
        }
    }

    pub fn reply(&mut self, owner: OwnerId, body: ReplyBody) {
        self.send(Peer::Switch(owner.switch), StoreMessage::Reply(Reply { owner, body }));
    }

    pub fn send_node(&mut self, node: NodeId, message: StoreMessage) {
        self.send(Peer::Node(node), message);
    }

    /// Emits a record, if the node has a disk, and returns the number of the last record.
    pub fn persist(&mut self, record: impl FnOnce() -> StoreRecord) -> u64 {
        if self.is_durable {
            self.last += 1;
            self.ready.push(StoreEvent::Persist { number: self.last, record: record() });
        }
        self.last
    }

    /// Whether all records up to this one are on disk.
    pub fn is_persisted(&self, number: u64) -> bool {
        number <= self.persisted
    }

    /// Lets the messages go that waited for records up to this one.
    pub fn persisted(&mut self, up_to: u64) {
        self.persisted = self.persisted.max(up_to.min(self.last));
        while let Some((_, event)) = self.held.pop_front_if(|(number, _)| *number <= self.persisted) {
            if let StoreEvent::Send { message, .. } = &event {
                self.carried_bytes -= message.carried_bytes();
            }
            self.ready.push(event);
        }
    }

    /// Returns the length of the outputs in messages that wait for the disk, in bytes.
    pub fn carried_bytes(&self) -> usize {
        self.carried_bytes
    }

    #[cfg(feature = "simulation")]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty()
    }

    pub fn take(&mut self) -> impl Iterator<Item = StoreEvent> + '_ {
        self.ready.drain(..)
    }
}
