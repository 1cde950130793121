//! Makes the calls of P4Runtime to one device.

use std::time::Duration;

use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_proto::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{ForwardingPipelineConfig, Update};
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::connect::{ConnectError, ServerTarget};
use crate::error::CallError;
use crate::mastership::{arbitration_request, encode_election_id};
use crate::stream::{ArbitrationSender, ControllerStream, EventReceiver};
use crate::{CALL_TIMEOUT, MAX_ANSWER_BYTES, MAX_CONFIG_BYTES, MAX_MESSAGE_BYTES};

/// Requests that wait on a stream until the server takes them.
const REQUEST_QUEUE: usize = 16;

/// A connection to one device of a P4Runtime server.
#[derive(Clone, Debug)]
pub struct Client {
    stub: P4RuntimeClient<Channel>,
    device_id: u64,
    call_timeout: Duration,
}

/// Limits the time of a call.
pub(crate) async fn within<T>(
    timeout: Duration,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::time::timeout(timeout, call).await.unwrap_or(Err(CallError::Timeout(timeout)))
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// As [`ServerTarget::connect`].
    pub async fn connect(target: &ServerTarget, device_id: u64) -> Result<Client, ConnectError> {
        let stub = P4RuntimeClient::new(target.connect().await?)
            .max_decoding_message_size(MAX_ANSWER_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Client { stub, device_id, call_timeout: CALL_TIMEOUT })
    }

    /// Replaces [`CALL_TIMEOUT`].
    #[must_use]
    pub fn with_call_timeout(self, call_timeout: Duration) -> Client {
        Client { call_timeout, ..self }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, CallError> {
        within(self.call_timeout, async { call.await.map_err(CallError::from_status) }).await
    }

    /// Reads P4Info and the cookie of the pipeline configuration. Returns `None` if the server has none and reports no
    /// error.
    ///
    /// # Errors
    /// FAILED_PRECONDITION from most servers while no pipeline is set (specification 11); any error of a call.
    pub async fn pipeline_config(&self) -> Result<Option<ForwardingPipelineConfig>, CallError> {
        let response_type = ResponseType::P4infoAndCookie.into();
        let request = v1::GetForwardingPipelineConfigRequest { device_id: self.device_id, response_type };
        let mut stub = self.stub.clone().max_decoding_message_size(MAX_CONFIG_BYTES);
        let answer = self.call(stub.get_forwarding_pipeline_config(request)).await?;
        Ok(answer.into_inner().config)
    }

    /// Sets the pipeline configuration with VERIFY_AND_COMMIT, as the primary with this election id. The switch loses
    /// its forwarding state.
    ///
    /// # Errors
    /// Any error of a call.
    pub async fn set_pipeline_config(
        &self,
        election_id: u128,
        config: ForwardingPipelineConfig,
    ) -> Result<(), CallError> {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            election_id: Some(encode_election_id(election_id)),
            action: Action::VerifyAndCommit.into(),
            config: Some(config),
            ..Default::default()
        };
        let mut stub = self.stub.clone();
        self.call(stub.set_forwarding_pipeline_config(request)).await.map(drop)
    }

    /// Writes updates as the primary with this election id.
    ///
    /// # Errors
    /// [`CallError::Rejected`] with the updates that failed, if the server reports them. A server that rejects a single
    /// update may send no details. Any other error of a call.
    pub async fn write(&self, election_id: u128, updates: Vec<Update>, atomicity: Atomicity) -> Result<(), CallError> {
        let request = v1::WriteRequest {
            device_id: self.device_id,
            election_id: Some(encode_election_id(election_id)),
            updates,
            atomicity: atomicity.into(),
            ..Default::default()
        };
        let mut stub = self.stub.clone();
        self.call(stub.write(request)).await.map(drop)
    }

    /// Starts to read the entities that match these.
    ///
    /// # Errors
    /// Any error of a call.
    pub async fn read(&self, entities: Vec<Kind>) -> Result<EntityStream, CallError> {
        let entities = entities.into_iter().map(|kind| v1::Entity { entity: Some(kind) }).collect();
        let request = v1::ReadRequest { device_id: self.device_id, entities, ..Default::default() };
        let mut stub = self.stub.clone().max_decoding_message_size(MAX_MESSAGE_BYTES);
        let responses = self.call(stub.read(request)).await?.into_inner();
        Ok(EntityStream { responses, timeout: self.call_timeout })
    }

    /// Opens a stream, and asks on it for mastership with this election id, or only listens without one. The server's
    /// answer is the first event.
    ///
    /// # Errors
    /// Any error of a call. Some servers report a rejected election id here, others as the end of the events.
    pub async fn open_stream(&self, election_id: Option<u128>) -> Result<ControllerStream, CallError> {
        let (requests, receiver) = mpsc::channel(REQUEST_QUEUE);
        // A server may send no response headers before the first request.
        let first = arbitration_request(self.device_id, election_id);
        requests.send(first).await.map_err(|_| CallError::StreamEnded)?;
        let mut stub = self.stub.clone();
        let responses = self.call(stub.stream_channel(ReceiverStream::new(receiver))).await?.into_inner();
        Ok(ControllerStream {
            arbitration: ArbitrationSender { device_id: self.device_id, requests },
            events: EventReceiver { responses },
            timeout: self.call_timeout,
        })
    }
}

/// The answers to a read, message by message.
#[derive(Debug)]
pub struct EntityStream {
    responses: Streaming<v1::ReadResponse>,
    timeout: Duration,
}

impl EntityStream {
    /// Waits for the next message and returns its entities, or `None` at the end. Each message has the timeout of a
    /// call.
    ///
    /// # Errors
    /// Any error of a call.
    pub async fn next(&mut self) -> Result<Option<Vec<v1::Entity>>, CallError> {
        let next = async { self.responses.message().await.map_err(CallError::from_status) };
        Ok(within(self.timeout, next).await?.map(|response| response.entities))
    }
}
