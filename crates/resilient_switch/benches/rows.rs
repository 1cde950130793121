//! Cost of resilient state in memory: `examples/key-value` without its annotations, and with them at a switch that owns
//! all rows. Batches of 32 frames in place; both alternate, and the ratio is the median of the ratios of a turn.
//!
//! `cargo bench -p resilient_switch --bench rows`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use compiler::Source;
use resilient::{ChainMember, NodeId, Peer, ShardChain, StoreConfig, StoreEvent, StoreLayout, StoreNode, SwitchId};
use resilient_switch::{ResilientConfig, ResilientSwitch};
use switch::{Egress, HeadroomBuf, PacketSwitch, PortId, Time};
use v1model::{Config, Switch, V1Model};

const TURNS: usize = 101;
const BATCHES: usize = 256;
const BATCH: usize = 32;
const READ: u8 = 0;
const ADD: u8 = 2;

/// Returns a switch with the program, after a change of its text.
fn switch(change: impl Fn(&str) -> String) -> Switch {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/key-value/store.p4");
    let text = change(&std::fs::read_to_string(path).expect("the program can be read"));
    let program = compiler::expect_program(&Source::new("store.p4", &text), &V1Model).ir;
    Switch::new(Arc::new(program), Config::with_ports(2)).expect("it is a v1model program")
}

/// Returns frames with requests for 32 keys.
fn requests(operation: u8) -> Vec<HeadroomBuf> {
    let request = |key: u8| {
        let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6, operation, 0, key, 0, 0, 0, 1];
        data.resize(60, 0);
        HeadroomBuf::new(&data, 128)
    };
    (0..BATCH as u8).map(request).collect()
}

/// A switch with a store in the same thread, which answers at once.
struct Replicated {
    switch: ResilientSwitch<Switch>,
    store: StoreNode,
    from: Peer,
}

impl Replicated {
    fn new() -> Replicated {
        let member = ChainMember { node: NodeId(1), life: 1 };
        let chain = ShardChain { members: vec![member], learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let identity = (SwitchId(1), 7);
        let wrapped = ResilientSwitch::new(switch(str::to_owned), ResilientConfig::default(), layout.clone(), identity);
        let switch = wrapped.unwrap_or_else(|error| panic!("{error}"));
        let store = StoreNode::founding(StoreConfig::default(), member, 1, Time::ZERO, &layout);
        Replicated { switch, store, from: Peer::Switch(SwitchId(1)) }
    }

    /// Exchanges messages until there are none. Returns the number of frames that left.
    fn exchange(&mut self, now: Time) -> usize {
        let mut left = Vec::new();
        loop {
            let messages = self.switch.take_messages();
            if messages.is_empty() {
                return left.len();
            }
            messages.into_iter().for_each(|(_, message)| self.store.receive(now, self.from, message));
            self.store.flush(now);
            for event in self.store.take_events() {
                if let StoreEvent::Send { message, .. } = event {
                    self.switch.deliver(now, NodeId(1), &message, &mut left);
                }
            }
        }
    }
}

/// Returns nanoseconds a packet of one turn.
fn turn(mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..BATCHES).for_each(|_| work());
    begin.elapsed().as_nanos() as f64 / (BATCH * BATCHES) as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut plain = switch(|text| text.replace("@resilient[group = \"keys\"] ", ""));
    let mut alone = switch(str::to_owned);
    let mut replicated = Replicated::new();
    let now = Time::from_us(1);
    println!("| | plain, ns | resilient, ns | ratio | bound |\n|---|---|---|---|---|");
    for (name, operation, bound) in [("read of an owned row", READ, "1.05"), ("write, with its store", ADD, "")] {
        let fresh = requests(operation);
        let mut batch = fresh.clone();
        let mut left: Vec<Egress> = Vec::new();
        // The rows come with the first packets.
        replicated.switch.step_in_place(now, PortId(1), &mut batch, &mut left);
        assert_eq!(replicated.exchange(now) + left.len(), BATCH);
        let mut figures: [Vec<f64>; 4] = Default::default();
        for _ in 0..TURNS {
            let one = turn(|| {
                batch.clone_from_slice(&fresh);
                left.clear();
                plain.step_in_place(now, PortId(1), &mut batch, &mut left);
                assert_eq!(black_box(&left).len(), BATCH);
            });
            let unowned = turn(|| {
                batch.clone_from_slice(&fresh);
                left.clear();
                alone.step_in_place(now, PortId(1), &mut batch, &mut left);
                assert_eq!(black_box(&left).len(), BATCH);
            });
            let other = turn(|| {
                batch.clone_from_slice(&fresh);
                left.clear();
                replicated.switch.step_in_place(now, PortId(1), &mut batch, &mut left);
                assert_eq!(replicated.exchange(now) + black_box(&left).len(), BATCH);
            });
            for (list, value) in figures.iter_mut().zip([one, other, other / one, unowned / one]) {
                list.push(value);
            }
        }
        let [plain_ns, resilient_ns, ratio, unowned] = figures.each_mut().map(|list| median(list));
        println!("| {name} | {plain_ns:.1} | {resilient_ns:.1} | **{ratio:.2}** | {bound} |");
        println!("| the same program without stores | | | {unowned:.2} | |");
    }
}
