//! Computes the memory footprint of a decoded message from its bytes before decoding.
//!
//! Two bytes of the wire format can become hundreds in memory: an empty element of a repeated field still has the
//! size of its type. A server that decodes untrusted messages therefore calls [`bytes_of`] first. It walks over tags
//! and lengths with the message's descriptor and adds up, for each element, the size of the generated type and its
//! allocations. It allocates nothing but a stack of bounded depth. The result is an upper bound, seldom more than a
//! small multiple of the actual size.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prost::Name;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::format::POOL;

/// Overhead of an allocation, and its minimum size, in bytes.
const ALLOCATION: u64 = 32;
/// Size of a string, byte string, vector or map in its owner.
const VECTOR: u64 = 24;
/// Maximum nesting depth, which is the decoder's own limit.
const MAX_DEPTH: usize = 100;
/// Size of a decoder error, which names the fields on the way to it.
const ERROR: u64 = 8 << 10;
/// Maximum number of repeated fields of a message.
const MAX_REPEATED: usize = 32;

/// Returns an upper bound of the memory that a message of type `M` takes, during and after decoding from `wire`.
/// Bytes that are not such a message count as far as a decoder gets. Stops when the result exceeds `limit`.
pub fn bytes_of<M: Name>(wire: &[u8], limit: u64) -> u64 {
    let shapes = &*SHAPES;
    let Some(root) = shapes.index.get(&M::full_name()) else { return u64::MAX };
    let mut count = Count { shapes: &shapes.all, sum: ERROR + shapes.all[*root].bytes, limit };
    count.message(wire, *root, 0);
    count.sum
}

/// Returns the number of elements of the field with this number, which holds messages.
pub fn elements(mut wire: &[u8], number: u32) -> u64 {
    let mut count = 0;
    while let Some((of, _)) = field(&mut wire) {
        count += u64::from(of == number);
    }
    count
}

/// The layout of a generated type.
struct TypeLayout {
    /// Size without allocations, in bytes.
    bytes: u64,
    fields: BTreeMap<u32, FieldLayout>,
}

/// A field of a type.
#[derive(Clone, Copy)]
struct FieldLayout {
    kind: FieldKind,
    /// Index among the repeated fields of its message, if it is repeated.
    repeated: Option<usize>,
    /// Size of one element in place, in bytes.
    bytes: u64,
}

#[derive(Clone, Copy)]
enum FieldKind {
    Number,
    /// A string or byte string.
    Bytes,
    Message(usize),
    /// The entry of a map: the message of its key and value.
    Entry(usize),
}

struct LayoutTable {
    all: Vec<TypeLayout>,
    index: BTreeMap<String, usize>,
}

static SHAPES: LazyLock<LayoutTable> = LazyLock::new(|| {
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
        (field.number(), FieldLayout { kind, repeated: slot, bytes })
    };
    let shape = |message: &MessageDescriptor| {
        let mut repeated = 0;
        TypeLayout {
            bytes: inline_bytes(message, &mut Vec::new()),
            fields: message.fields().map(|it| field(&mut repeated, it)).collect(),
        }
    };
    LayoutTable { all: messages.iter().map(shape).collect(), index }
});

/// Returns an upper bound of the size of a generated type: its fields in sequence, each aligned to 8. `within` are
/// the enclosing types. A type that contains itself is boxed, but counted as if it were not.
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

/// Returns the size of one value of a field in place, including the discriminant of an optional field.
fn element_bytes(field: &FieldDescriptor, within: &mut Vec<String>) -> u64 {
    match field.kind() {
        Kind::Message(of) => inline_bytes(&of, within) + if field.is_list() { 0 } else { 8 },
        Kind::String | Kind::Bytes => VECTOR,
        _ if field.is_list() => 8,
        _ => 8 + if field.supports_presence() { 8 } else { 0 },
    }
}

struct Count<'a> {
    shapes: &'a [TypeLayout],
    sum: u64,
    limit: u64,
}

impl Count<'_> {
    /// Adds the allocations of the fields in `wire`. Returns `None` if the rest is invalid or the sum exceeds the
    /// limit.
    fn message(&mut self, mut wire: &[u8], shape: usize, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        // Numbers of elements of the vectors.
        let mut lengths = [0_u64; MAX_REPEATED];
        while !wire.is_empty() {
            let (number, contents) = field(&mut wire)?;
            let Some(field) = self.shapes[shape].fields.get(&number).copied() else { continue };
            if let Some(slot) = field.repeated {
                // Numbers may be packed, one per byte.
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
                    // A tree node has room for eleven entries. All nodes except the first are at least half full.
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

/// Returns the capacity in bytes of a vector that grew to `count` elements one by one: it starts with four, or eight
/// small ones, and doubles.
fn room(count: u64, element: u64) -> u64 {
    let at_first = if element <= 8 { 8 } else { 4 };
    match count {
        0 => 0,
        count => count.next_power_of_two().max(at_first) * element + ALLOCATION,
    }
}

/// Returns the number of the next field, and its contents if it has a length. Returns `None` at the end or if there
/// is not a valid field.
fn field<'a>(wire: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    const NONE: &[u8] = &[];
    let tag = varint(wire)?;
    let number = u32::try_from(tag >> 3).ok()?;
    let contents = match tag & 7 {
        0 => varint(wire).map(|_| NONE)?,
        1 => take(wire, 8)?,
        2 => {
            let length = varint(wire)?;
            // A truncated field is decoded as far as it goes.
            let length = usize::try_from(length).map_or(wire.len(), |length| length.min(wire.len()));
            take(wire, length)?
        }
        // None of the messages has groups. The decoder skips them, and so does this function.
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
