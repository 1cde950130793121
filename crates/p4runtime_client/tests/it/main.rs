//! The client library against a server of this process, over the loopback interface.

mod calls;
mod mastership;
mod server;
mod tls;
