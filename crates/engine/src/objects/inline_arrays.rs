//! Lets compiled code use arrays of `@resilient` rows inline, without a call: provides the addresses of their elements,
//! and of the states of rows.
//!
//! Compiled code reads and writes elements. It calls a function for everything else: rows that are not owned, the first
//! write of a page with snapshots since a cut, and writes to elements without memory.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use cranelift_entity::{EntityRef, SecondaryMap};
use ir::{Program, RegisterId, ReplicationMode, ResilientGroup};

use super::Objects;
use super::paged::{PAGE, Paged};
use super::row_states::RowState;
use super::shared::Registers;

/// Number of elements of a page of an array.
pub const CELLS_PER_PAGE: u64 = PAGE;

/// Maximum size of arrays that compiled code uses inline.
const MAX_ELEMENTS: u64 = 1 << 24;

/// Index in [`Objects::array_addresses`] of a page of zeros, which stands for pages without memory.
pub const ZEROS_PLACE: usize = 0;
/// Index of the list of uses ([`crate::MAX_INLINE_USES`]), whose address is 0 if rows are not under ownership.
pub const USES_PLACE: usize = 1;
/// Index of the states of the first group.
const FIRST_GROUP: usize = 2;

/// The page that stands for those without memory: zeros, which nothing writes.
static ZEROS: [AtomicU64; PAGE as usize] = [const { AtomicU64::new(0) }; PAGE as usize];

/// An array that compiled code uses inline. Places are indices in [`Objects::array_addresses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineArray {
    /// Number of elements.
    pub size: u64,
    /// Place of the directory: the addresses of the pages of elements, one word each.
    pub directory: usize,
    /// Place of the address of the states of the group's rows, one byte each ([`RowState`]). The address is 0 if the
    /// rows are not under ownership.
    pub states: usize,
    /// Its rows.
    pub rows: InlineRows,
}

/// The rows of an array that compiled code uses inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineRows {
    /// One row for each element, replicated with each write. The number of a row is its index after this one.
    EveryWrite {
        /// The number of the row at index 0.
        first: u64,
    },
    /// One row for several elements, with snapshots.
    Snapshots {
        /// An element belongs to the row at its index shifted by this number of bits,
        row_shift: u32,
        /// and to the page at its index shifted by this one.
        page_shift: u32,
        /// Place of the address of the states of pages, one byte each ([`crate::DIRTY_PAGE`]).
        page_states: usize,
    },
}

/// An element that compiled code has changed in a pass that has not begun in the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineWrite {
    /// The array.
    pub register: RegisterId,
    /// The element.
    pub index: u64,
    /// Its previous value.
    pub before: u64,
}

/// Returns the arrays of these groups that compiled code uses inline.
pub fn inline_arrays(program: &Program, groups: &[ResilientGroup]) -> SecondaryMap<RegisterId, Option<InlineArray>> {
    let mut arrays = SecondaryMap::new();
    let mut first = 0;
    for (number, group) in groups.iter().enumerate() {
        let states = FIRST_GROUP + 2 * number;
        let rows = match group.mode {
            ReplicationMode::EveryWrite => InlineRows::EveryWrite { first },
            ReplicationMode::Snapshots(settings) => InlineRows::Snapshots {
                row_shift: settings.row_shift(),
                page_shift: settings.page_elements.ilog2(),
                page_states: states + 1,
            },
        };
        first += if group.mode == ReplicationMode::EveryWrite { group.rows } else { 0 };
        for id in &group.registers {
            let register = &program.registers[*id];
            if (1..=64).contains(&register.width) && (1..=MAX_ELEMENTS).contains(&register.size) {
                let directory = FIRST_GROUP + 2 * groups.len() + id.index();
                arrays[*id] = Some(InlineArray { size: register.size, directory, states, rows });
            }
        }
    }
    arrays
}

/// The address of the first element of each page of an array, in the order of the pages.
pub(super) struct PageDirectory(Box<[AtomicPtr<AtomicU64>]>);

/// Omits addresses, so that equal states have equal output.
impl fmt::Debug for PageDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageDirectory")
    }
}

impl PageDirectory {
    /// Creates the directory of an array without memory; `None` if compiled code never uses the array inline.
    pub fn new(register: &ir::Register) -> Option<PageDirectory> {
        let is_usable = register.is_resilient() && register.width <= 64 && register.size <= MAX_ELEMENTS;
        let page = |_| AtomicPtr::new(std::ptr::from_ref(&ZEROS[0]).cast_mut());
        is_usable.then(|| PageDirectory((0..register.size.div_ceil(PAGE)).map(page).collect()))
    }

    /// Records that the page of an element has memory.
    pub fn note(&self, index: u64, words: &Paged<AtomicU64>) {
        let first = std::ptr::from_ref(words.at(index - index % PAGE)).cast_mut();
        self.0[(index / PAGE) as usize].store(first, Ordering::Release);
    }

    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

impl Objects {
    /// Returns the addresses that compiled code needs to use arrays inline: that of a page of zeros, which stands for
    /// pages without memory; the list of uses; the states of rows and pages for each group; the directory of each
    /// array. They are valid until the rows are put under ownership. There are none in programs without `@resilient`
    /// arrays.
    pub fn array_addresses(&self) -> &[u64] {
        &self.array_addresses
    }

    /// Whether rows are under ownership.
    #[inline]
    pub fn owns_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Recomputes the addresses.
    pub(super) fn renew_array_addresses(&mut self) {
        let directory = |registers: &Registers| registers.directory().map_or(0, PageDirectory::address);
        let directories: Vec<u64> = self.shared.registers.values().map(directory).collect();
        if directories.iter().all(|address| *address == 0) {
            return;
        }
        let owned = self.rows.iter().flat_map(|rows| &rows.groups).flat_map(|group| {
            let pages = group.snapshots.as_ref().map_or(0, |pages| pages.states_address());
            [group.states.address(), pages]
        });
        let states = owned.chain(std::iter::repeat(0)).take(2 * self.sizes.groups);
        let uses = self.rows.as_ref().map_or(0, |rows| rows.inline_uses.address());
        let first = [ZEROS.as_ptr() as u64, uses];
        self.array_addresses = first.into_iter().chain(states).chain(directories).collect();
    }

    /// Begins a pass that compiled code has run inline so far: it has used the row with this number, if any, and made
    /// these writes, in this order.
    pub fn take_over_pass(&mut self, used: Option<u64>, writes: impl Iterator<Item = InlineWrite>) {
        self.settle_inline_uses();
        self.begin_pass(None);
        let Some(rows) = &mut self.rows else { return };
        if let Some(number) = used {
            rows.note_use(number);
        }
        writes.for_each(|InlineWrite { register, index, before }| rows.note_inline_write(register, index, before));
    }
}

/// State of an owned row without writes under way, as a byte.
pub const OWNED_ROW: u8 = RowState::Owned as u8;
/// State of an owned row with unacknowledged writes, as a byte: outputs that depend on it wait.
pub const UNACKNOWLEDGED_ROW: u8 = RowState::Unacknowledged as u8;
