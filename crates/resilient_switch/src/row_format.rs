//! Converts rows between the switch and the stores: numbers in registers here, bytes there.

use bits::Bits;
use engine::StateRow;
use ir::{MAX_ROW_BYTES, Program, ResilientGroup};
use resilient::{MAX_VALUE_BYTES, RowId, RowValues};

const _: () = assert!(MAX_ROW_BYTES as usize <= MAX_VALUE_BYTES, "stores keep every row of a valid program");

/// Domain of the hash that is a group's number.
const GROUP_DOMAIN: &str = "triplane resilient group 1";

/// The arrays of a group, as its rows are stored: one value after the other, each in whole bytes, the most significant
/// first.
#[derive(Clone, Debug)]
pub(crate) struct RowFormat {
    group: u64,
    widths: Vec<u32>,
    bytes: usize,
}

impl RowFormat {
    /// Returns the format of a group.
    pub fn new(program: &Program, group: &ResilientGroup) -> RowFormat {
        let widths: Vec<u32> = group.registers.iter().map(|register| program.registers[*register].width).collect();
        let bytes = widths.iter().map(|width| width.div_ceil(8) as usize).sum();
        let names = group.registers.iter().map(|register| program.registers[*register].name.as_str());
        let group = group_number(&group.name, group.rows, names.zip(widths.iter().copied()));
        RowFormat { group, widths, bytes }
    }

    /// Returns the stores' name of the group's row at this index.
    pub fn row_id(&self, index: u64) -> RowId {
        RowId::of_index(self.group, index as u32)
    }

    /// Returns the bytes of values.
    pub fn to_bytes(&self, values: &[Bits]) -> RowValues {
        let mut bytes = Vec::with_capacity(self.bytes);
        values.iter().for_each(|value| bytes.extend(value.to_be_bytes()));
        RowValues::new(&bytes).expect("a valid program has rows of this length")
    }

    /// Returns the values of a row; zeros for one that was never written. `None` if the bytes are not of this format.
    pub fn to_values(&self, stored: Option<&RowValues>) -> Option<Vec<Bits>> {
        let Some(stored) = stored else {
            return Some(self.widths.iter().map(|width| Bits::zero(*width)).collect());
        };
        let mut rest = stored.bytes();
        if rest.len() != self.bytes {
            return None;
        }
        let values = self.widths.iter().map(|width| {
            let (value, after) = rest.split_at(width.div_ceil(8) as usize);
            rest = after;
            Bits::from_be_bytes(value, *width)
        });
        Some(values.collect())
    }
}

/// Returns the number of a group in the names of its rows: the first 64 bits, big-endian, of the BLAKE3 hash in
/// `derive_key` mode of the group's name, the number of rows, and name and width of each array. Texts are preceded by
/// their length; all numbers have 64 bits, big-endian. So a group of another program has this number only if its rows
/// mean the same.
fn group_number<'n>(name: &str, rows: u64, arrays: impl Iterator<Item = (&'n str, u32)>) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key(GROUP_DOMAIN);
    let mut text = |text: &str, number: u64| {
        hasher.update(&(text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
        hasher.update(&number.to_be_bytes());
    };
    text(name, rows);
    arrays.for_each(|(name, width)| text(name, u64::from(width)));
    let hash = hasher.finalize();
    hash.as_bytes().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// Returns the row that a name of the stores means; `None` if it is none of these groups.
pub(crate) fn row_of(formats: &[RowFormat], id: &RowId) -> Option<StateRow> {
    let index = u32::from_be_bytes(id.key().try_into().ok()?);
    let group = formats.iter().position(|format| format.group == id.group())?;
    Some(StateRow { group: group as u32, index: u64::from(index) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_width_round_trip() {
        let format = RowFormat { group: 7, widths: vec![1, 32, 0, 75], bytes: 1 + 4 + 10 };
        let values = [Bits::new(1, 1), Bits::new(0xdead_beef, 32), Bits::zero(0), Bits::ones(75)];
        let stored = format.to_bytes(&values);
        assert_eq!(stored.bytes(), [1, 0xde, 0xad, 0xbe, 0xef, 7, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(format.to_values(Some(&stored)).unwrap(), values);
        assert_eq!(format.to_values(None).unwrap(), [1, 32, 0, 75].map(Bits::zero));
        assert_eq!(format.to_values(RowValues::new(&[1, 2]).as_ref()), None);
    }

    #[test]
    fn rows_have_names() {
        let formats = [7, 8, 9].map(|group| RowFormat { group, widths: vec![8], bytes: 1 });
        let row = StateRow { group: 2, index: 0x0102_0304 };
        let id = formats[2].row_id(row.index);
        assert_eq!((id.group(), row_of(&formats, &id)), (9, Some(row)));
        assert_eq!(row_of(&formats, &RowId::new(9, &[1, 2, 3]).unwrap()), None);
        assert_eq!(row_of(&formats, &RowId::of_index(6, 1)), None, "a group of another program");
    }

    #[test]
    fn a_group_s_number_depends_on_everything_that_its_rows_mean() {
        let number = |name, rows, arrays: &[(&'static str, u32)]| group_number(name, rows, arrays.iter().copied());
        let keys = number("keys", 65_536, &[("values", 32), ("changes", 32)]);
        assert_eq!(keys, 0x09a5_6981_ff1e_ccc8, "the number is the same in every version");
        let others = [
            number("key", 65_536, &[("values", 32), ("changes", 32)]),
            number("keys", 65_535, &[("values", 32), ("changes", 32)]),
            number("keys", 65_536, &[("changes", 32), ("values", 32)]),
            number("keys", 65_536, &[("values", 32), ("changes", 33)]),
            number("keys", 65_536, &[("values", 32)]),
        ];
        assert!(others.iter().all(|other| *other != keys), "{others:x?}");
    }
}
