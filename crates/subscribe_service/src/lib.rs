//! Implements a service for packet subscriptions whose rules change while a switch runs.
//!
//! ```text
//!   clients ── gRPC ──> SubscriptionService ──┐                                    ┌──> P4Runtime server of the switch
//!   rules file ─────────────── polled ────────┼──> Reconciler: RuleSet ── SwitchSession
//!   journal of added rules ───────────────────┘    (rules, tables)    (held and wanted entries; minimal updates)
//! ```
//!
//! [`start`] returns a [`RunningService`]. Its `Reconciler` is a thread that makes one change after the other: it
//! compiles the change, writes it to the switch, and only then answers the client. A change that the switch rejects is
//! undone, so the listed rules are always those that the switch delivers by.
//!
//! **Per-message consistency.** A switch that applies a batch atomically (DATAPLANE_ATOMIC) gets each change as one
//! batch. Other switches get the updates one after the other, in an order in which each message meets either the old
//! rules or the new ones ([`subscribe::UpdateMode::PerMessageConsistent`], [`subscribe_p4::entries::UpdatePlan`]).
//!
//! **Reconciliation.** A switch may disappear, come back, or have another primary for a while. The service then reads
//! its forwarding state, compares it with the tables of the rules, and writes the differences. It owns the tables
//! `Subscriptions.*`, all multicast groups and all clone sessions.
//!
//! The interface is `proto/triplane/subscriptions/v1/subscriptions.proto`, as Rust in [`proto`]; [`client`] is its
//! client. Any client that is admitted may change any rule that is not in the file, unless an [`authorization::Policy`]
//! limits users. The crate prints nothing: it reports [`ServiceEvent`]s.

#![forbid(unsafe_code)]

mod arbitration_inbox;
mod attribution;
mod away_reason;
pub mod client;
mod compatibility;
mod file_text;
mod pending_call;
mod program_names;
pub mod proto;
mod reconciler;
mod rule_author;
mod rule_files;
mod rule_journal;
mod rule_set;
mod rule_snapshot;
mod rules_error;
mod server;
mod service_status;
mod switch_client;
mod switch_content;
mod switch_error;
mod switch_session;

pub use away_reason::AwayReason;
pub use compatibility::{ObjectDifference, ProgramDifference};
pub use grpc_admission::{BoundServer, Tls, TlsError};
pub use program_names::{MissingObject, ProgramNames};
pub use rule_files::FileError;
pub use rule_journal::{JournalError, LineMistake};
pub use rule_set::{ProgramWriter, RuleSetError, SubscriptionProgram, WrittenProgram};
pub use rules_error::RulesError;
pub use service_status::{ServiceEvent, ServiceStatus};
pub use switch_error::{Incompatibility, Unreachable};

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use authorization::Policy;
use grpc_admission::{CallTimeouts, ConnectionLimit, ServerThread};
use p4runtime_client::ServerTarget;
use privileges::{KeptAccess, PrivilegeError, RestrictionReport};
use tokio::sync::{Semaphore, watch};

use reconciler::{Command, Reconciler};
use rule_snapshot::RuleSnapshot;
use server::SubscriptionService;

/// Default port of the service.
pub const PORT: u16 = 9560;

/// Number of calls that can wait in the queue of changes.
const QUEUE_CALLS: usize = 64;
/// Number of calls that can read the rules at the same time.
const READER_CALLS: usize = 16;
/// Interval of keepalive messages on idle connections, and the time to answer one.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Maximum time that the end of the service waits for a change. A switch that does not answer is not waited for any
/// longer.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The settings of a service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rules file.
    pub rules: PathBuf,
    /// The journal of added rules. Without it they are lost when the service ends.
    pub kept: Option<PathBuf>,
    /// The switch's P4Runtime server.
    pub switch: ServerTarget,
    /// The device of that server.
    pub device_id: u64,
    /// The election id. Without it the service waits until no controller is primary, and uses the highest id that the
    /// switch has seen.
    pub election_id: Option<u128>,
    /// Whether the switch keeps its program: the service loads none.
    pub keep_program: bool,
    /// Returns what the operator can do if the switch cannot be used: text that follows the reason in the status and in
    /// answers to clients, with its punctuation; empty if there is no remedy.
    pub remedy: fn(&AwayReason) -> &'static str,
    /// TLS settings. With an authority of clients, only clients with its certificates are admitted.
    pub tls: Option<Tls>,
    /// The users and their rights; without it every client has every right.
    pub policy: Option<Arc<Policy>>,
    /// Access that the threads of the service and the caller's thread keep, beside that to the files of the rules: all
    /// other privileges are given up once the rules were read. `None` keeps every privilege.
    pub kept_access: Option<KeptAccess>,
    /// Maximum number of rules.
    pub max_rules: usize,
    /// Maximum number of rules that one call adds.
    pub max_request_rules: usize,
    /// Maximum number of connections. A new connection beyond it replaces the oldest one without an active call.
    pub max_connections: usize,
    /// Maximum time of a client to make its first call, to send a request, and to read an answer.
    pub client_timeout: Duration,
}

impl Settings {
    /// Creates settings with the default limits.
    pub fn new(rules: PathBuf, switch: ServerTarget) -> Settings {
        Settings {
            rules,
            kept: None,
            switch,
            device_id: 1,
            election_id: None,
            keep_program: false,
            remedy: |_| "",
            tls: None,
            policy: None,
            kept_access: None,
            max_rules: 1_000_000,
            max_request_rules: 10_000,
            max_connections: 64,
            client_timeout: Duration::from_secs(20),
        }
    }
}

/// A service that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be used.
    #[error("cannot listen for subscriptions on {0}")]
    Address(SocketAddr, #[source] std::io::Error),
    /// A certificate or key cannot be used.
    #[error("cannot use these TLS certificates and keys: {0}")]
    Tls(TlsError),
    /// The operating system provides no thread.
    #[error("cannot start the subscription service")]
    Start(#[source] std::io::Error),
    /// The process cannot give up its privileges.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// The rules have mistakes, or the file or the journal cannot be read or written.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The thread that reads the rules has panicked.
    #[error("the rules thread has exited; this is a bug")]
    Panicked,
}

/// A running service. Dropping it stops the service.
pub struct RunningService {
    status: watch::Receiver<ServiceStatus>,
    commands: Sender<Command>,
    reconciler: JoinHandle<()>,
    server: ServerThread,
    restriction: Option<RestrictionReport>,
}

impl RunningService {
    /// Returns the restriction of the service's threads, if there is one.
    pub fn restriction(&self) -> Option<RestrictionReport> {
        self.restriction
    }

    /// Returns the address of the service. Its port is the actual one, also where any port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the current status.
    pub fn status(&self) -> ServiceStatus {
        self.status.borrow().clone()
    }
}

impl Drop for RunningService {
    /// Ends the thread of changes first. The fields are dropped afterwards, and the server with them.
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        let deadline = Instant::now() + STOP_TIMEOUT;
        while !self.reconciler.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Calls a function when it is dropped, also by a panic.
struct EndNotice<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for EndNotice<F> {
    fn drop(&mut self) {
        if let Some(on_end) = self.0.take() {
            on_end();
        }
    }
}

/// Binds the address of a service. Clients can connect already, and wait in the kernel's queue.
///
/// # Errors
/// If the address cannot be used.
pub fn bind(address: SocketAddr) -> Result<BoundServer, StartError> {
    let listener = TcpListener::bind(address).map_err(|error| StartError::Address(address, error))?;
    BoundServer::new(listener).map_err(StartError::Start)
}

/// Restricts the calling thread to `kept` and the directories of the rules and of their journal.
fn restrict(
    kept: Option<KeptAccess>,
    files: &[PathBuf],
    journal: Option<&PathBuf>,
) -> Result<Option<RestrictionReport>, PrivilegeError> {
    let Some(mut kept) = kept else { return Ok(None) };
    // Editors and the journal itself replace files by renaming, so it is the directories that stay.
    for file in files {
        kept = kept.reading(privileges::directory_of(file));
    }
    if let Some(journal) = journal {
        // The journal follows a symbolic link before it replaces the file.
        let file = journal.canonicalize().unwrap_or_else(|_| journal.clone());
        kept = kept.writing(privileges::directory_of(&file));
    }
    privileges::restrict_thread(&kept).map(Some)
}

/// Starts a service on a bound address: reads the rules, and connects to the switch, which need not be reachable yet.
/// It reports events from its thread, and calls `on_end` there when it makes no more changes: when it was stopped, or
/// when a bug has ended the thread.
///
/// # Errors
/// If the rules have mistakes, privileges cannot be given up, or a certificate or key cannot be used.
pub fn start(
    program: SubscriptionProgram,
    settings: Settings,
    bound: BoundServer,
    report: impl Fn(ServiceEvent) + Send + 'static,
    on_end: impl FnOnce() + Send + 'static,
) -> Result<RunningService, StartError> {
    let mut builder = tonic::transport::Server::builder()
        .max_concurrent_streams(16)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE));
    if let Some(tls) = settings.tls.clone() {
        builder = tls.secure(builder, settings.client_timeout).map_err(StartError::Tls)?;
    }
    let (commands, received) = channel();
    let (status_sender, status) = watch::channel(ServiceStatus::default());
    let snapshot = Arc::new(RuleSnapshot::default());
    let (max_connections, client_timeout) = (settings.max_connections, settings.client_timeout);
    let service = SubscriptionService {
        commands: commands.clone(),
        status: status.clone(),
        snapshot: snapshot.clone(),
        policy: settings.policy.clone(),
        queue: Arc::new(Semaphore::new(QUEUE_CALLS)),
        readers: Arc::new(Semaphore::new(READER_CALLS)),
        // A call of Watch never ends by itself: half of the connections stay for other calls.
        watchers: Arc::new(Semaphore::new(max_connections / 2)),
    };
    let (ready, has_read) = channel();
    let (kept_access, journal) = (settings.kept_access.clone(), settings.kept.clone());
    let (handle, own_commands) = (bound.handle(), commands.clone());
    let end = EndNotice(Some(on_end));
    let reconcile = move || {
        let _end = end;
        let report = Box::new(report);
        match Reconciler::new(&program, &settings, handle, own_commands, status_sender, snapshot, report) {
            Ok(reconciler) => {
                let files = reconciler.files();
                if let Err(error) = restrict(settings.kept_access.clone(), &files, settings.kept.as_ref()) {
                    return drop(ready.send(Err(error.into())));
                }
                let _ = ready.send(Ok(files));
                reconciler.run(&received);
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    };
    let reconciler = std::thread::Builder::new().name("subscriptions".to_owned()).spawn(reconcile);
    let reconciler = reconciler.map_err(StartError::Start)?;
    let files = has_read.recv().unwrap_or(Err(StartError::Panicked))?;
    // Before the server's thread starts, which inherits it.
    let restriction = restrict(kept_access, &files, journal.as_ref())?;
    // All clients of this machine have one address, so addresses have no limits of their own.
    let limit = Arc::new(ConnectionLimit::new(max_connections, max_connections, |_| ()));
    let serve = move |listener| async move {
        let service = proto::subscriptions_server::SubscriptionsServer::new(service);
        let service = CallTimeouts::new(service, client_timeout, |path| path.ends_with("/Watch"));
        let incoming = grpc_admission::accept(listener, limit, client_timeout);
        // It ends only with the thread.
        let _ = builder.serve_with_incoming(service, incoming).await;
    };
    let server = bound.start("subscriptions-rpc", serve).map_err(StartError::Start)?;
    Ok(RunningService { status, commands, reconciler, server, restriction })
}
