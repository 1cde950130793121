//! Between HTTP and the service: every call is counted on its connection, its messages are taken in as there is room for
//! them, and its answer is sent as long as somebody takes it.

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
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Bytes, Service as HttpService};

use crate::budget::{Budget, Charge, MAX_REQUEST_BYTES, MAX_STREAM_MESSAGE_BYTES, needed};
use crate::intake::{Form, messages};
use crate::seats::{Call, Seat};
use crate::service::Service;

/// The service behind it.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) service: P4RuntimeServer<Service>,
    pub(crate) budget: Budget,
}

/// What an answer has to give back when it has been sent; the service adds it to its response.
#[derive(Clone)]
pub(crate) struct Owed {
    /// Room, which is given back by dropping it.
    pub(crate) _room: Arc<dyn Send + Sync>,
    /// How long the client may take until it has all of the answer. Its connection is closed then: nothing else gives back
    /// the memory of an answer that HTTP/2 has begun to send.
    pub(crate) patience: Option<Duration>,
}

/// What the messages of a call are, by its name.
fn form(path: &str) -> Form {
    /// The fields with updates, and with requests.
    const UPDATES: u32 = 4;
    const REQUESTS: u32 = 2;
    let (needed, max_bytes): (fn(&[u8]) -> u64, _) = match path.strip_prefix("/p4.v1.P4Runtime/").unwrap_or_default() {
        "Write" => (|wire| needed::<v1::WriteRequest>(wire, Some(UPDATES)), MAX_REQUEST_BYTES),
        "Read" => (|wire| needed::<v1::ReadRequest>(wire, Some(REQUESTS)), MAX_REQUEST_BYTES),
        "SetForwardingPipelineConfig" => {
            (|wire| needed::<v1::SetForwardingPipelineConfigRequest>(wire, None), MAX_REQUEST_BYTES)
        }
        "StreamChannel" => (|wire| needed::<v1::StreamMessageRequest>(wire, None), MAX_STREAM_MESSAGE_BYTES),
        // The others have a few numbers.
        _ => (|wire| wire.len() as u64, 1 << 10),
    };
    Form { is_stream: path.ends_with("/StreamChannel"), max_bytes, needed }
}

impl HttpService<Request<Body>> for Gate {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        HttpService::<Request<Body>>::poll_ready(&mut self.service, cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let seat = request.extensions().get::<Arc<Seat>>().cloned();
        let call = seat.as_ref().map(|seat| seat.call());
        let charge = Charge::default();
        request.extensions_mut().insert(charge.clone());
        let form = form(request.uri().path());
        let budget = match &seat {
            Some(seat) => self.budget.with_share(seat.own.share.clone()),
            None => self.budget.clone(),
        };
        request.extensions_mut().insert(budget.clone());
        let request = request.map(|body| Body::new(messages(body, form, budget, charge)));
        let answered = self.service.call(request);
        Box::pin(async move {
            let mut response = answered.await?;
            let owed = response.extensions_mut().remove::<Owed>();
            let watched =
                owed.as_ref().and_then(|owed| owed.patience).zip(seat).map(|(patience, seat)| watch(patience, seat));
            Ok(response.map(|body| {
                Body::new(Answer { body, rest: Bytes::new(), _call: call, _owed: owed, _watched: watched })
            }))
        })
    }
}

/// Sends a client away that has not taken its answer in time. The answer ends it by dropping the sender.
fn watch(patience: Duration, seat: Arc<Seat>) -> oneshot::Sender<()> {
    let (watched, done) = oneshot::channel();
    tokio::spawn(async move {
        if tokio::time::timeout(patience, done).await.is_err() {
            seat.dismiss();
        }
    });
    watched
}

/// Bytes that are handed to HTTP/2 at once. It keeps what it has been given, however long the client takes.
const PIECE_BYTES: usize = 16 << 10;

/// The body of an answer in short pieces, and all that goes when it is sent or given up.
struct Answer {
    body: Body,
    /// What is left of the last long piece.
    rest: Bytes,
    _call: Option<Call>,
    _owed: Option<Owed>,
    _watched: Option<oneshot::Sender<()>>,
}

impl http_body::Body for Answer {
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
