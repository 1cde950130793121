//! Tests a node that joins a chain without traffic.

use std::sync::Arc;

use resilient::message::{Content, IfMissing, Progress, Request, RequestBody};
use resilient::{
    ChainMember, NodeId, OwnerId, Peer, RowAccess, RowId, ShardChain, ShardId, StoreConfig, StoreEvent, StoreLayout,
    StoreMessage, StoreNode, SwitchId,
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
    // The tail has the previous layout, and refuses messages of the head in the new one.
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

/// A report that later ones overtook must not make the head send all rows again.
#[test]
fn a_late_report_of_a_finished_copy_begins_no_other_one() {
    let [head, tail] = [0, 1].map(|node| ChainMember { node: NodeId(node), life: 1 });
    let layout = |epoch, learner| Arc::new(StoreLayout::new(epoch, vec![ShardChain { members: vec![head], learner }]));
    let (config, mut now) = (StoreConfig { max_frame_bytes: 300, ..StoreConfig::default() }, Time::ZERO);
    let mut first = StoreNode::founding(config, head, 1, now, &layout(1, None));
    let owner = OwnerId { switch: SwitchId(1), incarnation: 1 };
    let renew = RequestBody::Renew { shard: ShardId(0), nonce: 1 };
    let acquire = |index| RequestBody::Acquire {
        row: RowId::of_index(1, index),
        ask: u64::from(index),
        if_missing: IfMissing::Grant,
        idle_ms: 0,
        access: RowAccess::Write,
    };
    for body in std::iter::once(renew).chain((1..=40).map(acquire)) {
        first.receive(now, Peer::Switch(owner.switch), StoreMessage::Request(Request { layout: 1, owner, body }));
    }
    let mut pair = Pair([first, StoreNode::joining(config, tail, 2)]);
    pair.0.iter_mut().for_each(|node| node.set_layout(now, &layout(2, Some(tail))));
    let is_of_copy = |message: &StoreMessage| {
        matches!(message, StoreMessage::Progress(Progress { content: Content::Copying { .. }, .. }))
    };
    let mut late = None;
    while !pair.0[1].is_complete(ShardId(0)) {
        now = now.after_ns(config.retransmit_ns);
        pair.0.iter_mut().for_each(|node| node.tick(now));
        for (from, to, message) in pair.take(now) {
            late = Some(message.clone()).filter(is_of_copy).or(late);
            pair.0[to].receive(now, Peer::Node(NodeId(from as u32)), message);
        }
    }
    pair.run(now);
    assert_eq!(pair.0[1].rows(ShardId(0)), 40);
    pair.0[0].receive(now, Peer::Node(tail.node), late.expect("the copy has several parts"));
    let parts = pair.take(now).into_iter().filter(|(_, _, message)| match message {
        StoreMessage::Forward(forward) => forward.chunk.is_some(),
        _ => false,
    });
    assert_eq!(parts.count(), 0);
}
