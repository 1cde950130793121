//! Memory that strangers' messages may take, all calls of a server together, and those from one address.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use p4runtime_proto::{footprint, prost::Name};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;

/// The longest request that is taken, in bytes. gRPC's own default of 4 MiB is the least that the specification allows.
pub(crate) const MAX_REQUEST_BYTES: usize = 32 << 20;
/// The longest message of a stream.
pub(crate) const MAX_STREAM_MESSAGE_BYTES: usize = 256 << 10;
/// What one message may become in memory. A hundred thousand table entries take 200 to 300 MiB.
const MAX_DECODED_BYTES: u64 = 384 << 20;
/// What the messages of all calls may be in memory, from their decoding to the end of their calls.
const DECODED_BYTES: u64 = 512 << 20;
/// What is received of messages that are not complete, over all calls.
const RECEIVED_BYTES: u64 = 256 << 20;
/// Of each of these, one address may have so much: one message of the longest, and something is left for others.
const RECEIVED_BYTES_A_PEER: u64 = RECEIVED_BYTES / 2;
const DECODED_BYTES_A_PEER: u64 = MAX_DECODED_BYTES;
const ANSWERED_BYTES_A_PEER: u64 = ANSWERED_BYTES / 2;
/// An eighth of each is for short messages that find no room elsewhere, and an eighth of that for one address: two that send
/// long messages do not keep others from writes of a thousand entries.
const SHORT_PART: u64 = 8;
/// So much of each call's first message is received without asking: short calls get through, whoever else sends much.
const FREE_BYTES: usize = 16 << 10;
/// What is sent as pipeline configs and not taken yet, over all calls.
const ANSWERED_BYTES: u64 = 256 << 20;
/// What planning and running an update or request takes while its call lasts, besides its message.
const ELEMENT_BYTES: u64 = 1 << 10;
/// The slowest that a long message may come.
const SLOWEST_BYTES_A_SECOND: u64 = 1 << 20;

/// What is left for messages: of all calls, and of those from one address.
#[derive(Clone)]
pub(crate) struct Budget {
    all: Arc<Rooms>,
    share: Option<Arc<Rooms>>,
    /// How long calls wait.
    pub(crate) patience: Duration,
}

/// Room for messages as they are received, decoded and answered.
pub(crate) struct Rooms {
    received: Room,
    decoded: Room,
    answered: Room,
}

impl Rooms {
    /// What there is for all.
    fn all() -> Rooms {
        let room = |bytes: u64| Room::new(bytes - bytes / SHORT_PART, bytes / SHORT_PART);
        Rooms { received: room(RECEIVED_BYTES), decoded: room(DECODED_BYTES), answered: room(ANSWERED_BYTES) }
    }

    /// What one address may have.
    pub(crate) fn share() -> Rooms {
        let room = |bytes: u64, of: u64| Room::new(bytes, of / SHORT_PART / SHORT_PART);
        Rooms {
            received: room(RECEIVED_BYTES_A_PEER, RECEIVED_BYTES),
            decoded: room(DECODED_BYTES_A_PEER, DECODED_BYTES),
            answered: room(ANSWERED_BYTES_A_PEER, ANSWERED_BYTES),
        }
    }
}

/// Something of the budget, until it is dropped.
pub(crate) struct Held {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    /// An address has its share as long as something of it is in use, though its connections may have gone.
    _share: Option<Arc<Rooms>>,
}

/// What a call has of the budget, until its last owner is dropped.
pub(crate) type Charge = Arc<Mutex<Vec<Held>>>;

/// Bytes, in units that a semaphore can count.
struct Room {
    common: Arc<Semaphore>,
    /// What only short messages have.
    short: Arc<Semaphore>,
}

const UNIT: u64 = 1 << 10;

/// The part of a room that a message has.
type Part = fn(&Room) -> &Arc<Semaphore>;

/// The longest message that counts as short where there is room for so many bytes: an address may have two at once.
const fn short(bytes: u64) -> u64 {
    bytes / SHORT_PART / SHORT_PART / 2
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Room {
    fn new(common: u64, short: u64) -> Room {
        let part = |bytes: u64| Arc::new(Semaphore::new((bytes / UNIT) as usize));
        Room { common: part(common), short: part(short) }
    }

    /// Nothing if there is no room now.
    fn try_take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        self.common.clone().try_acquire_many_owned(units(bytes)).ok()
    }

    /// Nothing if there is no room for too long.
    async fn take(&self, part: Part, bytes: u64, until: Instant) -> Option<OwnedSemaphorePermit> {
        tokio::time::timeout_at(until, part(self).clone().acquire_many_owned(units(bytes))).await.ok()?.ok()
    }
}

impl Budget {
    pub(crate) fn new(patience: Duration) -> Budget {
        Budget { all: Arc::new(Rooms::all()), share: None, patience }
    }

    /// The same for calls from an address that has this share.
    pub(crate) fn with_share(&self, share: Arc<Rooms>) -> Budget {
        Budget { share: Some(share), ..self.clone() }
    }

    /// Room that is free now, of what long and short messages share.
    fn try_take(&self, room: fn(&Rooms) -> &Room, bytes: u64) -> Option<Held> {
        let mut permits = [None, None];
        for (rooms, permit) in self.share.iter().chain([&self.all]).zip(&mut permits) {
            *permit = Some(room(rooms).try_take(bytes)?);
        }
        Some(Held { _permits: permits, _share: self.share.clone() })
    }

    /// Room, which is waited for if it has to be. Messages of up to `short` bytes wait for the part that only such have. The
    /// share comes first, so that an address that has used its own keeps nobody waiting.
    async fn take(&self, room: fn(&Rooms) -> &Room, bytes: u64, short: u64) -> Result<Held, Status> {
        let is_short = bytes <= short;
        if is_short && let Some(held) = self.try_take(room, bytes) {
            // As waiting would, so that a stream of short messages lets other tasks run.
            tokio::task::consume_budget().await;
            return Ok(held);
        }
        let part: Part = if is_short { |room| &room.short } else { |room| &room.common };
        let until = Instant::now() + self.patience;
        let mut permits = [None, None];
        for (rooms, permit) in self.share.iter().chain([&self.all]).zip(&mut permits) {
            *permit = Some(room(rooms).take(part, bytes, until).await.ok_or_else(|| {
                let whose = if Arc::ptr_eq(rooms, &self.all) {
                    "other calls have all"
                } else {
                    "this address has its share of"
                };
                Status::resource_exhausted(format!("{whose} the memory that there is for messages; try again later"))
            })?);
        }
        Ok(Held { _permits: permits, _share: self.share.clone() })
    }

    /// How long a message of so many bytes may take, on its way here or from here.
    pub(crate) fn patience_for(&self, bytes: usize) -> Duration {
        self.patience + Duration::from_millis(bytes as u64 * 1000 / SLOWEST_BYTES_A_SECOND)
    }

    /// Room to receive a message. Nothing of it is needed for short ones.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is none for too long.
    pub(crate) async fn receive(&self, bytes: usize) -> Result<Option<Held>, Status> {
        if bytes <= FREE_BYTES {
            return Ok(None);
        }
        // The message is there twice for a moment: as it came, and where it is decoded.
        self.take(|rooms| &rooms.received, 2 * bytes as u64, short(RECEIVED_BYTES)).await.map(Some)
    }

    /// Room to decode a message.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if it would take too much, or there is none for too long.
    pub(crate) async fn decode(&self, bytes: u64) -> Result<Held, Status> {
        if bytes > MAX_DECODED_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the message would take more than {} MiB of memory; send fewer updates or requests in one call",
                MAX_DECODED_BYTES >> 20
            )));
        }
        self.take(|rooms| &rooms.decoded, bytes, short(DECODED_BYTES)).await
    }

    /// Room for an answer of so many bytes.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is none for too long.
    pub(crate) async fn answer(&self, bytes: usize) -> Result<Held, Status> {
        // Once as a message, and once as its bytes.
        self.take(|rooms| &rooms.answered, (2 * bytes as u64).min(ANSWERED_BYTES_A_PEER), short(ANSWERED_BYTES)).await
    }
}

/// What a message of type `M` takes while its call lasts. `elements` is the number of the field with updates or requests.
pub(crate) fn needed<M: Name>(wire: &[u8], elements: Option<u32>) -> u64 {
    let decoded = footprint::bytes_of::<M>(wire, MAX_DECODED_BYTES);
    let elements = elements.map_or(0, |field| footprint::elements(wire, field));
    decoded.saturating_add(elements * ELEMENT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Asks for so many bytes, as they are counted. Nobody waits.
    type Ask = fn(&Budget, u64) -> Option<Held>;

    fn now<T>(asked: impl Future<Output = Result<T, Status>>) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(asked).ok()
    }

    /// Messages of `each` bytes that one address after the other gets room for, until one of them gets none.
    fn fill(server: &Budget, ask: Ask, each: u64) -> Vec<Vec<Held>> {
        let messages_of_next = || -> Vec<Held> {
            let address = server.with_share(Arc::new(Rooms::share()));
            std::iter::from_fn(|| ask(&address, each)).collect()
        };
        std::iter::repeat_with(messages_of_next).take_while(|held| !held.is_empty()).collect()
    }

    /// An eighth of a room is left where long messages have all that they can, for short ones alone, and an eighth of
    /// that for one address. Sizes are in MiB: of the longest message that is short, and what addresses get in turn.
    fn keeps_a_part(ask: Ask, longest_short: u64, long: [u64; 2], short: [u64; 8]) {
        let server = Budget::new(Duration::ZERO);
        let mib = |held: &[Vec<Held>], each: u64| held.iter().map(|held| held.len() as u64 * each).collect::<Vec<_>>();
        let long_ones = fill(&server, ask, 8 * MIB);
        assert_eq!(mib(&long_ones, 8), long);
        let next = server.with_share(Arc::new(Rooms::share()));
        assert!(ask(&next, longest_short * MIB + UNIT).is_none(), "it is a little too long to be short");
        let short_ones = fill(&server, ask, longest_short * MIB);
        assert_eq!(mib(&short_ones, longest_short), short);
        drop(long_ones);
        assert!(ask(&next, 8 * MIB).is_some(), "what went is free again");
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
