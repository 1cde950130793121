//! Finds free numbers in pools.
//!
//! A number is taken if its row has values, so the rows are all that nodes have to agree on. A shard has the numbers
//! whose rows belong to it: a row and that of its number are always in the same shard, and created in one step.

use super::ShardContext;
use super::shard::ShardNode;
use crate::message::{CreatedRow, NumberPool};
use crate::mutant::Mutant;
use crate::row::{RowId, RowValues};

/// Number of numbers that are tried at random before the pool is searched in order.
const RANDOM_TRIES: usize = 64;

/// Maximum number of numbers of a pool.
const MAX_NUMBERS: u64 = 1 << 20;

/// Maximum number of pools whose searches are remembered.
const MAX_POOLS: usize = 64;

/// Pools in which a search has found nothing.
#[derive(Debug, Default)]
pub(super) struct PoolSearches {
    /// The pools, and the number of rows that had been removed by then.
    exhausted: Vec<(NumberPool, u64)>,
}

impl PoolSearches {
    fn is_exhausted(&self, pool: &NumberPool, removals: u64) -> bool {
        self.exhausted.contains(&(*pool, removals))
    }

    fn note(&mut self, pool: NumberPool, removals: u64) {
        self.exhausted.retain(|(other, _)| *other != pool);
        if self.exhausted.len() >= MAX_POOLS {
            self.exhausted.clear();
        }
        self.exhausted.push((pool, removals));
    }
}

impl ShardNode {
    /// Returns the first values of a row with a free number of a pool; `None` if all are taken, or the pool makes no
    /// sense.
    pub fn allocate(&mut self, context: &mut ShardContext<'_>, pool: NumberPool) -> Option<CreatedRow> {
        let count = pool.last.checked_sub(pool.first)?.checked_add(1).filter(|count| *count <= MAX_NUMBERS)?;
        let bits = 8 * u32::from(pool.bytes);
        if bits == 0 || bits > 64 || pool.last.checked_shr(bits).is_some_and(|rest| rest > 0) {
            return None;
        }
        let removals = self.rows.removals();
        if self.pools.is_exhausted(&pool, removals) {
            return None;
        }
        let first = context.random.below(count);
        let tries = (0..RANDOM_TRIES).map(|_| context.random.below(count)).collect::<Vec<_>>();
        let in_order = (0..count).map(|step| (first + step) % count);
        for number in tries.into_iter().chain(in_order) {
            let number = pool.first + number;
            let bytes = pool.to_bytes(number)?;
            let values = RowValues::new(&bytes[..usize::from(pool.bytes)])?;
            if pool.is_shared {
                return Some(CreatedRow { values, number: None });
            }
            let row = pool.row_of(number)?;
            if context.layout.shard_of(&row) == self.shard && self.is_number_free(context, &row) {
                return Some(CreatedRow { values, number: Some(row) });
            }
        }
        self.pools.note(pool, removals);
        None
    }

    fn is_number_free(&self, context: &ShardContext<'_>, row: &RowId) -> bool {
        let has_values = self.rows.get(row).is_some_and(|state| state.values.is_some());
        (!has_values || context.is(Mutant::NumberTaken)) && !self.is_owned(context, row)
    }
}
