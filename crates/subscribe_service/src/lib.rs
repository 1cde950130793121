//! Rules of packet subscriptions that come and go while a switch runs.
//!
//! ```text
//!   clients ── gRPC ──> Service ──┐                                    ┌──> P4Runtime server of the switch
//!   file of rules ── looked at ───┼──> Desk: Book (rules, tables) ── Switch (what it has, what it is to have)
//!   rules that were added, kept ──┘         change, or nothing         └──> least writes, in steps
//! ```
//!
//! [`start`] gives a [`Running`] service. Its desk is a thread that makes one change after the other: it compiles the change,
//! writes it to the switch, and only then acknowledges it. What the switch does not take is undone, so that the rules that
//! are listed are those by which it delivers.
//!
//! **No message sees a mixture.** A switch that makes batches visible as a whole (DATAPLANE_ATOMIC) is written each change as
//! one. To others the writes go one after the other, in steps of which each message meets one
//! ([`subscribe::Writes::InTurn`], [`subscribe_p4::entries::Steps`]).
//!
//! **A switch may go, come back, or be another's for a while.** Its content is then read and compared with the tables of
//! the rules, and what differs is written. The tables `Subscriptions.*`, all multicast groups and all mirror sessions are
//! this service's.
//!
//! The interface is `proto/triplane/subscriptions/v1/subscriptions.proto`, as Rust in [`proto`]. The crate prints nothing: what
//! happens is told as [`Event`]s.

#![forbid(unsafe_code)]

mod blame;
mod book;
mod call;
pub mod client;
mod content;
mod desk;
mod files;
mod fit;
mod kept;
mod link;
mod listing;
mod mail;
mod names;
pub mod proto;
mod server;
mod status;
mod switch;
mod trouble;

pub use book::{Program, Write, Written};
pub use grpc_admission::{Tls, TlsError};
pub use status::{Event, Standing};

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grpc_admission::{CallTimeouts, ConnectionLimit};
use tokio::sync::{Semaphore, oneshot, watch};
use tonic::transport::Endpoint;

use desk::{Desk, Job};
use listing::Listing;

/// The port that the service has unless it is told another.
pub const PORT: u16 = 9560;

/// What a service is told when it is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of rules.
    pub rules: PathBuf,
    /// Where rules that are added are kept.
    pub kept: Option<PathBuf>,
    /// The switch's P4Runtime server.
    pub switch: Endpoint,
    /// The device there.
    pub device_id: u64,
    /// As whom to write; without it, as the highest that the switch has seen, while nobody is primary.
    pub election_id: Option<u128>,
    /// Never to load the program: the switch has it.
    pub keep_program: bool,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Over TLS; and if it has an authority of clients, for these only.
    pub tls: Option<Tls>,
    /// Rules there may be.
    pub max_rules: usize,
    /// Rules that one call may add.
    pub max_request_rules: usize,
    /// Connections of all clients together. One more takes the place of the oldest without a call under way.
    pub max_connections: usize,
    /// How long a client may take until its first call, to send a request, and to take its answer.
    pub patience: Duration,
}

impl Settings {
    /// The limits' ordinary values.
    pub fn new(rules: PathBuf, switch: Endpoint, listen: SocketAddr) -> Settings {
        Settings {
            rules,
            kept: None,
            switch,
            device_id: 1,
            election_id: None,
            keep_program: false,
            listen,
            tls: None,
            max_rules: 1_000_000,
            max_request_rules: 10_000,
            max_connections: 64,
            patience: Duration::from_secs(20),
        }
    }
}

/// Why a service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be had.
    #[error("cannot listen for subscriptions on {0}")]
    Address(SocketAddr, #[source] std::io::Error),
    /// Certificate or key are no good.
    #[error("cannot use these TLS certificates and keys: {0}")]
    Tls(TlsError),
    /// No thread can be had.
    #[error("cannot start the subscription service")]
    Start(#[source] std::io::Error),
    /// The rules are wrong, or cannot be read; as text for people.
    #[error("{0}")]
    Rules(String),
}

/// A service that runs, until this is dropped.
pub struct Running {
    address: SocketAddr,
    standing: watch::Receiver<Standing>,
    jobs: Sender<Job>,
    desk: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

impl Running {
    /// Where it listens: the port is known even if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether changes are still made. They are until this is dropped, unless a bug ended the thread that makes them.
    pub fn is_alive(&self) -> bool {
        self.desk.as_ref().is_some_and(|desk| !desk.is_finished())
    }

    /// How things stand.
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        /// A desk that waits for a switch that does not answer is not waited for.
        const GRACE: Duration = Duration::from_secs(2);
        let _ = self.jobs.send(Job::Stop);
        let deadline = Instant::now() + GRACE;
        while self.desk.as_ref().is_some_and(|desk| !desk.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Starts a service: reads the rules, listens, and goes for the switch, which need not be there yet.
///
/// # Errors
/// If the rules are wrong, the address cannot be had, or certificate and key are no good.
pub fn start(
    program: Program,
    settings: Settings,
    tell: impl Fn(Event) + Send + 'static,
) -> Result<Running, StartError> {
    /// Calls that may wait for their turn, and those that may read the rules meanwhile.
    const WAITING: usize = 64;
    const READERS: usize = 16;
    let listener = TcpListener::bind(settings.listen).map_err(|error| StartError::Address(settings.listen, error))?;
    let address = listener.local_addr().map_err(StartError::Start)?;
    listener.set_nonblocking(true).map_err(StartError::Start)?;
    let alive = Some(Duration::from_secs(10));
    let mut builder = tonic::transport::Server::builder()
        .max_concurrent_streams(16)
        .http2_keepalive_interval(alive)
        .http2_keepalive_timeout(alive);
    if let Some(tls) = settings.tls.clone() {
        builder = tls.secure(builder, settings.patience).map_err(StartError::Tls)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Start)?;
    let (jobs, received) = channel();
    let (told, standing) = watch::channel(Standing::default());
    let listing = Arc::new(Listing::default());
    let (ready, read) = channel();
    let (handle, own_jobs) = (runtime.handle().clone(), jobs.clone());
    let (max_connections, patience) = (settings.max_connections, settings.patience);
    let shared = listing.clone();
    let desk = move || match Desk::new(&program, &settings, handle, own_jobs, told, shared, Box::new(tell)) {
        Ok(desk) => {
            let _ = ready.send(Ok(()));
            desk.run(&received);
        }
        Err(why) => drop(ready.send(Err(why))),
    };
    let desk = std::thread::Builder::new().name("subscriptions".to_owned()).spawn(desk).map_err(StartError::Start)?;
    match read.recv() {
        Ok(Ok(())) => {}
        Ok(Err(why)) => return Err(StartError::Rules(why)),
        Err(_) => return Err(StartError::Rules("the thread of the rules ended; this is a bug".to_owned())),
    }
    let service = server::Service {
        jobs: jobs.clone(),
        standing: standing.clone(),
        listing,
        waiting: Arc::new(Semaphore::new(WAITING)),
        readers: Arc::new(Semaphore::new(READERS)),
        // Who watches never has to go: the others need places, too.
        watchers: Arc::new(Semaphore::new(max_connections / 2)),
    };
    // Clients of this machine all have one address, so that no address has a share of its own.
    let seats = Arc::new(ConnectionLimit::new(max_connections, max_connections, |_| ()));
    let (stop, stopped) = oneshot::channel::<()>();
    let serve = move || {
        let service = proto::subscriptions_server::SubscriptionsServer::new(service);
        let service = CallTimeouts::new(service, patience, |path| path.ends_with("/Watch"));
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let incoming = grpc_admission::accept(listener, seats, patience);
            tokio::select! {
                _ = builder.serve_with_incoming(service, incoming) => {}
                _ = stopped => {}
            }
        });
        // Work that still runs is not waited for: its clients are gone.
        runtime.shutdown_background();
    };
    let server = std::thread::Builder::new().name("subscriptions-rpc".to_owned()).spawn(serve);
    let server = server.map_err(StartError::Start)?;
    Ok(Running { address, standing, jobs, desk: Some(desk), stop: Some(stop), server: Some(server) })
}
