//! What a file asks for, checked against the program.

use bits::Bits;
use diagnostics::Span;
use ir::{ActionId, Algorithm, KeyValue, MeterId, ProfileId, RegisterId, TableId, ValueSetId};

/// Everything a file asks for, checked against the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// Members of action profiles.
    pub members: Vec<Member>,
    /// Groups of such members.
    pub member_groups: Vec<MemberGroup>,
    /// Entries of tables, in the file's order.
    pub tables: Vec<TableEntry>,
    /// New default actions.
    pub defaults: Vec<(TableId, Call, Span)>,
    /// Members of value sets, a value for each of the set's fields.
    pub value_sets: Vec<(ValueSetId, Vec<KeyValue>, Span)>,
    /// Multicast groups.
    pub groups: Vec<Group>,
    /// Mirror sessions, which `clone` copies packets to.
    pub mirrors: Vec<Mirror>,
    /// Register elements: register, index, value.
    pub registers: Vec<(RegisterId, u64, Bits)>,
    /// Meters of arrays: which array, which element (`None` for all), what rates.
    pub meters: Vec<(MeterId, Option<u64>, Rates)>,
    /// Queues that are not as they are by default.
    pub queues: Vec<Queue>,
    /// Parameters of the custom CRCs.
    pub crcs: Vec<Crc>,
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The action.
    pub action: ActionId,
    /// An argument for each of its parameters, of the parameter's width.
    pub args: Vec<Bits>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntry {
    /// The table.
    pub table: TableId,
    /// A value for each key element, selectors excepted.
    pub keys: Vec<KeyValue>,
    /// Larger wins; 0 where the table's key needs none.
    pub priority: i32,
    /// What it does.
    pub target: Target,
    /// How long it may go without a hit before the control plane is told; 0 for ever.
    pub idle_timeout_ns: u64,
    /// What its direct meter allows.
    pub meter: Option<Rates>,
    /// Where it stands.
    pub span: Span,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Runs an action.
    Action(Call),
    /// Runs a member of the table's profile.
    Member(u32),
    /// Runs a member of a group of the table's profile.
    Group(u32),
    /// Runs one of these, which the selector of the table's profile chooses.
    OneShot(Vec<Share>),
}

/// An action of a one-shot group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The action.
    pub call: Call,
    /// How much of the traffic it gets, beside the others; at least 1.
    pub weight: u32,
    /// The port that must be up for it to be chosen.
    pub watch_port: Option<u32>,
}

/// A member of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The profile.
    pub profile: ProfileId,
    /// What entries and groups call it.
    pub id: u32,
    /// What it does.
    pub call: Call,
    /// Where it stands.
    pub span: Span,
}

/// A group of members of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberGroup {
    /// The profile.
    pub profile: ProfileId,
    /// What entries call it.
    pub id: u32,
    /// Member, weight (at least 1), and the port that must be up for the member to be chosen.
    pub members: Vec<(u32, u32, Option<u32>)>,
    /// Where it stands.
    pub span: Span,
}

/// Rates and bursts of a meter, in units (packets or bytes, as the program says) a second and units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Committed rate.
    pub cir: u64,
    /// Committed burst.
    pub cburst: u64,
    /// Peak rate; at least `cir`.
    pub pir: u64,
    /// Peak burst.
    pub pburst: u64,
}

/// A queue, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The port.
    pub port: u32,
    /// The queue of this priority; `None` for all of the port.
    pub priority: Option<u32>,
    /// Packets a second that leave it.
    pub rate_pps: Option<u64>,
    /// Packets it holds.
    pub depth: Option<u32>,
}

/// The parameters of a custom CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc {
    /// [`Algorithm::Crc16Custom`] or [`Algorithm::Crc32Custom`].
    pub algorithm: Algorithm,
    /// The polynomial, without its highest bit, most significant bit first.
    pub polynomial: u32,
    /// What the register begins with.
    pub initial: u32,
    /// Whether each byte goes in least significant bit first.
    pub reflect_in: bool,
    /// Whether the register comes out reversed.
    pub reflect_out: bool,
    /// What the result is combined with (exclusive or).
    pub final_xor: u32,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What the program writes to `mcast_grp`; never 0.
    pub id: u32,
    /// The copies.
    pub replicas: Vec<Replica>,
}

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The port it goes to.
    pub port: u32,
    /// What the program sees as `egress_rid`.
    pub instance: u32,
    /// Where it goes while `port` is down: the first of these that is up.
    pub backups: Vec<u32>,
}

/// A mirror session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The session number that `clone` names.
    pub id: u32,
    /// The copies.
    pub replicas: Vec<Replica>,
    /// A multicast group that makes further copies.
    pub group: Option<u32>,
    /// How many bytes of the packet are copied; `None` for all.
    pub truncate: Option<u32>,
}
