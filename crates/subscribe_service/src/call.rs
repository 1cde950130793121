//! A call on its way to the thread that makes changes: it has a place, and who asked may give up before its turn comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tonic::Status;

/// How long a call may wait for its turn. What is made then is bounded as well ([`crate::desk`]).
pub(crate) const TURN: Duration = Duration::from_secs(30);

/// The end of it where the change is made.
pub(crate) struct Call<T> {
    reply: oneshot::Sender<T>,
    taken: Arc<AtomicBool>,
    /// The request is in memory for as long as this is.
    _place: OwnedSemaphorePermit,
}

/// The end of it where somebody waits.
pub(crate) struct Waiting<T> {
    answer: oneshot::Receiver<T>,
    taken: Arc<AtomicBool>,
}

/// Both ends.
pub(crate) fn call<T>(place: OwnedSemaphorePermit) -> (Call<T>, Waiting<T>) {
    let (reply, answer) = oneshot::channel();
    let taken = Arc::new(AtomicBool::new(false));
    (Call { reply, taken: taken.clone(), _place: place }, Waiting { answer, taken })
}

impl<T> Call<T> {
    /// Whether somebody still waits. If so the change is made now, and nobody gives up any more.
    pub fn begin(&self) -> bool {
        !self.reply.is_closed() && !self.taken.swap(true, Ordering::AcqRel)
    }

    /// Answers. Who asked may be gone; then nobody is answered.
    pub fn answer(self, value: T) {
        let _ = self.reply.send(value);
    }
}

impl<T> Waiting<T> {
    /// The answer.
    ///
    /// # Errors
    /// UNAVAILABLE if the turn does not come in time, and then it never comes; or if the service stops.
    pub async fn answer(mut self, turn: Duration) -> Result<T, Status> {
        let stopping = |_| Status::unavailable("the service is stopping");
        if let Ok(answered) = tokio::time::timeout(turn, &mut self.answer).await {
            return answered.map_err(stopping);
        }
        if !self.taken.swap(true, Ordering::AcqRel) {
            let why = "nothing was changed: the service has been busy with the switch or with other changes";
            return Err(Status::unavailable(format!("{why} for {} s; try again", turn.as_secs())));
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
    fn who_gives_up_before_the_turn_comes_has_changed_nothing() {
        run(async {
            let (call, waiting) = call::<u8>(place());
            let refused = waiting.answer(SOON).await.expect_err("nobody answers");
            assert_eq!(refused.code(), Code::Unavailable);
            assert!(refused.message().starts_with("nothing was changed"), "{}", refused.message());
            assert!(!call.begin(), "what was given up is made");
            let (call, waiting) = super::call::<u8>(place());
            drop(waiting);
            assert!(!call.begin(), "what nobody waits for is made");
        });
    }

    #[test]
    fn what_has_begun_is_waited_for() {
        run(async {
            let (call, waiting) = call::<u8>(place());
            assert!(call.begin());
            let late = async {
                tokio::time::sleep(3 * SOON).await;
                call.answer(7);
            };
            let (answer, ()) = tokio::join!(waiting.answer(SOON), late);
            assert_eq!(answer.expect("it was made"), 7);
        });
    }
}
