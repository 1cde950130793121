//! Switches and stores, and a network between them with one delay. It carries the sealed datagrams of both; those of
//! switches are in frames.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use compiler::Source;
use resilient::{
    ChainMember, ClusterFingerprint, ClusterKey, DatagramSealer, HoldMode, NodeId, Peer, ReplicaConfig, ShardChain,
    ShardId, StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId,
};
use resilient_switch::{InBand, ResilientConfig, ResilientSwitch, StoreRoute, in_band};
use rng::SplitMix64;
use switch::{Device, Egress, Frame, HeadroomBuf, PacketSwitch, PortId, Time};
use v1model::{Config, Executor, Switch, V1Model};

/// The program of [`Rig::new`].
const VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/values.p4");

/// A program with tables that the stores fill.
pub const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../v1model/testdata/row_tables.p4");

/// One way between a switch and a store, or two stores.
pub const DELAY_NS: u64 = 10_000;
pub const LEASE_NS: u64 = 1_000_000;

/// The port of each switch that leads to the stores.
const STORE_PORT: PortId = PortId(3);

/// A datagram under way.
struct Sent {
    from: Peer,
    to: Peer,
    datagram: Vec<u8>,
}

fn address(peer: Peer) -> Ipv4Addr {
    match peer {
        Peer::Switch(switch) => Ipv4Addr::new(198, 19, 0, switch.0 as u8),
        Peer::Node(node) => Ipv4Addr::new(198, 18, 0, node.0 as u8),
        Peer::Operator(_) => unreachable!("the chain is fixed"),
    }
}

/// The settings of a network and its switches. Chances are in percent.
pub struct RigFaults {
    pub random: SplitMix64,
    pub loss: u64,
    pub duplication: u64,
    pub jitter_ns: u64,
    pub executor: Executor,
    pub in_place: bool,
    pub max_parked: usize,
    pub hold: HoldMode,
}

impl Default for RigFaults {
    fn default() -> Self {
        RigFaults {
            random: SplitMix64::new(1),
            loss: 0,
            duplication: 0,
            jitter_ns: 0,
            executor: Executor::Jit,
            in_place: false,
            max_parked: 4096,
            hold: HoldMode::Local,
        }
    }
}

pub struct Rig {
    program: Arc<ir::Program>,
    layout: Arc<StoreLayout>,
    pub now: Time,
    /// The switches that run; a crash removes one.
    pub switches: BTreeMap<u32, ResilientSwitch<Switch>>,
    stores: BTreeMap<u32, (StoreNode, DatagramSealer)>,
    sent: BTreeMap<(Time, u64), Sent>,
    datagrams: u64,
    /// Length of the longest datagram, in bytes.
    pub longest: usize,
    pub faults: RigFaults,
    /// A switch whose messages are lost, both ways.
    cut_off: Option<u32>,
    /// Number of times at which work was due.
    pub wakes: usize,
    /// The outputs of the switches: time, switch, frame.
    pub left: Vec<(Time, u32, Frame)>,
}

/// The operations of the program.
pub const READ: u8 = 0;
pub const SET: u8 = 1;
pub const ADD: u8 = 2;
pub const NONE: u8 = 255;

pub fn request(op: u8, row: u8, value: u32) -> Frame {
    Frame::new(1, [&[op, row][..], &value.to_be_bytes(), &[0; 10]].concat())
}

/// Passes frames of one port to a switch in the driver's memory, and returns the frames that leave.
fn step_in_place(switch: &mut ResilientSwitch<Switch>, now: Time, port: PortId, frames: &[Frame]) -> Vec<Frame> {
    let mut batch: Vec<HeadroomBuf> = frames.iter().map(|frame| HeadroomBuf::new(&frame.data, 64)).collect();
    let mut left = Vec::new();
    switch.step_in_place(now, port, &mut batch, &mut left);
    let frame = |egress| match egress {
        Egress::Owned(frame) => frame,
        Egress::InPlace { index, port } => Frame { port, data: batch[index].bytes().to_vec() },
    };
    left.into_iter().map(frame).collect()
}

/// Returns value and number of changes in an answer.
pub fn answer(frame: &Frame) -> (u32, u16) {
    let bytes = &frame.data;
    (u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]), u16::from_be_bytes([bytes[6], bytes[7]]))
}

/// Returns the end of a member's sealed datagrams.
fn sealer(layout: &StoreLayout, me: Peer, start: u64) -> DatagramSealer {
    let stores = layout.chains()[0].members.iter().map(|member| Peer::Node(member.node));
    let all = stores.chain([1, 2].map(|number| Peer::Switch(SwitchId(number))));
    DatagramSealer::new(me, start, ClusterKey::new(&[7; 32]), ClusterFingerprint::new(b""), all)
}

impl Rig {
    /// Creates a chain of this many stores, and two switches, which have their leases after 200 us.
    pub fn new(stores: u32) -> Rig {
        Rig::with_program(VALUES, stores)
    }

    /// Does the same with switches whose frames travel with writes.
    pub fn piggybacking(stores: u32) -> Rig {
        Rig::holding(VALUES, stores, HoldMode::Piggyback)
    }

    /// Creates a rig whose switches run another program.
    pub fn with_program(path: &str, stores: u32) -> Rig {
        Rig::holding(path, stores, HoldMode::Local)
    }

    fn holding(path: &str, stores: u32, hold: HoldMode) -> Rig {
        let text = std::fs::read_to_string(path).expect("the program can be read");
        let program = Arc::new(compiler::expect_program(&Source::new(path, &text), &V1Model).ir);
        let members: Vec<ChainMember> =
            (1..=stores).map(|node| ChainMember { node: NodeId(node), life: u64::from(node) }).collect();
        let chain = ShardChain { members: members.clone(), learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let config = StoreConfig { lease_ns: LEASE_NS, ..StoreConfig::default() };
        let store = |me: ChainMember| {
            let node = StoreNode::founding(config, me, me.life, Time::ZERO, &layout);
            (me.node.0, (node, sealer(&layout, Peer::Node(me.node), me.life)))
        };
        let stores = members.into_iter().map(store).collect();
        let (now, sent, left) = (Time::ZERO, BTreeMap::new(), Vec::new());
        let mut rig = Rig {
            program,
            layout,
            now,
            switches: BTreeMap::new(),
            stores,
            sent,
            datagrams: 0,
            longest: 0,
            faults: RigFaults { hold, ..RigFaults::default() },
            cut_off: None,
            wakes: 0,
            left,
        };
        rig.run_due();
        rig.run_until(Time::from_us(100));
        (1..=2).for_each(|number| rig.start(number, 7));
        rig.run_until(Time::from_us(200));
        rig
    }

    /// Sets another program for switches that start later.
    pub fn set_program(&mut self, text: &str) {
        self.program = Arc::new(compiler::expect_program(&Source::new("other.p4", text), &V1Model).ir);
    }

    /// Starts a switch.
    pub fn start(&mut self, number: u32, incarnation: u64) {
        let config = Config { executor: self.faults.executor, ..Config::with_ports(4) };
        let inner = Switch::new(Arc::clone(&self.program), config).expect("the program fits the switch");
        let (lease_ns, hold) = (LEASE_NS, self.faults.hold);
        let replica = ReplicaConfig { lease_ns, retransmit_ns: LEASE_NS / 5, hold, ..ReplicaConfig::default() };
        let config = ResilientConfig { replica, max_parked: self.faults.max_parked, ..ResilientConfig::default() };
        let identity = (SwitchId(number), incarnation);
        let switch = ResilientSwitch::new(inner, config, Arc::clone(&self.layout), identity);
        let mut switch = switch.unwrap_or_else(|error| panic!("{error}"));
        let way = |node: &u32| {
            let node = NodeId(*node);
            (node, StoreRoute { address: address(Peer::Node(node)), port: STORE_PORT })
        };
        let me = Peer::Switch(SwitchId(number));
        let ways = InBand::new(address(me), self.stores.keys().map(way).collect(), []);
        switch.carry_in_band(ways, sealer(&self.layout, me, incarnation));
        self.switches.insert(number, switch);
    }

    /// Passes frames to a switch now.
    pub fn send(&mut self, switch: u32, mut frames: Vec<Frame>) {
        let mut output = Vec::new();
        let running = self.switches.get_mut(&switch).expect("the switch runs");
        match frames.first().map(|frame| frame.port).filter(|_| self.faults.in_place) {
            Some(port) => output = step_in_place(running, self.now, port, &frames),
            None => running.step(self.now, &mut frames, &mut output),
        }
        self.leave(switch, output);
    }

    /// Lets a switch continue the move of its rows.
    pub fn continue_move(&mut self, switch: u32) {
        let mut output = Vec::new();
        self.switches.get_mut(&switch).expect("the switch runs").continue_move(self.now, &mut output);
        self.leave(switch, output);
    }

    fn leave(&mut self, switch: u32, output: Vec<Frame>) {
        let from = Peer::Switch(SwitchId(switch));
        for frame in output {
            let Some((_, destination, datagram)) = in_band::parse(&frame.data) else {
                self.left.push((self.now, switch, frame));
                continue;
            };
            let to = Peer::Node(NodeId(u32::from(destination.octets()[3])));
            assert_eq!((frame.port, address(to)), (STORE_PORT, destination));
            self.post(from, to, datagram.to_vec());
        }
    }

    /// Loses the messages of a switch from now on, also those under way.
    pub fn cut_off(&mut self, switch: u32) {
        self.cut_off = Some(switch);
        self.sent.retain(|_, sent| ![sent.from, sent.to].contains(&Peer::Switch(SwitchId(switch))));
    }

    /// Ends what [`Rig::cut_off`] began.
    pub fn open(&mut self) {
        self.cut_off = None;
    }

    fn post(&mut self, from: Peer, to: Peer, datagram: Vec<u8>) {
        let is_lost = |peer: Peer| self.cut_off.is_some_and(|switch| peer == Peer::Switch(SwitchId(switch)));
        if is_lost(from) || is_lost(to) {
            return;
        }
        if self.faults.random.percent(self.faults.loss) {
            return;
        }
        self.longest = self.longest.max(datagram.len());
        let copies = 1 + u64::from(self.faults.random.percent(self.faults.duplication));
        for _ in 0..copies {
            let delay_ns = DELAY_NS + self.faults.random.below(self.faults.jitter_ns + 1);
            self.datagrams += 1;
            let sent = Sent { from, to, datagram: datagram.clone() };
            self.sent.insert((self.now.after_ns(delay_ns), self.datagrams), sent);
        }
    }

    /// Runs everything until `end`.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let switches = self.switches.values().filter_map(Device::next_event);
            let stores = self.stores.values().filter_map(|(node, _)| node.next_deadline());
            let next = self.sent.keys().next().map(|(at, _)| *at).into_iter().chain(switches).chain(stores).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.wakes += 1;
            self.run_due();
        }
        self.now = end;
    }

    fn run_due(&mut self) {
        while let Some(entry) = self.sent.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Sent { from, to, datagram } = entry.remove();
            match to {
                Peer::Switch(switch) if self.switches.contains_key(&switch.0) => {
                    let data = in_band::datagram(address(from), address(to), &datagram);
                    self.send(switch.0, vec![Frame { port: STORE_PORT, data }]);
                }
                Peer::Switch(_) => {}
                Peer::Node(node) => {
                    let (store, sealer) = self.stores.get_mut(&node.0).expect("stores do not stop");
                    let messages = sealer.open(self.now, from, &datagram);
                    messages.into_iter().for_each(|message| store.receive(self.now, from, message));
                    store.flush(self.now);
                    self.store_events(node.0);
                }
                Peer::Operator(_) => unreachable!("there is no operator"),
            }
        }
        let due: Vec<u32> = self.switches.keys().copied().collect();
        due.into_iter().for_each(|switch| self.send(switch, Vec::new()));
        let due: Vec<u32> = self.stores.keys().copied().collect();
        for node in due {
            self.stores.get_mut(&node).expect("stores do not stop").0.tick(self.now);
            self.store_events(node);
        }
    }

    fn store_events(&mut self, node: u32) {
        let (store, sealer) = self.stores.get_mut(&node).expect("it runs");
        let message = |event: StoreEvent| -> (Peer, StoreMessage) {
            let StoreEvent::Send { to, message } = event else { unreachable!("these stores have no disk") };
            (to, message)
        };
        let messages: Vec<_> = store.take_events().map(message).collect();
        sealer.send(self.now, &messages);
        let datagrams: Vec<_> = sealer.take_outgoing().collect();
        datagrams.into_iter().for_each(|(to, datagram)| self.post(Peer::Node(NodeId(node)), to, datagram));
    }

    /// Returns the number of rows of each store.
    pub fn rows(&self) -> Vec<usize> {
        self.stores.values().map(|(node, _)| node.rows(ShardId(0))).collect()
    }

    /// Removes and returns what left: microseconds, switch, value and number of changes.
    pub fn answers(&mut self) -> Vec<(u64, u32, (u32, u16))> {
        self.left.drain(..).map(|(at, switch, frame)| (at.as_us(), switch, answer(&frame))).collect()
    }
}
