//! Checks the state of an interface before load is offered to it.

use std::os::fd::AsFd;

use crate::PortError;
use crate::interface::Interface;

/// The state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Whether both the interface and its other end are up.
    pub is_up: bool,
    /// Maximum [`payload_len`](super::payload_len) of a frame that it sends.
    pub mtu: usize,
}

impl Link {
    /// Returns the state of an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// Returns an error if there is no such interface.
    pub fn of(interface: &str) -> Result<Link, PortError> {
        let failed = |what| move |source| PortError::system(what, interface, "cap_net_raw", source);
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed("opening a socket"))?;
        let interface = Interface::new(socket.as_fd(), interface);
        let mtu = interface.mtu().map_err(failed("looking up the interface"))?;
        let is_up = interface.has_link().map_err(failed("reading the link state"))?;
        Ok(Link { is_up, mtu })
    }
}
