//! The state of a program that outlives its packets, and what the control plane may do to it.
//!
//! [`Objects`] keeps what it needs to know of the program, so that a control request is checked without it. Every
//! request either takes effect as a whole or returns an [`EntryError`] and changes nothing.

mod arrays;
mod batch;
mod control;
mod counter;
mod entries;
mod entry;
mod exclusive;
mod execute;
mod groups;
mod lookup;
mod meter;
mod metering;
mod paged;
mod profile;
mod random;
mod records;
mod shared;
mod table;
mod tally;
mod value_set;
mod workers;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use ::tables::publish::{Reader, Writer};
use cranelift_entity::PrimaryMap;
use ir::{ActionId, CounterId, ProfileId, Program, TableId};

pub use counter::CounterValue;
pub use entry::{ActionCall, ActionSpec, EntryError, TableEntry, WeightedCall};
pub use meter::{Colour, Meter, MeterConfig};
pub use profile::GroupMember;
pub use records::{Applied, RECORD_ACTION, RECORD_HIT, RECORD_NO_ACTION, record_places};
pub use table::Installed;

pub(crate) use profile::choose;
pub(crate) use random::Random;
pub(crate) use table::TableState;

use crate::algorithm::{Algorithms, CrcParams};
use control::{Attached, Change, Control, Revision};
use exclusive::Exclusive;
use shared::Shared;
use tally::Tally;

/// Hash maps with a fixed seed: the same program and requests give the same run. Keys come from the control plane
/// only, so that packets cannot choose them to collide.
pub(crate) type FoldMap<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// The state of one instance of a program: tables, profiles, arrays, value sets, and the seed of its random numbers.
///
/// It is what one worker sees of it: the owner's, whom the control plane speaks to and who may run packets, or that of
/// a worker that [`Objects::worker`] made to run packets beside the owner.
///
/// | state | who writes it | how workers share it |
/// |---|---|---|
/// | tables, profiles, value sets, ports that are up, algorithms | owner | versions: [`Objects::publish`], [`Objects::pin`] |
/// | counters, hits and ages of entries | packets | each worker counts for itself; the owner adds up when it is asked |
/// | registers, meters | packets, owner | all reach the same elements, and each access is whole; what is to be one step begins with [`Objects::begin_atomic`] |
/// | random numbers | packets | each worker has a stream of its own |
///
/// Until there is a worker, all of this costs nothing: one copy, changed in place, no lock.
pub struct Objects {
    side: Side,
    facts: Arc<Facts>,
    /// What this worker counts.
    tally: Arc<Tally>,
    /// At the owner, what the workers count.
    tallies: Vec<Arc<Tally>>,
    shared: Arc<Shared>,
    /// Whether others may be at work.
    several: bool,
    /// What `@atomic` blocks hold.
    exclusive: Exclusive,
    /// Records of what profiles chose last: memory that is lent for the length of one action, and no state.
    chosen: PrimaryMap<TableId, Vec<u64>>,
    random: Random,
    seed: u64,
    /// How many workers have been made.
    workers: u64,
    /// The latest time seen.
    now_ns: u64,
}

/// Who changes what the control plane writes, and who sees it version by version.
enum Side {
    Owner(Writer<Control, Change>),
    Worker(Reader<Control>),
}

/// What objects know of the program.
#[derive(Debug)]
struct Facts {
    /// Widths of each action's parameters.
    params: PrimaryMap<ActionId, Vec<u32>>,
    /// Elements of arrays; a direct counter has none.
    counters: PrimaryMap<CounterId, Option<u64>>,
}

impl Objects {
    /// The state of a program that has seen no packet: the program's own entries and default actions, arrays of
    /// zeros. Random numbers are those of seed 0.
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
        let tables: PrimaryMap<TableId, _> =
            program.tables.values().map(|table| TableState::new(table, &params)).collect();
        let counters: PrimaryMap<_, _> = program.counters.values().map(|counter| counter.size).collect();
        let mut objects = Objects {
            tally: Arc::new(Tally::new(counters.len(), tables.len())),
            tallies: Vec::new(),
            shared: Arc::new(Shared::new(program)),
            several: false,
            exclusive: Exclusive::new(),
            chosen: tables.values().map(|table| table.records.blank()).collect(),
            facts: Arc::new(Facts { params, counters }),
            random: Random::new(0),
            seed: 0,
            workers: 0,
            now_ns: 0,
            side: Side::Owner(Writer::new(Control {
                tables,
                profiles: program
                    .profiles
                    .iter()
                    .map(|(id, profile)| profile::Members::new(profile, profile_actions(id)))
                    .collect(),
                value_sets: program.value_sets.values().map(value_set::Members::new).collect(),
                down: BTreeSet::new(),
                algorithms: Algorithms::default(),
                attached: Attached(Arc::new(())),
                revision: Revision::new(),
            })),
        };
        for (id, table) in &program.tables {
            objects.load_program_entries(id, table);
        }
        objects
    }

    /// The version of what the control plane writes that packets see now.
    #[inline]
    pub(crate) fn control(&self) -> &Control {
        match &self.side {
            Side::Owner(writer) => writer.latest(),
            Side::Worker(reader) => reader.pinned(),
        }
    }

    /// A number, not 0, that says which version of tables packets see now, and which copy of it: as long as it is the
    /// same, tables and records are where they were. Other objects only have it while they see the very same copy.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.control().revision.0
    }

    /// Makes a checked change.
    fn change(&mut self, change: Change) {
        match &mut self.side {
            Side::Owner(writer) => writer.change(change),
            Side::Worker(_) => panic!("the control plane speaks to the owner of the objects"),
        }
    }

    /// Starts the random numbers anew, and those of workers to come.
    pub fn seed(&mut self, seed: u64) {
        (self.seed, self.random) = (seed, Random::new(seed));
    }

    /// Tells the time, for entries that are written before the next packet. Time that goes back is ignored.
    #[inline]
    pub fn advance_clock(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Tells whether a port is up, for the groups whose members watch ports. Every port is up to begin with.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        if self.control().down.contains(&port) == up {
            self.change(Change::Port(port, up));
        }
    }

    /// The checksums and hashes.
    pub fn algorithms(&self) -> &Algorithms {
        &self.control().algorithms
    }

    /// Sets the parameters of the custom CRC of 16 bits.
    pub fn set_crc16_custom(&mut self, params: CrcParams) {
        let mut algorithms = self.algorithms().clone();
        algorithms.set_crc16_custom(params);
        self.change(Change::Algorithms(Box::new(algorithms)));
    }

    /// Sets the parameters of the custom CRC of 32 bits.
    pub fn set_crc32_custom(&mut self, params: CrcParams) {
        let mut algorithms = self.algorithms().clone();
        algorithms.set_crc32_custom(params);
        self.change(Change::Algorithms(Box::new(algorithms)));
    }

    /// Checks the arguments of an action.
    fn check_args(&self, call: &ActionCall) -> Result<(), EntryError> {
        let action = call.action;
        let params = self.facts.params.get(action).map(Vec::as_slice).unwrap_or_default();
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

/// Everything that tells two states apart, and nothing else.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("control", self.control())
            .field("tally", &self.tally)
            .field("tallies", &self.tallies)
            .field("shared", &self.shared)
            .field("random", &self.random)
            .field("now_ns", &self.now_ns)
            .finish_non_exhaustive()
    }
}
