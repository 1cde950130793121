//! How much memory a message takes when it is decoded, told from its bytes before anything is decoded.
//!
//! Two bytes of the wire format can stand for hundreds in memory: an element of a repeated field that is empty still has
//! the size of its type. Who decodes what strangers sent therefore asks [`bytes_of`] first. It walks over tags and lengths
//! with the message's descriptor and adds up, for each element, what the generated type and its allocations take; nothing
//! is allocated but a stack of bounded depth. The figure is an upper bound, seldom more than a small multiple of the truth.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prost::Name;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::format::POOL;

/// What an allocation takes beside its contents, and the least that it takes.
const ALLOCATION: u64 = 32;
/// Text, byte strings, vectors and maps in their owner.
const VECTOR: u64 = 24;
/// Messages within messages that are decoded at most, which is the decoder's own limit.
const MAX_DEPTH: usize = 100;
/// What an error of the decoder takes: it names the fields on the way to it.
const ERROR: u64 = 8 << 10;
/// Fields of a message that may have many elements, at most.
const MAX_REPEATED: usize = 32;

/// An upper bound of the bytes that a message of type `M` takes in memory, while it is decoded from these bytes and after.
/// Bytes that are no such message count as far as a decoder gets with them. Ends as soon as the figure is above `limit`.
pub fn bytes_of<M: Name>(wire: &[u8], limit: u64) -> u64 {
    let shapes = &*SHAPES;
    let Some(root) = shapes.index.get(&M::full_name()) else { return u64::MAX };
    let mut count = Count { shapes: &shapes.all, sum: ERROR + shapes.all[*root].bytes, limit };
    count.message(wire, *root, 0);
    count.sum
}

/// How many elements a message has of the field with this number, which holds messages.
pub fn elements(mut wire: &[u8], number: u32) -> u64 {
    let mut count = 0;
    while let Some((of, _)) = field(&mut wire) {
        count += u64::from(of == number);
    }
    count
}

/// A type as it is generated.
struct Shape {
    /// Its size, without what it allocates.
    bytes: u64,
    fields: BTreeMap<u32, Field>,
}

/// A field of a type.
#[derive(Clone, Copy)]
struct Field {
    kind: FieldKind,
    /// Its number among those of its message that have many elements, if it is one.
    repeated: Option<usize>,
    /// Bytes of one element where it lives.
    bytes: u64,
}

#[derive(Clone, Copy)]
enum FieldKind {
    Number,
    /// Text or bytes.
    Bytes,
    Message(usize),
    /// The entry of a map: the message of its key and value.
    Entry(usize),
}

struct Shapes {
    all: Vec<Shape>,
    index: BTreeMap<String, usize>,
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let messages: Vec<_> = POOL.all_messages().collect();
    let index: BTreeMap<_, _> =
        messages.iter().enumerate().map(|(at, message)| (message.full_name().to_owned(), at)).collect();
    let field = |repeated: &mut usize, field: FieldDescriptor| {
        let bytes = element_bytes(&field, &mut Vec::new());
        let kind = match field.kind() {
            Kind::Message(of) if field.is_map() => FieldKind::Entry(index[of.full_name()]),
            Kind::Message(of) => FieldKind::Message(index[of.full_name()]),
            Kind::String | Kind::Bytes => FieldKind::Bytes,
            _ => FieldKind::Number,
        };
        let slot = field.is_list().then_some(*repeated);
        *repeated += usize::from(field.is_list());
        assert!(*repeated <= MAX_REPEATED, "there is room for the fields of {}", field.full_name());
        (field.number(), Field { kind, repeated: slot, bytes })
    };
    let shape = |message: &MessageDescriptor| {
        let mut repeated = 0;
        Shape {
            bytes: inline_bytes(message, &mut Vec::new()),
            fields: message.fields().map(|it| field(&mut repeated, it)).collect(),
        }
    };
    Shapes { all: messages.iter().map(shape).collect(), index }
});

/// The size of a generated type, never too small: all fields one after the other, each at a multiple of 8. `within` are
/// the types around it; one that holds itself is boxed, and counted as if it were not.
fn inline_bytes(message: &MessageDescriptor, within: &mut Vec<String>) -> u64 {
    if within.iter().any(|name| name == message.full_name()) {
        return 8;
    }
    within.push(message.full_name().to_owned());
    let mut bytes = 0;
    for field in message.fields().filter(|field| field.containing_oneof().is_none()) {
        bytes += if field.is_list() || field.is_map() { VECTOR } else { element_bytes(&field, within) };
    }
    for oneof in message.oneofs() {
        bytes += 8 + oneof.fields().map(|field| element_bytes(&field, within)).max().unwrap_or(0);
    }
    within.pop();
    bytes.max(1)
}

/// What one value of a field takes where it lives. The mark that an optional one is there is counted too.
fn element_bytes(field: &FieldDescriptor, within: &mut Vec<String>) -> u64 {
    match field.kind() {
        Kind::Message(of) => inline_bytes(&of, within) + if field.is_list() { 0 } else { 8 },
        Kind::String | Kind::Bytes => VECTOR,
        _ if field.is_list() => 8,
        _ => 8 + if field.supports_presence() { 8 } else { 0 },
    }
}

struct Count<'a> {
    shapes: &'a [Shape],
    sum: u64,
    limit: u64,
}

impl Count<'_> {
    /// Adds what the fields in `wire` allocate. `None` when it makes no sense from here on, or the sum is above the limit.
    fn message(&mut self, mut wire: &[u8], shape: usize, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        // How many elements the vectors have.
        let mut lengths = [0_u64; MAX_REPEATED];
        while !wire.is_empty() {
            let (number, contents) = field(&mut wire)?;
            let Some(field) = self.shapes[shape].fields.get(&number).copied() else { continue };
            if let Some(slot) = field.repeated {
                // Numbers may be packed, one a byte.
                let more = if matches!(field.kind, FieldKind::Number) { contents.len().max(1) as u64 } else { 1 };
                let before = room(lengths[slot], field.bytes);
                lengths[slot] += more;
                self.sum += room(lengths[slot], field.bytes) - before;
            }
            match field.kind {
                FieldKind::Number => {}
                FieldKind::Bytes if contents.is_empty() => {}
                FieldKind::Bytes => self.sum += contents.len() as u64 + ALLOCATION,
                FieldKind::Message(of) => self.message(contents, of, depth + 1)?,
                FieldKind::Entry(of) => {
                    // A node of a tree has room for eleven entries, of which half or more are there, but for the first.
                    const NODE: u64 = 12;
                    self.sum += NODE * (VECTOR + self.shapes[of].bytes) + ALLOCATION;
                    self.message(contents, of, depth + 1)?;
                }
            }
            if self.sum > self.limit {
                return None;
            }
        }
        Some(())
    }
}

/// What a vector of so many elements takes that grew one by one: it has room for four at first, eight if they are small,
/// and then doubles.
fn room(count: u64, element: u64) -> u64 {
    let at_first = if element <= 8 { 8 } else { 4 };
    match count {
        0 => 0,
        count => count.next_power_of_two().max(at_first) * element + ALLOCATION,
    }
}

/// The number of the next field, and its contents if it has a length. `None` at the end, and where no field is.
fn field<'a>(wire: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    const NONE: &[u8] = &[];
    let tag = varint(wire)?;
    let number = u32::try_from(tag >> 3).ok()?;
    let contents = match tag & 7 {
        0 => varint(wire).map(|_| NONE)?,
        1 => take(wire, 8)?,
        2 => {
            let length = varint(wire)?;
            // What is cut short is decoded up to there.
            let length = usize::try_from(length).map_or(wire.len(), |length| length.min(wire.len()));
            take(wire, length)?
        }
        // Groups, which none of the messages has: the decoder steps over them, and so do their tags here.
        3 | 4 => NONE,
        5 => take(wire, 4)?,
        _ => return None,
    };
    Some((number, contents))
}

fn take<'a>(wire: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = wire.split_at_checked(length)?;
    *wire = rest;
    Some(taken)
}

fn varint(wire: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = wire.split_first()?;
        *wire = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
