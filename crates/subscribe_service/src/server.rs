//! Implements the gRPC service: limits of its calls, and the queue to the thread that makes changes. Reads do not wait
//! for that thread.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use authorization::Policy;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::pending_call::{PendingCall, QUEUE_TIMEOUT, pending_call};
use crate::proto;
use crate::reconciler::{ChangeError, Command, REJECTS_RULES};
use crate::rule_author::RuleAuthor;
use crate::rule_set::RuleSetError;
use crate::rule_snapshot::{ListedRule, RuleSnapshot};
use crate::service_status::ServiceStatus;

/// Number of rules in one message of List.
const PAGE_RULES: usize = 1_000;

/// The messages of a streaming answer.
type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service.
pub(crate) struct SubscriptionService {
    pub commands: Sender<Command>,
    pub status: watch::Receiver<ServiceStatus>,
    pub snapshot: Arc<RuleSnapshot>,
    pub policy: Option<Arc<Policy>>,
    /// Places in the queue of changes.
    pub queue: Arc<Semaphore>,
    /// Places for calls of List.
    pub readers: Arc<Semaphore>,
    /// Places for calls of Watch.
    pub watchers: Arc<Semaphore>,
}

impl SubscriptionService {
    /// Returns the client of a call.
    ///
    /// # Errors
    /// PERMISSION_DENIED if an authorization file is used and has no entry for it.
    fn client<T>(&self, request: &Request<T>) -> Result<RuleAuthor, Status> {
        let certificate = grpc_admission::client_certificate::<()>(request.extensions());
        RuleAuthor::of(self.policy.as_deref(), certificate.as_deref()).map_err(Status::permission_denied)
    }

    /// Queues a command, and waits for its result.
    async fn execute<T>(&self, command: impl FnOnce(PendingCall<T>) -> Command) -> Result<T, Status> {
        let place = acquire(&self.queue, "too many pending calls: try again")?;
        let (call, reply) = pending_call(place);
        self.commands.send(command(call)).map_err(|_| Status::unavailable("the service is stopping"))?;
        reply.answer(QUEUE_TIMEOUT).await
    }
}

/// Takes a place, or fails with RESOURCE_EXHAUSTED.
fn acquire(places: &Arc<Semaphore>, when_full: &str) -> Result<OwnedSemaphorePermit, Status> {
    places.clone().try_acquire_owned().map_err(|_| Status::resource_exhausted(when_full))
}

impl From<ChangeError> for Status {
    fn from(error: ChangeError) -> Status {
        let text = truncate(error.to_string());
        match error {
            ChangeError::Mistakes(_)
            | ChangeError::NoRules
            | ChangeError::Rules(
                RuleSetError::TooManyRules { .. } | RuleSetError::Diagnostics(_) | RuleSetError::Delivery(_),
            ) => Status::invalid_argument(text),
            ChangeError::TooManyRules { .. } | ChangeError::NotPersisted(_) => Status::resource_exhausted(text),
            ChangeError::NotFound(_) => Status::not_found(text),
            ChangeError::Denied(_) => Status::permission_denied(text),
            ChangeError::InFile { .. } | ChangeError::RejectedBySwitch { .. } => Status::failed_precondition(text),
            ChangeError::SwitchUnavailable(_) => Status::unavailable(text),
        }
    }
}

/// Cuts a text to a length that fits the header of an answer.
fn truncate(mut text: String) -> String {
    /// Clients accept headers of 16 KiB, and percent-encoding makes a text up to three times as long.
    const MAX_BYTES: usize = 4 << 10;
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push_str("...");
    }
    text
}

impl From<ServiceStatus> for proto::Status {
    fn from(status: ServiceStatus) -> proto::Status {
        let ServiceStatus { installed, detail, rules, rules_in_file, changes, mistakes, .. } = status;
        proto::Status { installed, detail, rules, rules_in_file, changes, mistakes }
    }
}

/// Removes the quotes of rules that a client may not see from a status.
fn without_hidden_rules(mut status: ServiceStatus, client: &RuleAuthor) -> ServiceStatus {
    // The mistakes quote rules of the file, which have no owner.
    if !status.mistakes.is_empty() && !client.may_see(None) {
        status.mistakes = "the rules file has errors".to_owned();
    }
    if status.quotes_rules && !client.sees_all() {
        status.detail = REJECTS_RULES.to_owned();
    }
    status
}

#[tonic::async_trait]
impl proto::subscriptions_server::Subscriptions for SubscriptionService {
    type ListStream = ResponseStream<proto::ListResponse>;
    type WatchStream = ResponseStream<proto::Status>;

    async fn subscribe(
        &self,
        request: Request<proto::SubscribeRequest>,
    ) -> Result<Response<proto::SubscribeResponse>, Status> {
        let client = self.client(&request)?;
        client.check_adds().map_err(Status::permission_denied)?;
        let text = request.into_inner().rules;
        let (ids, writes) = self.execute(|call| Command::Subscribe(text, client, call)).await??;
        Ok(Response::new(proto::SubscribeResponse { ids, writes: writes as u64 }))
    }

    async fn unsubscribe(
        &self,
        request: Request<proto::UnsubscribeRequest>,
    ) -> Result<Response<proto::UnsubscribeResponse>, Status> {
        let client = self.client(&request)?;
        let ids = request.into_inner().ids;
        let writes = self.execute(|call| Command::Unsubscribe(ids, client, call)).await??;
        Ok(Response::new(proto::UnsubscribeResponse { writes: writes as u64 }))
    }

    async fn list(&self, request: Request<proto::ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let client = self.client(&request)?;
        client.check_list().map_err(Status::permission_denied)?;
        let place = acquire(&self.readers, "too many clients are listing the rules: try again")?;
        // Copying a million rules takes a while, in which other calls are served.
        let snapshot = self.snapshot.clone();
        let copied = tokio::task::spawn_blocking(move || {
            let mut rules = snapshot.all();
            rules.retain(|(_, rule)| client.may_see(rule.owner.as_deref()));
            rules
        });
        let copied = copied.await;
        let rules = copied.map_err(|_| Status::unavailable("the service is stopping"))?;
        let (sender, receiver) = mpsc::channel(2);
        tokio::spawn(async move {
            // A slow reader keeps its place, because its copy of the rules stays in memory.
            let _place = place;
            for page in rules.chunks(PAGE_RULES) {
                let rule = |(id, ListedRule { text, in_file, owner }): &(u64, ListedRule)| proto::Rule {
                    id: *id,
                    text: text.to_string(),
                    in_file: *in_file,
                    owner: owner.as_deref().unwrap_or_default().to_owned(),
                };
                let answer = proto::ListResponse { rules: page.iter().map(rule).collect() };
                if sender.send(Ok(answer)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn watch(&self, request: Request<proto::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let client = self.client(&request)?;
        client.check_list().map_err(Status::permission_denied)?;
        let place = acquire(&self.watchers, "too many clients are watching: try again later")?;
        let mut status = self.status.clone();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let _place = place;
            loop {
                let current = without_hidden_rules(status.borrow_and_update().clone(), &client);
                if sender.send(Ok(current.into())).await.is_err() {
                    return;
                }
                tokio::select! {
                    changed = status.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

#[cfg(test)]
mod tests {
    use diagnostics::{Diagnostics, SourceMap};

    use super::*;

    /// Returns the client with the name `control äöü` in its certificate, and this value of `list`.
    fn client(list: &str) -> RuleAuthor {
        let text = format!("[[user]]\nname = \"control *\"\nrules = {{ list = \"{list}\" }}\n");
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let file = map.add("users.toml", &*text);
        let policy = Policy::parse(file, &text, &mut diagnostics).expect("the file is correct");
        let certificate = include_bytes!("../../authorization/testdata/common.der");
        RuleAuthor::of(Some(&policy), Some(certificate)).expect("it is a user")
    }

    #[test]
    fn a_status_quotes_no_rules_to_those_who_may_not_see_them() {
        let status = ServiceStatus {
            detail: "the switch rejected an entry; it is for rule 3, `secret`".to_owned(),
            quotes_rules: true,
            mistakes: "rules.sub:1: `secret`".to_owned(),
            ..ServiceStatus::default()
        };
        assert_eq!(without_hidden_rules(status.clone(), &client("all")), status);
        assert_eq!(without_hidden_rules(status.clone(), &RuleAuthor::default()), status, "without authorization");
        let seen = without_hidden_rules(status.clone(), &client("own"));
        assert_eq!((&*seen.detail, &*seen.mistakes), (REJECTS_RULES, "the rules file has errors"));
        let other = ServiceStatus { quotes_rules: false, mistakes: String::new(), ..status };
        assert_eq!(without_hidden_rules(other.clone(), &client("own")), other);
    }
}
