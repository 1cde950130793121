//! A script as it was written: commands with their places, names and numbers not yet held against a program.

use diagnostics::Span;
use engine::CrcParams;

use crate::data::Pattern;

/// A file of commands.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// In the file's order.
    pub(crate) commands: Vec<Command>,
}

impl Script {
    /// How many commands it has.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) span: Span,
    pub(crate) what: What,
}

/// A name or a number, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// What is written for a key element or a field of a value set.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// One number, which may have `*` digits.
    One(Word),
    /// `value/length`
    Prefix(Word, Word),
    /// `value&&&mask`
    Mask(Word, Word),
    /// `low..high`
    Range(Word, Word),
}

impl Written {
    /// The whole of it.
    pub(crate) fn span(&self) -> Span {
        match self {
            Written::One(word) => word.span,
            Written::Prefix(a, b) | Written::Mask(a, b) | Written::Range(a, b) => a.span.to(b.span),
        }
    }
}

/// `name(arg:value, ...)`
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) action: Word,
    pub(crate) args: Vec<(Word, Word)>,
}

/// What an entry does.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Action(Call),
    Member(u32),
    Group(u32),
}

/// An element of a counter: by its number, or that of an entry the script named.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    Index(u64),
    Entry(Word),
}

/// A comparison with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
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

    pub(crate) fn sign(self) -> &'static str {
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

/// Rate in units a microsecond and burst in units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) per_us: f64,
    pub(crate) burst: u64,
}

/// A copy that a multicast node makes: the port, and those that stand in for it, in order, while it is down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Copies {
    pub(crate) port: u32,
    pub(crate) backups: Vec<u32>,
}

/// Where a multicast node copies to: ports, and link aggregation groups by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlets {
    pub(crate) copies: Vec<Copies>,
    pub(crate) lags: Vec<u32>,
}

/// A command.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Packet { port: u32, data: Vec<u8> },
    Expect { port: u32, pattern: Pattern },
    NoPacket,
    Wait,
    Add { table: Word, priority: Option<(u32, Span)>, keys: Vec<(Word, Written)>, target: Target, id: Option<Word> },
    SetDefault { table: Word, call: Call },
    RemoveAll,
    Remove { id: Word },
    CheckCounter { name: Word, element: Element, check: Option<(bool, Relation, u64)> },
    CheckRegister { name: Word, index: u64, relation: Relation, value: Word },
    CheckDigest { name: Word, values: Vec<Word> },
    CheckIdle { entries: Vec<Word> },
    TimeoutSet { entry: Word, ms: u64 },
    MirrorAdd { session: u32, port: u32 },
    MirrorAddGroup { session: u32, group: u32 },
    MirrorDelete { session: u32 },
    MirrorGet { session: u32 },
    GroupCreate { group: u32 },
    NodeCreate { rid: u16, outlets: Outlets },
    NodeUpdate { node: u32, outlets: Outlets },
    LagMembers { lag: u32, ports: Vec<u32> },
    NodeAssociate { group: u32, node: u32 },
    CounterRead { name: Word, index: u64 },
    CounterWrite { name: Word, index: u64, packets: u64, bytes: u64 },
    RegisterRead { name: Word, index: u64 },
    RegisterWrite { name: Word, index: u64, value: Word },
    RegisterReset { name: Word },
    MeterGet { name: Word, index: u64 },
    MeterSet { name: Word, index: Option<u64>, rates: [Rate; 2] },
    MemberCreate { profile: Word, call: Call },
    MemberGroupCreate { profile: Word },
    MemberJoin { profile: Word, member: u32, group: u32, weight: u32, watch_port: Option<u32> },
    ValueSetAdd { name: Word, values: Vec<Written> },
    ValueSetClear { name: Word },
    QueueRate { pps: u64, port: Option<u32>, queue: Option<usize> },
    QueueDepth { packets: usize, port: Option<u32>, queue: Option<usize> },
    PortUp { port: u32, up: bool },
    CrcSet(CrcParams),
}
