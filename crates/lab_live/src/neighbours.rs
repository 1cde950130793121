//! Informs a switch's neighbours when it stops or starts, as a loss of carrier would.

use std::sync::mpsc::Sender;

use lab::{Node, Topology};

use crate::switch_thread::SwitchCommand;

/// The switches at the other ends of a switch's links, each with its port.
#[derive(Default)]
pub struct Neighbours(Vec<(Sender<SwitchCommand>, u32)>);

impl Neighbours {
    /// Returns the neighbours of a switch. `commands` has the senders of all switches, in the topology's order.
    pub fn new(topology: &Topology, switch: usize, commands: &[Sender<SwitchCommand>]) -> Neighbours {
        let ends = topology.ports(switch).into_iter().filter_map(|(_, far)| match far.node {
            Node::Switch(neighbour) if neighbour != switch => Some((commands[neighbour].clone(), far.port)),
            Node::Switch(_) | Node::Host(_) => None,
        });
        Neighbours(ends.collect())
    }

    /// Informs all of them whether the switch runs.
    pub fn show(&self, runs: bool) {
        for (commands, port) in &self.0 {
            // A neighbour that has ended needs no notice.
            let _ = commands.send(SwitchCommand::FarEnd { port: *port, runs });
        }
    }
}
