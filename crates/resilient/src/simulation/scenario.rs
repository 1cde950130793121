//! The parameters of a run, all drawn from its seed.

use rng::SplitMix64;

use super::snapshot_model;
use crate::carried::HoldMode;
use crate::holders::RowAccess;
use crate::mutant::{Mutant, Mutation};
use crate::replica::ReplicaConfig;
use crate::snapshots::SnapshotForm;
use crate::store::StoreConfig;
use crate::wire_form::MAX_PAYLOAD;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// Parameters of a run. Chances are in per mille of messages or of the intervals at which faults are drawn.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Number of switches.
    pub switches: u32,
    /// Number of store nodes, including spare ones.
    pub nodes: u32,
    /// Number of nodes that a chain should have.
    pub chain_length: usize,
    /// Whether the operator also removes the last node that has everything. Rows may then be unavailable, never wrong.
    pub is_operator_reckless: bool,
    /// Number of operators that run at the same time. One is enough; several must do no harm.
    pub operators: u32,
    /// Whether the operators create the first layout. If not, it exists at the start.
    pub is_unfounded: bool,
    /// Number of requests without an answer after which the operators consider a node dead.
    pub suspect_after: u32,
    /// Longest time until a layout is committed.
    pub keeper_ns: u64,
    /// Number of shards.
    pub shards: u16,
    /// Number of rows.
    pub rows: u32,
    /// Number of keys that get a number.
    pub keys: u32,
    /// Number of numbers.
    pub numbers: u32,
    /// The snapshots of the rows, if they are replicated by snapshots.
    pub snapshots: Option<SnapshotForm>,
    /// Maximum number of pages that are sent without an acknowledgement.
    pub snapshot_window: usize,
    /// Share of lookups, in percent of the inputs.
    pub lookups: u64,
    /// Idle time of rows that are looked up, in milliseconds; 0 if they do not age.
    pub idle_ms: u32,
    /// Whether packets use other keys after a while.
    pub has_new_keys: bool,
    /// Time with faults.
    pub faults_ns: u64,
    /// Mean time between inputs.
    pub input_ns: u64,
    /// Share of reads, in percent of the inputs.
    pub reads: u64,
    /// Share of inputs that do not come to the home of their row, in percent.
    pub away: u64,
    /// The use for which switches ask for a row when an input only reads it.
    pub read_access: RowAccess,
    /// Whether the home of a row gets reads almost only. They need no store until the lease ends.
    pub homes_read: bool,
    /// Whether a switch that was paused receives packets before messages.
    pub receives_packets_first: bool,
    /// Whether rows are removed, too.
    pub has_removals: bool,
    /// Shortest delay of a message.
    pub delay_ns: u64,
    /// Mean of the random part of the delay.
    pub jitter_ns: u64,
    /// Chance that a message is lost.
    pub loss: u64,
    /// Chance that a message arrives twice.
    pub duplication: u64,
    /// Chance that a message is late.
    pub lateness: u64,
    /// Longest delay of a message that is late.
    pub late_ns: u64,
    /// Whether a partition usually separates the home of a row from the store for longer than a lease.
    pub prefers_long_partitions: bool,
    /// Chances of a fault in each interval.
    pub faults: FaultChances,
    /// Maximum error of clocks.
    pub drift_ppm: u32,
    /// Longest time that a disk takes for a record.
    pub disk_ns: u64,
    /// Settings of the switches.
    pub replica: ReplicaConfig,
    /// Settings of the nodes.
    pub store: StoreConfig,
}

/// Chances of faults, in per mille of the intervals at which they are drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultChances {
    /// A switch crashes.
    pub switch_crash: u64,
    /// A store node crashes.
    pub node_crash: u64,
    /// A machine stops for a while, and its clock advances.
    pub pause: u64,
    /// A machine does not reach another one, or none, for a while.
    pub partition: u64,
    /// The home of a row moves.
    pub move_row: u64,
    /// The operator takes a living node for dead.
    pub suspicion: u64,
    /// An operator crashes and restarts.
    pub operator_crash: u64,
    /// A user gives the operator a command.
    pub command: u64,
}

impl Scenario {
    /// Draws the parameters.
    pub fn draw(random: &mut SplitMix64, mutant: Option<Mutant>) -> Scenario {
        let mutation = Mutation::of(mutant);
        let drift_ppm = random.pick(&[(1, 500), (1, 20_000), (2, 200_000)]);
        let lease_ns = 20 * MILLISECOND;
        let jitter_ns = random.pick(&[(1, 1), (1, 50 * MICROSECOND), (1, MILLISECOND)]);
        let retransmit_ns = random.pick(&[(1, MILLISECOND), (1, 3 * MILLISECOND)]) + 2 * jitter_ns;
        let replica = ReplicaConfig { lease_ns, retransmit_ns, mutation, ..ReplicaConfig::default() };
        let store = StoreConfig {
            lease_ns,
            drift_ppm,
            recall_ns: random.pick(&[(1, MILLISECOND), (1, 5 * MILLISECOND)]),
            waiter_timeout_ns: 2 * lease_ns,
            retransmit_ns,
            max_frame_bytes: random.pick(&[(1, 100), (1, 300), (1, 1400)]),
            is_durable: random.percent(35),
            mutation,
            ..StoreConfig::default()
        };
        let chain_length = random.pick(&[(1, 1), (2, 2), (2, 3)]);
        let mut scenario = Scenario {
            switches: 2 + random.below(2) as u32,
            nodes: chain_length as u32 + random.below(3) as u32,
            chain_length,
            is_operator_reckless: random.percent(20),
            operators: 1,
            is_unfounded: false,
            suspect_after: 2,
            keeper_ns: 1,
            shards: 1 + random.below(2) as u16,
            rows: random.pick(&[(2, 1), (1, 2), (1, 3), (1, 5)]),
            keys: 0,
            numbers: 0,
            snapshots: None,
            snapshot_window: 1,
            lookups: 0,
            idle_ms: 0,
            has_new_keys: false,
            faults_ns: 200 * MILLISECOND,
            input_ns: random.pick(&[(1, 700 * MICROSECOND), (1, 1500 * MICROSECOND)]),
            reads: random.pick(&[(1, 20), (1, 50), (1, 80)]),
            away: random.pick(&[(2, 15), (1, 50)]),
            read_access: RowAccess::ReadFirst,
            homes_read: random.percent(20),
            receives_packets_first: random.percent(50),
            has_removals: random.percent(10),
            delay_ns: random.pick(&[(1, 5 * MICROSECOND), (1, 100 * MICROSECOND)]),
            jitter_ns,
            loss: random.pick(&[(2, 0), (1, 20), (1, 150)]),
            duplication: random.pick(&[(1, 0), (1, 20), (1, 200)]),
            lateness: random.pick(&[(2, 0), (1, 20), (2, 100)]),
            prefers_long_partitions: false,
            late_ns: lease_ns * random.pick(&[(1, 1), (1, 3)]),
            faults: FaultChances::default(),
            drift_ppm,
            disk_ns: random.pick(&[(1, 300 * MICROSECOND), (1, 3 * MILLISECOND)]),
            replica,
            store,
        };
        if random.percent(50) {
            scenario.keys = 1 + random.below(4) as u32;
            scenario.has_new_keys = random.percent(50);
            scenario.lookups = 30;
            scenario.numbers = scenario.keys * if scenario.has_new_keys { 64 } else { 1 + random.below(3) as u32 };
        }
        scenario.faults = FaultChances::draw(random);
        match random.pick(&[(3, ScenarioFocus::All), (5, ScenarioFocus::Leases), (2, ScenarioFocus::Chains)]) {
            ScenarioFocus::All => {}
            ScenarioFocus::Leases => scenario.focus_on_leases(),
            ScenarioFocus::Chains => scenario.focus_on_chains(),
        }
        let mut of_hold = SplitMix64::new(rng::mix([random.clone().next_u64(), 0, 2]));
        let (mut of_aging, mut of_sharing) = (random.clone(), random.clone());
        scenario.draw_operators(random);
        scenario.draw_aging(&mut of_aging);
        scenario.draw_sharing(&mut of_sharing);
        scenario.draw_hold(&mut of_hold);
        scenario
    }

    /// Draws the parameters of outputs that travel with writes. Some datagrams have room for short outputs only.
    fn draw_hold(&mut self, random: &mut SplitMix64) {
        if random.percent(50) {
            self.replica.hold = HoldMode::Piggyback;
        }
        self.replica.max_datagram_bytes = random.pick(&[(1, MAX_PAYLOAD), (1, 240), (1, 300)]);
        self.store.max_carried_bytes = random.pick(&[(1, 250), (3, 1 << 20)]);
    }

    /// Draws the parameters of rows that age, from random numbers of its own, so that other runs do not change.
    fn draw_aging(&mut self, random: &mut SplitMix64) {
        if self.keys == 0 && random.percent(15) {
            (self.keys, self.numbers, self.lookups) = (2, 6, 40);
        } else if self.keys == 0 || random.percent(40) {
            return;
        }
        self.idle_ms = random.pick(&[(1, 3), (1, 8), (1, 25)]);
        self.numbers = self.keys * random.pick(&[(1, 2), (1, 4), (1, 64)]);
    }

    /// Draws the parameters of rows that several switches read, as [`Scenario::draw_aging`] does.
    fn draw_sharing(&mut self, random: &mut SplitMix64) {
        self.read_access = random.pick(&[(1, RowAccess::Read), (1, RowAccess::ReadFirst), (1, RowAccess::Write)]);
        if random.percent(40) {
            (self.away, self.reads, self.homes_read) = (100, random.pick(&[(1, 70), (1, 90), (1, 97)]), false);
            self.rows = self.rows.min(2);
            self.read_access = random.pick(&[(2, RowAccess::Read), (1, RowAccess::ReadFirst)]);
        }
    }

    /// Returns the shortest true time in which a row can become idle: a clock may be fast. `None` if rows do not age.
    pub fn true_idle_ns(&self) -> Option<u64> {
        let idle_ns = u128::from(self.idle_ms) * u128::from(MILLISECOND) * 1_000_000;
        let true_ns = (idle_ns / (1_000_000 + u128::from(self.drift_ppm))) as u64;
        (self.idle_ms > 0).then_some(true_ns.saturating_sub(1))
    }

    /// Draws the parameters of a run with snapshots.
    pub fn draw_snapshots(random: &mut SplitMix64, mutant: Option<Mutant>) -> Scenario {
        let mut scenario = Scenario::draw(random, mutant);
        let every_ns = random.pick(&[(1, 300 * MICROSECOND), (2, MILLISECOND), (1, 3 * MILLISECOND)]);
        let bound_ns = random.pick(&[(1, None), (2, Some(3)), (2, Some(8))]).map(|factor: u64| factor * every_ns);
        let pages = random.pick(&[(1, 1), (1, 2), (2, 5), (1, 9)]);
        scenario.snapshots = Some(snapshot_model::form(pages, every_ns, bound_ns));
        scenario.snapshot_window = random.pick(&[(1, pages.div_ceil(4)), (1, pages.div_ceil(2)), (1, 64)]) as usize;
        (scenario.keys, scenario.lookups, scenario.has_new_keys) = (0, 0, false);
        (scenario.numbers, scenario.idle_ms) = (0, 0);
        (scenario.rows, scenario.homes_read) = (random.pick(&[(3, 1), (1, 2)]), false);
        scenario.input_ns = random.pick(&[(1, 150 * MICROSECOND), (1, 600 * MICROSECOND)]);
        scenario.away = random.pick(&[(2, 0), (1, 2)]);
        (scenario.faults.switch_crash, scenario.faults.move_row) = (random.pick(&[(1, 20), (1, 60)]), 40);
        scenario
    }

    /// Draws the parameters of operators.
    fn draw_operators(&mut self, random: &mut SplitMix64) {
        self.operators = random.pick(&[(2, 1), (1, 2)]);
        self.is_unfounded = random.percent(25);
        self.suspect_after = random.pick(&[(1, 2), (1, 5)]);
        self.keeper_ns = random.pick(&[(1, 1), (1, 3 * MILLISECOND)]);
        self.faults.operator_crash = random.pick(&[(2, 0), (1, 15), (1, 60)]);
        self.faults.command = random.pick(&[(2, 0), (1, 10), (1, 40)]);
    }

    /// Lets sessions end while their switches still work, and replies come late: one node, few rows.
    fn focus_on_leases(&mut self) {
        (self.nodes, self.chain_length, self.shards, self.rows) = (1, 1, 1, self.rows.min(2));
        (self.switches, self.away, self.jitter_ns, self.input_ns) = (2, 50, 1, 500 * MICROSECOND);
        (self.homes_read, self.faults_ns, self.keys) = (true, 3 * self.faults_ns, 0);
        self.store.recall_ns *= 2;
        self.store.is_durable = false;
        (self.lateness, self.loss, self.duplication) = (350, self.loss.min(20), 500);
        let FaultChances { switch_crash, pause, .. } = self.faults;
        self.faults = FaultChances { switch_crash, pause, partition: 50, ..FaultChances::default() };
        self.prefers_long_partitions = true;
    }

    /// Changes chains all the time, in small messages that overtake each other.
    fn focus_on_chains(&mut self) {
        (self.chain_length, self.nodes) = (2, self.nodes.max(4));
        (self.rows, self.reads, self.jitter_ns) = (5, 20, MILLISECOND);
        self.store.max_frame_bytes = 100;
        (self.faults.suspicion, self.faults.node_crash) = (250, 80);
        if self.keys > 0 {
            // There are many rows to copy.
            (self.has_new_keys, self.lookups, self.numbers) = (true, 80, 64 * self.keys);
            (self.store.max_frame_bytes, self.input_ns) = (300, 500 * MICROSECOND);
        }
    }
}

/// The part of the protocol that a run is about.
#[derive(Clone, Copy, Debug)]
enum ScenarioFocus {
    All,
    Leases,
    Chains,
}

impl FaultChances {
    fn draw(random: &mut SplitMix64) -> FaultChances {
        let mut chance = |often: u64| random.pick(&[(2, 0), (2, often / 4), (1, often)]);
        FaultChances {
            switch_crash: chance(80),
            node_crash: chance(60),
            pause: chance(100),
            partition: chance(200),
            move_row: chance(200),
            suspicion: chance(150),
            operator_crash: 0,
            command: 0,
        }
    }
}
