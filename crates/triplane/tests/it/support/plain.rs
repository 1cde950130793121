//! A proxy before a P4Runtime server that makes it behave as many servers do: it supports CONTINUE_ON_ERROR only,
//! refuses other requests, and begins to answer on a stream only when it has a message. A client refused at once sees
//! that as the end of the call.

// Not every test uses all of these items.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime_proto::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use p4runtime_proto::{google, v1};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::tokio_stream::{self, Stream, StreamExt};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};

struct Plain(P4RuntimeClient<Channel>, Refusals);

/// A handle that chooses the update to refuse.
#[derive(Clone)]
pub struct Refusals(Arc<AtomicUsize>);

impl Refusals {
    const NONE: usize = usize::MAX;

    /// Refuses one update after `updates` more.
    pub fn after(&self, updates: usize) {
        self.0.store(updates, Ordering::SeqCst);
    }

    /// Whether no update was refused since the last call of [`Refusals::after`].
    pub fn are_pending(&self) -> bool {
        self.0.load(Ordering::SeqCst) != Refusals::NONE
    }

    /// Returns the index of the update to refuse among the next `updates`.
    fn among(&self, updates: usize) -> Option<usize> {
        let left = self.0.load(Ordering::SeqCst);
        let is_here = left < updates;
        if left != Refusals::NONE {
            self.0.store(if is_here { Refusals::NONE } else { left - updates }, Ordering::SeqCst);
        }
        is_here.then_some(left)
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl P4Runtime for Plain {
    type ReadStream = Answers<v1::ReadResponse>;
    type StreamChannelStream = Answers<v1::StreamMessageResponse>;

    async fn write(&self, request: Request<v1::WriteRequest>) -> Result<Response<v1::WriteResponse>, Status> {
        let mut request = request.into_inner();
        if request.atomicity != 0 {
            return Err(Status::unimplemented("CONTINUE_ON_ERROR only"));
        }
        // The order within a write is up to the server.
        let refused = self.1.among(request.updates.len());
        let all = request.updates.len();
        refused.into_iter().for_each(|at| drop(request.updates.remove(at)));
        request.updates.reverse();
        let done = self.0.clone().write(request).await.map_err(|status| in_order(&status))?;
        refused.map_or(Ok(done), |at| Err(no_room(at, all)))
    }

    async fn read(&self, request: Request<v1::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let answers = self.0.clone().read(request.into_inner()).await?.into_inner();
        Ok(Response::new(Box::pin(answers)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        self.0.clone().set_forwarding_pipeline_config(request.into_inner()).await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        self.0.clone().get_forwarding_pipeline_config(request.into_inner()).await
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (sender, receiver) = tokio::sync::mpsc::channel(4);
        let mut requests = request.into_inner();
        // Servers in C++ begin to answer at their first message, not when they are called.
        let first = requests.message().await?.ok_or_else(|| Status::cancelled("nothing was asked"))?;
        sender.try_send(first).expect("a new queue has room");
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                if sender.send(request).await.is_err() {
                    return;
                }
            }
        });
        let mut answers = self.0.clone().stream_channel(ReceiverStream::new(receiver)).await?.into_inner();
        let first = answers.message().await?;
        let answers = tokio_stream::iter(first.map(Ok)).chain(answers);
        Ok(Response::new(Box::pin(answers.map(|answer| answer.map(nobody_is_primary)))))
    }

    async fn capabilities(
        &self,
        request: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        self.0.clone().capabilities(request.into_inner()).await
    }
}

/// The status of a write in which one update was refused: the one at `at`, among `all`.
fn no_room(at: usize, all: usize) -> Status {
    let error = v1::Error {
        canonical_code: Code::ResourceExhausted as i32,
        message: "there is no room".to_owned(),
        ..v1::Error::default()
    };
    let mut of = google::rpc::Status { code: Code::Unknown as i32, ..google::rpc::Status::default() };
    of.details.resize_with(all, Default::default);
    of.details[at].value = error.encode_to_vec();
    Status::with_details(Code::Unknown, "1 of the updates failed", of.encode_to_vec().into())
}

/// Puts the details in the order of the request (specification 12.3).
fn in_order(status: &Status) -> Status {
    let mut of = google::rpc::Status::decode(status.details()).unwrap_or_default();
    of.details.reverse();
    Status::with_details(status.code(), status.message(), of.encode_to_vec().into())
}

/// Answers a client without an election id as BMv2's server does: without a primary, it reports the client as primary.
fn nobody_is_primary(mut answer: v1::StreamMessageResponse) -> v1::StreamMessageResponse {
    if let Some(v1::stream_message_response::Update::Arbitration(update)) = &mut answer.update
        && let Some(status) = update.status.as_mut().filter(|status| status.code == Code::NotFound as i32)
    {
        status.code = 0;
        update.election_id = Some(v1::Uint128::default());
    }
    answer
}

/// Proxies `server` for as long as the test runs. Returns the address.
pub fn plain(server: SocketAddr) -> SocketAddr {
    refusing(server).0
}

/// Proxies `server`, and refuses updates on request.
pub fn refusing(server: SocketAddr) -> (SocketAddr, Refusals) {
    let refusals = Refusals(Arc::new(AtomicUsize::new(Refusals::NONE)));
    let refused = refusals.clone();
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{server}")).expect("an address").tcp_nodelay(true);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
            told.send(listener.local_addr().expect("it is bound")).expect("the test waits");
            let service = P4RuntimeServer::new(Plain(P4RuntimeClient::new(endpoint.connect_lazy()), refused));
            let (guests, incoming) = tokio::sync::mpsc::channel(4);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = stream.set_nodelay(true);
                    if guests.send(Ok::<_, std::io::Error>(stream)).await.is_err() {
                        return;
                    }
                }
            });
            let incoming = ReceiverStream::new(incoming);
            let _ = tonic::transport::Server::builder().serve_with_incoming(service, incoming).await;
        });
    });
    (address.recv().expect("it listens"), refusals)
}
