//! Wraps a service whose calls are registered with their connections, and have time limits.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::Frame;
use tokio::sync::oneshot;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Bytes, Service};
use tonic::server::NamedService;

use crate::connection_limit::{ActiveCall, Slot};

/// A service with time limits around another service. A request that has not arrived completely in time fails. The
/// connection of a client that does not read its answer in time is closed.
#[derive(Clone, Debug)]
pub struct CallTimeouts<S> {
    service: S,
    timeout: Duration,
    is_endless: fn(&str) -> bool,
}

impl<S> CallTimeouts<S> {
    /// Limits requests, and answers from their begin, to `timeout` each. Calls whose path (`/package.Service/Method`)
    /// is `is_endless` have no limit for the answer; the service itself has to limit their number.
    pub fn new(service: S, timeout: Duration, is_endless: fn(&str) -> bool) -> Self {
        CallTimeouts { service, timeout, is_endless }
    }
}

impl<S: NamedService> NamedService for CallTimeouts<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for CallTimeouts<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let slot = request.extensions().get::<Arc<Slot<()>>>().cloned();
        let call = slot.as_ref().map(|slot| slot.begin_call());
        let (timeout, is_endless) = (self.timeout, (self.is_endless)(request.uri().path()));
        let request =
            request.map(|body| Body::new(RequestBody { body, deadline: Some(Box::pin(tokio::time::sleep(timeout))) }));
        let answered = self.service.call(request);
        Box::pin(async move {
            let response = answered.await?;
            let watched = slot.filter(|_| !is_endless).map(|slot| close_unless_read(timeout, slot));
            Ok(response.map(|body| Body::new(AnswerBody { body, _call: call, _watched: watched })))
        })
    }
}

/// Closes a connection whose client has not read its answer in time. Dropping the sender, with the answer, cancels
/// this.
fn close_unless_read(timeout: Duration, slot: Arc<Slot<()>>) -> oneshot::Sender<()> {
    let (watched, done) = oneshot::channel();
    tokio::spawn(async move {
        if tokio::time::timeout(timeout, done).await.is_err() {
            slot.close();
        }
    });
    watched
}

/// The body of a request, with a time limit.
struct RequestBody {
    body: Body,
    /// The time limit; `None` once it was exceeded.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Ready(None) };
        if deadline.as_mut().poll(cx).is_ready() {
            self.deadline = None;
            return Poll::Ready(Some(Err(Status::deadline_exceeded("the request did not arrive in time"))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.deadline.is_none() || self.body.is_end_stream()
    }
}

/// The body of an answer. The call ends with it.
struct AnswerBody {
    body: Body,
    _call: Option<ActiveCall<()>>,
    _watched: Option<oneshot::Sender<()>>,
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(ready!(Pin::new(&mut self.body).poll_frame(cx)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::ConnectionLimit;

    const TIMEOUT: Duration = Duration::from_millis(50);

    /// Answers with the body of the request.
    struct Echo;

    impl Service<Request<Body>> for Echo {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            std::future::ready(Ok(Response::new(request.into_body())))
        }
    }

    /// A body that never has a frame.
    struct Never;

    impl http_body::Body for Never {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Pending
        }
    }

    /// Makes a call with a request that never ends. Returns the limit, the order to close the only connection, and the
    /// answer.
    async fn call(path: &str) -> (ConnectionLimit<()>, oneshot::Receiver<()>, Body) {
        let limit = ConnectionLimit::new(1, 1, |_| ());
        let (slot, closed) = limit.admit(Ipv4Addr::LOCALHOST.into()).expect("there is room");
        let request = Request::builder().uri(path).extension(slot).body(Body::new(Never)).expect("a request");
        let answer = CallTimeouts::new(Echo, TIMEOUT, |path| path == "/Watch").call(request).await;
        (limit, closed, answer.expect("never an error").into_body())
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts").block_on(test);
    }

    #[test]
    fn a_request_that_does_not_arrive_in_time_fails() {
        run(async {
            let (_limit, _closed, mut answer) = call("/Add").await;
            let first = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut answer), cx)).await;
            assert!(first.is_some_and(|frame| frame.is_err_and(|status| status.message().contains("in time"))));
        });
    }

    #[test]
    fn a_client_that_does_not_read_is_disconnected_unless_the_call_is_endless() {
        run(async {
            let (_limit, closed, _answer) = call("/Add").await;
            assert_eq!(tokio::time::timeout(Duration::from_secs(60), closed).await, Ok(Ok(())));
            let (_limit, mut closed, _answer) = call("/Watch").await;
            tokio::time::sleep(4 * TIMEOUT).await;
            assert!(closed.try_recv().is_err());
        });
    }

    #[test]
    fn a_call_is_active_until_its_answer_is_dropped() {
        run(async {
            let (limit, mut closed, answer) = call("/Add").await;
            let next = || limit.admit(Ipv4Addr::LOCALHOST.into());
            assert!(next().is_none(), "the only connection is busy");
            drop(answer);
            tokio::time::sleep(2 * TIMEOUT).await;
            assert!(closed.try_recv().is_err(), "a dropped answer has no time limit");
            assert!(next().is_some());
        });
    }
}
