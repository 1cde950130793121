//! Defines the message format of a program, as its annotations describe it.

use diagnostics::Span;

/// Match kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// `@query_field_exact`: equality with a value.
    Exact,
    /// `@query_field_lpm`: prefixes.
    Lpm,
    /// `@query_field`, `@query_field_range`: ranges.
    Range,
}

impl Match {
    /// Returns the P4 match kind.
    pub fn name(self) -> &'static str {
        match self {
            Match::Exact => "exact",
            Match::Lpm => "lpm",
            Match::Range => "range",
        }
    }
}

/// Notation of a field's values, from `@format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Notation {
    /// A number.
    #[default]
    Number,
    /// `@format(TEXT)`: characters, padded with spaces on the right.
    Text,
    /// `@format(IPV4_ADDRESS)`
    Ipv4,
    /// `@format(IPV6_ADDRESS)`
    Ipv6,
    /// `@format(MAC_ADDRESS)`
    Mac,
}

/// Index of a header in [`ProgramFormat::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub usize);

/// A header that rules can test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatHeader {
    /// Its name in rules: `ipv4`, `add_order`.
    pub name: String,
    /// Whether the header is part of each message rather than of each packet.
    pub in_message: bool,
    /// Names of the members without an annotation, which rules cannot test.
    pub untested: Vec<String>,
}

/// The location of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSource {
    /// The header.
    pub header: HeaderId,
    /// Name of the member.
    pub member: String,
    /// Whether its type is a new type (`type bit<9> port_t`), which needs a cast to be a number.
    pub is_new_type: bool,
}

/// A field that rules can test. It may have several source headers; at most one of them should be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatField {
    /// Name in rules: `add_order.price`, or the name in its annotation.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Match kind.
    pub matched: Match,
    /// Notation of its values.
    pub notation: Notation,
    /// `@query_codes`: width in bits of the codes that its values are mapped to before lookup.
    pub codes: Option<u32>,
    /// Sources in order of declaration.
    pub sources: Vec<FieldSource>,
    /// Location of the annotation.
    pub span: Span,
}

/// A field of a header that every packet has once: `mold.count`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The header.
    pub header: String,
    /// The field.
    pub field: String,
    /// Width in bits.
    pub width: u32,
    /// Number of bits before it in the header, if fixed.
    pub offset: Option<u32>,
}

impl Path {
    /// Returns the largest value: in MoldUDP64, the count that marks the end of a session.
    pub fn all_ones(&self) -> u128 {
        subscribe::max_of(self.width)
    }
}

/// Size of a message kind in bytes, including its length field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// A fixed number of bytes.
    Fixed(u32),
    /// An expression: text, with names of the header's own fields.
    Computed(Vec<Piece>),
}

/// A part of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A field of the header.
    Field(String),
}

/// A kind of message: a member of the header union that forms the stack's elements, or the element itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageKind {
    /// The header.
    pub header: HeaderId,
    /// Member of the union; `None` if the element is a header itself.
    pub member: Option<String>,
    /// Size in bytes.
    pub size: Size,
}

/// The messages of a packet (`@query_messages`): a header stack whose valid elements are matched one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Name of the stack in the struct of headers.
    pub stack: String,
    /// Number of elements.
    pub max_messages: u32,
    /// Kinds of an element.
    pub kinds: Vec<MessageKind>,
    /// Field with the number of messages in the packet.
    pub count: Path,
    /// Field with the sequence number of the first message, if messages are numbered.
    pub sequence: Option<Path>,
    /// Session of the sequence numbers, if packets carry one.
    pub session: Option<Session>,
    /// Length fields that cover the messages, outermost first. Without any, only the count says where they end.
    pub lengths: Vec<Path>,
    /// Number of bytes from the header of the last of `lengths` to the first message; 0 without lengths.
    pub before: u32,
    /// Fields to set to zero when messages are removed: optional checksums.
    pub clear: Vec<Path>,
    /// Checksum of a header (as in IPv4), to be updated when fields of that header change.
    pub checksum: Option<Path>,
    /// All headers outside the stack: their locations (`ethernet`, `tags[1]`) and sizes in bytes.
    pub others: Vec<(String, Size)>,
}

/// The field that identifies the session of a packet's sequence numbers, and the number of concurrent sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The field.
    pub field: Path,
    /// Number of streams; a power of two.
    pub streams: u32,
    /// Number of the last messages of a stream, a power of two, among which those that come again are dropped; `None`
    /// to deliver every message as often as it comes.
    pub arbitrate: Option<u32>,
}

impl Messages {
    /// Returns the last of [`Messages::lengths`], if there are any: its range ends with the last message.
    pub fn innermost_length(&self) -> Option<&Path> {
        self.lengths.last()
    }

    /// Returns [`Session::arbitrate`], if there are sessions.
    pub fn arbitrate(&self) -> Option<u32> {
        self.session.as_ref()?.arbitrate
    }

    /// Whether [`Messages::checksum`] covers a field.
    pub fn covers(&self, path: &Path) -> bool {
        self.checksum.as_ref().is_some_and(|checksum| checksum.header == path.header)
    }
}

/// An action of the program that rules can call (`@query_action`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramAction {
    /// Its name.
    pub name: String,
    /// Arguments that the table binds: those for parameters with a direction.
    pub bound: Vec<Bound>,
    /// Names and widths in bits of the parameters that rules supply.
    pub params: Vec<(String, u32)>,
}

/// An argument that the program binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// All headers.
    Headers,
    /// The user metadata.
    Metadata,
    /// The standard metadata.
    Standard,
}

/// Names of a program's types and of the pipeline parts that it provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The type of all headers.
    pub headers: String,
    /// The type of the program's metadata.
    pub metadata: String,
    /// Offset in the main file at which a field can be inserted into the metadata: after the `{`.
    pub metadata_at: usize,
    /// The parser.
    pub parser: String,
    /// Control that verifies checksums, if any.
    pub verify: Option<String>,
    /// Control that is applied before the rules, if any.
    pub before: Option<String>,
    /// Control that decides about packets that no rule delivers, if any.
    pub fallback: Option<String>,
    /// Control that is applied in egress, if any.
    pub egress: Option<String>,
    /// Control that computes checksums, if any.
    pub compute: Option<String>,
    /// The deparser, if any.
    pub deparser: Option<String>,
    /// Name and destination field of the Ethernet header, if the first header begins with two fields of 48 bits.
    pub ethernet: Option<(String, String)>,
}

impl ProgramFormat {
    /// Whether the field of one source decides whenever its header is valid: no other header of the field that could be
    /// valid, too, is read after it. The headers of a packet are read in their order, and then those of the message.
    pub fn decides(&self, field: &FormatField, source: HeaderId) -> bool {
        let in_message = |header: HeaderId| self.headers[header.0].in_message;
        let later = |other: HeaderId| match (in_message(source), in_message(other)) {
            (false, false) => other > source && self.can_both_be_valid(source, other),
            (false, true) => true,
            // A message is of one kind.
            (true, _) => false,
        };
        !field.sources.iter().any(|other| other.header != source && later(other.header))
    }

    /// Whether a packet may have both of these headers, as far as is known.
    fn can_both_be_valid(&self, one: HeaderId, other: HeaderId) -> bool {
        let Some(packets) = &self.possible.packets else { return true };
        packets.iter().any(|known| [one, other].iter().all(|header| known.valid.get(header) != Some(&false)))
    }
    /// Whether a program can forward packets that are not of the feed by their Ethernet addresses
    /// ([`ProgramOptions::forwards_hosts`](crate::ProgramOptions::forwards_hosts)): there are several messages per
    /// packet, and no control of the format decides about other packets.
    pub fn can_forward_hosts(&self) -> bool {
        let Parts { before, fallback, ethernet, .. } = &self.parts;
        self.messages.is_some() && before.is_none() && fallback.is_none() && ethernet.is_some()
    }
}

/// A 64-bit variable that rules can test and update (`@query_counter`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Window after which it is reset to 0; `None` for never.
    pub window: Option<subscribe::Window>,
}

/// A 64-bit aggregate over messages (`@query_aggregate`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// The aggregate; its fields are indices into [`ProgramFormat::fields`]. `None` for a linked slot.
    pub computes: Option<subscribe::Aggregate>,
    /// Number of keys that rules can name; all other keys share the same number of additional cells.
    pub keys: u32,
    /// Maximum number of distinct conditions on counted messages.
    pub slots: u16,
}

/// The message format of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFormat {
    /// Types and pipeline parts.
    pub parts: Parts,
    /// Headers that rules can test.
    pub headers: Vec<FormatHeader>,
    /// Fields that rules can test, in the default order of their tables.
    pub fields: Vec<FormatField>,
    /// The messages of a packet, if it can have several.
    pub messages: Option<Messages>,
    /// Actions of the program.
    pub actions: Vec<ProgramAction>,
    /// Counters that rules can test and update.
    pub counters: Vec<Counter>,
    /// Aggregates that rules can test.
    pub aggregates: Vec<Aggregate>,
    /// Packets and messages that can occur.
    pub possible: crate::Possible,
}
