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

/// Pools in which a search has found nothing. Only numbers that were freed since then are free.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(super) struct PoolSearches {
    exhausted: Vec<ExhaustedPool>,
    /// The pools that were asked for, with the groups of their numbers' rows.
    seen: Vec<(u64, NumberPool)>,
}

#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug)]
struct ExhaustedPool {
    /// The group of the numbers' rows.
    group: u64,
    pool: NumberPool,
    /// Number of times that rows had lost their values by then.
    cleared: u64,
    /// Numbers whose rows were removed since then.
    freed: Vec<u64>,
}

impl PoolSearches {
    fn exhausted(&mut self, group: u64, pool: &NumberPool, cleared: u64) -> Option<&mut ExhaustedPool> {
        self.exhausted.iter_mut().find(|it| it.group == group && it.pool == *pool && it.cleared == cleared)
    }

    /// Returns the pools that were asked for, unless they are shared, with the groups of their numbers' rows.
    pub fn seen(&self) -> &[(u64, NumberPool)] {
        &self.seen
    }

    fn see(&mut self, group: u64, pool: NumberPool) {
        if !pool.is_shared && self.seen.len() < MAX_POOLS && !self.seen.contains(&(group, pool)) {
            self.seen.push((group, pool));
        }
    }

    fn note(&mut self, group: u64, pool: NumberPool, cleared: u64) {
        self.exhausted.retain(|other| other.group != group || other.pool != pool);
        if self.exhausted.len() >= MAX_POOLS {
            self.exhausted.clear();
        }
        self.exhausted.push(ExhaustedPool { group, pool, cleared, freed: Vec::new() });
    }

    /// Records that a row was removed, which may be that of a number.
    pub fn removed(&mut self, row: &RowId) {
        self.exhausted.retain_mut(|it| {
            let NumberPool { first, last, bytes, .. } = it.pool;
            let is_of_pool = it.group == row.group() && usize::from(bytes) == row.key().len();
            let number = row.key().iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            if is_of_pool && (first..=last).contains(&number) {
                it.freed.push(number);
            }
            it.freed.len() as u64 <= MAX_NUMBERS
        });
    }
}

impl ShardNode {
    /// Returns the first values of a row with a free number of a pool; `None` if all are taken, or the pool makes no
    /// sense.
    pub fn allocate(&mut self, context: &mut ShardContext<'_>, row: &RowId, pool: NumberPool) -> Option<CreatedRow> {
        let count = pool.last.checked_sub(pool.first)?.checked_add(1).filter(|count| *count <= MAX_NUMBERS)?;
        let bits = 8 * u32::from(pool.bytes);
        if bits == 0 || bits > 64 || pool.last.checked_shr(bits).is_some_and(|rest| rest > 0) {
            return None;
        }
        let (group, cleared) = (RowId::partner_group(row.group()), self.rows.cleared());
        self.pools.see(group, pool);
        while let Some(exhausted) = self.pools.exhausted(group, &pool, cleared) {
            let number = exhausted.freed.pop()?;
            if let Some(created) = self.created(context, row, pool, number) {
                return Some(created);
            }
        }
        let first = context.random.below(count);
        let tries = (0..RANDOM_TRIES).map(|_| context.random.below(count)).collect::<Vec<_>>();
        let in_order = (0..count).map(|step| (first + step) % count);
        let mut numbers = tries.into_iter().chain(in_order).map(|number| pool.first + number);
        let created = numbers.find_map(|number| self.created(context, row, pool, number));
        if created.is_none() {
            self.pools.note(group, pool, cleared);
        }
        created
    }

    /// Returns the first values of a row that gets this number, if it is free.
    fn created(&self, context: &ShardContext<'_>, row: &RowId, pool: NumberPool, number: u64) -> Option<CreatedRow> {
        let bytes = pool.to_bytes(number)?;
        let values = RowValues::new(&bytes[..usize::from(pool.bytes)])?;
        if pool.is_shared {
            return Some(CreatedRow { values, number: None });
        }
        let number = row.partner(values.bytes())?;
        let is_free = context.layout.shard_of(&number) == self.shard && self.is_number_free(context, &number);
        is_free.then_some(CreatedRow { values, number: Some(number) })
    }

    fn is_number_free(&self, context: &ShardContext<'_>, row: &RowId) -> bool {
        let has_values = self.rows.get(row).is_some_and(|state| state.values.is_some());
        (!has_values || context.is(Mutant::NumberTaken)) && !self.is_held(context, row)
    }
}
