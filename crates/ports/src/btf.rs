//! Looks up a function's id in the kernel's type information (BTF).
//!
//! ```text
//! header: magic u16, version u8, flags u8, header length, type offset, type length, string offset, string length: u32
//! type:   name (offset into the strings), info (bits 0-15 a count, 24-28 the kind), size or type: u32 | by kind, more
//! ```
//!
//! Types are numbered from 1 in order of appearance. All numbers are in the machine's byte order. Source:
//! Documentation/bpf/btf.rst in the Linux tree.

const MAGIC: u16 = 0xeb9f;
const FUNCTION: u32 = 12;

/// Returns the id by which programs call a function of the running kernel; `None` if it has no such function.
pub(crate) fn function(name: &str) -> Option<i32> {
    find(&std::fs::read("/sys/kernel/btf/vmlinux").ok()?, name)
}

fn find(btf: &[u8], name: &str) -> Option<i32> {
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
        if kind == FUNCTION && text(strings, word(types, at)?)? == name.as_bytes() {
            return Some(id);
        }
        at += 12 + more(kind, count)?;
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
        4 | 5 | 15 | 19 => count * 12,
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

    /// Builds type information with an integer `a`, a struct of two members, and functions `f` and `g`.
    fn sample() -> Vec<u8> {
        let types: [u32; 3 + 1 + 3 + 6 + 3 + 3] =
            [1, 1 << 24, 4, 32, 0, 4 << 24 | 2, 8, 1, 1, 0, 1, 1, 4, 3, 12 << 24, 1, 5, 12 << 24, 1];
        let strings = b"\0a\0f\0g\0";
        let header = [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, strings.len() as u32];
        let mut bytes = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        bytes.extend(header.into_iter().chain(types).flat_map(u32::to_ne_bytes));
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn functions_are_found_by_name() {
        let sample = sample();
        assert_eq!((find(&sample, "f"), find(&sample, "g")), (Some(3), Some(4)));
        assert_eq!((find(&sample, "a"), find(&sample, "h")), (None, None));
    }

    #[test]
    fn truncated_type_information_is_refused() {
        let sample = sample();
        for len in 0..sample.len() {
            assert_eq!(find(&sample[..len], "h"), None, "length {len}");
        }
    }
}
