//! Objects: the state of a program that outlives its packets, and the control plane's operations on it.
//!
//! [`Objects`] copies the properties of the program that it needs, so that control requests are checked without the
//! program. Every request either takes effect as a whole or returns an [`EntryError`] and changes nothing.

mod arrays;
mod batch;
mod changes;
mod control;
mod counter;
mod entries;
mod entry;
mod entry_store;
mod exclusive;
mod execute;
mod groups;
mod inline_arrays;
mod inline_uses;
mod ledger;
mod lookup;
mod meter;
mod metering;
mod paged;
mod profile;
mod random;
mod records;
mod register_words;
mod row_index;
mod row_states;
mod row_tables;
mod rows;
mod shared;
mod snapshots;
mod table;
mod tally;
mod use_times;
mod value_set;
mod workers;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use ::tables::publish::{RcuReader, RcuWriter};
use cranelift_entity::PrimaryMap;
use ir::{ActionId, CounterId, ProfileId, Program, TableId};

pub use changes::ChangedEntry;
pub use counter::CounterValue;
pub use entry::{ActionCall, ActionSpec, EntryError, TableEntry, WeightedCall};
pub use inline_arrays::{
    CELLS_PER_PAGE, InlineArray, InlineRows, InlineWrite, OWNED_ROW, UNACKNOWLEDGED_ROW, USES_PLACE, ZEROS_PLACE,
    inline_arrays,
};
pub use inline_uses::{INLINE_USE_PACKET, INLINE_USE_WRITES, InlineDependency, MAX_INLINE_USES};
pub use ledger::LedgerChange;
pub use meter::{Colour, Meter, MeterConfig};
pub use metering::meter_word;
pub use profile::GroupMember;
pub use records::{Applied, RECORD_ACTION, RECORD_HIT, RECORD_NO_ACTION, record_places};
pub use register_words::SharedWords;
pub use row_states::RowState;
pub use row_tables::MissingRow;
pub use rows::{Dependency, RowRefusal, RowWrite, StateRow};
pub use snapshots::{DIRTY_PAGE, PageStates, PageWrite};
pub use table::{EntryHandle, EntryStats, Installed};
pub use use_times::use_time;

pub(crate) use lookup::SelectedAction;
pub(crate) use profile::choose;
pub(crate) use random::RandomStream;
pub(crate) use row_tables::JudgedMiss;
pub(crate) use table::TableState;

use crate::algorithm::{Algorithms, CrcParams};
use control::{Attached, ControlChange, ControlState, Revision};
use exclusive::Exclusive;
use shared::SharedArrays;
use tally::Tally;
use use_times::UseTimes;

/// Hash map with a fixed seed, so that the same program and requests give the same run. Keys come from the control
/// plane only, so packets cannot provoke collisions.
pub(crate) type FoldMap<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// The state of one instance of a program: tables, profiles, arrays, value sets, and the seed of its random numbers.
///
/// A value of this type is one worker's view of the state. The owner's view serves the control plane and may run
/// packets; [`Objects::worker`] creates further views that run packets beside the owner.
///
/// | state | written by | sharing between workers |
/// |---|---|---|
/// | tables, profiles, value sets, port states, algorithms | owner | versions: [`Objects::publish`], [`Objects::pin`] |
/// | counters, hits and ages of entries | packets | each worker counts separately; the owner adds up on a read |
/// | registers, meters | packets, owner | shared, each access atomic; longer steps use [`Objects::begin_atomic`] |
/// | random numbers | packets | each worker has its own stream |
///
/// Without workers, sharing costs nothing: one copy, changed in place, no lock.
pub struct Objects {
    side: ViewRole,
    sizes: Arc<ProgramSizes>,
    /// Counts of this worker.
    tally: Arc<Tally>,
    /// Counts of the workers; used by the owner.
    tallies: Vec<Arc<Tally>>,
    shared: Arc<SharedArrays>,
    /// Whether there may be other workers.
    several: bool,
    /// The lock of `@atomic` blocks, with this worker's nesting depth.
    exclusive: Exclusive,
    /// Records of the latest profile choices: scratch memory that is valid for the duration of one action.
    chosen: PrimaryMap<TableId, Vec<u64>>,
    random: RandomStream,
    seed: u64,
    /// Number of workers created so far.
    workers: u64,
    /// Latest time seen.
    now_ns: u64,
    /// The rows of `@resilient` state, if they are under ownership.
    rows: Option<Box<rows::Rows>>,
    /// The entries of `@elastic` tables, if rows are under ownership.
    ledgers: Option<Box<ledger::Ledgers>>,
    /// What compiled code needs to use resilient arrays inline: see [`Objects::array_addresses`].
    array_addresses: Vec<u64>,
    use_times: UseTimes,
    /// What the control plane changed, if that is recorded.
    changes: Option<BTreeSet<ChangedEntry>>,
}

/// The role of a view: the owner writes the control plane's state, workers read published versions of it.
enum ViewRole {
    Owner(RcuWriter<ControlState, ControlChange>),
    Worker(RcuReader<ControlState>),
}

impl ViewRole {
    #[inline]
    fn control(&self) -> &ControlState {
        match self {
            ViewRole::Owner(writer) => writer.latest(),
            ViewRole::Worker(reader) => reader.pinned(),
        }
    }
}

/// The properties of the program that the objects need.
#[derive(Debug)]
struct ProgramSizes {
    /// Widths of each action's parameters in bits.
    params: PrimaryMap<ActionId, Vec<u32>>,
    /// Number of elements of counter arrays; `None` for a direct counter.
    counters: PrimaryMap<CounterId, Option<u64>>,
    /// Number of groups of resilient state.
    groups: usize,
}

impl Objects {
    /// Creates the state of a program before the first packet: the program's own entries and default actions, and
    /// arrays of zeros. The random seed is 0.
    pub fn new(program: &Program) -> Self {
        let profile_actions = |profile: ProfileId| {
            let mut tables = program.tables.values().filter(|table| table.profile == Some(profile));
            let usable = |table: &ir::Table| -> Vec<ActionId> {
                table.actions.iter().filter(|action| !action.default_only).map(|action| action.action).collect()
            };
            let mut actions = tables.next().map(usable).unwrap_or_default();
            tables.for_each(|table| actions.retain(|action| usable(table).contains(action)));
            actions
        };
        let width = |param: &ir::ActionParam| program.slots[param.slot].width;
        let params: PrimaryMap<ActionId, Vec<u32>> =
            program.actions.values().map(|action| action.params.iter().map(width).collect()).collect();
        let tables: PrimaryMap<TableId, _> = program
            .tables
            .iter()
            .map(|(id, table)| TableState::new(table, &params, program.has_aging_rows(id)))
            .collect();
        let counters: PrimaryMap<_, _> = program.counters.values().map(|counter| counter.size).collect();
        let mut objects = Objects {
            tally: Arc::new(Tally::new(counters.len(), tables.len())),
            tallies: Vec::new(),
            shared: Arc::new(SharedArrays::new(program)),
            several: false,
            exclusive: Exclusive::new(),
            chosen: tables.values().map(|table| table.records.blank()).collect(),
            sizes: Arc::new(ProgramSizes {
                params,
                counters,
                groups: program.resilient_groups().map_or(0, |all| all.len()),
            }),
            random: RandomStream::new(0),
            seed: 0,
            workers: 0,
            now_ns: 0,
            rows: None,
            ledgers: None,
            array_addresses: Vec::new(),
            use_times: UseTimes::default(),
            changes: None,
            side: ViewRole::Owner(RcuWriter::new(ControlState {
                tables,
                profiles: program
                    .profiles
                    .iter()
                    .map(|(id, profile)| profile::ProfileMembers::new(profile, profile_actions(id)))
                    .collect(),
                value_sets: program.value_sets.values().map(value_set::ValueSetMembers::new).collect(),
                down: BTreeSet::new(),
                algorithms: Algorithms::default(),
                attached: Attached(Arc::new(())),
                revision: Revision::new(),
                other_changes: 0,
            })),
        };
        for (id, table) in &program.tables {
            objects.load_program_entries(id, table);
        }
        objects.renew_array_addresses();
        objects
    }

    /// Returns the version of the control plane's state that packets see now.
    #[inline]
    pub(crate) fn control(&self) -> &ControlState {
        self.side.control()
    }

    /// Returns a number other than 0 that identifies the version of the tables that packets see now, and its copy in
    /// memory: as long as it is the same, the addresses of tables and records are valid. Other views have the same
    /// number only while they see the same copy.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.control().revision.0
    }

    /// Returns the version of the forwarding state: one higher after each change of the control plane, the program's
    /// own entries included. It wraps around.
    pub fn version(&self) -> u32 {
        let ControlState { tables, other_changes, .. } = self.control();
        tables.keys().fold(*other_changes, |sum, table| sum.wrapping_add(self.table_version(table)))
    }

    /// Applies a checked change.
    fn change(&mut self, change: ControlChange) {
        self.note_change(&change);
        match &mut self.side {
            ViewRole::Owner(writer) => writer.change(change),
            ViewRole::Worker(_) => panic!("the control plane speaks to the owner of the objects"),
        }
    }

    /// Seeds the random numbers, and those of later workers.
    pub fn seed(&mut self, seed: u64) {
        (self.seed, self.random) = (seed, RandomStream::new(seed));
    }

    /// Advances the clock, for entries that are written before the next packet. A time in the past is ignored.
    #[inline]
    pub fn advance_clock(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Sets the state of a port, for groups whose members watch ports. Every port is initially up.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        if self.control().down.contains(&port) == up {
            self.change(ControlChange::Port(port, up));
        }
    }

    /// Whether a port is up, for groups whose members watch ports.
    pub fn is_port_up(&self, port: u32) -> bool {
        !self.control().down.contains(&port)
    }

    /// Returns the checksum and hash algorithms.
    pub fn algorithms(&self) -> &Algorithms {
        &self.control().algorithms
    }

    /// Sets the parameters of the custom CRC of 16 bits.
    pub fn set_crc16_custom(&mut self, params: CrcParams) {
        let mut algorithms = self.algorithms().clone();
        algorithms.set_crc16_custom(params);
        self.change(ControlChange::Algorithms(Box::new(algorithms)));
    }

    /// Sets the parameters of the custom CRC of 32 bits.
    pub fn set_crc32_custom(&mut self, params: CrcParams) {
        let mut algorithms = self.algorithms().clone();
        algorithms.set_crc32_custom(params);
        self.change(ControlChange::Algorithms(Box::new(algorithms)));
    }

    /// Checks the arguments of an action.
    fn check_args(&self, call: &ActionCall) -> Result<(), EntryError> {
        let action = call.action;
        let params = self.sizes.params.get(action).map(Vec::as_slice).unwrap_or_default();
        if params.len() != call.args.len() {
            return Err(EntryError::ArgCount { action, want: params.len(), got: call.args.len() });
        }
        for (param, (want, arg)) in params.iter().zip(&call.args).enumerate() {
            if *want != arg.width() {
                return Err(EntryError::ArgWidth { action, param, want: *want, got: arg.width() });
            }
        }
        Ok(())
    }
}

/// Shows exactly the state that distinguishes two values.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("control", self.control())
            .field("tally", &self.tally)
            .field("tallies", &self.tallies)
            .field("shared", &self.shared)
            .field("random", &self.random)
            .field("use_times", &self.use_times)
            .field("now_ns", &self.now_ns)
            .finish_non_exhaustive()
    }
}
