//! Tests operators with nodes whose answers the test controls.

use std::collections::BTreeMap;

use switch::Time;

use super::*;
use crate::layout::{OperatorId, ShardChain, ShardId};
use crate::message::{NodeStatus, ShardStatus};

/// The answers of a node.
#[derive(Clone, Copy)]
struct Answer {
    count: u32,
    layout: u64,
    is_active: bool,
    is_complete: bool,
}

const NEW: Answer = Answer { count: 1, layout: 0, is_active: false, is_complete: false };

/// An operator with four nodes. A chain should have three of them.
struct OperatorRig {
    operator: LayoutOperator,
    now: Time,
    answers: BTreeMap<u32, Answer>,
    kept: Option<LayoutRecord>,
    notes: Vec<OperatorNote>,
    /// Whether proposals wait.
    is_slow: bool,
    sent: Vec<(Peer, u64)>,
}

impl OperatorRig {
    fn new() -> OperatorRig {
        let operator = LayoutOperator::new(OperatorRig::config(), None, 7);
        let answers = (1..=4).map(|node| (node, NEW)).collect();
        OperatorRig {
            operator,
            now: Time::ZERO,
            answers,
            kept: None,
            notes: Vec::new(),
            is_slow: false,
            sent: Vec::new(),
        }
    }

    fn config() -> OperatorConfig {
        let nodes = (1..=4).map(NodeId).collect();
        OperatorConfig { nodes, switches: vec![SwitchId(1)], ..OperatorConfig::default() }
    }

    /// A chain of the nodes 1, 2 and 3 that have the first layout.
    fn founded() -> OperatorRig {
        let mut rig = OperatorRig::new();
        rig.poll(1);
        rig.settle();
        rig.notes.clear();
        rig.sent.clear();
        rig
    }

    /// Gives nodes the newest layout, and makes members active.
    fn settle(&mut self) {
        let layout = Arc::clone(self.operator.layout());
        let chain = layout.chains()[0].clone();
        for (node, answer) in &mut self.answers {
            let me = ChainMember::in_life(NodeId(*node), answer.count, 0);
            answer.layout = layout.epoch();
            answer.is_active = chain.position(me).is_some();
            answer.is_complete = chain.learner == Some(me);
        }
    }

    fn poll(&mut self, times: u32) {
        for _ in 0..times {
            self.now = self.operator.next_deadline();
            self.operator.tick(self.now);
            self.act();
        }
    }

    fn act(&mut self) {
        loop {
            let events: Vec<OperatorEvent> = self.operator.take_events().collect();
            if events.is_empty() {
                return;
            }
            events.into_iter().for_each(|event| self.event(event));
        }
    }

    fn event(&mut self, event: OperatorEvent) {
        match event {
            OperatorEvent::Send { to: to @ Peer::Node(node), message: StoreMessage::StatusRequest(request) } => {
                let Some(answer) = self.answers.get(&node.0) else { return };
                let shard = ShardStatus {
                    shard: ShardId(0),
                    is_active: answer.is_active,
                    is_complete: answer.is_complete,
                    rows: 0,
                    log: 0,
                    pending: 0,
                };
                let status = NodeStatus {
                    number: request.number,
                    life: ChainMember::in_life(node, answer.count, 0).life,
                    layout: answer.layout,
                    shards: vec![shard],
                    groups: Vec::new(),
                };
                self.operator.receive(to, &StoreMessage::Status(status));
            }
            OperatorEvent::Send { to, message: StoreMessage::Layout(layout) } => self.sent.push((to, layout.epoch())),
            OperatorEvent::Send { .. } => {}
            OperatorEvent::Commit { .. } if self.is_slow => {}
            OperatorEvent::Commit { record } => {
                assert!(record.follows(self.kept.as_ref()), "{record:?} after {:?}", self.kept);
                let epoch = record.layout.epoch();
                self.kept = Some(record);
                self.operator.committed(epoch);
            }
            OperatorEvent::Reload => self.operator.superseded(self.kept.clone()),
            OperatorEvent::Note(note) => self.notes.push(note),
        }
    }

    /// Returns the nodes of the chain in the committed record, and the learner.
    fn chain(&self) -> (Vec<u32>, Option<u32>) {
        let Some(kept) = &self.kept else { return (Vec::new(), None) };
        let ShardChain { members, learner } = &kept.layout.chains()[0];
        (members.iter().map(|member| member.node.0).collect(), learner.map(|member| member.node.0))
    }
}

#[test]
fn the_first_layout_is_of_nodes_in_their_first_life() {
    let mut rig = OperatorRig::new();
    rig.answers.remove(&3);
    rig.answers.insert(1, Answer { count: 2, ..NEW });
    rig.poll(9);
    assert_eq!(rig.kept, None);
    assert!(rig.notes.contains(&OperatorNote::WaitsForNodes { ready: 2, wanted: 3 }), "{:?}", rig.notes);
    rig.answers.insert(3, NEW);
    rig.poll(1);
    assert_eq!(rig.chain(), (vec![2, 3, 4], None));
}

#[test]
fn nodes_that_have_a_layout_are_not_founded_again() {
    let mut rig = OperatorRig::new();
    rig.answers.insert(4, Answer { layout: 9, ..NEW });
    rig.poll(9);
    assert_eq!(rig.kept, None);
    assert!(rig.notes.contains(&OperatorNote::RecordLost(9)), "{:?}", rig.notes);
}

#[test]
fn a_silent_member_is_replaced_by_a_spare_and_returns_as_one() {
    let mut rig = OperatorRig::founded();
    rig.answers.remove(&1);
    rig.poll(4);
    assert_eq!(rig.chain(), (vec![1, 2, 3], None), "an answer may be late");
    rig.poll(1);
    assert_eq!(rig.chain(), (vec![2, 3], None));
    rig.poll(3);
    assert_eq!(rig.chain(), (vec![2, 3], None), "no node has said that it has the new layout");
    rig.settle();
    rig.poll(1);
    assert_eq!(rig.chain(), (vec![2, 3], Some(4)));
    rig.settle();
    rig.answers.entry(4).and_modify(|answer| answer.is_complete = false);
    rig.poll(3);
    assert_eq!(rig.chain(), (vec![2, 3], Some(4)), "it has not all rows");
    rig.answers.insert(1, Answer { count: 2, ..NEW });
    rig.settle();
    rig.poll(1);
    assert_eq!(rig.chain(), (vec![2, 3, 4], None));
    rig.settle();
    rig.poll(9);
    assert_eq!(rig.chain(), (vec![2, 3, 4], None), "the chain has its length");
}

#[test]
fn a_member_that_forgot_is_removed_at_once() {
    let mut rig = OperatorRig::founded();
    rig.answers.insert(2, Answer { count: 2, ..NEW });
    rig.poll(1);
    assert_eq!(rig.chain(), (vec![1, 3], None));
}

#[test]
fn the_last_active_member_stays() {
    let mut rig = OperatorRig::founded();
    rig.answers.retain(|node, _| *node == 3);
    rig.answers.values_mut().for_each(|answer| answer.is_active = false);
    rig.poll(9);
    assert_eq!(rig.chain(), (vec![1, 2, 3], None));
    rig.answers.values_mut().for_each(|answer| answer.is_active = true);
    rig.poll(1);
    assert_eq!(rig.chain(), (vec![3], None));
}

#[test]
fn a_chain_that_forgot_is_reported_and_kept() {
    let mut rig = OperatorRig::founded();
    rig.answers.values_mut().for_each(|answer| *answer = Answer { count: 2, ..NEW });
    rig.poll(3);
    assert_eq!(rig.chain(), (vec![1, 2, 3], None));
    assert!(rig.notes.contains(&OperatorNote::RowsLost(ShardId(0))), "{:?}", rig.notes);
}

#[test]
fn a_drained_node_leaves_when_another_one_has_joined() {
    let mut rig = OperatorRig::founded();
    rig.poll(1);
    rig.operator.drain(NodeId(2)).unwrap();
    rig.act();
    let mut chains = vec![rig.chain()];
    for _ in 0..6 {
        rig.settle();
        rig.poll(1);
        chains.push(rig.chain());
    }
    chains.dedup();
    let (all, four) = (vec![1, 2, 3], vec![1, 2, 3, 4]);
    assert_eq!(chains, [(all, Some(4)), (four, None), (vec![1, 3, 4], None)]);
    assert!(rig.kept.as_ref().unwrap().drained.contains(&NodeId(2)));
    // Another operator has this state, and the node does not return by itself.
    rig.operator = LayoutOperator::new(OperatorRig::config(), rig.kept.clone(), 8);
    rig.answers.remove(&1);
    for _ in 0..9 {
        rig.settle();
        rig.poll(1);
    }
    assert_eq!(rig.chain(), (vec![3, 4], None));
    rig.operator.undrain(NodeId(2)).unwrap();
    for _ in 0..3 {
        rig.act();
        rig.settle();
        rig.poll(1);
    }
    assert_eq!(rig.chain(), (vec![3, 4, 2], None));
}

#[test]
fn commands_that_cannot_be_done_are_refused() {
    let mut rig = OperatorRig::new();
    assert_eq!(rig.operator.drain(NodeId(1)), Err(CommandRefusal::NoLayout));
    rig = OperatorRig::founded();
    assert_eq!(rig.operator.drain(NodeId(5)), Err(CommandRefusal::Unknown(NodeId(5))));
    assert_eq!(rig.operator.replace(NodeId(4), None), Err(CommandRefusal::NoMember(NodeId(4))));
    assert_eq!(rig.operator.replace(NodeId(1), Some(NodeId(2))), Err(CommandRefusal::NotSpare(NodeId(2))));
    rig.answers.remove(&4);
    rig.poll(6);
    assert_eq!(rig.operator.replace(NodeId(1), None), Err(CommandRefusal::NoSpare));
}

#[test]
fn a_layout_leaves_only_after_it_is_kept() {
    let mut rig = OperatorRig::founded();
    rig.is_slow = true;
    rig.answers.remove(&1);
    rig.poll(20);
    assert!(rig.sent.iter().all(|(_, epoch)| *epoch == 1), "{:?}", rig.sent);
    // Another operator was faster.
    let layout = StoreLayout::new(2, vec![ShardChain { members: vec![], learner: None }]);
    let other = LayoutRecord { layout: Arc::new(layout), ..LayoutRecord::default() };
    rig.operator.committed(7);
    rig.operator.superseded(Some(other.clone()));
    rig.act();
    assert_eq!(rig.operator.layout(), &other.layout);
    assert!(rig.sent.contains(&(Peer::Switch(SwitchId(1)), 2)));
    rig.operator.superseded(None);
    assert_eq!(rig.operator.layout(), &other.layout);
}

#[test]
fn answers_that_are_late_or_to_another_operator_do_not_count() {
    let mut rig = OperatorRig::founded();
    rig.answers.remove(&1);
    let status = |number| {
        let life = ChainMember::in_life(NodeId(1), 1, 0).life;
        StoreMessage::Status(NodeStatus { number, life, layout: 1, shards: Vec::new(), groups: Vec::new() })
    };
    for _ in 0..8 {
        for number in [0, 3, 4, u64::MAX] {
            rig.operator.receive(Peer::Node(NodeId(1)), &status(number));
        }
        rig.poll(1);
    }
    assert_eq!(rig.chain(), (vec![2, 3], None));
}

#[test]
fn messages_that_nobody_sends_change_nothing() {
    let mut rig = OperatorRig::founded();
    for from in [Peer::Operator(OperatorId::ONLY), Peer::Switch(SwitchId(9)), Peer::Node(NodeId(99))] {
        let forged = StoreLayout::new(u64::MAX, Vec::new());
        rig.operator.receive(from, &StoreMessage::Layout(Arc::new(forged)));
        rig.operator.receive(from, &StoreMessage::LayoutRequest(u64::MAX));
    }
    rig.poll(3);
    assert_eq!((rig.operator.layout().epoch(), rig.chain()), (1, (vec![1, 2, 3], None)));
}
