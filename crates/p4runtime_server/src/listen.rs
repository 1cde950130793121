//! The listener: an address, TLS or not, and a thread of its own for everything.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use grpc_admission::Tls;
use p4runtime_proto::v1::p4_runtime_server::P4RuntimeServer;
use tokio::sync::oneshot;

use crate::budget::MAX_REQUEST_BYTES;
use crate::gate::Gate;
use crate::keep::{Keeper, Store, StoreError};
use crate::plane::{Notified, PlaneHandle};
use crate::seats::{Seats, seats};
use crate::server::Server;
use crate::service::{Hub, Service};

/// Calls under way on one connection.
const MAX_CALLS: u32 = 64;
/// What a client may send that nobody has looked at yet: of one call, and of all calls of a connection.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// A connection is asked for a sign of life this often, and dropped when none comes.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be had.
    #[error("cannot listen for P4Runtime on {0}")]
    Address(SocketAddr, #[source] std::io::Error),
    /// Certificate or key are no good.
    #[error("cannot use these TLS certificates and keys: {0}")]
    Tls(String),
    /// No thread can be had.
    #[error("cannot start the P4Runtime server")]
    Start(#[source] std::io::Error),
    /// What there is already cannot be kept.
    #[error("cannot keep the state: {0}")]
    Keep(StoreError),
}

/// A server that listens, until this is dropped.
pub struct Listening {
    address: SocketAddr,
    hub: Arc<Hub>,
    seats: Arc<Seats>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Where: the port is known even if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many messages, most of them from packets, were dropped because their client did not take them.
    pub fn dropped(&self) -> u64 {
        self.hub.dropped()
    }

    /// How many connections were closed because there were too many: new ones, or idle ones that gave way to them.
    pub fn refused_connections(&self) -> u64 {
        self.seats.refused()
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

/// Serves in a thread of its own.
///
/// # Errors
/// If the address cannot be had, or the certificates are no good.
pub fn listen(
    server: Server,
    plane: PlaneHandle,
    notified: Notified,
    address: SocketAddr,
    tls: Option<Tls>,
) -> Result<Listening, ListenError> {
    listen_and_keep(server, plane, notified, address, tls, None)
}

/// The same, with a store in which the pipeline and what is written is durable before it is acknowledged. A store that
/// has no pipeline yet begins with the server's, if it has one.
///
/// # Errors
/// If the address cannot be had, the certificates are no good, or the store fails.
pub fn listen_and_keep(
    server: Server,
    plane: PlaneHandle,
    notified: Notified,
    address: SocketAddr,
    tls: Option<Tls>,
    store: Option<Box<dyn Store>>,
) -> Result<Listening, ListenError> {
    let listener = TcpListener::bind(address).map_err(|error| ListenError::Address(address, error))?;
    serve(server, plane, notified, listener, tls, store)
}

/// The same on a socket that listens already, perhaps in another network namespace.
///
/// # Errors
/// If the socket is none that listens.
pub fn listen_on(
    server: Server,
    plane: PlaneHandle,
    notified: Notified,
    listener: TcpListener,
) -> Result<Listening, ListenError> {
    serve(server, plane, notified, listener, None, None)
}

fn serve(
    mut server: Server,
    plane: PlaneHandle,
    notified: Notified,
    listener: TcpListener,
    tls: Option<Tls>,
    store: Option<Box<dyn Store>>,
) -> Result<Listening, ListenError> {
    let address = listener.local_addr().map_err(ListenError::Start)?;
    listener.set_nonblocking(true).map_err(|error| ListenError::Address(address, error))?;
    let mut builder = tonic::transport::Server::builder()
        .max_concurrent_streams(MAX_CALLS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    if let Some(tls) = tls {
        builder = tls.secure(builder, server.settings().patience).map_err(ListenError::Tls)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ListenError::Start)?;
    let keeper = match store {
        Some(mut store) => {
            let everything = server.everything();
            if !everything.is_empty() && store.load().map_err(ListenError::Keep)?.is_none() {
                store.commit(&everything).map_err(ListenError::Keep)?;
            }
            server.start_keeping();
            Some(Keeper::start(store).map_err(ListenError::Start)?)
        }
        None => None,
    };
    let patience = server.settings().patience;
    let seats = Arc::new(seats(server.settings().max_connections, server.settings().max_connections_a_peer));
    let hub = Arc::new(Hub::new(server, plane, keeper));
    let (stop, stopped) = oneshot::channel();
    let shared = hub.clone();
    let places = seats.clone();
    let serve = move || {
        let service = P4RuntimeServer::new(Service(shared.clone()))
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(usize::MAX);
        let service = Gate { service, budget: shared.budget() };
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let incoming = grpc_admission::open(listener, places, patience);
            tokio::spawn(shared.run_notifications(notified));
            tokio::select! {
                _ = builder.serve_with_incoming(service, incoming) => {}
                _ = stopped => {}
            }
        });
        // Work that still runs is not waited for: its clients are gone.
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("p4runtime".to_owned()).spawn(serve).map_err(ListenError::Start)?;
    Ok(Listening { address, hub, seats, stop: Some(stop), thread: Some(thread) })
}
