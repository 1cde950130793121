//! The shape of a trace. Field names are what JSON shows.

use diagnostics::SourcePosition;
use serde::Serialize;

use super::Value;
use crate::DropReason;

/// Everything that happened to one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// When it came in, in nanoseconds.
    pub time_ns: u64,
    /// Where it came in.
    pub port: u32,
    /// What came in, in hexadecimal.
    pub data: String,
    /// Its passes, in the order they began. The first is the frame as it came in.
    pub passes: Vec<Pass>,
    /// Whether it was too long, so that later steps are missing.
    pub cut: bool,
}

/// One way through the switch, from where a packet came to be to where it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// The index of the pass it came from.
    pub parent: Option<usize>,
    /// What it is.
    #[serde(flatten)]
    pub kind: PassKind,
    /// Bytes it began with.
    pub bytes: usize,
    /// The port that egress ran for.
    pub egress_port: Option<u32>,
    /// The program's blocks that ran.
    pub sections: Vec<Section>,
    /// Where it ended.
    pub outcome: Outcome,
}

/// What a pass is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PassKind {
    /// The frame as it came in.
    Received,
    /// Its parent once more, as it came in.
    Resubmitted,
    /// Its parent once more, as it would have left.
    Recirculated,
    /// A clone of its parent as that came in.
    IngressClone {
        /// The mirror session.
        session: u32,
    },
    /// A clone of its parent as that was after egress.
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

/// Where a pass ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Not yet.
    Running,
    /// It left.
    Sent {
        /// Where.
        port: u32,
        /// Whether that is the port to the control plane.
        to_controller: bool,
        /// What left, in hexadecimal.
        data: String,
        /// Headers and fields that are not what the parser found.
        changes: Vec<Change>,
    },
    /// It was dropped.
    Dropped {
        /// The stable name of the reason.
        reason: &'static str,
        /// The reason in words.
        sentence: &'static str,
        /// The statement that dropped it.
        place: Option<String>,
        /// The action or control that the statement is in.
        body: Option<String>,
    },
    /// It became copies.
    Replicated {
        /// The multicast group; `None` for the copies of a mirror session.
        group: Option<u32>,
        /// How many.
        copies: usize,
    },
    /// It starts over, as it came in.
    Resubmitted,
    /// It starts over, as it would have left.
    Recirculated {
        /// Its length.
        bytes: usize,
    },
    /// It waits in an egress queue. What happens to it later is not part of the trace.
    Queued {
        /// The port.
        port: u32,
        /// The queue.
        priority: usize,
        /// Packets in the queue, itself included.
        depth: usize,
    },
}

impl Outcome {
    /// Dropped, for a reason, at a place and in a body.
    pub fn dropped(reason: DropReason, place: Option<&(SourcePosition, String)>) -> Outcome {
        Outcome::Dropped {
            reason: reason.name(),
            sentence: reason.sentence(),
            place: place.map(|(place, _)| place.to_string()),
            body: place.map(|(_, body)| body.clone()),
        }
    }
}

/// A difference between the packet as it was parsed and as it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A header that was not there.
    Added {
        /// Its name.
        header: String,
    },
    /// A header that is no longer there.
    Removed {
        /// Its name.
        header: String,
    },
    /// A field with another value.
    Field {
        /// What it was.
        old: Value,
        /// What it is.
        new: Value,
    },
}

/// One block of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What the block is to the architecture: `parser`, `ingress`, ...
    pub role: String,
    /// Its name in the program.
    pub body: String,
    /// What happened in it.
    pub steps: Vec<Step>,
}

/// Something that happened, and the place in the source it comes from (`file:line:column`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What happened.
    #[serde(flatten)]
    pub what: What,
    /// Where in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What happened in a [`Step`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum What {
    /// The parser came to a state.
    State {
        /// Its name.
        name: String,
    },
    /// A header was taken off the packet.
    Extract {
        /// Its name.
        header: String,
        /// Where it began, in bits.
        at_bit: usize,
        /// Its length in bits.
        bits: usize,
        /// Its fields.
        fields: Vec<Value>,
    },
    /// The parser skipped bits.
    Advance {
        /// How many.
        bits: usize,
    },
    /// The parser chose.
    Select {
        /// The keys' values.
        keys: Vec<Value>,
        /// The state it chose; `None` if no case matched.
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
        key: Vec<Value>,
        /// Whether an entry matched.
        hit: bool,
        /// The entry.
        entry: Option<String>,
        /// The action profile's member that was chosen.
        member: Option<u32>,
        /// The action that ran.
        action: Option<String>,
        /// Its arguments.
        args: Vec<Value>,
        /// What the action did.
        steps: Vec<Step>,
    },
    /// A value was written to a field or variable.
    Write {
        /// Before.
        old: Value,
        /// After.
        new: Value,
    },
    /// A header was copied.
    Copy {
        /// From.
        from: Option<String>,
        /// To.
        to: Option<String>,
    },
    /// A header became valid or invalid.
    Validity {
        /// Its name.
        header: String,
        /// What it is now.
        valid: bool,
    },
    /// A condition decided.
    Branch {
        /// The condition, as the compiled program has it.
        condition: Option<String>,
        /// Its value.
        value: bool,
    },
    /// A value decided.
    Switch {
        /// The value.
        subject: Value,
    },
    /// A register was read or written.
    Register {
        /// Its name.
        register: String,
        /// The element; `None` beyond the end.
        index: Option<u64>,
        /// What it holds.
        value: Value,
        /// Whether it was written.
        written: bool,
    },
    /// A counter counted.
    Count {
        /// Its name.
        counter: String,
        /// The element.
        index: Option<u64>,
    },
    /// A meter said a colour.
    Meter {
        /// Its name.
        meter: String,
        /// The element; `None` for a direct meter.
        index: Option<u64>,
        /// `green`, `yellow` or `red`.
        colour: String,
    },
    /// A checksum or hash was computed.
    Compute {
        /// How.
        algorithm: String,
        /// Over what, in hexadecimal.
        data: String,
        /// The result.
        value: Value,
    },
    /// Something was asked of the architecture.
    Request {
        /// What, in words.
        request: String,
    },
    /// A header was appended to the outgoing packet.
    Emit {
        /// Its name.
        header: String,
        /// Its length in bits.
        bits: usize,
    },
    /// The program reported something, or the architecture has something to say.
    Note {
        /// What.
        text: String,
    },
}
