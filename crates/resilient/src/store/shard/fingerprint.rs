//! Hashes a shard at a node.

use std::hash::{Hash, Hasher};

use super::ShardNode;

impl Hash for ShardNode {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // A new field must be hashed, or listed here with the reason. The model has no disk, so record numbers do not
        // matter.
        let ShardNode {
            shard,
            is_head,
            is_tail,
            is_member,
            content,
            content_record: _,
            is_active,
            active_record: _,
            rows,
            sessions,
            grace_until,
            log,
            // A report.
            carried: _,
            floor,
            stable,
            link,
            waiters,
            pools,
            early,
            next_chunk,
            report_due,
            clocks,
        } = self;
        (shard, is_head, is_tail, is_member, content, is_active, grace_until).hash(hasher);
        rows.range(0..rows.positions()).for_each(|row| row.hash(hasher));
        (rows.cleared(), rows.epoch_floor(), clocks).hash(hasher);
        let mut sorted: Vec<_> = sessions.iter().collect();
        sorted.sort_unstable();
        sorted.hash(hasher);
        // The number of operations of a chain with one node is not observable.
        let is_alone = *is_head && *is_tail && link.is_none() && log.len() == 0;
        is_alone.hash(hasher);
        if !is_alone {
            (log, floor, stable, link, early, next_chunk).hash(hasher);
        }
        (waiters, pools, report_due).hash(hasher);
    }
}
