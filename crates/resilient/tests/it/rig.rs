//! Switches and one store node whose messages arrive at once, unless a test takes them.

use std::sync::Arc;

use resilient::{
    ChainMember, NodeId, Peer, ReplicaConfig, ReplicaEvent, RowId, RowValues, ShardChain, StateReplica, StoreConfig,
    StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId,
};
use switch::Time;

pub const LEASE_MS: u64 = 1000;
pub const ROW: RowId = RowId::empty(1);

pub const NODE: NodeId = NodeId(0);

pub fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

pub fn value(number: u8) -> Option<RowValues> {
    RowValues::new(&[number])
}

pub struct StoreRig {
    pub node: StoreNode,
    pub replicas: Vec<StateReplica>,
    /// Events of each replica, without messages.
    pub events: Vec<Vec<ReplicaEvent>>,
    /// Number of messages from switches.
    pub requests: usize,
}

impl StoreRig {
    pub fn new(switches: u32) -> StoreRig {
        StoreRig::with(switches, ReplicaConfig::default(), StoreConfig::default())
    }

    pub fn with(switches: u32, replica: ReplicaConfig, store: StoreConfig) -> StoreRig {
        let me = ChainMember { node: NODE, life: 1 };
        let chain = ShardChain { members: vec![me], learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let new = |switch| StateReplica::new(replica, Arc::clone(&layout), SwitchId(switch), u64::from(switch));
        StoreRig {
            node: StoreNode::founding(store, me, 1, Time::ZERO, &layout),
            replicas: (0..switches).map(new).collect(),
            events: (0..switches).map(|_| Vec::new()).collect(),
            requests: 0,
        }
    }

    /// Removes the messages of a switch, which are lost or late.
    pub fn take(&mut self, switch: usize) -> Vec<StoreMessage> {
        let mut messages = Vec::new();
        for event in self.replicas[switch].take_events() {
            match event {
                ReplicaEvent::Send { message, .. } => messages.push(message),
                event => self.events[switch].push(event),
            }
        }
        messages
    }

    /// Delivers a message to the node, and returns the node's messages.
    pub fn deliver(&mut self, now: Time, switch: usize, message: StoreMessage) -> Vec<(Peer, StoreMessage)> {
        self.requests += 1;
        self.node.receive(now, Peer::Switch(SwitchId(switch as u32)), message);
        self.replies(now)
    }

    pub fn replies(&mut self, now: Time) -> Vec<(Peer, StoreMessage)> {
        self.node.flush(now);
        let events = self.node.take_events().filter_map(|event| match event {
            StoreEvent::Send { to, message } => Some((to, message)),
            StoreEvent::Persist { .. } => None,
        });
        events.collect()
    }

    /// Lets all messages arrive until there are none. A granted row counts as used at once.
    pub fn run(&mut self, now: Time) {
        loop {
            let mut replies = self.replies(now);
            for switch in 0..self.replicas.len() {
                for message in self.take(switch) {
                    replies.extend(self.deliver(now, switch, message));
                }
            }
            if replies.is_empty() {
                return;
            }
            for (to, message) in replies {
                let Peer::Switch(switch) = to else { continue };
                self.replicas[switch.0 as usize].receive(now, NODE, &message);
            }
        }
    }

    /// Lets time pass to `until`, with everything that is due.
    pub fn run_until(&mut self, mut now: Time, until: Time) {
        loop {
            self.run(now);
            let deadlines = self.replicas.iter().map(StateReplica::next_deadline).chain([self.node.next_deadline()]);
            let Some(next) = deadlines.flatten().min().filter(|next| *next <= until) else { return };
            now = next.max(now.after_ns(1));
            self.replicas.iter_mut().for_each(|replica| replica.tick(now));
            self.node.tick(now);
        }
    }

    pub fn acquire(&mut self, now: Time, switch: usize, row: RowId) {
        self.replicas[switch].acquire(now, row);
        self.run(now);
        self.replicas[switch].unpin(now, &row);
    }
}
