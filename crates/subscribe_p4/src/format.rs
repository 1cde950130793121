//! What a program's messages look like, as its annotations tell it.

use diagnostics::Span;

/// How a field is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// `@query_field_exact`: equal to a value, or not.
    Exact,
    /// `@query_field_lpm`: by prefixes.
    Lpm,
    /// `@query_field`, `@query_field_range`: by ranges.
    Range,
}

impl Match {
    /// The match kind of a table's key.
    pub fn name(self) -> &'static str {
        match self {
            Match::Exact => "exact",
            Match::Lpm => "lpm",
            Match::Range => "range",
        }
    }
}

/// How people write a field's values, as `@format` says.
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

/// Where a header lies: an index into [`Format::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub usize);

/// A header that rules may speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name in rules: `ipv4`, `add_order`.
    pub name: String,
    /// Whether there is one in each message, not one in each packet.
    pub in_message: bool,
}

/// Where a field lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The header.
    pub header: HeaderId,
    /// Its name there.
    pub member: String,
    /// Whether it is of a type of its own (`type bit<9> port_t`), which is no number without a cast.
    pub is_new_type: bool,
}

/// A field that rules may ask for. One field may lie in several headers, of which at most one should be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in rules: `add_order.price`, or what its annotation calls it.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// How it is matched.
    pub matched: Match,
    /// How its values are written.
    pub notation: Notation,
    /// `@query_codes`: the width in bits of the codes that its values are mapped onto before they are looked up.
    pub codes: Option<u32>,
    /// Where it lies, in the order of declaration.
    pub sources: Vec<Source>,
    /// Where the annotation stands.
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
    /// Bits before it in the header, if that is the same in every packet.
    pub offset: Option<u32>,
}

impl Path {
    /// The largest value: in MoldUDP64, a count that stands for the end of a session.
    pub fn all_ones(&self) -> u128 {
        subscribe::max_of(self.width)
    }
}

/// How many bytes a kind of message takes, its length field included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// Always so many.
    Fixed(u32),
    /// What an expression gives: pieces of text, and names of the header's own fields between them.
    Computed(Vec<Piece>),
}

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// A field of the header.
    Field(String),
}

/// A kind of message: a header of the union that makes up the stack's elements, or the element itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The header.
    pub header: HeaderId,
    /// The union's member; `None` if the element is a header itself.
    pub member: Option<String>,
    /// Its bytes.
    pub size: Size,
}

/// The messages of a packet (`@query_messages`): a stack whose valid elements are matched one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// The stack's name among the headers.
    pub stack: String,
    /// How many elements it has.
    pub most: u32,
    /// What an element may be.
    pub kinds: Vec<Kind>,
    /// The field that says how many messages the packet has.
    pub count: Path,
    /// The field with the number of the first message, if messages are numbered.
    pub sequence: Option<Path>,
    /// What tells streams of numbers apart, if a packet says it.
    pub session: Option<Session>,
    /// Fields that count the bytes of the messages among others, the outermost first.
    pub lengths: Vec<Path>,
    /// Bytes from the header of the last of `lengths` up to the first message.
    pub before: u32,
    /// Fields to set to zero when messages are taken out: checksums that are optional.
    pub clear: Vec<Path>,
    /// The checksum of a header (IPv4's), to be kept right as fields there change.
    pub checksum: Option<Path>,
    /// All headers outside the stack: where they lie (`ethernet`, `tags[1]`), and their bytes.
    pub others: Vec<(String, Size)>,
}

/// The field that says which stream of numbers a packet belongs to, and for how many the program has room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The field.
    pub field: Path,
    /// How many streams there can be at a time; a power of two.
    pub streams: u32,
}

impl Messages {
    /// The last of [`Messages::lengths`]: what it counts ends with the last message.
    pub fn innermost_length(&self) -> &Path {
        self.lengths.last().expect("there is one: the reader asks for it")
    }

    /// Whether [`Messages::checksum`] is over a field.
    pub fn covers(&self, path: &Path) -> bool {
        self.checksum.as_ref().is_some_and(|checksum| checksum.header == path.header)
    }
}

/// A program's own action that rules may ask for (`@query_action`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// What a table binds: the arguments for its parameters with a direction, as text.
    pub bound: Vec<Bound>,
    /// Names and widths of the parameters that rules give.
    pub params: Vec<(String, u32)>,
}

/// An argument that the program binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// All headers.
    Headers,
    /// The program's metadata.
    Metadata,
    /// The switch's metadata.
    Standard,
}

/// A program's types and the parts of the pipeline that it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The type of all headers.
    pub headers: String,
    /// The type of the program's metadata.
    pub metadata: String,
    /// Where in the main file a field can be added to the metadata: behind the `{`.
    pub metadata_at: usize,
    /// The parser.
    pub parser: String,
    /// A control that checks checksums, if there is one.
    pub verify: Option<String>,
    /// A control that is applied before the rules.
    pub before: Option<String>,
    /// A control that is applied in egress.
    pub egress: Option<String>,
    /// A control that computes checksums.
    pub compute: Option<String>,
    /// The deparser.
    pub deparser: Option<String>,
}

/// A variable that rules may test and update (`@query_counter`); 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// When it goes back to 0; `None` for never.
    pub window: Option<subscribe::Window>,
}

/// What the program computes over messages (`@query_aggregate`); 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// What; its fields are those of [`Format::fields`].
    pub computes: subscribe::Aggregate,
    /// How many keys rules may name; others share as many cells again.
    pub keys: u32,
    /// How many conditions of messages that count there may be at a time.
    pub slots: u16,
}

/// What a program's messages look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The program's own parts.
    pub parts: Parts,
    /// Headers that rules may speak of.
    pub headers: Vec<Header>,
    /// Fields that rules may ask for, in the order of their tables.
    pub fields: Vec<Field>,
    /// The messages, if a packet has several.
    pub messages: Option<Messages>,
    /// The program's own actions.
    pub actions: Vec<Action>,
    /// Counters that rules may test and update.
    pub counters: Vec<Counter>,
    /// Aggregates that rules may test.
    pub aggregates: Vec<Aggregate>,
    /// What packets and messages there can be.
    pub possible: crate::Possible,
}
