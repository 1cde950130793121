//! Translates the keys of a P4 table into keys of cells.
//!
//! An exact key is its fields, each big-endian in whole bytes. A key with one `lpm` field is looked up once for each of
//! a few prefix lengths, in parallel; its cells have keys of the length, the exact fields, and the masked prefix.
//! Fields that are matched by mask or range have no cell that one READ could find.

use smallvec::SmallVec;

/// Key of a cell.
pub type ProbeKey = SmallVec<[u8; 64]>;

/// The form of a table's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// Exact fields only.
    Exact {
        /// Size of a key, in bytes.
        bytes: usize,
    },
    /// Exact fields, then one field that matches by prefix.
    Prefix {
        /// Size of the exact fields, in bytes.
        exact_bytes: usize,
        /// Width of the prefix field, in bits.
        bits: u32,
        /// Prefix lengths that are looked up, ascending; the last is `bits`.
        lengths: Vec<u32>,
    },
}

impl KeyForm {
    /// Returns the size of a packet's key, in bytes.
    pub fn lookup_bytes(&self) -> usize {
        match self {
            KeyForm::Exact { bytes } => *bytes,
            KeyForm::Prefix { exact_bytes, bits, .. } => exact_bytes + bits.div_ceil(8) as usize,
        }
    }

    /// Returns the size of a cell's key, in bytes.
    pub fn probe_bytes(&self) -> usize {
        match self {
            KeyForm::Exact { bytes } => *bytes,
            KeyForm::Prefix { .. } => 1 + self.lookup_bytes(),
        }
    }

    /// Returns the number of READs of a lookup.
    pub fn probes(&self) -> usize {
        match self {
            KeyForm::Exact { .. } => 1,
            KeyForm::Prefix { lengths, .. } => lengths.len(),
        }
    }

    /// Returns the cell key of the probe with this number. The first has the longest prefix.
    pub fn probe(&self, key: &[u8], number: usize) -> ProbeKey {
        match self {
            KeyForm::Exact { .. } => ProbeKey::from_slice(key),
            KeyForm::Prefix { lengths, .. } => self.masked(key, lengths[lengths.len() - 1 - number]),
        }
    }

    /// Returns the prefix length that serves entries of this length; `None` if it is wider than the field.
    pub fn served_length(&self, length: u32) -> Option<u32> {
        match self {
            KeyForm::Exact { .. } => None,
            KeyForm::Prefix { lengths, .. } => lengths.iter().copied().find(|served| *served >= length),
        }
    }

    /// Returns the largest served length below this served one, or `None` for the first.
    pub(crate) fn length_before(&self, served: u32) -> Option<u32> {
        match self {
            KeyForm::Exact { .. } => None,
            KeyForm::Prefix { lengths, .. } => lengths.iter().copied().rfind(|length| *length < served),
        }
    }

    /// Returns a cell key: the length, the exact fields, and the prefix with zeros after `length` bits.
    pub(crate) fn masked(&self, key: &[u8], length: u32) -> ProbeKey {
        let KeyForm::Prefix { exact_bytes, bits, .. } = self else { return ProbeKey::from_slice(key) };
        let mut probe = ProbeKey::new();
        probe.push(length as u8);
        probe.extend_from_slice(key);
        let unused = bits.div_ceil(8) * 8 - bits;
        for (at, byte) in probe[1 + exact_bytes..].iter_mut().enumerate() {
            let kept = (unused + length).saturating_sub(8 * at as u32).min(8);
            *byte &= (0xff00u32 >> kept) as u8;
        }
        probe
    }

    /// Whether a packet's key matches a cell key of any prefix length.
    pub(crate) fn is_under(&self, key: &[u8], probe: &[u8]) -> bool {
        match self {
            KeyForm::Exact { .. } => key == probe,
            KeyForm::Prefix { .. } => {
                probe.first().is_some_and(|length| *self.masked(key, u32::from(*length)) == *probe)
            }
        }
    }

    /// Returns the packet keys whose first `served` bits continue a prefix of `length` bits, each with zeros after.
    pub(crate) fn expansions(&self, key: &[u8], length: u32, served: u32) -> Vec<ProbeKey> {
        let KeyForm::Prefix { exact_bytes, bits, .. } = self else { return Vec::new() };
        let prefix = &self.masked(key, length)[1..];
        let unused = bits.div_ceil(8) * 8 - bits;
        let continued = (0..1u32 << (served - length)).map(|number| {
            let mut key = ProbeKey::from_slice(prefix);
            for bit in 0..served - length {
                let place = unused + length + bit;
                let value = number >> (served - length - 1 - bit) & 1;
                key[exact_bytes + (place / 8) as usize] |= (value << (7 - place % 8)) as u8;
            }
            key
        });
        continued.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_masked_and_expanded_at_any_width() {
        let form = KeyForm::Prefix { exact_bytes: 2, bits: 12, lengths: vec![8, 12] };
        assert_eq!((form.lookup_bytes(), form.probe_bytes(), form.probes()), (4, 5, 2));
        let key = [0, 7, 0x0a, 0xbc];
        assert_eq!(&form.probe(&key, 0)[..], [12, 0, 7, 0x0a, 0xbc]);
        assert_eq!(&form.probe(&key, 1)[..], [8, 0, 7, 0x0a, 0xb0]);
        let expanded = form.expansions(&key, 6, 8);
        let ends: Vec<_> = expanded.iter().map(|key| (key[2], key[3])).collect();
        assert_eq!(ends, [(0x0a, 0x80), (0x0a, 0x90), (0x0a, 0xa0), (0x0a, 0xb0)]);
        assert!(form.is_under(&key, &[6, 0, 7, 0x0a, 0x80]) && !form.is_under(&key, &[6, 0, 7, 0x0a, 0x40]));
        assert_eq!((form.served_length(0), form.served_length(9), form.served_length(13)), (Some(8), Some(12), None));
    }
}
