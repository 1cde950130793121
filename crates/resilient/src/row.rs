//! Names rows, and holds their values.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Maximum length of a key, in bytes: two IPv6 addresses, two ports and a protocol fit. With group and length, a name
/// takes 48 bytes.
pub const MAX_KEY_BYTES: usize = 39;

/// Maximum length of a row's values, in bytes.
pub const MAX_VALUE_BYTES: usize = 1024;

/// Length of keys that are compared inline.
const SHORT_KEY_BYTES: usize = 16;

/// The name of a row: a group of arrays with an index, or a table with a key. The group is a number that stands for its
/// name and form in every program, such as a hash, so programs with other groups have other rows.
#[derive(Clone, Copy)]
pub struct RowId {
    group: u64,
    length: u8,
    key: [u8; MAX_KEY_BYTES],
}

impl RowId {
    /// Returns the row of a group with this key, or `None` if the key is longer than [`MAX_KEY_BYTES`].
    pub fn new(group: u64, key: &[u8]) -> Option<RowId> {
        let mut bytes = [0; MAX_KEY_BYTES];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(RowId { group, length: key.len() as u8, key: bytes })
    }

    /// Returns the row of a group without a key.
    pub const fn empty(group: u64) -> RowId {
        RowId { group, length: 0, key: [0; MAX_KEY_BYTES] }
    }

    /// Returns the row of a group of arrays at this index.
    pub fn of_index(group: u64, index: u32) -> RowId {
        let mut key = [0; MAX_KEY_BYTES];
        key[..4].copy_from_slice(&index.to_be_bytes());
        RowId { group, length: 4, key }
    }

    /// Returns the group.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key[..usize::from(self.length)]
    }

    /// Returns the partner of a row with these values, if they are a key: the row of its number, or the row that has
    /// the number. The values of each are the key of the other, and their groups differ in the lowest bit.
    pub fn partner(&self, values: &[u8]) -> Option<RowId> {
        RowId::new(RowId::partner_group(self.group), values)
    }

    /// Returns the group of the partners of a group's rows.
    pub fn partner_group(group: u64) -> u64 {
        group ^ 1
    }

    /// Returns a hash of the row that is the same on every machine and in every version.
    pub fn stable_hash(&self) -> u64 {
        let mut state = self.group.rotate_left(8) ^ u64::from(self.length);
        for word in self.key().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            state = (state ^ u64::from_le_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            state ^= state >> 32;
        }
        state
    }
}

impl PartialEq for RowId {
    fn eq(&self, other: &RowId) -> bool {
        // Short keys need no call. The bytes behind a key are zeros.
        let (first, rest) = self.key.split_first_chunk::<SHORT_KEY_BYTES>().expect("keys are longer");
        let (other_first, other_rest) = other.key.split_first_chunk::<SHORT_KEY_BYTES>().expect("keys are longer");
        self.group == other.group
            && self.length == other.length
            && first == other_first
            && (usize::from(self.length) <= SHORT_KEY_BYTES || rest == other_rest)
    }
}

impl Eq for RowId {}

impl PartialOrd for RowId {
    fn partial_cmp(&self, other: &RowId) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RowId {
    fn cmp(&self, other: &RowId) -> std::cmp::Ordering {
        (self.group, self.key()).cmp(&(other.group, other.key()))
    }
}

impl Hash for RowId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.group ^ u64::from(self.length));
        state.write(self.key());
    }
}

impl fmt::Debug for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:", self.group)?;
        self.key().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Maximum length of values that need no allocation.
const SHORT_BYTES: usize = 22;

/// The values of a row, at most [`MAX_VALUE_BYTES`]. Short ones need no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RowValues(StoredBytes);

/// Bytes whose representation depends only on their number, so equal ones have equal representations. It takes 24
/// bytes, also as an `Option`, so that a row of a store fits two cache lines.
#[derive(Clone, PartialEq, Eq, Hash)]
enum StoredBytes {
    Short { length: u8, bytes: [u8; SHORT_BYTES] },
    Long(Box<[u8]>),
}

impl RowValues {
    /// Copies the values, or returns `None` if they are longer than [`MAX_VALUE_BYTES`].
    pub fn new(bytes: &[u8]) -> Option<RowValues> {
        if bytes.len() > MAX_VALUE_BYTES {
            return None;
        }
        let mut short = [0; SHORT_BYTES];
        Some(RowValues(match short.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                StoredBytes::Short { length: bytes.len() as u8, bytes: short }
            }
            None => StoredBytes::Long(bytes.into()),
        }))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            StoredBytes::Short { length, bytes } => &bytes[..usize::from(*length)],
            StoredBytes::Long(bytes) => bytes,
        }
    }
}

impl Default for RowValues {
    fn default() -> RowValues {
        RowValues(StoredBytes::Short { length: 0, bytes: [0; SHORT_BYTES] })
    }
}

impl fmt::Debug for RowValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_limited() {
        assert_eq!(RowId::new(1, &[7; 39]).unwrap().key(), [7; 39]);
        assert_eq!(RowId::new(1, &[7; 40]), None);
        assert_eq!(size_of::<RowId>(), 48);
        assert_eq!(RowValues::new(&[1; 1024]).unwrap().bytes().len(), 1024);
        assert_eq!(RowValues::new(&[1; 1025]), None);
        for length in [0, 1, 22, 23, 1024] {
            let bytes = vec![7; length];
            assert_eq!(RowValues::new(&bytes).unwrap().bytes(), bytes);
        }
        assert_eq!(size_of::<Option<RowValues>>(), 24);
    }

    #[test]
    fn rows_that_differ_in_one_byte_are_different() {
        for length in [1, 4, 16, 17, 39] {
            let key = vec![7; length];
            assert_eq!(RowId::new(1, &key), RowId::new(1, &key));
            for at in 0..length {
                let mut other = key.clone();
                other[at] = 8;
                assert_ne!(RowId::new(1, &key), RowId::new(1, &other));
            }
        }
    }

    #[test]
    fn keys_of_different_length_are_different_rows() {
        let (short, long) = (RowId::new(1, &[0]).unwrap(), RowId::new(1, &[0, 0]).unwrap());
        assert!(short != long && short < long && short.stable_hash() != long.stable_hash());
    }
}
