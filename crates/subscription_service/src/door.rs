//! The door of the listener: so many connections at once, and no more.

use std::io::{Error, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// A connection, which has its place until it is dropped.
pub(crate) struct Guest {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// Lets up to `places` connections in at once. Others are closed at once, so that their clients know.
pub(crate) fn open(listener: TcpListener, places: usize) -> ReceiverStream<Result<Guest, Error>> {
    /// How long to rest when the system has no room for one more.
    const REST: Duration = Duration::from_millis(100);
    let (guests, incoming) = mpsc::channel(4);
    let all = Arc::new(Semaphore::new(places));
    tokio::spawn(async move {
        while !guests.is_closed() {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let Ok(place) = all.clone().try_acquire_owned() else { continue };
            // Answers are small and waited for; should this fail, they only come later.
            let _ = stream.set_nodelay(true);
            if guests.send(Ok(Guest { stream, _place: place })).await.is_err() {
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
        Pin::new(&mut self.stream).poll_read(cx, buffer)
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
