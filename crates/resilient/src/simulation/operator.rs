//! The operators of the store, and their record.

use std::collections::BTreeSet;
use std::sync::Arc;

use rng::SplitMix64;
use switch::Time;

use super::scenario::Scenario;
use super::world::{World, WorldEvent};
use crate::layout::{ChainMember, NodeId, OperatorId, ShardChain, ShardId, StoreLayout, SwitchId};
use crate::message::{Peer, StoreMessage};
use crate::mutant::Mutation;
use crate::operator::{LayoutOperator, LayoutRecord, OperatorConfig, OperatorEvent};

/// Interval at which operators ask nodes for their status.
const POLL_NS: u64 = 2_000_000;

/// An operator between two of its starts.
#[derive(Debug)]
pub struct OperatorMachine {
    pub program: LayoutOperator,
    pub start: u64,
    wake_at: u64,
}

/// The operators of a run.
#[derive(Debug)]
pub struct Operators {
    config: OperatorConfig,
    pub machines: Vec<OperatorMachine>,
    /// The committed record.
    pub kept: LayoutRecord,
    /// Draws the parameters of operators from random numbers of its own, so that runs about leases do not depend on
    /// them.
    pub random: SplitMix64,
    /// Members that were active in a layout with this epoch when they lost their memory.
    lost: BTreeSet<(ChainMember, ShardId, u64)>,
    /// Whether an active member lost its memory just before the others were removed in its favour.
    pub has_lost_rows: bool,
}

impl Operators {
    /// Creates operators of nodes in their first life, with the first layout unless they have to create it.
    pub fn new(random: &mut SplitMix64, scenario: &Scenario, mutation: Mutation) -> Operators {
        let Scenario { nodes, chain_length, shards, .. } = *scenario;
        let first = random.below(u64::from(nodes)) as u32;
        let node = |number: u32| NodeId(number % nodes);
        let member = |number: u32| ChainMember { node: node(number), life: 1 };
        let chain = |shard: u16| ShardChain {
            members: (0..chain_length as u32).map(|position| member(first + u32::from(shard) + position)).collect(),
            learner: None,
        };
        let founded = LayoutRecord {
            layout: Arc::new(StoreLayout::new(1, (0..shards).map(chain).collect())),
            ..LayoutRecord::default()
        };
        let config = OperatorConfig {
            nodes: (first..first + nodes).map(node).collect(),
            switches: (0..scenario.switches).map(SwitchId).collect(),
            chain_length,
            shards,
            poll_ns: POLL_NS,
            suspect_after: scenario.suspect_after,
            is_reckless: scenario.is_operator_reckless,
            mutation,
        };
        let kept = if scenario.is_unfounded { LayoutRecord::default() } else { founded };
        let random = SplitMix64::new(random.next_u64());
        Operators { config, machines: Vec::new(), kept, random, lost: BTreeSet::new(), has_lost_rows: false }
    }

    /// Returns the layout of a switch that has not received any: the initial one, or one without members.
    pub fn first_layout(&self, shards: u16) -> Arc<StoreLayout> {
        if self.kept.layout.epoch() > 0 {
            return Arc::clone(&self.kept.layout);
        }
        Arc::new(StoreLayout::new(0, vec![ShardChain::default(); usize::from(shards)]))
    }

    fn make(&mut self, start: u64) -> OperatorMachine {
        let kept = Some(self.kept.clone()).filter(|kept| kept.layout.epoch() > 0);
        let program = LayoutOperator::new(self.config.clone(), kept, self.random.next_u64());
        OperatorMachine { program, start, wake_at: u64::MAX }
    }

    /// Commits a record if it follows the committed one.
    fn keep(&mut self, record: &LayoutRecord) -> bool {
        let follows = record.layout.epoch() == self.kept.layout.epoch() + 1;
        if follows {
            self.kept = record.clone();
        }
        follows
    }
}

impl World {
    pub(super) fn start_operators(&mut self) {
        for number in 0..self.scenario.operators {
            let machine = self.operators.make(1);
            self.operators.machines.push(machine);
            self.operator_effects(number);
        }
    }

    /// Restarts an operator. A record that it has proposed may still be committed.
    fn restart_operator(&mut self, number: u32) {
        let start = self.operators.machines[number as usize].start + 1;
        self.operators.machines[number as usize] = self.operators.make(start);
        self.operator_effects(number);
    }

    /// Delivers a message to all operators: they share an address.
    pub(super) fn receive_as_operator(&mut self, from: Peer, message: &StoreMessage) {
        for number in 0..self.scenario.operators {
            self.operators.machines[number as usize].program.receive(from, message);
            self.operator_effects(number);
        }
    }

    pub(super) fn wake_operator(&mut self, number: u32, start: u64) {
        let now = Time::from_ns(self.now);
        let machine = &mut self.operators.machines[number as usize];
        if machine.start == start && machine.wake_at == self.now {
            machine.wake_at = u64::MAX;
            machine.program.tick(now);
            self.operator_effects(number);
        }
    }

    /// Commits a record by compare-and-swap, and reports the result to the operator if it still runs.
    pub(super) fn commit(&mut self, number: u32, start: u64, record: &LayoutRecord) {
        let before = self.operators.kept.layout.epoch();
        let is_kept = self.operators.keep(record);
        if is_kept {
            self.note_losses(before);
        }
        let kept = self.operators.kept.clone();
        let machine = &mut self.operators.machines[number as usize];
        if machine.start == start {
            match is_kept {
                true => machine.program.committed(record.layout.epoch()),
                false => machine.program.superseded(Some(kept)),
            }
            self.operator_effects(number);
        }
    }

    /// Records whether a new layout has a chain whose last active member is lost.
    fn note_losses(&mut self, before: u64) {
        let layout = Arc::clone(&self.operators.kept.layout);
        for (shard, chain) in layout.shards().zip(layout.chains()) {
            let is_active = |member: &ChainMember| {
                let node = self.nodes[member.node.0 as usize].program.as_ref();
                node.is_some_and(|node| node.member() == *member && node.is_active(shard))
            };
            let is_lost = |member: &ChainMember| self.operators.lost.contains(&(*member, shard, before));
            if !chain.members.iter().any(is_active) && chain.members.iter().any(is_lost) {
                self.operators.has_lost_rows = true;
            }
        }
    }

    /// Records the shards at which a node that loses its memory is active.
    pub(super) fn note_amnesia(&mut self, number: u32) {
        let Some(node) = &self.nodes[number as usize].program else { return };
        let (member, epoch) = (node.member(), node.layout().epoch());
        let active = node.layout().shards().filter(|shard| node.is_active(*shard));
        self.operators.lost.extend(active.map(|shard| (member, shard, epoch)));
    }

    fn operator_effects(&mut self, number: u32) {
        let machine = &mut self.operators.machines[number as usize];
        let (start, events) = (machine.start, machine.program.take_events().collect::<Vec<_>>());
        let due = machine.program.next_deadline().as_ns().max(self.now + 1);
        if due < machine.wake_at {
            machine.wake_at = due;
            self.schedule(due, WorldEvent::WakeOperator { number, start });
        }
        for event in events {
            match event {
                OperatorEvent::Send { to, message } => self.send(Peer::Operator(OperatorId::ONLY), to, message),
                OperatorEvent::Commit { record } => {
                    let at = self.now + self.operators.random.below(self.scenario.keeper_ns);
                    self.schedule(at, WorldEvent::Commit { number, start, record });
                }
                OperatorEvent::Reload => {
                    let kept = self.operators.kept.clone();
                    self.operators.machines[number as usize].program.superseded(Some(kept));
                    self.operator_effects(number);
                }
                OperatorEvent::Note(note) => self.trace(|| format!("operator {number}: {note:?}")),
            }
        }
    }

    /// Draws the faults of operators and the commands of users.
    pub(super) fn draw_operator_faults(&mut self) {
        let chances = self.scenario.faults;
        let mut happens = |chance: u64| self.has_faults && self.operators.random.below(1000) < chance;
        let (crashes, suspects, commands) =
            (happens(chances.operator_crash), happens(chances.suspicion), happens(chances.command));
        let random = &mut self.operators.random;
        let number = random.below(u64::from(self.scenario.operators)) as u32;
        let mut some_node = || NodeId(random.below(u64::from(self.scenario.nodes)) as u32);
        let (node, other) = (some_node(), some_node());
        let command = self.operators.random.below(4);
        if crashes {
            self.restart_operator(number);
        }
        let program = &mut self.operators.machines[number as usize].program;
        if suspects {
            program.suspect(node);
        }
        let isolates = suspects && self.scenario.has_new_keys && self.operators.random.percent(50);
        if commands {
            _ = match command {
                0 => program.drain(node),
                1 => program.replace(node, (other != node).then_some(other)),
                _ => program.undrain(node),
            };
        }
        self.operator_effects(number);
        if isolates {
            self.isolate(node);
        }
    }

    /// Ends all drains, so that chains can have their full length.
    pub(super) fn heal_operators(&mut self) {
        let program = &mut self.operators.machines[0].program;
        for node in (0..self.scenario.nodes).map(NodeId) {
            _ = program.undrain(node);
        }
        self.operator_effects(0);
    }
}
