//! Defines a script bound to a program: operations with ids and values.

use std::collections::BTreeSet;

use bits::Bits;
use diagnostics::Span;
use engine::{ActionCall, CounterValue, CrcParams, GroupMember, MeterConfig, TableEntry};
use ir::{CounterId, DigestId, KeyValue, MeterId, ProfileId, RegisterId, TableId, ValueSetId};

use crate::data::PacketPattern;
use crate::script::{NodeTargets, Relation};

/// A test of a program, executed by [`Test::run`].
#[derive(Clone, Debug)]
pub struct Test {
    /// Operations in the script's order, with the spans of their commands.
    pub(crate) ops: Vec<(Span, Op)>,
    /// The ports of the switch.
    pub(crate) connected: BTreeSet<u32>,
    /// The ports of the script's packets and expectations.
    pub(crate) ports: BTreeSet<u32>,
    /// Whether packets by other ports matter too.
    pub(crate) strict: bool,
}

impl Test {
    /// Returns the operations in order.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().map(|(_, op)| op)
    }
}

/// An element of a counter, register or meter.
#[derive(Clone, Debug)]
pub enum Cell<Id> {
    /// An element of an array.
    Array(Id, u64),
    /// The direct object of an entry.
    Entry(EntryRef),
    /// The direct object of an entry that the script never made.
    Nowhere(u64),
}

/// The key that identifies an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    /// Its table.
    pub table: TableId,
    /// The match of each key element.
    pub keys: Vec<KeyValue>,
    /// Its priority.
    pub priority: i32,
}

/// An operation.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the command of its name")]
pub enum Op {
    Packet {
        port: u32,
        data: Vec<u8>,
    },
    Expect {
        port: u32,
        pattern: PacketPattern,
    },
    Wait,
    Insert {
        table: TableId,
        entry: TableEntry,
    },
    Default {
        table: TableId,
        call: ActionCall,
    },
    RemoveAll,
    Remove(EntryRef),
    CheckCounter {
        cell: Cell<CounterId>,
        check: Option<(bool, Relation, u64)>,
    },
    CheckRegister {
        register: RegisterId,
        index: u64,
        relation: Relation,
        value: Bits,
    },
    CheckDigest {
        digest: DigestId,
        values: Vec<Bits>,
    },
    /// Entries with their names in the script.
    CheckIdle(Vec<(String, EntryRef)>),
    TimeoutSet {
        entry: EntryRef,
        ns: u64,
    },
    MirrorAdd {
        session: u32,
        port: u32,
    },
    MirrorAddGroup {
        session: u32,
        group: u32,
    },
    MirrorDelete(u32),
    MirrorGet(u32),
    GroupCreate(u32),
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
    CounterRead(Cell<CounterId>),
    CounterWrite(Cell<CounterId>, CounterValue),
    RegisterRead(RegisterId, u64),
    RegisterWrite(RegisterId, u64, Bits),
    RegisterReset(RegisterId),
    MeterGet(Cell<MeterId>),
    MeterSet(Cell<MeterId>, MeterConfig),
    MeterSetAll(MeterId, MeterConfig),
    MemberCreate(ProfileId, u32, ActionCall),
    MemberGroupCreate(ProfileId, u32, Vec<GroupMember>),
    MemberJoin {
        profile: ProfileId,
        group: u32,
        member: GroupMember,
    },
    ValueSetAdd(ValueSetId, Vec<KeyValue>),
    ValueSetClear(ValueSetId),
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
    CrcSet(CrcParams),
    PortUp {
        port: u32,
        up: bool,
    },
}
