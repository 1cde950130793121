//! Encodes snapshots as rows of the stores (shadow paging): one row is the page table, others hold the pages.
//!
//! ```text
//!   row (group, index):               number of the snapshot, and for each page: none, place 1, or place 2
//!   row (page group, index, page, 1): a page   } one of the two belongs to the snapshot,
//!   row (page group, index, page, 2): a page   } the other one is where the next snapshot writes
//! ```
//!
//! Writing the row replaces the snapshot, in one step. If the row has only one page, and it fits, the row contains the
//! page instead of its place.

use crate::row::{MAX_VALUE_BYTES, RowId, RowValues};

/// Length of a snapshot's number, in bytes.
const NUMBER_BYTES: usize = 8;

/// Maximum number of pages of a row: the places of all of them fit the row's values.
pub const MAX_PAGES: u32 = 4 * (MAX_VALUE_BYTES - NUMBER_BYTES) as u32;

/// The snapshots of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotForm {
    /// Number of pages of a row, at most [`MAX_PAGES`].
    pub pages: u32,
    /// Length of the longest page, in bytes.
    pub page_bytes: u32,
    /// The group of rows that hold pages.
    pub page_group: u64,
    /// Shortest time from one snapshot to the next.
    pub every_ns: u64,
    /// Maximum age of the last complete snapshot.
    pub bound_ns: Option<u64>,
}

/// Place of each page: 0 if it has none, because all its elements are 0.
pub(super) type PagePlaces = Vec<u8>;

impl SnapshotForm {
    /// Whether the only page is in the row.
    pub(super) fn is_inline(&self) -> bool {
        self.pages == 1 && self.page_bytes as usize <= MAX_VALUE_BYTES - NUMBER_BYTES
    }

    /// Returns the row that holds a page of a row at a place.
    pub(super) fn page_row(&self, row: &RowId, page: u32, place: u8) -> RowId {
        let mut key = [0; 9];
        key[..4].copy_from_slice(row.key().first_chunk::<4>().unwrap_or(&[0; 4]));
        key[4..8].copy_from_slice(&page.to_be_bytes());
        key[8] = place;
        RowId::new(self.page_group, &key).unwrap_or(RowId::empty(self.page_group))
    }

    /// Returns the index of the row, the page and the place of a row that holds a page.
    pub(super) fn page_of(row: &RowId) -> Option<(u32, u32, u8)> {
        let [index @ .., _, _, _, _, place] = row.key() else { return None };
        let page = row.key().get(4..8)?;
        Some((u32::from_be_bytes(index.try_into().ok()?), u32::from_be_bytes(page.try_into().ok()?), *place))
    }

    /// Returns the values of a row whose pages are elsewhere.
    pub(super) fn to_values(number: u64, places: &PagePlaces) -> Option<RowValues> {
        let packed = places.chunks(4).map(|four| four.iter().fold(0, |byte, place| byte << 2 | place));
        RowValues::new(&number.to_be_bytes().into_iter().chain(packed).collect::<Vec<u8>>())
    }

    /// Returns the values of a row with its only page.
    pub(super) fn to_inline_values(number: u64, page: &RowValues) -> Option<RowValues> {
        RowValues::new(&[&number.to_be_bytes()[..], page.bytes()].concat())
    }

    /// Returns the number of a snapshot, and the rest of its row's values.
    pub(super) fn split(values: &RowValues) -> Option<(u64, &[u8])> {
        let (number, rest) = values.bytes().split_first_chunk::<NUMBER_BYTES>()?;
        Some((u64::from_be_bytes(*number), rest))
    }

    /// Returns the places of pages, or `None` if the bytes are not those of such a row.
    pub(super) fn places(&self, packed: &[u8]) -> Option<PagePlaces> {
        let count = self.pages as usize;
        if packed.len() != count.div_ceil(4) {
            return None;
        }
        let mut places = Vec::with_capacity(count);
        for (byte, first) in packed.iter().zip((0..count).step_by(4)) {
            let length = 4.min(count - first);
            places.extend((0..length).rev().map(|at| byte >> (2 * at) & 3));
        }
        places.iter().all(|place| *place < 3).then_some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_pages_round_trip() {
        for pages in 1..=9 {
            let form = SnapshotForm { pages, page_bytes: 1024, page_group: 2, every_ns: 1, bound_ns: None };
            let places: PagePlaces = (0..pages).map(|page| (page % 3) as u8).collect();
            let values = SnapshotForm::to_values(7, &places).unwrap();
            let (number, packed) = SnapshotForm::split(&values).unwrap();
            assert_eq!((number, form.places(packed)), (7, Some(places)));
            assert_eq!(form.places(&[packed, &[0]].concat()), None);
            assert_eq!(form.places(&vec![0xff; packed.len()]), None, "there is no place 3");
        }
        let most = vec![2; MAX_PAGES as usize];
        assert!(SnapshotForm::to_values(1, &most).is_some());
    }

    #[test]
    fn the_row_of_a_page_names_it() {
        let form = SnapshotForm { pages: 8, page_bytes: 1024, page_group: 2, every_ns: 1, bound_ns: None };
        let row = RowId::of_index(1, 0x0102_0304);
        assert_eq!(SnapshotForm::page_of(&form.page_row(&row, 5, 2)), Some((0x0102_0304, 5, 2)));
        assert_eq!(SnapshotForm::page_of(&row), None);
    }
}
