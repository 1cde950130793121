//! Receives the frames of request messages: each is received whole, within a timeout, and only when memory is reserved
//! for it.
//!
//! ```text
//!   bytes ─> length ─> reserve to receive ─> the rest, within a timeout ─> footprint ─> reserve to decode ─> tonic
//! ```
//!
//! gRPC's framing (a flag, four bytes of length, a message) is parsed here before tonic parses it again. Tonic alone
//! would decode anything within its byte limit, and wait forever for the rest of a message.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body as _, Frame};
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes};

use crate::memory_budget::{MemoryBudget, MemoryCharge};

/// Bytes before a message: a compression flag and the length.
const PREFIX: usize = 5;

/// Format of the messages of a call.
#[derive(Clone, Copy)]
pub(crate) struct MessageForm {
    /// Whether the call takes any number of messages. Otherwise it takes one.
    pub is_stream: bool,
    /// Maximum length of a message, in bytes.
    pub max_bytes: usize,
    /// Returns the bytes of memory that a message takes during its call.
    pub needed: fn(&[u8]) -> u64,
}

/// The reader of a request body.
struct MessageReader {
    body: Body,
    form: MessageForm,
    budget: MemoryBudget,
    charge: MemoryCharge,
    /// Bytes received after the last message.
    rest: Vec<u8>,
    /// Time by which the message that has begun must be complete.
    deadline: Option<Instant>,
    has_message: bool,
}

type NextMessage = Result<Option<Bytes>, Status>;

/// A body that contains only whole messages.
pub(crate) struct FramedMessages(Option<BoxFuture<(MessageReader, Option<Bytes>), Status>>);

/// Returns the messages of `body`. `charge` holds the memory of the last one: in a stream until the next is read, in
/// other calls until the last owner of `charge` is dropped.
pub(crate) fn messages(body: Body, form: MessageForm, budget: MemoryBudget, charge: MemoryCharge) -> FramedMessages {
    let deadline = (!form.is_stream).then(|| Instant::now() + budget.timeout);
    let reader = MessageReader { body, form, budget, charge, rest: Vec::new(), deadline, has_message: false };
    FramedMessages(Some(Box::pin(reader.step())))
}

impl MessageReader {
    async fn step(mut self) -> Result<(MessageReader, Option<Bytes>), Status> {
        let next = self.next().await?;
        Ok((self, next))
    }

    /// Returns the next message with its prefix.
    async fn next(&mut self) -> NextMessage {
        if self.form.is_stream {
            self.charge.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
            self.deadline = None;
        }
        let mut message = std::mem::take(&mut self.rest);
        while message.len() < PREFIX {
            if !message.is_empty() {
                self.begin();
            }
            match self.more().await? {
                Some(more) => message.extend_from_slice(&more),
                None if message.is_empty() => return Ok(None),
                None => return Err(cut_short()),
            }
        }
        self.begin();
        if self.has_message && !self.form.is_stream {
            return Err(Status::unimplemented("the call takes only one message"));
        }
        self.has_message = true;
        let length = self.length(&message)?;
        let received = self.budget.receive(length).await?;
        self.deadline = Some(Instant::now() + self.budget.timeout_for(length));
        message.reserve_exact((PREFIX + length).saturating_sub(message.len()));
        while message.len() < PREFIX + length {
            match self.more().await? {
                Some(more) => message.extend_from_slice(&more),
                None => return Err(cut_short()),
            }
        }
        self.rest = message.split_off(PREFIX + length);
        let reserved = self.budget.decode((self.form.needed)(&message[PREFIX..])).await?;
        self.charge.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(reserved);
        drop(received);
        // In a call with one message, only the end of the body may follow.
        self.deadline = Some(Instant::now() + self.budget.timeout);
        Ok(Some(message.into()))
    }

    /// Starts the timeout of a message that has begun.
    fn begin(&mut self) {
        let timeout: Duration = self.budget.timeout;
        self.deadline.get_or_insert_with(|| Instant::now() + timeout);
    }

    /// Parses the length in a prefix.
    ///
    /// # Errors
    /// If the message is compressed or too long.
    fn length(&self, prefix: &[u8]) -> Result<usize, Status> {
        if prefix[0] != 0 {
            return Err(Status::unimplemented("compressed messages are not supported"));
        }
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        if length <= self.form.max_bytes {
            Ok(length)
        } else {
            Err(Status::resource_exhausted(format!(
                "the message has {length} bytes; the limit is {}",
                self.form.max_bytes
            )))
        }
    }

    /// Returns more bytes of the body, or `None` at its end, within the timeout.
    async fn more(&mut self) -> NextMessage {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            let frame = match self.deadline {
                Some(at) => timeout_at(at, frame)
                    .await
                    .map_err(|_| Status::deadline_exceeded("the message did not arrive in time"))?,
                None => frame.await,
            };
            match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers end the body.
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }
}

fn cut_short() -> Status {
    Status::invalid_argument("the call ended in the middle of a message")
}

impl http_body::Body for FramedMessages {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(step) = &mut self.0 else { return Poll::Ready(None) };
        let result = ready!(step.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(match result {
            Ok((reader, Some(message))) => {
                self.0 = Some(Box::pin(reader.step()));
                Some(Ok(Frame::data(message)))
            }
            Ok((_, None)) => None,
            Err(status) => Some(Err(status)),
        })
    }
}
