//! Chooses the cell of each entry within its window, and plans the writes that bring the entry there.
//!
//! Entries and cells are the two sides of a graph; an entry has an edge to each cell of its window. An insertion
//! searches for the shortest augmenting path: a chain of entries that move to other cells of their windows,
//! the last one to an empty cell. As long as no search is cut off, the number of placed entries is the largest possible
//! (Berge, 1957). An entry for which there is no path goes to the *stash*, in the memory of the switch. A removal
//! searches backwards from its cell for an entry of the stash that can be placed now.
//!
//! The writes of a change are ordered: each entry is written to its new cell before its old cell is overwritten, so
//! that it is in a cell at each moment.
//!
//! Memory is five bytes a cell: the number of the entry, and its distance from home. Keys are in the ledger.

mod optimum;
mod search;
mod walk;

use std::collections::BTreeSet;

pub use optimum::{expected_overflow, least_stash};
use search::PathSearch;

use crate::layout::TableLayout;
use crate::mutant::{ElasticMutant, ElasticMutation};
use rng::SplitMix64;

/// Number of an entry in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

const FREE: u8 = u8::MAX;

/// Rule by which cells are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementRule {
    /// Shortest augmenting paths.
    ShortestPath {
        /// Largest number of cells that one search visits. An insertion that needs more goes to the stash, and is
        /// counted.
        max_visited: u32,
    },
    /// A walk over random victims (algorithm 1 of TEA, corrected): nothing is written until it has ended in an empty
    /// cell, and without success the new entry goes to the stash.
    RandomWalk {
        /// Number of victims after which the walk ends.
        max_tries: u32,
    },
}

impl Default for PlacementRule {
    fn default() -> Self {
        PlacementRule::ShortestPath { max_visited: 1 << 16 }
    }
}

/// A write of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellWrite {
    /// The cell.
    pub cell: u32,
    /// The entry that it holds afterwards.
    pub entry: Option<EntryId>,
}

/// The writes of one change, in order. The map already has the state after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementPlan {
    /// One write a cell; a copy before its victim.
    pub writes: Vec<CellWrite>,
    /// An entry that left the stash.
    pub unstashed: Option<EntryId>,
    /// An entry that went to the stash.
    pub stashed: Option<EntryId>,
}

/// Numbers of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacementCounts {
    /// Entries that moved to another cell.
    pub moves: u64,
    /// Cells that searches visited.
    pub visited: u64,
    /// Searches that were cut off.
    pub cut_off: u64,
}

/// The entries of a table in its cells. One change is under way at a time.
#[derive(Debug)]
pub struct PlacementMap {
    layout: TableLayout,
    rule: PlacementRule,
    occupants: Vec<u32>,
    /// Distance of the occupant from its home, or [`FREE`].
    displacements: Vec<u8>,
    stash: BTreeSet<(u32, EntryId)>,
    search: Option<PathSearch>,
    placed: u32,
    counts: PlacementCounts,
    random: SplitMix64,
    mutation: ElasticMutation,
}

impl PlacementMap {
    /// Creates an empty map.
    pub fn new(layout: TableLayout, rule: PlacementRule, seed: u64) -> PlacementMap {
        let cells = layout.cells() as usize;
        PlacementMap {
            layout,
            rule,
            occupants: vec![0; cells],
            displacements: vec![FREE; cells],
            stash: BTreeSet::new(),
            search: None,
            placed: 0,
            counts: PlacementCounts::default(),
            random: SplitMix64::new(seed),
            mutation: ElasticMutation::default(),
        }
    }

    pub(crate) fn mutated(mut self, mutation: ElasticMutation) -> PlacementMap {
        self.mutation = mutation;
        self
    }

    /// Returns the number of entries in cells.
    pub fn placed(&self) -> u32 {
        self.placed
    }

    /// Returns the number of entries in the stash.
    pub fn stashed(&self) -> usize {
        self.stash.len()
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> PlacementCounts {
        self.counts
    }

    /// Returns the bytes of memory that the map holds.
    pub fn memory_bytes(&self) -> usize {
        // A node of the B-tree holds up to 11 stashed entries, and is at least half full.
        self.occupants.capacity() * 4 + self.displacements.capacity() + self.stash.len() * 24
    }

    /// Returns the entry in a cell, as planned.
    pub fn occupant(&self, cell: u32) -> Option<EntryId> {
        let at = cell as usize;
        (self.displacements[at] != FREE).then(|| EntryId(self.occupants[at]))
    }

    /// Returns the home of the entry in a cell.
    fn occupant_home(&self, cell: u32) -> Option<u32> {
        let displacement = self.displacements[cell as usize];
        (displacement != FREE).then(|| self.back(cell, u32::from(displacement)))
    }

    /// Returns the cell `behind` cells before `cell`.
    fn back(&self, cell: u32, behind: u32) -> u32 {
        if cell >= behind { cell - behind } else { cell + self.layout.cells() - behind }
    }

    /// Returns the cell of an entry, as planned; `None` if it is in the stash or unknown.
    pub fn cell_of(&self, entry: EntryId, home: u32) -> Option<u32> {
        (0..self.layout.window()).map(|ahead| self.layout.wrap(home, ahead)).find(|cell| {
            self.displacements[*cell as usize] != FREE
                && self.occupants[*cell as usize] == entry.0
                && self.occupant_home(*cell) == Some(home)
        })
    }

    fn free_cell(&self, home: u32) -> Option<u32> {
        let window = self.layout.window();
        if let Some(cells) = self.displacements.get(home as usize..(home + window) as usize) {
            return cells.iter().position(|cell| *cell == FREE).map(|ahead| home + ahead as u32);
        }
        let mut cells = (0..window).map(|ahead| self.layout.wrap(home, ahead));
        cells.find(|cell| self.displacements[*cell as usize] == FREE)
    }

    fn set(&mut self, cell: u32, entry: EntryId, home: u32) {
        self.occupants[cell as usize] = entry.0;
        self.displacements[cell as usize] = self.layout.distance(home, cell) as u8;
    }

    /// Moves the entry in `from` to `to`, and adds the write.
    fn shift(&mut self, from: u32, to: u32, writes: &mut Vec<CellWrite>) {
        let (entry, home) = (EntryId(self.occupants[from as usize]), self.occupant_home(from).expect("an entry moves"));
        self.set(to, entry, home);
        self.displacements[from as usize] = FREE;
        self.counts.moves += 1;
        writes.push(CellWrite { cell: to, entry: Some(entry) });
    }

    /// Begins to insert an entry. [`PlacementMap::advance`] continues.
    ///
    /// # Panics
    /// If another change is under way.
    pub fn begin_insert(&mut self, entry: EntryId, home: u32) {
        assert!(self.search.is_none(), "one change at a time");
        self.search = Some(PathSearch::forward(entry, home));
    }

    /// Begins to remove an entry. [`PlacementMap::advance`] continues.
    ///
    /// # Panics
    /// If another change is under way.
    pub fn begin_remove(&mut self, entry: EntryId, home: u32) {
        assert!(self.search.is_none(), "one change at a time");
        let cell = self.cell_of(entry, home);
        self.search = Some(PathSearch::backward(entry, home, cell));
    }

    /// Continues the change that is under way, and subtracts the cells that it visits from `budget`. Returns the plan
    /// when the change is decided, and `None` when the budget is used up.
    pub fn advance(&mut self, budget: &mut u32) -> Option<PlacementPlan> {
        let mut search = self.search.take()?;
        let before = *budget;
        let plan = search.advance(self, budget);
        self.counts.visited += u64::from(before - *budget);
        if plan.is_none() {
            self.search = Some(search);
        }
        plan
    }

    /// Inserts an entry in one step.
    pub fn insert(&mut self, entry: EntryId, home: u32) -> PlacementPlan {
        self.begin_insert(entry, home);
        self.finish()
    }

    /// Removes an entry in one step.
    pub fn remove(&mut self, entry: EntryId, home: u32) -> PlacementPlan {
        self.begin_remove(entry, home);
        self.finish()
    }

    fn finish(&mut self) -> PlacementPlan {
        loop {
            let mut budget = u32::MAX;
            if let Some(plan) = self.advance(&mut budget) {
                return plan;
            }
        }
    }

    /// Places an entry along a path of cells, from one of its window to an empty one.
    fn place_along(&mut self, entry: EntryId, home: u32, path: &[u32]) -> Vec<CellWrite> {
        let mut writes = Vec::with_capacity(path.len());
        for pair in path.windows(2).rev() {
            self.shift(pair[0], pair[1], &mut writes);
        }
        self.set(path[0], entry, home);
        self.placed += 1;
        writes.push(CellWrite { cell: path[0], entry: Some(entry) });
        if self.mutation.is(ElasticMutant::VictimFirst) {
            writes.reverse();
        }
        writes
    }

    fn stash(&mut self, entry: EntryId, home: u32) -> PlacementPlan {
        self.stash.insert((home, entry));
        PlacementPlan { stashed: Some(entry), ..PlacementPlan::default() }
    }
}
