//! Runs the operator of a cluster on a socket.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use resilient::layout::ShardId;
use resilient::message::{GroupStatus, NodeStatus, ShardStatus};
use resilient::operator::{CommandRefusal, NodeReport};
use resilient::{ChainMember, LayoutOperator, NodeId, OperatorEvent, Peer, ShardChain, StoreMessage};
use switch::Time;

use crate::cluster::Cluster;
use crate::layout_changes::LayoutChanges;
use crate::layout_keeper::{KeeperError, LayoutKeeper};
use crate::operator_status::{
    ChainStatus, GroupRows, HistoryLine, OperatorRequest, OperatorResponse, OperatorStatus, StoreRole, StoreStatus,
};
use crate::operator_text as text;
use crate::socket::ClusterSocket;
use crate::status_socket::StatusSocket;

/// Maximum number of datagrams that are received in a turn.
const BATCH: usize = 64;

/// Maximum time for which the operator sleeps, so that it answers requests of users.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Maximum time for which the operator sleeps while a change is being committed.
const BUSY_SLEEP: Duration = Duration::from_millis(1);

/// Number of changes that the status shows.
const MAX_HISTORY: usize = 32;

/// An operator with its socket and the keeper of its layouts.
pub struct OperatorServer {
    operator: LayoutOperator,
    cluster: Cluster,
    wanted: usize,
    changes: LayoutChanges,
    socket: ClusterSocket,
    status: Option<StatusSocket>,
    started: Instant,
    history: VecDeque<HistoryLine>,
    /// Number of the last line of the history.
    lines: u64,
    /// Lines that were not reported yet.
    unreported: Vec<HistoryLine>,
    /// The learner of each shard that has one, and the share that was reported last.
    progress: BTreeMap<ShardId, (ChainMember, u8)>,
}

impl OperatorServer {
    /// Creates an operator of a cluster with a bound socket, and starts the thread that keeps its layouts. `seed` is
    /// random, and different for each start.
    ///
    /// # Errors
    /// If the layout cannot be read.
    pub fn new(
        cluster: Cluster,
        me: Peer,
        mut keeper: impl LayoutKeeper + Send + 'static,
        socket: UdpSocket,
        status: Option<StatusSocket>,
        seed: u64,
    ) -> Result<OperatorServer, KeeperError> {
        let config = cluster.operator_config();
        let wanted = config.chain_length;
        let operator = LayoutOperator::new(config, keeper.load()?, seed);
        Ok(OperatorServer {
            operator,
            wanted,
            changes: LayoutChanges::start(keeper, Instant::now()),
            socket: ClusterSocket::new(socket, cluster.clone(), me, seed),
            cluster,
            status,
            started: Instant::now(),
            history: VecDeque::new(),
            lines: 0,
            unreported: Vec::new(),
            progress: BTreeMap::new(),
        })
    }

    fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64)
    }

    /// Runs until `stop` is set, and calls `report` with each change.
    ///
    /// # Errors
    /// If the socket cannot be configured.
    pub fn run(&mut self, stop: &AtomicBool, report: &mut dyn FnMut(&HistoryLine)) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.receive()?;
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
        let longest = if self.changes.is_busy() { BUSY_SLEEP } else { LONGEST_SLEEP };
        let wait = wait.clamp(Duration::from_micros(50), longest);
        self.socket.socket.set_read_timeout(Some(wait))?;
        for _ in 0..BATCH {
            let Some(messages) = self.socket.receive(self.now()) else { break };
            messages.iter().for_each(|(from, message)| self.operator.receive(*from, message));
            self.act();
            self.socket.socket.set_read_timeout(Some(Duration::from_micros(1)))?;
        }
        Ok(())
    }

    /// Carries out the effects of the operator, until there are none.
    fn act(&mut self) {
        loop {
            if let Some(note) = self.changes.step(Instant::now(), &mut self.operator) {
                self.note(note);
            }
            let events: Vec<OperatorEvent> = self.operator.take_events().collect();
            if events.is_empty() {
                return;
            }
            let mut messages: Vec<(Peer, StoreMessage)> = Vec::new();
            for event in events {
                match event {
                    OperatorEvent::Send { to, message } => messages.push((to, message)),
                    OperatorEvent::Commit { record } => self.changes.propose(record),
                    OperatorEvent::Reload => self.changes.reload(Instant::now()),
                    OperatorEvent::Note(note) => self.note(text::line(&self.cluster, &note)),
                }
            }
            self.socket.send(self.now(), &messages);
        }
    }

    fn note(&mut self, text: String) {
        self.lines += 1;
        let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = HistoryLine { number: self.lines, time_s, text };
        self.unreported.push(line.clone());
        self.history.push_back(line);
        if self.history.len() > MAX_HISTORY {
            self.history.pop_front();
        }
    }

    /// Reports each tenth of the rows that learners have copied.
    fn note_progress(&mut self) {
        for shard in self.operator.layout().shards() {
            let Some((learner, copied, all)) = self.operator.copied(shard) else {
                self.progress.remove(&shard);
                continue;
            };
            let percent = percent(copied, all) / 10 * 10;
            let known = self.progress.get(&shard).filter(|(member, _)| *member == learner);
            let last = known.map_or(0, |(_, last)| *last);
            if percent > last && percent < 100 {
                self.note(text::progress(&self.cluster, shard, learner, percent));
            }
            self.progress.insert(shard, (learner, percent.max(last)));
        }
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
        self.cluster.store(name).and_then(|member| member.peer.node()).ok_or_else(|| {
            let all: Vec<&str> = self.cluster.stores().map(|store| store.name.as_str()).collect();
            format!("there is no store `{name}`: there are {}", all.join(", "))
        })
    }

    /// Returns the status of the cluster.
    pub fn report(&self) -> OperatorStatus {
        let name = |node: NodeId| self.cluster.name_of(node).unwrap_or_default().to_owned();
        let chain = |chain: &ShardChain| ChainStatus {
            members: chain.members.iter().map(|member| name(member.node)).collect(),
            learner: chain.learner.map(|member| name(member.node)),
        };
        OperatorStatus {
            epoch: self.operator.layout().epoch(),
            wanted: self.wanted,
            stores: self.operator.nodes().map(|node| self.store_status(&node)).collect(),
            chains: self.operator.layout().chains().iter().map(chain).collect(),
            is_changing: self.operator.is_changing(),
            blocked_reason: self.changes.blocked_reason().map(str::to_owned),
            history: self.history.iter().cloned().collect(),
        }
    }

    fn store_status(&self, report: &NodeReport) -> StoreStatus {
        let node = report.node;
        let (layout, status) = (self.operator.layout(), report.status.as_ref());
        let roles: Vec<StoreRole> = layout.chains().iter().map(|chain| role_in(chain, node)).collect();
        let shards = status.map_or(&[][..], |status| &status.shards);
        let is_member = |shard: ShardId| layout.chain(shard).is_some_and(|chain| role_in(chain, node).is_member());
        let is_active = |shard: ShardId| shards.iter().any(|status| status.shard == shard && status.is_active);
        let mut members = layout.shards().filter(|shard| is_member(*shard)).peekable();
        let is_active = members.peek().is_some() && members.all(is_active);
        let sum = |count: fn(&ShardStatus) -> u64| shards.iter().map(count).sum();
        let learners = layout.shards().filter_map(|shard| self.operator.copied(shard));
        let copied = learners.filter(|(learner, ..)| learner.node == node);
        let count = |status: &NodeStatus| ChainMember { node, life: status.life }.life_count();
        StoreStatus {
            name: self.cluster.name_of(node).unwrap_or_default().to_owned(),
            roles,
            answers: report.answers,
            is_drained: report.is_drained,
            is_active: report.answers && is_active,
            lives: status.map(count),
            rows: sum(|shard| shard.rows),
            log: sum(|shard| shard.log),
            pending: sum(|shard| shard.pending),
            groups: status.map_or_else(Vec::new, |status| status.groups.iter().map(group_rows).collect()),
            copied_percent: copied.map(|(_, copied, all)| percent(copied, all)).min(),
        }
    }
}

/// Returns the role of a store in a chain.
fn role_in(chain: &ShardChain, node: NodeId) -> StoreRole {
    match chain.members.iter().position(|member| member.node == node) {
        Some(position) => StoreRole::of_member(position, chain.members.len()),
        None if chain.learner.is_some_and(|learner| learner.node == node) => StoreRole::Learner,
        None => StoreRole::Spare,
    }
}

fn group_rows(status: &GroupStatus) -> GroupRows {
    let GroupStatus { group, rows, range } = *status;
    GroupRows { group, rows, range }
}

/// Returns a share in percent, 100 at most.
fn percent(part: u64, whole: u64) -> u8 {
    if part >= whole { 100 } else { (u128::from(part) * 100 / u128::from(whole)) as u8 }
}
