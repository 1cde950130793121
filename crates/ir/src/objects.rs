//! Objects: what the control plane sees and what keeps its state from packet to packet.

use bits::Bits;

use crate::*;

/// An action of one or more tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Name for the control plane: `MyIngress.ipv4_forward`.
    pub name: String,
    /// What an entry gives, in order: slots of kind [`SlotKind::Argument`].
    pub params: Vec<ActionParam>,
    /// What it does.
    pub body: BodyId,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Where it stands.
    pub loc: LocId,
}

/// A parameter of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionParam {
    /// Name.
    pub name: String,
    /// Where the body finds it.
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
    /// What a miss runs: index into `actions`, and arguments.
    pub default_action: (u32, Vec<Bits>),
    /// Whether the control plane may not change the default action.
    pub const_default: bool,
    /// Entries of the program.
    pub entries: Vec<Entry>,
    /// Whether the control plane may not change the entries.
    pub const_entries: bool,
    /// How many entries it is asked to hold, if the program says.
    pub size: Option<u64>,
    /// The profile that holds its actions, if it has one.
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
    /// Where it stands.
    pub loc: LocId,
}

impl Table {
    /// Whether the hits of its entries are noted: somebody counts, meters or times them.
    pub fn notes_hits(&self) -> bool {
        self.counter.is_some() || self.meter.is_some() || self.idle_timeout
    }
}

/// An element of a table's key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name for the control plane: `hdr.ipv4.dstAddr`.
    pub name: String,
    /// What is looked up.
    pub expr: Expr,
    /// Width in bits.
    pub width: u32,
    /// How it is matched.
    pub kind: MatchKind,
    /// Whether the program calls it signed; ranges then compare signed.
    pub signed: bool,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// How a key element is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// The longest prefix wins.
    Lpm,
    /// Equal under a mask, by priority.
    Ternary,
    /// Between two values, by priority.
    Range,
    /// Equal, or anything, by priority.
    Optional,
    /// Not matched: goes into the hash that chooses a member of a group.
    Selector,
}

/// An element of a table's actions.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// `@defaultonly`: entries may not use it.
    pub default_only: bool,
    /// `@tableonly`: the default may not use it.
    pub table_only: bool,
}

/// An entry that the program gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// One value a key element (selectors excepted).
    pub keys: Vec<KeyValue>,
    /// Priority as P4Runtime means it: larger wins. 0 where no key element needs one.
    pub priority: i32,
    /// Index into the table's actions.
    pub action: u32,
    /// Arguments.
    pub args: Vec<Bits>,
    /// Whether the control plane may not change this entry; of a table with [`Table::const_entries`] it may change none.
    pub constant: bool,
    /// Where it stands.
    pub loc: LocId,
}

/// What an entry says of one key element. All values have the key's width.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyValue {
    /// For `exact`, and `optional` with a value.
    Exact(Bits),
    /// For `lpm`: value (zero behind the prefix) and prefix length in bits.
    Lpm(Bits, u32),
    /// For `ternary`: value (zero where the mask is) and mask.
    Ternary(Bits, Bits),
    /// For `range`: both included.
    Range(Bits, Bits),
    /// For `optional`: anything.
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

/// What is counted or metered.
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
    /// What is counted.
    pub unit: Unit,
    /// Number of elements; `None` for a direct counter, which has one an entry.
    pub size: Option<u64>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A meter array, or a table's direct meter: two rates, three colours (RFC 2698).
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// Name for the control plane.
    pub name: String,
    /// What is metered.
    pub unit: Unit,
    /// Number of elements; `None` for a direct meter, which has one an entry.
    pub size: Option<u64>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An action profile; with a selector, groups of members chosen by a hash of the selector keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name for the control plane.
    pub name: String,
    /// How many members it is asked to hold.
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
    /// How many members it is asked to hold.
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
