//! Converts rows between the switch and the stores: numbers in registers here, bytes there.

use bits::Bits;
use ir::{MAX_ROW_BYTES, MAX_ROW_KEY_BYTES, NumberRange, Program, ResilientGroup, RowOrigin};
use resilient::message::{IfMissing, NumberPool};
use resilient::{MAX_KEY_BYTES, MAX_VALUE_BYTES, RowValues};

const _: () = assert!(
    MAX_ROW_BYTES as usize <= MAX_VALUE_BYTES && MAX_ROW_KEY_BYTES as usize <= MAX_KEY_BYTES,
    "stores keep every row of a valid program"
);

/// The rows of a group, as they are stored.
#[derive(Clone, Debug)]
pub(crate) enum RowFormat {
    /// Cells of arrays. The key is the index.
    Arrays(ArrayFormat),
    /// Entries of tables. The key is the table's, and the values are the data of the action.
    Tables {
        /// What a store does if a packet asks that makes the row.
        creation: IfMissing,
    },
}

impl RowFormat {
    /// Returns the format of the group at place `number`.
    pub fn new(program: &Program, groups: &[ResilientGroup], number: usize) -> RowFormat {
        let group = &groups[number];
        let creation = match &group.origin {
            RowOrigin::Start => return RowFormat::Arrays(ArrayFormat::new(program, group)),
            RowOrigin::Added => IfMissing::Create(RowValues::default()),
            RowOrigin::Reverse(_) => IfMissing::Refuse,
            RowOrigin::Number(NumberRange { first, last, is_shared }) => {
                let table = group.tables[0];
                let action = &program.actions[program.tables[table.table].actions[table.action as usize].action];
                let width = program.slots[action.params[0].slot].width;
                let reverse = groups.iter().position(|group| group.origin == RowOrigin::Reverse(number));
                IfMissing::Allocate(NumberPool {
                    // Numbers have rows of their own even if the program does not read them.
                    group: reverse.map_or(number as u16 | 1 << 15, |reverse| reverse as u16),
                    first: *first,
                    last: *last,
                    bytes: width.div_ceil(8) as u8,
                    is_shared: *is_shared,
                })
            }
        };
        RowFormat::Tables { creation }
    }
}

/// The arrays of a group, as its rows are stored: one value after the other, each in whole bytes, the most significant
/// first.
#[derive(Clone, Debug)]
pub(crate) struct ArrayFormat {
    widths: Vec<u32>,
    bytes: usize,
}

impl ArrayFormat {
    fn new(program: &Program, group: &ResilientGroup) -> ArrayFormat {
        let widths: Vec<u32> = group.registers.iter().map(|register| program.registers[*register].width).collect();
        let bytes = widths.iter().map(|width| width.div_ceil(8) as usize).sum();
        ArrayFormat { widths, bytes }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_width_round_trip() {
        let format = ArrayFormat { widths: vec![1, 32, 0, 75], bytes: 1 + 4 + 10 };
        let values = [Bits::new(1, 1), Bits::new(0xdead_beef, 32), Bits::zero(0), Bits::ones(75)];
        let stored = format.to_bytes(&values);
        assert_eq!(stored.bytes(), [1, 0xde, 0xad, 0xbe, 0xef, 7, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(format.to_values(Some(&stored)).unwrap(), values);
        assert_eq!(format.to_values(None).unwrap(), [1, 32, 0, 75].map(Bits::zero));
        assert_eq!(format.to_values(RowValues::new(&[1, 2]).as_ref()), None);
    }
}
