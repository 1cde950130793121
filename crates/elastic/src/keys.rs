//! Translates the keys of a P4 table into keys of cells.
//!
//! An exact key is its fields, each big-endian in whole bytes. A key with one `lpm` field is looked up once for each
//! *served* prefix length, in parallel; its cells have keys of the length, the exact fields, and the masked prefix.
//! Prefixes of other lengths are expanded to the next served one, or stay in the switch if they would take too many
//! cells. Fields that are matched by mask or range have no cell that one READ could find.

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
        /// Prefix lengths that have cells, ascending; the last is `bits`.
        lengths: Vec<u32>,
        /// Maximum number of bits by which a prefix is expanded. Prefixes that need more stay in the switch.
        expansion_bits: u32,
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

    /// Returns the maximum number of READs of a lookup, without repetitions.
    pub fn max_reads(&self) -> usize {
        match self {
            KeyForm::Exact { .. } => 1,
            KeyForm::Prefix { lengths, .. } => lengths.len(),
        }
    }

    /// Returns the prefix length of the cells of a prefix; `None` if it stays in the switch.
    pub fn served_length(&self, length: u32) -> Option<u32> {
        match self {
            KeyForm::Exact { .. } => None,
            KeyForm::Prefix { lengths, expansion_bits, .. } => {
                let served = lengths.iter().copied().find(|served| *served >= length);
                served.filter(|served| served - length <= *expansion_bits)
            }
        }
    }

    /// Returns the number of cells that an entry takes, at most. One that stays in the switch counts as one.
    pub fn cell_count(&self, length: u32) -> usize {
        self.served_length(length).map_or(1, |served| 1 << (served - length))
    }

    /// Returns the shortest prefix length whose cells have this served length.
    pub(crate) fn shortest_of(&self, served: u32) -> u32 {
        match self {
            KeyForm::Exact { .. } => 0,
            KeyForm::Prefix { lengths, expansion_bits, .. } => {
                let before = lengths.iter().copied().rfind(|length| *length < served);
                before.map_or(0, |before| before + 1).max(served.saturating_sub(*expansion_bits))
            }
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

    /// Returns the first and the last packet key that match a prefix, in the order of their bytes.
    pub(crate) fn range(&self, key: &[u8], length: u32) -> (ProbeKey, ProbeKey) {
        let KeyForm::Prefix { exact_bytes, bits, .. } = self else { return (key.into(), key.into()) };
        let first = ProbeKey::from_slice(&self.masked(key, length)[1..]);
        let mut last = first.clone();
        let unused = bits.div_ceil(8) * 8 - bits;
        for (at, byte) in last[*exact_bytes..].iter_mut().enumerate() {
            let kept = (unused + length).saturating_sub(8 * at as u32).min(8);
            *byte |= (0xffu32 >> kept) as u8;
        }
        (first, last)
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
        let form = KeyForm::Prefix { exact_bytes: 2, bits: 12, lengths: vec![8, 12], expansion_bits: 5 };
        assert_eq!((form.lookup_bytes(), form.probe_bytes(), form.max_reads()), (4, 5, 2));
        let key = [0, 7, 0x0a, 0xbc];
        assert_eq!(&form.masked(&key, 12)[..], [12, 0, 7, 0x0a, 0xbc]);
        assert_eq!(&form.masked(&key, 8)[..], [8, 0, 7, 0x0a, 0xb0]);
        let expanded = form.expansions(&key, 6, 8);
        let ends: Vec<_> = expanded.iter().map(|key| (key[2], key[3])).collect();
        assert_eq!(ends, [(0x0a, 0x80), (0x0a, 0x90), (0x0a, 0xa0), (0x0a, 0xb0)]);
        let (first, last) = form.range(&key, 6);
        assert_eq!((&first[..], &last[..]), (&[0, 7, 0x0a, 0x80][..], &[0, 7, 0x0a, 0xbf][..]));
        let (first, last) = form.range(&key, 0);
        assert_eq!((&first[..], &last[..]), (&[0, 7, 0, 0][..], &[0, 7, 0x0f, 0xff][..]));
        assert_eq!(form.range(&key, 12), (key[..].into(), key[..].into()));
    }

    #[test]
    fn a_length_is_served_expanded_or_kept() {
        let form = KeyForm::Prefix { exact_bytes: 0, bits: 32, lengths: vec![16, 24, 32], expansion_bits: 6 };
        let served: Vec<_> = [0, 9, 10, 16, 17, 18, 24, 26, 32].map(|length| form.served_length(length)).into();
        let expected = [None, None, Some(16), Some(16), None, Some(24), Some(24), Some(32), Some(32)];
        assert_eq!(served, expected);
        assert_eq!([9, 10, 16, 26].map(|length| form.cell_count(length)), [1, 64, 1, 64]);
        assert_eq!([16, 24, 32].map(|served| form.shortest_of(served)), [10, 18, 26]);
        let all = KeyForm::Prefix { exact_bytes: 0, bits: 4, lengths: (0..=4).collect(), expansion_bits: 6 };
        assert!((0..=4).all(|length| all.served_length(length) == Some(length) && all.shortest_of(length) == length));
    }
}
