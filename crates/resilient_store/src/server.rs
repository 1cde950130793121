//! Runs a store node on a socket.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use resilient::{ChainMember, Peer, StoreEvent, StoreLayout, StoreMessage, StoreNode};
use switch::Time;

use crate::cluster::Cluster;
use crate::socket::ClusterSocket;

/// Maximum number of datagrams that are received before the node answers.
const BATCH: usize = 64;

/// Maximum time for which a node sleeps, so that it notices a request to stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// A store node with its socket.
pub struct StoreServer {
    node: StoreNode,
    socket: ClusterSocket,
    started: Instant,
    statistics: StoreStatistics,
}

/// What a store has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Rows that it keeps, including those that were removed.
    pub rows: u64,
    /// Messages received.
    pub received: u64,
    /// Messages sent.
    pub sent: u64,
    /// Datagrams that were malformed, or from addresses that are not in the cluster file.
    pub refused: u64,
    /// Datagrams that the system did not take.
    pub unsent: u64,
}

impl StoreServer {
    /// Creates a node of a first layout, empty, with a bound socket. `seed` is random.
    pub fn founding(
        cluster: Cluster,
        layout: &Arc<StoreLayout>,
        me: ChainMember,
        socket: UdpSocket,
        seed: u64,
    ) -> StoreServer {
        let node = StoreNode::founding(cluster.store_config(), me, seed, Time::ZERO, layout);
        StoreServer::of_node(cluster, node, socket)
    }

    /// Creates a node without rows and without a layout, which it gets from the operator. `seed` is random.
    pub fn joining(cluster: Cluster, me: ChainMember, socket: UdpSocket, seed: u64) -> StoreServer {
        let node = StoreNode::joining(cluster.store_config(), me, seed);
        StoreServer::of_node(cluster, node, socket)
    }

    fn of_node(cluster: Cluster, node: StoreNode, socket: UdpSocket) -> StoreServer {
        let (socket, statistics) = (ClusterSocket::new(socket, cluster), StoreStatistics::default());
        StoreServer { node, socket, started: Instant::now(), statistics }
    }

    fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64)
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// If the socket's timeout cannot be set.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<StoreStatistics> {
        self.node.tick(self.now());
        self.act();
        while !stop.load(Ordering::Relaxed) {
            self.wait()?;
            let mut received = 0;
            while received < BATCH {
                let Some(messages) = self.socket.receive() else { break };
                self.statistics.received += messages.len() as u64;
                let now = self.now();
                messages.into_iter().for_each(|(from, message)| self.node.receive(now, from, message));
                received += 1;
                if received == 1 {
                    self.socket.socket.set_nonblocking(true)?;
                }
            }
            if received > 0 {
                self.socket.socket.set_nonblocking(false)?;
            }
            let now = self.now();
            if self.node.next_deadline().is_some_and(|deadline| deadline <= now) {
                self.node.tick(now);
            }
            self.act();
        }
        Ok(self.statistics())
    }

    /// Sets the time for which the next receive waits.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.now();
        let deadline = self.node.next_deadline().map(|deadline| Duration::from_nanos(deadline.since_ns(now)));
        let wait = deadline.map_or(LONGEST_SLEEP, |wait| wait.clamp(Duration::from_micros(50), LONGEST_SLEEP));
        self.socket.socket.set_read_timeout(Some(wait))
    }

    /// Sends what the node has to send.
    fn act(&mut self) {
        let now = self.now();
        self.node.flush(now);
        let mut messages: Vec<(Peer, StoreMessage)> = Vec::new();
        for event in self.node.take_events() {
            match event {
                StoreEvent::Send { to, message } => messages.push((to, message)),
                StoreEvent::Persist { .. } => unreachable!("the node keeps its rows in memory"),
            }
        }
        self.statistics.sent += messages.len() as u64;
        self.socket.send(&messages);
    }

    /// Returns what the store has done so far.
    pub fn statistics(&self) -> StoreStatistics {
        let shards = self.node.layout().shards();
        let rows = shards.map(|shard| self.node.rows(shard) as u64).sum();
        StoreStatistics { rows, refused: self.socket.refused, unsent: self.socket.unsent, ..self.statistics }
    }
}
