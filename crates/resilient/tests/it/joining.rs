//! A node joins a chain that has no traffic.

use std::sync::Arc;

use resilient::{
    ChainMember, NodeId, Peer, ShardChain, ShardId, StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode,
};
use switch::Time;

/// Two nodes whose messages arrive at once, unless a test takes them.
struct Pair([StoreNode; 2]);

impl Pair {
    fn take(&mut self, now: Time) -> Vec<(usize, usize, StoreMessage)> {
        let mut messages = Vec::new();
        for (at, node) in self.0.iter_mut().enumerate() {
            node.flush(now);
            for event in node.take_events() {
                if let StoreEvent::Send { to: Peer::Node(to), message } = event {
                    messages.push((at, to.0 as usize, message));
                }
            }
        }
        messages
    }

    fn run(&mut self, now: Time) {
        loop {
            let messages = self.take(now);
            if messages.is_empty() {
                return;
            }
            for (from, to, message) in messages {
                self.0[to].receive(now, Peer::Node(NodeId(from as u32)), message);
            }
        }
    }
}

#[test]
fn a_new_tail_that_gets_its_layout_late_becomes_active() {
    let [head, tail] = [0, 1].map(|node| ChainMember { node: NodeId(node), life: 1 });
    let layout = |epoch, members: &[ChainMember], learner| {
        Arc::new(StoreLayout::new(epoch, vec![ShardChain { members: members.to_vec(), learner }]))
    };
    let (config, mut now) = (StoreConfig::default(), Time::ZERO);
    let first = StoreNode::founding(config, head, 1, now, &layout(1, &[head], None));
    let mut pair = Pair([first, StoreNode::joining(config, tail, 2)]);
    pair.0.iter_mut().for_each(|node| node.set_layout(now, &layout(2, &[head], Some(tail))));
    pair.run(now);
    assert!(pair.0[1].is_complete(ShardId(0)));
    let joined = layout(3, &[head, tail], None);
    pair.0[0].set_layout(now, &joined);
    // The tail has the layout before, and refuses what the head sends in the new one.
    pair.take(now);
    pair.0[1].set_layout(now, &joined);
    pair.run(now);
    for _ in 0..3 {
        now = now.after_ns(config.retransmit_ns);
        pair.0.iter_mut().for_each(|node| node.tick(now));
        pair.run(now);
    }
    assert!(pair.0[1].is_active(ShardId(0)));
    assert!(pair.0.iter().all(|node| node.next_deadline().is_none()), "an idle chain sends nothing");
}
