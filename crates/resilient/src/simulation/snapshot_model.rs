//! The rows with snapshots of a simulated switch: a few cells, each a page of its own, that packets change.

use std::collections::{BTreeMap, VecDeque};

use engine::{PageStates, PageWrite};
use switch::Time;

use crate::mutant::{Mutant, Mutation};
use crate::replica::{ReplicaEvent, StateReplica};
use crate::row::{RowId, RowValues};
use crate::snapshots::{SnapshotEvent, SnapshotForm, SnapshotLimits, SnapshotPages, SnapshotReplica};

/// Group of the rows.
const GROUP: u64 = 0x5000;

/// Group of their pages.
const PAGE_GROUP: u64 = 0x5001;

/// Maximum number of packets that wait for a row.
const MAX_PARKED: usize = 32;

/// A packet that changes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotInput {
    /// Its number, which is never used again.
    pub number: usize,
    /// The row.
    pub row: u32,
}

/// Observations of packets of a row, for the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotEffect {
    /// The switch continues with this state of the row.
    Opened { row: u32, state: u64 },
    /// A packet changed the row, at this time of the switch, and its output leaves. This is the state after it.
    Passed { input: SnapshotInput, at: Time, state: u64 },
    /// A packet is dropped: the row is stale, or too many packets wait.
    Dropped(usize),
    /// The switch has lost the row, and the stores may have its last state.
    Lost { row: u32, is_complete: bool },
}

/// A row.
#[derive(Debug)]
struct ModelRow {
    cells: Vec<u64>,
    pages: PageStates,
    copied: BTreeMap<u32, u64>,
    is_changed: bool,
    is_open: bool,
    is_stale: bool,
    parked: VecDeque<SnapshotInput>,
}

/// The rows, as the machine sees them.
#[derive(Debug)]
struct ModelRows {
    rows: Vec<ModelRow>,
    mutation: Mutation,
}

/// The rows with snapshots of a switch.
#[derive(Debug)]
pub struct SnapshotModel {
    machine: SnapshotReplica,
    rows: ModelRows,
}

/// Returns the settings of rows with this number of pages.
pub fn form(pages: u32, every_ns: u64, bound_ns: Option<u64>) -> SnapshotForm {
    SnapshotForm { pages, page_bytes: 8, page_group: PAGE_GROUP, every_ns, bound_ns }
}

/// Returns a number that encodes the values of all cells.
pub fn state_of(cells: &[u64]) -> u64 {
    cells.iter().fold(0, |state, cell| rng::mix([state, *cell, 0]))
}

fn index(row: &RowId) -> usize {
    row.key().try_into().map_or(0, |key| u32::from_be_bytes(key) as usize)
}

impl ModelRow {
    fn new(pages: u32) -> ModelRow {
        ModelRow {
            cells: vec![0; pages as usize],
            pages: PageStates::new(pages as usize),
            copied: BTreeMap::new(),
            is_changed: false,
            is_open: false,
            is_stale: false,
            parked: VecDeque::new(),
        }
    }

    /// Changes a cell. Returns whether it is the first change since the last cut.
    fn write(&mut self, page: usize, number: usize, mutation: Mutation) -> bool {
        if self.pages.before_write(page) == PageWrite::CopyFirst {
            let copy = if mutation.is(Mutant::PageNotCopied) { self.changed(page, number) } else { self.cells[page] };
            self.copied.insert(page as u32, copy);
        }
        self.cells[page] = self.changed(page, number);
        !std::mem::replace(&mut self.is_changed, true)
    }

    fn changed(&self, page: usize, number: usize) -> u64 {
        rng::mix([self.cells[page], number as u64 + 1, 1])
    }

    fn forget(&mut self) {
        (self.is_open, self.is_stale, self.is_changed) = (false, false, false);
        self.copied.clear();
        self.pages.reset(0..self.cells.len());
    }
}

impl SnapshotPages for ModelRows {
    fn begin_cut(&mut self, row: &RowId) -> Vec<u32> {
        let row = &mut self.rows[index(row)];
        row.is_changed = false;
        row.pages.begin_cut(0..row.cells.len()).into_iter().map(|page| page as u32).collect()
    }

    fn cut_page(&mut self, row: &RowId, page: u32) -> RowValues {
        let row = &mut self.rows[index(row)];
        let copied = row.copied.remove(&page);
        let value = if row.pages.take(page as usize) { row.cells[page as usize] } else { copied.unwrap_or_default() };
        RowValues::new(&value.to_be_bytes()).unwrap_or_default()
    }

    fn set_page(&mut self, row: &RowId, page: u32, bytes: Option<&[u8]>) -> bool {
        let value = match bytes.map(<[u8; 8]>::try_from) {
            None => 0,
            Some(Ok(bytes)) => u64::from_be_bytes(bytes),
            Some(Err(_)) => return false,
        };
        self.rows[index(row)].cells[page as usize] = value;
        true
    }
}

impl SnapshotModel {
    /// Creates a switch's rows.
    pub fn new(rows: u32, (form, window): (SnapshotForm, usize), mutation: Mutation) -> SnapshotModel {
        let limits = SnapshotLimits { pages_per_tick: 2, window };
        let machine = SnapshotReplica::new([(GROUP, form)].into(), limits, mutation);
        let rows = (0..rows).map(|_| ModelRow::new(form.pages)).collect();
        SnapshotModel { machine, rows: ModelRows { rows, mutation } }
    }

    /// Whether events of this row are for [`SnapshotModel::take`].
    pub fn has(&self, row: &RowId) -> bool {
        self.machine.has(row)
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        self.machine.next_deadline()
    }

    /// Handles an event of the replica.
    pub fn take(&mut self, now: Time, replica: &mut StateReplica, event: &ReplicaEvent) {
        self.machine.take(now, replica, &mut self.rows, event);
    }

    /// Performs the work that is due, and runs waiting packets.
    pub fn tick(&mut self, now: Time, replica: &mut StateReplica, effects: &mut Vec<SnapshotEffect>) {
        self.machine.tick(now, replica, &mut self.rows);
        self.act(now, replica, effects);
    }

    /// Handles a packet.
    pub fn input(
        &mut self,
        now: Time,
        replica: &mut StateReplica,
        input: SnapshotInput,
        effects: &mut Vec<SnapshotEffect>,
    ) {
        let row = &mut self.rows.rows[input.row as usize];
        if row.is_open {
            return self.run(now, replica, input, effects);
        }
        if row.parked.len() < MAX_PARKED {
            row.parked.push_back(input);
            self.machine.acquire(now, replica, RowId::of_index(GROUP, input.row));
        } else {
            effects.push(SnapshotEffect::Dropped(input.number));
        }
    }

    fn run(&mut self, now: Time, replica: &mut StateReplica, input: SnapshotInput, effects: &mut Vec<SnapshotEffect>) {
        let (id, mutation) = (RowId::of_index(GROUP, input.row), self.rows.mutation);
        let row = &mut self.rows.rows[input.row as usize];
        if row.is_stale {
            effects.push(SnapshotEffect::Dropped(input.number));
            return;
        }
        let pages = row.cells.len();
        let (first, second) = (input.number % pages, (input.number / pages) % pages);
        let mut is_first = row.write(first, input.number, mutation);
        if mutation.is(Mutant::CutInPass) {
            if is_first {
                self.machine.changed(now, &id);
            }
            self.machine.tick(now, replica, &mut self.rows);
            is_first = false;
        }
        let row = &mut self.rows.rows[input.row as usize];
        is_first |= row.write(second, input.number, mutation);
        effects.push(SnapshotEffect::Passed { input, at: now, state: state_of(&row.cells) });
        if is_first {
            self.machine.changed(now, &id);
        }
    }

    /// Carries out the effects of the machine.
    pub fn act(&mut self, now: Time, replica: &mut StateReplica, effects: &mut Vec<SnapshotEffect>) {
        loop {
            let events = self.machine.take_events();
            if events.is_empty() {
                return;
            }
            events.into_iter().for_each(|event| self.event(now, replica, event, effects));
        }
    }

    fn event(
        &mut self,
        now: Time,
        replica: &mut StateReplica,
        event: SnapshotEvent,
        effects: &mut Vec<SnapshotEffect>,
    ) {
        match event {
            SnapshotEvent::Opened(id) => {
                let row = &mut self.rows.rows[index(&id)];
                row.is_open = true;
                effects.push(SnapshotEffect::Opened { row: index(&id) as u32, state: state_of(&row.cells) });
                for input in std::mem::take(&mut row.parked) {
                    self.run(now, replica, input, effects);
                }
                self.machine.unpin(now, replica, &mut self.rows, &id);
            }
            SnapshotEvent::Closed(id) => self.rows.rows[index(&id)].is_open = false,
            SnapshotEvent::Stale(id, is_stale) => self.rows.rows[index(&id)].is_stale = is_stale,
            SnapshotEvent::Refused(id, _) => {
                let parked = std::mem::take(&mut self.rows.rows[index(&id)].parked);
                effects.extend(parked.iter().map(|input| SnapshotEffect::Dropped(input.number)));
            }
            SnapshotEvent::Lost { row: id, is_complete } => {
                let row = &mut self.rows.rows[index(&id)];
                row.forget();
                effects.push(SnapshotEffect::Lost { row: index(&id) as u32, is_complete });
                if !row.parked.is_empty() {
                    self.machine.acquire(now, replica, id);
                }
            }
        }
    }
}
