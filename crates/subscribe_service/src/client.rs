//! Implements the client of the service, for programs that make one call at a time.
//!
//! It is a module of this crate because both sides share the interface file and nothing else: the connection is that of
//! `p4runtime_client`, and a crate of its own would hold these few calls alone.

use std::time::Duration;

use p4runtime_client::{Code, ConnectError, ServerTarget};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::Channel;

use crate::proto;
use crate::proto::subscriptions_client::SubscriptionsClient;

/// Maximum time for an answer. The service compiles large changes, and changes wait for each other: it gives up
/// earlier, and reports so.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// A connection to the service. Its calls block.
#[derive(Debug)]
pub struct ServiceClient {
    runtime: Runtime,
    stub: SubscriptionsClient<Channel>,
}

/// A call without a usable answer.
#[derive(Debug, thiserror::Error)]
pub enum ServiceCallError {
    /// The service did not answer in time. Whether it made the change is unknown.
    #[error("the service did not respond within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection failed below gRPC, for example because only one side uses TLS.
    #[error("the connection failed")]
    Transport(#[source] Box<Status>),
    /// The service answered with an error.
    #[error("{code:?}: {message}")]
    Rejected {
        /// Status code.
        code: Code,
        /// The service's message, which may have several lines.
        message: String,
    },
}

impl From<Status> for ServiceCallError {
    fn from(status: Status) -> ServiceCallError {
        if std::error::Error::source(&status).is_some() {
            return ServiceCallError::Transport(Box::new(status));
        }
        ServiceCallError::Rejected { code: status.code(), message: status.message().to_owned() }
    }
}

impl ServiceClient {
    /// Connects.
    ///
    /// # Errors
    /// As [`ServerTarget::connect`].
    pub fn connect(target: &ServerTarget) -> Result<ServiceClient, ConnectError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ConnectError::Start)?;
        let channel = runtime.block_on(target.connect())?;
        Ok(ServiceClient { runtime, stub: SubscriptionsClient::new(channel) })
    }

    fn call<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, ServiceCallError> {
        match self.runtime.block_on(async { tokio::time::timeout(REQUEST_TIMEOUT, call).await }) {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ServiceCallError::Timeout(REQUEST_TIMEOUT)),
        }
    }

    /// Adds the rules of a text, all or none.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with rendered diagnostics if the text has mistakes; any error of a call.
    pub fn subscribe(&self, rules: String) -> Result<proto::SubscribeResponse, ServiceCallError> {
        let mut stub = self.stub.clone();
        Ok(self.call(async { stub.subscribe(proto::SubscribeRequest { rules }).await })?.into_inner())
    }

    /// Removes rules by their ids, all or none.
    ///
    /// # Errors
    /// Any error of a call.
    pub fn unsubscribe(&self, ids: Vec<u64>) -> Result<proto::UnsubscribeResponse, ServiceCallError> {
        let mut stub = self.stub.clone();
        Ok(self.call(async { stub.unsubscribe(proto::UnsubscribeRequest { ids }).await })?.into_inner())
    }

    /// Returns all rules, in ascending order of their ids.
    ///
    /// # Errors
    /// Any error of a call.
    pub fn list(&self) -> Result<Vec<proto::Rule>, ServiceCallError> {
        let mut stub = self.stub.clone();
        let mut answers = self.call(async { stub.list(proto::ListRequest {}).await })?.into_inner();
        let mut rules = Vec::new();
        while let Some(page) = self.call(answers.message())? {
            rules.extend(page.rules);
        }
        Ok(rules)
    }

    /// Calls `each` with the status of the service and after every change of it, until the service ends.
    ///
    /// # Errors
    /// Any error of a call; the first error of `each`.
    pub fn watch<E: From<ServiceCallError>>(
        &self,
        mut each: impl FnMut(proto::Status) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stub = self.stub.clone();
        let mut answers = self.call(async { stub.watch(proto::WatchRequest {}).await })?.into_inner();
        while let Some(status) = self.runtime.block_on(answers.message()).map_err(ServiceCallError::from)? {
            each(status)?;
        }
        Ok(())
    }
}
