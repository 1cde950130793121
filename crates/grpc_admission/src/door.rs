//! The door of a listener: who comes in gets a [`Seat`], and has to go when it gives way or says nothing.

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

use crate::seats::{Seat, Seats};

/// A connection, which has its seat until it is dropped.
pub struct Guest<T> {
    stream: TcpStream,
    seat: Arc<Seat<T>>,
    seats: Arc<Seats<T>>,
    /// Tells it to go; nothing when it was told.
    dismissed: Option<oneshot::Receiver<()>>,
    /// How long it may take until its first call. Only calls are seen above TLS and HTTP/2, so that whoever is silent at
    /// any of their steps is.
    patience: Option<Pin<Box<Sleep>>>,
}

/// Lets connections in that get a seat. Others are closed at once, so that their clients know. Those that have made no
/// call when `patience` ends are closed as well. To be called where a runtime is entered.
pub fn open<T: Send + Sync + 'static>(
    listener: TcpListener,
    seats: Arc<Seats<T>>,
    patience: Duration,
) -> ReceiverStream<Result<Guest<T>, Error>> {
    /// Connections that are accepted and not yet served.
    const WAITING: usize = 16;
    /// How long to rest when the system has no room for one more: it would say so again at once.
    const REST: Duration = Duration::from_millis(100);
    let (guests, incoming) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while !guests.is_closed() {
            let Ok((stream, address)) = listener.accept().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let Some((seat, dismissed)) = seats.take(address.ip()) else { continue };
            // Answers are small and waited for; should this fail, they only come later.
            let _ = stream.set_nodelay(true);
            let patience = Some(Box::pin(tokio::time::sleep(patience)));
            let guest = Guest { stream, seat, seats: seats.clone(), dismissed: Some(dismissed), patience };
            if guests.send(Ok(guest)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(incoming)
}

impl<T> Guest<T> {
    /// # Errors
    /// If it has to go.
    fn check(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let told = |dismissed: &mut oneshot::Receiver<()>| Pin::new(dismissed).poll(cx).is_ready();
        if self.dismissed.as_mut().is_none_or(told) {
            self.dismissed = None;
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if self.seat.has_called() {
            self.patience = None;
        }
        if self.patience.as_mut().is_some_and(|patience| patience.as_mut().poll(cx).is_ready()) {
            self.dismissed = None;
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl<T> Drop for Guest<T> {
    fn drop(&mut self) {
        self.seats.leave(&self.seat);
    }
}

impl<T: Send + Sync + 'static> Connected for Guest<T> {
    type ConnectInfo = Arc<Seat<T>>;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.seat.clone()
    }
}

impl<T> AsyncRead for Guest<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<(), Error>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T> AsyncWrite for Guest<T> {
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
