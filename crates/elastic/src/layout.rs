//! Maps keys to cells, and cells to bytes of remote memory, so that one READ covers all cells where a key may be.
//!
//! A table is a circle of cells. Each key has a *home* cell and is in the *window* of `window` consecutive cells from
//! its home. A *copy* serves the homes of an arc of the circle, and is in the memory of one server:
//!
//! ```text
//!   windows of w cells         cells of the arc                 the next w-1 cells, repeated
//!                       ├───┬───┬───┬───┬───┬───┬───┬───┤├───┬───┬───┤
//!                                           └── a READ: w cells ─┘
//!
//!   two buckets of b cells     bucket i      bucket i+1 (shadow)      scratchpad
//!                       ├───┬───┬───┬───┤├───┬───┬───┬───┤├───────────────────┤   and again for bucket i+1, ...
//!                       └──────── a READ ──────────────────────── or with it ─┘
//! ```
//!
//! The second form is that of TEA (Kim, Bringing the Power of Networking to Programmable Switches, section 3.3.2). In
//! terms of cells it is a window of 2b cells whose homes are multiples of b; only its bytes are arranged differently.

use smallvec::SmallVec;

use crate::cell::{CellForm, CellPlace, CellSecret, CellState, is_later};
use crate::mutant::{ElasticMutant, ElasticMutation};
use crate::record::RecordForm;

/// Largest window, in cells.
pub const MAX_WINDOW_CELLS: u32 = 64;

/// Form of a table in remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// Windows of this number of cells.
    Windows {
        /// Cells that one READ covers.
        cells: u32,
    },
    /// Two neighbouring buckets, a shadow copy of the second, and a scratchpad: the layout of the paper.
    TwoBuckets {
        /// Cells of a bucket.
        cells: u32,
        /// Bytes of the scratchpad of each bucket, 0 for none.
        scratchpad_bytes: u32,
    },
}

/// A contiguous part of the circle of homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellArc {
    /// First cell; a multiple of the distance of homes.
    pub start: u32,
    /// Number of cells whose windows are served.
    pub cells: u32,
}

/// Sizes and places of a table, all computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    kind: LayoutKind,
    form: CellForm,
    table: u32,
    cells: u32,
    is_wrap_forgotten: bool,
}

/// Contiguous cells of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellBlock {
    /// Offset of the first cell in the copy, in bytes.
    pub offset: u64,
    /// Number of the first cell.
    pub first: u32,
    /// Number of cells; they follow each other on the circle.
    pub count: u32,
}

/// Meaning of the bytes that a READ of a window returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowAnswer<'a> {
    /// The key has this record, which is valid for the table's actions.
    Hit(&'a [u8]),
    /// All cells are authentic and none holds the key.
    Miss,
    /// A cell fails its check. It may have been written during the READ: another READ may succeed.
    Torn,
    /// The bytes are not a window of this copy: a wrong length, memory that was never written, or an invalid record.
    Invalid,
}

/// The values against which an answer is checked.
#[derive(Clone, Copy, Debug)]
pub struct AnswerContext<'a> {
    /// The switch's secret.
    pub secret: &'a CellSecret,
    /// Epoch of the copy that was read.
    pub epoch: u64,
    /// The table's actions.
    pub records: &'a RecordForm,
    /// The mutant that is switched on, if any.
    pub mutation: ElasticMutation,
}

impl TableLayout {
    /// Returns the layout of a table for at least `cells` cells. The number of homes is rounded up to a multiple of 12,
    /// which up to four replicas divide evenly, and covers at least two windows.
    ///
    /// # Panics
    /// If the window has no cell or more than [`MAX_WINDOW_CELLS`].
    pub fn new(kind: LayoutKind, form: CellForm, table: u32, cells: u32) -> TableLayout {
        let mut layout = TableLayout { kind, form, table, cells, is_wrap_forgotten: false };
        let window = layout.window();
        assert!((1..=MAX_WINDOW_CELLS).contains(&window), "the window has {window} cells");
        layout.cells = cells.max(2 * window).next_multiple_of(12 * layout.home_distance());
        layout
    }

    /// Returns the number of cells for `entries` entries at this load, in thousandths.
    pub fn cells_for(entries: u32, load_per_mille: u32) -> u32 {
        let cells = (u64::from(entries) * 1000).div_ceil(u64::from(load_per_mille.max(1)));
        u32::try_from(cells).unwrap_or(u32::MAX)
    }

    /// Switches on the mutants of layouts.
    pub(crate) fn mutated(mut self, mutation: ElasticMutation) -> TableLayout {
        self.is_wrap_forgotten = mutation.is(ElasticMutant::EndNotRepeated);
        self
    }

    /// Returns the form of cells.
    pub fn form(&self) -> &CellForm {
        &self.form
    }

    /// Returns the number of cells of the circle.
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Returns the number of cells that one READ covers.
    pub fn window(&self) -> u32 {
        match self.kind {
            LayoutKind::Windows { cells } => cells,
            LayoutKind::TwoBuckets { cells, .. } => 2 * cells,
        }
    }

    /// Returns the distance between two possible homes, in cells.
    pub fn home_distance(&self) -> u32 {
        match self.kind {
            LayoutKind::Windows { .. } => 1,
            LayoutKind::TwoBuckets { cells, .. } => cells,
        }
    }

    /// Returns the home of a key with this hash.
    pub fn home(&self, key_hash: u64) -> u32 {
        let distance = self.home_distance();
        let homes = self.cells / distance;
        ((u128::from(key_hash) * u128::from(homes)) >> 64) as u32 * distance
    }

    /// Returns the cell `ahead` cells after `cell`; at most once around.
    pub fn wrap(&self, cell: u32, ahead: u32) -> u32 {
        ((u64::from(cell) + u64::from(ahead)) % u64::from(self.cells)) as u32
    }

    /// Returns the number of cells from `from` forward to `to`.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { self.cells - from + to }
    }

    /// Whether a copy of this arc serves the home.
    pub fn serves(&self, arc: CellArc, home: u32) -> bool {
        self.distance(arc.start, home) < arc.cells
    }

    fn stride(&self) -> u64 {
        match self.kind {
            LayoutKind::Windows { .. } => self.form.cell_bytes() as u64,
            LayoutKind::TwoBuckets { cells, scratchpad_bytes } => {
                u64::from(2 * cells) * self.form.cell_bytes() as u64 + u64::from(scratchpad_bytes)
            }
        }
    }

    /// Returns the size of a READ of cells, in bytes.
    pub fn read_bytes(&self) -> u32 {
        self.window() * self.form.cell_bytes() as u32
    }

    /// Returns the size of a copy of an arc, in bytes, including the cells that it repeats.
    pub fn copy_bytes(&self, cells: u32) -> u64 {
        let homes = u64::from(cells / self.home_distance());
        let repeated = match self.kind {
            LayoutKind::Windows { cells } => u64::from(cells - 1) * self.stride(),
            LayoutKind::TwoBuckets { .. } => 0,
        };
        homes * self.stride() + repeated
    }

    /// Returns the offset in a copy from which a READ covers the window of `home`, in bytes.
    pub fn read_offset(&self, arc: CellArc, home: u32) -> u64 {
        if self.is_wrap_forgotten && home + self.window() > self.cells {
            return 0;
        }
        u64::from(self.distance(arc.start, home) / self.home_distance()) * self.stride()
    }

    /// Returns the offset of the scratchpad of the bucket with this home, which follows the cells of its READ.
    pub fn scratchpad_offset(&self, arc: CellArc, home: u32) -> Option<u64> {
        match self.kind {
            LayoutKind::TwoBuckets { scratchpad_bytes, .. } if scratchpad_bytes > 0 => {
                Some(self.read_offset(arc, home) + u64::from(self.read_bytes()))
            }
            _ => None,
        }
    }

    /// Returns the offsets of a cell in a copy: none, one or two. The first is that of the cell itself.
    pub fn cell_offsets(&self, arc: CellArc, cell: u32) -> SmallVec<[u64; 2]> {
        let mut offsets = SmallVec::new();
        let bytes = self.form.cell_bytes() as u64;
        let ahead = self.distance(arc.start, cell);
        match self.kind {
            LayoutKind::Windows { cells: window } => {
                let held = u64::from(arc.cells) + u64::from(window - 1);
                let places = [u64::from(ahead), u64::from(ahead) + u64::from(self.cells)];
                offsets.extend(places.into_iter().filter(|place| *place < held).map(|place| place * bytes));
            }
            LayoutKind::TwoBuckets { cells, .. } => {
                let (bucket, slot) = (ahead / cells, u64::from(ahead % cells));
                if bucket < arc.cells / cells {
                    offsets.push(u64::from(bucket) * self.stride() + slot * bytes);
                }
                let before = bucket.checked_sub(1).unwrap_or(self.cells / cells - 1);
                if before < arc.cells / cells {
                    offsets.push(u64::from(before) * self.stride() + (u64::from(cells) + slot) * bytes);
                }
            }
        }
        offsets
    }

    /// Whether the offset is that of a repeated cell.
    pub(crate) fn is_repeat(&self, arc: CellArc, offset: u64) -> bool {
        match self.kind {
            LayoutKind::Windows { .. } => offset >= u64::from(arc.cells) * self.stride(),
            LayoutKind::TwoBuckets { cells, .. } => {
                offset % self.stride() >= u64::from(cells) * self.form.cell_bytes() as u64
            }
        }
    }

    /// Returns the number of blocks in which a copy is written.
    pub fn blocks(&self, arc: CellArc) -> u32 {
        match self.kind {
            LayoutKind::Windows { cells } => (arc.cells + cells - 1).div_ceil(MAX_WINDOW_CELLS),
            LayoutKind::TwoBuckets { cells, .. } => arc.cells / cells,
        }
    }

    /// Returns a block of a copy; together they cover each of its cells once.
    pub fn block(&self, arc: CellArc, number: u32) -> CellBlock {
        match self.kind {
            LayoutKind::Windows { cells } => {
                let ahead = number * MAX_WINDOW_CELLS;
                let count = (arc.cells + cells - 1 - ahead).min(MAX_WINDOW_CELLS);
                CellBlock { offset: u64::from(ahead) * self.stride(), first: self.wrap(arc.start, ahead), count }
            }
            LayoutKind::TwoBuckets { cells, .. } => CellBlock {
                offset: u64::from(number) * self.stride(),
                first: self.wrap(arc.start, number * cells),
                count: 2 * cells,
            },
        }
    }

    /// Returns the place of a cell, for its check.
    pub fn place(&self, cell: u32, epoch: u64) -> CellPlace {
        CellPlace { table: self.table, cell, epoch }
    }

    /// Parses the answer to a READ of the window of `home` for `key`. Never panics, for any bytes.
    pub fn parse<'a>(&self, context: AnswerContext<'_>, home: u32, key: &[u8], bytes: &'a [u8]) -> WindowAnswer<'a> {
        if bytes.len() != self.read_bytes() as usize || key.len() != self.form.key_bytes() {
            return WindowAnswer::Invalid;
        }
        let size = self.form.cell_bytes();
        // Usually the window holds the key, and then only the key's cell needs its check.
        let named = bytes.chunks_exact(size).enumerate().filter(|(_, cell)| self.form.names(cell, key));
        let mut found: Option<(u32, &'a [u8])> = None;
        for (ahead, cell) in named {
            match self.state(context, self.wrap(home, ahead as u32), cell) {
                CellState::Entry { generation, record, .. } => {
                    if found.is_none_or(|(earlier, _)| is_later(generation, earlier)) {
                        found = Some((generation, record));
                    }
                }
                _ => return WindowAnswer::Torn,
            }
        }
        match found {
            Some((_, record)) if context.records.validate(record).is_ok() => WindowAnswer::Hit(record),
            Some(_) => WindowAnswer::Invalid,
            None => self.absence(context, home, bytes),
        }
    }

    /// Decides about a window without the key: a miss if all its cells are authentic.
    fn absence<'a>(&self, context: AnswerContext<'_>, home: u32, bytes: &[u8]) -> WindowAnswer<'a> {
        let mut answer = WindowAnswer::Miss;
        for (ahead, cell) in bytes.chunks_exact(self.form.cell_bytes()).enumerate() {
            match self.state(context, self.wrap(home, ahead as u32), cell) {
                CellState::Blank => return WindowAnswer::Invalid,
                CellState::Damaged => answer = WindowAnswer::Torn,
                CellState::Entry { .. } | CellState::Empty => {}
            }
        }
        answer
    }

    fn state<'a>(&self, context: AnswerContext<'_>, cell: u32, bytes: &'a [u8]) -> CellState<'a> {
        let state = self.form.parse(context.secret, self.place(cell, context.epoch), bytes);
        match state {
            CellState::Blank if context.mutation.is(ElasticMutant::BlankIsEmpty) => CellState::Empty,
            CellState::Entry { key, .. }
                if context.mutation.is(ElasticMutant::ZeroKeyIsEmpty) && key.iter().all(|byte| *byte == 0) =>
            {
                CellState::Empty
            }
            CellState::Damaged if context.mutation.is(ElasticMutant::CheckIgnored) => self.unchecked(bytes),
            state => state,
        }
    }

    /// Reads a cell without its check, for a mutant.
    fn unchecked<'a>(&self, cell: &'a [u8]) -> CellState<'a> {
        if cell[3] & 0x80 == 0 {
            return CellState::Empty;
        }
        let (key, rest) = cell[4..].split_at(self.form.key_bytes());
        CellState::Entry { generation: 0, key, record: &rest[..self.form.record_bytes()] }
    }
}
