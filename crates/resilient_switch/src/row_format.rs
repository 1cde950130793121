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
pub(crate) struct RowFormat {
    /// The group in the names of rows.
    pub id: u64,
    /// Kind of the rows.
    pub rows: RowKind,
}

/// Kind of the rows of a group.
#[derive(Clone, Debug)]
pub(crate) enum RowKind {
    /// Cells of arrays. The key is the index.
    Arrays(ArrayFormat),
    /// Entries of tables. The key is the table's, and the values are the data of the action.
    Tables {
        /// Action of a store if a packet asks that makes the row.
        creation: IfMissing,
    },
}

impl RowFormat {
    /// Returns the format of the group at place `number`.
    pub fn new(program: &Program, groups: &[ResilientGroup], number: usize) -> RowFormat {
        let group = &groups[number];
        let id = match group.origin {
            RowOrigin::Reverse(forward) => numbers_group(program, &groups[forward]),
            _ => row_group(program, group),
        };
        let creation = match &group.origin {
            RowOrigin::Start => return RowFormat { id, rows: RowKind::Arrays(ArrayFormat::new(program, group)) },
            RowOrigin::Added => IfMissing::Create(RowValues::default()),
            RowOrigin::Reverse(_) => IfMissing::Refuse,
            RowOrigin::Number(NumberRange { first, last, is_shared }) => {
                let width = group.tables[0].data_widths(program)[0];
                IfMissing::Allocate(NumberPool {
                    // Numbers have rows of their own even if the program does not read them.
                    group: numbers_group(program, group),
                    first: *first,
                    last: *last,
                    bytes: width.div_ceil(8) as u8,
                    is_shared: *is_shared,
                })
            }
        };
        RowFormat { id, rows: RowKind::Tables { creation } }
    }
}

/// Domain of the hash that is a group's number.
const GROUP_DOMAIN: &str = "triplane resilient group 1";

/// The arrays of a group, as its rows are stored: one value after the other, each in whole bytes, the most significant
/// first.
#[derive(Clone, Debug)]
pub(crate) struct ArrayFormat {
    widths: Vec<u32>,
}

impl ArrayFormat {
    fn new(program: &Program, group: &ResilientGroup) -> ArrayFormat {
        ArrayFormat { widths: group.registers.iter().map(|register| program.registers[*register].width).collect() }
    }

    /// Returns the bytes of values.
    pub fn to_bytes(&self, values: &[Bits]) -> RowValues {
        let bytes: Vec<u8> = values.iter().flat_map(Bits::to_be_bytes).collect();
        RowValues::new(&bytes).expect("a valid program has rows of this length")
    }

    /// Returns the values of a row; zeros for one that was never written. `None` if the bytes are not of this format.
    pub fn to_values(&self, stored: Option<&RowValues>) -> Option<Vec<Bits>> {
        let Some(stored) = stored else {
            return Some(self.widths.iter().map(|width| Bits::zero(*width)).collect());
        };
        Bits::list_from_be_bytes(&self.widths, stored.bytes())
    }
}

/// Returns the group in the names of its rows.
fn row_group(program: &Program, group: &ResilientGroup) -> u64 {
    let arrays = group.registers.iter().map(|register| &program.registers[*register]);
    let arrays = arrays.map(|array| (array.name.as_str(), array.width));
    let Some(first) = group.tables.first() else { return group_number(&group.name, group.rows, arrays) };
    let origin = match group.origin {
        RowOrigin::Number(NumberRange { is_shared: true, .. }) => "choice",
        RowOrigin::Number(NumberRange { is_shared: false, .. }) => "pool",
        RowOrigin::Added => "add",
        RowOrigin::Start | RowOrigin::Reverse(_) => "none",
    };
    let key = first.key_widths(program).into_iter().map(|width| ("key", width));
    let data = first.data_widths(program).into_iter().map(|width| ("data", width));
    group_number(&group.name, 0, [(origin, 0)].into_iter().chain(key).chain(data))
}

/// Returns the group of the numbers of a group, whether or not the program finds rows by them. It depends on that group
/// only, so all programs that share its rows share the numbers.
fn numbers_group(program: &Program, group: &ResilientGroup) -> u64 {
    group_number("numbers", row_group(program, group), std::iter::empty())
}

/// Returns the number of a group in the names of its rows: the first 64 bits, big-endian, of the BLAKE3 hash in
/// `derive_key` mode of the group's name, the number of rows, and name and width of each array, or the kind and width
/// of each element of the key and of the data. Texts are preceded by their length; all numbers have 64 bits,
/// big-endian. So a group of another program has this number only if its rows mean the same.
fn group_number<'n>(name: &str, rows: u64, parts: impl Iterator<Item = (&'n str, u32)>) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key(GROUP_DOMAIN);
    let mut text = |text: &str, number: u64| {
        hasher.update(&(text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
        hasher.update(&number.to_be_bytes());
    };
    text(name, rows);
    parts.for_each(|(name, width)| text(name, u64::from(width)));
    let hash = hasher.finalize();
    hash.as_bytes().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_width_round_trip() {
        let format = ArrayFormat { widths: vec![1, 32, 0, 75] };
        let values = [Bits::new(1, 1), Bits::new(0xdead_beef, 32), Bits::zero(0), Bits::ones(75)];
        let stored = format.to_bytes(&values);
        assert_eq!(stored.bytes(), [1, 0xde, 0xad, 0xbe, 0xef, 7, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(format.to_values(Some(&stored)).unwrap(), values);
        assert_eq!(format.to_values(None).unwrap(), [1, 32, 0, 75].map(Bits::zero));
        assert_eq!(format.to_values(RowValues::new(&[1, 2]).as_ref()), None);
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
