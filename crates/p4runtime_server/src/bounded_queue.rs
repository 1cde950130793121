//! Queues messages to one client, bounded by bytes. A queue can end with a status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use p4runtime_proto::prost::Message;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

/// Estimated memory per message beyond its encoding.
const MESSAGE_OVERHEAD_BYTES: usize = 512;

/// A message and the permit for its bytes; the permit is released when the message is dequeued.
type QueuedMessage<T> = (Result<T, Status>, Option<OwnedSemaphorePermit>);

/// The sending end of the queue.
pub(crate) struct BoundedSender<T> {
    items: mpsc::UnboundedSender<QueuedMessage<T>>,
    bytes: usize,
    capacity: Arc<Semaphore>,
    too_slow: Arc<Notify>,
}

impl<T> Clone for BoundedSender<T> {
    fn clone(&self) -> Self {
        let (items, capacity, too_slow) = (self.items.clone(), self.capacity.clone(), self.too_slow.clone());
        BoundedSender { items, bytes: self.bytes, capacity, too_slow }
    }
}

/// The receiving end of the queue.
pub(crate) struct BoundedReceiver<T>(mpsc::UnboundedReceiver<QueuedMessage<T>>);

/// Creates a queue for `bytes` of messages. A message larger than `bytes` is accepted only when
/// the queue is empty.
pub(crate) fn queue<T>(bytes: usize) -> (BoundedSender<T>, BoundedReceiver<T>) {
    let (items, receiver) = mpsc::unbounded_channel();
    let sender =
        BoundedSender { items, bytes, capacity: Arc::new(Semaphore::new(bytes)), too_slow: Arc::new(Notify::new()) };
    (sender, BoundedReceiver(receiver))
}

impl<T: Message> BoundedSender<T> {
    fn size(&self, message: &T) -> u32 {
        (message.encoded_len() + MESSAGE_OVERHEAD_BYTES).min(self.bytes) as u32
    }

    /// Queues a message if there is capacity. Returns false if there is none or the receiver is gone.
    #[must_use]
    pub(crate) fn try_send(&self, message: T) -> bool {
        let capacity = self.capacity.clone().try_acquire_many_owned(self.size(&message));
        capacity.is_ok_and(|capacity| self.items.send((Ok(message), Some(capacity))).is_ok())
    }

    /// Queues a message when there is capacity. Returns false if the receiver is gone.
    #[must_use]
    pub(crate) async fn send(&self, message: T) -> bool {
        tokio::select! {
            capacity = self.capacity.clone().acquire_many_owned(self.size(&message)) => {
                capacity.is_ok_and(|capacity| self.items.send((Ok(message), Some(capacity))).is_ok())
            }
            () = self.items.closed() => false,
        }
    }
}

impl<T> BoundedSender<T> {
    /// Ends the queue with a status, which needs no capacity.
    pub(crate) fn end(&self, status: Status) {
        // If this fails, no receiver is left to report to.
        let _ = self.items.send((Err(status), None));
    }

    /// Marks the client as too slow.
    pub(crate) fn mark_too_slow(&self) {
        self.too_slow.notify_one();
    }

    /// Waits until the client is marked as too slow.
    pub(crate) async fn until_marked_too_slow(&self) {
        self.too_slow.notified().await;
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
    fn the_queue_is_bounded_by_bytes() {
        let (sender, mut receiver) = queue(100_000);
        let sent = |bytes: usize| (0..1_000).take_while(|_| sender.try_send(packet(bytes))).count();
        assert_eq!(sent(9_000), 10);
        assert_eq!(taken(&mut receiver), 10);
        assert_eq!(sent(0), 100_000 / MESSAGE_OVERHEAD_BYTES, "empty messages take memory too");
        taken(&mut receiver);
        assert_eq!(sent(1 << 20), 1, "a long message is accepted only by an empty queue");
        sender.end(Status::aborted("full"));
        assert_eq!(taken(&mut receiver), 2, "the status is always queued");
    }
}
