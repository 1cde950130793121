//! The HTTP listener: `GET /metrics`, one answer a connection.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, oneshot};

use super::text::{Snapshot, exposition};
use super::{Gauge, Shared};
use crate::output::Failure;

/// Connections at a time; others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16;
/// The longest request, in bytes: the least that the library takes.
const MAX_REQUEST_BYTES: usize = 8 << 10;
/// How long a connection may take from its first byte to its last.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the switch may take to be between two batches.
const TURN: Duration = Duration::from_secs(2);
/// A snapshot is used for so long.
const FRESH: Duration = Duration::from_secs(1);

/// A listener, until this is dropped.
pub struct Listening {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Where: the port is known even if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens in a thread of its own.
///
/// # Errors
/// If the address cannot be had.
pub fn listen(address: SocketAddr) -> Result<(Listening, Gauge), Failure> {
    let refused = || format!("cannot listen for metrics on {address}");
    let listener = TcpListener::bind(address).with_context(refused)?;
    listener.set_nonblocking(true).with_context(refused)?;
    let address = listener.local_addr().with_context(refused)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().with_context(refused)?;
    let shared = Arc::new(Shared::default());
    let (stop, stopped) = oneshot::channel();
    let gauge = Gauge { shared: shared.clone() };
    let serve = move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            tokio::select! {
                () = accept(listener, shared) => {}
                _ = stopped => {}
            }
        });
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).with_context(refused)?;
    Ok((Listening { address, stop: Some(stop), thread: Some(thread) }, gauge))
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for one: they are closed again some time.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, &shared));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(MAX_REQUEST_BYTES)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // Who takes too long, or speaks no HTTP, is let go.
            let _ = tokio::time::timeout(PATIENCE, connection).await;
            drop(permit);
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<String>, Infallible> {
    let plain = |code: StatusCode, text: &str| {
        let mut response = Response::new(format!("{text}\n"));
        *response.status_mut() = code;
        response
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = match request.uri().path() {
        "/metrics" if is_read => match latest(shared).await {
            Some(snapshot) => Response::new(exposition(&snapshot)),
            None => plain(StatusCode::SERVICE_UNAVAILABLE, "the switch is busy or has stopped"),
        },
        "/metrics" => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET");
            response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
            response
        }
        _ => plain(StatusCode::NOT_FOUND, "metrics are at /metrics"),
    };
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// The newest snapshot, which is at most a second old.
async fn latest(shared: &Shared) -> Option<Arc<Snapshot>> {
    let fresh = || {
        let latest = shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|(taken, _)| taken.elapsed() < FRESH).map(|(_, snapshot)| snapshot.clone())
    };
    let deadline = Instant::now() + TURN;
    loop {
        let taken = shared.taken.notified();
        tokio::pin!(taken);
        // From here on nothing is missed.
        taken.as_mut().enable();
        if let Some(snapshot) = fresh() {
            return Some(snapshot);
        }
        shared.wanted.store(true, std::sync::atomic::Ordering::Release);
        let left = deadline.saturating_duration_since(Instant::now());
        if tokio::time::timeout(left, taken).await.is_err() {
            return fresh();
        }
    }
}
