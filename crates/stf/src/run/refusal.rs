//! Defines the reasons why the switch, or the runner in its place, refuses a command.

use engine::EntryError;

/// A command that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefusal {
    /// The switch's objects refuse it.
    #[error(transparent)]
    Object(#[from] EntryError),
    /// No entry has this handle.
    #[error("there is no entry {0}; entry handles start at 0")]
    NoEntry(u64),
    /// No group of members has this number.
    #[error("there is no group {0}")]
    NoGroup(u32),
    /// No mirror session has this number.
    #[error("there is no mirror session {0}")]
    NoMirrorSession(u32),
    /// No multicast group has this number.
    #[error("there is no multicast group {0}")]
    NoMulticastGroup(u32),
    /// A multicast group with this number was created before.
    #[error("multicast group {0} already exists")]
    MulticastGroupExists(u32),
    /// The switch rejects the multicast group.
    #[error("multicast group {0} is invalid or has too many replicas")]
    MulticastGroup(u32),
    /// No multicast node has this handle.
    #[error("there is no multicast node {0}; node handles start at 0")]
    NoMulticastNode(u32),
    /// The test makes the switch send more bytes than the runner keeps.
    #[error("the switch sent more than {max} bytes in this test")]
    TooManyBytes {
        /// The maximum.
        max: usize,
    },
}
