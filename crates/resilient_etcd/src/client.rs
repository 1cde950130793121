//! Calls etcd's servers, one after another until one answers.

use std::time::Duration;

use resilient_store::MAX_LAYOUT_BYTES;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use crate::error::EtcdError;
use crate::keeper::EtcdLogin;
use crate::proto::auth_client::AuthClient;
use crate::proto::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::kv_client::KvClient;
use crate::proto::request_op::Request as Operation;
use crate::proto::response_op::Response as OperationResponse;
use crate::proto::{
    AuthenticateRequest, Compare, KeyValue, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest,
};

/// Maximum time of a call, and of an attempt to connect.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum length of an answer: a layout, and the message of etcd around it.
const MAX_ANSWER: usize = MAX_LAYOUT_BYTES + 4096;

/// Name of the metadata field with a user's token.
const TOKEN: &str = "token";

/// A value and the revision of its last change, 0 if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptValue {
    /// The revision.
    pub revision: i64,
    /// The value.
    pub value: Option<Vec<u8>>,
}

/// Outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapOutcome {
    /// The value was replaced.
    Replaced,
    /// The value had another revision.
    Changed(KeptValue),
}

/// The connection to a server.
pub struct EtcdConnection {
    /// `HOST:PORT`.
    pub address: String,
    /// Settings of the connection.
    pub endpoint: Endpoint,
    /// The connection, if there is one.
    pub channel: Option<Channel>,
}

/// A client of etcd's servers.
pub struct EtcdClient {
    /// A connection for each server.
    connections: Vec<EtcdConnection>,
    /// The server that answered last.
    current: usize,
    /// Whether the client presents a certificate.
    has_identity: bool,
    /// The presumed reason for which a connection ended.
    guess: &'static str,
    login: Option<EtcdLogin>,
    token: Option<MetadataValue<Ascii>>,
}

impl EtcdClient {
    /// Creates a client. It connects with the first call. `guess` follows the error of a connection that ended.
    pub fn new(
        connections: Vec<EtcdConnection>,
        (has_identity, guess): (bool, &'static str),
        login: Option<EtcdLogin>,
    ) -> EtcdClient {
        EtcdClient { connections, current: 0, has_identity, guess, login, token: None }
    }

    /// Reads a key at the first server that answers. A connection may have ended since the last call, so the first
    /// server is tried again at the end.
    ///
    /// # Errors
    /// The error of the first server that was tried.
    pub async fn read(&mut self, key: &[u8]) -> Result<KeptValue, EtcdError> {
        let mut first = None;
        for _ in 0..=self.connections.len() {
            match self.read_here(key).await {
                Ok(value) => return Ok(value),
                Err(error) => {
                    self.connections[self.current].channel = None;
                    self.current = (self.current + 1) % self.connections.len();
                    first.get_or_insert(error);
                }
            }
        }
        Err(first.expect("there is a server"))
    }

    /// Replaces the value of a key if it has this revision, at the server that answered the last read. The request is
    /// sent once.
    ///
    /// # Errors
    /// If the outcome is unknown.
    pub async fn swap(&mut self, key: &[u8], revision: i64, value: Vec<u8>) -> Result<SwapOutcome, EtcdError> {
        let request = transaction(key, revision, value);
        let mut client = self.key_values().await?;
        let request = self.with_token(request);
        let outcome = self.finish(client.txn(request)).await;
        let response = outcome.inspect_err(|_| self.connections[self.current].channel = None)?;
        if response.succeeded {
            return Ok(SwapOutcome::Replaced);
        }
        match response.responses.into_iter().next().and_then(|response| response.response) {
            Some(OperationResponse::ResponseRange(range)) => Ok(SwapOutcome::Changed(self.value(key, range)?)),
            _ => Err(self.malformed("a transaction has no answer")),
        }
    }

    /// Reads a key at the current server. An unknown token is replaced once.
    async fn read_here(&mut self, key: &[u8]) -> Result<KeptValue, EtcdError> {
        let is_old = self.token.is_some();
        match self.range(key).await {
            Err(error) if is_old && error.is_of_token() => {
                self.token = None;
                self.range(key).await
            }
            outcome => outcome,
        }
    }

    async fn range(&mut self, key: &[u8]) -> Result<KeptValue, EtcdError> {
        let mut client = self.key_values().await?;
        let request = self.with_token(RangeRequest { key: key.to_vec() });
        let range = self.finish(client.range(request)).await?;
        self.value(key, range)
    }

    /// Returns a client of the current server, with a connection and a token.
    async fn key_values(&mut self) -> Result<KvClient<Channel>, EtcdError> {
        let channel = self.channel().await?;
        if let (Some(login), None) = (&self.login, &self.token) {
            let request = AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
            let mut client = AuthClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER);
            let answer = self.finish(client.authenticate(Request::new(request))).await?;
            let token = MetadataValue::try_from(answer.token);
            self.token = Some(token.map_err(|_| self.malformed("a token is not text"))?);
        }
        Ok(KvClient::new(channel).max_decoding_message_size(MAX_ANSWER))
    }

    async fn channel(&mut self) -> Result<Channel, EtcdError> {
        let EtcdConnection { address, endpoint, channel } = &mut self.connections[self.current];
        if let Some(channel) = channel {
            return Ok(channel.clone());
        }
        match tokio::time::timeout(CALL_TIMEOUT, endpoint.connect()).await {
            Ok(Ok(connected)) => Ok(channel.insert(connected).clone()),
            Ok(Err(error)) => Err(EtcdError::of_connection(address, self.has_identity, &error)),
            Err(_) => Err(EtcdError::Timeout { address: address.clone(), after: CALL_TIMEOUT }),
        }
    }

    /// Waits for the answer to a call.
    async fn finish<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, EtcdError> {
        let address = &self.connections[self.current].address;
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(EtcdError::of_status(address, (self.has_identity, self.guess), &status)),
            Err(_) => Err(EtcdError::Timeout { address: address.clone(), after: CALL_TIMEOUT }),
        }
    }

    fn with_token<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert(TOKEN, token.clone());
        }
        request
    }

    /// Returns the value of a key in an answer.
    fn value(&self, key: &[u8], range: RangeResponse) -> Result<KeptValue, EtcdError> {
        let mut found = range.kvs.into_iter();
        match (found.next(), found.next()) {
            (None, _) => Ok(KeptValue::default()),
            (Some(KeyValue { key: its, mod_revision: revision, value }), None) if its == key && revision > 0 => {
                Ok(KeptValue { revision, value: Some(value) })
            }
            _ => Err(self.malformed("it has other keys than were asked for")),
        }
    }

    fn malformed(&self, reason: &'static str) -> EtcdError {
        EtcdError::Malformed { address: self.connections[self.current].address.clone(), reason }
    }
}

/// Returns the transaction that replaces a value if its key has this revision, and reads it otherwise.
fn transaction(key: &[u8], revision: i64, value: Vec<u8>) -> TxnRequest {
    let compare = Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Mod.into(),
        key: key.to_vec(),
        target_union: Some(TargetUnion::ModRevision(revision)),
    };
    let put = Operation::RequestPut(PutRequest { key: key.to_vec(), value });
    let range = Operation::RequestRange(RangeRequest { key: key.to_vec() });
    let operation = |request| vec![RequestOp { request: Some(request) }];
    TxnRequest { compare: vec![compare], success: operation(put), failure: operation(range) }
}
