//! Decides on layouts: removes nodes that do not answer, and adds others.
//!
//! ```text
//!                    ┌──── StatusRequest ───> every node
//!   LayoutOperator <─┴──── Status ──────────┘
//!        │  plan: one change of each shard at a time
//!        ├──── Commit ──> LayoutRecord, by compare-and-swap ──> committed | superseded
//!        └──── Layout ──> every node and switch, once it is kept
//! ```
//!
//! The operator follows the rules of [`layout`](crate::layout). A layout leaves it only after it was committed under an
//! epoch that no other layout has. So an operator that lags, restarts, or runs twice does no harm, and neither does one
//! that considers a living node dead.
//!
//! The first layout consists of nodes in their first life that have no layout. If any node has one, the record was
//! lost, and the operator changes nothing.

mod node_view;
mod plan;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use switch::Time;

use crate::layout::{ChainMember, NodeId, StoreLayout, SwitchId};
use crate::message::{Peer, StatusRequest, StoreMessage};
use crate::mutant::{Mutant, Mutation};
use node_view::NodeView;
pub use report::{ChainChange, NodeReport, OperatorNote, RemovalReason};

/// Number of polls after which switches get the layout again.
const ANNOUNCE_POLLS: u64 = 4;

/// Settings of an operator.
#[derive(Clone, Debug)]
pub struct OperatorConfig {
    /// All nodes. Chains prefer the first ones.
    pub nodes: Vec<NodeId>,
    /// All switches.
    pub switches: Vec<SwitchId>,
    /// Number of members that a chain should have, at least 1. Other nodes are spares.
    pub chain_length: usize,
    /// Number of shards of the first layout.
    pub shards: u16,
    /// Interval of status requests.
    pub poll_ns: u64,
    /// Number of consecutive requests without an answer after which a node is considered dead.
    pub suspect_after: u32,
    /// Whether members are removed even if no active one remains. Rows may then be unavailable, never wrong.
    pub is_reckless: bool,
    /// The error to make, in builds of the simulator.
    pub mutation: Mutation,
}

impl Default for OperatorConfig {
    fn default() -> Self {
        OperatorConfig {
            nodes: Vec::new(),
            switches: Vec::new(),
            chain_length: 3,
            shards: 1,
            poll_ns: 250_000_000,
            suspect_after: 4,
            is_reckless: false,
            mutation: Mutation::default(),
        }
    }
}

/// The durable state of a cluster's operators. Each change has a layout with the next epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutRecord {
    /// The layout.
    pub layout: Arc<StoreLayout>,
    /// The nodes that leave their chains when others have replaced them, and that join none.
    pub drained: BTreeSet<NodeId>,
}

impl LayoutRecord {
    /// Returns the epoch of the layout in a record, 0 without a record.
    pub fn epoch_of(record: Option<&LayoutRecord>) -> u64 {
        record.map_or(0, |record| record.layout.epoch())
    }

    /// Whether this record may replace the committed one: its layout has the next epoch.
    pub fn follows(&self, kept: Option<&LayoutRecord>) -> bool {
        self.layout.epoch() == LayoutRecord::epoch_of(kept) + 1
    }
}

/// An effect of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorEvent {
    /// A message leaves.
    Send {
        /// The receiver.
        to: Peer,
        /// The message.
        message: StoreMessage,
    },
    /// A record that is to replace the one with the previous epoch, and only that one. [`LayoutOperator::committed`] or
    /// [`LayoutOperator::superseded`] follows.
    Commit {
        /// The record.
        record: LayoutRecord,
    },
    /// A node has a newer layout. [`LayoutOperator::superseded`] follows, with the record that is kept.
    Reload,
    /// A remark for users.
    Note(OperatorNote),
}

/// The reason for which a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRefusal {
    /// There is no such node.
    Unknown(NodeId),
    /// There is no layout yet.
    NoLayout,
    /// The node is a member of no chain.
    NoMember(NodeId),
    /// No other node that answers can replace it.
    NoSpare,
    /// The node cannot replace another one: it does not answer, or is a member itself.
    NotSpare(NodeId),
}

/// A change of the record that waits for the keeper.
#[derive(Debug)]
struct Proposal {
    record: LayoutRecord,
    notes: Vec<OperatorNote>,
}

/// The operator of a cluster.
#[derive(Debug)]
pub struct LayoutOperator {
    config: OperatorConfig,
    record: LayoutRecord,
    proposal: Option<Proposal>,
    nodes: BTreeMap<NodeId, NodeView>,
    /// Nodes whose drained state is to differ from that in the record.
    commands: BTreeMap<NodeId, bool>,
    /// The node that joins before other spares.
    preferred: Option<NodeId>,
    /// Number of the last status request.
    number: u64,
    polls: u64,
    due: Time,
    /// The last remark about a condition that the operator waits for.
    waits_for: Option<OperatorNote>,
    events: Vec<OperatorEvent>,
}

impl LayoutOperator {
    /// Creates an operator with the committed record, if there is one. `seed` is random: answers to an earlier
    /// operator must not count.
    pub fn new(config: OperatorConfig, record: Option<LayoutRecord>, seed: u64) -> LayoutOperator {
        let nodes = config.nodes.iter().map(|node| (*node, NodeView::default())).collect();
        LayoutOperator {
            config,
            record: record.unwrap_or_default(),
            proposal: None,
            nodes,
            commands: BTreeMap::new(),
            preferred: None,
            number: seed >> 1,
            polls: 0,
            due: Time::ZERO,
            waits_for: None,
            events: Vec::new(),
        }
    }

    /// Returns the newest committed layout. Its epoch is 0 as long as there is none.
    pub fn layout(&self) -> &Arc<StoreLayout> {
        &self.record.layout
    }

    /// Returns the effects since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = OperatorEvent> + '_ {
        self.events.drain(..)
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Time {
        self.due
    }

    /// Handles a message.
    pub fn receive(&mut self, from: Peer, message: &StoreMessage) {
        match (from, message) {
            (_, StoreMessage::LayoutRequest(epoch)) => self.send_layout(from, *epoch),
            (Peer::Node(node), StoreMessage::Status(status)) => {
                let oldest = self.number.saturating_sub(u64::from(self.config.suspect_after));
                let Some(view) = self.nodes.get_mut(&node) else { return };
                if status.number > self.number || status.number <= oldest || !view.answered(status) {
                    return;
                }
                if std::mem::take(&mut view.is_suspected) {
                    self.note(OperatorNote::Answers(node));
                }
                self.send_layout(from, status.layout);
                self.act();
            }
            _ => {}
        }
    }

    /// Asks all nodes for their status when that is due.
    pub fn tick(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        self.due = now.after_ns(self.config.poll_ns.max(1));
        let newest = self.nodes.values().filter_map(NodeView::epoch).max();
        if newest.is_some_and(|epoch| epoch > self.record.layout.epoch()) && self.proposal.is_none() {
            self.events.push(OperatorEvent::Reload);
        }
        let silent = self.nodes.iter_mut().filter_map(|(node, view)| {
            let is_silent = view.unanswered >= self.config.suspect_after;
            (is_silent && !std::mem::replace(&mut view.is_suspected, true)).then_some(*node)
        });
        let silent: Vec<NodeId> = silent.collect();
        silent.into_iter().for_each(|node| self.note(OperatorNote::Suspected(node)));
        self.number += 1;
        let request = StatusRequest { number: self.number, layout: self.record.layout.epoch() };
        for (node, view) in &mut self.nodes {
            view.unanswered = view.unanswered.saturating_add(1);
            let message = StoreMessage::StatusRequest(request);
            self.events.push(OperatorEvent::Send { to: Peer::Node(*node), message });
        }
        if self.polls.is_multiple_of(ANNOUNCE_POLLS) {
            self.announce_to_switches();
        }
        self.polls += 1;
        self.act();
    }

    /// Considers a node dead until it answers.
    pub fn suspect(&mut self, node: NodeId) {
        let Some(view) = self.nodes.get_mut(&node) else { return };
        if !std::mem::replace(&mut view.is_suspected, true) {
            self.note(OperatorNote::Suspected(node));
            self.act();
        }
    }

    /// Reports that the proposed record with this epoch is committed.
    pub fn committed(&mut self, epoch: u64) {
        let Some(Proposal { record, notes }) = self.proposal.take_if(|it| it.record.layout.epoch() == epoch) else {
            return;
        };
        self.take(record);
        notes.into_iter().for_each(|note| self.note(note));
        self.act();
    }

    /// Reports the committed record, which another operator may have made. A proposal is abandoned.
    pub fn superseded(&mut self, record: Option<LayoutRecord>) {
        self.proposal = None;
        if let Some(record) = record.filter(|record| record.layout.epoch() > self.record.layout.epoch()) {
            let epoch = record.layout.epoch();
            self.take(record);
            self.note(OperatorNote::Superseded(epoch));
        }
        self.act();
    }

    fn take(&mut self, record: LayoutRecord) {
        self.commands.retain(|node, is_drained| record.drained.contains(node) != *is_drained);
        self.record = record;
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        nodes.into_iter().for_each(|node| self.send_layout(Peer::Node(node), 0));
        self.announce_to_switches();
    }

    fn announce_to_switches(&mut self) {
        for switch in self.config.switches.clone() {
            self.send_layout(Peer::Switch(switch), 0);
        }
    }

    /// Sends the layout to a peer with a layout of this epoch, if that is older.
    fn send_layout(&mut self, to: Peer, epoch: u64) {
        if epoch < self.record.layout.epoch() {
            let message = StoreMessage::Layout(Arc::clone(&self.record.layout));
            self.events.push(OperatorEvent::Send { to, message });
        }
    }

    fn note(&mut self, note: OperatorNote) {
        self.events.push(OperatorEvent::Note(note));
    }

    /// Proposes the next record, if there is something to change.
    fn act(&mut self) {
        if self.proposal.is_some() {
            return;
        }
        match self.plan() {
            Ok(proposal) => {
                self.waits_for = None;
                let Some(proposal) = proposal else { return };
                self.events.push(OperatorEvent::Commit { record: proposal.record.clone() });
                if self.config.mutation.is(Mutant::SentBeforeKept) {
                    self.take(proposal.record.clone());
                }
                self.proposal = Some(proposal);
            }
            Err(note) => {
                if self.waits_for.as_ref() != Some(&note) {
                    self.waits_for = Some(note.clone());
                    self.note(note);
                }
            }
        }
    }

    /// Drains a node: it leaves its chains. Spares join first if there are any.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn drain(&mut self, node: NodeId) -> Result<(), CommandRefusal> {
        self.command(node, true)
    }

    /// Lets a node that was drained join chains again.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn undrain(&mut self, node: NodeId) -> Result<(), CommandRefusal> {
        self.command(node, false)
    }

    /// Replaces a member by another node: by `with`, or by any spare.
    ///
    /// # Errors
    /// If the node is not a member, or no other one can replace it now.
    pub fn replace(&mut self, node: NodeId, with: Option<NodeId>) -> Result<(), CommandRefusal> {
        let is_member = |node: NodeId| {
            let mut members = self.record.layout.chains().iter().flat_map(|chain| &chain.members);
            members.any(|member| member.node == node)
        };
        let mut named = [Some(node), with].into_iter().flatten();
        if let Some(unknown) = named.find(|node| !self.nodes.contains_key(node)) {
            return Err(CommandRefusal::Unknown(unknown));
        }
        if !is_member(node) {
            return Err(CommandRefusal::NoMember(node));
        }
        let is_spare = |other: &NodeId| *other != node && !is_member(*other) && self.living(*other).is_some();
        let is_usable = |other: &&NodeId| is_spare(other) && !self.record.drained.contains(other);
        match with {
            Some(with) if !is_spare(&with) => return Err(CommandRefusal::NotSpare(with)),
            None if self.nodes.keys().find(is_usable).is_none() => return Err(CommandRefusal::NoSpare),
            _ => {}
        }
        if let Some(with) = with {
            self.preferred = Some(with);
            self.commands.insert(with, false);
        }
        self.command(node, true)
    }

    fn command(&mut self, node: NodeId, is_drained: bool) -> Result<(), CommandRefusal> {
        if !self.nodes.contains_key(&node) {
            return Err(CommandRefusal::Unknown(node));
        }
        if self.record.layout.epoch() == 0 {
            return Err(CommandRefusal::NoLayout);
        }
        self.commands.insert(node, is_drained);
        self.commands.retain(|node, is_drained| self.record.drained.contains(node) != *is_drained);
        self.act();
        Ok(())
    }

    /// Returns a node in its current life, unless it is considered dead or has not answered yet.
    fn living(&self, node: NodeId) -> Option<ChainMember> {
        let view = self.nodes.get(&node).filter(|view| !view.is_suspected)?;
        view.status.as_ref().map(|status| ChainMember { node, life: status.life })
    }
}

#[cfg(test)]
mod tests;
