//! Runs a memory server on a simulated host.

use std::any::Any;

use lab::sim::{Host, HostProgram};
use rdma::{FrameList, MemoryNode, MemoryNodeConfig};
use rng::SplitMix64;

/// A memory server, which loses its memory in a crash.
pub struct SimulatedMemory {
    config: MemoryNodeConfig,
    node: MemoryNode,
    random: SplitMix64,
}

impl SimulatedMemory {
    /// Creates a server.
    pub fn new(config: MemoryNodeConfig) -> SimulatedMemory {
        SimulatedMemory { config, node: MemoryNode::new(config), random: SplitMix64::new(0) }
    }

    /// Returns the server since its last start.
    pub fn node(&self) -> &MemoryNode {
        &self.node
    }
}

impl HostProgram for SimulatedMemory {
    fn on_start(&mut self, host: &mut Host) {
        self.random = SplitMix64::new(host.random.next_u64());
        self.node = MemoryNode::new(self.config);
    }

    fn on_packet(&mut self, host: &mut Host, frame: Vec<u8>) {
        let mut frames = FrameList::default();
        self.node.on_frames(host.now(), &mut self.random, &[&frame], &mut frames);
        while let Some(frame) = frames.pop() {
            host.send(frame);
        }
    }

    fn on_timer(&mut self, _: &mut Host, _: u64) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}
