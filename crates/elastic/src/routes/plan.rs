//! Divides the circle of homes among servers of unequal size.

use super::{MemoryServer, RouteFault, ServerId};
use crate::layout::{CellArc, TableLayout};

/// A part of the circle that a server is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetArc {
    /// The server.
    pub server: ServerId,
    /// Number of the replica; the arcs of one replica cover the circle once.
    pub replica: u32,
    /// The homes.
    pub arc: CellArc,
}

/// Divides the circle in proportion to the servers' memory, once for each replica. Replicas are rotated against each
/// other by equal parts of the circle, and no server gets more than such a part, so no server holds a home twice.
///
/// # Errors
/// [`RouteFault::TooSmall`] if the copies do not fit into the memory.
pub fn target_arcs(
    layout: &TableLayout,
    replicas: u32,
    servers: &[MemoryServer],
) -> Result<Vec<TargetArc>, RouteFault> {
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let replicas = replicas.clamp(1, 4).min(servers.len() as u32);
    let homes = layout.cells() / layout.home_distance();
    let shares = shares(homes, replicas, servers);
    let cells = |homes: u32| homes * layout.home_distance();
    for (server, share) in servers.iter().zip(&shares) {
        let needed = u64::from(replicas) * layout.copy_bytes(cells(*share));
        if *share > 0 && needed > server.bytes {
            return Err(RouteFault::TooSmall { server: server.id, needed, available: server.bytes });
        }
    }
    let mut arcs = Vec::new();
    for replica in 0..replicas {
        let mut start = (u64::from(homes) * u64::from(replica) / u64::from(replicas)) as u32;
        for (server, share) in servers.iter().zip(&shares).filter(|(_, share)| **share > 0) {
            let arc = CellArc { start: cells(start), cells: cells(*share) };
            arcs.push(TargetArc { server: server.id, replica, arc });
            start = (start + share) % homes;
        }
    }
    Ok(arcs)
}

/// Returns the number of homes for each server: in proportion to memory, and at most the `replicas`th part.
fn shares(homes: u32, replicas: u32, servers: &[MemoryServer]) -> Vec<u32> {
    let most = homes / replicas;
    let mut shares = vec![0u32; servers.len()];
    let mut left = homes;
    while left > 0 {
        let open: Vec<usize> = (0..servers.len()).filter(|at| shares[*at] < most).collect();
        let weight: u128 = open.iter().map(|at| u128::from(servers[*at].bytes.max(1))).sum();
        let before = left;
        for at in &open {
            let share = u128::from(before) * u128::from(servers[*at].bytes.max(1)) / weight;
            let share = (share as u32).min(most - shares[*at]).min(left);
            shares[*at] += share;
            left -= share;
        }
        if before == left {
            // Fewer homes are left than servers: the largest takes them.
            let at = *open.iter().max_by_key(|at| servers[**at].bytes).expect("the parts of all servers suffice");
            shares[at] += 1;
            left -= 1;
        }
    }
    shares
}
