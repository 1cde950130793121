//! Faults of machines and of the network.

use std::sync::Arc;

use super::machine::DriftingClock;
use super::world::{World, WorldEvent};
use crate::layout::{ChainMember, NodeId, OperatorId, SwitchId};
use crate::message::Peer;
use crate::mutant::Mutant;
use crate::store::StoreNode;

impl World {
    fn happens(&mut self, chance: u64) -> bool {
        self.has_faults && self.random.below(1000) < chance
    }

    fn some_switch(&mut self) -> u32 {
        self.random.below(self.switches.len() as u64) as u32
    }

    fn some_node(&mut self) -> u32 {
        self.random.below(self.nodes.len() as u64) as u32
    }

    fn some_peer(&mut self) -> Peer {
        if self.random.percent(50) {
            Peer::Switch(SwitchId(self.some_switch()))
        } else {
            Peer::Node(NodeId(self.some_node()))
        }
    }

    /// Draws a time of up to three leases, mostly short.
    fn some_time(&mut self) -> u64 {
        let lease_ns = self.scenario.replica.lease_ns;
        let longest = self.random.pick(&[(2, lease_ns / 5), (2, lease_ns), (1, 3 * lease_ns)]);
        1 + self.random.below(longest)
    }

    pub fn draw_faults(&mut self) {
        let chances = self.scenario.faults;
        if self.happens(chances.switch_crash) {
            let switch = self.some_switch();
            self.crash(Peer::Switch(SwitchId(switch)));
        }
        if self.happens(chances.node_crash) {
            let node = self.some_node();
            if self.scenario.store.is_durable || self.may_lose(node) {
                self.crash(Peer::Node(NodeId(node)));
            }
        }
        if self.happens(chances.pause) {
            let (peer, until) = (self.some_peer(), self.now + self.some_time());
            self.pause(peer, until);
        }
        if self.happens(chances.partition) {
            self.partition();
        }
        if self.happens(chances.move_row) {
            let row = self.random.below(self.homes.len() as u64) as usize;
            self.homes[row] = self.some_switch();
        }
    }

    fn partition(&mut self) {
        let (from, to, until) = (self.some_peer(), self.some_peer(), self.now + self.some_time());
        if self.scenario.prefers_long_partitions && self.random.percent(70) {
            let lease_ns = self.scenario.replica.lease_ns;
            let until = self.now + lease_ns + self.random.below(2 * lease_ns);
            let switch = Some(Peer::Switch(SwitchId(self.homes[0])));
            self.network.block(switch, None, until);
            if self.random.percent(70) {
                self.network.block(None, switch, until);
            }
            return;
        }
        let ends = self.random.pick(&[(2, (Some(from), Some(to))), (1, (Some(from), None)), (1, (None, Some(to)))]);
        self.network.block(ends.0, ends.1, until);
    }

    /// Keeps the messages of other nodes and the operator from a node, and from a switch those of the operator.
    pub fn isolate(&mut self, node: NodeId) {
        let until = self.now + self.some_time();
        let others =
            (0..self.nodes.len() as u32).map(|other| Peer::Node(NodeId(other))).filter(|it| *it != Peer::Node(node));
        others
            .chain([Peer::Operator(OperatorId::ONLY)])
            .for_each(|other| self.network.block(Some(other), Some(Peer::Node(node)), until));
        let switch = Peer::Switch(SwitchId(self.random.below(self.switches.len() as u64) as u32));
        self.network.block(Some(Peer::Operator(OperatorId::ONLY)), Some(switch), until);
    }

    /// Whether each shard keeps an active member if this node loses its memory.
    fn may_lose(&self, node: u32) -> bool {
        let layout = &self.operators.kept.layout;
        let is_active = |member: &&ChainMember, shard| {
            let program = self.nodes[member.node.0 as usize].program.as_ref();
            program.is_some_and(|it| {
                it.member() == **member && it.layout().epoch() == layout.epoch() && it.is_active(shard)
            })
        };
        layout.epoch() > 0
            && layout.shards().zip(layout.chains()).all(|(shard, chain)| {
                let mut others = chain.members.iter().filter(|member| member.node != NodeId(node));
                chain.members.iter().all(|member| member.node != NodeId(node))
                    || others.any(|member| is_active(&member, shard))
            })
    }

    fn crash(&mut self, peer: Peer) {
        let is_up = match peer {
            Peer::Operator(_) => false,
            Peer::Switch(switch) => self.switches[switch.0 as usize].program.take().is_some(),
            Peer::Node(node) => {
                if !self.scenario.store.is_durable {
                    self.note_amnesia(node.0);
                }
                // The disk may have written some records that it has not reported.
                let disk = &mut self.disks[node.0 as usize];
                let count = self.random.below(disk.writing() as u64 + 1) as usize;
                disk.crash(count);
                self.nodes[node.0 as usize].program.take().is_some()
            }
        };
        if is_up {
            let at = self.now + self.some_time();
            self.schedule(at, WorldEvent::Start { peer });
        }
    }

    fn pause(&mut self, peer: Peer, until: u64) {
        let now = self.now;
        let (paused_at, paused_until) = match peer {
            Peer::Operator(_) => return,
            Peer::Switch(switch) => {
                let machine = &mut self.switches[switch.0 as usize];
                (&mut machine.paused_at, &mut machine.paused_until)
            }
            Peer::Node(node) => {
                let machine = &mut self.nodes[node.0 as usize];
                (&mut machine.paused_at, &mut machine.paused_until)
            }
        };
        if *paused_until <= now {
            (*paused_at, *paused_until) = (now, until);
        }
    }

    /// Starts a machine that has crashed.
    pub fn start(&mut self, peer: Peer) {
        match peer {
            Peer::Switch(SwitchId(number)) => {
                if self.switches[number as usize].is_up() {
                    return;
                }
                // A switch may start with an old layout.
                let is_old = self.random.percent(50);
                let layout = Arc::clone(match self.operators.kept.layout.epoch() {
                    0 => &self.first_layout,
                    _ if is_old => &self.first_layout,
                    _ => &self.operators.kept.layout,
                });
                let model = self.new_switch(number, layout);
                let clock = DriftingClock::draw(&mut self.random, self.scenario.drift_ppm);
                let machine = &mut self.switches[number as usize];
                machine.program = Some(model);
                machine.clock = clock;
                machine.starts += 1;
                machine.wake_at = u64::MAX;
            }
            Peer::Node(NodeId(number)) => self.start_node(number),
            Peer::Operator(_) => {}
        }
    }

    fn start_node(&mut self, number: u32) {
        if self.nodes[number as usize].is_up() {
            return;
        }
        let clock = DriftingClock::draw(&mut self.random, self.scenario.drift_ppm);
        let now = clock.read(self.now);
        let seed = self.random.next_u64();
        let config = self.scenario.store;
        let life = &mut self.lives[number as usize];
        let program = if config.is_durable {
            let me = ChainMember { node: NodeId(number), life: *life };
            self.disks[number as usize].recover(config, me, seed, now)
        } else if self.mutation.is(Mutant::AmnesiaKeepsLife) {
            let me = ChainMember { node: NodeId(number), life: *life };
            StoreNode::founding(config, me, seed, now, &self.operators.kept.layout)
        } else {
            *life += 1;
            let me = ChainMember { node: NodeId(number), life: *life };
            StoreNode::joining(config, me, seed)
        };
        let machine = &mut self.nodes[number as usize];
        machine.program = Some(program);
        machine.clock = clock;
        machine.starts += 1;
        machine.wake_at = u64::MAX;
        self.node_effects(number);
    }

    /// Ends all faults: the network delivers, and machines start; pauses end in time.
    pub fn heal(&mut self) {
        self.network.heal();
        self.scenario.faults = super::FaultChances::default();
        for number in 0..self.nodes.len() as u32 {
            self.start(Peer::Node(NodeId(number)));
        }
        for number in 0..self.switches.len() as u32 {
            self.start(Peer::Switch(SwitchId(number)));
        }
        self.heal_operators();
    }
}
