//! The system as a model: its states, and the actions that lead from one to the next.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use resilient::{
    ChainMember, HoldMode, Mutation, NodeId, OperatorId, Peer, ReplicaConfig, ShardChain, ShardId, StateReplica,
    StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId, expiry_ns,
};
use stateright::{Model, Property};
use switch::Time;

use crate::bounds::{ModelBounds, RowInput};
use crate::coverage::Coverage;
use crate::model_switch::{ModelSwitch, SwitchEffect};
use crate::network::{Hashed, MessageSet, SentMessage};
use crate::observed::ObservedHistory;

/// The only shard.
pub(crate) const SHARD: ShardId = ShardId(0);

/// Nanoseconds of a tick by the clock of a switch, at its slowest.
const SWITCH_TICK_NS: u64 = 2;

/// Nanoseconds of a tick by the clock of a node, at its fastest.
const NODE_TICK_NS: u64 = 3;

/// The drift whose extremes these ticks are: 3/2 = (1 + 0.2) / (1 - 0.2).
const DRIFT_PPM: u32 = 200_000;

/// The state of the system, and its history.
#[derive(Clone, Debug)]
pub struct SystemState {
    pub(crate) tick: u8,
    pub(crate) switches: Vec<Hashed<ModelSwitch>>,
    pub(crate) nodes: Vec<Hashed<StoreNode>>,
    pub(crate) messages: MessageSet,
    /// The operator's newest layout.
    pub(crate) layout: Arc<StoreLayout>,
    history: ObservedHistory,
    crashes: u8,
    amnesias: u8,
    repetitions: u8,
    /// The first output that contradicts the history.
    contradiction: Option<&'static str>,
}

impl SystemState {
    /// Returns the time that a machine sees.
    fn now(&self, peer: Peer) -> Time {
        let tick_ns = if matches!(peer, Peer::Switch(_)) { SWITCH_TICK_NS } else { NODE_TICK_NS };
        Time::from_ns(u64::from(self.tick) * tick_ns)
    }
}

impl Hash for SystemState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.tick, &self.switches, &self.nodes, &self.messages, &self.layout).hash(hasher);
        (&self.history, self.crashes, self.amnesias, self.repetitions, self.contradiction).hash(hasher);
    }
}

impl PartialEq for SystemState {
    fn eq(&self, other: &SystemState) -> bool {
        let hash = |state: &SystemState| Hashed::new(state.clone());
        hash(self) == hash(other)
    }
}

/// A step of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemAction {
    /// A message arrives.
    Deliver(usize),
    /// A message arrives, and may arrive again.
    Repeat(usize),
    /// Time passes.
    Tick,
    /// A switch observes the time.
    WakeSwitch(u8),
    /// A node observes the time.
    WakeNode(u8),
    /// A packet arrives: switch, row and kind.
    Input(u8, u8, RowInput),
    /// A switch crashes and restarts.
    Crash(u8),
    /// A node loses its memory and restarts.
    Forget(u8),
    /// The operator makes this chain the newest one.
    Change(ShardChain),
}

/// A bounded system.
#[derive(Debug)]
pub struct SystemModel {
    bounds: ModelBounds,
    replica: ReplicaConfig,
    store: StoreConfig,
    /// Counts of the transitions in a search.
    pub coverage: Coverage,
}

impl SystemModel {
    /// Creates a model.
    pub fn new(bounds: ModelBounds) -> SystemModel {
        let mutation = Mutation::of(bounds.mutant);
        let lease_ns = SWITCH_TICK_NS * u64::from(bounds.lease_ticks) - 1;
        debug_assert!(expiry_ns(lease_ns, DRIFT_PPM) > (u64::from(bounds.lease_ticks) - 1) * NODE_TICK_NS);
        let retransmit_ticks = u64::from(bounds.retransmit_ticks);
        let retransmit_ns = retransmit_ticks * SWITCH_TICK_NS;
        let hold = if bounds.is_piggyback { HoldMode::Piggyback } else { HoldMode::Local };
        let replica = ReplicaConfig { lease_ns, retransmit_ns, hold, mutation, ..ReplicaConfig::default() };
        let store = StoreConfig {
            lease_ns,
            drift_ppm: DRIFT_PPM,
            recall_ns: NODE_TICK_NS,
            waiter_timeout_ns: 2 * NODE_TICK_NS,
            retransmit_ns: retransmit_ticks * NODE_TICK_NS,
            mutation,
            ..StoreConfig::default()
        };
        SystemModel { bounds, replica, store, coverage: Coverage::default() }
    }

    fn new_switch(&self, number: u8, start: u8, layout: &Arc<StoreLayout>) -> ModelSwitch {
        let incarnation = u64::from(number) << 8 | u64::from(start);
        let switch = SwitchId(u32::from(number));
        let replica = StateReplica::new(self.replica, Arc::clone(layout), switch, incarnation);
        ModelSwitch::new(replica, start, &self.bounds)
    }

    fn first_state(&self) -> SystemState {
        let member = |node| ChainMember { node: NodeId(u32::from(node)), life: 1 };
        let members: Vec<ChainMember> = (0..self.bounds.nodes).map(member).collect();
        let chain = ShardChain { members: members.clone(), learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let node = |me| StoreNode::founding(self.store, me, 1, Time::ZERO, &layout);
        let mut state = SystemState {
            tick: 0,
            switches: (0..self.bounds.switches).map(|it| Hashed::new(self.new_switch(it, 0, &layout))).collect(),
            nodes: Vec::new(),
            messages: MessageSet::default(),
            layout: Arc::clone(&layout),
            history: ObservedHistory::default(),
            crashes: 0,
            amnesias: 0,
            repetitions: 0,
            contradiction: None,
        };
        for node in members.into_iter().map(node) {
            self.put_node(&mut state, node);
        }
        (0..self.bounds.switches).for_each(|number| self.open(&mut state, number));
        while self.bounds.is_warm && !state.messages.is_empty() {
            self.deliver(&mut state, 0, false);
        }
        state
    }

    fn open(&self, state: &mut SystemState, number: u8) {
        let mut switch = ModelSwitch::clone(&state.switches[usize::from(number)]);
        let effects = switch.open(state.now(Peer::Switch(SwitchId(u32::from(number)))));
        self.put_switch(state, number, switch, effects);
    }

    /// Puts a node back into the state after a step. Returns false if the bounds do not allow its messages.
    fn put_node(&self, state: &mut SystemState, mut node: StoreNode) -> bool {
        let me = node.member().node;
        let events: Vec<StoreEvent> = node.take_events().collect();
        let mut is_bounded = true;
        for event in events {
            let StoreEvent::Send { to, message } = event else { continue };
            if let StoreMessage::Forward(forward) = &message {
                is_bounded &= forward.first + forward.operations.len() as u64 <= self.bounds.operations;
            }
            state.messages.add(SentMessage { from: Peer::Node(me), to, message });
        }
        let node = Hashed::new(node);
        match state.nodes.get_mut(me.0 as usize) {
            Some(old) => *old = node,
            None => state.nodes.push(node),
        }
        is_bounded
    }

    fn put_switch(&self, state: &mut SystemState, number: u8, switch: ModelSwitch, effects: Vec<SwitchEffect>) {
        let from = Peer::Switch(SwitchId(u32::from(number)));
        for effect in effects {
            match effect {
                SwitchEffect::Run(input) => state.history.ran(input),
                SwitchEffect::Output(input, set) => {
                    let wrong = state.history.returned(input, set);
                    state.contradiction = state.contradiction.or(wrong);
                    self.coverage.saw_output();
                }
                SwitchEffect::Send(to, message) => {
                    state.messages.add(SentMessage { from, to: Peer::Node(to), message });
                }
            }
        }
        state.switches[usize::from(number)] = Hashed::new(switch);
    }

    /// Delivers a message. `None` if nothing changes.
    fn deliver(&self, state: &mut SystemState, index: usize, is_kept: bool) -> Option<()> {
        let sent = state.messages.get(index)?.clone();
        if !is_kept {
            state.messages.remove(index);
        }
        let now = state.now(sent.to);
        match sent.to {
            Peer::Switch(switch) => {
                let from = match sent.from {
                    Peer::Node(node) => Some(node),
                    _ => None,
                };
                let mut receiver = ModelSwitch::clone(&state.switches[switch.0 as usize]);
                let effects = receiver.receive(now, from, &sent.message);
                self.coverage.saw_message(&sent.message, !effects.is_empty());
                self.put_switch(state, switch.0 as u8, receiver, effects);
                Some(())
            }
            Peer::Node(node) => {
                let mut receiver = StoreNode::clone(&state.nodes[node.0 as usize]);
                receiver.receive(now, sent.from, sent.message.clone());
                receiver.flush(now);
                self.put_node(state, receiver).then_some(())
            }
            Peer::Operator(_) => None,
        }
    }

    fn forget(&self, state: &mut SystemState, number: u8) -> bool {
        state.amnesias += 1;
        let ChainMember { node, life } = state.nodes[usize::from(number)].member();
        let me = ChainMember { node, life: life + 1 };
        self.put_node(state, StoreNode::joining(self.store, me, life))
    }

    fn change(&self, state: &mut SystemState, chain: ShardChain) {
        state.layout = Arc::new(StoreLayout::new(state.layout.epoch() + 1, vec![chain]));
        self.coverage.saw_layout(state.layout.epoch());
        let nodes = (0..self.bounds.nodes).map(|node| Peer::Node(NodeId(u32::from(node))));
        let switches = (0..self.bounds.switches).map(|switch| Peer::Switch(SwitchId(u32::from(switch))));
        for to in nodes.chain(switches) {
            let message = StoreMessage::Layout(Arc::clone(&state.layout));
            state.messages.add(SentMessage { from: Peer::Operator(OperatorId::ONLY), to, message });
        }
    }

    fn step(&self, state: &mut SystemState, action: SystemAction) -> Option<()> {
        match action {
            SystemAction::Deliver(index) => self.deliver(state, index, false)?,
            SystemAction::Repeat(index) => {
                state.repetitions += 1;
                self.deliver(state, index, true)?;
            }
            SystemAction::Tick => state.tick += 1,
            SystemAction::WakeSwitch(number) => {
                let mut switch = ModelSwitch::clone(&state.switches[usize::from(number)]);
                let effects = switch.tick(state.now(Peer::Switch(SwitchId(u32::from(number)))));
                self.put_switch(state, number, switch, effects);
            }
            SystemAction::WakeNode(number) => {
                let mut node = StoreNode::clone(&state.nodes[usize::from(number)]);
                node.tick(state.now(Peer::Node(node.member().node)));
                return self.put_node(state, node).then_some(());
            }
            SystemAction::Input(number, row, input) => {
                let mut switch = ModelSwitch::clone(&state.switches[usize::from(number)]);
                let packet = state.history.called(row, (number, switch.start), input);
                let now = state.now(Peer::Switch(SwitchId(u32::from(number))));
                let effects = switch.input(now, row, packet, input);
                self.put_switch(state, number, switch, effects);
            }
            SystemAction::Crash(number) => {
                state.crashes += 1;
                let start = state.switches[usize::from(number)].start + 1;
                let switch = self.new_switch(number, start, &Arc::clone(&state.layout));
                self.put_switch(state, number, switch, Vec::new());
                self.open(state, number);
            }
            SystemAction::Forget(number) => return self.forget(state, number).then_some(()),
            SystemAction::Change(chain) => self.change(state, chain),
        }
        Some(())
    }
}

impl SystemModel {
    /// Returns an action of a state as text.
    pub fn describe(&self, state: &SystemState, action: &SystemAction) -> String {
        match action {
            SystemAction::Deliver(index) | SystemAction::Repeat(index) => match state.messages.get(*index) {
                Some(sent) => format!("{:?} to {:?}: {:?}", sent.from, sent.to, sent.message),
                None => String::new(),
            },
            action => format!("{action:?}"),
        }
    }
}

impl Model for SystemModel {
    type State = SystemState;
    type Action = SystemAction;

    fn init_states(&self) -> Vec<SystemState> {
        vec![self.first_state()]
    }

    fn actions(&self, state: &SystemState, actions: &mut Vec<SystemAction>) {
        let bounds = &self.bounds;
        if state.amnesias < bounds.amnesias {
            actions.extend((0..bounds.nodes).map(SystemAction::Forget));
        }
        if state.layout.epoch() <= u64::from(bounds.layouts) {
            actions.extend(crate::operator::changes(state).into_iter().map(SystemAction::Change));
        }
        if state.crashes < bounds.crashes {
            actions.extend((0..bounds.switches).map(SystemAction::Crash));
        }
        if state.tick < bounds.ticks {
            actions.push(SystemAction::Tick);
        }
        for number in 0..bounds.nodes {
            let node = &state.nodes[usize::from(number)];
            if node.next_deadline().is_some_and(|due| due <= state.now(Peer::Node(node.member().node))) {
                actions.push(SystemAction::WakeNode(number));
            }
        }
        for number in 0..bounds.switches {
            let due = state.switches[usize::from(number)].replica.next_deadline();
            if due.is_some_and(|due| due <= state.now(Peer::Switch(SwitchId(u32::from(number))))) {
                actions.push(SystemAction::WakeSwitch(number));
            }
        }
        if state.repetitions < bounds.repetitions {
            actions.extend((0..state.messages.len()).map(SystemAction::Repeat));
        }
        actions.extend((0..state.messages.len()).map(SystemAction::Deliver));
        if state.history.len() < bounds.inputs {
            let rows = (0..bounds.switches).flat_map(|switch| (0..bounds.rows).map(move |row| (switch, row)));
            let inputs = rows.flat_map(|(switch, row)| bounds.kinds.iter().map(move |kind| (switch, row, *kind)));
            actions.extend(inputs.map(|(switch, row, kind)| SystemAction::Input(switch, row, kind)));
        }
    }

    fn next_state(&self, state: &SystemState, action: SystemAction) -> Option<SystemState> {
        let mut next = state.clone();
        self.step(&mut next, action).map(|()| next)
    }

    fn properties(&self) -> Vec<Property<SystemModel>> {
        vec![
            Property::always("outputs are linearizable, once, and in order", |_, state: &SystemState| {
                state.contradiction.is_none()
            }),
            Property::always("a row has one owner, or only readers", |model: &SystemModel, state: &SystemState| {
                let switches = |may: fn(&ModelSwitch, Time, u8) -> bool, row| {
                    let now = |number: u8| state.now(Peer::Switch(SwitchId(u32::from(number))));
                    let numbers = 0..model.bounds.switches;
                    numbers.filter(|number| may(&state.switches[usize::from(*number)], now(*number), row)).count()
                };
                let is_good = |row| switches(ModelSwitch::owns, row) == 0 || switches(ModelSwitch::reads, row) == 1;
                (0..model.bounds.rows).all(is_good)
            }),
        ]
    }
}
