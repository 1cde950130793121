//! Controls admission to gRPC servers: a limited number of connections, and none that excludes others by being idle.
//!
//! ```text
//!   listener ── accept ──> Connection, with its Slot ── tonic ──> CallTimeouts (calls of a Slot) ──> the service
//! ```
//!
//! - [`ConnectionLimit`] limits the connections, in total and for each client address. A new connection beyond the
//!   limit replaces the oldest one without an active call.
//! - [`accept()`] admits connections. It closes those that are replaced, and those without a call within a timeout,
//!   whatever they do in the layers below the calls: TLS and HTTP/2 are above it.
//! - [`CallTimeouts`] registers the calls of each connection, for services that do not do so themselves, and limits the
//!   time of requests and answers, so that no call lasts for ever because its client neither sends nor reads.
//! - [`Tls`] configures the server's certificate and the authority of its clients; [`client_certificate`] returns the
//!   verified certificate of a call's client.
//! - [`BoundServer`] and [`ServerThread`] run a server, of gRPC or not, in a thread of its own, until they are dropped.
//!
//! Servers may attach state to each connection ([`ConnectionLimit::new`]). The crate has no knowledge of any service.

#![forbid(unsafe_code)]

mod accept;
mod call_timeouts;
mod connection_limit;
mod server_thread;
mod tls;

pub use accept::{Connection, accept};
pub use call_timeouts::CallTimeouts;
pub use connection_limit::{ActiveCall, ConnectionLimit, Slot};
pub use server_thread::{BoundServer, ServerThread};
pub use tls::{Tls, TlsError, client_certificate};
