//! The state of a program that outlives its packets, and what the control plane may do to it.
//!
//! [`Objects`] keeps what it needs to know of the program, so that a control request is checked without it. Every
//! request either takes effect as a whole or returns an [`EntryError`] and changes nothing.

mod array;
mod arrays;
mod entries;
mod entry;
mod execute;
mod groups;
mod lookup;
mod meter;
mod profile;
mod random;
mod records;
mod table;
mod value_set;

use std::collections::{BTreeSet, HashMap};

use cranelift_entity::PrimaryMap;
use ir::{ActionId, CounterId, MeterId, ProfileId, Program, RegisterId, TableId, Unit, ValueSetId};

pub use array::CounterValue;
pub use entry::{ActionCall, ActionSpec, EntryError, TableEntry, WeightedCall};
pub use meter::{Colour, Meter, MeterConfig};
pub use profile::GroupMember;
pub use table::Installed;

pub(crate) use array::{Cells, Registers};
pub use records::{Applied, RECORD_ACTION, RECORD_HIT, RECORD_NO_ACTION, record_places};

pub(crate) use profile::choose;
pub(crate) use random::Random;
pub(crate) use table::TableState;

use crate::algorithm::Algorithms;

/// Hash maps with a fixed seed: the same program and requests give the same run. Keys come from the control plane
/// only, so that packets cannot choose them to collide.
pub(crate) type FoldMap<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// The state of one instance of a program: tables, profiles, arrays, value sets, and the seed of its random numbers.
#[derive(Debug)]
pub struct Objects {
    pub(crate) tables: PrimaryMap<TableId, TableState>,
    pub(crate) profiles: PrimaryMap<ProfileId, profile::Members>,
    pub(crate) registers: PrimaryMap<RegisterId, Registers>,
    /// Arrays; a direct counter has none.
    pub(crate) counters: PrimaryMap<CounterId, Option<Cells<CounterValue>>>,
    /// Arrays and units; a direct meter has no array.
    pub(crate) meters: PrimaryMap<MeterId, (Unit, Option<Cells<Meter>>)>,
    pub(crate) value_sets: PrimaryMap<ValueSetId, value_set::Members>,
    /// Widths of each action's parameters.
    params: PrimaryMap<ActionId, Vec<u32>>,
    /// Ports that are down, for the groups that watch them.
    pub(crate) down: BTreeSet<u32>,
    pub(crate) algorithms: Algorithms,
    pub(crate) random: Random,
    /// The latest time seen.
    pub(crate) now_ns: u64,
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
        let widths: PrimaryMap<ActionId, Vec<u32>> =
            program.actions.values().map(|action| action.params.iter().map(width).collect()).collect();
        let mut objects = Objects {
            tables: program.tables.values().map(|table| TableState::new(table, &widths)).collect(),
            profiles: program
                .profiles
                .iter()
                .map(|(id, profile)| profile::Members::new(profile, profile_actions(id)))
                .collect(),
            registers: program.registers.values().map(Registers::new).collect(),
            counters: program
                .counters
                .values()
                .map(|counter| counter.size.map(|size| Cells::new(size, CounterValue::default())))
                .collect(),
            meters: program
                .meters
                .values()
                .map(|meter| (meter.unit, meter.size.map(|size| Cells::new(size, Meter::default()))))
                .collect(),
            value_sets: program.value_sets.values().map(value_set::Members::new).collect(),
            params: widths,
            down: BTreeSet::new(),
            algorithms: Algorithms::default(),
            random: Random::new(0),
            now_ns: 0,
        };
        for (id, table) in &program.tables {
            objects.load_program_entries(id, table);
        }
        objects
    }

    /// Starts the random numbers anew.
    pub fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Tells the time, for entries that are written before the next packet. Time that goes back is ignored.
    pub fn advance_clock(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Tells whether a port is up, for the groups whose members watch ports. Every port is up to begin with.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        if up {
            self.down.remove(&port);
        } else {
            self.down.insert(port);
        }
    }

    /// Checksums and hashes, to set the parameters of the custom ones.
    pub fn algorithms_mut(&mut self) -> &mut Algorithms {
        &mut self.algorithms
    }

    /// Checks the arguments of an action.
    fn check_args(&self, call: &ActionCall) -> Result<(), EntryError> {
        let action = call.action;
        let params = self.params.get(action).map(Vec::as_slice).unwrap_or_default();
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
