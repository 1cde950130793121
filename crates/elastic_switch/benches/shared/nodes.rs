//! Memory servers in the thread of a switch, which answer at once. The benchmark of updates over P4Runtime shares this.
#![allow(dead_code, reason = "each benchmark uses a part")]

use std::net::Ipv4Addr;

use elastic_switch::{MemoryServerPort, SwitchAddress};
use rdma::{FrameSink, MAX_BATCH, MemoryNode, MemoryNodeConfig};
use rng::SplitMix64;
use switch::{Frame, PacketSwitch, PortId, Time};

/// Memory of each server: as much as any table needs. Pages are taken as they are used.
const NODE_BYTES: u64 = 4 << 30;

/// The frames that a server sends.
#[derive(Default)]
struct Answers {
    room: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl FrameSink for Answers {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.room.resize(len, 0);
        Some(&mut self.room)
    }

    fn commit(&mut self, len: usize) {
        self.frames.push(self.room[..len].to_vec());
    }
}

/// Memory servers, each at a port of the switch of its own, from `first_port` on.
pub struct MemoryNodes {
    first_port: u32,
    nodes: Vec<MemoryNode>,
    random: SplitMix64,
}

fn address(server: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, server as u8 + 1)
}

fn node(server: usize) -> MemoryNode {
    let SwitchAddress { mac, address } = SwitchAddress::of(address(server));
    MemoryNode::new(MemoryNodeConfig { mac, address, bytes: NODE_BYTES, connections: 8 })
}

impl MemoryNodes {
    /// Starts this number of servers.
    pub fn new(first_port: u32, servers: usize) -> MemoryNodes {
        MemoryNodes { first_port, nodes: (0..servers).map(node).collect(), random: SplitMix64::new(5) }
    }

    /// Returns the address of a switch among servers.
    pub fn switch_address() -> SwitchAddress {
        SwitchAddress::of(Ipv4Addr::new(198, 19, 0, 1))
    }

    /// Returns addresses and ports.
    pub fn places(&self) -> Vec<MemoryServerPort> {
        let place = |server| MemoryServerPort { address: address(server), port: self.port(server) };
        (0..self.nodes.len()).map(place).collect()
    }

    fn port(&self, server: usize) -> PortId {
        PortId(self.first_port + server as u32)
    }

    /// Whether a frame of the switch is for a server.
    pub fn is_for_server(&self, frame: &Frame) -> bool {
        frame.port.0 >= self.first_port
    }

    /// Returns the READs that each server has executed.
    pub fn reads(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.counts().reads).collect()
    }

    /// Kills a server, and starts it with empty memory.
    pub fn restart(&mut self, server: usize) {
        self.nodes[server] = node(server);
    }

    /// Carries frames of a switch to the servers, and their answers to the switch, until there are none. Returns the
    /// number of other frames that the switch sent.
    pub fn carry<S: PacketSwitch>(&mut self, now: Time, switch: &mut S, mut frames: Vec<Frame>) -> usize {
        let mut left = 0;
        loop {
            let before = frames.len();
            frames.retain(|frame| self.is_for_server(frame));
            left += before - frames.len();
            if frames.is_empty() {
                return left;
            }
            frames = self.exchange(now, switch, &frames);
        }
    }

    /// Gives frames to the servers, and their answers to the switch, a batch each. Returns what the switch sends then.
    fn exchange<S: PacketSwitch>(&mut self, now: Time, switch: &mut S, frames: &[Frame]) -> Vec<Frame> {
        let mut output = Vec::new();
        for server in 0..self.nodes.len() {
            let port = self.port(server);
            let of_server = frames.iter().filter(|frame| frame.port == port);
            let of_server: Vec<&[u8]> = of_server.map(|frame| &frame.data[..]).collect();
            for requests in of_server.chunks(MAX_BATCH) {
                let mut answers = Answers::default();
                self.nodes[server].on_frames(now, &mut self.random, requests, &mut answers);
                let mut input = answers.frames.into_iter().map(|data| Frame { port, data }).collect();
                switch.step(now, &mut input, &mut output);
            }
        }
        output
    }
}
