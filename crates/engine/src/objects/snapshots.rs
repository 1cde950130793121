//! Makes copies of `@resilient` rows that are replicated by snapshots, while packets continue to change them.
//!
//! A *cut* is the state of a row at one moment between two packets. It is copied later, page by page: a packet that
//! changes a page of a cut that was not copied yet copies it first (copy-on-write). So the pause for a cut does not
//! depend on the size of the row. A cut has only the pages that have changed since the last one.

use std::collections::BTreeMap;
use std::ops::Range;

use ir::{ReplicationMode, ResilientGroup, SnapshotSettings};

use super::Objects;
use super::row_states::RowState;
use super::rows::StateRow;

/// State of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum PageState {
    /// Unchanged since the last cut.
    #[default]
    Clean,
    /// Changed since the last cut, which has its copy of the page or needs none.
    Dirty,
    /// Part of the last cut, not copied yet and unchanged since: a write must copy it first (copy-on-write).
    Uncopied,
}

/// State of a page that compiled code may write inline, as a byte: all its elements have memory.
pub const DIRTY_PAGE: u8 = PageState::Dirty as u8;

/// The states of the pages of some rows: changed or not, and to be copied for a cut or not.
#[derive(Clone, Debug)]
pub struct PageStates(Vec<PageState>);

/// Effect of a write on the state of its page at the last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWrite {
    /// The page was changed before.
    Again,
    /// The page was unchanged.
    First,
    /// The page must be copied before the write.
    CopyFirst,
}

impl PageStates {
    /// Creates unchanged pages.
    pub fn new(pages: usize) -> PageStates {
        PageStates(vec![PageState::default(); pages])
    }

    /// Records a write that is about to be made.
    #[inline]
    pub fn before_write(&mut self, page: usize) -> PageWrite {
        match std::mem::replace(&mut self.0[page], PageState::Dirty) {
            PageState::Dirty => PageWrite::Again,
            PageState::Clean => PageWrite::First,
            PageState::Uncopied => PageWrite::CopyFirst,
        }
    }

    /// Begins a cut of these pages. Returns those that have changed since the last cut. All pages of the last cut must
    /// have been taken.
    pub fn begin_cut(&mut self, pages: Range<usize>) -> Vec<usize> {
        let is_changed = |page: &usize| self.0[*page] == PageState::Dirty;
        let changed: Vec<usize> = pages.filter(is_changed).collect();
        changed.iter().for_each(|page| self.0[*page] = PageState::Uncopied);
        changed
    }

    /// Takes a page for the cut. Returns whether it is unchanged since the cut; if not, a write has copied it.
    pub fn take(&mut self, page: usize) -> bool {
        let is_uncopied = self.0[page] == PageState::Uncopied;
        if is_uncopied {
            self.0[page] = PageState::Clean;
        }
        is_uncopied
    }

    /// Marks these pages as unchanged, and ends their cut.
    pub fn reset(&mut self, pages: Range<usize>) {
        self.0[pages].fill(PageState::Clean);
    }
}

/// The pages of a group with snapshots.
#[derive(Debug)]
pub(super) struct GroupPages {
    settings: SnapshotSettings,
    /// An element belongs to the row at its index shifted by this number of bits.
    pub row_shift: u32,
    page_shift: u32,
    states: PageStates,
    /// Flags of the rows that have changed since their last cuts.
    is_changed: Vec<bool>,
    /// Pages of cuts that a write has copied.
    copied: BTreeMap<usize, Vec<u8>>,
}

impl GroupPages {
    /// Creates the pages of a group; `None` if it has no snapshots.
    pub fn new(group: &ResilientGroup) -> Option<GroupPages> {
        let ReplicationMode::Snapshots(settings) = group.mode else { return None };
        Some(GroupPages {
            settings,
            row_shift: settings.row_shift(),
            page_shift: settings.page_elements.ilog2(),
            states: PageStates::new((group.rows * settings.row_pages()) as usize),
            is_changed: vec![false; group.rows as usize],
            copied: BTreeMap::new(),
        })
    }

    /// Returns the address of the states of pages.
    pub fn states_address(&self) -> u64 {
        self.states.0.as_ptr() as u64
    }

    /// Returns the pages of a row.
    fn of_row(&self, row: u64) -> Range<usize> {
        let count = self.settings.row_pages() as usize;
        row as usize * count..(row as usize + 1) * count
    }

    /// Returns the elements of a page. The last ones may be beyond the end of the arrays.
    fn elements(&self, page: usize) -> Range<u64> {
        let first = (page as u64) << self.page_shift;
        first..first + self.settings.page_elements
    }
}

impl Objects {
    /// Records that the running pass is about to change an element of a group with snapshots.
    #[inline]
    pub(super) fn before_snapshot_write(&mut self, group: u32, index: u64) {
        let rows = self.rows.as_mut().expect("rows are under ownership");
        let Some(pages) = &mut rows.groups[group as usize].snapshots else { return };
        let page = (index >> pages.page_shift) as usize;
        let write = pages.states.before_write(page);
        if write != PageWrite::Again {
            self.first_page_write(group, index, page, write);
        }
    }

    #[cold]
    fn first_page_write(&mut self, group: u32, index: u64, page: usize, write: PageWrite) {
        let copy = (write == PageWrite::CopyFirst).then(|| self.page_bytes(group, page));
        self.allocate_page(group, page);
        let rows = self.rows.as_mut().expect("rows are under ownership");
        let Some(pages) = &mut rows.groups[group as usize].snapshots else { return };
        pages.copied.extend(copy.map(|copy| (page, copy)));
        let row = StateRow { group, index: index >> pages.row_shift };
        if !std::mem::replace(&mut pages.is_changed[row.index as usize], true) {
            rows.changed.push(row);
        }
    }

    /// Removes and returns the rows with snapshots that have changed for the first time since their last cuts.
    pub fn take_changed_rows(&mut self) -> Vec<StateRow> {
        self.rows.as_mut().map(|rows| std::mem::take(&mut rows.changed)).unwrap_or_default()
    }

    /// Begins a cut of a row, and returns the numbers of its pages that have changed since the last one. All pages of
    /// the last one must have been taken.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn begin_cut(&mut self, row: StateRow) -> Vec<u32> {
        let pages = self.pages_mut(row);
        let range = pages.of_row(row.index);
        let first = range.start;
        pages.is_changed[row.index as usize] = false;
        pages.states.begin_cut(range).into_iter().map(|page| (page - first) as u32).collect()
    }

    /// Returns the bytes that a page had at the cut: one array after another, each element in whole bytes, the most
    /// significant first.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn cut_page(&mut self, row: StateRow, page: u32) -> Vec<u8> {
        let pages = self.pages_mut(row);
        let page = pages.of_row(row.index).start + page as usize;
        if pages.states.take(page) {
            self.page_bytes(row.group, page)
        } else {
            pages.copied.remove(&page).unwrap_or_default()
        }
    }

    /// Opens a row that is not in use for packets, or closes it. It counts as unchanged, and a cut of it ends.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set_snapshot_row_state(&mut self, row: StateRow, state: RowState) {
        self.set_row_state(row, state);
        let pages = self.pages_mut(row);
        let range = pages.of_row(row.index);
        pages.is_changed[row.index as usize] = false;
        pages.copied.retain(|page, _| !range.contains(page));
        pages.states.reset(range);
    }

    /// Sets the elements of a page, to zeros if there are no bytes. Returns false, and changes nothing, if the bytes
    /// are not those of such a page.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set_page(&mut self, row: StateRow, page: u32, bytes: Option<&[u8]>) -> bool {
        let pages = self.pages_mut(row);
        let elements = pages.elements(pages.of_row(row.index).start + page as usize);
        let registers = self.group_registers(row.group);
        let arrays = registers.iter().map(|register| &self.shared.registers[*register]);
        let length: u64 = arrays.clone().map(|array| array.bytes_of(&elements)).sum();
        if bytes.is_some_and(|bytes| bytes.len() as u64 != length) {
            return false;
        }
        let mut rest = bytes;
        for array in arrays {
            let (own, others) = match rest {
                Some(bytes) => {
                    let (own, others) = bytes.split_at(array.bytes_of(&elements) as usize);
                    (Some(own), Some(others))
                }
                None => (None, None),
            };
            array.set_bytes(elements.clone(), own, self.several);
            rest = others;
        }
        true
    }

    fn page_bytes(&self, group: u32, page: usize) -> Vec<u8> {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let pages = rows.groups[group as usize].snapshots.as_ref().expect("the group has snapshots");
        let elements = pages.elements(page);
        let mut bytes = Vec::new();
        for register in self.group_registers(group) {
            self.shared.registers[*register].get_bytes(elements.clone(), self.several, &mut bytes);
        }
        bytes
    }

    /// Allocates memory for all elements of a page.
    fn allocate_page(&self, group: u32, page: usize) {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let group = &rows.groups[group as usize];
        let Some(pages) = &group.snapshots else { return };
        group.registers.iter().for_each(|register| self.shared.registers[*register].allocate(pages.elements(page)));
    }

    fn group_registers(&self, group: u32) -> &[ir::RegisterId] {
        &self.rows.as_ref().expect("rows are under ownership").groups[group as usize].registers
    }

    fn pages_mut(&mut self, row: StateRow) -> &mut GroupPages {
        let rows = self.rows.as_mut().expect("rows are under ownership");
        rows.groups[row.group as usize].snapshots.as_mut().expect("the group has snapshots")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_cut_is_copied_once_before_it_changes() {
        let mut pages = PageStates::new(4);
        assert_eq!(
            [0, 0, 1].map(|page| pages.before_write(page)),
            [PageWrite::First, PageWrite::Again, PageWrite::First]
        );
        assert_eq!(pages.begin_cut(0..3), [0, 1]);
        assert_eq!([0, 0].map(|page| pages.before_write(page)), [PageWrite::CopyFirst, PageWrite::Again]);
        assert_eq!([0, 1].map(|page| pages.take(page)), [false, true]);
        // Taken pages change without a copy, and the next cut has the changes since the last one.
        assert_eq!([1, 2].map(|page| pages.before_write(page)), [PageWrite::First; 2]);
        assert_eq!(pages.begin_cut(0..4), [0, 1, 2]);
        pages.reset(0..4);
        assert_eq!(pages.begin_cut(0..4), [0; 0]);
    }
}
