//! The gRPC service: limits, the way to the desk and back, and what is told without it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::sync::{Semaphore, mpsc, watch};
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::call::{Call, TURN, call};
use crate::desk::{Job, Refused};
use crate::listing::{Listed, Listing};
use crate::proto;
use crate::status::Standing;

/// Rules of one answer to List.
const PAGE: usize = 1_000;

/// What a call answers with, piece by piece.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
pub(crate) struct Service {
    pub jobs: Sender<Job>,
    pub standing: watch::Receiver<Standing>,
    pub listing: Arc<Listing>,
    /// Calls that may wait for the desk.
    pub waiting: Arc<Semaphore>,
    /// Who may read rules.
    pub readers: Arc<Semaphore>,
    /// Who may watch.
    pub watchers: Arc<Semaphore>,
}

impl Service {
    /// Has something done, and waits for it.
    async fn ask<T>(&self, job: impl FnOnce(Call<T>) -> Job) -> Result<T, Status> {
        let full = |_| Status::resource_exhausted("too many calls wait: try again");
        let place = self.waiting.clone().try_acquire_owned().map_err(full)?;
        let (call, waiting) = call(place);
        self.jobs.send(job(call)).map_err(|_| Status::unavailable("the service is stopping"))?;
        waiting.answer(TURN).await
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Status {
        match refused {
            Refused::Mistakes(why) => Status::invalid_argument(bounded(why)),
            Refused::TooMuch(why) => Status::resource_exhausted(why),
            Refused::NotFound(why) => Status::not_found(why),
            Refused::InFile(why) => Status::failed_precondition(why),
            Refused::BySwitch(why) => Status::failed_precondition(bounded(why)),
            Refused::Away(why) => Status::unavailable(bounded(format!("nothing was changed: {why}"))),
            Refused::NotKept(why) => Status::resource_exhausted(bounded(why)),
        }
    }
}

/// What fits into the header of an answer.
fn bounded(mut text: String) -> String {
    /// HTTP/2 headers are percent-encoded: three times as much in the worst case, of 16 KB that clients take.
    const MOST: usize = 4 << 10;
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push_str("...");
    }
    text
}

impl From<Standing> for proto::Status {
    fn from(standing: Standing) -> proto::Status {
        let Standing { installed, detail, rules, rules_in_file, changes, mistakes } = standing;
        proto::Status { installed, detail, rules, rules_in_file, changes, mistakes }
    }
}

#[tonic::async_trait]
impl proto::subscriptions_server::Subscriptions for Service {
    type ListStream = Answers<proto::ListResponse>;
    type WatchStream = Answers<proto::Status>;

    async fn subscribe(
        &self,
        request: Request<proto::SubscribeRequest>,
    ) -> Result<Response<proto::SubscribeResponse>, Status> {
        let text = request.into_inner().rules;
        let (ids, writes) = self.ask(|call| Job::Subscribe(text, call)).await??;
        Ok(Response::new(proto::SubscribeResponse { ids, writes: writes as u64 }))
    }

    async fn unsubscribe(
        &self,
        request: Request<proto::UnsubscribeRequest>,
    ) -> Result<Response<proto::UnsubscribeResponse>, Status> {
        let ids = request.into_inner().ids;
        let writes = self.ask(|call| Job::Unsubscribe(ids, call)).await??;
        Ok(Response::new(proto::UnsubscribeResponse { writes: writes as u64 }))
    }

    async fn list(&self, _: Request<proto::ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let full = |_| Status::resource_exhausted("too many others read the rules: try again");
        let place = self.readers.clone().try_acquire_owned().map_err(full)?;
        // A million rules take a while to be copied: others are served meanwhile.
        let listing = self.listing.clone();
        let copied = tokio::task::spawn_blocking(move || listing.all()).await;
        let listed = copied.map_err(|_| Status::unavailable("the service is stopping"))?;
        let (sender, receiver) = mpsc::channel(2);
        tokio::spawn(async move {
            // Whoever reads slowly holds a place, as the rules are in memory for that long.
            let _place = place;
            for page in listed.chunks(PAGE) {
                let rule = |(id, Listed { text, in_file }): &(u64, Listed)| proto::Rule {
                    id: *id,
                    text: text.to_string(),
                    in_file: *in_file,
                };
                let answer = proto::ListResponse { rules: page.iter().map(rule).collect() };
                if sender.send(Ok(answer)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn watch(&self, _: Request<proto::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let full = |_| Status::resource_exhausted("too many watch: try again later");
        let place = self.watchers.clone().try_acquire_owned().map_err(full)?;
        let mut standing = self.standing.clone();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let _place = place;
            loop {
                let now = standing.borrow_and_update().clone();
                if sender.send(Ok(now.into())).await.is_err() {
                    return;
                }
                tokio::select! {
                    changed = standing.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}
