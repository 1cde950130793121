//! Defines a program: its storage, its objects and its bodies.

use std::collections::BTreeMap;

use cranelift_entity::{PrimaryMap, entity_impl};
use diagnostics::SourcePosition;

use crate::*;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )*};
}

ids! {
    /// A header type: a layout.
    HeaderTypeId "header_type";
    /// A header instance.
    HeaderId "header";
    /// A header stack.
    StackId "stack";
    /// A slot.
    SlotId "slot";
    /// A body.
    BodyId "body";
    /// A block of a body.
    BlockId "block";
    /// An action.
    ActionId "action";
    /// A table.
    TableId "table";
    /// A register array.
    RegisterId "register";
    /// A counter array.
    CounterId "counter";
    /// A meter array.
    MeterId "meter";
    /// An action profile, with or without a selector.
    ProfileId "profile";
    /// A value set.
    ValueSetId "value_set";
    /// A digest.
    DigestId "digest";
    /// A position in the P4 source; see [`Program::locs`].
    LocId "loc";
}

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The target architecture (`v1model`).
    pub arch: String,
    /// Header layouts.
    pub header_types: PrimaryMap<HeaderTypeId, HeaderType>,
    /// Header instances; the elements of a stack are adjacent.
    pub headers: PrimaryMap<HeaderId, Header>,
    /// Header stacks.
    pub stacks: PrimaryMap<StackId, Stack>,
    /// Named storage for bit vectors.
    pub slots: PrimaryMap<SlotId, Slot>,
    /// Actions of tables. Actions that only the program calls are inlined and do not appear.
    pub actions: PrimaryMap<ActionId, Action>,
    /// Tables.
    pub tables: PrimaryMap<TableId, Table>,
    /// Register arrays.
    pub registers: PrimaryMap<RegisterId, Register>,
    /// Counter arrays.
    pub counters: PrimaryMap<CounterId, Counter>,
    /// Meter arrays.
    pub meters: PrimaryMap<MeterId, Meter>,
    /// Action profiles and selectors.
    pub profiles: PrimaryMap<ProfileId, Profile>,
    /// Value sets.
    pub value_sets: PrimaryMap<ValueSetId, ValueSet>,
    /// Digests.
    pub digests: PrimaryMap<DigestId, Digest>,
    /// Code.
    pub bodies: PrimaryMap<BodyId, Body>,
    /// The architecture's programmable blocks by role: `parser`, `verify_checksum`, `ingress`, `egress`,
    /// `compute_checksum`, `deparser` for v1model.
    pub blocks: BTreeMap<String, BodyId>,
    /// Slots and headers that `@field_list(n)` preserves on clone, resubmit and recirculate.
    pub field_lists: BTreeMap<u32, Vec<FieldListItem>>,
    /// Members of `error`; an error value is an index into this list, 32 bits wide.
    pub errors: Vec<String>,
    /// Source positions that instructions refer to. The first, `loc0`, is the unknown position.
    pub locs: PrimaryMap<LocId, SourcePosition>,
}

/// An item of a field list: a slot, or a whole header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldListItem {
    /// A slot.
    Slot(SlotId),
    /// A header with its validity.
    Header(HeaderId),
}

/// A header layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderType {
    /// Name.
    pub name: String,
    /// Fields in wire order. At most one is variable.
    pub fields: Vec<HeaderField>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Name.
    pub name: String,
    /// Width in bits; the maximum width if `varbit`.
    pub width: u32,
    /// Whether each extraction sets the width.
    pub varbit: bool,
    /// Whether the program declares it signed; matters to people only.
    pub signed: bool,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

impl HeaderType {
    /// Returns the total width in bits of the fixed fields.
    pub fn fixed_bits(&self) -> u32 {
        self.fields.iter().filter(|field| !field.varbit).map(|field| field.width).sum()
    }

    /// Returns the index of the varbit field, if there is one.
    pub fn varbit_field(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.varbit)
    }
}

/// A header instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Full name: `hdr.ipv4`, `hdr.vlan[1]`.
    pub name: String,
    /// Layout.
    pub ty: HeaderTypeId,
    /// Whether it is local to a body, unlike headers and metadata, which survive from block to block.
    pub local: bool,
}

/// A header stack: `size` adjacent instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Full name: `hdr.vlan`.
    pub name: String,
    /// The first element.
    pub first: HeaderId,
    /// Number of elements.
    pub size: u32,
    /// The 32-bit slot that holds the index of the next element to extract.
    pub next: SlotId,
}

impl Stack {
    /// Returns the elements in order.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = HeaderId> + use<> {
        let first = self.first;
        (0..self.size as usize).map(move |index| HeaderId::from_u32(first.as_u32() + index as u32))
    }
}

/// Named storage for one bit vector. Every slot is 0 when a packet enters the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Full name: `meta.port`, `standard_metadata.egress_spec`.
    pub name: String,
    /// Width in bits; 1 for `bool`, 32 for `error` and plain enums.
    pub width: u32,
    /// Lifetime and purpose.
    pub kind: SlotKind,
    /// Whether the program declares it signed; matters to people only.
    pub signed: bool,
}

/// Lifetime and purpose of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Lives as long as the packet is in the pipeline.
    Metadata,
    /// Lives as long as its body runs.
    Local,
    /// A parameter of an action, written by the caller before the action runs.
    Argument,
}

/// An annotation that the compiler did not consume, as written: `@name` and the text in its parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The name after the `@`.
    pub name: String,
    /// The text between the parentheses; empty if there are none.
    pub text: String,
}

impl Program {
    /// Returns the slot with this full name.
    pub fn slot_named(&self, name: &str) -> Option<SlotId> {
        self.slots.iter().find(|(_, slot)| slot.name == name).map(|(id, _)| id)
    }

    /// Returns the table with this control-plane name.
    pub fn table_named(&self, name: &str) -> Option<TableId> {
        self.tables.iter().find(|(_, table)| table.name == name).map(|(id, _)| id)
    }

    /// Returns the layout of a header instance.
    pub fn layout(&self, header: HeaderId) -> &HeaderType {
        &self.header_types[self.headers[header].ty]
    }
}
