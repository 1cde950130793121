//! Defines table entries as the control plane writes them, and all errors they can have.

use bits::Bits;
use ir::{ActionId, KeyValue, MatchKind, ProfileId, RegisterId, TableId};

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// An argument for each of the action's parameters, of the parameter's width.
    pub args: Vec<Bits>,
}

/// An action of a one-shot group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedCall {
    /// The action.
    pub call: ActionCall,
    /// Its weight in the group; at least 1.
    pub weight: u32,
    /// Port that must be up for the action to be chosen.
    pub watch_port: Option<u32>,
}

/// The action of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionSpec {
    /// Runs an action; for tables without a profile.
    Direct(ActionCall),
    /// Runs a member of the table's profile.
    Member(u32),
    /// Runs a member of a group of the table's profile, chosen by the selector.
    Group(u32),
    /// Runs one of these, chosen by the selector of the table's profile.
    OneShot(Vec<WeightedCall>),
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// One value for each key element of the table, selectors excepted. [`KeyValue::Any`] is accepted for every match
    /// kind but exact; entries that are read back have the canonical form of the kind.
    pub keys: Vec<KeyValue>,
    /// Priority; higher wins. Greater than 0 if the table has a ternary, range or optional key, else 0.
    pub priority: i32,
    /// Action.
    pub action: ActionSpec,
    /// Opaque data of the control plane, returned with the entry.
    pub metadata: Vec<u8>,
    /// Idle timeout in nanoseconds, after which [`crate::Objects::idle_entries`] returns the entry; 0 for none.
    pub idle_timeout_ns: u64,
}

impl TableEntry {
    /// Creates an entry that runs an action.
    pub fn new(keys: Vec<KeyValue>, priority: i32, action: ActionId, args: Vec<Bits>) -> Self {
        let action = ActionSpec::Direct(ActionCall { action, args });
        TableEntry { keys, priority, action, metadata: Vec::new(), idle_timeout_ns: 0 }
    }
}

/// The reason for rejecting a control plane request. A rejected request has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A const table's entries cannot be changed.
    #[error("the entries of {0} are constant")]
    ConstEntries(TableId),
    /// The stores of resilient state make the entries of this table.
    #[error("the entries of {0} are made by the stores of resilient state")]
    RowEntries(TableId),
    /// Packets write the rows of this register array, and stores keep them.
    #[error("the values of {0} are resilient state, which only packets write")]
    RowRegister(RegisterId),
    /// An entry that the program marks `const` cannot be changed.
    #[error("this entry of {0} is constant")]
    ConstEntry(TableId),
    /// A const default action cannot be changed.
    #[error("the default action of {0} is constant")]
    ConstDefault(TableId),
    /// A table without a key has no entries.
    #[error("{0} has no key, so it has no entries")]
    Keyless(TableId),
    /// The number of key values is not the table's.
    #[error("the key has {want} elements, but {got} are given")]
    KeyCount {
        /// Elements of the table's key, selectors excepted.
        want: usize,
        /// Elements given.
        got: usize,
    },
    /// The kind of a key value does not fit the match kind.
    #[error("key element {key} has match kind {kind}, but the value is of another kind")]
    KeyKind {
        /// Index of the element among those that are matched.
        key: usize,
        /// Match kind.
        kind: MatchKind,
    },
    /// A key value has another width.
    #[error("key element {key} has {want} bits, but the value has {got}")]
    KeyWidth {
        /// Index of the element among those that are matched.
        key: usize,
        /// Its width in bits.
        want: u32,
        /// The value's width in bits.
        got: u32,
    },
    /// The prefix is longer than the key element.
    #[error("key element {key} has {width} bits, but the prefix length is {got}")]
    PrefixTooLong {
        /// Index of the element among those that are matched.
        key: usize,
        /// Its width in bits.
        width: u32,
        /// The prefix length.
        got: u32,
    },
    /// A value with bits set that its prefix or mask does not cover.
    #[error("key element {key} has bits set that its prefix or mask does not cover")]
    BitsBehindMask {
        /// Index of the element among those that are matched.
        key: usize,
    },
    /// A range that ends before it begins.
    #[error("the range of key element {key} is empty")]
    EmptyRange {
        /// Index of the element among those that are matched.
        key: usize,
    },
    /// The key requires a priority greater than 0.
    #[error("the priority must be greater than 0, but {0} is given")]
    PriorityMissing(i32),
    /// The key does not allow a priority.
    #[error("entries of this table have no priority, but {0} is given")]
    PriorityNeedless(i32),
    /// The action is not one of the table's.
    #[error("{action} is not an action of {table}")]
    ActionNotInTable {
        /// The table.
        table: TableId,
        /// The action.
        action: ActionId,
    },
    /// The action is not available to entries of all tables of the profile.
    #[error("{action} is not an action of {profile}")]
    ActionNotInProfile {
        /// The profile.
        profile: ProfileId,
        /// The action.
        action: ActionId,
    },
    /// The action is for the default only.
    #[error("{0} may be used only as the default action")]
    DefaultOnly(ActionId),
    /// The action is for entries only.
    #[error("{0} may not be used as the default action")]
    TableOnly(ActionId),
    /// The number of arguments is not the action's.
    #[error("{action} has {want} parameters, but {got} arguments are given")]
    ArgCount {
        /// The action.
        action: ActionId,
        /// Parameters.
        want: usize,
        /// Arguments given.
        got: usize,
    },
    /// An argument of another width.
    #[error("parameter {param} of {action} has {want} bits, but the argument has {got}")]
    ArgWidth {
        /// The action.
        action: ActionId,
        /// Index of the parameter.
        param: usize,
        /// Its width in bits.
        want: u32,
        /// The argument's width in bits.
        got: u32,
    },
    /// The table has no profile, and the entry names a member, a group or a one-shot group.
    #[error("{0} has no action profile")]
    NoProfile(TableId),
    /// The table has a profile, and the entry names an action.
    #[error("{0} takes its actions from an action profile")]
    NeedsProfile(TableId),
    /// The profile has no selector, and a group is asked for.
    #[error("the action profile has no selector, so it has no groups")]
    NoSelector,
    /// No such member.
    #[error("there is no member {0}")]
    NoSuchMember(u32),
    /// No such group.
    #[error("there is no group {0}")]
    NoSuchGroup(u32),
    /// A member or group that something still refers to cannot go.
    #[error("{0} entries or groups still refer to it")]
    InUse(u32),
    /// A weight of 0, or weights that add up to more than 32 bits.
    #[error("a weight is 0 or the weights are too large")]
    BadWeight,
    /// A group that would have more members than it may.
    #[error("the group may have {max} members, but {got} are given")]
    GroupTooLarge {
        /// The limit.
        max: u32,
        /// Members given.
        got: usize,
    },
    /// The same key, id or member is there already.
    #[error("it already exists")]
    Duplicate,
    /// There is no such entry, member or group.
    #[error("it does not exist")]
    NotFound,
    /// The table, profile or value set holds as many as it can.
    #[error("it is full: its size is {0}")]
    Full(u64),
    /// A prefix of an `@elastic` table takes more cells than are left: the cells, and the table's size.
    #[error(
        "the prefix takes {0} of the table's {1} entries, but fewer are free: choose more `lengths` or a larger `size`"
    )]
    NoCells(u64, u64),
    /// An index beyond the end of an array.
    #[error("index {index} is out of range: the size is {size}")]
    BeyondEnd {
        /// The index.
        index: u64,
        /// The number of elements.
        size: u64,
    },
    /// A value of another width than the array's.
    #[error("the elements have {want} bits, but the value has {got}")]
    ValueWidth {
        /// Bits of an element.
        want: u32,
        /// The value's width in bits.
        got: u32,
    },
    /// The table has no direct counter or meter, or an array is asked for that is a direct one.
    #[error("there is no such counter or meter")]
    NoSuchResource,
    /// A meter whose rates or bursts contradict each other (RFC 2698: PIR is at least CIR).
    #[error("the peak rate is lower than the committed rate")]
    PeakBelowCommitted,
}
