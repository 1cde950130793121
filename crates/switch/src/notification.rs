//! Notifications from a switch to the control plane.

use bits::Bits;

use crate::{PortId, Time};

/// A notification to the control plane. A switch returns notifications as values; its driver forwards them.
#[derive(Clone, Debug, PartialEq)]
pub enum Notification {
    /// The program sent a digest.
    Digest {
        /// The digest.
        digest: ir::DigestId,
        /// Values of its fields.
        values: Vec<Bits>,
        /// The time of the event.
        time: Time,
    },
    /// A packet left by the CPU port.
    PacketIn {
        /// The CPU port.
        port: PortId,
        /// The whole packet, with the controller header if the program added one.
        data: Vec<u8>,
        /// The time of the event.
        time: Time,
    },
    /// No packet hit an entry during its idle timeout.
    IdleTimeout {
        /// The entry's table.
        table: ir::TableId,
        /// The entry.
        entry: Box<engine::TableEntry>,
        /// The time of the event.
        time: Time,
    },
    /// An INT sink took the headers off a packet.
    IntReport {
        /// The report, the payload of a datagram to a collector (Telemetry Report Format 2.0).
        report: Vec<u8>,
        /// The time of the event.
        time: Time,
    },
}
