//! A script held against a program: what to do, in ids and values.

use std::collections::BTreeSet;

use bits::Bits;
use diagnostics::Span;
use engine::{ActionCall, CounterValue, CrcParams, GroupMember, MeterConfig, TableEntry};
use ir::{CounterId, DigestId, KeyValue, MeterId, ProfileId, RegisterId, TableId, ValueSetId};

use crate::data::Pattern;
use crate::script::{Outlets, Relation};

/// A script that a program can be tested with; [`Test::run`] does.
#[derive(Clone, Debug)]
pub struct Test {
    /// In the script's order, each with the place of its command.
    pub(crate) ops: Vec<(Span, Op)>,
    /// The ports that the script names.
    pub(crate) ports: BTreeSet<u32>,
    /// Whether packets by other ports matter too.
    pub(crate) strict: bool,
}

/// An element of a counter, register or meter.
#[derive(Clone, Debug)]
pub(crate) enum Cell<Id> {
    /// Of an array.
    Array(Id, u64),
    /// Of an entry.
    Entry(EntryRef),
    /// Of an entry that the script never made.
    Nowhere(u64),
}

/// An entry by what it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryRef {
    pub(crate) table: TableId,
    pub(crate) keys: Vec<KeyValue>,
    pub(crate) priority: i32,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Packet {
        port: u32,
        data: Vec<u8>,
    },
    Expect {
        port: u32,
        pattern: Pattern,
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
    /// Entries with the names that the script gives them.
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
        outlets: Outlets,
    },
    NodeUpdate {
        node: u32,
        outlets: Outlets,
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
    MemberGroupCreate(ProfileId, u32),
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
