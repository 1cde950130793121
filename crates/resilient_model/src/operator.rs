//! The changes of the chain that the rules of [`resilient::layout`] allow.

use resilient::{ChainMember, ShardChain, StoreNode};

use crate::system::{SHARD, SystemState};

/// Returns the chains that may follow the newest one. Whether a node is alive does not matter: an operator may err.
pub(crate) fn changes(state: &SystemState) -> Vec<ShardChain> {
    let Some(chain) = state.layout.chain(SHARD) else { return Vec::new() };
    let mut changes = Vec::new();
    // A node counts as it reports for the newest layout.
    let reporting = || state.nodes.iter().filter(|node| node.layout().epoch() == state.layout.epoch());
    let is_member = |node: &StoreNode| chain.position(node.member()).is_some();
    let alone = |member: ChainMember| ShardChain { members: vec![member], learner: None };
    if chain.members.len() > 1 {
        let stay = reporting().filter(|node| is_member(node) && node.is_active(SHARD));
        changes.extend(stay.map(|node| alone(node.member())));
    }
    match chain.learner {
        None => {
            let joining = state.nodes.iter().filter(|node| !is_member(node));
            changes.extend(joining.map(|node| ShardChain { learner: Some(node.member()), ..chain.clone() }));
        }
        Some(learner) => {
            changes.push(ShardChain { learner: None, ..chain.clone() });
            if reporting().any(|node| node.member() == learner && node.is_complete(SHARD)) {
                let members = chain.members.iter().copied().chain([learner]).collect();
                changes.push(ShardChain { members, learner: None });
            }
        }
    }
    changes
}
