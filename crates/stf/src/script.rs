//! Defines the syntax tree of a script: commands with their spans, names and numbers, not yet bound to a program.

use diagnostics::Span;
use engine::CrcParams;

use crate::data::PacketPattern;

/// A file of commands.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Commands in the file's order.
    pub(crate) commands: Vec<Command>,
    /// The ports that the commands name.
    pub(crate) ports: Vec<(u32, Span)>,
}

impl Script {
    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// A command with its span.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) span: Span,
    pub(crate) kind: CommandKind,
}

/// A name or a number with its span.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// A key element, or a field of a value set, as written.
#[derive(Clone, Debug)]
pub(crate) enum WrittenValue {
    /// One number, which may have `*` digits.
    One(Word),
    /// `value/length`
    Prefix(Word, Word),
    /// `value&&&mask`
    Mask(Word, Word),
    /// `low..high`
    Range(Word, Word),
}

impl WrittenValue {
    /// Returns the span of the whole.
    pub(crate) fn span(&self) -> Span {
        match self {
            WrittenValue::One(word) => word.span,
            WrittenValue::Prefix(a, b) | WrittenValue::Mask(a, b) | WrittenValue::Range(a, b) => a.span.to(b.span),
        }
    }
}

/// `name(param:value, ...)`, or `name(value, ...)` in the order of the parameters.
#[derive(Clone, Debug)]
pub(crate) struct ActionCallText {
    pub(crate) action: Word,
    /// Arguments with their parameters, if they are named.
    pub(crate) args: Vec<(Option<Word>, Word)>,
}

/// The action of an entry.
#[derive(Clone, Debug)]
pub(crate) enum EntryTarget {
    Action(ActionCallText),
    Member(u32),
    Group(u32),
}

/// An element of a counter: by its index, or by an entry that the script named.
#[derive(Clone, Debug)]
pub(crate) enum ElementRef {
    Index(u64),
    Entry(Word),
}

/// A comparison with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Relation {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Relation {
    pub(crate) fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::Unequal => left != right,
            Relation::Less => left < right,
            Relation::LessEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterEqual => left >= right,
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::Unequal => "!=",
            Relation::Less => "<",
            Relation::LessEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterEqual => ">=",
        }
    }
}

/// A meter's rate, in units per microsecond, and its burst, in units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeterRate {
    pub(crate) per_us: f64,
    pub(crate) burst: u64,
}

/// A replica that a multicast node makes: the port and its backups, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeReplica {
    /// The port.
    pub port: u32,
    /// Ports that stand in for it, in order.
    pub backups: Vec<u32>,
}

/// Destinations of a multicast node: ports, and link aggregation groups by number.
#[derive(Clone, Debug, Default)]
pub struct NodeTargets {
    /// Ports with their backups.
    pub replicas: Vec<NodeReplica>,
    /// Link aggregation groups.
    pub lags: Vec<u32>,
}

/// What a command does.
#[derive(Clone, Debug)]
pub(crate) enum CommandKind {
    Packet {
        port: u32,
        data: Vec<u8>,
    },
    Expect {
        port: u32,
        pattern: PacketPattern,
    },
    NoPacket,
    Wait,
    Add {
        table: Word,
        priority: Option<(u32, Span)>,
        keys: Vec<(Word, WrittenValue)>,
        target: EntryTarget,
        id: Option<Word>,
    },
    SetDefault {
        table: Word,
        call: ActionCallText,
    },
    RemoveAll,
    Remove {
        id: Word,
    },
    CheckCounter {
        name: Word,
        element: ElementRef,
        /// Whether bytes are compared instead of packets, the comparison, and the expected value.
        check: Option<(bool, Relation, u64)>,
    },
    CheckRegister {
        name: Word,
        index: u64,
        relation: Relation,
        value: Word,
    },
    CheckDigest {
        name: Word,
        values: Vec<Word>,
    },
    CheckIdle {
        entries: Vec<Word>,
    },
    TimeoutSet {
        entry: Word,
        ms: u64,
    },
    MirrorAdd {
        session: u32,
        port: u32,
    },
    MirrorAddGroup {
        session: u32,
        group: u32,
    },
    MirrorDelete {
        session: u32,
    },
    MirrorGet {
        session: u32,
    },
    GroupCreate {
        group: u32,
    },
    NodeCreate {
        rid: u16,
        targets: NodeTargets,
    },
    NodeUpdate {
        node: u32,
        targets: NodeTargets,
    },
    LagMembers {
        lag: u32,
        ports: Vec<u32>,
    },
    NodeAssociate {
        group: u32,
        node: u32,
    },
    CounterRead {
        name: Word,
        index: u64,
    },
    CounterWrite {
        name: Word,
        index: u64,
        packets: u64,
        bytes: u64,
    },
    RegisterRead {
        name: Word,
        index: u64,
    },
    RegisterWrite {
        name: Word,
        index: u64,
        value: Word,
    },
    RegisterReset {
        name: Word,
    },
    MeterGet {
        name: Word,
        index: u64,
    },
    MeterSet {
        name: Word,
        index: Option<u64>,
        rates: [MeterRate; 2],
    },
    MemberCreate {
        profile: Word,
        /// The member's number; the next one without.
        member: Option<u32>,
        call: ActionCallText,
    },
    MemberGroupCreate {
        profile: Word,
        /// The group's number; the next one without.
        group: Option<u32>,
        members: Vec<u32>,
    },
    MemberJoin {
        profile: Word,
        member: u32,
        group: u32,
        weight: u32,
        watch_port: Option<u32>,
    },
    ValueSetAdd {
        name: Word,
        values: Vec<WrittenValue>,
    },
    ValueSetClear {
        name: Word,
    },
    QueueRate {
        pps: u64,
        port: Option<u32>,
        queue: Option<usize>,
    },
    QueueDepth {
        packets: usize,
        port: Option<u32>,
        queue: Option<usize>,
    },
    PortUp {
        port: u32,
        up: bool,
    },
    CrcSet(CrcParams),
}
