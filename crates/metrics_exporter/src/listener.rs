//! Serves HTTP: `GET /metrics`, one request per connection.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use grpc_admission::{BoundServer, ServerThread};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use crate::snapshot::{SnapshotExchange, SnapshotSource};

/// Maximum number of connections that are served at the same time. Others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16;
/// Maximum size of a request: the smallest limit that the HTTP library supports.
const MAX_REQUEST_BYTES: usize = 8 << 10;
/// Maximum time of a connection, from its first byte to its last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that a scraper waits for a snapshot.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after the system could not accept a connection, for lack of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running server. Dropping it stops the server.
pub struct MetricsServer(ServerThread);

/// An address that the server cannot listen on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for metrics on {address}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub source: std::io::Error,
}

impl MetricsServer {
    /// Returns the address of the server. Its port is the actual one, also where any port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

/// Starts a server in a thread of its own. Returns it with the source that has to be polled for snapshots.
///
/// # Errors
/// If the address cannot be used, or the thread cannot be started.
pub fn listen(address: SocketAddr) -> Result<(MetricsServer, SnapshotSource), ListenError> {
    let failed = |source| ListenError { address, source };
    listen_bound(bind(address)?).map_err(failed)
}

/// Binds an address, without a thread: a process gives up its privileges between this and [`listen_bound`].
///
/// # Errors
/// If the address cannot be used.
pub fn bind(address: SocketAddr) -> Result<BoundServer, ListenError> {
    let failed = |source| ListenError { address, source };
    BoundServer::new(TcpListener::bind(address).map_err(failed)?).map_err(failed)
}

/// Starts a server on a bound address, as [`listen`] does.
///
/// # Errors
/// If the thread cannot be started.
pub fn listen_bound(bound: BoundServer) -> Result<(MetricsServer, SnapshotSource), std::io::Error> {
    listen_with(bound, SNAPSHOT_TIMEOUT, CONNECTION_TIMEOUT)
}

/// As [`listen`], with other limits.
fn listen_with(
    bound: BoundServer,
    snapshot_timeout: Duration,
    connection_timeout: Duration,
) -> Result<(MetricsServer, SnapshotSource), std::io::Error> {
    let exchange = Arc::new(SnapshotExchange::new(snapshot_timeout));
    let source = SnapshotSource::new(exchange.clone());
    let server = bound.start("metrics", move |listener| accept(listener, exchange, connection_timeout))?;
    Ok((MetricsServer(server), source))
}

async fn accept(listener: tokio::net::TcpListener, exchange: Arc<SnapshotExchange>, timeout: Duration) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let exchange = exchange.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, &exchange));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(timeout)
                .max_buf_size(MAX_REQUEST_BYTES)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // A client that is too slow or does not speak HTTP is disconnected.
            let _ = tokio::time::timeout(timeout, connection).await;
            drop(place);
        });
    }
}

async fn answer(request: Request<Incoming>, exchange: &SnapshotExchange) -> Result<Response<String>, Infallible> {
    let plain = |code: StatusCode, text: &str| {
        let mut response = Response::new(format!("{text}\n"));
        *response.status_mut() = code;
        response
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = match request.uri().path() {
        "/metrics" if is_read => match exchange.latest().await {
            Some(snapshot) => Response::new(snapshot.emit()),
            None => plain(StatusCode::SERVICE_UNAVAILABLE, "the switch is busy or has stopped"),
        },
        "/metrics" => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET to read metrics");
            response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
            response
        }
        _ => plain(StatusCode::NOT_FOUND, "metrics are at /metrics"),
    };
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::snapshot::MetricsSnapshot;

    /// Sends a request, and returns the head and the body of the answer.
    fn ask(address: SocketAddr, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("HTTP has a head");
        (head.to_owned(), body.to_owned())
    }

    /// Starts a server whose scrapers wait for a snapshot for `snapshot_timeout`.
    fn server(snapshot_timeout: Duration) -> (MetricsServer, SnapshotSource) {
        let address = "127.0.0.1:0".parse().unwrap();
        listen_with(bind(address).expect("there is a port"), snapshot_timeout, Duration::from_secs(120))
            .expect("there is a port")
    }

    #[test]
    fn a_snapshot_is_taken_on_request_and_at_most_once_a_second() {
        let (server, source) = server(Duration::from_secs(60));
        let address = server.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let packets = std::thread::spawn(move || {
            let mut taken = 0;
            while !stopped.load(Ordering::Relaxed) {
                source.poll(|| {
                    taken += 1;
                    MetricsSnapshot { numbers: vec![("port.1.rx.packets".to_owned(), 7)], ..MetricsSnapshot::default() }
                });
                std::thread::yield_now();
            }
            taken
        });
        let began = std::time::Instant::now();
        let answers = [(); 3].map(|()| ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
        let seconds = began.elapsed().as_secs();
        stop.store(true, Ordering::Relaxed);
        for (head, body) in answers {
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert!(body.contains("triplane_port_rx_packets_total{port=\"1\"} 7\n"), "{body}");
        }
        assert!(packets.join().expect("the thread ran") <= 1 + seconds);
    }

    #[test]
    fn other_requests_are_refused_and_a_source_that_is_not_polled_is_reported() {
        let (server, source) = server(Duration::from_millis(100));
        let address = server.address();
        let status = |request: &str| ask(address, request).0.split(' ').nth(1).map(str::to_owned).unwrap();
        assert_eq!(status("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "404");
        assert_eq!(status("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), "405");
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(20_000));
        assert_eq!(status(&long).chars().next(), Some('4'));
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "503");
        drop(source);
    }

    #[test]
    fn an_address_in_use_is_an_error_with_the_address() {
        let (server, _source) = server(SNAPSHOT_TIMEOUT);
        let Err(error) = listen(server.address()) else { panic!("two servers have one address") };
        assert_eq!(error.to_string(), format!("cannot listen for metrics on {}", server.address()));
        assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse);
    }
}
