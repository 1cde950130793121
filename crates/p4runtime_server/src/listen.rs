//! Runs the listener: a socket, optional TLS, and one thread that runs all tasks of the server.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use grpc_admission::{BoundServer, ServerThread, Tls, TlsError};
use p4runtime_proto::v1::p4_runtime_server::P4RuntimeServer;
use switch::SwitchControl;

use crate::array_mirror::KeptArrays;
use crate::connections::{ConnectionSlots, connection_slots};
use crate::data_plane::{DataPlaneHandle, NotificationReceiver};
use crate::memory_budget::MAX_REQUEST_BYTES;
use crate::message_admission::MessageAdmission;
use crate::server::Server;
use crate::service::{Service, ServiceState};
use crate::store::{Store, StoreError, StoreWriter};

/// Maximum number of concurrent calls on one connection.
const MAX_CALLS: u32 = 64;
/// Flow-control windows, in bytes: of one call, and of all calls of a connection.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Interval and timeout of HTTP/2 keepalive pings.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// An error from starting a server.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not available.
    #[error("cannot listen for P4Runtime on {0}")]
    Address(SocketAddr, #[source] std::io::Error),
    /// The certificate or key is invalid.
    #[error("cannot use these TLS certificates and keys: {0}")]
    Tls(TlsError),
    /// The thread or runtime cannot be started.
    #[error("cannot start the P4Runtime server")]
    Start(#[source] std::io::Error),
    /// The initial state cannot be written to the store.
    #[error("cannot store the state: {0}")]
    Keep(StoreError),
}

/// A listening server. It stops when this is dropped.
pub struct Listening {
    thread: ServerThread,
    hub: Arc<ServiceState>,
    slots: Arc<ConnectionSlots>,
}

impl Listening {
    /// Returns the address, with the actual port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.thread.address()
    }

    /// Stores the last elements of kept arrays, of a switch that runs no more packets.
    ///
    /// # Errors
    /// If they are not durable.
    pub fn store_last(&self, switch: &dyn SwitchControl) -> Result<(), StoreError> {
        self.hub.store_last(switch)
    }

    /// Returns the number of messages that were dropped because their client was too slow. Most of them are packets.
    pub fn dropped(&self) -> u64 {
        self.hub.dropped()
    }

    /// Returns the number of connections closed because of the limits: new ones, or idle ones that were replaced.
    pub fn refused_connections(&self) -> u64 {
        self.slots.refused()
    }
}

/// Starts a server in a thread of its own.
///
/// # Errors
/// If the address is not available or the certificates are invalid.
pub fn listen(
    server: Server,
    plane: DataPlaneHandle,
    notifications: NotificationReceiver,
    address: SocketAddr,
    tls: Option<Tls>,
) -> Result<Listening, ListenError> {
    listen_with_store(server, plane, notifications, address, tls, None)
}

/// Starts a server with a store: pipelines and writes are durable before they are acknowledged. A store
/// without a running pipeline is initialized with the server's, if it has one.
///
/// # Errors
/// If the address is not available, the certificates are invalid or the store fails.
pub fn listen_with_store(
    server: Server,
    plane: DataPlaneHandle,
    notifications: NotificationReceiver,
    address: SocketAddr,
    tls: Option<Tls>,
    store: Option<Box<dyn Store>>,
) -> Result<Listening, ListenError> {
    listen_bound(server, plane, notifications, bind(address)?, tls, store)
}

/// Binds an address, without a thread: a process gives up its privileges between this and [`listen_bound`].
///
/// # Errors
/// If the address is not available.
pub fn bind(address: SocketAddr) -> Result<BoundServer, ListenError> {
    let listener = TcpListener::bind(address).map_err(|error| ListenError::Address(address, error))?;
    BoundServer::new(listener).map_err(ListenError::Start)
}

/// Starts a server on a socket that already listens, possibly in another network namespace.
///
/// # Errors
/// If the socket does not listen.
pub fn listen_on(
    server: Server,
    plane: DataPlaneHandle,
    notifications: NotificationReceiver,
    listener: TcpListener,
) -> Result<Listening, ListenError> {
    let bound = BoundServer::new(listener).map_err(ListenError::Start)?;
    listen_bound(server, plane, notifications, bound, None, None)
}

/// Starts a server on a bound address, as [`listen_with_store`] does.
///
/// # Errors
/// If the certificates are invalid, the store fails, or the thread cannot be started.
pub fn listen_bound(
    mut server: Server,
    plane: DataPlaneHandle,
    notifications: NotificationReceiver,
    bound: BoundServer,
    tls: Option<Tls>,
    store: Option<Box<dyn Store>>,
) -> Result<Listening, ListenError> {
    let mut builder = tonic::transport::Server::builder()
        .max_concurrent_streams(MAX_CALLS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    if let Some(tls) = tls {
        builder = tls.secure(builder, server.settings().client_timeout).map_err(ListenError::Tls)?;
    }
    let writer = match store {
        Some(mut store) => {
            let everything = server.everything();
            let kept = store.load().map_err(ListenError::Keep)?;
            if !everything.is_empty() && kept.is_none_or(|kept| kept.committed.is_none()) {
                store.commit(&everything).map_err(ListenError::Keep)?;
            }
            server.record_changes();
            Some(StoreWriter::start(store).map_err(ListenError::Start)?)
        }
        None => None,
    };
    let keep_interval = server.settings().keep_interval;
    let keeps_arrays = writer.is_some() && server.settings().kept_arrays != KeptArrays::default();
    let client_timeout = server.settings().client_timeout;
    let slots = Arc::new(connection_slots(server.settings().max_connections, server.settings().max_connections_a_peer));
    let hub = Arc::new(ServiceState::new(server, plane, writer));
    let shared = hub.clone();
    let accepted = slots.clone();
    let serve = move |listener| async move {
        let service = P4RuntimeServer::new(Service(shared.clone()))
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(usize::MAX);
        let service = MessageAdmission { service, hub: shared.clone(), budget: shared.budget() };
        let incoming = grpc_admission::accept(listener, accepted, client_timeout);
        if keeps_arrays {
            tokio::spawn(shared.clone().run_array_storage(keep_interval));
        }
        tokio::spawn(shared.run_notifications(notifications));
        // It ends only with the thread.
        let _ = builder.serve_with_incoming(service, incoming).await;
    };
    let thread = bound.start("p4runtime", serve).map_err(ListenError::Start)?;
    Ok(Listening { thread, hub, slots })
}
