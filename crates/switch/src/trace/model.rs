//! Defines the structure of a trace. Field names are those of the JSON form.

use diagnostics::SourcePosition;
use serde::Serialize;

use super::TracedValue;
use crate::DropReason;

/// The trace of one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Time of arrival, in nanoseconds.
    pub time_ns: u64,
    /// The ingress port.
    pub port: u32,
    /// The received bytes, in hexadecimal.
    pub data: String,
    /// Passes in the order in which they began. The first is the received frame.
    pub passes: Vec<Pass>,
    /// Whether the trace was too long, so later steps are missing.
    pub cut: bool,
}

/// A pass of a packet through the switch, from its creation to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// Index of the pass from which it was made.
    pub parent: Option<usize>,
    /// The new value.
    #[serde(flatten)]
    pub kind: PassKind,
    /// Number of bytes at the start.
    pub bytes: usize,
    /// The egress port.
    pub egress_port: Option<u32>,
    /// The blocks of the program that ran.
    pub sections: Vec<Section>,
    /// The end of the pass.
    pub outcome: PassOutcome,
}

/// The kind of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PassKind {
    /// The received frame.
    Received,
    /// The parent, as it was received.
    Resubmitted,
    /// The parent, as it would have been sent.
    Recirculated,
    /// A clone of the parent as it was received.
    IngressClone {
        /// The mirror session.
        session: u32,
    },
    /// A clone of the parent as it was after egress.
    EgressClone {
        /// The mirror session.
        session: u32,
    },
    /// A multicast copy of its parent.
    Replica {
        /// The replica id.
        rid: u16,
    },
}

/// The end of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum PassOutcome {
    /// The pass has not ended.
    Running,
    /// The packet was sent.
    Sent {
        /// The port.
        port: u32,
        /// Whether the port is the CPU port.
        to_controller: bool,
        /// The bytes sent, in hexadecimal.
        data: String,
        /// Headers and fields that differ from the parsed packet.
        changes: Vec<HeaderChange>,
    },
    /// The packet was dropped.
    Dropped {
        /// The stable name of the reason.
        reason: &'static str,
        /// The reason in words.
        sentence: &'static str,
        /// The statement that dropped it.
        place: Option<String>,
        /// The action or control that the statement is in.
        body: Option<String>,
        /// The egress port, if the reason concerns it.
        #[serde(skip_serializing_if = "Option::is_none")]
        port: Option<u32>,
    },
    /// The packet was replaced by copies.
    Replicated {
        /// The multicast group; `None` for the copies of a mirror session.
        group: Option<u32>,
        /// Number of copies.
        copies: usize,
    },
    /// The packet was replaced by a copy for each of these ports.
    ReplicatedToPorts {
        /// The ports, in the order of the copies.
        ports: Vec<u32>,
    },
    /// The packet waits for a row of resilient state, and passes again when the row has come.
    Parked,
    /// The packet starts again as it was received.
    Resubmitted,
    /// The packet starts again as it would have been sent.
    Recirculated {
        /// Its length.
        bytes: usize,
    },
    /// The packet waits in an egress queue. Later events are not part of the trace.
    Queued {
        /// The port.
        port: u32,
        /// The queue.
        priority: usize,
        /// Number of packets in the queue, including this one.
        depth: usize,
    },
}

impl PassOutcome {
    /// Returns the outcome of a drop with its reason, source position and body.
    pub fn dropped(reason: DropReason, place: Option<&(SourcePosition, String)>) -> PassOutcome {
        PassOutcome::Dropped {
            reason: reason.name(),
            sentence: reason.sentence(),
            place: place.map(|(place, _)| place.to_string()),
            body: place.map(|(_, body)| body.clone()),
            port: None,
        }
    }

    /// Returns the outcome of a drop for a reason that concerns this egress port.
    pub fn dropped_at_port(reason: DropReason, port: u32) -> PassOutcome {
        let (reason, sentence) = (reason.name(), reason.sentence());
        PassOutcome::Dropped { reason, sentence, place: None, body: None, port: Some(port) }
    }
}

/// A difference between the packet as parsed and as sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum HeaderChange {
    /// A header that was added.
    Added {
        /// Its name.
        header: String,
    },
    /// A header that was removed.
    Removed {
        /// Its name.
        header: String,
    },
    /// A field whose value changed.
    Field {
        /// The former value.
        old: TracedValue,
        /// The new value.
        new: TracedValue,
    },
}

/// A block of the program that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The block's role in the architecture: `parser`, `ingress`, ...
    pub role: String,
    /// Its name in the program.
    pub body: String,
    /// The steps in it.
    pub steps: Vec<Step>,
}

/// A step and its source position (`file:line:column`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The event.
    #[serde(flatten)]
    pub what: StepKind,
    /// The source position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The event of a [`Step`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum StepKind {
    /// The parser entered a state.
    State {
        /// Its name.
        name: String,
    },
    /// A header was extracted from the packet.
    Extract {
        /// Its name.
        header: String,
        /// Offset in bits.
        at_bit: usize,
        /// Its length in bits.
        bits: usize,
        /// Its fields.
        fields: Vec<TracedValue>,
    },
    /// The parser skipped bits.
    Advance {
        /// Number of bits.
        bits: usize,
    },
    /// The parser selected a state.
    Select {
        /// Values of the keys.
        keys: Vec<TracedValue>,
        /// The selected state; `None` if no case matched.
        target: Option<String>,
    },
    /// The parser raised an error.
    ParserError {
        /// Its name.
        error: String,
    },
    /// A table was applied.
    Table {
        /// Its name.
        table: String,
        /// The key.
        key: Vec<TracedValue>,
        /// Whether an entry matched.
        hit: bool,
        /// The entry.
        entry: Option<String>,
        /// The selected member of the action profile.
        member: Option<u32>,
        /// The action that ran.
        action: Option<String>,
        /// Its arguments.
        args: Vec<TracedValue>,
        /// The steps of the action.
        steps: Vec<Step>,
    },
    /// A value was written to a field or variable.
    Write {
        /// The value before.
        old: TracedValue,
        /// The value after.
        new: TracedValue,
    },
    /// A header was copied.
    Copy {
        /// The source.
        from: Option<String>,
        /// The destination.
        to: Option<String>,
    },
    /// A header became valid or invalid.
    Validity {
        /// Its name.
        header: String,
        /// Whether the header is valid now.
        valid: bool,
    },
    /// A condition was evaluated.
    Branch {
        /// The condition, as the compiled program or the source has it.
        condition: Option<String>,
        /// Its value.
        value: bool,
    },
    /// A value was switched on.
    Switch {
        /// The value.
        subject: TracedValue,
    },
    /// A register was read or written.
    Register {
        /// Its name.
        register: String,
        /// Index of the element; `None` if it is out of range.
        index: Option<u64>,
        /// The value of the element.
        value: TracedValue,
        /// Whether it was written.
        written: bool,
    },
    /// A counter was incremented.
    Count {
        /// Its name.
        counter: String,
        /// Index of the element.
        index: Option<u64>,
    },
    /// A meter was executed.
    Meter {
        /// Its name.
        meter: String,
        /// Index of the element; `None` for a direct meter.
        index: Option<u64>,
        /// `green`, `yellow` or `red`.
        colour: String,
    },
    /// A checksum or hash was computed.
    Compute {
        /// Name of the algorithm.
        algorithm: String,
        /// Input data, in hexadecimal.
        data: String,
        /// The result.
        value: TracedValue,
    },
    /// The program requested an operation of the architecture.
    Request {
        /// The operation, in words.
        request: String,
    },
    /// A header was appended to the outgoing packet.
    Emit {
        /// Its name.
        header: String,
        /// Its length in bits.
        bits: usize,
    },
    /// A message from the program or the architecture.
    Note {
        /// The message.
        text: String,
    },
}
