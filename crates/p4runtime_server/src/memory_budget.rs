//! Limits the memory of messages: over all calls of a server, and for the calls from one address.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use p4runtime_proto::{footprint, prost::Name};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;

/// Maximum length of a request, in bytes. The specification requires at least gRPC's default of 4 MiB.
pub(crate) const MAX_REQUEST_BYTES: usize = 32 << 20;
/// Maximum length of a stream message, in bytes.
pub(crate) const MAX_STREAM_MESSAGE_BYTES: usize = 256 << 10;
/// Maximum decoded size of one message, in bytes. A hundred thousand table entries take 200 to 300 MiB.
const MAX_DECODED_BYTES: u64 = 384 << 20;
/// Maximum decoded size of the messages of all calls, from decoding to the end of their calls, in bytes.
const DECODED_BYTES: u64 = 512 << 20;
/// Maximum size of incomplete messages of all calls, in bytes.
const RECEIVED_BYTES: u64 = 256 << 20;
/// Limits of one address: enough for one message of maximum size, and something is left for other addresses.
const RECEIVED_BYTES_A_PEER: u64 = RECEIVED_BYTES / 2;
const DECODED_BYTES_A_PEER: u64 = MAX_DECODED_BYTES;
const ANSWERED_BYTES_A_PEER: u64 = ANSWERED_BYTES / 2;
/// The inverse share of each pool that is reserved for short messages, and of that for one address. With an eighth,
/// two clients that send long messages cannot keep others from writing a thousand entries.
const SHORT_PART: u64 = 8;
/// Maximum length of a message that is received without a reservation, so short calls get through under load.
const FREE_BYTES: usize = 16 << 10;
/// Maximum size of pipeline configs that are sent and not yet taken by clients, over all calls, in bytes.
const ANSWERED_BYTES: u64 = 256 << 20;
/// Bytes that planning and running one update or request takes, besides its message.
const ELEMENT_BYTES: u64 = 1 << 10;
/// Minimum rate at which a long message must arrive, in bytes per second.
const SLOWEST_BYTES_A_SECOND: u64 = 1 << 20;

/// The memory available for messages: of all calls, and of those from one address.
#[derive(Clone)]
pub(crate) struct MemoryBudget {
    all: Arc<MemoryPools>,
    share: Option<Arc<MemoryPools>>,
    /// Maximum time that a call waits.
    pub(crate) timeout: Duration,
}

/// Memory for messages as they are received, decoded and answered.
pub(crate) struct MemoryPools {
    received: MemoryPool,
    decoded: MemoryPool,
    answered: MemoryPool,
}

impl MemoryPools {
    /// Returns the pools of the whole server.
    fn all() -> MemoryPools {
        let pool = |bytes: u64| MemoryPool::new(bytes - bytes / SHORT_PART, bytes / SHORT_PART);
        MemoryPools { received: pool(RECEIVED_BYTES), decoded: pool(DECODED_BYTES), answered: pool(ANSWERED_BYTES) }
    }

    /// Returns the pools of one address.
    pub(crate) fn share() -> MemoryPools {
        let pool = |bytes: u64, of: u64| MemoryPool::new(bytes, of / SHORT_PART / SHORT_PART);
        MemoryPools {
            received: pool(RECEIVED_BYTES_A_PEER, RECEIVED_BYTES),
            decoded: pool(DECODED_BYTES_A_PEER, DECODED_BYTES),
            answered: pool(ANSWERED_BYTES_A_PEER, ANSWERED_BYTES),
        }
    }
}

/// Reserved memory, released on drop.
pub(crate) struct ReservedMemory {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    /// Keeps the address's pools alive while memory of them is in use, even after its connections are closed.
    _share: Option<Arc<MemoryPools>>,
}

/// The memory reserved by a call, released when its last owner is dropped.
pub(crate) type MemoryCharge = Arc<Mutex<Vec<ReservedMemory>>>;

/// A pool of bytes, in units that a semaphore can count.
struct MemoryPool {
    common: Arc<Semaphore>,
    /// The part for short messages only.
    short: Arc<Semaphore>,
}

const UNIT: u64 = 1 << 10;

/// Selects the part of a pool that a message uses.
type PoolPart = fn(&MemoryPool) -> &Arc<Semaphore>;

/// Returns the maximum length of a short message for a pool of `bytes`, such that an address may have two at once.
const fn short(bytes: u64) -> u64 {
    bytes / SHORT_PART / SHORT_PART / 2
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl MemoryPool {
    fn new(common: u64, short: u64) -> MemoryPool {
        let part = |bytes: u64| Arc::new(Semaphore::new((bytes / UNIT) as usize));
        MemoryPool { common: part(common), short: part(short) }
    }

    /// Reserves memory if it is available now.
    fn try_take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        self.common.clone().try_acquire_many_owned(units(bytes)).ok()
    }

    /// Reserves memory. Returns `None` if none is available until the deadline.
    async fn take(&self, part: PoolPart, bytes: u64, until: Instant) -> Option<OwnedSemaphorePermit> {
        tokio::time::timeout_at(until, part(self).clone().acquire_many_owned(units(bytes))).await.ok()?.ok()
    }
}

impl MemoryBudget {
    pub(crate) fn new(timeout: Duration) -> MemoryBudget {
        MemoryBudget { all: Arc::new(MemoryPools::all()), share: None, timeout }
    }

    /// Returns the budget for calls from the address with these pools.
    pub(crate) fn with_share(&self, share: Arc<MemoryPools>) -> MemoryBudget {
        MemoryBudget { share: Some(share), ..self.clone() }
    }

    /// Reserves memory that is available now, from the part that long and short messages share.
    fn try_take(&self, pool: fn(&MemoryPools) -> &MemoryPool, bytes: u64) -> Option<ReservedMemory> {
        let mut permits = [None, None];
        for (pools, permit) in self.share.iter().chain([&self.all]).zip(&mut permits) {
            *permit = Some(pool(pools).try_take(bytes)?);
        }
        Some(ReservedMemory { _permits: permits, _share: self.share.clone() })
    }

    /// Reserves memory and waits for it if necessary. Messages of up to `short` bytes wait for the part that only
    /// they may use. The address's pool comes first, so that an address that has used up its own blocks nobody else.
    async fn take(
        &self,
        pool: fn(&MemoryPools) -> &MemoryPool,
        bytes: u64,
        short: u64,
    ) -> Result<ReservedMemory, Status> {
        let is_short = bytes <= short;
        if is_short && let Some(held) = self.try_take(pool, bytes) {
            // Yields like a wait would, so that a stream of short messages lets other tasks run.
            tokio::task::consume_budget().await;
            return Ok(held);
        }
        let part: PoolPart = if is_short { |pool| &pool.short } else { |pool| &pool.common };
        let until = Instant::now() + self.timeout;
        let mut permits = [None, None];
        for (pools, permit) in self.share.iter().chain([&self.all]).zip(&mut permits) {
            *permit = Some(pool(pools).take(part, bytes, until).await.ok_or_else(|| {
                let whose = if Arc::ptr_eq(pools, &self.all) {
                    "other calls use all"
                } else {
                    "this address has used its share of"
                };
                Status::resource_exhausted(format!("{whose} the memory for messages; try again later"))
            })?);
        }
        Ok(ReservedMemory { _permits: permits, _share: self.share.clone() })
    }

    /// Returns the timeout for sending or receiving a message of `bytes`.
    pub(crate) fn timeout_for(&self, bytes: usize) -> Duration {
        self.timeout + Duration::from_millis(bytes as u64 * 1000 / SLOWEST_BYTES_A_SECOND)
    }

    /// Reserves memory to receive a message. Short ones need none.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if none becomes available in time.
    pub(crate) async fn receive(&self, bytes: usize) -> Result<Option<ReservedMemory>, Status> {
        if bytes <= FREE_BYTES {
            return Ok(None);
        }
        // The message is in memory twice for a moment: as received, and as the buffer that is decoded.
        self.take(|pools| &pools.received, 2 * bytes as u64, short(RECEIVED_BYTES)).await.map(Some)
    }

    /// Reserves memory to decode a message.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if the message is too large, or no memory becomes available in time.
    pub(crate) async fn decode(&self, bytes: u64) -> Result<ReservedMemory, Status> {
        if bytes > MAX_DECODED_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the message would take more than {} MiB of memory; send fewer updates or requests in one call",
                MAX_DECODED_BYTES >> 20
            )));
        }
        self.take(|pools| &pools.decoded, bytes, short(DECODED_BYTES)).await
    }

    /// Reserves memory for a response of `bytes`.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if none becomes available in time.
    pub(crate) async fn answer(&self, bytes: usize) -> Result<ReservedMemory, Status> {
        // Once as a message, and once encoded.
        self.take(|pools| &pools.answered, (2 * bytes as u64).min(ANSWERED_BYTES_A_PEER), short(ANSWERED_BYTES)).await
    }
}

/// Returns the memory that a message of type `M` takes during its call. `elements` is the number of the field with
/// updates or requests.
pub(crate) fn needed<M: Name>(wire: &[u8], elements: Option<u32>) -> u64 {
    let decoded = footprint::bytes_of::<M>(wire, MAX_DECODED_BYTES);
    let elements = elements.map_or(0, |field| footprint::elements(wire, field));
    decoded.saturating_add(elements * ELEMENT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Reserves memory for a message of this size, without waiting.
    type Reserve = fn(&MemoryBudget, u64) -> Option<ReservedMemory>;

    fn now<T>(asked: impl Future<Output = Result<T, Status>>) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(asked).ok()
    }

    /// Reserves memory for messages of `each` bytes from one address after another, until an address gets none.
    fn fill(server: &MemoryBudget, ask: Reserve, each: u64) -> Vec<Vec<ReservedMemory>> {
        let messages_of_next = || -> Vec<ReservedMemory> {
            let address = server.with_share(Arc::new(MemoryPools::share()));
            std::iter::from_fn(|| ask(&address, each)).collect()
        };
        std::iter::repeat_with(messages_of_next).take_while(|held| !held.is_empty()).collect()
    }

    /// An eighth of a pool stays available to short messages when long messages have used the rest, and an eighth of
    /// that to one address. Sizes are in MiB: the longest short message, and what the addresses get in turn.
    fn keeps_a_part(ask: Reserve, longest_short: u64, long: [u64; 2], short: [u64; 8]) {
        let server = MemoryBudget::new(Duration::ZERO);
        let mib = |held: &[Vec<ReservedMemory>], each: u64| {
            held.iter().map(|held| held.len() as u64 * each).collect::<Vec<_>>()
        };
        let long_ones = fill(&server, ask, 8 * MIB);
        assert_eq!(mib(&long_ones, 8), long);
        let next = server.with_share(Arc::new(MemoryPools::share()));
        assert!(ask(&next, longest_short * MIB + UNIT).is_none(), "the message is slightly too long to be short");
        let short_ones = fill(&server, ask, longest_short * MIB);
        assert_eq!(mib(&short_ones, longest_short), short);
        drop(long_ones);
        assert!(ask(&next, 8 * MIB).is_some(), "released memory is available again");
    }

    #[test]
    fn an_eighth_of_what_is_received_is_for_short_messages() {
        keeps_a_part(|budget, bytes| now(budget.receive(bytes as usize / 2)).flatten(), 2, [128, 96], [4; 8]);
    }

    #[test]
    fn an_eighth_of_what_is_decoded_is_for_short_messages() {
        keeps_a_part(|budget, bytes| now(budget.decode(bytes)), 4, [384, 64], [8; 8]);
    }

    #[test]
    fn an_eighth_of_what_is_answered_is_for_short_answers() {
        keeps_a_part(|budget, bytes| now(budget.answer(bytes as usize / 2)), 2, [128, 96], [4; 8]);
    }
}
