//! Searches for augmenting paths, breadth first and in steps.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{CellWrite, EntryId, FREE, PlacementMap, PlacementPlan, PlacementRule};

/// A change of the map that is under way.
#[derive(Debug)]
pub(super) enum PathSearch {
    Insert(ForwardSearch),
    Remove(BackwardSearch),
}

/// The cells that an insertion has visited. Windows overlap, so they are one interval around the home.
#[derive(Debug)]
pub(super) struct ForwardSearch {
    entry: EntryId,
    home: u32,
    /// For each cell of the interval, the position from which it was found; the home's window has [`ROOT`].
    parents: VecDeque<i32>,
    /// Position of the first visited cell, relative to the home.
    low: i32,
    /// Positions whose occupants are visited next, in the order of their distance.
    queue: VecDeque<i32>,
}

/// The cells that an entry of the stash could take after moves.
#[derive(Debug)]
pub(super) struct BackwardSearch {
    entry: EntryId,
    home: u32,
    cell: Option<u32>,
    /// The cell to which the occupant of each visited cell would move.
    next: HashMap<u32, u32, FixedState>,
    queue: VecDeque<u32>,
    is_begun: bool,
}

const ROOT: i32 = i32::MIN;

impl PathSearch {
    pub(super) fn forward(entry: EntryId, home: u32) -> PathSearch {
        let (parents, queue) = (VecDeque::new(), VecDeque::new());
        PathSearch::Insert(ForwardSearch { entry, home, parents, low: 0, queue })
    }

    pub(super) fn backward(entry: EntryId, home: u32, cell: Option<u32>) -> PathSearch {
        let (next, queue) = (HashMap::default(), VecDeque::new());
        PathSearch::Remove(BackwardSearch { entry, home, cell, next, queue, is_begun: false })
    }

    pub(super) fn advance(&mut self, map: &mut PlacementMap, budget: &mut u32) -> Option<PlacementPlan> {
        match self {
            PathSearch::Insert(search) => search.advance(map, budget),
            PathSearch::Remove(search) => search.advance(map, budget),
        }
    }
}

impl ForwardSearch {
    fn advance(&mut self, map: &mut PlacementMap, budget: &mut u32) -> Option<PlacementPlan> {
        let max_visited = match map.rule {
            PlacementRule::RandomWalk { max_tries } => return Some(map.walk(self.entry, self.home, max_tries, budget)),
            PlacementRule::ShortestPath { max_visited } => max_visited,
        };
        if self.parents.is_empty() {
            *budget = budget.saturating_sub(map.layout.window());
            if let Some(cell) = map.free_cell(self.home) {
                return Some(self.placed(map, &[cell]));
            }
            self.parents.extend(std::iter::repeat_n(ROOT, map.layout.window() as usize));
            self.queue.extend(0..map.layout.window() as i32);
        }
        while *budget > 0 {
            let Some(position) = self.queue.pop_front() else { return Some(map.stash(self.entry, self.home)) };
            if self.parents.len() as u32 > max_visited {
                map.counts.cut_off += 1;
                return Some(map.stash(self.entry, self.home));
            }
            *budget -= 1;
            if let Some(free) = self.extend(map, position) {
                let path = self.path(map, free);
                return Some(self.placed(map, &path));
            }
        }
        None
    }

    fn placed(&self, map: &mut PlacementMap, path: &[u32]) -> PlacementPlan {
        PlacementPlan { writes: map.place_along(self.entry, self.home, path), ..PlacementPlan::default() }
    }

    fn cell(&self, map: &PlacementMap, position: i32) -> u32 {
        (i64::from(self.home) + i64::from(position)).rem_euclid(i64::from(map.layout.cells())) as u32
    }

    /// Visits the cells to which the occupant at `position` could move. Returns the position of an empty one.
    fn extend(&mut self, map: &PlacementMap, position: i32) -> Option<i32> {
        let cell = self.cell(map, position);
        let first = position - i32::from(map.displacements[cell as usize]);
        let last = first + map.layout.window() as i32;
        // The interval may cover the complete circle, and then ends where it begins.
        let room = |search: &Self| search.parents.len() < map.layout.cells() as usize;
        while self.low > first && room(self) {
            self.low -= 1;
            self.parents.push_front(position);
            if self.visit(map, self.low) {
                return Some(self.low);
            }
        }
        while self.low + (self.parents.len() as i32) < last && room(self) {
            let high = self.low + self.parents.len() as i32;
            self.parents.push_back(position);
            if self.visit(map, high) {
                return Some(high);
            }
        }
        None
    }

    fn visit(&mut self, map: &PlacementMap, position: i32) -> bool {
        self.queue.push_back(position);
        map.displacements[self.cell(map, position) as usize] == FREE
    }

    /// Returns the cells from the home's window to the empty cell.
    fn path(&self, map: &PlacementMap, free: i32) -> Vec<u32> {
        let mut position = free;
        let mut path = vec![self.cell(map, position)];
        loop {
            let parent = self.parents[(position - self.low) as usize];
            if parent == ROOT {
                path.reverse();
                return path;
            }
            position = parent;
            path.push(self.cell(map, position));
        }
    }
}

impl BackwardSearch {
    fn advance(&mut self, map: &mut PlacementMap, budget: &mut u32) -> Option<PlacementPlan> {
        let Some(cell) = self.cell else {
            map.stash.remove(&(self.home, self.entry));
            return Some(PlacementPlan { unstashed: Some(self.entry), ..PlacementPlan::default() });
        };
        if !self.is_begun {
            self.is_begun = true;
            map.displacements[cell as usize] = FREE;
            map.placed -= 1;
            if !map.stash.is_empty() && matches!(map.rule, PlacementRule::ShortestPath { .. }) {
                self.queue.push_back(cell);
                self.next.insert(cell, cell);
            }
        }
        let max_visited = match map.rule {
            PlacementRule::ShortestPath { max_visited } => max_visited as usize,
            PlacementRule::RandomWalk { .. } => 0,
        };
        while *budget > 0 {
            *budget -= 1;
            let open = self.queue.pop_front().filter(|_| self.next.len() <= max_visited);
            let Some(open) = open else {
                return Some(PlacementPlan { writes: vec![CellWrite { cell, entry: None }], ..Default::default() });
            };
            if let Some((home, entry)) = self.stashed_near(map, open) {
                return Some(self.refill(map, open, home, entry));
            }
            self.extend(map, open);
        }
        None
    }

    /// Returns an entry of the stash whose window has the cell.
    fn stashed_near(&self, map: &PlacementMap, cell: u32) -> Option<(u32, EntryId)> {
        let first = map.back(cell, map.layout.window() - 1);
        let among = |from: u32, to: u32| map.stash.range((from, EntryId(0))..=(to, EntryId(u32::MAX))).next().copied();
        if first <= cell { among(first, cell) } else { among(first, map.layout.cells() - 1).or_else(|| among(0, cell)) }
    }

    /// Adds the cells whose occupants could move to `open`.
    fn extend(&mut self, map: &PlacementMap, open: u32) {
        let window = map.layout.window();
        let start = map.back(open, window - 1);
        for ahead in 0..2 * window - 1 {
            let cell = map.layout.wrap(start, ahead);
            let reaches = map.occupant_home(cell).is_some_and(|home| map.layout.distance(home, open) < window);
            if reaches && !self.next.contains_key(&cell) {
                self.next.insert(cell, open);
                self.queue.push_back(cell);
            }
        }
    }

    /// Moves entries along the path to the removed entry's cell, and the entry of the stash to its other end.
    fn refill(&self, map: &mut PlacementMap, open: u32, home: u32, entry: EntryId) -> PlacementPlan {
        let mut path = vec![open];
        let mut cell = open;
        while self.next[&cell] != cell {
            cell = self.next[&cell];
            path.push(cell);
        }
        map.stash.remove(&(home, entry));
        let writes = map.place_along(entry, home, &path);
        PlacementPlan { writes, unstashed: Some(entry), stashed: None }
    }
}
