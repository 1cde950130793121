//! A switch with its memory servers in the same thread, which answer at once.

use std::sync::Arc;

use bits::Bits;
use compiler::Source;
use elastic_switch::{ElasticConfig, ElasticCounts, ElasticSwitch};
use engine::TableEntry;
use ir::{KeyValue, TableId};
use rng::SplitMix64;
use switch::{Device, Egress, FrameMut, HeadroomBuf, PacketSwitch, PortId, SwitchControl, Time};
use v1model::{Config, Switch, V1Model};

use crate::nodes::MemoryNodes;

pub const BATCH: usize = 32;
/// Bytes before a frame.
const HEADROOM: usize = 64;
const IN: PortId = PortId(1);
/// Port of the first memory server.
const FIRST_SERVER: u32 = 3;
const MAX_SERVERS: u32 = 8;
const PROGRAM: &str = include_str!("connections.p4");

/// Returns a switch whose table has this annotation, or none.
pub fn plain(annotation: &str, size: u32) -> Switch {
    let text = PROGRAM.replace("ANNOTATION", annotation).replace("ENTRIES", &size.to_string());
    let program = Arc::new(compiler::expect_program(&Source::new("connections.p4", &text), &V1Model).ir);
    Switch::new(program, Config::with_ports(FIRST_SERVER + MAX_SERVERS)).expect("the switch runs the program")
}

/// Returns the annotation with this window and cache.
pub fn elastic(window: u32, cache: u32) -> String {
    format!("@elastic[window = \"{window}\", cache = \"{cache}\"]")
}

fn connections(switch: &dyn SwitchControl) -> TableId {
    let mut tables = switch.program().tables.iter();
    tables.find(|(_, table)| table.name.ends_with("connections")).expect("the program has it").0
}

/// Returns the source address of a connection, whose other fields are the same for all.
fn source(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1)
}

/// Returns the entry of a connection.
pub fn entry(switch: &dyn SwitchControl, number: u32) -> (TableId, TableEntry) {
    let table = connections(switch);
    let fields = [(6, 8), (u64::from(source(number)), 32), (0x0a00_0001, 32), (40_000, 16), (80, 16)];
    let keys = fields.map(|(value, width)| KeyValue::Exact(Bits::new(value.into(), width))).to_vec();
    let values = [(u64::from(number), 32), (8080, 16)].map(|(value, width)| Bits::new(value.into(), width)).to_vec();
    (table, TableEntry::new(keys, 0, switch.program().tables[table].actions[0].action, values))
}

/// Inserts the entries of these connections.
pub fn insert(switch: &mut dyn SwitchControl, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let (table, entry) = entry(switch, number);
        switch.objects_mut().insert(table, entry).expect("there is room");
    }
}

/// Returns a packet of a connection.
pub fn packet(number: u32) -> HeadroomBuf {
    let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0];
    data.extend_from_slice(&source(number).to_be_bytes());
    data.extend_from_slice(&[10, 0, 0, 1, 0x9c, 0x40, 0, 80]);
    data.resize(60, 0);
    HeadroomBuf::new(&data, HEADROOM)
}

/// Restores frames from `fresh` in their own memory, as a driver does.
pub fn restore(batch: &mut [HeadroomBuf], fresh: &[HeadroomBuf]) {
    for (frame, fresh) in batch.iter_mut().zip(fresh) {
        frame.set_start(HEADROOM);
        frame.headroom().0[HEADROOM..].copy_from_slice(fresh.bytes());
    }
}

/// A switch and its memory servers.
pub struct ElasticBench {
    pub switch: ElasticSwitch<Switch>,
    pub nodes: MemoryNodes,
    now: Time,
    /// Packets that have left.
    pub left: usize,
    output: Vec<Egress>,
}

impl ElasticBench {
    /// Wraps a switch with this number of servers and copies of each cell, and connects them.
    pub fn new(inner: Switch, servers: usize, replicas: u32) -> ElasticBench {
        let nodes = MemoryNodes::new(FIRST_SERVER, servers);
        let config = ElasticConfig { replicas, ..ElasticConfig::new(MemoryNodes::switch_address(), nodes.places()) };
        let random = Box::new(SplitMix64::new(2));
        let switch = ElasticSwitch::new(inner, &config, [3, 4], random).expect("the program has a table");
        let mut bench = ElasticBench { switch, nodes, now: Time::from_us(1), left: 0, output: Vec::new() };
        bench.settle();
        bench
    }

    /// Returns the numbers of the table.
    pub fn counts(&self) -> ElasticCounts {
        self.switch.counts().remove(0)
    }

    /// Gives a batch of packets to the switch, and carries frames until all have left or were dropped.
    pub fn send(&mut self, batch: &mut [HeadroomBuf]) {
        let mut output = std::mem::take(&mut self.output);
        self.switch.step_in_place(self.now, IN, batch, &mut output);
        let mut frames = Vec::new();
        for egress in output.drain(..) {
            match egress {
                Egress::Owned(frame) => frames.push(frame),
                Egress::InPlace { .. } => self.left += 1,
            }
        }
        self.output = output;
        self.left += self.nodes.carry(self.now, &mut self.switch, frames);
    }

    /// Lets the switch do what is due, and carries frames.
    pub fn turn(&mut self) {
        self.now = self.now.after_ns(1_000);
        let mut output = Vec::new();
        self.switch.step(self.now, &mut Vec::new(), &mut output);
        self.left += self.nodes.carry(self.now, &mut self.switch, output);
    }

    /// Runs until a server that restarted has all its copies.
    pub fn refill(&mut self) {
        let before = self.counts().table_counts.blocks;
        while self.counts().table_counts.blocks == before {
            self.now = self.now.after_ns(100_000_000);
            self.turn();
        }
        self.settle();
    }

    /// Runs until all changes are in all copies.
    pub fn settle(&mut self) {
        while !self.counts().is_settled {
            // Deadlines of retransmissions and of requests for memory are in milliseconds.
            let is_idle = self.switch.next_event().is_none_or(|at| at > self.now.after_ns(1_000));
            self.now = if is_idle { self.now.after_ns(1_000_000) } else { self.now };
            self.turn();
        }
    }
}
