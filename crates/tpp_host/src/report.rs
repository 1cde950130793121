//! Sends the reports of INT sinks to a collector.

use std::net::{SocketAddr, UdpSocket};

use crate::{HostError, connected};

/// A socket to a collector. It never blocks: a report for which it has no room is lost, as sequence numbers show.
#[derive(Debug)]
pub struct ReportSocket(UdpSocket);

impl ReportSocket {
    /// Opens a socket to the collector at an address.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be opened.
    pub fn open(collector: SocketAddr) -> Result<ReportSocket, HostError> {
        let open = |error| HostError::Open(collector, error);
        let socket = connected(collector).map_err(open)?;
        socket.set_nonblocking(true).map_err(open)?;
        Ok(ReportSocket(socket))
    }

    /// Sends a report. A collector that does not listen loses it.
    pub fn send(&self, report: &[u8]) {
        // Reports are telemetry: nothing waits for them, and their numbers show losses.
        let _ = self.0.send(report);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn reports_arrive_and_a_missing_collector_does_not_matter() {
        let collector = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let address = collector.local_addr().expect("it is bound");
        let socket = ReportSocket::open(address).expect("a socket");
        socket.send(b"report");
        let mut buffer = [0; 16];
        let len = collector.recv(&mut buffer).expect("a datagram");
        assert_eq!(&buffer[..len], b"report");
        drop(collector);
        (0..3).for_each(|_| socket.send(b"lost"));
    }
}
