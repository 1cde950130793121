//! A service whose calls are counted on their connections, and end.

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

use crate::seats::{Call, Seat};

/// A service behind seats. A request that has not come whole in time fails; a client that does not take its answer in time is
/// sent away.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    service: S,
    patience: Duration,
    is_endless: fn(&str) -> bool,
}

impl<S> Counted<S> {
    /// A request may take so long, and its answer once it begins. Calls whose paths (`/package.Service/Method`) are endless answer
    /// for as long as their clients want; the service has to see to it that they are few.
    pub fn new(service: S, patience: Duration, is_endless: fn(&str) -> bool) -> Self {
        Counted { service, patience, is_endless }
    }
}

impl<S: NamedService> NamedService for Counted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Counted<S>
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
        let seat = request.extensions().get::<Arc<Seat<()>>>().cloned();
        let call = seat.as_ref().map(|seat| seat.call());
        let (patience, is_endless) = (self.patience, (self.is_endless)(request.uri().path()));
        let request =
            request.map(|body| Body::new(Awaited { body, until: Some(Box::pin(tokio::time::sleep(patience))) }));
        let answered = self.service.call(request);
        Box::pin(async move {
            let response = answered.await?;
            let watched = seat.filter(|_| !is_endless).map(|seat| watch(patience, seat));
            Ok(response.map(|body| Body::new(Answer { body, _call: call, _watched: watched })))
        })
    }
}

/// Sends a client away that has not taken its answer in time. The answer ends it by dropping the sender.
fn watch(patience: Duration, seat: Arc<Seat<()>>) -> oneshot::Sender<()> {
    let (watched, done) = oneshot::channel();
    tokio::spawn(async move {
        if tokio::time::timeout(patience, done).await.is_err() {
            seat.dismiss();
        }
    });
    watched
}

/// The body of a request, which has to come in time.
struct Awaited {
    body: Body,
    /// Nothing when it is over.
    until: Option<Pin<Box<Sleep>>>,
}

impl http_body::Body for Awaited {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(until) = &mut self.until else { return Poll::Ready(None) };
        if until.as_mut().poll(cx).is_ready() {
            self.until = None;
            return Poll::Ready(Some(Err(Status::deadline_exceeded("the request did not come in time"))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.until.is_none() || self.body.is_end_stream()
    }
}

/// The body of an answer, and what goes when it is sent or given up.
struct Answer {
    body: Body,
    _call: Option<Call<()>>,
    _watched: Option<oneshot::Sender<()>>,
}

impl http_body::Body for Answer {
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
    use crate::Seats;

    const PATIENCE: Duration = Duration::from_millis(50);

    /// Answers with what is asked, as it comes.
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

    /// A body of which nothing ever comes.
    struct Never;

    impl http_body::Body for Never {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Pending
        }
    }

    /// Calls with a request that never ends; the only connection's places, what tells it to go, and the answer.
    async fn call(path: &str) -> (Seats<()>, oneshot::Receiver<()>, Body) {
        let seats = Seats::new(1, 1, |_| ());
        let (seat, dismissed) = seats.take(Ipv4Addr::LOCALHOST.into()).expect("there is room");
        let request = Request::builder().uri(path).extension(seat).body(Body::new(Never)).expect("a request");
        let answer = Counted::new(Echo, PATIENCE, |path| path == "/Watch").call(request).await;
        (seats, dismissed, answer.expect("never an error").into_body())
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts").block_on(test);
    }

    #[test]
    fn a_request_that_does_not_come_in_time_fails() {
        run(async {
            let (_seats, _dismissed, mut answer) = call("/Add").await;
            let first = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut answer), cx)).await;
            assert!(first.is_some_and(|frame| frame.is_err_and(|status| status.message().contains("in time"))));
        });
    }

    #[test]
    fn who_does_not_take_an_answer_has_to_go_unless_it_is_endless() {
        run(async {
            let (_seats, dismissed, _answer) = call("/Add").await;
            assert_eq!(tokio::time::timeout(100 * PATIENCE, dismissed).await, Ok(Ok(())));
            let (_seats, mut dismissed, _answer) = call("/Watch").await;
            tokio::time::sleep(4 * PATIENCE).await;
            assert!(dismissed.try_recv().is_err());
        });
    }

    #[test]
    fn a_call_is_under_way_until_its_answer_is_gone() {
        run(async {
            let (seats, mut dismissed, answer) = call("/Add").await;
            let next = || seats.take(Ipv4Addr::LOCALHOST.into());
            assert!(next().is_none(), "the only connection is busy");
            drop(answer);
            tokio::time::sleep(2 * PATIENCE).await;
            assert!(dismissed.try_recv().is_err(), "an answer that is given up is not waited for");
            assert!(next().is_some());
        });
    }
}
