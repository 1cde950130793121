//! Accepting connections: each has a [`Slot`], and is closed when it is replaced or stays without a call.

use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::connection_limit::{ConnectionLimit, Slot};

/// Connections that are accepted and not yet served.
const ACCEPT_QUEUE: usize = 16;
/// Pause after the system could not accept a connection, for lack of file descriptors for example. It would fail again
/// at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection. It occupies its slot until it is dropped.
pub struct Connection<T> {
    stream: TcpStream,
    slot: Arc<Slot<T>>,
    limit: Arc<ConnectionLimit<T>>,
    /// Receives the order to close; `None` once it was received.
    closed: Option<oneshot::Receiver<()>>,
    /// Maximum time until the first call. Only calls count: a client that stops in the TLS handshake or in HTTP/2 makes
    /// none.
    first_call_timeout: Option<Pin<Box<Sleep>>>,
}

/// Accepts connections within the limit, and closes others at once, so that their clients notice. Closes connections as
/// well that have made no call when `first_call_timeout` ends. The caller has to be in the context of an executor.
pub fn accept<T: Send + Sync + 'static>(
    listener: TcpListener,
    limit: Arc<ConnectionLimit<T>>,
    first_call_timeout: Duration,
) -> ReceiverStream<Result<Connection<T>, Error>> {
    let (sender, incoming) = mpsc::channel(ACCEPT_QUEUE);
    tokio::spawn(async move {
        while !sender.is_closed() {
            let Ok((stream, address)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Some((slot, closed)) = limit.admit(address.ip()) else { continue };
            // Answers are small, and clients wait for them. Without this they are only slower.
            let _ = stream.set_nodelay(true);
            let first_call_timeout = Some(Box::pin(tokio::time::sleep(first_call_timeout)));
            let connection =
                Connection { stream, slot, limit: limit.clone(), closed: Some(closed), first_call_timeout };
            if sender.send(Ok(connection)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(incoming)
}

impl<T> Connection<T> {
    /// Checks that the connection may stay open.
    ///
    /// # Errors
    /// If it was replaced, or has made no call in time.
    fn check(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let is_ordered = |closed: &mut oneshot::Receiver<()>| Pin::new(closed).poll(cx).is_ready();
        if self.closed.as_mut().is_none_or(is_ordered) {
            self.closed = None;
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if self.slot.has_called() {
            self.first_call_timeout = None;
        }
        if self.first_call_timeout.as_mut().is_some_and(|timeout| timeout.as_mut().poll(cx).is_ready()) {
            self.closed = None;
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        self.limit.release(&self.slot);
    }
}

impl<T: Send + Sync + 'static> Connected for Connection<T> {
    type ConnectInfo = Arc<Slot<T>>;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.slot.clone()
    }
}

impl<T> AsyncRead for Connection<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<(), Error>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T> AsyncWrite for Connection<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
