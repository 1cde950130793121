//! Converts rows between the switch and the stores: numbers in registers here, bytes there.

use bits::Bits;
use engine::StateRow;
use ir::{MAX_ROW_BYTES, Program, ResilientGroup};
use resilient::{MAX_VALUE_BYTES, RowId, RowValues};

const _: () = assert!(MAX_ROW_BYTES as usize <= MAX_VALUE_BYTES, "stores keep every row of a valid program");

/// The arrays of a group, as its rows are stored: one value after the other, each in whole bytes, the most significant
/// first.
#[derive(Clone, Debug)]
pub(crate) struct RowFormat {
    widths: Vec<u32>,
    bytes: usize,
}

impl RowFormat {
    /// Returns the format of a group.
    pub fn new(program: &Program, group: &ResilientGroup) -> RowFormat {
        let widths: Vec<u32> = group.registers.iter().map(|register| program.registers[*register].width).collect();
        let bytes = widths.iter().map(|width| width.div_ceil(8) as usize).sum();
        RowFormat { widths, bytes }
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

/// Returns the stores' name of a row.
pub(crate) fn row_id(row: StateRow) -> RowId {
    RowId::of_index(row.group as u16, row.index as u32)
}

/// Returns the row that a name of the stores means; `None` if it is none of arrays.
pub(crate) fn row_of(id: &RowId) -> Option<StateRow> {
    let index = u32::from_be_bytes(id.key().try_into().ok()?);
    Some(StateRow { group: u32::from(id.group()), index: u64::from(index) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_width_round_trip() {
        let format = RowFormat { widths: vec![1, 32, 0, 75], bytes: 1 + 4 + 10 };
        let values = [Bits::new(1, 1), Bits::new(0xdead_beef, 32), Bits::zero(0), Bits::ones(75)];
        let stored = format.to_bytes(&values);
        assert_eq!(stored.bytes(), [1, 0xde, 0xad, 0xbe, 0xef, 7, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(format.to_values(Some(&stored)).unwrap(), values);
        assert_eq!(format.to_values(None).unwrap(), [1, 32, 0, 75].map(Bits::zero));
        assert_eq!(format.to_values(RowValues::new(&[1, 2]).as_ref()), None);
    }

    #[test]
    fn rows_have_names() {
        let row = StateRow { group: 3, index: 0x0102_0304 };
        assert_eq!(row_of(&row_id(row)), Some(row));
        assert_eq!(row_of(&RowId::new(3, &[1, 2, 3]).unwrap()), None);
    }
}
