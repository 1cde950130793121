//! A switch, its memory servers, and the links between them, which lose and delay frames.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bits::Bits;
use compiler::Source;
use elastic_switch::{ElasticConfig, ElasticSwitch, MembershipError, MemoryServerPort, ServerState, SwitchAddress};
use engine::{ActionCall, ActionSpec, EntryError, TableEntry};
use ir::{KeyValue, TableId};
use rdma::{FrameList, MemoryNode, MemoryNodeConfig};
use rng::SplitMix64;
use switch::{Device, Egress, Frame, HeadroomBuf, PacketSwitch, PortId, SwitchControl, Time};
use v1model::{Config, Executor, Switch, V1Model};
use wire::ethernet;

/// Port of the first memory server.
const FIRST_SERVER: u32 = 3;

/// A packet of the program `chain.p4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: u16,
    pub key: u16,
    pub first: u16,
    pub second: u16,
    pub number: u32,
}

impl Request {
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [self.id, self.key, self.first, self.second] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Request {
        let at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let number = u32::from_be_bytes(bytes[8..12].try_into().expect("four bytes"));
        Request { id: at(0), key: at(2), first: at(4), second: at(6), number }
    }
}

/// Properties of a run.
#[derive(Clone, Copy, Debug)]
pub struct RigSettings {
    pub program: &'static str,
    pub executor: Executor,
    /// Whether packets come in batches, in place.
    pub in_place: bool,
    pub servers: usize,
    /// Further servers, which run and are not used at first.
    pub spares: usize,
    /// Maximum number of entries of each table.
    pub entries: u32,
    /// Entries of each cache.
    pub cache: u32,
    /// Frames of a thousand between switch and servers that are lost.
    pub loss_per_mille: u64,
    /// Whether frames between them overtake each other.
    pub is_reordered: bool,
    pub max_parked: usize,
    pub seed: u64,
    /// The port on which frames of all servers arrive, if it is not that of each.
    pub answers_on: Option<PortId>,
    /// Maximum rate of answers on each port, in bits per second.
    pub read_rate: Option<u64>,
}

impl Default for RigSettings {
    fn default() -> RigSettings {
        RigSettings {
            program: include_str!("../../testdata/chain.p4"),
            executor: Executor::Interpreter,
            in_place: false,
            servers: 2,
            spares: 0,
            entries: 512,
            cache: 0,
            loss_per_mille: 0,
            is_reordered: false,
            max_parked: 4096,
            seed: 1,
            answers_on: None,
            read_rate: None,
        }
    }
}

pub struct Rig {
    pub settings: RigSettings,
    pub switch: ElasticSwitch<Switch>,
    servers: Vec<Option<MemoryNode>>,
    random: SplitMix64,
    pub now: Time,
    /// Frames under way by time and order: to a server, or to the switch from a server.
    wires: BTreeMap<(Time, u64), (bool, usize, Vec<u8>)>,
    /// The last arrival in each direction of each wire.
    last: BTreeMap<(bool, usize), Time>,
    sent: u64,
    /// Frames and bytes from the switch to each server, and in the other direction.
    pub exchanged: BTreeMap<(bool, usize), (u64, u64)>,
    /// Packets that left, with their times.
    pub left: Vec<(Time, Request)>,
}

fn node(server: usize) -> MemoryNode {
    MemoryNode::new(MemoryNodeConfig {
        mac: ethernet::Address([2, 0, 0, 0, 1, server as u8]),
        address: address(server),
        bytes: 1 << 22,
        connections: 8,
    })
}

fn address(server: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, server as u8 + 1)
}

fn place(server: usize) -> MemoryServerPort {
    MemoryServerPort { address: address(server), port: PortId(FIRST_SERVER + server as u32) }
}

/// Returns the configuration of the wrapper.
pub fn config(settings: RigSettings) -> ElasticConfig {
    let own = SwitchAddress { mac: ethernet::Address([2, 0, 0, 0, 0, 1]), address: Ipv4Addr::new(10, 9, 1, 1) };
    let servers = (0..settings.servers).map(place).collect();
    let (max_parked, read_rate) = (settings.max_parked, settings.read_rate);
    ElasticConfig { max_parked, read_rate, ..ElasticConfig::new(own, servers) }
}

/// Returns the switch without servers.
pub fn plain_switch(settings: RigSettings) -> Switch {
    let text = settings.program.replace("CACHE", &settings.cache.to_string());
    let text = text.replace("size = 512", &format!("size = {}", settings.entries));
    let program = Arc::new(compiler::expect_program(&Source::new("chain.p4", &text), &V1Model).ir);
    let config = Config {
        executor: settings.executor,
        ..Config::with_ports(FIRST_SERVER + (settings.servers + settings.spares) as u32)
    };
    Switch::new(program, config).expect("the program fits the switch")
}

/// Returns the table with this name.
pub fn table(switch: &dyn SwitchControl, name: &str) -> TableId {
    let mut tables = switch.program().tables.iter();
    tables.find(|(_, table)| table.name.ends_with(name)).expect("the program has it").0
}

/// Returns an entry. `two` has one action, and `one` runs the second of its actions if there is a `second` value.
pub fn entry(switch: &dyn SwitchControl, table: TableId, key: u16, values: &[u16]) -> TableEntry {
    entry_of(switch, table, exact(key), values)
}

/// Returns an entry with any key.
pub fn entry_of(switch: &dyn SwitchControl, table: TableId, keys: Vec<KeyValue>, values: &[u16]) -> TableEntry {
    let action = switch.program().tables[table].actions[values.len() - 1].action;
    TableEntry::new(keys, 0, action, values.iter().map(|value| Bits::new(u128::from(*value), 16)).collect())
}

fn exact(key: u16) -> Vec<KeyValue> {
    vec![KeyValue::Exact(Bits::new(u128::from(key), 16))]
}

/// Writes the entry of a key, or deletes it if there are no values.
pub fn write(
    switch: &mut dyn SwitchControl,
    name: &str,
    keys: Vec<KeyValue>,
    values: &[u16],
) -> Result<(), EntryError> {
    let table = table(switch, name);
    if values.is_empty() {
        return switch.objects_mut().delete(table, &keys, 0);
    }
    let entry = entry_of(switch, table, keys.clone(), values);
    let objects = switch.objects_mut();
    match objects.get(table, &keys, 0) {
        Ok(_) => objects.modify(table, entry),
        Err(_) => objects.insert(table, entry),
    }
}

impl Rig {
    pub fn new(settings: RigSettings) -> Rig {
        Rig::of(plain_switch(settings), settings)
    }

    /// Wraps a switch, which may have entries.
    pub fn of(switch: Switch, settings: RigSettings) -> Rig {
        let config = config(settings);
        let mut random = SplitMix64::new(settings.seed);
        let secret = [random.next_u64(), random.next_u64()];
        let switch = ElasticSwitch::new(switch, &config, secret, Box::new(SplitMix64::new(random.next_u64())))
            .expect("the program has tables");
        let servers = (0..settings.servers + settings.spares).map(|server| Some(node(server))).collect();
        let (wires, last, exchanged, left) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), Vec::new());
        Rig { settings, switch, servers, random, now: Time::ZERO, wires, last, sent: 0, exchanged, left }
    }

    /// Writes the entry of a key, or deletes it if there are no values.
    pub fn write(&mut self, name: &str, key: u16, values: &[u16]) {
        let written = write(&mut self.switch, name, exact(key), values);
        assert!(matches!(written, Ok(()) | Err(EntryError::NotFound)), "{written:?}");
    }

    /// Returns the values of an entry as the control plane reads them.
    pub fn read(&self, name: &str, key: u16) -> Option<Vec<u16>> {
        self.read_entry(name, &exact(key))
    }

    /// Returns the values of an entry with any key as the control plane reads them.
    pub fn read_entry(&self, name: &str, keys: &[KeyValue]) -> Option<Vec<u16>> {
        let installed = self.switch.objects().get(table(&self.switch, name), keys, 0).ok()?;
        let ActionSpec::Direct(ActionCall { args, .. }) = installed.entry.action else { panic!("there is no profile") };
        Some(args.iter().map(|argument| argument.low_u64() as u16).collect())
    }

    /// Kills a server, or starts it with empty memory.
    pub fn set_running(&mut self, server: usize, is_running: bool) {
        self.servers[server] = is_running.then(|| node(server));
    }

    /// Sets the state of the port to a server. Frames that are under way arrive nevertheless.
    pub fn set_port_up(&mut self, server: usize, is_up: bool) {
        assert!(self.switch.set_port_up(place(server).port, is_up), "the switch has the port");
    }

    /// Adds a server to those of the switch.
    pub fn add(&mut self, server: usize) -> Result<(), MembershipError> {
        self.switch.add_server(place(server))
    }

    /// Removes a server from those of the switch.
    pub fn remove(&mut self, server: usize) -> Result<(), MembershipError> {
        self.switch.remove_server(address(server))
    }

    /// Returns the membership of a server, if it is one of the switch.
    pub fn state(&self, server: usize) -> Option<ServerState> {
        let counts = self.switch.server_counts();
        counts.iter().find(|counts| counts.address == address(server)).map(|counts| counts.state)
    }

    /// Returns the connections of a running server, and the bytes that it lends.
    pub fn lent(&self, server: usize) -> (usize, u64) {
        self.servers[server].as_ref().map_or((0, 0), MemoryNode::lent)
    }

    /// Clears the memory that a server lends.
    pub fn clear_memory(&mut self, server: usize) {
        self.servers[server].iter_mut().for_each(|node| node.change_memory(|memory| memory.fill(0)));
    }

    /// Whether a server runs.
    pub fn is_running(&self, server: usize) -> bool {
        self.servers[server].is_some()
    }

    /// Gives a packet to the switch now.
    pub fn send(&mut self, id: u16, key: u16) {
        let request = Request { id, key, first: 0xffff, second: 0xffff, number: 0 };
        self.give(PortId(1), request.to_bytes());
    }

    /// Gives the switch a frame of another host behind the link to a server.
    pub fn send_beside(&mut self, server: usize, frame: Vec<u8>) {
        self.give(PortId(FIRST_SERVER + server as u32), frame);
    }

    fn give(&mut self, port: PortId, data: Vec<u8>) {
        if self.settings.in_place {
            let (mut batch, mut output) = (vec![HeadroomBuf::new(&data, 64)], Vec::new());
            self.switch.step_in_place(self.now, port, &mut batch, &mut output);
            for egress in output {
                match egress {
                    Egress::Owned(frame) => self.take(frame),
                    Egress::InPlace { index, port } => {
                        let data = batch[index].bytes().to_vec();
                        self.take(Frame { port, data });
                    }
                }
            }
        } else {
            let (mut input, mut output) = (vec![Frame { port, data }], Vec::new());
            self.switch.step(self.now, &mut input, &mut output);
            output.into_iter().for_each(|frame| self.take(frame));
        }
    }

    /// Takes a frame that the switch sent.
    fn take(&mut self, frame: Frame) {
        match frame.port.0.checked_sub(FIRST_SERVER) {
            Some(server) => {
                self.count((true, server as usize), frame.data.len());
                self.put_on_wire(true, server as usize, frame.data);
            }
            None => self.left.push((self.now, Request::parse(&frame.data))),
        }
    }

    fn count(&mut self, direction: (bool, usize), bytes: usize) {
        let (frames, total) = self.exchanged.entry(direction).or_default();
        (*frames, *total) = (*frames + 1, *total + bytes as u64);
    }

    fn put_on_wire(&mut self, to_server: bool, server: usize, data: Vec<u8>) {
        if self.random.below(1000) < self.settings.loss_per_mille {
            return;
        }
        self.sent += 1;
        let mut at = self.now.after_ns(2_000 + self.random.below(3_000));
        if !self.settings.is_reordered {
            let last = self.last.entry((to_server, server)).or_insert(at);
            at = at.max(*last);
            *last = at;
        }
        self.wires.insert((at, self.sent), (to_server, server, data));
    }

    /// Runs until a time.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let of_switch = self.switch.next_event().map(|at| at.max(self.now));
            let of_wires = self.wires.keys().next().map(|(at, _)| *at);
            let Some(next) = of_switch.into_iter().chain(of_wires).min().filter(|next| *next <= end) else { break };
            self.now = next;
            if of_wires == Some(next) {
                let ((..), (to_server, server, data)) = self.wires.pop_first().expect("there is one");
                if to_server {
                    self.serve(server, &data);
                } else {
                    self.count((false, server), data.len());
                    let own = PortId(FIRST_SERVER + server as u32);
                    self.give(self.settings.answers_on.unwrap_or(own), data);
                }
            } else {
                let mut output = Vec::new();
                self.switch.step(self.now, &mut Vec::new(), &mut output);
                output.into_iter().for_each(|frame| self.take(frame));
            }
        }
        self.now = end;
    }

    /// Runs for a time in milliseconds.
    pub fn run_ms(&mut self, ms: u64) {
        self.run_until(self.now.after_ns(ms * 1_000_000));
    }

    fn serve(&mut self, server: usize, data: &[u8]) {
        let mut frames = FrameList::default();
        let Some(node) = &mut self.servers[server] else { return };
        node.on_frames(self.now, &mut self.random, &[data], &mut frames);
        while let Some(frame) = frames.pop() {
            self.put_on_wire(false, server, frame);
        }
    }

    /// Returns the READs that a running server has executed.
    pub fn reads(&self, server: usize) -> u64 {
        self.servers[server].as_ref().map_or(0, |node| node.counts().reads)
    }

    /// Returns the number of packets that were dropped for this reason.
    pub fn dropped(&self, reason: &str) -> u64 {
        self.switch.registry().get(&format!("drop.{reason}")).unwrap_or(0)
    }

    /// Returns the first and second values of the packets that left since the last call.
    pub fn take_left(&mut self) -> Vec<(u16, u16, u16)> {
        self.left.drain(..).map(|(_, request)| (request.id, request.first, request.second)).collect()
    }
}
