//! Records the states of rows with snapshots, and judges the states with which switches continue.

use std::collections::BTreeMap;

use switch::Time;

use super::Violation;
use super::snapshot_model::{SnapshotEffect, SnapshotInput, state_of};

/// The time in which one switch had a row.
#[derive(Debug)]
struct RowTenure {
    /// The state at its beginning, and after each packet, with the switch's time.
    states: Vec<(Time, u64)>,
    /// Whether the switch gave the row back with its last state.
    is_complete: bool,
}

/// The tenures of all rows.
#[derive(Debug)]
pub struct SnapshotHistory {
    tenures: BTreeMap<u32, RowTenure>,
    bound_ns: Option<u64>,
    pages: u32,
    outcomes: Vec<Option<bool>>,
    restored: usize,
    violations: Vec<Violation>,
}

impl SnapshotHistory {
    /// Creates an empty history of rows with this number of pages.
    pub fn new(pages: u32, bound_ns: Option<u64>) -> SnapshotHistory {
        SnapshotHistory {
            tenures: BTreeMap::new(),
            bound_ns,
            pages,
            outcomes: Vec::new(),
            restored: 0,
            violations: Vec::new(),
        }
    }

    /// Records the arrival of a packet, and returns its number.
    pub fn called(&mut self) -> usize {
        self.outcomes.push(None);
        self.outcomes.len() - 1
    }

    /// Records and judges an effect. Effects are in the order of true time.
    pub fn take(&mut self, effect: SnapshotEffect) {
        match effect {
            SnapshotEffect::Opened { row, state } => self.opened(row, state),
            SnapshotEffect::Passed { input: SnapshotInput { number, row }, at, state } => {
                self.outcomes[number] = Some(true);
                self.tenures.get_mut(&row).iter_mut().for_each(|tenure| tenure.states.push((at, state)));
            }
            SnapshotEffect::Dropped(number) => self.outcomes[number] = Some(false),
            SnapshotEffect::Lost { row, is_complete } => {
                self.tenures.get_mut(&row).iter_mut().for_each(|tenure| tenure.is_complete = is_complete);
            }
        }
    }

    /// Judges a state with which a switch continues: the former switch must have had it, and not too long before its
    /// last packet.
    fn opened(&mut self, row: u32, state: u64) {
        let new = RowTenure { states: vec![(Time::ZERO, state)], is_complete: false };
        let Some(former) = self.tenures.insert(row, new) else {
            if state != state_of(&vec![0; self.pages as usize]) {
                self.violations.push(Violation::NoCut(row));
            }
            return;
        };
        self.restored += 1;
        let states = &former.states;
        let Some(at) = states.iter().rposition(|(_, before)| *before == state) else {
            return self.violations.push(Violation::NoCut(row));
        };
        let Some((first_lost, _)) = states.get(at + 1) else { return };
        let last = states.last().map_or(*first_lost, |(last, _)| *last);
        if former.is_complete {
            self.violations.push(Violation::LostInMove(row));
        } else if self.bound_ns.is_some_and(|bound_ns| last.since_ns(*first_lost) > bound_ns) {
            self.violations.push(Violation::TooOld(row));
        }
    }

    /// Records the packets from number `first` that have run nowhere and were not dropped.
    pub fn expect_outcomes(&mut self, first: usize) {
        let lost = self.outcomes[first..].iter().filter(|outcome| outcome.is_none()).count();
        self.violations.extend((0..lost.min(1)).map(|_| Violation::NoOutput(0)));
    }

    /// Returns the numbers of packets, of those that have passed, and of restored rows; and the violations.
    pub fn finish(self) -> (usize, usize, usize, Vec<Violation>) {
        let passed = self.outcomes.iter().filter(|outcome| **outcome == Some(true)).count();
        (self.outcomes.len(), passed, self.restored, self.violations)
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }
}
