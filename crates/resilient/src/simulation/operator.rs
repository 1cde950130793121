//! The operator of the store: removes nodes that it takes for dead, and adds others.

use std::sync::Arc;

use rng::SplitMix64;

use super::scenario::Scenario;
use crate::layout::{ChainMember, NodeId, ShardChain, ShardId, StoreLayout};

/// The operator's view of a node. It is right, except that a living node may be suspected.
pub trait NodeView {
    /// Returns the node in its present life, if it is not taken for dead.
    fn living(&self, node: NodeId) -> Option<ChainMember>;

    /// Whether a node is an active member of the shard in this layout.
    fn is_active(&self, member: ChainMember, shard: ShardId, epoch: u64) -> bool;

    /// Whether a node is a learner of the shard in this layout, and has copied it.
    fn is_complete(&self, member: ChainMember, shard: ShardId, epoch: u64) -> bool;
}

/// The operator.
#[derive(Debug)]
pub struct LayoutOperator {
    /// The newest layout.
    pub layout: Arc<StoreLayout>,
    nodes: u32,
    chain_length: usize,
    is_reckless: bool,
}

impl LayoutOperator {
    /// Creates the operator of nodes in their first life, with chains of the length that the scenario demands.
    pub fn new(random: &mut SplitMix64, scenario: &Scenario) -> LayoutOperator {
        let Scenario { nodes, chain_length, shards, is_operator_reckless: is_reckless, .. } = *scenario;
        let first = random.below(u64::from(nodes)) as u32;
        let member = |node: u32| ChainMember { node: NodeId(node % nodes), life: 1 };
        let chain = |shard: u16| ShardChain {
            members: (0..chain_length as u32).map(|position| member(first + u32::from(shard) + position)).collect(),
            learner: None,
        };
        let layout = Arc::new(StoreLayout::new(1, (0..shards).map(chain).collect()));
        LayoutOperator { layout, nodes, chain_length, is_reckless }
    }

    /// Changes the layout by one step, if there is something to change.
    pub fn step(&mut self, random: &mut SplitMix64, view: &impl NodeView) {
        let epoch = self.layout.epoch();
        let mut chains = self.layout.chains().to_vec();
        for (shard, chain) in self.layout.shards().zip(&mut chains) {
            self.change(random, view, (epoch, shard), chain);
        }
        if chains != self.layout.chains() {
            self.layout = Arc::new(StoreLayout::new(epoch + 1, chains));
        }
    }

    fn change(
        &self,
        random: &mut SplitMix64,
        view: &impl NodeView,
        (epoch, shard): (u64, ShardId),
        chain: &mut ShardChain,
    ) {
        let is_living = |member: &ChainMember| view.living(member.node) == Some(*member);
        if chain.learner.is_some_and(|learner| !is_living(&learner)) {
            chain.learner = None;
            return;
        }
        let living: Vec<ChainMember> = chain.members.iter().copied().filter(is_living).collect();
        if living.len() < chain.members.len() {
            // Only nodes that have everything, and that have this layout, may go on alone.
            let may_go_on = living.iter().any(|member| view.is_active(*member, shard, epoch));
            if may_go_on || (self.is_reckless && !living.is_empty()) {
                chain.members = living;
            }
            return;
        }
        if let Some(learner) = chain.learner {
            if view.is_complete(learner, shard, epoch) {
                chain.members.push(learner);
                chain.learner = None;
            }
            return;
        }
        let is_spare = |node: &NodeId| !chain.members.iter().any(|member| member.node == *node);
        let start = random.below(u64::from(self.nodes)) as u32;
        let mut spares = (start..start + self.nodes).map(|node| NodeId(node % self.nodes)).filter(is_spare);
        if chain.members.len() < self.chain_length {
            chain.learner = spares.find_map(|node| view.living(node));
        }
    }
}
