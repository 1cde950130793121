//! Exchanges a switch's messages with the stores between two batches.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};

use resilient::{Peer, RefusedDatagrams};
use resilient_switch::ResilientSwitch;
use runtime::{Hook, HookContext};
use switch::{Device, RowSwitch, Time};

use crate::cluster::Cluster;
use crate::socket::{ClusterSocket, NoticeHandler};

/// Maximum number of datagrams that one turn receives.
const BATCH: usize = 64;

/// The connection of a switch to the stores.
pub struct StoreHook {
    socket: ClusterSocket,
    deadline: Option<Time>,
    is_due: bool,
}

impl StoreHook {
    /// Creates the hook of a switch for a socket at its address. `start` is random, and never used before.
    ///
    /// # Errors
    /// If the socket cannot be configured.
    pub fn new(cluster: Cluster, me: Peer, socket: UdpSocket, start: u64) -> io::Result<StoreHook> {
        socket.set_nonblocking(true)?;
        Ok(StoreHook { socket: ClusterSocket::new(socket, cluster, me, start), deadline: None, is_due: true })
    }

    /// Lets `handler` take the notices.
    pub fn on_notice(&mut self, handler: NoticeHandler) {
        self.socket.on_notice(handler);
    }

    /// Returns the counts of datagrams that were refused.
    pub fn refused(&self) -> RefusedDatagrams {
        self.socket.refused()
    }
}

impl<S: RowSwitch> Hook<ResilientSwitch<S>> for StoreHook {
    fn poll(&mut self, context: &mut HookContext<'_, ResilientSwitch<S>>) {
        let mut received = 0;
        while received < BATCH {
            let Some(messages) = self.socket.receive(context.now) else { break };
            received += 1;
            for (from, message) in &messages {
                if let Peer::Node(node) = from {
                    context.switch.deliver(context.now, *node, message, context.output);
                }
            }
        }
        self.is_due = received == BATCH;
        if self.deadline.is_some_and(|deadline| deadline <= context.now) {
            context.switch.step(context.now, &mut Vec::new(), context.output);
        }
        let messages = context.switch.take_messages().into_iter();
        let messages: Vec<_> = messages.map(|(to, message)| (Peer::Node(to), message)).collect();
        self.socket.send(context.now, &messages);
        self.deadline = context.switch.next_event();
    }

    fn is_due(&self) -> bool {
        self.is_due
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.socket.as_raw_fd())
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }
}
