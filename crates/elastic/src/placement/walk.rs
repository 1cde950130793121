//! The random walk of TEA's algorithm 1, corrected.
//!
//! As published, the algorithm overwrites a victim before it has found a cell for it, and loses the last victim when
//! the tries end. Here the walk changes only the map. Only if it ends in an empty cell is anything written, last victim
//! first; if it does not, the new entry goes to the stash and no entry has moved.

use super::{CellWrite, EntryId, PlacementMap, PlacementPlan};
use crate::mutant::ElasticMutant;

impl PlacementMap {
    pub(super) fn walk(&mut self, entry: EntryId, home: u32, max_tries: u32, budget: &mut u32) -> PlacementPlan {
        let mut path: Vec<u32> = Vec::new();
        let mut at = home;
        for _ in 0..=max_tries {
            *budget = budget.saturating_sub(1);
            if let Some(cell) = self.free_cell(at) {
                path.push(cell);
                return PlacementPlan { writes: self.place_along(entry, home, &path), ..PlacementPlan::default() };
            }
            let Some(victim) = self.victim(at, &path) else { break };
            path.push(victim);
            at = self.occupant_home(victim).expect("no cell of the window is free");
        }
        if self.mutation.is(ElasticMutant::WalkLosesVictim) && !path.is_empty() {
            return self.lose_last(entry, home, &path);
        }
        self.counts.cut_off += 1;
        self.stash(entry, home)
    }

    /// Chooses a random cell of the window that is not on the path.
    fn victim(&mut self, home: u32, path: &[u32]) -> Option<u32> {
        let window = self.layout.window();
        let start = self.random.below(u64::from(window)) as u32;
        let mut cells = (0..window).map(|turn| self.layout.wrap(home, (start + turn) % window));
        cells.find(|cell| !path.contains(cell))
    }

    /// Ends a walk without success as the published algorithm does, for a mutant.
    fn lose_last(&mut self, entry: EntryId, home: u32, path: &[u32]) -> PlacementPlan {
        let mut writes = Vec::new();
        for pair in path.windows(2).rev() {
            self.shift(pair[0], pair[1], &mut writes);
        }
        self.set(path[0], entry, home);
        writes.push(CellWrite { cell: path[0], entry: Some(entry) });
        PlacementPlan { writes, ..PlacementPlan::default() }
    }
}
