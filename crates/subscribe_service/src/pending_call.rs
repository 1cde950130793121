//! Represents a call on its way to the thread that makes changes. It occupies a place in the queue, and its client may
//! give up before the change begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tonic::Status;

/// Maximum time that a call waits in the queue. The change itself has a limit of its own ([`crate::reconciler`]).
pub(crate) const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// The end of a call in the thread that makes the change.
pub(crate) struct PendingCall<T> {
    reply: oneshot::Sender<T>,
    has_begun: Arc<AtomicBool>,
    /// Limits the requests in memory: it is released with the call.
    _place: OwnedSemaphorePermit,
}

/// The end of a call where the client waits.
pub(crate) struct PendingReply<T> {
    answer: oneshot::Receiver<T>,
    has_begun: Arc<AtomicBool>,
}

/// Creates both ends.
pub(crate) fn pending_call<T>(place: OwnedSemaphorePermit) -> (PendingCall<T>, PendingReply<T>) {
    let (reply, answer) = oneshot::channel();
    let has_begun = Arc::new(AtomicBool::new(false));
    (PendingCall { reply, has_begun: has_begun.clone(), _place: place }, PendingReply { answer, has_begun })
}

impl<T> PendingCall<T> {
    /// Begins the change unless the client has given up. From here on the client waits for the result.
    pub fn begin(&self) -> bool {
        !self.reply.is_closed() && !self.has_begun.swap(true, Ordering::AcqRel)
    }

    /// Sends the result. The client may have disconnected; then it is dropped.
    pub fn answer(self, value: T) {
        let _ = self.reply.send(value);
    }
}

impl<T> PendingReply<T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// UNAVAILABLE if the change does not begin within `queue_timeout`, and then it never does; or if the service
    /// stops.
    pub async fn answer(mut self, queue_timeout: Duration) -> Result<T, Status> {
        let stopping = |_| Status::unavailable("the service is stopping");
        if let Ok(answered) = tokio::time::timeout(queue_timeout, &mut self.answer).await {
            return answered.map_err(stopping);
        }
        if !self.has_begun.swap(true, Ordering::AcqRel) {
            let why = "nothing was changed: the service was busy with the switch or other changes";
            return Err(Status::unavailable(format!("{why} for {} s; try again", queue_timeout.as_secs())));
        }
        self.answer.await.map_err(stopping)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;
    use tonic::Code;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts").block_on(test);
    }

    fn place() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).try_acquire_owned().expect("it is free")
    }

    #[test]
    fn a_client_that_gives_up_in_the_queue_has_changed_nothing() {
        run(async {
            let (call, reply) = pending_call::<u8>(place());
            let refused = reply.answer(SOON).await.expect_err("nobody answers");
            assert_eq!(refused.code(), Code::Unavailable);
            assert!(refused.message().starts_with("nothing was changed"), "{}", refused.message());
            assert!(!call.begin(), "an abandoned change begins");
            let (call, reply) = pending_call::<u8>(place());
            drop(reply);
            assert!(!call.begin(), "a change without a client begins");
        });
    }

    #[test]
    fn a_change_that_has_begun_is_waited_for() {
        run(async {
            let (call, reply) = pending_call::<u8>(place());
            assert!(call.begin());
            let late = async {
                tokio::time::sleep(3 * SOON).await;
                call.answer(7);
            };
            let (answer, ()) = tokio::join!(reply.answer(SOON), late);
            assert_eq!(answer.expect("it was made"), 7);
        });
    }
}
