//! The events of a run in the order of time.

mod aging;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use rng::SplitMix64;

use super::disk::NodeDisk;
use super::lookup::{self, Lookup, LookupHistory};
use super::machine::{DriftingClock, Machine};
use super::network::LossyNetwork;
use super::operator::Operators;
use super::program::{ProgramInput, RowProgram};
use super::record::{RowHistory, RunHistory};
use super::scenario::Scenario;
use super::snapshot_history::SnapshotHistory;
use super::snapshot_model::{SnapshotInput, SnapshotModel};
use super::switch_model::{SwitchEffect, SwitchInput, SwitchLookup, SwitchModel};
use super::{SimulationReport, Violation};
use crate::layout::{ChainMember, NodeId, StoreLayout, SwitchId};
use crate::message::{OwnerId, Peer, StoreMessage};
use crate::mutant::{Mutant, Mutation};
use crate::operator::LayoutRecord;
use crate::replica::StateReplica;
use crate::row::RowId;
use crate::store::{StoreEvent, StoreNode};

/// Group of the simulated rows.
const GROUP: u64 = 1;

/// Interval at which faults are drawn.
pub(super) const FAULT_INTERVAL_NS: u64 = 2_000_000;

/// Time after which packets use other keys, if the scenario has them.
const NEW_KEYS_NS: u64 = 10_000_000;

/// An event. Those of a machine carry the number of its start.
#[derive(Debug)]
pub(super) enum WorldEvent {
    Deliver {
        from: Peer,
        to: Peer,
        message: StoreMessage,
    },
    Input {
        switch: u32,
        start: u64,
        input: SwitchInput,
    },
    LookUp {
        switch: u32,
        start: u64,
        lookup: SwitchLookup,
    },
    Change {
        switch: u32,
        start: u64,
        input: SnapshotInput,
    },
    Wake {
        peer: Peer,
        at: u64,
    },
    Synced {
        node: u32,
        start: u64,
        up_to: u64,
    },
    Start {
        peer: Peer,
    },
    Faults,
    NextInput,
    WakeOperator {
        number: u32,
        start: u64,
    },
    /// An operator's record reaches the keeper.
    Commit {
        number: u32,
        start: u64,
        record: LayoutRecord,
    },
}

struct ScheduledEvent {
    at: u64,
    /// Whether the event comes after the others of the same time.
    is_last: bool,
    order: u64,
    /// Boxed, as a heap moves its elements and messages are large.
    event: Box<WorldEvent>,
}

impl PartialEq for ScheduledEvent {
    fn eq(&self, other: &ScheduledEvent) -> bool {
        self.order == other.order
    }
}

impl Eq for ScheduledEvent {}

impl PartialOrd for ScheduledEvent {
    fn partial_cmp(&self, other: &ScheduledEvent) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScheduledEvent {
    fn cmp(&self, other: &ScheduledEvent) -> std::cmp::Ordering {
        (self.at, self.is_last, self.order).cmp(&(other.at, other.is_last, other.order))
    }
}

/// All machines, and the network between them.
pub(super) struct World {
    pub scenario: Scenario,
    pub random: SplitMix64,
    pub now: u64,
    events: BinaryHeap<Reverse<ScheduledEvent>>,
    next_order: u64,
    pub switches: Vec<Machine<SwitchModel>>,
    pub nodes: Vec<Machine<StoreNode>>,
    pub disks: Vec<NodeDisk>,
    /// The life of each node.
    pub lives: Vec<u64>,
    pub network: LossyNetwork,
    pub operators: Operators,
    /// The layout of a switch that knows no newer one.
    pub first_layout: Arc<StoreLayout>,
    /// The switch that gets most inputs of a row.
    pub homes: Vec<u32>,
    pub history: RunHistory,
    pub lookups: LookupHistory,
    /// The grants that were sent: the owners and asks of epochs.
    grants: HashMap<(RowId, u64), (OwnerId, u64), FixedState>,
    pub snapshots: SnapshotHistory,
    pub report: SimulationReport,
    pub has_faults: bool,
    pub mutation: Mutation,
    /// The messages, if the run is traced.
    trace: Option<Vec<String>>,
}

/// Runs the simulation of a seed, with an error if `mutant` names one.
pub fn simulate(seed: u64, mutant: Option<Mutant>) -> SimulationReport {
    run(seed, mutant, None).0
}

/// Runs the simulation of a seed whose rows have snapshots, with an error if `mutant` names one. Also returns the
/// parameters and messages, if `is_traced`.
pub fn simulate_snapshots(seed: u64, mutant: Option<Mutant>, is_traced: bool) -> (SimulationReport, Vec<String>) {
    let mut random = SplitMix64::new(rng::mix([seed, 0, 1]));
    let scenario = Scenario::draw_snapshots(&mut random, mutant);
    let mut world = World::new(scenario, random, Mutation::of(mutant), is_traced.then(Vec::new));
    world.run_faults();
    world.run_healed();
    let (inputs, outputs, restored, violations) = world.snapshots.finish();
    let mut report = SimulationReport { inputs, outputs, restored, ..world.report };
    report.violations.extend(violations);
    (report, world.trace.unwrap_or_default())
}

/// Runs the simulation of a seed, and returns its parameters, messages, and the histories of its rows as text, too.
pub fn simulate_traced(seed: u64, mutant: Option<Mutant>) -> (SimulationReport, Vec<String>) {
    let (report, mut world) = run(seed, mutant, Some(Vec::new()));
    let mut trace = world.trace.take().unwrap_or_default();
    for row in 0..world.scenario.rows {
        trace.extend(world.history.of_row(row).iter().map(|call| format!("row {row}: {call:?}")));
    }
    trace.extend(world.lookups.lines());
    (report, trace)
}

/// Runs the simulation of a seed, and returns the history of each row.
pub fn simulate_histories(seed: u64, mutant: Option<Mutant>) -> (SimulationReport, Vec<RowHistory>) {
    let (report, world) = run(seed, mutant, None);
    (report, (0..world.scenario.rows).map(|row| world.history.of_row(row)).collect())
}

fn run(seed: u64, mutant: Option<Mutant>, trace: Option<Vec<String>>) -> (SimulationReport, World) {
    let mut random = SplitMix64::new(rng::mix([seed, 0, 0]));
    let scenario = Scenario::draw(&mut random, mutant);
    let mut world = World::new(scenario, random, Mutation::of(mutant), trace);
    world.run_faults();
    world.run_healed();
    let mut report = std::mem::take(&mut world.report);
    let program = RowProgram { has_removals: world.scenario.has_removals };
    world.history.judge(world.scenario.rows, program, &mut report);
    (report.lookups, report.answered_lookups) = world.lookups.counts();
    let contradictions = world.lookups.contradictions(world.scenario.true_idle_ns());
    report.violations.extend(contradictions.into_iter().map(Violation::Lookups));
    report.layouts = world.operators.kept.layout.epoch();
    (report, world)
}

impl World {
    fn new(scenario: Scenario, mut random: SplitMix64, mutation: Mutation, mut trace: Option<Vec<String>>) -> World {
        trace.iter_mut().for_each(|trace| trace.push(format!("{scenario:#?}")));
        let operators = Operators::new(&mut random, &scenario, mutation);
        let homes = (0..scenario.rows).map(|_| random.below(u64::from(scenario.switches)) as u32).collect();
        let mut world = World {
            random,
            now: 0,
            events: BinaryHeap::new(),
            next_order: 0,
            switches: Vec::new(),
            nodes: Vec::new(),
            disks: (0..scenario.nodes).map(|_| NodeDisk::default()).collect(),
            lives: vec![1; scenario.nodes as usize],
            network: LossyNetwork::default(),
            first_layout: operators.first_layout(scenario.shards),
            operators,
            homes,
            history: RunHistory::default(),
            lookups: LookupHistory::default(),
            grants: HashMap::default(),
            snapshots: SnapshotHistory::new(
                scenario.snapshots.map_or(0, |form| form.pages),
                scenario.snapshots.and_then(|form| form.bound_ns),
            ),
            report: SimulationReport::default(),
            has_faults: true,
            mutation,
            trace,
            scenario,
        };
        world.start_all();
        world
    }

    fn start_all(&mut self) {
        for switch in 0..self.scenario.switches {
            let clock = DriftingClock::draw(&mut self.random, self.scenario.drift_ppm);
            let layout = Arc::clone(&self.first_layout);
            let model = self.new_switch(switch, layout);
            self.switches.push(Machine::new(model, clock));
        }
        for node in 0..self.scenario.nodes {
            let clock = DriftingClock::draw(&mut self.random, self.scenario.drift_ppm);
            let me = ChainMember { node: NodeId(node), life: 1 };
            let seed = self.random.next_u64();
            let layout = Arc::clone(&self.first_layout);
            let program = StoreNode::founding(self.scenario.store, me, seed, clock.read(0), &layout);
            self.nodes.push(Machine::new(program, clock));
            self.node_effects(node);
            self.sync(node, u64::MAX);
        }
        self.start_operators();
        self.schedule(FAULT_INTERVAL_NS, WorldEvent::Faults);
        self.schedule(0, WorldEvent::NextInput);
    }

    pub fn new_switch(&mut self, switch: u32, layout: Arc<StoreLayout>) -> SwitchModel {
        let incarnation = self.random.next_u64();
        let replica = StateReplica::new(self.scenario.replica, layout, SwitchId(switch), incarnation);
        let aging = (lookup::pool(self.scenario.numbers), self.scenario.idle_ms);
        let mut model = SwitchModel::new(replica, aging, self.scenario.read_access, self.mutation);
        let (rows, window) = (self.scenario.rows, self.scenario.snapshot_window);
        model.snapshots = self.scenario.snapshots.map(|form| SnapshotModel::new(rows, (form, window), self.mutation));
        model
    }

    pub fn schedule(&mut self, at: u64, event: WorldEvent) {
        self.next_order += 1;
        let event = Box::new(event);
        self.events.push(Reverse(ScheduledEvent { at, is_last: false, order: self.next_order, event }));
    }

    /// Defers an event of a paused machine. Packets may be received before messages, which come from another socket.
    fn put_off(&mut self, at: u64, event: WorldEvent) {
        self.next_order += 1;
        let is_last = self.scenario.receives_packets_first
            && !matches!(event, WorldEvent::Input { .. } | WorldEvent::Change { .. });
        self.events.push(Reverse(ScheduledEvent { at, is_last, order: self.next_order, event: Box::new(event) }));
    }

    fn run_faults(&mut self) {
        self.run_until(self.scenario.faults_ns);
    }

    /// Ends the faults, and demands an output of each input that comes a while later.
    fn run_healed(&mut self) {
        let lease_ns = self.scenario.replica.lease_ns;
        self.heal();
        // A node that copies many rows in small messages to a slow disk takes a while.
        let leases = if self.scenario.has_new_keys { 25 } else { 5 };
        self.run_until(self.now + leases * lease_ns);
        let (first, first_lookup) = (self.history.len(), self.lookups.counts().0);
        let first_change = self.snapshots.len();
        self.run_until(self.now + lease_ns);
        self.has_faults = false;
        self.run_until(self.now + lease_ns);
        for row in 0..self.scenario.rows {
            let switch = self.switch_for(row);
            self.schedule_read(switch, row);
        }
        // Rows with snapshots take several round trips to move.
        let leases = if self.scenario.snapshots.is_some() { 20 } else { 10 };
        self.run_until(self.now + leases * lease_ns);
        if !self.scenario.is_operator_reckless && !self.operators.has_lost_rows {
            self.history.expect_outputs(first);
            self.snapshots.expect_outcomes(first_change);
            let silent = self.lookups.silent(first_lookup).map(|lookup| format!("{lookup:?} has no output"));
            self.report.violations.extend(silent.map(Violation::Lookups));
            self.expect_aged();
        }
    }

    fn run_until(&mut self, end: u64) {
        while let Some(Reverse(next)) = self.events.peek() {
            if next.at > end {
                break;
            }
            let Some(Reverse(next)) = self.events.pop() else { break };
            self.now = next.at;
            self.dispatch(*next.event);
        }
        self.now = end;
    }

    fn dispatch(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Faults => {
                self.draw_faults();
                self.draw_operator_faults();
                self.schedule(self.now + FAULT_INTERVAL_NS, WorldEvent::Faults);
            }
            WorldEvent::NextInput if self.has_faults => self.next_input(),
            WorldEvent::NextInput => {}
            WorldEvent::Start { peer } => self.start(peer),
            WorldEvent::WakeOperator { number, start } => self.wake_operator(number, start),
            WorldEvent::Commit { number, start, record } => self.commit(number, start, &record),
            WorldEvent::Deliver { from, to: Peer::Operator(_), message } => self.receive_as_operator(from, &message),
            event => self.dispatch_machine(event),
        }
    }

    /// Delivers an event to its machine, or defers it while the machine is paused.
    fn dispatch_machine(&mut self, event: WorldEvent) {
        let peer = match &event {
            WorldEvent::Deliver { to, .. } => *to,
            WorldEvent::Input { switch, .. }
            | WorldEvent::LookUp { switch, .. }
            | WorldEvent::Change { switch, .. } => Peer::Switch(SwitchId(*switch)),
            WorldEvent::Wake { peer, .. } => *peer,
            WorldEvent::Synced { node, .. } => Peer::Node(NodeId(*node)),
            _ => return,
        };
        let paused_until = match peer {
            Peer::Switch(switch) => self.switches[switch.0 as usize].paused_until,
            Peer::Node(node) => self.nodes[node.0 as usize].paused_until,
            Peer::Operator(_) => return,
        };
        if paused_until > self.now {
            return self.put_off(paused_until, event);
        }
        match peer {
            Peer::Switch(switch) => self.run_switch(switch.0, event),
            Peer::Node(node) => self.run_node(node.0, event),
            Peer::Operator(_) => {}
        }
    }

    fn run_switch(&mut self, number: u32, event: WorldEvent) {
        let machine = &mut self.switches[number as usize];
        let now = machine.now(self.now, self.mutation.is(Mutant::ClockBeforePause));
        let Some(program) = &mut machine.program else { return };
        let mut effects = Vec::new();
        match event {
            WorldEvent::Deliver { from: Peer::Node(from), message, .. } => {
                program.receive(now, from, &message, &mut effects);
            }
            WorldEvent::Deliver { from: Peer::Operator(_), message: StoreMessage::Layout(layout), .. } => {
                program.set_layout(now, &layout, &mut effects);
            }
            WorldEvent::Input { start, input, .. } if start == machine.starts => {
                program.input(now, input, &mut effects);
            }
            WorldEvent::LookUp { start, lookup, .. } if start == machine.starts => {
                program.look_up(now, lookup, &mut effects);
            }
            WorldEvent::Change { start, input, .. } if start == machine.starts => {
                program.change(now, input, &mut effects);
            }
            WorldEvent::Wake { at, .. } if at == machine.wake_at => {
                machine.wake_at = u64::MAX;
                program.tick(now, &mut effects);
            }
            _ => return,
        }
        let deadline = program.next_deadline().map(|time| machine.clock.when(time).max(self.now + 1));
        self.wake(Peer::Switch(SwitchId(number)), deadline);
        for effect in effects {
            match effect {
                SwitchEffect::Drop(number) => self.history.dropped(number),
                SwitchEffect::Run(number) => self.history.ran(number),
                SwitchEffect::Output(number, output) => self.history.returned(number, output, self.now),
                SwitchEffect::Found(number, found) => self.lookups.returned(number, found, self.now),
                SwitchEffect::DropLookup(number) => self.lookups.dropped(number),
                SwitchEffect::Snapshot(effect) => {
                    self.trace(|| format!("{number}: {effect:?}"));
                    self.snapshots.take(effect);
                }
                SwitchEffect::Send(to, message) => {
                    self.send(Peer::Switch(SwitchId(number)), Peer::Node(to), message);
                }
            }
        }
    }

    fn run_node(&mut self, number: u32, event: WorldEvent) {
        let machine = &mut self.nodes[number as usize];
        let now = machine.now(self.now, false);
        let Some(program) = &mut machine.program else { return };
        match event {
            WorldEvent::Deliver { from, message, .. } => {
                program.receive(now, from, message);
                program.flush(now);
            }
            WorldEvent::Wake { at, .. } if at == machine.wake_at => {
                machine.wake_at = u64::MAX;
                program.tick(now);
            }
            WorldEvent::Synced { start, up_to, .. } if start == machine.starts => self.sync(number, up_to),
            _ => return,
        }
        self.node_effects(number);
    }

    /// Commits the records of a node, up to this one.
    fn sync(&mut self, number: u32, up_to: u64) {
        self.disks[number as usize].sync(up_to);
        self.nodes[number as usize].program.iter_mut().for_each(|program| program.persisted(up_to));
    }

    /// Sends a node's messages, writes its records, and sees when it wants to be woken.
    pub fn node_effects(&mut self, number: u32) {
        let machine = &mut self.nodes[number as usize];
        let start = machine.starts;
        let Some(program) = &mut machine.program else { return };
        let deadline = program.next_deadline().map(|time| machine.clock.when(time).max(self.now + 1));
        let events: Vec<StoreEvent> = program.take_events().collect();
        self.wake(Peer::Node(NodeId(number)), deadline);
        let mut last = None;
        for event in events {
            match event {
                StoreEvent::Send { to, message } => self.send(Peer::Node(NodeId(number)), to, message),
                StoreEvent::Persist { number: record, record: content } => {
                    self.disks[number as usize].write(record, content);
                    last = Some(record);
                }
            }
        }
        if let Some(up_to) = last {
            let at = self.now + 1 + self.random.below(self.scenario.disk_ns);
            self.schedule(at, WorldEvent::Synced { node: number, start, up_to });
        }
    }

    fn wake(&mut self, peer: Peer, deadline: Option<u64>) {
        let Some(at) = deadline else { return };
        let wake_at = match peer {
            Peer::Switch(switch) => &mut self.switches[switch.0 as usize].wake_at,
            Peer::Node(node) => &mut self.nodes[node.0 as usize].wake_at,
            Peer::Operator(_) => return,
        };
        if at < *wake_at {
            *wake_at = at;
            self.schedule(at, WorldEvent::Wake { peer, at });
        }
    }

    pub fn send(&mut self, from: Peer, to: Peer, message: StoreMessage) {
        self.report.count(&message);
        self.check_grant(&message);
        self.trace(|| format!("{from:?} to {to:?}: {message:?}"));
        let is_of_operator = [from, to].iter().any(|peer| matches!(peer, Peer::Operator(_)));
        let random = if is_of_operator { &mut self.operators.random } else { &mut self.random };
        let arrivals = self.network.arrivals(random, &self.scenario, self.now, (from, to));
        match arrivals {
            [Some(first), Some(second)] => {
                self.schedule(second, WorldEvent::Deliver { from, to, message: message.clone() });
                self.schedule(first, WorldEvent::Deliver { from, to, message });
            }
            [Some(at), None] | [None, Some(at)] => self.schedule(at, WorldEvent::Deliver { from, to, message }),
            [None, None] => {}
        }
    }

    /// Adds a line to the trace.
    pub fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {}", self.now, line()));
        }
    }

    /// Draws an input or lookup, and the time of the next one.
    fn next_input(&mut self) {
        if self.scenario.keys > 0 && self.random.percent(self.scenario.lookups) {
            self.next_lookup();
        } else {
            self.next_access();
        }
        let pause_ns = 1 + self.random.below(2 * self.scenario.input_ns);
        self.schedule(self.now + pause_ns, WorldEvent::NextInput);
    }

    /// Draws an input.
    fn next_access(&mut self) {
        let row = self.random.below(u64::from(self.scenario.rows)) as u32;
        let switch = self.switch_for(row);
        if self.scenario.snapshots.is_some() {
            return self.schedule_change(switch, row);
        }
        let is_reader = self.scenario.homes_read && switch == self.homes[row as usize];
        let reads = if is_reader { 97 } else { self.scenario.reads };
        let amount = 1 + self.random.below(1 << 40);
        let input = if self.random.percent(reads) {
            ProgramInput::Read
        } else {
            self.random.pick(&[
                (10, ProgramInput::Add(amount)),
                (2, ProgramInput::Set(amount)),
                (3, ProgramInput::Toggle),
                (u64::from(self.scenario.has_removals), ProgramInput::Remove),
            ])
        };
        self.schedule_input(switch, row, input);
        if input == ProgramInput::Toggle && self.random.percent(50) {
            self.schedule_input(switch, row, input);
        }
    }

    /// Draws a lookup, or two concurrent ones.
    fn next_lookup(&mut self) {
        let (keys, numbers) = (self.scenario.keys, u64::from(self.scenario.numbers));
        let age =
            if self.scenario.has_new_keys { (self.now.min(self.scenario.faults_ns) / NEW_KEYS_NS) as u32 } else { 0 };
        let key = age * keys + self.random.below(u64::from(keys)) as u32;
        let known = if self.random.percent(70) { self.lookups.newest() } else { None };
        let number = known.unwrap_or_else(|| self.random.below(numbers) as u32);
        let lookup = self.random.pick(&[(1, Lookup::Number(key)), (2, Lookup::Find(key)), (2, Lookup::Key(number))]);
        let switch = self.random.below(self.switches.len() as u64) as u32;
        self.schedule_lookup(switch, lookup);
        if self.random.percent(30) {
            self.schedule_lookup((switch + 1) % self.switches.len() as u32, Lookup::Number(key));
        }
    }

    fn schedule_lookup(&mut self, switch: u32, lookup: Lookup) {
        let machine = &self.switches[switch as usize];
        if machine.is_up() {
            let start = machine.starts;
            let lookup = SwitchLookup { number: self.lookups.called(lookup, self.now), lookup };
            self.schedule(self.now, WorldEvent::LookUp { switch, start, lookup });
        }
    }

    /// Lets a packet read a row, or use it if it has snapshots.
    fn schedule_read(&mut self, switch: u32, row: u32) {
        match self.scenario.snapshots {
            Some(_) => self.schedule_change(switch, row),
            None => self.schedule_input(switch, row, ProgramInput::Read),
        }
    }

    fn schedule_change(&mut self, switch: u32, row: u32) {
        let machine = &self.switches[switch as usize];
        if machine.is_up() {
            let start = machine.starts;
            let input = SnapshotInput { number: self.snapshots.called(), row };
            self.schedule(self.now, WorldEvent::Change { switch, start, input });
        }
    }

    /// Returns the switch that gets the next input of a row: mostly its home.
    fn switch_for(&mut self, row: u32) -> u32 {
        let home = self.homes[row as usize];
        if self.random.percent(self.scenario.away) || !self.switches[home as usize].is_up() {
            return self.random.below(self.switches.len() as u64) as u32;
        }
        home
    }

    fn schedule_input(&mut self, switch: u32, row: u32, input: ProgramInput) {
        let machine = &self.switches[switch as usize];
        if !machine.is_up() {
            return;
        }
        let start = machine.starts;
        let number = self.history.called(row, (switch, start), input, self.now);
        let input = SwitchInput { number, row: RowId::of_index(GROUP, row), input };
        self.schedule(self.now, WorldEvent::Input { switch, start, input });
    }
}
