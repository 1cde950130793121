//! Defines the cell, the unit of remote memory: one entry of the table, or none.
//!
//! ```text
//!   bytes      4                       key            record        0-7     8
//!         ┌──────────────────────────┬─────┬─────────────────────┬───────┬───────┐
//!         │ generation, bit 31: used │ key │ action │ parameters │ zeros │ check │
//!         └──────────────────────────┴─────┴─────────────────────┴───────┴───────┘
//! ```
//!
//! The check is SipHash-1-3 (Aumasson, Bernstein, 2012) under the switch's secret, over the number of the cell, the
//! epoch of its copy, and the bytes before it. An empty cell has a check too, so zeroed memory is invalid and never an
//! empty cell, and a key of zeros is an ordinary key. Numbers are little-endian, as only the switch reads and writes
//! them.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// Bytes of a cell in addition to its key and record.
pub const OVERHEAD_BYTES: usize = 12;

const CHECK_BYTES: usize = 8;
const USED: u32 = 1 << 31;

/// A 128-bit secret of the switch. It places keys and authenticates cells, so that neither a server nor a sender of
/// packets can choose collisions.
#[derive(Clone, Copy)]
pub struct CellSecret {
    /// First half of the SipHash key.
    pub k0: u64,
    /// Second half of the SipHash key.
    pub k1: u64,
}

impl std::fmt::Debug for CellSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CellSecret(..)")
    }
}

impl CellSecret {
    /// Returns the hash that places a key and counts it.
    pub fn key_hash(&self, key: &[u8]) -> u64 {
        // A key and a cell are hashed under different keys, so that an answer reveals nothing about places.
        SipHasher13::new_with_keys(self.k0 ^ 0x656c_6173_7469_6321, self.k1).hash(key)
    }

    fn check(&self, place: CellPlace, content: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.k0, self.k1);
        hasher.write(&(u64::from(place.table) << 32 | u64::from(place.cell)).to_le_bytes());
        hasher.write(&place.epoch.to_le_bytes());
        hasher.write(content);
        hasher.finish()
    }
}

/// The place of a cell, which its check covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPlace {
    /// Number of the table in its switch.
    pub table: u32,
    /// Number of the cell in its table.
    pub cell: u32,
    /// Epoch of the copy. No two copies of a table ever have the same epoch, so memory of an earlier copy is invalid.
    pub epoch: u64,
}

/// Widths of the parts of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellForm {
    key_bytes: usize,
    record_bytes: usize,
    cell_bytes: usize,
}

/// A validated cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellState<'a> {
    /// The cell holds an entry.
    Entry {
        /// Number of the write, modulo 2^31.
        generation: u32,
        /// The key, as wide as the form defines.
        key: &'a [u8],
        /// The record, as wide as the form defines.
        record: &'a [u8],
    },
    /// The cell was written as empty.
    Empty,
    /// All bytes are zero: the memory was never written, or was lost.
    Blank,
    /// The check fails: the cell is torn, belongs to another place or epoch, or was not written by this switch.
    Damaged,
}

impl CellForm {
    /// Returns the form for these widths in bytes. Cells are multiples of eight bytes.
    pub fn new(key_bytes: usize, record_bytes: usize) -> CellForm {
        let cell_bytes = (OVERHEAD_BYTES + key_bytes + record_bytes).next_multiple_of(8);
        CellForm { key_bytes, record_bytes, cell_bytes }
    }

    /// Returns the size of a cell, in bytes.
    pub fn cell_bytes(&self) -> usize {
        self.cell_bytes
    }

    /// Returns the width of keys, in bytes.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Returns the width of records, in bytes.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Appends a cell. `entry` is its key followed by its record, or `None` for an empty cell.
    pub fn emit(
        &self,
        secret: &CellSecret,
        place: CellPlace,
        generation: u32,
        entry: Option<&[u8]>,
        bytes: &mut Vec<u8>,
    ) {
        let start = bytes.len();
        let used = if entry.is_some() { USED } else { 0 };
        bytes.extend_from_slice(&(generation & !USED | used).to_le_bytes());
        bytes.extend_from_slice(entry.unwrap_or_default());
        bytes.resize(start + self.cell_bytes - CHECK_BYTES, 0);
        let check = secret.check(place, &bytes[start..]);
        bytes.extend_from_slice(&check.to_le_bytes());
    }

    /// Whether these bytes of a cell may hold an entry of `key`; its check is not verified.
    pub(crate) fn names(&self, cell: &[u8], key: &[u8]) -> bool {
        cell[3] & 0x80 != 0 && &cell[4..4 + self.key_bytes] == key
    }

    /// Parses and authenticates a cell. Bytes of another size are damaged.
    pub fn parse<'a>(&self, secret: &CellSecret, place: CellPlace, cell: &'a [u8]) -> CellState<'a> {
        if cell.len() != self.cell_bytes {
            return CellState::Damaged;
        }
        let (content, check) = cell.split_at(self.cell_bytes - CHECK_BYTES);
        if secret.check(place, content).to_le_bytes() != check {
            let is_blank = cell.iter().all(|byte| *byte == 0);
            return if is_blank { CellState::Blank } else { CellState::Damaged };
        }
        let header = u32::from_le_bytes([content[0], content[1], content[2], content[3]]);
        if header & USED == 0 {
            return CellState::Empty;
        }
        let (key, rest) = content[4..].split_at(self.key_bytes);
        CellState::Entry { generation: header & !USED, key, record: &rest[..self.record_bytes] }
    }
}

/// Whether generation `a` is later than `b`, counted modulo 2^31.
pub(crate) fn is_later(a: u32, b: u32) -> bool {
    let ahead = a.wrapping_sub(b) & !USED;
    ahead != 0 && ahead < 1 << 30
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: CellSecret = CellSecret { k0: 1, k1: 2 };
    const PLACE: CellPlace = CellPlace { table: 1, cell: 7, epoch: 3 };

    fn cell(entry: Option<&[u8]>) -> Vec<u8> {
        let mut bytes = Vec::new();
        CellForm::new(4, 3).emit(&SECRET, PLACE, 9, entry, &mut bytes);
        bytes
    }

    #[test]
    fn an_ipv4_connection_and_its_translation_take_32_bytes() {
        assert_eq!(CellForm::new(13, 7).cell_bytes(), 32);
        assert_eq!(CellForm::new(37, 19).cell_bytes(), 72);
    }

    #[test]
    fn a_cell_is_read_as_it_was_written_and_a_key_of_zeros_is_a_key() {
        let form = CellForm::new(4, 3);
        let parsed = |cell: &[u8]| match form.parse(&SECRET, PLACE, cell) {
            CellState::Entry { generation, key, record } => Some((generation, key.to_vec(), record.to_vec())),
            _ => None,
        };
        assert_eq!(parsed(&cell(Some(&[0, 0, 0, 0, 5, 6, 7]))), Some((9, vec![0; 4], vec![5, 6, 7])));
        assert_eq!(form.parse(&SECRET, PLACE, &cell(None)), CellState::Empty);
        assert_eq!(form.parse(&SECRET, PLACE, &[0; 24]), CellState::Blank);
        assert_eq!(form.parse(&SECRET, PLACE, &[0; 23]), CellState::Damaged);
    }

    #[test]
    fn no_changed_bit_other_place_epoch_or_secret_is_accepted() {
        let form = CellForm::new(4, 3);
        for entry in [None, Some(&[1, 2, 3, 4, 5, 6, 7][..])] {
            let bytes = cell(entry);
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(form.parse(&SECRET, PLACE, &changed), CellState::Damaged, "bit {bit}");
            }
            for place in
                [CellPlace { cell: 8, ..PLACE }, CellPlace { epoch: 4, ..PLACE }, CellPlace { table: 2, ..PLACE }]
            {
                assert_eq!(form.parse(&SECRET, place, &bytes), CellState::Damaged);
            }
            let other = CellSecret { k0: 1, k1: 3 };
            assert_eq!(form.parse(&other, PLACE, &bytes), CellState::Damaged);
        }
    }

    #[test]
    fn generations_wrap() {
        assert!(is_later(1, 0) && !is_later(0, 1) && !is_later(5, 5) && is_later(2, USED - 1));
    }
}
