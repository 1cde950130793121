//! Assigns shards to chains of store nodes.
//!
//! Layouts come from an [operator](crate::operator), which follows three rules. The nodes report what the rules need,
//! for the layout that they have ([`StoreNode::layout`](crate::StoreNode::layout)); it must be the newest one.
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

/// An operator's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(pub u32);

impl OperatorId {
    /// The operator of a cluster that lists only one.
    pub const ONLY: OperatorId = OperatorId(0);
}

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
    /// Its life, never used twice. The lower 32 bits count the lives of the node, from 1. The others distinguish lives
    /// whose count was lost with the node's directory.
    pub life: u64,
}

impl ChainMember {
    /// Returns the member for a node in a life with this count. `random` is drawn for each life.
    pub fn in_life(node: NodeId, count: u32, random: u32) -> ChainMember {
        ChainMember { node, life: u64::from(random) << 32 | u64::from(count) }
    }

    /// Returns the number of lives of the node, including this one.
    pub fn life_count(self) -> u32 {
        self.life as u32
    }
}

/// The nodes of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShardChain {
    /// Members, from head to tail.
    pub members: Vec<ChainMember>,
    /// A node after the tail that copies the rows in order to become the new tail.
    pub learner: Option<ChainMember>,
}

impl ShardChain {
    /// Returns the chain of a shard in a cluster's first layout: `length` members, rotated from shard to shard so that
    /// each is a head in turn.
    pub fn in_turn(members: &[ChainMember], shard: ShardId, length: usize) -> ShardChain {
        let from = usize::from(shard.0) % members.len().max(1);
        ShardChain { members: members.iter().cycle().skip(from).take(length).copied().collect(), learner: None }
    }

    /// Returns the position of a member.
    pub fn position(&self, member: ChainMember) -> Option<usize> {
        self.members.iter().position(|other| *other == member)
    }

    /// Returns the node that gets the operations of `member`, which is the learner after the tail.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StoreLayout {
    epoch: u64,
    chains: Vec<ShardChain>,
}

impl StoreLayout {
    /// Creates a layout with a chain for each shard.
    pub fn new(epoch: u64, chains: Vec<ShardChain>) -> StoreLayout {
        StoreLayout { epoch, chains }
    }

    /// Creates a layout in which each shard's chain has all members, rotated so that each is a head in turn.
    pub fn of_all(epoch: u64, members: &[ChainMember], shards: u16) -> StoreLayout {
        let chain = |shard| ShardChain::in_turn(members, ShardId(shard), members.len());
        StoreLayout::new(epoch, (0..shards).map(chain).collect())
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
    fn members_take_turns_at_the_head() {
        let members = [member(1), member(2), member(3)];
        let layout = StoreLayout::of_all(1, &members, 4);
        let heads = layout.shards().map(|shard| layout.head(shard).expect("a head").node.0);
        assert_eq!(heads.collect::<Vec<_>>(), [1, 2, 3, 1]);
        assert!(layout.chains().iter().all(|chain| chain.members.len() == 3));
        let short = ShardChain::in_turn(&members, ShardId(2), 2);
        assert_eq!(short.members, [member(3), member(1)]);
        assert_eq!(ShardChain::in_turn(&[], ShardId(2), 2), ShardChain::default());
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
