//! Defines the content of a file, checked against the program.

use bits::Bits;
use diagnostics::Span;
use ir::{ActionId, Algorithm, KeyValue, MeterId, ProfileId, RegisterId, TableId, ValueSetId};

/// All entries and settings of a file, checked against the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// Members of action profiles.
    pub members: Vec<ProfileMember>,
    /// Groups of action profile members.
    pub member_groups: Vec<ProfileGroup>,
    /// Table entries, in the file's order.
    pub tables: Vec<TableEntrySpec>,
    /// New default actions.
    pub defaults: Vec<(TableId, ActionInvocation, Span)>,
    /// Members of value sets, with a value for each of the set's fields.
    pub value_sets: Vec<(ValueSetId, Vec<KeyValue>, Span)>,
    /// Multicast groups.
    pub groups: Vec<MulticastGroup>,
    /// Mirror sessions, the destinations of `clone`.
    pub mirrors: Vec<MirrorSession>,
    /// Register elements: register, index, value.
    pub registers: Vec<(RegisterId, u64, Bits)>,
    /// Meters of arrays: the array, the element (`None` for all), the rates.
    pub meters: Vec<(MeterId, Option<u64>, MeterRates)>,
    /// Queues with settings other than the default.
    pub queues: Vec<QueueConfig>,
    /// Parameters of the custom CRCs.
    pub crcs: Vec<CrcSettings>,
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionInvocation {
    /// The action.
    pub action: ActionId,
    /// An argument for each of its parameters, with the parameter's width.
    pub args: Vec<Bits>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntrySpec {
    /// The table.
    pub table: TableId,
    /// A value for each key element except selectors.
    pub keys: Vec<KeyValue>,
    /// Priority, larger wins; 0 where the table's key needs none.
    pub priority: i32,
    /// The action to run.
    pub target: EntryAction,
    /// Time without a hit after which the control plane is notified, in nanoseconds; 0 for never.
    pub idle_timeout_ns: u64,
    /// Rates of its direct meter.
    pub meter: Option<MeterRates>,
    /// Source span.
    pub span: Span,
}

/// The action of a table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// Runs an action.
    Action(ActionInvocation),
    /// Runs a member of the table's action profile.
    Member(u32),
    /// Runs a member of a group of the table's action profile.
    Group(u32),
    /// Runs one of these, selected by the selector of the table's action profile.
    OneShot(Vec<WeightedAction>),
}

/// A weighted action of a one-shot group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedAction {
    /// The action.
    pub call: ActionInvocation,
    /// Share of the traffic relative to the other actions; at least 1.
    pub weight: u32,
    /// Port that must be up for the action to be selected.
    pub watch_port: Option<u32>,
}

/// A member of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileMember {
    /// The profile.
    pub profile: ProfileId,
    /// Id by which entries and groups refer to it.
    pub id: u32,
    /// The action to run.
    pub call: ActionInvocation,
    /// Source span.
    pub span: Span,
}

/// A group of members of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileGroup {
    /// The profile.
    pub profile: ProfileId,
    /// Id by which entries refer to it.
    pub id: u32,
    /// Member, weight (at least 1), and the port that must be up for the member to be selected.
    pub members: Vec<(u32, u32, Option<u32>)>,
    /// Source span.
    pub span: Span,
}

/// Rates of a meter in units per second and bursts in units; the program determines the unit (packets or bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterRates {
    /// Committed rate, in units per second.
    pub cir: u64,
    /// Committed burst, in units.
    pub cburst: u64,
    /// Peak rate, in units per second; at least `cir`.
    pub pir: u64,
    /// Peak burst, in units.
    pub pburst: u64,
}

/// Settings of one queue, or of all queues of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The port.
    pub port: u32,
    /// Priority of the queue; `None` for all queues of the port.
    pub priority: Option<u32>,
    /// Maximum rate in packets per second.
    pub rate_pps: Option<u64>,
    /// Capacity in packets.
    pub depth: Option<u32>,
}

/// The parameters of a custom CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcSettings {
    /// [`Algorithm::Crc16Custom`] or [`Algorithm::Crc32Custom`].
    pub algorithm: Algorithm,
    /// The polynomial, without its highest bit, most significant bit first.
    pub polynomial: u32,
    /// Initial value of the register.
    pub initial: u32,
    /// Whether each byte is processed least significant bit first.
    pub reflect_in: bool,
    /// Whether the final value of the register is bit-reversed.
    pub reflect_out: bool,
    /// Value that is XORed with the result.
    pub final_xor: u32,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    /// Value that the program writes to `mcast_grp`; never 0.
    pub id: u32,
    /// The replicas, one packet copy each.
    pub replicas: Vec<Replica>,
}

/// One copy of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// Value that the program reads as `egress_rid`.
    pub instance: u32,
    /// Backup ports: while `port` is down, the copy goes to the first of these that is up.
    pub backups: Vec<u32>,
}

/// A mirror session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorSession {
    /// Session id that `clone` names.
    pub id: u32,
    /// The replicas, one packet copy each.
    pub replicas: Vec<Replica>,
    /// A multicast group that makes further copies.
    pub group: Option<u32>,
    /// Maximum length of a copy in bytes; `None` for the whole packet.
    pub truncate: Option<u32>,
}
