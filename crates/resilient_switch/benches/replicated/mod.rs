//! A switch of an example program with one store in the same thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use compiler::Source;
use ir::Program;
use resilient::{ChainMember, NodeId, Peer, ShardChain, StoreConfig, StoreEvent, StoreLayout, StoreNode, SwitchId};
use resilient_switch::{ResilientConfig, ResilientSwitch};
use switch::{FrameMut, HeadroomBuf, Time};
use v1model::{Config, Switch, V1Model};

/// Returns a switch with a program, after a change of its text.
pub fn switch(path: &str, change: impl Fn(&str) -> String) -> Switch {
    let text = change(&std::fs::read_to_string(path).expect("the program can be read"));
    Switch::new(program(path, &text), Config::with_ports(5)).expect("it is a v1model program")
}

/// Compiles a program to IR.
pub fn program(path: &str, text: &str) -> Arc<Program> {
    Arc::new(compiler::expect_program(&Source::new(path, text), &V1Model).ir)
}

/// Returns a program's text without annotations of resilient state.
pub fn without_annotations(text: &str) -> String {
    let line = |line: &str| match line
        .split_once("@resilient[")
        .and_then(|(before, rest)| Some((before, rest.split_once(']')?.1)))
    {
        Some((before, after)) => format!("{before}{after}\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Bytes before a frame.
pub const HEADROOM: usize = 128;

/// Restores frames from `fresh` in their own memory, as a driver does. They have not been truncated.
pub fn restore(batch: &mut [HeadroomBuf], fresh: &[HeadroomBuf]) {
    for (frame, fresh) in batch.iter_mut().zip(fresh) {
        frame.set_start(HEADROOM);
        frame.headroom().0[HEADROOM..].copy_from_slice(fresh.bytes());
    }
}

/// A switch with a store in the same thread, which answers at once.
pub struct Replicated {
    pub switch: ResilientSwitch<Switch>,
    pub store: StoreNode,
    from: Peer,
    /// CPU time of the store so far.
    pub store_time: Duration,
}

impl Replicated {
    /// Wraps a switch, and creates its store.
    pub fn new(inner: Switch) -> Replicated {
        Replicated::with(inner, ResilientConfig::default())
    }

    /// Wraps a switch with these settings, and creates its store.
    pub fn with(inner: Switch, config: ResilientConfig) -> Replicated {
        let member = ChainMember { node: NodeId(1), life: 1 };
        let chain = ShardChain { members: vec![member], learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let identity = (SwitchId(1), 7);
        let wrapped = ResilientSwitch::new(inner, config, layout.clone(), identity);
        let switch = wrapped.unwrap_or_else(|error| panic!("{error}"));
        let store = StoreNode::founding(StoreConfig::default(), member, 1, Time::ZERO, &layout);
        Replicated { switch, store, from: Peer::Switch(SwitchId(1)), store_time: Duration::ZERO }
    }

    /// Exchanges messages until there are none. Returns the number of frames that left.
    pub fn exchange(&mut self, now: Time) -> usize {
        let mut left = Vec::new();
        loop {
            let messages = self.switch.take_messages();
            if messages.is_empty() {
                return left.len();
            }
            let begin = Instant::now();
            messages.into_iter().for_each(|(_, message)| self.store.receive(now, self.from, message));
            self.store.flush(now);
            let events: Vec<StoreEvent> = self.store.take_events().collect();
            self.store_time += begin.elapsed();
            let replies = events.iter().filter_map(|event| match event {
                StoreEvent::Send { message, .. } => Some((NodeId(1), message)),
                StoreEvent::Persist { .. } => None,
            });
            self.switch.deliver_all(now, replies, &mut left);
        }
    }
}
