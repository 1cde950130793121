//! Requests per second of a store node, of a chain of three nodes in one thread, and of a replica with its store.
//!
//! ```text
//! cargo bench -p resilient --bench store
//! ```
//!
//! The baseline is an upsert into a hash map and a reply, without ownership, epochs and chain. Values have 8 bytes. The
//! figures include the making of messages as values, not their binary form. The feature `simulation` is on in
//! benchmarks: its tests for mutants cost about a percent.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::FixedState;
use resilient::message::{IfMissing, Reply, ReplyBody, Request, RequestBody};
use resilient::{
    ChainMember, NodeId, OwnerId, Peer, ReplicaConfig, ReplicaEvent, RowAccess, RowId, RowValues, ShardChain, ShardId,
    StateReplica, StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId,
};
use rng::SplitMix64;
use switch::Time;

const ROWS: u32 = 1_000_000;
const REQUESTS: u64 = 5_000_000;
/// Number of requests that arrive together.
const BATCH: u64 = 32;
const OWNER: OwnerId = OwnerId { switch: SwitchId(1), incarnation: 1 };
const NOW: Time = Time::from_ms(1);

fn row(index: u64) -> RowId {
    RowId::of_index(1, index as u32)
}

fn values(number: u64) -> Option<RowValues> {
    RowValues::new(&number.to_be_bytes())
}

fn request(body: RequestBody) -> StoreMessage {
    StoreMessage::Request(Request { layout: 1, owner: OWNER, body })
}

/// A chain of nodes whose messages arrive at once.
struct NodeChain {
    nodes: Vec<StoreNode>,
    events: Vec<StoreEvent>,
    replies: u64,
}

impl NodeChain {
    fn new(length: u32) -> NodeChain {
        let members: Vec<ChainMember> = (0..length).map(|node| ChainMember { node: NodeId(node), life: 1 }).collect();
        let chain = ShardChain { members: members.clone(), learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let config = StoreConfig { max_frame_bytes: 8000, ..StoreConfig::default() };
        let node = |member: &ChainMember| StoreNode::founding(config, *member, 1, NOW, &layout);
        NodeChain { nodes: members.iter().map(node).collect(), events: Vec::new(), replies: 0 }
    }

    fn receive(&mut self, message: StoreMessage) {
        self.nodes[0].receive(NOW, Peer::Switch(OWNER.switch), message);
    }

    /// Lets the nodes exchange messages until there are none, and counts the replies.
    fn flush(&mut self) {
        loop {
            let mut is_idle = true;
            for index in 0..self.nodes.len() {
                self.nodes[index].flush(NOW);
                self.events.extend(self.nodes[index].take_events());
                for event in self.events.drain(..) {
                    match event {
                        StoreEvent::Send { to: Peer::Node(node), message } => {
                            is_idle = false;
                            self.nodes[node.0 as usize].receive(NOW, Peer::Node(NodeId(index as u32)), message);
                        }
                        event => {
                            self.replies += 1;
                            black_box(event);
                        }
                    }
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn own_all(&mut self) {
        self.receive(request(RequestBody::Renew { shard: ShardId(0), nonce: 1 }));
        for index in 0..u64::from(ROWS) {
            self.receive(request(RequestBody::Acquire {
                row: row(index),
                ask: index + 1,
                if_missing: IfMissing::Grant,
                idle_ms: 0,
                access: RowAccess::Write,
            }));
            if index % BATCH == 0 {
                self.flush();
            }
        }
        self.flush();
    }
}

fn measure(name: &str, count: u64, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    let seconds = start.elapsed().as_secs_f64();
    println!("{name:<40} {:>6.2} M/s  {:>5.0} ns", count as f64 / seconds / 1e6, seconds / count as f64 * 1e9);
}

fn chain(length: u32) {
    let mut chain = NodeChain::new(length);
    chain.own_all();
    let mut random = SplitMix64::new(7);
    chain.replies = 0;
    measure(&format!("writes, chain of {length}, 1 M rows"), REQUESTS, || {
        let mut batch = Vec::new();
        for seq in 1..=REQUESTS {
            let row = row(random.below(u64::from(ROWS)));
            let write = RequestBody::Write { row, epoch: 1, seq, values: values(seq), outputs: None };
            batch.push((Peer::Switch(OWNER.switch), request(write)));
            if seq % BATCH == 0 {
                chain.nodes[0].receive_all(NOW, &mut batch);
                chain.flush();
            }
        }
    });
    assert_eq!(chain.replies, REQUESTS);
}

fn baseline() {
    let mut rows: HashMap<RowId, (u64, Option<RowValues>), FixedState> = HashMap::default();
    (0..u64::from(ROWS)).for_each(|index| drop(rows.insert(row(index), (0, None))));
    let mut random = SplitMix64::new(7);
    measure("hash map, 1 M rows", REQUESTS, || {
        for seq in 1..=REQUESTS {
            let row = row(random.below(u64::from(ROWS)));
            rows.insert(row, (seq, values(seq)));
            let body = ReplyBody::Acked { row, epoch: 1, seq, outputs: None };
            black_box(StoreMessage::Reply(Reply { owner: OWNER, body }));
        }
    });
}

/// Lets the replica and the node exchange messages until there are none.
fn exchange(replica: &mut StateReplica, node: &mut StoreNode) {
    loop {
        let sent: Vec<ReplicaEvent> = replica.take_events().collect();
        if sent.is_empty() {
            return;
        }
        for event in sent {
            if let ReplicaEvent::Send { message, .. } = event {
                node.receive(NOW, Peer::Switch(SwitchId(1)), message);
            }
        }
        node.flush(NOW);
        for event in node.take_events() {
            if let StoreEvent::Send { message, .. } = event {
                replica.receive(NOW, NodeId(0), &message);
            }
        }
    }
}

fn replica() {
    const OWNED: u64 = 100_000;
    let mut node = NodeChain::new(1).nodes.remove(0);
    let config = ReplicaConfig { max_asks: OWNED as usize, ..ReplicaConfig::default() };
    let mut replica = StateReplica::new(config, Arc::clone(node.layout()), SwitchId(1), 1);
    (0..OWNED).for_each(|index| replica.acquire(NOW, row(index)));
    exchange(&mut replica, &mut node);
    let mut random = SplitMix64::new(7);
    measure("test of an owned row, 100 K rows", REQUESTS, || {
        for _ in 0..REQUESTS {
            assert!(replica.is_owned(NOW, &row(random.below(OWNED))));
        }
    });
    measure("write and acknowledgement, 100 K rows", REQUESTS, || {
        for number in 0..REQUESTS {
            replica.write(NOW, &row(random.below(OWNED)), values(number));
            if number % BATCH == 0 {
                exchange(&mut replica, &mut node);
            }
        }
        exchange(&mut replica, &mut node);
    });
}

fn main() {
    baseline();
    chain(1);
    chain(2);
    chain(3);
    replica();
}
