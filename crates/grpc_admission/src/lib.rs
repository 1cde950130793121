//! Who is connected to a gRPC server: so many connections, and none that shuts others out by doing nothing.
//!
//! ```text
//!   listener ── open ──> Guest, with its Seat ── tonic ──> Counted (calls of a Seat) ──> the service
//! ```
//!
//! [`Seats`] are places. Whoever comes when all are taken gets that of the oldest connection without a call under way.
//! [`open`] lets clients in, and closes connections that give way or have made no call in time, whatever they say or do not say
//! below: TLS and HTTP/2 are above it. [`Counted`] tells seats of their calls, for services that do nothing of the kind
//! themselves, and lets no call go on for ever because its client does not send or take what belongs to it.
//!
//! [`Tls`] is how such a server proves who it is, and which clients it lets in at all.
//!
//! What else a connection has, its owner says ([`Seats::new`]). Nothing here knows any service.

#![forbid(unsafe_code)]

mod counted;
mod door;
mod seats;
mod tls;

pub use counted::Counted;
pub use door::{Guest, open};
pub use seats::{Call, Seat, Seats};
pub use tls::Tls;
