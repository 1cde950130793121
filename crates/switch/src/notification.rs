//! What a switch tells the control plane without being asked.

use bits::Bits;

use crate::{PortId, Time};

/// A message to the control plane. A switch gives them out as values; whoever drives it sends them on.
#[derive(Clone, Debug, PartialEq)]
pub enum Notification {
    /// The program sent a digest.
    Digest {
        /// Which one.
        digest: ir::DigestId,
        /// A value for each of its fields.
        values: Vec<Bits>,
        /// When.
        time: Time,
    },
    /// A packet left by the CPU port.
    PacketIn {
        /// The CPU port.
        port: PortId,
        /// The whole packet, with the controller header the program put in front, if it did.
        data: Vec<u8>,
        /// When.
        time: Time,
    },
    /// No packet hit an entry for as long as the control plane had said when it wrote the entry.
    IdleTimeout {
        /// The entry's table.
        table: ir::TableId,
        /// The entry.
        entry: Box<engine::TableEntry>,
        /// When.
        time: Time,
    },
}
