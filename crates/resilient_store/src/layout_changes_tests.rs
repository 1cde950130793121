//! Tests changes with a keeper that fails, lags and loses records on request.

use std::sync::{Arc, Mutex};

use resilient::message::NodeStatus;
use resilient::operator::OperatorNote;
use resilient::{ChainMember, NodeId, OperatorConfig, OperatorEvent, Peer, ShardChain, StoreLayout, StoreMessage};
use switch::Time;

use super::*;

/// The behaviour of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Done,
    /// The record is committed, and the answer is lost.
    AnswerLost,
    /// Nothing happens.
    RequestLost,
}

/// A service, with its record.
struct Service {
    kept: Option<LayoutRecord>,
    call: Call,
    swaps: u32,
    loads: u32,
}

#[derive(Clone)]
struct SharedKeeper(Arc<Mutex<Service>>);

impl SharedKeeper {
    fn failure<T>() -> Result<T, KeeperError> {
        Err(KeeperError::Service("it does not answer".to_owned()))
    }
}

impl LayoutKeeper for SharedKeeper {
    fn load(&mut self) -> Result<Option<LayoutRecord>, KeeperError> {
        let mut service = self.0.lock().unwrap();
        service.loads += 1;
        if service.call == Call::Done { Ok(service.kept.clone()) } else { SharedKeeper::failure() }
    }

    fn compare_and_swap(&mut self, record: &LayoutRecord) -> Result<LayoutSwap, KeeperError> {
        let mut service = self.0.lock().unwrap();
        service.swaps += 1;
        match (service.call, record.follows(service.kept.as_ref())) {
            (Call::RequestLost, _) => SharedKeeper::failure(),
            (Call::Done, false) => Ok(LayoutSwap::Superseded(service.kept.clone())),
            (call, is_next) => {
                if is_next {
                    service.kept = Some(record.clone());
                }
                if call == Call::Done { Ok(LayoutSwap::Kept) } else { SharedKeeper::failure() }
            }
        }
    }
}

/// An operator of one store, its changes, and the service.
struct Rig {
    operator: LayoutOperator,
    changes: LayoutChanges,
    service: Arc<Mutex<Service>>,
    now: Instant,
    /// Remarks of both.
    notes: Vec<String>,
}

fn record(epoch: u64, life: u32) -> LayoutRecord {
    let chain = ShardChain { members: vec![ChainMember::in_life(NodeId(1), life, 1)], learner: None };
    LayoutRecord { layout: Arc::new(StoreLayout::new(epoch, vec![chain])), ..LayoutRecord::default() }
}

impl Rig {
    fn new() -> Rig {
        let service = Arc::new(Mutex::new(Service { kept: None, call: Call::Done, swaps: 0, loads: 0 }));
        let config =
            OperatorConfig { nodes: vec![NodeId(1)], chain_length: 1, is_reckless: true, ..OperatorConfig::default() };
        let mut operator = LayoutOperator::new(config, None, 0);
        operator.tick(Time::ZERO);
        let now = Instant::now();
        let changes = LayoutChanges::start(SharedKeeper(Arc::clone(&service)), now);
        Rig { operator, changes, service, now, notes: Vec::new() }
    }

    /// The answer of the store to the first request, after which the operator proposes the first layout.
    fn propose(&mut self) {
        let life = ChainMember::in_life(NodeId(1), 1, 1).life;
        let status = NodeStatus { number: 1, life, layout: 0, shards: Vec::new(), groups: Vec::new() };
        self.operator.receive(Peer::Node(NodeId(1)), &StoreMessage::Status(status));
    }

    fn step(&mut self) {
        for event in self.operator.take_events().collect::<Vec<_>>() {
            match event {
                OperatorEvent::Commit { record } => self.changes.propose(record),
                OperatorEvent::Reload => self.changes.reload(self.now),
                OperatorEvent::Note(OperatorNote::Changed { .. }) => self.notes.push("changed".to_owned()),
                OperatorEvent::Note(OperatorNote::Superseded(epoch)) => self.notes.push(format!("follows {epoch}")),
                _ => {}
            }
        }
        self.notes.extend(self.changes.step(self.now, &mut self.operator));
    }

    /// Performs all steps that need no time.
    fn settle(&mut self) {
        self.step();
        while self.changes.is_busy() || self.operator.is_changing() && self.changes.blocked_reason().is_none() {
            self.step();
            std::thread::yield_now();
        }
        self.step();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.settle();
    }

    fn set(&mut self, call: Call) {
        self.service.lock().unwrap().call = call;
    }

    fn epoch(&self) -> u64 {
        self.operator.layout().epoch()
    }
}

#[test]
fn a_change_whose_answer_is_lost_counts_once_it_is_known() {
    let mut rig = Rig::new();
    rig.set(Call::AnswerLost);
    rig.propose();
    rig.settle();
    assert_eq!(rig.notes, ["the layout cannot be changed: it does not answer"]);
    assert_eq!(rig.epoch(), 0, "a layout leaves only once it is known to be kept");
    (0..20).for_each(|_| rig.pass(MAX_RETRY));
    rig.set(Call::Done);
    rig.pass(MAX_RETRY);
    assert_eq!(rig.epoch(), 1);
    assert_eq!(rig.notes[1..], ["the layout can be changed again", "changed"]);
    let service = rig.service.lock().unwrap();
    assert_eq!((service.swaps, service.loads), (1, 21), "an unknown outcome is loaded, not tried again");
}

#[test]
fn a_change_that_is_lost_is_proposed_again() {
    let mut rig = Rig::new();
    rig.set(Call::RequestLost);
    rig.propose();
    rig.settle();
    rig.set(Call::Done);
    rig.pass(MIN_RETRY);
    rig.settle();
    assert_eq!((rig.epoch(), rig.service.lock().unwrap().swaps), (1, 2));
    assert_eq!(rig.notes.last().unwrap(), "changed");
}

#[test]
fn the_record_of_another_operator_is_followed() {
    let mut rig = Rig::new();
    rig.set(Call::RequestLost);
    rig.propose();
    rig.settle();
    // Another operator was first, with the same epoch and other content.
    rig.service.lock().unwrap().kept = Some(record(1, 9));
    rig.set(Call::Done);
    rig.pass(MIN_RETRY);
    assert_eq!(rig.operator.layout(), &record(1, 9).layout);
    assert!(rig.notes.contains(&"follows 1".to_owned()), "{:?}", rig.notes);
    // And one while a change is under way.
    let mut rig = Rig::new();
    rig.service.lock().unwrap().kept = Some(record(4, 9));
    rig.propose();
    rig.settle();
    assert_eq!((rig.epoch(), rig.service.lock().unwrap().swaps), (4, 1));
}

#[test]
fn a_record_that_is_lost_stops_changes_until_it_is_there_again() {
    let mut rig = Rig::new();
    rig.propose();
    rig.settle();
    assert_eq!(rig.epoch(), 1);
    let kept = rig.service.lock().unwrap().kept.take();
    rig.operator.drain(NodeId(1)).unwrap();
    rig.settle();
    let lost = "the layout cannot be changed: layout 1 was lost: found no record; restore it";
    assert_eq!(rig.notes.last().unwrap(), lost);
    let swaps = rig.service.lock().unwrap().swaps;
    (0..10).for_each(|_| rig.pass(MAX_RETRY));
    assert_eq!(rig.service.lock().unwrap().swaps, swaps, "nothing is tried meanwhile");
    assert_eq!(rig.notes.last().unwrap(), lost, "it is said once");
    rig.service.lock().unwrap().kept = kept;
    rig.pass(MAX_RETRY);
    assert!(rig.notes.contains(&"the layout can be changed again".to_owned()), "{:?}", rig.notes);
}

#[test]
fn loads_are_repeated_at_growing_intervals() {
    let mut rig = Rig::new();
    rig.set(Call::RequestLost);
    rig.propose();
    rig.settle();
    let mut loads = Vec::new();
    for _ in 0..64 {
        rig.pass(MIN_RETRY);
        loads.push(rig.service.lock().unwrap().loads);
    }
    // After 0.25, 0.75, 1.75, 3.75, 7.75, 11.75 and 15.75 s.
    let times: Vec<usize> = (1..=7).map(|count| loads.iter().position(|it| *it == count).unwrap() + 1).collect();
    assert_eq!(times, [1, 3, 7, 15, 31, 47, 63]);
}
