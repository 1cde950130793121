//! Messages on their way to one client: as many as fit into so many bytes, and how it ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use p4runtime_proto::prost::Message;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

/// What a message takes besides its bytes on the wire.
const MESSAGE_BYTES: usize = 512;

/// A message and the room that it takes until it is taken out.
type Item<T> = (Result<T, Status>, Option<OwnedSemaphorePermit>);

/// Where messages are put in.
pub(crate) struct Sender<T> {
    items: mpsc::UnboundedSender<Item<T>>,
    bytes: usize,
    room: Arc<Semaphore>,
    given_up: Arc<Notify>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        let (items, room, given_up) = (self.items.clone(), self.room.clone(), self.given_up.clone());
        Sender { items, bytes: self.bytes, room, given_up }
    }
}

/// Where they are taken out.
pub(crate) struct Receiver<T>(mpsc::UnboundedReceiver<Item<T>>);

/// A queue for messages of `bytes` in all. One that is longer by itself waits for nothing else to be there.
pub(crate) fn queue<T>(bytes: usize) -> (Sender<T>, Receiver<T>) {
    let (items, receiver) = mpsc::unbounded_channel();
    let sender = Sender { items, bytes, room: Arc::new(Semaphore::new(bytes)), given_up: Arc::new(Notify::new()) };
    (sender, Receiver(receiver))
}

impl<T: Message> Sender<T> {
    fn size(&self, message: &T) -> u32 {
        (message.encoded_len() + MESSAGE_BYTES).min(self.bytes) as u32
    }

    /// Puts a message in if there is room; false if there is none, or nobody takes messages out any more.
    #[must_use]
    pub(crate) fn try_send(&self, message: T) -> bool {
        let room = self.room.clone().try_acquire_many_owned(self.size(&message));
        room.is_ok_and(|room| self.items.send((Ok(message), Some(room))).is_ok())
    }

    /// Puts a message in when there is room; false if nobody takes messages out any more.
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

impl<T> Sender<T> {
    /// Says how it ends, which needs no room.
    pub(crate) fn end(&self, status: Status) {
        // Nobody is left to be told if this fails.
        let _ = self.items.send((Err(status), None));
    }

    /// The client is not worth waiting for.
    pub(crate) fn give_up(&self) {
        self.given_up.notify_one();
    }

    /// Waits until somebody gives the client up.
    pub(crate) async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// Waits until nobody takes messages out any more.
    pub(crate) async fn closed(&self) {
        self.items.closed().await;
    }
}

impl<T> Stream for Receiver<T> {
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

    fn taken(receiver: &mut Receiver<PacketIn>) -> usize {
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
        assert_eq!(sent(0), 100_000 / MESSAGE_BYTES, "empty messages take room too");
        taken(&mut receiver);
        assert_eq!(sent(1 << 20), 1, "a long one waits for no more than an empty queue");
        sender.end(Status::aborted("full"));
        assert_eq!(taken(&mut receiver), 2, "the end has its place");
    }
}
