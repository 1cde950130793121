//! Placement: the stash is the smallest possible, and each step of each change leaves every entry in a cell.

use std::collections::BTreeMap;

use elastic::cell::CellForm;
use elastic::layout::{LayoutKind, TableLayout};
use elastic::placement::{EntryId, PlacementMap, PlacementRule, expected_overflow, least_stash};
use rng::SplitMix64;

fn layout(kind: LayoutKind, cells: u32) -> TableLayout {
    TableLayout::new(kind, CellForm::new(13, 7), 1, cells)
}

fn windows(window: u32, cells: u32) -> TableLayout {
    layout(LayoutKind::Windows { cells: window }, cells)
}

/// Fills a table to a load with random homes. Returns the map and the homes.
fn filled(layout: &TableLayout, load: f64, seed: u64) -> (PlacementMap, Vec<u32>) {
    let mut map = PlacementMap::new(layout.clone(), PlacementRule::default(), 1);
    let mut random = SplitMix64::new(seed);
    let entries = (f64::from(layout.cells()) * load) as u32;
    let homes: Vec<u32> = (0..entries).map(|_| layout.home(random.next_u64())).collect();
    for (id, home) in homes.iter().enumerate() {
        map.insert(EntryId(id as u32), *home);
    }
    (map, homes)
}

#[test]
fn the_stash_is_the_least_possible_and_about_one_in_a_thousand_at_the_stated_loads() {
    for (window, load, cells) in [(4, 0.377, 300_000), (8, 0.675, 300_000), (16, 0.85, 300_000)] {
        let layout = windows(window, cells);
        let (map, homes) = filled(&layout, load, u64::from(window));
        let least = least_stash(&homes, layout.cells(), window).expect("the load is below 1");
        assert_eq!(map.stashed(), least, "window {window}");
        assert_eq!(map.placed() as usize + map.stashed(), homes.len());
        assert_eq!(map.counts().cut_off, 0);
        let share = least as f64 / homes.len() as f64;
        let expected = expected_overflow(load, window, 1);
        assert!((share / expected - 1.0).abs() < 0.25, "window {window}: {share}, expected {expected}");
        assert!((0.0009..0.0011).contains(&expected), "window {window}: {expected}");
        // With two buckets, a READ of the same size carries a smaller load.
        assert!(expected_overflow(load, window, window / 2) > 1.8 * expected);
    }
}

#[test]
fn two_buckets_overflow_as_expected() {
    for (bucket, load) in [(2, 0.297), (4, 0.567)] {
        let layout = layout(LayoutKind::TwoBuckets { cells: bucket, scratchpad_bytes: 1500 }, 240_000);
        let (map, homes) = filled(&layout, load, 3);
        let share = map.stashed() as f64 / homes.len() as f64;
        let expected = expected_overflow(load, 2 * bucket, bucket);
        assert!((share / expected - 1.0).abs() < 0.35, "{share}, expected {expected}");
    }
}

#[test]
fn the_walk_of_the_paper_needs_a_larger_stash_and_loses_nothing() {
    let layout = layout(LayoutKind::TwoBuckets { cells: 4, scratchpad_bytes: 0 }, 24_000);
    let stash = |rule| {
        let mut map = PlacementMap::new(layout.clone(), rule, 5);
        let mut random = SplitMix64::new(6);
        let homes: Vec<u32> = (0..18_000).map(|_| layout.home(random.next_u64())).collect();
        for (id, home) in homes.iter().enumerate() {
            map.insert(EntryId(id as u32), *home);
        }
        let placed = homes.iter().enumerate().filter(|(id, home)| map.cell_of(EntryId(*id as u32), **home).is_some());
        assert_eq!(placed.count() + map.stashed(), homes.len());
        map.stashed()
    };
    let walks = [0, 4, 64].map(|max_tries| stash(PlacementRule::RandomWalk { max_tries }));
    let least = stash(PlacementRule::default());
    assert!(walks[0] > walks[1] && walks[1] > walks[2] && walks[2] >= least, "{walks:?}, {least}");
}

/// Memory as a reader sees it: the entry in each cell.
struct ReaderModel {
    layout: TableLayout,
    memory: Vec<Option<EntryId>>,
}

impl ReaderModel {
    fn finds(&self, entry: EntryId, home: u32) -> bool {
        (0..self.layout.window()).any(|ahead| self.memory[self.layout.wrap(home, ahead) as usize] == Some(entry))
    }
}

/// Changes a nearly full table at random. After each single write, a reader finds every entry that is placed.
fn change_under_a_reader(layout: &TableLayout, rule: PlacementRule, seed: u64) -> u64 {
    let mut random = SplitMix64::new(seed);
    let mut map = PlacementMap::new(layout.clone(), rule, seed);
    let mut reader = ReaderModel { layout: layout.clone(), memory: vec![None; layout.cells() as usize] };
    let mut homes: BTreeMap<EntryId, u32> = BTreeMap::new();
    let mut stash: Vec<EntryId> = Vec::new();
    let mut paths = 0;
    for number in 0..400 {
        let is_insert = homes.len() < layout.cells() as usize && random.percent(70);
        let plan = if is_insert || homes.is_empty() {
            let (entry, home) = (EntryId(number), layout.home(random.next_u64()));
            // The entry itself is found in the overlay until its last write.
            let plan = map.insert(entry, home);
            follow(&plan, &mut reader, &homes, &stash, Some(entry));
            homes.insert(entry, home);
            plan
        } else {
            let entry = *homes.keys().nth(random.below(homes.len() as u64) as usize).expect("there are entries");
            let home = homes.remove(&entry).expect("it was listed");
            let plan = map.remove(entry, home);
            follow(&plan, &mut reader, &homes, &stash, None);
            plan
        };
        stash.extend(plan.stashed);
        stash.retain(|entry| plan.unstashed != Some(*entry));
        paths += u64::from(plan.writes.len() > 1);
        assert_eq!(stash.len(), map.stashed());
        for (entry, home) in homes.iter().filter(|(entry, _)| !stash.contains(entry)) {
            assert!(reader.finds(*entry, *home) && map.cell_of(*entry, *home).is_some(), "{entry:?}");
        }
        let planned: Vec<_> = (0..layout.cells()).map(|cell| map.occupant(cell)).collect();
        assert_eq!(planned, reader.memory, "the map is not what was written");
        if matches!(rule, PlacementRule::ShortestPath { .. }) && layout.home_distance() == 1 {
            let homes: Vec<u32> = homes.values().copied().collect();
            let least = least_stash(&homes, layout.cells(), layout.window());
            assert!(least.is_none_or(|least| map.stashed() == least), "seed {seed}");
        }
    }
    paths
}

fn follow(
    plan: &elastic::placement::PlacementPlan,
    reader: &mut ReaderModel,
    homes: &BTreeMap<EntryId, u32>,
    stash: &[EntryId],
    own: Option<EntryId>,
) {
    for (at, write) in plan.writes.iter().enumerate() {
        assert!(plan.writes[..at].iter().all(|earlier| earlier.cell != write.cell), "a cell is written twice");
        reader.memory[write.cell as usize] = write.entry;
        let in_overlay = |entry: &EntryId| stash.contains(entry) || own == Some(*entry);
        for (entry, home) in homes.iter().filter(|(entry, _)| !in_overlay(entry)) {
            assert!(reader.finds(*entry, *home), "{entry:?} is nowhere after write {at} of {plan:?}");
        }
    }
}

#[test]
fn each_write_leaves_every_entry_in_a_cell() {
    let mut paths = 0;
    for seed in 0..40 {
        let window = 2 + seed as u32 % 5;
        paths += change_under_a_reader(&windows(window, 48), PlacementRule::default(), seed);
        let buckets = layout(LayoutKind::TwoBuckets { cells: 1 + seed as u32 % 3, scratchpad_bytes: 0 }, 48);
        paths += change_under_a_reader(&buckets, PlacementRule::default(), seed);
        paths += change_under_a_reader(&buckets, PlacementRule::RandomWalk { max_tries: 5 }, seed);
    }
    assert!(paths > 1000, "only {paths} changes moved an entry");
}

#[test]
fn a_change_in_steps_is_the_same_as_in_one() {
    let layout = windows(4, 240);
    let mut random = SplitMix64::new(9);
    let mut whole = PlacementMap::new(layout.clone(), PlacementRule::default(), 1);
    let mut steps = PlacementMap::new(layout.clone(), PlacementRule::default(), 1);
    let mut longest = 0;
    for id in 0..230 {
        let home = layout.home(random.next_u64());
        steps.begin_insert(EntryId(id), home);
        let mut calls = 0;
        let plan = loop {
            calls += 1;
            let mut budget = 2;
            if let Some(plan) = steps.advance(&mut budget) {
                break plan;
            }
        };
        longest = longest.max(calls);
        assert_eq!(plan, whole.insert(EntryId(id), home));
    }
    assert!(longest > 10, "every search was short");
}

#[test]
fn a_search_that_is_cut_off_goes_to_the_stash_and_is_counted() {
    let layout = windows(2, 240);
    let mut map = PlacementMap::new(layout.clone(), PlacementRule::ShortestPath { max_visited: 4 }, 1);
    for id in 0..100 {
        map.insert(EntryId(id), id);
        map.insert(EntryId(1000 + id), id);
    }
    assert!(map.counts().cut_off > 0 && map.stashed() as u64 >= map.counts().cut_off);
    assert_eq!(map.placed() as usize + map.stashed(), 200);
}

#[test]
fn a_full_circle_ends_each_search() {
    let layout = windows(3, 12);
    let mut map = PlacementMap::new(layout.clone(), PlacementRule::default(), 1);
    for id in 0..30 {
        map.insert(EntryId(id), id % 12);
    }
    assert_eq!((map.placed(), map.stashed()), (12, 18));
    for id in 0..18 {
        let home = id % 12;
        let plan = map.remove(EntryId(id), home);
        assert!(plan.unstashed.is_some(), "an entry of the stash takes the cell, or was removed");
    }
    assert_eq!((map.placed(), map.stashed()), (12, 0));
}
