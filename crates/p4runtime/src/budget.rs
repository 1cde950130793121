//! Memory that strangers' messages may take, all calls of a server together.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use p4runtime_proto::{footprint, prost::Name};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
/// So much of each call's first message is received without asking: short calls get through, whoever else sends much.
const FREE_BYTES: usize = 16 << 10;
/// What is sent as pipeline configs and not taken yet, over all calls.
const ANSWERED_BYTES: u64 = 256 << 20;
/// What planning and running an update or request takes while its call lasts, besides its message.
const ELEMENT_BYTES: u64 = 1 << 10;
/// The slowest that a long message may come.
const SLOWEST_BYTES_A_SECOND: u64 = 1 << 20;

/// What is left for messages of all calls.
pub(crate) struct Budget {
    received: Room,
    decoded: Room,
    answered: Room,
    /// How long calls wait.
    pub(crate) patience: Duration,
}

/// What a call has of the budget, until its last owner is dropped.
pub(crate) type Charge = Arc<Mutex<Vec<OwnedSemaphorePermit>>>;

/// Bytes, in units that a semaphore can count.
struct Room(Arc<Semaphore>);

const UNIT: u64 = 1 << 10;

impl Room {
    fn new(bytes: u64) -> Room {
        Room(Arc::new(Semaphore::new((bytes / UNIT) as usize)))
    }

    async fn take(&self, bytes: u64, patience: Duration) -> Result<OwnedSemaphorePermit, Status> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let taken = tokio::time::timeout(patience, self.0.clone().acquire_many_owned(units)).await;
        taken.ok().and_then(Result::ok).ok_or_else(|| {
            Status::resource_exhausted("other calls have all the memory that there is for messages; try again later")
        })
    }
}

impl Budget {
    pub(crate) fn new(patience: Duration) -> Budget {
        let (received, decoded, answered) = (RECEIVED_BYTES, DECODED_BYTES, ANSWERED_BYTES);
        Budget { received: Room::new(received), decoded: Room::new(decoded), answered: Room::new(answered), patience }
    }

    /// How long a message of so many bytes may take, on its way here or from here.
    pub(crate) fn patience_for(&self, bytes: usize) -> Duration {
        self.patience + Duration::from_millis(bytes as u64 * 1000 / SLOWEST_BYTES_A_SECOND)
    }

    /// Room to receive a message. Nothing of it is needed for short ones.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is none for too long.
    pub(crate) async fn receive(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Status> {
        if bytes <= FREE_BYTES {
            return Ok(None);
        }
        // The message is there twice for a moment: as it came, and where it is decoded.
        self.received.take(2 * bytes as u64, self.patience).await.map(Some)
    }

    /// Room to decode a message.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if it would take too much, or there is none for too long.
    pub(crate) async fn decode(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        if bytes > MAX_DECODED_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the message would take more than {} MiB of memory; send fewer updates or requests in one call",
                MAX_DECODED_BYTES >> 20
            )));
        }
        self.decoded.take(bytes, self.patience).await
    }

    /// Room for an answer of so many bytes.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is none for too long.
    pub(crate) async fn answer(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Status> {
        // Once as a message, and once as its bytes.
        self.answered.take((2 * bytes as u64).min(ANSWERED_BYTES), self.patience).await
    }
}

/// What a message of type `M` takes while its call lasts. `elements` is the number of the field with updates or requests.
pub(crate) fn needed<M: Name>(wire: &[u8], elements: Option<u32>) -> u64 {
    let decoded = footprint::bytes_of::<M>(wire, MAX_DECODED_BYTES);
    let elements = elements.map_or(0, |field| footprint::elements(wire, field));
    decoded.saturating_add(elements * ELEMENT_BYTES)
}
