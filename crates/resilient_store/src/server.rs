//! Runs a store node on a socket.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use resilient::LatencyHistogram;
use resilient::store::ShardReport;
use resilient::{ChainMember, Peer, RefusedDatagrams, RequestCounts, StoreEvent, StoreLayout, StoreMessage, StoreNode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use switch::Time;

use crate::cluster::Cluster;
use crate::disk::DiskError;
use crate::disk_writer::{DiskStatistics, DiskWriter, ServerDisk};
use crate::open::random_number;
use crate::socket::{ClusterSocket, NoticeHandler};

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
    /// The disk of a durable store.
    disk: Option<ServerDisk>,
}

/// The reason for which a store stops.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket, or the thread that writes to the disk, cannot be used.
    #[error("cannot serve: {0}")]
    Socket(#[from] io::Error),
    /// Its disk refuses the rows.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Counts of a store's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Rows that it keeps, including those without values.
    pub rows: u64,
    /// Messages received.
    pub received: u64,
    /// Requests of switches among them.
    pub requests: RequestCounts,
    /// Messages sent.
    pub sent: u64,
    /// Datagrams that were refused.
    pub refused: RefusedDatagrams,
    /// Datagrams that the system did not take.
    pub unsent: u64,
    /// The commits of a durable store.
    pub disk: Option<DiskStatistics>,
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
        StoreServer::of(node, ClusterSocket::new(socket, cluster, Peer::Node(me.node), random_number()), None)
    }

    /// Creates a node without rows and without a layout, which it gets from the operator. `seed` is random.
    pub fn joining(cluster: Cluster, me: ChainMember, socket: UdpSocket, seed: u64) -> StoreServer {
        let node = StoreNode::joining(cluster.store_config(), me, seed);
        StoreServer::of(node, ClusterSocket::new(socket, cluster, Peer::Node(me.node), random_number()), None)
    }

    /// Creates a server of a node.
    pub(crate) fn of(node: StoreNode, socket: ClusterSocket, disk: Option<ServerDisk>) -> StoreServer {
        StoreServer { node, socket, started: Instant::now(), statistics: StoreStatistics::default(), disk }
    }

    /// Sets the handler of notices.
    pub fn on_notice(&mut self, handler: NoticeHandler) {
        self.socket.on_notice(handler);
    }

    fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64)
    }

    /// Serves until `stop` is set. A durable store acknowledges nothing after an error.
    ///
    /// # Errors
    /// If the socket cannot be used, or the disk refuses the rows.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<StoreStatistics, ServeError> {
        self.run_watched(stop, &mut |_| ())
    }

    /// Serves as [`StoreServer::run`] does, and calls `watch` in each turn, at least ten times a second.
    ///
    /// # Errors
    /// As [`StoreServer::run`].
    pub fn run_watched(
        &mut self,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&StoreServer),
    ) -> Result<StoreStatistics, ServeError> {
        self.socket.socket.set_nonblocking(true)?;
        let mut writer = match &self.disk {
            Some(server) => Some(DiskWriter::start(Arc::clone(&server.disk))?),
            None => None,
        };
        self.node.tick(self.now());
        self.act(writer.as_mut())?;
        while !stop.load(Ordering::Relaxed) {
            let may_receive = self.disk.as_ref().is_none_or(ServerDisk::has_room);
            self.wait(may_receive, writer.as_ref())?;
            let mut received = 0;
            while may_receive && received < BATCH {
                let Some(messages) = self.socket.receive(self.now()) else { break };
                self.statistics.received += messages.len() as u64;
                messages.iter().for_each(|(_, message)| self.statistics.requests.note(message));
                let now = self.now();
                messages.into_iter().for_each(|(from, message)| self.node.receive(now, from, message));
                received += 1;
            }
            let now = self.now();
            if self.node.next_deadline().is_some_and(|deadline| deadline <= now) {
                self.node.tick(now);
            }
            self.act(writer.as_mut())?;
            watch(self);
        }
        // Received requests are written and acknowledged.
        while writer.as_ref().is_some_and(DiskWriter::is_busy) {
            self.wait(false, writer.as_ref())?;
            self.act(writer.as_mut())?;
        }
        Ok(self.statistics())
    }

    /// Waits for a datagram, for the end of a commit, or for the next deadline.
    fn wait(&self, may_receive: bool, writer: Option<&DiskWriter>) -> io::Result<()> {
        let now = self.now();
        let deadline = self.node.next_deadline().map(|deadline| Duration::from_nanos(deadline.since_ns(now)));
        let wait = deadline.map_or(LONGEST_SLEEP, |wait| wait.min(LONGEST_SLEEP));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let socket = may_receive.then(|| self.socket.socket.as_fd());
        let sources = socket.into_iter().chain(writer.map(DiskWriter::wake));
        let mut sources: Vec<PollFd<'_>> = sources.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)).collect();
        match poll(&mut sources, Some(&timeout)) {
            Err(error) if error != rustix::io::Errno::INTR => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sends the messages of the node, and writes its records.
    fn act(&mut self, mut writer: Option<&mut DiskWriter>) -> Result<(), DiskError> {
        if let (Some(writer), Some(disk)) = (writer.as_deref_mut(), &mut self.disk)
            && let Some(up_to) = writer.finished(disk)?
        {
            self.node.persisted(up_to);
        }
        self.node.flush(self.now());
        let mut messages: Vec<(Peer, StoreMessage)> = Vec::new();
        for event in self.node.take_events() {
            match (event, &mut self.disk) {
                (StoreEvent::Send { to, message }, _) => messages.push((to, message)),
                (StoreEvent::Persist { number, record }, Some(disk)) => disk.persist(number, record),
                (StoreEvent::Persist { .. }, None) => unreachable!("the node keeps its rows in memory"),
            }
        }
        let rows = self.rows();
        if let (Some(writer), Some(disk)) = (writer, &mut self.disk) {
            writer.start_commit(disk, rows)?;
        }
        self.statistics.sent += messages.len() as u64;
        let now = self.now();
        self.socket.send(now, &messages);
        Ok(())
    }

    fn rows(&self) -> u64 {
        self.node.layout().shards().map(|shard| self.node.rows(shard) as u64).sum()
    }

    /// Returns the epoch of the layout; 0 until there is one.
    pub fn layout_epoch(&self) -> u64 {
        self.node.layout().epoch()
    }

    /// Returns the shards that the store is a member or learner of.
    pub fn shards(&self) -> Vec<ShardReport> {
        self.node.shard_reports()
    }

    /// Returns the durations of commits to the disk; `None` for a store in memory.
    pub fn commit_latency(&self) -> Option<&LatencyHistogram> {
        self.disk.as_ref().map(|disk| &disk.latency)
    }

    /// Returns what the store has done so far.
    pub fn statistics(&self) -> StoreStatistics {
        let disk = self.disk.as_ref().map(|disk| disk.statistics);
        let (refused, unsent) = (self.socket.refused(), self.socket.unsent);
        StoreStatistics { rows: self.rows(), refused, unsent, disk, ..self.statistics }
    }
}
