//! Converts rows between the switch and the stores: numbers in registers here, bytes there.

use std::num::NonZeroU32;

use bits::Bits;
use ir::{
    MAX_PAGE_BYTES, MAX_ROW_BYTES, MAX_ROW_KEY_BYTES, NumberRange, Program, ReplicationMode, ResilientGroup, RowOrigin,
    SnapshotSettings, StaleAction,
};
use resilient::message::{IfMissing, NumberPool};
use resilient::{MAX_KEY_BYTES, MAX_VALUE_BYTES, RowId, RowValues, SnapshotForm};

const _: () = assert!(
    MAX_ROW_BYTES as usize <= MAX_VALUE_BYTES
        && MAX_PAGE_BYTES as usize <= MAX_VALUE_BYTES
        && MAX_ROW_KEY_BYTES as usize <= MAX_KEY_BYTES,
    "stores keep every row of a valid program"
);

/// The rows of a group, as they are stored.
#[derive(Clone, Debug)]
pub(crate) struct RowFormat {
    /// Name of the group.
    pub name: String,
    /// The group in the names of rows.
    pub id: u64,
    /// Kind of the rows.
    pub rows: RowKind,
    /// Idle time of a row in milliseconds; 0 if rows do not age.
    pub idle_ms: u32,
}

/// The kind of the rows of a group.
#[derive(Clone, Debug)]
pub(crate) enum RowKind {
    /// Cells of arrays. The key is the index.
    Arrays(ArrayFormat),
    /// Pages of arrays, replicated by snapshots. The key is the number of the row.
    Snapshots(SnapshotFormat),
    /// Entries of tables. The key is the table's, and the values are the data of the action.
    Tables {
        /// The action of a store if the packet that asks creates the row.
        creation: IfMissing,
    },
}

/// The snapshots of a group.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotFormat {
    pub form: SnapshotForm,
    pub when_stale: StaleAction,
}

impl RowFormat {
    /// Returns the format of the group at place `number`.
    pub fn new(program: &Program, groups: &[ResilientGroup], number: usize) -> RowFormat {
        let group = &groups[number];
        let id = match group.origin {
            RowOrigin::Reverse(forward) => RowId::partner_group(row_group(program, &groups[forward])),
            _ => row_group(program, group),
        };
        let creation = match &group.origin {
            RowOrigin::Start => {
                let rows = match group.mode {
                    ReplicationMode::EveryWrite => RowKind::Arrays(ArrayFormat::new(program, group)),
                    ReplicationMode::Snapshots(settings) => {
                        RowKind::Snapshots(SnapshotFormat::new(program, group, id, settings))
                    }
                };
                return RowFormat { name: group.name.clone(), id, rows, idle_ms: 0 };
            }
            RowOrigin::Added => IfMissing::Create(RowValues::default()),
            RowOrigin::Reverse(_) => IfMissing::Refuse,
            RowOrigin::Number(NumberRange { first, last, is_shared }) => {
                let width = group.tables[0].data_widths(program)[0];
                IfMissing::Allocate(NumberPool {
                    first: *first,
                    last: *last,
                    bytes: width.div_ceil(8) as u8,
                    is_shared: *is_shared,
                })
            }
        };
        let idle_ms = group.idle_ms.map_or(0, NonZeroU32::get);
        RowFormat { name: group.name.clone(), id, rows: RowKind::Tables { creation }, idle_ms }
    }
}

/// Returns the index of a row's group, if the program has it.
pub(crate) fn group_of(formats: &[RowFormat], id: &RowId) -> Option<usize> {
    formats.iter().position(|format| format.id == id.group())
}

impl SnapshotFormat {
    fn new(program: &Program, group: &ResilientGroup, id: u64, settings: SnapshotSettings) -> SnapshotFormat {
        let row_bytes = group.row_bytes(program);
        let page_bytes = (row_bytes / settings.row_elements * settings.page_elements).min(row_bytes);
        let form = SnapshotForm {
            pages: settings.row_pages() as u32,
            page_bytes: page_bytes as u32,
            page_group: page_group(id),
            every_ns: settings.every_ns,
            bound_ns: settings.bound_ns,
        };
        SnapshotFormat { form, when_stale: settings.when_stale }
    }
}

/// Context of the hash that gives a group's number.
const GROUP_DOMAIN: &str = "triplane resilient group 1";

/// The arrays of a group, as its rows are stored: one value after the other, each in whole bytes, the most significant
/// first.
#[derive(Clone, Debug)]
pub(crate) struct ArrayFormat {
    widths: Vec<u32>,
    /// Whether packets may read rows that other switches read, too.
    pub may_share: bool,
}

impl ArrayFormat {
    fn new(program: &Program, group: &ResilientGroup) -> ArrayFormat {
        let widths = group.registers.iter().map(|register| program.registers[*register].width).collect();
        ArrayFormat { widths, may_share: program.uses_group_in_one_pass(group) }
    }

    /// Returns the values of a row from its [bytes](engine::Objects::append_row_bytes); zeros for one that was never
    /// written. `None` if the bytes are not of this format.
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
    let Some(first) = group.tables.first() else {
        let ReplicationMode::Snapshots(settings) = group.mode else {
            return group_number(&group.name, group.rows, arrays);
        };
        let sizes = [("row", settings.row_elements as u32), ("page", settings.page_elements as u32)];
        return group_number(&group.name, group.rows, sizes.into_iter().chain(arrays));
    };
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

/// Returns the group of the pages of a group with snapshots.
fn page_group(group: u64) -> u64 {
    group_number("pages", group, std::iter::empty())
}

/// Returns the number in the names of rows, and a display name, of each group of a valid program, of the numbers of
/// each pool, and of the pages of each snapshot. Stores know groups by these numbers only.
pub fn group_numbers(program: &Program) -> Vec<(u64, String)> {
    let groups = program.resilient_groups().expect("a valid program has valid annotations");
    let mut numbers = Vec::new();
    for group in groups.iter().filter(|group| !matches!(group.origin, RowOrigin::Reverse(_))) {
        let number = row_group(program, group);
        if let RowOrigin::Number(NumberRange { is_shared: false, .. }) = group.origin {
            numbers.push((RowId::partner_group(number), format!("numbers of {}", group.name)));
        }
        if let ReplicationMode::Snapshots(_) = group.mode {
            numbers.push((page_group(number), format!("pages of {}", group.name)));
        }
        numbers.push((number, group.name.clone()));
    }
    numbers
}

/// Returns the number of a group in the names of its rows: the first 64 bits, big-endian, of the BLAKE3 hash in
/// `derive_key` mode of the group's name, the number of rows, and name and width of each array, or the kind and width
/// of each element of the key and of the data. Texts are preceded by their length; all numbers have 64 bits,
/// big-endian. So a group of another program has the same number only if its rows have the same meaning.
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
    fn values_of_any_width_are_read() {
        let format = ArrayFormat { widths: vec![1, 32, 0, 75], may_share: true };
        let values = [Bits::new(1, 1), Bits::new(0xdead_beef, 32), Bits::zero(0), Bits::ones(75)];
        let stored = [1, 0xde, 0xad, 0xbe, 0xef, 7, 255, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(format.to_values(RowValues::new(&stored).as_ref()).unwrap(), values);
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
