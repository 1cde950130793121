//! Makes the calls of P4Runtime to one device.

use std::time::Duration;

use p4runtime_proto::prost::{Message, Name};
use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4runtime_proto::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{ForwardingPipelineConfig, Update};
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::{self, Stream, wrappers::ReceiverStream};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::bounded_codec::{BoundedCodec, DecodedLimits};
use crate::connect::{ConnectError, ServerTarget};
use crate::error::CallError;
use crate::mastership::{arbitration_request, encode_election_id};
use crate::stream::{ArbitrationSender, ControllerStream, EventReceiver};
use crate::{CALL_TIMEOUT, MAX_ANSWER_BYTES, MAX_CONFIG_BYTES, MAX_MESSAGE_BYTES, MemoryLimits};

/// Requests that wait on a stream until the server takes them.
const REQUEST_QUEUE: usize = 16;

/// A connection to one device of a P4Runtime server.
#[derive(Clone, Debug)]
pub struct Client {
    grpc: Grpc<Channel>,
    device_id: u64,
    call_timeout: Duration,
    memory: MemoryLimits,
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
        let grpc = Grpc::new(target.connect().await?).max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Client { grpc, device_id, call_timeout: CALL_TIMEOUT, memory: MemoryLimits::default() })
    }

    /// Replaces [`CALL_TIMEOUT`].
    #[must_use]
    pub fn with_call_timeout(self, call_timeout: Duration) -> Client {
        Client { call_timeout, ..self }
    }

    /// Replaces the limits of memory.
    #[must_use]
    pub fn with_memory_limits(self, memory: MemoryLimits) -> Client {
        Client { memory, ..self }
    }

    /// Makes a unary call, whose answer has at most `max_bytes`.
    async fn call<T, U>(&self, path: &'static str, request: T, max_bytes: usize) -> Result<U, CallError>
    where
        T: Message + 'static,
        U: Message + Name + Default + 'static,
    {
        let limits = DecodedLimits { message: self.memory.answer, call: None };
        let call = async {
            let mut grpc = self.ready(max_bytes).await?;
            let answer = grpc.unary(Request::new(request), PathAndQuery::from_static(path), BoundedCodec::new(limits));
            Ok::<_, Status>(answer.await?.into_inner())
        };
        within(self.call_timeout, async { call.await.map_err(CallError::from_status) }).await
    }

    /// Starts a call with streams of requests and answers. Each answer has at most `max_bytes`.
    async fn start<T, U>(
        &self,
        path: &'static str,
        requests: impl Stream<Item = T> + Send + 'static,
        max_bytes: usize,
        limits: DecodedLimits,
    ) -> Result<Streaming<U>, CallError>
    where
        T: Message + 'static,
        U: Message + Name + Default + 'static,
    {
        let call = async {
            let mut grpc = self.ready(max_bytes).await?;
            let path = PathAndQuery::from_static(path);
            Ok::<_, Status>(grpc.streaming(Request::new(requests), path, BoundedCodec::new(limits)).await?.into_inner())
        };
        within(self.call_timeout, async { call.await.map_err(CallError::from_status) }).await
    }

    /// Waits until the connection takes a call.
    async fn ready(&self, max_bytes: usize) -> Result<Grpc<Channel>, Status> {
        let mut grpc = self.grpc.clone().max_decoding_message_size(max_bytes);
        grpc.ready().await.map_err(|error| Status::unknown(format!("the connection takes no call: {error}")))?;
        Ok(grpc)
    }

    /// Reads P4Info and the cookie of the pipeline configuration. Returns `None` if the server has none and reports no
    /// error.
    ///
    /// # Errors
    /// FAILED_PRECONDITION from most servers while no pipeline is set (specification 11); any error of a call.
    pub async fn pipeline_config(&self) -> Result<Option<ForwardingPipelineConfig>, CallError> {
        let response_type = ResponseType::P4infoAndCookie.into();
        let request = v1::GetForwardingPipelineConfigRequest { device_id: self.device_id, response_type };
        let path = "/p4.v1.P4Runtime/GetForwardingPipelineConfig";
        let answer: v1::GetForwardingPipelineConfigResponse = self.call(path, request, MAX_CONFIG_BYTES).await?;
        Ok(answer.config)
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
        let path = "/p4.v1.P4Runtime/SetForwardingPipelineConfig";
        let answer = self.call::<_, v1::SetForwardingPipelineConfigResponse>(path, request, MAX_ANSWER_BYTES);
        answer.await.map(drop)
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
        self.call::<_, v1::WriteResponse>("/p4.v1.P4Runtime/Write", request, MAX_ANSWER_BYTES).await.map(drop)
    }

    /// Starts to read the entities that match these.
    ///
    /// # Errors
    /// Any error of a call.
    pub async fn read(&self, entities: Vec<Kind>) -> Result<EntityStream, CallError> {
        let entities = entities.into_iter().map(|kind| v1::Entity { entity: Some(kind) }).collect();
        let request = v1::ReadRequest { device_id: self.device_id, entities, ..Default::default() };
        let limits = DecodedLimits { message: self.memory.read_message, call: Some(self.memory.read) };
        let request = tokio_stream::once(request);
        let responses = self.start("/p4.v1.P4Runtime/Read", request, MAX_MESSAGE_BYTES, limits).await?;
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
        let limits = DecodedLimits { message: self.memory.answer, call: None };
        let (path, receiver) = ("/p4.v1.P4Runtime/StreamChannel", ReceiverStream::new(receiver));
        let responses = self.start(path, receiver, MAX_ANSWER_BYTES, limits).await?;
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
