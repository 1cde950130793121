//! A queue of messages to one client, bounded by bytes, that can end with a status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use p4runtime_proto::prost::Message;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

/// Memory that a message takes besides its encoded bytes.
const MESSAGE_BYTES: usize = 512;

/// A message and the permit for its bytes, released when it is taken out.
type QueuedMessage<T> = (Result<T, Status>, Option<OwnedSemaphorePermit>);

/// The sending end of the queue.
pub(crate) struct BoundedSender<T> {
    items: mpsc::UnboundedSender<QueuedMessage<T>>,
    bytes: usize,
    room: Arc<Semaphore>,
    given_up: Arc<Notify>,
}

impl<T> Clone for BoundedSender<T> {
    fn clone(&self) -> Self {
        let (items, room, given_up) = (self.items.clone(), self.room.clone(), self.given_up.clone());
        BoundedSender { items, bytes: self.bytes, room, given_up }
    }
}

/// The receiving end of the queue.
pub(crate) struct BoundedReceiver<T>(mpsc::UnboundedReceiver<QueuedMessage<T>>);

/// Creates a queue for `bytes` of messages. A message that is longer waits until the queue is empty.
pub(crate) fn queue<T>(bytes: usize) -> (BoundedSender<T>, BoundedReceiver<T>) {
    let (items, receiver) = mpsc::unbounded_channel();
    let sender =
        BoundedSender { items, bytes, room: Arc::new(Semaphore::new(bytes)), given_up: Arc::new(Notify::new()) };
    (sender, BoundedReceiver(receiver))
}

impl<T: Message> BoundedSender<T> {
    fn size(&self, message: &T) -> u32 {
        (message.encoded_len() + MESSAGE_BYTES).min(self.bytes) as u32
    }

    /// Queues a message if there is room. Returns false if there is none or the receiver is gone.
    #[must_use]
    pub(crate) fn try_send(&self, message: T) -> bool {
        let room = self.room.clone().try_acquire_many_owned(self.size(&message));
        room.is_ok_and(|room| self.items.send((Ok(message), Some(room))).is_ok())
    }

    /// Queues a message when there is room. Returns false if the receiver is gone.
    #[must_use]
    pub(crate) async fn send(&self, message: T) -> bool {
        tokio::select! {
            room = self.room.clone().acquire_many_owned(self.size(&message)) => {
                room.is_ok_and(|room| self.items.send((Ok(message), Some(room))).is_ok())
            }
            () = self.items.closed() => false,
        }
    }
}

impl<T> BoundedSender<T> {
    /// Ends the queue with a status, which needs no room.
    pub(crate) fn end(&self, status: Status) {
        // If this fails, no receiver is left to report to.
        let _ = self.items.send((Err(status), None));
    }

    /// Marks the client as too slow.
    pub(crate) fn give_up(&self) {
        self.given_up.notify_one();
    }

    /// Waits until the client is marked as too slow.
    pub(crate) async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// Waits until the receiver is gone.
    pub(crate) async fn closed(&self) {
        self.items.closed().await;
    }
}

impl<T> Stream for BoundedReceiver<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|item| item.map(|(message, _)| message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4runtime_proto::v1::PacketIn;

    fn packet(bytes: usize) -> PacketIn {
        PacketIn { payload: vec![0; bytes], ..Default::default() }
    }

    fn taken(receiver: &mut BoundedReceiver<PacketIn>) -> usize {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut count = 0;
        while let Poll::Ready(Some(_)) = Pin::new(&mut *receiver).poll_next(&mut context) {
            count += 1;
        }
        count
    }

    #[test]
    fn bytes_are_what_is_bounded() {
        let (sender, mut receiver) = queue(100_000);
        let sent = |bytes: usize| (0..1_000).take_while(|_| sender.try_send(packet(bytes))).count();
        assert_eq!(sent(9_000), 10);
        assert_eq!(taken(&mut receiver), 10);
        assert_eq!(sent(0), 100_000 / MESSAGE_BYTES, "empty messages take memory too");
        taken(&mut receiver);
        assert_eq!(sent(1 << 20), 1, "a long message waits only for an empty queue");
        sender.end(Status::aborted("full"));
        assert_eq!(taken(&mut receiver), 2, "the status is always queued");
    }
}
