//! Looks up functions, tracepoints and members of structs in the kernel's type information (BTF).
//!
//! ```text
//! header: magic u16, version u8, flags u8, header length, type offset, type length, string offset, string length: u32
//! type:   name (offset into the strings), info (bits 0-15 a count, 24-28 the kind, 31 a flag), size or type: u32
//!         | by kind, more
//! member: name, type, offset in bits (with the type's flag: bits 0-23 of it): u32
//! ```
//!
//! Types are numbered from 1 in order of appearance. All numbers are in the machine's byte order. Source:
//! Documentation/bpf/btf.rst in the Linux tree.

const MAGIC: u16 = 0xeb9f;
/// Kinds of types.
const STRUCT: u32 = 4;
const TYPE_NAME: u32 = 8;
const FUNCTION: u32 = 12;

/// Size of a member of a struct in bytes.
const MEMBER: usize = 12;

/// The type information of the running kernel.
pub(crate) struct KernelTypes(Vec<u8>);

impl KernelTypes {
    /// Reads it; `None` if the kernel was built without.
    pub(crate) fn read() -> Option<KernelTypes> {
        std::fs::read("/sys/kernel/btf/vmlinux").ok().map(KernelTypes)
    }

    /// Returns the id by which programs call a function; `None` if there is no such function.
    pub(crate) fn function(&self, name: &str) -> Option<i32> {
        find(&self.0, FUNCTION, name).map(|found| found.id)
    }

    /// Returns the id by which a program refers to the tracepoint that it is for; `None` if there is no such
    /// tracepoint.
    pub(crate) fn tracepoint(&self, name: &str) -> Option<i32> {
        // The kernel declares a type of this name for each tracepoint.
        find(&self.0, TYPE_NAME, &format!("btf_trace_{name}")).map(|found| found.id)
    }

    /// Returns the offset of a member of a struct in bytes; `None` if there is no such member, or it is within an
    /// unnamed one.
    pub(crate) fn offset(&self, structure: &str, member: &str) -> Option<usize> {
        find(&self.0, STRUCT, structure)?.offset(member)
    }
}

/// A type that was found.
struct FoundType<'a> {
    id: i32,
    /// The type's flag: the offsets of members share their words with the sizes of bit fields.
    has_bit_fields: bool,
    /// What follows the type's first three words.
    more: &'a [u8],
    strings: &'a [u8],
}

impl FoundType<'_> {
    /// Returns the offset of a member of a struct in bytes.
    fn offset(&self, member: &str) -> Option<usize> {
        let is_it = |bytes: &&[u8]| word(bytes, 0).and_then(|at| text(self.strings, at)) == Some(member.as_bytes());
        let bits = word(self.more.chunks_exact(MEMBER).find(is_it)?, 8)?;
        let bits = if self.has_bit_fields { bits & 0xff_ffff } else { bits };
        (bits % 8 == 0).then_some(bits / 8)
    }
}

/// Returns the first type of a kind with this name.
fn find<'a>(btf: &'a [u8], wanted: u32, name: &str) -> Option<FoundType<'a>> {
    if btf.get(..2)? != MAGIC.to_ne_bytes() {
        return None;
    }
    let header_len = word(btf, 4)?;
    let section = |at: usize| -> Option<&[u8]> {
        let start = header_len.checked_add(word(btf, at)?)?;
        btf.get(start..start.checked_add(word(btf, at + 4)?)?)
    };
    let (types, strings) = (section(8)?, section(16)?);
    let mut at = 0;
    let mut id = 1;
    while at < types.len() {
        let info = word(types, at + 4)? as u32;
        let (kind, count) = (info >> 24 & 0x1f, info as usize & 0xffff);
        let end = at + 12 + more(kind, count)?;
        if kind == wanted && text(strings, word(types, at)?)? == name.as_bytes() {
            let more = types.get(at + 12..end)?;
            return Some(FoundType { id, has_bit_fields: info >> 31 != 0, more, strings });
        }
        at = end;
        id += 1;
    }
    None
}

/// Returns the size in bytes of a type's data after its first three words.
fn more(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Integers, variables and declaration tags.
        1 | 14 | 17 => 4,
        // Pointers, names, qualifiers, functions, floats.
        2 | 7..=12 | 16 | 18 => 0,
        // Arrays.
        3 => 12,
        // Members of structs, unions, sections and wide enums.
        4 | 5 | 15 | 19 => count * MEMBER,
        // Values of enums, parameters.
        6 | 13 => count * 8,
        // Unknown newer kinds cannot be skipped.
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]) as usize)
}

fn text(strings: &[u8], at: usize) -> Option<&[u8]> {
    strings.get(at..)?.split(|byte| *byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds type information with an integer `a`, a struct `s` of members `a` and `f`, functions `f` and `g`, and a
    /// type name `btf_trace_t`.
    fn sample(flag: u32, f_bits: u32) -> KernelTypes {
        let types = [
            &[1, 1 << 24, 4, 32][..],
            &[7, flag << 31 | 4 << 24 | 2, 8, 1, 1, 0, 3, 1, f_bits],
            &[3, 12 << 24, 1],
            &[5, 12 << 24, 1],
            &[9, 8 << 24, 1],
        ]
        .concat();
        let strings = b"\0a\0f\0g\0s\0btf_trace_t\0";
        let header = [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, strings.len() as u32];
        let mut bytes = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        bytes.extend(header.into_iter().chain(types).flat_map(u32::to_ne_bytes));
        bytes.extend(strings);
        KernelTypes(bytes)
    }

    #[test]
    fn functions_and_tracepoints_are_found_by_name() {
        let sample = sample(0, 32);
        assert_eq!((sample.function("f"), sample.function("g")), (Some(3), Some(4)));
        assert_eq!((sample.function("a"), sample.function("h")), (None, None));
        assert_eq!((sample.tracepoint("t"), sample.tracepoint("f")), (Some(5), None));
    }

    #[test]
    fn members_have_offsets_in_whole_bytes() {
        let plain = sample(0, 32);
        assert_eq!((plain.offset("s", "a"), plain.offset("s", "f")), (Some(0), Some(4)));
        assert_eq!((plain.offset("s", "g"), plain.offset("a", "a")), (None, None));
        assert_eq!(sample(1, 3 << 24 | 40).offset("s", "f"), Some(5), "the high byte is the size of a bit field");
        assert_eq!(sample(1, 3 << 24 | 41).offset("s", "f"), None);
    }

    #[test]
    fn truncated_type_information_is_refused() {
        let KernelTypes(sample) = sample(0, 32);
        for len in 0..sample.len() {
            let cut = KernelTypes(sample[..len].to_vec());
            assert_eq!((cut.function("h"), cut.tracepoint("t"), cut.offset("s", "f")), (None, None, None), "{len}");
        }
    }
}
