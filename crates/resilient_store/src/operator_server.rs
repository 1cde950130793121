//! Runs the operator of a cluster on a socket.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use resilient::layout::ShardId;
use resilient::operator::{CommandRefusal, NodeReport};
use resilient::{ChainMember, LayoutOperator, LayoutRecord, NodeId, OperatorEvent, Peer, StoreMessage};
use switch::Time;

use crate::cluster::Cluster;
use crate::layout_keeper::{KeeperError, LayoutKeeper, LayoutSwap};
use crate::operator_status::{
    ChainStatus, HistoryLine, OperatorRequest, OperatorResponse, OperatorStatus, StoreRole, StoreStatus,
};
use crate::operator_text as text;
use crate::socket::ClusterSocket;
use crate::status_socket::StatusSocket;

/// Maximum number of datagrams that are received in a turn.
const BATCH: usize = 64;

/// Maximum time for which the operator sleeps, so that it notices requests of users.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Time after which the layout is read again when it could not be kept.
const RETRY: Duration = Duration::from_secs(1);

/// Number of changes that the status shows.
const MAX_HISTORY: usize = 32;

/// The shard of a live cluster: it has one.
const SHARD: ShardId = ShardId(0);

/// An operator with its socket and the keeper of its layouts.
pub struct OperatorServer<K> {
    operator: LayoutOperator,
    cluster: Cluster,
    wanted: usize,
    keeper: K,
    socket: ClusterSocket,
    status: Option<StatusSocket>,
    started: Instant,
    history: VecDeque<HistoryLine>,
    changes: u64,
    /// Lines that were not reported yet.
    unreported: Vec<HistoryLine>,
    /// The learner, and the share that was reported last.
    progress: Option<(ChainMember, u8)>,
    /// Time at which the layout is read again.
    retry_at: Option<Instant>,
}

impl<K: LayoutKeeper> OperatorServer<K> {
    /// Creates the operator of a cluster with a bound socket. `seed` is random, and another one for each start.
    ///
    /// # Errors
    /// If the layout cannot be read.
    pub fn new(
        cluster: Cluster,
        mut keeper: K,
        socket: UdpSocket,
        status: Option<StatusSocket>,
        seed: u64,
    ) -> Result<OperatorServer<K>, KeeperError> {
        let config = cluster.operator_config();
        let wanted = config.chain_length;
        let operator = LayoutOperator::new(config, keeper.load()?, seed);
        Ok(OperatorServer {
            operator,
            wanted,
            keeper,
            socket: ClusterSocket::new(socket, cluster.clone(), Peer::Operator, seed),
            cluster,
            status,
            started: Instant::now(),
            history: VecDeque::new(),
            changes: 0,
            unreported: Vec::new(),
            progress: None,
            retry_at: None,
        })
    }

    fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64)
    }

    /// Operates until `stop` is set, and calls `report` with each change.
    ///
    /// # Errors
    /// If the socket cannot be configured.
    pub fn run(&mut self, stop: &AtomicBool, report: &mut dyn FnMut(&HistoryLine)) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.receive()?;
            if self.retry_at.is_some_and(|at| at <= Instant::now()) {
                self.reload();
            }
            self.operator.tick(self.now());
            self.act();
            self.answer();
            self.note_progress();
            self.unreported.drain(..).for_each(|line| report(&line));
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        let wait = Duration::from_nanos(self.operator.next_deadline().since_ns(self.now()));
        let wait = wait.clamp(Duration::from_micros(50), LONGEST_SLEEP);
        self.socket.socket.set_read_timeout(Some(wait))?;
        for _ in 0..BATCH {
            let Some(messages) = self.socket.receive(self.now()) else { break };
            messages.iter().for_each(|(from, message)| self.operator.receive(*from, message));
            self.act();
            self.socket.socket.set_read_timeout(Some(Duration::from_micros(1)))?;
        }
        Ok(())
    }

    /// Carries out what the operator decided, until nothing is left to do.
    fn act(&mut self) {
        loop {
            let events: Vec<OperatorEvent> = self.operator.take_events().collect();
            if events.is_empty() {
                return;
            }
            let mut messages: Vec<(Peer, StoreMessage)> = Vec::new();
            for event in events {
                match event {
                    OperatorEvent::Send { to, message } => messages.push((to, message)),
                    OperatorEvent::Commit { record } => self.commit(&record),
                    OperatorEvent::Reload => self.reload(),
                    OperatorEvent::Note(note) => self.note(text::line(&self.cluster, &note)),
                }
            }
            self.socket.send(self.now(), &messages);
        }
    }

    fn commit(&mut self, record: &LayoutRecord) {
        match self.keeper.compare_and_swap(record) {
            Ok(LayoutSwap::Kept) => self.operator.committed(record.layout.epoch()),
            Ok(LayoutSwap::Superseded(kept)) => self.operator.superseded(kept),
            Err(error) => self.failed(&error),
        }
    }

    fn reload(&mut self) {
        match self.keeper.load() {
            Ok(kept) => {
                self.retry_at = None;
                self.operator.superseded(kept);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Waits with the next change until it is known which layout is kept.
    fn failed(&mut self, error: &KeeperError) {
        if self.retry_at.replace(Instant::now() + RETRY).is_none() {
            self.note(format!("the layout cannot be changed: {error}"));
        }
    }

    fn note(&mut self, text: String) {
        self.changes += 1;
        let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = HistoryLine { number: self.changes, time_s, text };
        self.unreported.push(line.clone());
        self.history.push_back(line);
        if self.history.len() > MAX_HISTORY {
            self.history.pop_front();
        }
    }

    /// Notes each tenth of the rows that a learner has copied.
    fn note_progress(&mut self) {
        let Some((learner, copied, all)) = self.operator.copied(SHARD) else {
            self.progress = None;
            return;
        };
        let percent = percent(copied, all) / 10 * 10;
        let last = self.progress.filter(|(member, _)| *member == learner).map_or(0, |(_, last)| last);
        if percent > last && percent < 100 {
            self.note(text::progress(&self.cluster, learner, percent));
        }
        self.progress = Some((learner, percent.max(last)));
    }

    fn answer(&mut self) {
        let Some(mut status) = self.status.take() else { return };
        status.serve(|request| self.respond(request));
        self.status = Some(status);
    }

    fn respond(&mut self, request: OperatorRequest) -> OperatorResponse {
        match self.command(request) {
            Ok(()) => {
                self.act();
                OperatorResponse::Status(self.report())
            }
            Err(reason) => OperatorResponse::Refused(reason),
        }
    }

    fn command(&mut self, request: OperatorRequest) -> Result<(), String> {
        let done = match request {
            OperatorRequest::Status => Ok(()),
            OperatorRequest::Drain { store } => self.operator.drain(self.number(&store)?),
            OperatorRequest::Undrain { store } => self.operator.undrain(self.number(&store)?),
            OperatorRequest::Replace { store, with } => {
                let with = with.map(|with| self.number(&with)).transpose()?;
                self.operator.replace(self.number(&store)?, with)
            }
        };
        done.map_err(|refusal: CommandRefusal| text::refusal(&self.cluster, refusal))
    }

    fn number(&self, name: &str) -> Result<NodeId, String> {
        match self.cluster.store(name).map(|member| member.peer) {
            Some(Peer::Node(node)) => Ok(node),
            _ => {
                let all: Vec<&str> = self.cluster.stores().map(|store| store.name.as_str()).collect();
                Err(format!("there is no store `{name}`: there are {}", all.join(", ")))
            }
        }
    }

    /// Returns the status of the cluster.
    pub fn report(&self) -> OperatorStatus {
        let name = |node: NodeId| self.cluster.name_of(node).unwrap_or_default().to_owned();
        let chain = self.operator.layout().chain(SHARD).cloned().unwrap_or_default();
        OperatorStatus {
            epoch: self.operator.layout().epoch(),
            wanted: self.wanted,
            stores: self.operator.nodes().map(|node| self.store_status(&node)).collect(),
            chain: ChainStatus {
                members: chain.members.iter().map(|member| name(member.node)).collect(),
                learner: chain.learner.map(|member| name(member.node)),
            },
            history: self.history.iter().cloned().collect(),
        }
    }

    fn store_status(&self, report: &NodeReport) -> StoreStatus {
        let chain = self.operator.layout().chain(SHARD).cloned().unwrap_or_default();
        let last = chain.members.len().saturating_sub(1);
        let role = match chain.members.iter().position(|member| member.node == report.node) {
            Some(0) if last == 0 => StoreRole::Only,
            Some(0) => StoreRole::Head,
            Some(at) if at == last => StoreRole::Tail,
            Some(_) => StoreRole::Middle,
            None if chain.learner.is_some_and(|learner| learner.node == report.node) => StoreRole::Learner,
            None => StoreRole::Spare,
        };
        let status = report.status.as_ref();
        let shard = status.and_then(|status| status.shards.iter().find(|shard| shard.shard == SHARD));
        let copied = self.operator.copied(SHARD).filter(|(learner, ..)| learner.node == report.node);
        let count =
            |status: &resilient::message::NodeStatus| ChainMember { node: report.node, life: status.life }.life_count();
        StoreStatus {
            name: self.cluster.name_of(report.node).unwrap_or_default().to_owned(),
            role,
            answers: report.answers,
            is_drained: report.is_drained,
            is_active: report.answers && shard.is_some_and(|shard| shard.is_active),
            lives: status.map(count),
            rows: shard.map_or(0, |shard| shard.rows),
            log: shard.map_or(0, |shard| shard.log),
            pending: shard.map_or(0, |shard| shard.pending),
            copied_percent: copied.map(|(_, copied, all)| percent(copied, all)),
        }
    }
}

/// Returns a share in percent, 100 at most.
fn percent(part: u64, whole: u64) -> u8 {
    if part >= whole { 100 } else { (u128::from(part) * 100 / u128::from(whole)) as u8 }
}
