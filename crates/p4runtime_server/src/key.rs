//! Encodes the key of a table entry as bytes. Short keys need no allocation.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

/// Maximum length of a key without an allocation, in bytes: a 5-tuple with its masks and a priority fits.
const SHORT: usize = 30;

/// A match key and a priority as bytes, ordered bytewise. It is as large as two slices, so that a search through many
/// keys reads their bytes and follows no pointers.
#[derive(Clone)]
pub(crate) enum EntryKey {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl From<&[u8]> for EntryKey {
    fn from(all: &[u8]) -> EntryKey {
        if all.len() > SHORT {
            return EntryKey::Long(all.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..all.len()].copy_from_slice(all);
        EntryKey::Short { len: all.len() as u8, bytes }
    }
}

impl Deref for EntryKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            EntryKey::Short { len, bytes } => &bytes[..usize::from(*len)],
            EntryKey::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for EntryKey {
    fn eq(&self, other: &EntryKey) -> bool {
        **self == **other
    }
}

impl Eq for EntryKey {}

impl Ord for EntryKey {
    fn cmp(&self, other: &EntryKey) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialOrd for EntryKey {
    fn partial_cmp(&self, other: &EntryKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for EntryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_their_bytes_short_or_long() {
        assert_eq!(size_of::<EntryKey>(), 32);
        let texts: Vec<Vec<u8>> =
            (0..200usize).map(|at| (0..at * 7 % 64).map(|byte| (byte * at % 5) as u8).collect()).collect();
        for one in &texts {
            assert_eq!(*EntryKey::from(&one[..]), one[..]);
            for other in &texts {
                let keys = (EntryKey::from(&one[..]), EntryKey::from(&other[..]));
                assert_eq!(keys.0.cmp(&keys.1), one.cmp(other), "{one:?} {other:?}");
                assert_eq!(keys.0 == keys.1, one == other);
            }
        }
    }
}
