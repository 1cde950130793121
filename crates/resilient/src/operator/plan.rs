//! Finds the next change of each chain.

use std::sync::Arc;

use super::report::{ChainChange, OperatorNote, RemovalReason};
use super::{LayoutOperator, LayoutRecord, Proposal};
use crate::layout::{ChainMember, FIRST_EPOCH, NodeId, ShardChain, ShardId, StoreLayout};
use crate::message::ShardStatus;
use crate::mutant::Mutant;

impl LayoutOperator {
    /// Returns the next record, if there is something to change.
    ///
    /// # Errors
    /// The reason for which nothing can be changed.
    pub(super) fn plan(&self) -> Result<Option<Proposal>, OperatorNote> {
        let layout = &self.record.layout;
        let epochs = self.nodes.values().filter_map(|view| view.epoch());
        if let Some(newest) = epochs.max().filter(|newest| *newest > layout.epoch()) {
            return Err(OperatorNote::RecordLost(newest));
        }
        if layout.epoch() == 0 {
            return self.found();
        }
        let mut drained = self.record.drained.clone();
        let mut notes = Vec::new();
        for (node, is_drained) in &self.commands {
            let changes = if *is_drained { drained.insert(*node) } else { drained.remove(node) };
            if changes {
                notes.push(OperatorNote::Drained(*node, *is_drained));
            }
        }
        let mut chains = layout.chains().to_vec();
        for (shard, chain) in layout.shards().zip(&mut chains) {
            if let Some(change) = self.change(shard, chain) {
                notes.push(OperatorNote::Changed { shard, change, chain: chain.clone() });
            }
        }
        // A first member that misses the first layout would never get rows, so each chain needs one that does not.
        let is_founded = layout.epoch() > FIRST_EPOCH
            || layout.shards().zip(&chains).all(|(shard, chain)| self.has_active(shard, &chain.members));
        if !notes.is_empty() && (is_founded || self.config.is_reckless) {
            let layout = Arc::new(StoreLayout::new(layout.epoch() + 1, chains));
            return Ok(Some(Proposal { record: LayoutRecord { layout, drained }, notes }));
        }
        let has_lost = |chain: &ShardChain| chain.members.iter().all(|member| self.has_forgotten(*member));
        match layout.shards().zip(layout.chains()).find(|(_, chain)| has_lost(chain)) {
            Some((shard, _)) => Err(OperatorNote::RowsLost(shard)),
            None => Ok(None),
        }
    }

    /// Returns the first record, once all nodes have answered or are considered dead: none may have a layout.
    fn found(&self) -> Result<Option<Proposal>, OperatorNote> {
        let is_new = |member: &ChainMember| member.life_count() == 1;
        let nodes = self.config.nodes.iter().filter_map(|node| self.living(*node)).filter(is_new);
        let founders: Vec<ChainMember> = nodes.collect();
        let wanted = self.config.chain_length.clamp(1, self.config.nodes.len().max(1));
        if founders.len() < wanted {
            return Err(OperatorNote::WaitsForNodes { ready: founders.len(), wanted });
        }
        if self.nodes.values().any(|view| view.status.is_none() && !view.is_suspected) {
            return Ok(None);
        }
        let chain = |shard| ShardChain::in_turn(&founders, ShardId(shard), wanted);
        let chains: Vec<ShardChain> = (0..self.config.shards).map(chain).collect();
        let note = |(shard, chain): (u16, &ShardChain)| OperatorNote::Changed {
            shard: ShardId(shard),
            change: ChainChange::Founded,
            chain: chain.clone(),
        };
        let notes = (0..).zip(&chains).map(note).collect();
        let layout = Arc::new(StoreLayout::new(FIRST_EPOCH, chains));
        Ok(Some(Proposal { record: LayoutRecord { layout, ..LayoutRecord::default() }, notes }))
    }

    /// Changes a chain by one step.
    fn change(&self, shard: ShardId, chain: &mut ShardChain) -> Option<ChainChange> {
        if let Some(learner) = chain.learner.filter(|it| self.is_gone(*it) || self.is_drained(it.node)) {
            chain.learner = None;
            return Some(ChainChange::LearnerDropped(learner));
        }
        let gone: Vec<ChainMember> = chain.members.iter().copied().filter(|member| self.is_gone(*member)).collect();
        if !gone.is_empty() {
            return self.remove(shard, chain, gone, RemovalReason::Gone);
        }
        if !self.has_active(shard, &chain.members) {
            return None;
        }
        if let Some(head) = chain.members.first().copied().filter(|head| self.is_idle(shard, *head)) {
            return self.remove(shard, chain, vec![head], RemovalReason::Unfounded);
        }
        if let Some(learner) = chain.learner {
            let is_complete = self.status(shard, learner).is_some_and(|status| status.is_complete);
            if !is_complete {
                return None;
            }
            chain.members.push(learner);
            chain.learner = None;
            return Some(ChainChange::Joined(learner));
        }
        let drained = chain.members.iter().copied().find(|member| self.is_drained(member.node));
        let wanted = self.config.chain_length.max(1);
        if chain.members.len() > wanted {
            let last = chain.members.last().copied().into_iter().collect();
            return match drained {
                Some(member) => self.remove(shard, chain, vec![member], RemovalReason::Drained),
                None => self.remove(shard, chain, last, RemovalReason::Surplus),
            };
        }
        let spare = self.spare(chain).filter(|_| chain.members.len() < wanted || drained.is_some());
        match (spare, drained) {
            (Some(spare), _) => {
                chain.learner = Some(spare);
                Some(ChainChange::Learns(spare))
            }
            (None, Some(member)) => self.remove(shard, chain, vec![member], RemovalReason::Drained),
            (None, None) => None,
        }
    }

    /// Removes members if an active one remains.
    fn remove(
        &self,
        shard: ShardId,
        chain: &mut ShardChain,
        members: Vec<ChainMember>,
        reason: RemovalReason,
    ) -> Option<ChainChange> {
        let stays = |member: &ChainMember| !members.contains(member);
        let staying: Vec<ChainMember> = chain.members.iter().copied().filter(stays).collect();
        let is_reckless = self.config.is_reckless || self.config.mutation.is(Mutant::LastActiveRemoved);
        if !self.has_active(shard, &staying) && (!is_reckless || staying.is_empty()) {
            return None;
        }
        chain.members = staying;
        Some(ChainChange::Removed(members, reason))
    }

    /// Returns a node that can join a chain.
    fn spare(&self, chain: &ShardChain) -> Option<ChainMember> {
        let is_out = |node: &&NodeId| !chain.members.iter().any(|member| member.node == **node);
        let nodes = self.preferred.iter().chain(&self.config.nodes);
        nodes.filter(is_out).filter(|node| !self.is_drained(**node)).find_map(|node| self.living(*node))
    }

    pub(super) fn is_drained(&self, node: NodeId) -> bool {
        self.commands.get(&node).copied().unwrap_or(self.record.drained.contains(&node))
    }

    /// Whether a member is considered dead, has lost its memory, or is no longer a node of the cluster.
    fn is_gone(&self, member: ChainMember) -> bool {
        self.nodes.get(&member.node).is_none_or(|view| view.is_suspected) || self.has_forgotten(member)
    }

    /// Whether the node of a member reports another life.
    fn has_forgotten(&self, member: ChainMember) -> bool {
        let status = self.nodes.get(&member.node).and_then(|view| view.status.as_ref());
        status.is_some_and(|status| status.life != member.life)
    }

    /// Returns the status of a shard at a living member, in the current layout.
    fn status(&self, shard: ShardId, member: ChainMember) -> Option<&ShardStatus> {
        let view = self.nodes.get(&member.node).filter(|_| self.living(member.node) == Some(member))?;
        view.shard(shard).filter(|_| view.epoch() == Some(self.record.layout.epoch()))
    }

    fn has_active(&self, shard: ShardId, members: &[ChainMember]) -> bool {
        members.iter().any(|member| self.status(shard, *member).is_some_and(|status| status.is_active))
    }

    /// Whether a head has this layout, and is not active in it. It has no predecessor that it could copy from.
    fn is_idle(&self, shard: ShardId, head: ChainMember) -> bool {
        self.status(shard, head).is_some_and(|status| !status.is_active)
    }
}
