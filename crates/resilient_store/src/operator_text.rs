//! Formats the remarks of an operator.

use resilient::operator::{ChainChange, CommandRefusal, OperatorNote, RemovalReason};
use resilient::{ChainMember, NodeId, ShardChain, ShardId};

use crate::cluster::Cluster;

/// Returns a remark as a line of text.
pub(crate) fn line(cluster: &Cluster, note: &OperatorNote) -> String {
    let name = |node: NodeId| name(cluster, node);
    match note {
        OperatorNote::Suspected(node) => format!("store {} does not answer", name(*node)),
        OperatorNote::Answers(node) => format!("store {} answers again", name(*node)),
        OperatorNote::Changed { shard, change, chain } => {
            let chain = chain_text(cluster, chain);
            let change = match change {
                ChainChange::Founded => format!("chain formed: {chain}"),
                ChainChange::Removed(members, reason) => {
                    let who = members.iter().map(|member| name(member.node)).collect::<Vec<_>>().join(", ");
                    let (stores, was) = if members.len() == 1 { ("store", "was") } else { ("stores", "were") };
                    let why = match reason {
                        RemovalReason::Gone => format!("{was} removed (no answer, or restarted without rows)"),
                        RemovalReason::Drained => "left the chain".to_owned(),
                        RemovalReason::Unfounded => format!("{was} removed (never had rows)"),
                        RemovalReason::Surplus => {
                            format!("{was} removed (the chain was longer than the cluster file says)")
                        }
                    };
                    format!("{stores} {who} {why}: chain {chain}")
                }
                ChainChange::Learns(member) => {
                    format!("store {} started to copy the rows: chain {chain}", name(member.node))
                }
                ChainChange::LearnerDropped(member) => {
                    format!("store {} stopped copying (no answer, or drained)", name(member.node))
                }
                ChainChange::Joined(member) => format!("store {} joined: chain {chain}", name(member.node)),
            };
            format!("{}{change}", prefix(cluster, *shard))
        }
        OperatorNote::Drained(node, true) => format!("store {} is drained", name(*node)),
        OperatorNote::Drained(node, false) => format!("store {} may join the chain again", name(*node)),
        OperatorNote::Superseded(epoch) => format!("another operator has changed the layout: its epoch is {epoch}"),
        OperatorNote::WaitsForNodes { ready, wanted } => {
            format!("waiting for stores in their first life: {ready} of {wanted} answer")
        }
        OperatorNote::RecordLost(epoch) => format!(
            "a store has layout {epoch}, which is newer than the layout file: the operator changes nothing; run the \
             operator that wrote layout {epoch}, or start this one with that file"
        ),
        OperatorNote::RowsLost(shard) => format!(
            "{}all stores of the chain have lost their rows: stop all stores and switches, remove the stores' \
             directories and the layout file, and begin again",
            prefix(cluster, *shard)
        ),
    }
}

/// Returns the reason for which a command is refused.
pub(crate) fn refusal(cluster: &Cluster, refusal: CommandRefusal) -> String {
    let name = |node: NodeId| name(cluster, node);
    match refusal {
        CommandRefusal::Unknown(node) => format!("there is no store {}", name(node)),
        CommandRefusal::NoLayout => "the chain has not begun: too few stores answer".to_owned(),
        CommandRefusal::NoMember(node) if cluster.shards() > 1 => format!("store {} is in no chain", name(node)),
        CommandRefusal::NoMember(node) => format!("store {} is not in the chain", name(node)),
        CommandRefusal::NoSpare => "no spare store answers that could take its place".to_owned(),
        CommandRefusal::NotSpare(node) => {
            format!("store {} cannot take its place: it does not answer, or is in the chain itself", name(node))
        }
    }
}

/// Returns the progress of a learner.
pub(crate) fn progress(cluster: &Cluster, shard: ShardId, member: ChainMember, percent: u8) -> String {
    format!("{}store {} has copied {percent} %", prefix(cluster, shard), name(cluster, member.node))
}

/// Returns the shard of a remark as the beginning of a line, if the cluster has several.
fn prefix(cluster: &Cluster, shard: ShardId) -> String {
    if cluster.shards() > 1 { format!("shard {}: ", shard.0) } else { String::new() }
}

fn name(cluster: &Cluster, node: NodeId) -> String {
    cluster.name_of(node).map_or_else(|| format!("number {}", node.0), |name| format!("`{name}`"))
}

fn chain_text(cluster: &Cluster, chain: &ShardChain) -> String {
    let member = |member: &ChainMember| cluster.name_of(member.node).unwrap_or("?").to_owned();
    chain.members.iter().map(member).collect::<Vec<_>>().join(" -> ")
}
