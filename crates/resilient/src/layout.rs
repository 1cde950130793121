//! Says which chain of store nodes serves which shard.
//!
//! Layouts come from an [operator](crate::operator), who follows three rules. The nodes report what the rules need, for
//! the layout that they have ([`StoreNode::layout`](crate::StoreNode::layout)); it must be the newest one.
//! - Members may be removed if one that stays is active ([`StoreNode::is_active`](crate::StoreNode::is_active)). A
//!   node that is taken for dead by mistake does no harm. If the rule is broken, the rows become unavailable.
//! - A new node is a learner first. It becomes the tail when it is complete
//!   ([`StoreNode::is_complete`](crate::StoreNode::is_complete)). If this rule is broken, rows may be lost: a node that
//!   was a member before, and has missed its removal, would take itself for one that has everything.
//! - A life is used once: a node that has lost its memory has another life.

use crate::row::RowId;

/// The epoch of an operator's first layout.
pub const FIRST_EPOCH: u64 = 1;

/// A store node's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A switch's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u32);

/// A shard: the rows whose hash leads to the same chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// A store node in one life. A node that has lost its memory has another life, and is another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainMember {
    /// The node.
    pub node: NodeId,
    /// Its life, never used twice. The lower 32 bits count the lives of the node, from 1. The others tell lives apart
    /// whose count was lost with the node's directory.
    pub life: u64,
}

impl ChainMember {
    /// Returns the member that a node is in a life with this count. `random` is drawn for each life.
    pub fn in_life(node: NodeId, count: u32, random: u32) -> ChainMember {
        ChainMember { node, life: u64::from(random) << 32 | u64::from(count) }
    }

    /// Returns the number of lives of the node, including this one.
    pub fn life_count(self) -> u32 {
        self.life as u32
    }
}

/// The nodes of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardChain {
    /// Members, from head to tail.
    pub members: Vec<ChainMember>,
    /// A node behind the tail that copies the rows in order to become the new tail.
    pub learner: Option<ChainMember>,
}

impl ShardChain {
    /// Returns the position of a member.
    pub fn position(&self, member: ChainMember) -> Option<usize> {
        self.members.iter().position(|other| *other == member)
    }

    /// Returns the node that gets the operations of `member`, which is the learner behind the tail.
    pub fn successor(&self, member: ChainMember) -> Option<ChainMember> {
        let position = self.position(member)?;
        self.members.get(position + 1).copied().or(self.learner)
    }

    /// Returns the node whose operations `member` gets.
    pub fn predecessor(&self, member: ChainMember) -> Option<ChainMember> {
        if self.learner == Some(member) {
            return self.members.last().copied();
        }
        self.members.get(self.position(member)?.checked_sub(1)?).copied()
    }
}

/// All chains. A layout with a higher epoch replaces one with a lower epoch; the number of shards never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreLayout {
    epoch: u64,
    chains: Vec<ShardChain>,
}

impl StoreLayout {
    /// Creates a layout with a chain for each shard.
    pub fn new(epoch: u64, chains: Vec<ShardChain>) -> StoreLayout {
        StoreLayout { epoch, chains }
    }

    /// Returns the epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the chains in the order of shards.
    pub fn chains(&self) -> &[ShardChain] {
        &self.chains
    }

    /// Returns the shards.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.chains.len() as u16).map(ShardId)
    }

    /// Returns the chain of a shard.
    pub fn chain(&self, shard: ShardId) -> Option<&ShardChain> {
        self.chains.get(usize::from(shard.0))
    }

    /// Returns the head of a shard's chain.
    pub fn head(&self, shard: ShardId) -> Option<ChainMember> {
        self.chain(shard)?.members.first().copied()
    }

    /// Returns the shard of a row.
    pub fn shard_of(&self, row: &RowId) -> ShardId {
        if self.chains.len() == 1 {
            return ShardId(0);
        }
        let hash = u128::from(row.stable_hash().wrapping_mul(0xd6e8_feb8_6659_fd93));
        ShardId(((hash * self.chains.len() as u128) >> 64) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u32) -> ChainMember {
        ChainMember { node: NodeId(node), life: 1 }
    }

    #[test]
    fn operations_pass_from_head_to_tail_and_on_to_the_learner() {
        let chain = ShardChain { members: vec![member(1), member(2)], learner: Some(member(3)) };
        assert_eq!([1, 2, 3].map(|node| chain.successor(member(node))), [Some(member(2)), Some(member(3)), None]);
        assert_eq!([1, 2, 3].map(|node| chain.predecessor(member(node))), [None, Some(member(1)), Some(member(2))]);
        assert_eq!(chain.position(ChainMember { node: NodeId(1), life: 2 }), None);
    }

    #[test]
    fn rows_spread_over_the_shards() {
        let layout = StoreLayout::new(1, vec![ShardChain::default(); 4]);
        let mut rows = [0; 4];
        for index in 0..4000 {
            rows[usize::from(layout.shard_of(&RowId::of_index(1, index)).0)] += 1;
        }
        assert!(rows.iter().all(|rows| (800..1200).contains(rows)), "{rows:?}");
    }
}
