//! Defines objects: what the control plane sees, and what keeps state from packet to packet.

use bits::Bits;

use crate::*;

/// An action of one or more tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Name for the control plane: `MyIngress.ipv4_forward`.
    pub name: String,
    /// Parameters that an entry supplies, in order: slots of kind [`SlotKind::Argument`].
    pub params: Vec<ActionParam>,
    /// The body that implements it.
    pub body: BodyId,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Source position.
    pub loc: LocId,
}

/// A parameter of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionParam {
    /// Name.
    pub name: String,
    /// Slot from which the body reads the value.
    pub slot: SlotId,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name for the control plane: `MyIngress.ipv4_lpm`.
    pub name: String,
    /// Key in order.
    pub keys: Vec<Key>,
    /// Actions in order.
    pub actions: Vec<TableAction>,
    /// Action that a miss runs: index into `actions`, and arguments.
    pub default_action: (u32, Vec<Bits>),
    /// Whether the control plane may not change the default action.
    pub const_default: bool,
    /// Entries that the program declares.
    pub entries: Vec<Entry>,
    /// Whether the control plane may not change the entries.
    pub const_entries: bool,
    /// Number of entries that the program requests, if it does.
    pub size: Option<u64>,
    /// The action profile that holds its actions, if it has one.
    pub profile: Option<ProfileId>,
    /// The direct counter.
    pub counter: Option<CounterId>,
    /// The direct meter.
    pub meter: Option<MeterId>,
    /// Whether entries age (`support_timeout`).
    pub idle_timeout: bool,
    /// Whether a larger priority number wins among the program's own entries.
    pub largest_priority_wins: bool,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Source position.
    pub loc: LocId,
}

impl Table {
    /// Returns a table of this name without keys, actions and entries. Its default action has index 0.
    pub fn new(name: impl Into<String>) -> Table {
        Table {
            name: name.into(),
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: (0, Vec::new()),
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            size: None,
            profile: None,
            counter: None,
            meter: None,
            idle_timeout: false,
            largest_priority_wins: false,
            annotations: Vec::new(),
            loc: LocId::from_u32(0),
        }
    }

    /// Whether its entries are rows of resilient state.
    pub fn is_resilient(&self) -> bool {
        self.annotations.iter().any(|annotation| annotation.name == crate::RESILIENT)
    }

    /// Whether its entries may lie in the memory of servers.
    pub fn is_elastic(&self) -> bool {
        self.annotations.iter().any(|annotation| annotation.name == crate::ELASTIC)
    }

    /// Whether packets may have to wait for an entry that the switch does not have: a miss in the switch is no answer.
    pub fn waits_for_entries(&self) -> bool {
        self.is_resilient() || self.is_elastic()
    }

    /// Whether hits of its entries are recorded, because the table counts, meters or ages them.
    pub fn records_hits(&self) -> bool {
        self.counter.is_some() || self.meter.is_some() || self.idle_timeout
    }
}

/// An element of a table's key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name for the control plane: `hdr.ipv4.dstAddr`.
    pub name: String,
    /// Expression to look up.
    pub expr: Expr,
    /// Width in bits.
    pub width: u32,
    /// Match kind.
    pub kind: MatchKind,
    /// Whether the program declares it signed; ranges are then compared as signed numbers.
    pub signed: bool,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// Match kind of a key element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equality.
    Exact,
    /// Longest prefix match.
    Lpm,
    /// Equality under a mask, by priority.
    Ternary,
    /// Between two bounds, by priority.
    Range,
    /// Equality, or anything, by priority.
    Optional,
    /// Not matched: input of the hash that selects a member of a group.
    Selector,
}

/// An element of a table's actions.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// `@defaultonly`: entries may not use it.
    pub default_only: bool,
    /// `@tableonly`: the default action may not be this one.
    pub table_only: bool,
}

/// An entry that the program declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// One value per key element (selectors excepted).
    pub keys: Vec<KeyValue>,
    /// Priority as P4Runtime defines it: larger wins. 0 where no key element needs one.
    pub priority: i32,
    /// Index into the table's actions.
    pub action: u32,
    /// Arguments.
    pub args: Vec<Bits>,
    /// Whether the control plane may not change this entry. With [`Table::const_entries`] it may change no entry.
    pub constant: bool,
    /// Source position.
    pub loc: LocId,
}

/// The match of an entry on one key element. All values have the key's width.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyValue {
    /// For `exact`, and `optional` with a value.
    Exact(Bits),
    /// For `lpm`: value (zero after the prefix) and prefix length in bits.
    Lpm(Bits, u32),
    /// For `ternary`: value (zero where the mask is zero) and mask.
    Ternary(Bits, Bits),
    /// For `range`: bounds, both inclusive.
    Range(Bits, Bits),
    /// For `optional`: matches anything.
    Any,
}

/// A register array.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// Name for the control plane.
    pub name: String,
    /// Width of an element in bits.
    pub width: u32,
    /// Number of elements.
    pub size: u64,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

impl Register {
    /// Whether its elements belong to rows of resilient state.
    pub fn is_resilient(&self) -> bool {
        self.annotations.iter().any(|annotation| annotation.name == crate::RESILIENT)
    }
}

/// Unit of a counter or meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Both (counters only).
    PacketsAndBytes,
}

/// A counter array, or a table's direct counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Name for the control plane.
    pub name: String,
    /// Unit that is counted.
    pub unit: Unit,
    /// Number of elements; `None` for a direct counter, which has one per entry.
    pub size: Option<u64>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A meter array, or a table's direct meter: two rates, three colours (RFC 2698).
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// Name for the control plane.
    pub name: String,
    /// Unit that is metered.
    pub unit: Unit,
    /// Number of elements; `None` for a direct meter, which has one per entry.
    pub size: Option<u64>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An action profile; with a selector, also groups of members, chosen by a hash of the selector keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name for the control plane.
    pub name: String,
    /// Number of members that the program requests.
    pub size: u64,
    /// The selector's hash algorithm, if it has one.
    pub selector: Option<Algorithm>,
    /// Width of the selector's hash in bits.
    pub hash_width: u32,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A value set.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSet {
    /// Name for the control plane.
    pub name: String,
    /// Names, widths in bits and match kinds of its fields.
    pub fields: Vec<(String, u32, MatchKind)>,
    /// Number of members that the program requests.
    pub size: u64,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A digest: a message to the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// Name for the control plane.
    pub name: String,
    /// Names and widths in bits of its fields.
    pub fields: Vec<(String, u32)>,
}
