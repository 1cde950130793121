//! Drives the bidirectional stream of a controller: arbitration in one direction, events in the other.

use std::time::Duration;

use p4runtime_proto::v1;
use p4runtime_proto::v1::stream_message_response::Update;
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::client::within;
use crate::error::CallError;
use crate::mastership::{Mastership, arbitration_request};

/// A message from the server on the stream.
#[derive(Clone, Debug)]
pub enum StreamEvent {
    /// The state of the election changed, or answers a request for mastership.
    Mastership(Mastership),
    /// A packet for the controller.
    Packet(v1::PacketIn),
    /// A list of digest messages.
    Digest(v1::DigestList),
    /// Table entries that were not hit within their idle timeouts.
    IdleTimeout(v1::IdleTimeoutNotification),
    /// An error about an earlier message of this stream, a packet-out for example.
    Error(v1::StreamError),
    /// A message that is specific to an architecture.
    Other(prost_types::Any),
}

impl From<Update> for StreamEvent {
    fn from(update: Update) -> StreamEvent {
        match update {
            Update::Arbitration(update) => StreamEvent::Mastership(Mastership::parse(&update)),
            Update::Packet(packet) => StreamEvent::Packet(packet),
            Update::Digest(list) => StreamEvent::Digest(list),
            Update::IdleTimeoutNotification(idle) => StreamEvent::IdleTimeout(idle),
            Update::Error(error) => StreamEvent::Error(error),
            Update::Other(any) => StreamEvent::Other(any),
        }
    }
}

/// An open stream. The controller keeps its mastership for as long as both halves live.
#[derive(Debug)]
pub struct ControllerStream {
    /// The half that asks for mastership.
    pub arbitration: ArbitrationSender,
    /// The half that receives.
    pub events: EventReceiver,
    /// Maximum time for the answer to a request for mastership.
    pub(crate) timeout: Duration,
}

/// The sending half of a stream.
#[derive(Debug)]
pub struct ArbitrationSender {
    pub(crate) device_id: u64,
    pub(crate) requests: mpsc::Sender<v1::StreamMessageRequest>,
}

impl ArbitrationSender {
    /// Asks for mastership without waiting. The answer is an event. Returns whether the request was queued: it is not
    /// if the stream has ended, or the server does not take what is queued already.
    pub fn request(&self, election_id: u128) -> bool {
        self.requests.try_send(arbitration_request(self.device_id, Some(election_id))).is_ok()
    }

    async fn send(&self, election_id: Option<u128>) -> Result<(), CallError> {
        let request = arbitration_request(self.device_id, election_id);
        self.requests.send(request).await.map_err(|_| CallError::StreamEnded)
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct EventReceiver {
    pub(crate) responses: Streaming<v1::StreamMessageResponse>,
}

impl EventReceiver {
    /// Waits for the next event, without a time limit. Returns `None` when the server has ended the stream.
    ///
    /// # Errors
    /// The status with which the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, CallError> {
        loop {
            // Yields now and then: a caller's time limit must end the wait while messages arrive without a pause.
            tokio::task::consume_budget().await;
            match self.responses.message().await.map_err(CallError::from_status)? {
                // A message that a newer version of the protocol added decodes to none of the known ones.
                Some(v1::StreamMessageResponse { update: None }) => {}
                Some(v1::StreamMessageResponse { update: Some(update) }) => return Ok(Some(update.into())),
                None => return Ok(None),
            }
        }
    }

    /// Waits for the next report of mastership, without a time limit, and drops other events until then.
    pub(crate) async fn mastership(&mut self) -> Result<Mastership, CallError> {
        loop {
            match self.next().await? {
                Some(StreamEvent::Mastership(mastership)) => return Ok(mastership),
                Some(_) => {}
                None => return Err(CallError::StreamEnded),
            }
        }
    }
}

impl ControllerStream {
    /// Asks for mastership with this election id, or reports without one that the controller only listens. Returns the
    /// server's answer.
    ///
    /// # Errors
    /// If the stream ends, or the server does not take the request or does not answer in time.
    pub async fn arbitrate(&mut self, election_id: Option<u128>) -> Result<Mastership, CallError> {
        within(self.timeout, self.arbitration.send(election_id)).await?;
        self.mastership().await
    }

    /// Waits for the next report of mastership, and drops other events until then.
    ///
    /// # Errors
    /// If the stream ends, or no report arrives in time. Other events do not extend the time.
    pub async fn mastership(&mut self) -> Result<Mastership, CallError> {
        within(self.timeout, self.events.mastership()).await
    }
}
