//! Sends and receives datagrams of the protocol.

use std::io;
use std::net::UdpSocket;

use resilient::{Peer, StoreMessage, wire_form};

use crate::cluster::Cluster;

/// Maximum length of a datagram that is received, in bytes.
const MAX_DATAGRAM: usize = 65_535;

/// A socket at the address of a member.
pub(crate) struct ClusterSocket {
    pub socket: UdpSocket,
    cluster: Cluster,
    buffer: Vec<u8>,
    /// Datagrams that were malformed, or from strangers.
    pub refused: u64,
    /// Datagrams that the system did not take.
    pub unsent: u64,
}

impl ClusterSocket {
    pub fn new(socket: UdpSocket, cluster: Cluster) -> ClusterSocket {
        ClusterSocket { socket, cluster, buffer: vec![0; MAX_DATAGRAM], refused: 0, unsent: 0 }
    }

    /// Receives a datagram, and returns its messages with their sender: none from a datagram that is not of the
    /// cluster. Returns `None` if no datagram comes within the socket's timeout.
    pub fn receive(&mut self) -> Option<Vec<(Peer, StoreMessage)>> {
        let (length, from) = match self.socket.recv_from(&mut self.buffer) {
            Ok(received) => received,
            Err(error) if is_nothing(&error) => return None,
            // An earlier datagram found no process at its receiver.
            Err(_) => return Some(Vec::new()),
        };
        let sender = self.cluster.peer_at(from);
        let Some((sender, messages)) = sender.zip(wire_form::read_datagram(&self.buffer[..length]).ok()) else {
            self.refused += 1;
            return Some(Vec::new());
        };
        Some(messages.into_iter().map(|message| (sender, message)).collect())
    }

    /// Sends messages. What cannot be sent is lost, as in the network.
    pub fn send(&mut self, messages: &[(Peer, StoreMessage)]) {
        for (to, datagram) in wire_form::datagrams(messages) {
            let Some(address) = self.cluster.address_of(to) else { continue };
            if self.socket.send_to(&datagram, address).is_err() {
                self.unsent += 1;
            }
        }
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
