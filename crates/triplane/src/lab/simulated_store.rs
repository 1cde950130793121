//! Runs a store node of resilient state on a simulated host.

use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::Arc;

use lab::sim::{Host, HostProgram};
use resilient::{ChainMember, DatagramSealer, Peer, StoreEvent, StoreMessage, StoreNode};
use resilient_switch::in_band;
use switch::Time;

use super::replication::Replication;

/// A store in memory. A crash makes it forget everything, and begin another life.
pub struct SimulatedStore {
    replication: Arc<Replication>,
    number: usize,
    /// Number of times that it started.
    lives: u64,
    seed: u64,
    running: Option<(StoreNode, DatagramSealer)>,
    /// The time of the first timer.
    timer: Option<Time>,
}

impl SimulatedStore {
    /// Creates the store with this position in the chain, in a run with this seed.
    pub fn new(replication: Arc<Replication>, number: usize, seed: u64) -> SimulatedStore {
        SimulatedStore { replication, number, lives: 0, seed, running: None, timer: None }
    }

    /// Sends the messages of the node, and sets a timer for its next deadline.
    fn act(&mut self, host: &mut Host) {
        let Some((node, sealer)) = &mut self.running else { return };
        let now = host.now();
        node.flush(now);
        let mut messages: Vec<(Peer, StoreMessage)> = Vec::new();
        for event in node.take_events() {
            match event {
                StoreEvent::Send { to, message } => messages.push((to, message)),
                StoreEvent::Persist { .. } => unreachable!("the store has no disk"),
            }
        }
        let deadline = node.next_deadline();
        sealer.send(now, &messages);
        self.replication.send(host, Peer::Node(node.member().node), sealer);
        if let Some(deadline) = deadline.filter(|at| self.timer.is_none_or(|timer| *at < timer || timer <= now)) {
            self.timer = Some(deadline);
            host.set_timer(deadline, 0);
        }
    }

    fn address(&self) -> Ipv4Addr {
        let node = Replication::member(self.number).node;
        self.replication.address_of(Peer::Node(node)).expect("the store is planned")
    }
}

impl HostProgram for SimulatedStore {
    fn on_start(&mut self, host: &mut Host) {
        self.lives += 1;
        self.timer = None;
        let (config, seed) = (self.replication.store_config(), host.random.next_u64());
        let me = Replication::member(self.number);
        let node = if self.lives == 1 && !self.replication.has_operator() {
            StoreNode::founding(config, me, seed, host.now(), &self.replication.layout)
        } else {
            StoreNode::joining(config, ChainMember { life: self.lives, ..me }, seed)
        };
        let sealer = self.replication.sealer(Peer::Node(me.node), host.random.next_u64(), self.seed);
        self.running = Some((node, sealer));
        self.act(host);
    }

    fn on_packet(&mut self, host: &mut Host, frame: Vec<u8>) {
        let Some((source, destination, payload)) = in_band::parse(&frame) else { return };
        let (Some(from), true) = (self.replication.peer(source), destination == self.address()) else { return };
        if let Some((node, sealer)) = &mut self.running {
            let messages = sealer.open(host.now(), from, payload);
            messages.into_iter().for_each(|message| node.receive(host.now(), from, message));
        }
        self.act(host);
    }

    fn on_timer(&mut self, host: &mut Host, _: u64) {
        self.timer = None;
        if let Some((node, _)) = &mut self.running {
            node.tick(host.now());
        }
        self.act(host);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
