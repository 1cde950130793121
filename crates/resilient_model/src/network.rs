//! Messages under way.

use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use foldhash::quality::FixedState;
use resilient::{Peer, StoreMessage};

/// A value that states share, with its hash.
#[derive(Debug)]
pub struct Hashed<T> {
    hash: u64,
    value: Arc<T>,
}

impl<T: Hash> Hashed<T> {
    /// Hashes a value.
    pub fn new(value: T) -> Hashed<T> {
        Hashed { hash: FixedState::default().hash_one(&value), value: Arc::new(value) }
    }
}

impl<T> Clone for Hashed<T> {
    fn clone(&self) -> Hashed<T> {
        Hashed { hash: self.hash, value: Arc::clone(&self.value) }
    }
}

impl<T> Deref for Hashed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> PartialEq for Hashed<T> {
    fn eq(&self, other: &Hashed<T>) -> bool {
        self.hash == other.hash
    }
}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.hash);
    }
}

/// A message under way.
#[derive(Clone, Debug, Hash)]
pub struct SentMessage {
    /// The sender.
    pub from: Peer,
    /// The receiver.
    pub to: Peer,
    /// The message.
    pub message: StoreMessage,
}

/// The messages under way, each once.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct MessageSet {
    /// Sorted by hash.
    messages: Vec<Hashed<SentMessage>>,
}

impl MessageSet {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns a message.
    pub fn get(&self, index: usize) -> Option<&Hashed<SentMessage>> {
        self.messages.get(index)
    }

    /// Adds a message, unless it is under way already.
    pub fn add(&mut self, message: SentMessage) {
        let message = Hashed::new(message);
        if let Err(position) = self.messages.binary_search_by_key(&message.hash, |other| other.hash) {
            self.messages.insert(position, message);
        }
    }

    /// Removes a message.
    pub fn remove(&mut self, index: usize) {
        self.messages.remove(index);
    }
}
