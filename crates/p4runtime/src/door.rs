//! The door of the listener: so many connections at once, and no more.

use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Sleep;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// Bytes that a client of HTTP/2 begins with, its preface. Who has sent so many has spoken, and who speaks HTTP/2 is asked
/// for signs of life from then on.
const PREFACE_BYTES: usize = 24;

/// A connection, which has its place until it is dropped.
pub(crate) struct Guest {
    stream: TcpStream,
    /// While it has not spoken: how many bytes are missing, and how long it may take.
    silent: Option<(usize, Pin<Box<Sleep>>)>,
    _place: OwnedSemaphorePermit,
}

/// Lets up to `places` connections in at once. Others are closed at once, so that their clients know, and counted. Those
/// that have not spoken when `patience` ends are closed as well.
pub(crate) fn open(
    listener: TcpListener,
    places: usize,
    patience: Duration,
    refused: Arc<AtomicU64>,
) -> ReceiverStream<Result<Guest, Error>> {
    /// Connections that are accepted and not yet served.
    const WAITING: usize = 16;
    /// How long to rest when the system has no room for one more: it would say so again at once.
    const REST: Duration = Duration::from_millis(100);
    let (guests, incoming) = mpsc::channel(WAITING);
    let all = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
    tokio::spawn(async move {
        while !guests.is_closed() {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let Ok(place) = all.clone().try_acquire_owned() else {
                refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            // Answers are small and waited for; should this fail, they only come later.
            let _ = stream.set_nodelay(true);
            let silent = Some((PREFACE_BYTES, Box::pin(tokio::time::sleep(patience))));
            if guests.send(Ok(Guest { stream, silent, _place: place })).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(incoming)
}

impl Connected for Guest {
    type ConnectInfo = <TcpStream as Connected>::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Guest {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<(), Error>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some((missing, time)) = &mut self.silent {
            let came = buffer.filled().len() - before;
            if came >= *missing {
                self.silent = None;
            } else if time.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            } else {
                *missing -= came;
            }
        }
        read
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
