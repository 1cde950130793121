//! The messages of a call as they come in: whole, in time, and not before there is room for what they become.
//!
//! ```text
//!   bytes ──> length ──> room to receive it ──> all of it, in time ──> footprint ──> room to decode it ──> tonic, prost
//! ```
//!
//! gRPC's own framing (a flag, four bytes of length, a message) is read here once more than by tonic, which would decode
//! whatever fits its limit of bytes, and wait for the rest of a message for ever.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body as _, Frame};
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes};

use crate::budget::{Budget, Charge};

/// Bytes in front of a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What messages a call has.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// One message, or as many as come.
    pub is_stream: bool,
    /// The longest, in bytes.
    pub max_bytes: usize,
    /// What one takes while its call lasts.
    pub needed: fn(&[u8]) -> u64,
}

/// The body of a request.
struct Intake {
    body: Body,
    form: Form,
    budget: Budget,
    charge: Charge,
    /// What came behind the last message.
    rest: Vec<u8>,
    /// When what has begun has to be there.
    deadline: Option<Instant>,
    has_message: bool,
}

type Next = Result<Option<Bytes>, Status>;

/// A body with whole messages only.
pub(crate) struct Messages(Option<BoxFuture<(Intake, Option<Bytes>), Status>>);

/// The messages of `body`. What the last one takes of the budget is in `charge`: until the next is asked for, or until the
/// last owner of `charge` is gone if there is only one.
pub(crate) fn messages(body: Body, form: Form, budget: Budget, charge: Charge) -> Messages {
    let deadline = (!form.is_stream).then(|| Instant::now() + budget.patience);
    let intake = Intake { body, form, budget, charge, rest: Vec::new(), deadline, has_message: false };
    Messages(Some(Box::pin(intake.step())))
}

impl Intake {
    async fn step(mut self) -> Result<(Intake, Option<Bytes>), Status> {
        let next = self.next().await?;
        Ok((self, next))
    }

    /// The next message, with what is in front of it.
    async fn next(&mut self) -> Next {
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
            return Err(Status::unimplemented("the call takes one message"));
        }
        self.has_message = true;
        let length = self.length(&message)?;
        let received = self.budget.receive(length).await?;
        self.deadline = Some(Instant::now() + self.budget.patience_for(length));
        message.reserve_exact((PREFIX + length).saturating_sub(message.len()));
        while message.len() < PREFIX + length {
            match self.more().await? {
                Some(more) => message.extend_from_slice(&more),
                None => return Err(cut_short()),
            }
        }
        self.rest = message.split_off(PREFIX + length);
        let room = self.budget.decode((self.form.needed)(&message[PREFIX..])).await?;
        self.charge.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(room);
        drop(received);
        // For a call with one message, its end is left.
        self.deadline = Some(Instant::now() + self.budget.patience);
        Ok(Some(message.into()))
    }

    /// A message has begun to come.
    fn begin(&mut self) {
        let patience: Duration = self.budget.patience;
        self.deadline.get_or_insert_with(|| Instant::now() + patience);
    }

    /// # Errors
    /// If the message is compressed or too long.
    fn length(&self, prefix: &[u8]) -> Result<usize, Status> {
        if prefix[0] != 0 {
            return Err(Status::unimplemented("compressed messages are not taken"));
        }
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        match length <= self.form.max_bytes {
            true => Ok(length),
            false => Err(Status::resource_exhausted(format!(
                "the message has {length} bytes; there may be {}",
                self.form.max_bytes
            ))),
        }
    }

    /// More bytes, in time.
    async fn more(&mut self) -> Next {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            let frame = match self.deadline {
                Some(at) => {
                    timeout_at(at, frame).await.map_err(|_| Status::deadline_exceeded("the message takes too long"))?
                }
                None => frame.await,
            };
            match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers, which are the end.
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }
}

fn cut_short() -> Status {
    Status::invalid_argument("the call ended within a message")
}

impl http_body::Body for Messages {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(step) = &mut self.0 else { return Poll::Ready(None) };
        let result = ready!(step.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(match result {
            Ok((intake, Some(message))) => {
                self.0 = Some(Box::pin(intake.step()));
                Some(Ok(Frame::data(message)))
            }
            Ok((_, None)) => None,
            Err(status) => Some(Err(status)),
        })
    }
}
