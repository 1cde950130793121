//! Serves requests on a Unix domain socket.
//!
//! A thread serves each connection, so a slow client delays no other. Their number, the time of each request and
//! response, and the number of captures are bounded.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::Value;

use crate::LabError;
use crate::connection::DeadlineStream;
use crate::error::failed_to;
use crate::protocol::{LabRequest, LabResponse};
use crate::request_error::RequestError;
use crate::semaphore::{Semaphore, SemaphorePermit};
use crate::switch_thread::{Completion, SwitchCommand};

/// Maximum size of a request, in bytes.
const MAX_REQUEST: u64 = 4096;

/// Interval at which a listener checks whether it should end.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time in which a switch carries out a command, and in which a client takes a response.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// The bounds of what clients can occupy.
#[derive(Clone, Copy, Debug)]
pub struct SocketLimits {
    /// Maximum number of connections without a capture. Others wait in the kernel's queue.
    pub connections: usize,
    /// Maximum number of captures. Others are refused.
    pub captures: usize,
    /// Maximum time between a connection and the end of its request.
    pub request_timeout: Duration,
}

impl Default for SocketLimits {
    fn default() -> SocketLimits {
        SocketLimits { connections: 32, captures: 32, request_timeout: Duration::from_secs(1) }
    }
}

/// The outcome of a request.
pub enum RequestOutcome {
    /// The response.
    Response(Result<Value, RequestError>),
    /// A capture, which sends the response and then frames until its reader is gone.
    Capture(Box<dyn FnOnce(&UnixStream)>),
}

/// Listens at a path.
pub fn listen(path: &Path) -> Result<UnixListener, LabError> {
    let listener = UnixListener::bind(path).map_err(failed_to(format!("listen on {}", path.display())))?;
    listener.set_nonblocking(true).map_err(failed_to("listen"))?;
    Ok(listener)
}

/// Serves requests until one of them is [`LabRequest::Down`] or `ended` returns true.
pub fn serve(
    listener: &UnixListener,
    limits: SocketLimits,
    mut ended: impl FnMut() -> bool,
    handle: impl Fn(&LabRequest) -> RequestOutcome + Send + Sync + 'static,
) {
    let connections = Semaphore::new(limits.connections);
    let server = Arc::new(SocketServer {
        handle,
        limits,
        captures: Semaphore::new(limits.captures),
        is_down: AtomicBool::new(false),
    });
    while !ended() && !server.is_down.load(Ordering::Acquire) {
        let accepted = connections.try_acquire().and_then(|permit| Some((permit, listener.accept().ok()?)));
        let Some((permit, (stream, _))) = accepted else {
            // All permits are used, nobody connects, or the system lacks descriptors for the moment.
            std::thread::sleep(ACCEPT_INTERVAL);
            continue;
        };
        let server = Arc::clone(&server);
        // Without a thread the connection is closed.
        let _ = std::thread::Builder::new().name("request".to_owned()).spawn(move || server.serve(&stream, permit));
    }
}

/// The state that the threads of connections share.
struct SocketServer<H> {
    handle: H,
    limits: SocketLimits,
    captures: Semaphore,
    /// Whether a client asked for the end.
    is_down: AtomicBool,
}

impl<H: Fn(&LabRequest) -> RequestOutcome> SocketServer<H> {
    /// Serves a connection: one request.
    fn serve(&self, stream: &UnixStream, permit: SemaphorePermit) {
        let _ = stream.set_nonblocking(false);
        let mut line = String::new();
        let request = DeadlineStream::new(stream, self.limits.request_timeout).take(MAX_REQUEST);
        if BufReader::new(request).read_line(&mut line).is_err() {
            return;
        }
        let result = match serde_json::from_str(&line) {
            Ok(LabRequest::Down) => {
                respond(stream, Ok(Value::Null));
                return self.is_down.store(true, Ordering::Release);
            }
            Ok(request) => match (self.handle)(&request) {
                RequestOutcome::Response(result) => result,
                RequestOutcome::Capture(capture) => match self.captures.try_acquire() {
                    Some(_capturing) => {
                        drop(permit);
                        return capture(stream);
                    }
                    None => Err(RequestError::TooManyCaptures(self.limits.captures)),
                },
            },
            Err(error) => Err(RequestError::NotARequest(error.to_string())),
        };
        respond(stream, result);
    }
}

/// Sends a response. Returns false if the client is gone or does not take the response.
pub fn respond(stream: &UnixStream, result: Result<Value, RequestError>) -> bool {
    let response = result.map_or_else(LabResponse::Refused, LabResponse::Done);
    DeadlineStream::new(stream, COMMAND_TIMEOUT).write_all(response.line().as_bytes()).is_ok()
}

/// Sends a command to a switch and waits until it has been carried out.
pub fn carry_out(
    (name, commands): (&str, &Sender<SwitchCommand>),
    command: impl FnOnce(Completion) -> SwitchCommand,
) -> Result<(), RequestError> {
    let (done, outcome) = channel();
    commands.send(command(done)).map_err(|_| RequestError::SwitchEnded(name.to_owned()))?;
    outcome.recv_timeout(COMMAND_TIMEOUT).unwrap_or_else(|_| Err(RequestError::Timeout(name.to_owned())))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::thread::JoinHandle;
    use std::time::Instant;

    use super::*;
    use crate::connection::has_hung_up;
    use crate::test_network::{TEST_TIMEOUT, TestDirectory};

    /// A server whose status is a number and whose captures have no frames.
    struct TestServer {
        path: PathBuf,
        ended: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
        _directory: TestDirectory,
    }

    impl TestServer {
        fn new(name: &str, limits: SocketLimits) -> TestServer {
            let directory = TestDirectory::new(name);
            let path = directory.path("socket");
            let listener = listen(&path).unwrap();
            let handle = |request: &LabRequest| match request {
                LabRequest::Capture { .. } => RequestOutcome::Capture(Box::new(|stream| {
                    respond(stream, Ok(Value::Null));
                    while !has_hung_up(stream) {
                        std::thread::yield_now();
                    }
                })),
                _ => RequestOutcome::Response(Ok(Value::from(7))),
            };
            let ended = Arc::new(AtomicBool::new(false));
            let has_ended = Arc::clone(&ended);
            let serving = move || serve(&listener, limits, || has_ended.load(Ordering::Relaxed), handle);
            TestServer { path, ended, thread: Some(std::thread::spawn(serving)), _directory: directory }
        }

        /// Connects a client whose reads fail after [`TEST_TIMEOUT`].
        fn connect(&self) -> UnixStream {
            let stream = UnixStream::connect(&self.path).unwrap();
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            stream
        }

        /// Sends a request and returns the connection with the response.
        fn request(&self, request: &LabRequest) -> (UnixStream, String) {
            let mut stream = self.connect();
            stream.write_all(request.line().as_bytes()).unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a response");
            (stream, line)
        }
    }

    impl Drop for TestServer {
        fn drop(&mut self) {
            self.ended.store(true, Ordering::Relaxed);
            self.thread.take().map(JoinHandle::join).transpose().expect("it does not panic");
        }
    }

    #[test]
    fn a_client_that_sends_nothing_delays_no_other() {
        let limits = SocketLimits { request_timeout: Duration::from_secs(3600), ..SocketLimits::default() };
        let server = TestServer::new("slow", limits);
        let mut silent = server.connect();
        silent.write_all(b"{").unwrap();
        assert_eq!(server.request(&LabRequest::Status).1, "{\"done\":7}\n");
        assert!(!has_hung_up(&silent));
    }

    #[test]
    fn slow_clients_are_disconnected_and_the_next_is_served() {
        let limits = SocketLimits { connections: 2, request_timeout: Duration::from_millis(1), captures: 1 };
        let server = TestServer::new("many", limits);
        let silent = [(); 6].map(|()| server.connect());
        for mut stream in silent {
            assert_eq!(stream.read(&mut [0]).expect("it is closed in time"), 0);
        }
    }

    #[test]
    fn captures_are_bounded_and_occupy_no_connection() {
        let limits = SocketLimits { connections: 1, captures: 2, request_timeout: TEST_TIMEOUT };
        let server = TestServer::new("captures", limits);
        let capture = LabRequest::Capture { port: "s1:1".to_owned() };
        let done = LabResponse::Done(Value::Null).line();
        let running = [(); 2].map(|()| server.request(&capture));
        assert!(running.iter().all(|(_, line)| *line == done), "{running:?}");
        let refused = LabResponse::Refused(RequestError::TooManyCaptures(2)).line();
        assert_eq!(server.request(&capture).1, refused);
        assert_eq!(server.request(&LabRequest::Status).1, "{\"done\":7}\n");
        drop(running);
        let began = Instant::now();
        while server.request(&capture).1 != done {
            assert!(began.elapsed() < TEST_TIMEOUT, "captures that have ended still count");
        }
    }
}
