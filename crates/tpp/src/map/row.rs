//! Defines the rows of the memory map.

use std::fmt;

/// A group of rows. The number is the first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Namespace {
    /// The switch.
    Switch = 0x0000,
    /// A table of the program, by its number.
    Stage = 0x1000,
    /// The entry that the packet matched in a table.
    FlowEntry = 0x2000,
    /// The port that the packet leaves by; with a number, any port.
    Link = 0x3000,
    /// The port that the packet arrived on.
    InputLink = 0x3c00,
    /// The packet.
    PacketMetadata = 0x4000,
    /// A register of the P4 program, by its name.
    Register = 0x8000,
    /// The queue that the packet waited in; with two numbers, any queue of any port.
    Queue = 0xb000,
    /// A field that the P4 program parsed, by its name.
    Field = 0xc000,
    /// Addresses that a vendor assigns.
    Vendor = 0xf000,
}

impl Namespace {
    /// All namespaces, by address.
    pub const ALL: &[Namespace] = &[
        Namespace::Switch,
        Namespace::Stage,
        Namespace::FlowEntry,
        Namespace::Link,
        Namespace::InputLink,
        Namespace::PacketMetadata,
        Namespace::Register,
        Namespace::Queue,
        Namespace::Field,
        Namespace::Vendor,
    ];

    /// Returns the first address.
    pub const fn base(self) -> u16 {
        self as u16
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Namespace::Switch => "Switch",
            Namespace::Stage => "Stage",
            Namespace::FlowEntry => "FlowEntry",
            Namespace::Link => "Link",
            Namespace::InputLink => "InputLink",
            Namespace::PacketMetadata => "PacketMetadata",
            Namespace::Register => "Register",
            Namespace::Queue => "Queue",
            Namespace::Field => "Field",
            Namespace::Vendor => "Vendor",
        }
    }

    /// Whether names have the number of a table.
    pub fn has_stage(self) -> bool {
        matches!(self, Namespace::Stage | Namespace::FlowEntry)
    }
}

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number without a unit.
    None,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Table entries.
    Entries,
    /// Packets in a second.
    PacketsPerSecond,
    /// Bytes in a second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Cycles in a second.
    Hertz,
    /// Hundredths of a per cent: 10,000 is 100 %.
    BasisPoints,
    /// Single bits.
    Flags,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::None => "",
            Unit::Packets => "packets",
            Unit::Bytes => "bytes",
            Unit::Entries => "entries",
            Unit::PacketsPerSecond => "packets/s",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Nanoseconds => "ns",
            Unit::Hertz => "Hz",
            Unit::BasisPoints => "1/10,000",
            Unit::Flags => "bits",
        })
    }
}

/// Behaviour of a value over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Never decreases, except that the bits that fit into a word wrap around.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Names something.
    Identifier,
    /// Does not change.
    Constant,
}

/// Permitted accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Programs can read it.
    Read,
    /// Programs can read and write it.
    ReadWrite,
}

/// A field of INT 2.1 metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntField {
    /// Bit of the instruction bitmap, 0 being the most significant.
    pub bit: u8,
    /// Name in the specification.
    pub name: &'static str,
    /// Width in bits.
    pub width: u32,
}

/// A row of the map: one statistic, or an array of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatRow {
    /// Its namespace.
    pub namespace: Namespace,
    /// Offset from the first address of the namespace. The next address is that of its high half.
    pub offset: u16,
    /// Name after the colon.
    pub name: &'static str,
    /// Other names, which the paper uses.
    pub aliases: [Option<&'static str>; 2],
    /// Name in `switch::Registry`, with placeholders; empty if it belongs to a packet.
    pub registry: &'static str,
    /// Width in bits.
    pub width: u32,
    /// Number of elements; they are 2 addresses apart.
    pub count: u16,
    /// Its unit.
    pub unit: Unit,
    /// Its behaviour over time.
    pub kind: Kind,
    /// Its permitted accesses.
    pub access: Access,
    /// Bit and field of INT 2.1 with the same value.
    pub int: Option<(u8, &'static str)>,
    /// Its meaning, in one phrase.
    pub meaning: &'static str,
}

impl StatRow {
    #[allow(clippy::too_many_arguments, reason = "a row of a table, in the order of its columns")]
    pub(super) const fn new(
        namespace: Namespace,
        offset: u16,
        name: &'static str,
        registry: &'static str,
        width: u32,
        unit: Unit,
        kind: Kind,
        meaning: &'static str,
    ) -> StatRow {
        let (aliases, int, access) = ([None, None], None, Access::Read);
        StatRow { namespace, offset, name, aliases, registry, width, count: 1, unit, kind, access, int, meaning }
    }

    /// Makes the row an array of words that applications write.
    pub(super) const fn words(self, count: u16) -> StatRow {
        StatRow { count, access: Access::ReadWrite, ..self }
    }

    pub(super) const fn also(mut self, alias: &'static str) -> StatRow {
        let free = if self.aliases[0].is_none() { 0 } else { 1 };
        self.aliases[free] = Some(alias);
        self
    }

    pub(super) const fn int(mut self, bit: u8, field: &'static str) -> StatRow {
        self.int = Some((bit, field));
        self
    }

    /// Returns the address of the first element, in table 0 if there are several tables.
    pub const fn address(&self) -> u16 {
        self.namespace.base() + self.offset
    }

    /// Returns all names after the colon.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.into_iter().flatten())
    }
}
