//! Admits messages by decoded size, between HTTP and the service.
//!
//! Every call is counted on its connection. A caller that may not make it is denied before a message is read. Messages
//! are read as memory for them becomes available, and the response is sent in small pieces while the client takes it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::Frame;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_server::P4RuntimeServer;
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{Request, Response, StatusCode};
use tonic::codegen::{BoxFuture, Bytes, Service as HttpService};

use crate::connections::{ActiveCall, ConnectionSlot};
use crate::framing::{MessageForm, messages};
use crate::memory_budget::{MAX_REQUEST_BYTES, MAX_STREAM_MESSAGE_BYTES, MemoryBudget, MemoryCharge, needed};
use crate::service::{Service, ServiceState};

/// The path of the service; the name of a method follows.
const PATH: &str = "/p4.v1.P4Runtime/";
/// The content type of gRPC.
const GRPC: &[u8] = b"application/grpc";

/// The service with admission control.
#[derive(Clone)]
pub(crate) struct MessageAdmission {
    pub(crate) service: P4RuntimeServer<Service>,
    pub(crate) hub: Arc<ServiceState>,
    pub(crate) budget: MemoryBudget,
}

/// Resources that a response holds until it has been sent. The service adds them to its response.
#[derive(Clone)]
pub(crate) struct HeldResources {
    /// Memory or permits, released on drop.
    pub(crate) _room: Arc<dyn Send + Sync>,
    /// Time within which the client must take the whole response. When it expires the connection is closed, since
    /// nothing else releases the memory of a response that HTTP/2 has begun to send.
    pub(crate) timeout: Option<Duration>,
}

/// Returns the message format of a call by its path.
fn form(path: &str) -> MessageForm {
    /// Field numbers of the updates and of the requests.
    const UPDATES: u32 = 4;
    const REQUESTS: u32 = 2;
    let (needed, max_bytes): (fn(&[u8]) -> u64, _) = match path.strip_prefix(PATH).unwrap_or_default() {
        "Write" => (|wire| needed::<v1::WriteRequest>(wire, Some(UPDATES)), MAX_REQUEST_BYTES),
        "Read" => (|wire| needed::<v1::ReadRequest>(wire, Some(REQUESTS)), MAX_REQUEST_BYTES),
        "SetForwardingPipelineConfig" => {
            (|wire| needed::<v1::SetForwardingPipelineConfigRequest>(wire, None), MAX_REQUEST_BYTES)
        }
        "StreamChannel" => (|wire| needed::<v1::StreamMessageRequest>(wire, None), MAX_STREAM_MESSAGE_BYTES),
        // The other messages have a few numbers.
        _ => (|wire| wire.len() as u64, 1 << 10),
    };
    MessageForm { is_stream: path.ends_with("/StreamChannel"), max_bytes, needed }
}

impl HttpService<Request<Body>> for MessageAdmission {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        HttpService::<Request<Body>>::poll_ready(&mut self.service, cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !is_grpc(&request) {
            return Box::pin(async { Ok(unsupported_media_type()) });
        }
        let slot = request.extensions().get::<Arc<ConnectionSlot>>().cloned();
        let call = slot.as_ref().map(|slot| slot.begin_call());
        let method = request.uri().path().strip_prefix(PATH).unwrap_or_default();
        if let Err(refusal) = self.hub.check_call(request.extensions(), method) {
            return Box::pin(async move {
                let response = tonic::Status::from(refusal).into_http::<Body>();
                Ok(response.map(|body| Body::new(PacedBody { _call: call, ..PacedBody::of(body) })))
            });
        }
        let charge = MemoryCharge::default();
        request.extensions_mut().insert(charge.clone());
        let form = form(request.uri().path());
        let budget = match &slot {
            Some(slot) => self.budget.with_share(slot.state.share.clone()),
            None => self.budget.clone(),
        };
        request.extensions_mut().insert(budget.clone());
        let request = request.map(|body| Body::new(messages(body, form, budget, charge)));
        let answered = self.service.call(request);
        Box::pin(async move {
            let mut response = answered.await?;
            let held = response.extensions_mut().remove::<HeldResources>();
            let watched =
                held.as_ref().and_then(|held| held.timeout).zip(slot).map(|(timeout, slot)| watch(timeout, slot));
            Ok(response.map(|body| {
                Body::new(PacedBody { _call: call, _held: held, _watched: watched, ..PacedBody::of(body) })
            }))
        })
    }
}

/// Whether a request has a content type of gRPC: `application/grpc`, alone or with a suffix such as `+proto`.
fn is_grpc(request: &Request<Body>) -> bool {
    let value = request.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let Some((head, suffix)) = value.split_at_checked(GRPC.len()) else { return false };
    head.eq_ignore_ascii_case(GRPC) && matches!(suffix.first(), None | Some(b'+' | b';' | b' '))
}

/// Returns the response to a client that does not speak gRPC. It would take the status 200 of a gRPC error for a
/// success (gRPC over HTTP/2, "Requests").
fn unsupported_media_type() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response
}

/// Closes the connection of a client that has not taken its response in time. Dropping the sender cancels this.
fn watch(timeout: Duration, slot: Arc<ConnectionSlot>) -> oneshot::Sender<()> {
    let (watched, done) = oneshot::channel();
    tokio::spawn(async move {
        if tokio::time::timeout(timeout, done).await.is_err() {
            slot.close();
        }
    });
    watched
}

/// Maximum number of bytes that HTTP/2 is given at once. It buffers them for as long as the client takes.
const PIECE_BYTES: usize = 16 << 10;

/// A response body in small pieces, with everything to release when it is sent or abandoned.
struct PacedBody {
    body: Body,
    /// The rest of the last long piece.
    rest: Bytes,
    _call: Option<ActiveCall>,
    _held: Option<HeldResources>,
    _watched: Option<oneshot::Sender<()>>,
}

impl PacedBody {
    fn of(body: Body) -> PacedBody {
        PacedBody { body, rest: Bytes::new(), _call: None, _held: None, _watched: None }
    }
}

impl http_body::Body for PacedBody {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx)).transpose()?;
            match frame.map(Frame::into_data) {
                Some(Ok(data)) => self.rest = data,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        let bytes = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}
