//! Sends and receives datagrams of the protocol.

use std::fmt;
use std::io;
use std::net::UdpSocket;

use resilient::{DatagramSealer, Peer, RefusedDatagrams, StoreMessage};
use switch::Time;

use crate::cluster::{Cluster, ClusterMember};

/// Maximum length of a datagram that is received, in bytes.
const MAX_DATAGRAM: usize = 65_535;

/// A notice for the person who runs the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterNotice {
    /// A member has proved that its cluster file differs from this one. It is reported once.
    OtherSettings(ClusterMember),
    /// No store has been heard for a while. Packets that need one wait.
    StoresSilent,
    /// A store is heard again.
    StoresHeard,
}

impl fmt::Display for ClusterNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterNotice::OtherSettings(ClusterMember { name, address, .. }) => {
                write!(f, "`{name}` at {address} has another cluster file: its messages are ignored")
            }
            ClusterNotice::StoresSilent => f.write_str(
                "no store answers: packets that need a row wait; see whether the stores run, are reached, and have the \
                 same key",
            ),
            ClusterNotice::StoresHeard => f.write_str("the stores answer"),
        }
    }
}

/// Receives notices.
pub type NoticeHandler = Box<dyn FnMut(&ClusterNotice) + Send>;

/// A socket at the address of a member.
pub(crate) struct ClusterSocket {
    pub socket: UdpSocket,
    cluster: Cluster,
    sealer: DatagramSealer,
    buffer: Vec<u8>,
    on_notice: Option<NoticeHandler>,
    /// Datagrams that the system did not take.
    pub unsent: u64,
}

impl ClusterSocket {
    /// Creates the socket of a member. `start` is a random number, drawn at its start.
    pub fn new(socket: UdpSocket, cluster: Cluster, me: Peer, start: u64) -> ClusterSocket {
        let sealer = cluster.sealer(me, start);
        ClusterSocket { socket, cluster, sealer, buffer: vec![0; MAX_DATAGRAM], on_notice: None, unsent: 0 }
    }

    /// Returns the start number.
    pub fn start(&self) -> u64 {
        self.sealer.start()
    }

    /// Passes a notice to the handler.
    pub fn notice(&mut self, notice: &ClusterNotice) {
        self.on_notice.iter_mut().for_each(|handler| handler(notice));
    }

    /// Sets the handler of notices.
    pub fn on_notice(&mut self, handler: NoticeHandler) {
        self.on_notice = Some(handler);
    }

    /// Receives a datagram, and returns its messages with their sender: none from a rejected datagram.
    /// Returns `None` if no datagram arrives within the socket's timeout.
    pub fn receive(&mut self, now: Time) -> Option<Vec<(Peer, StoreMessage)>> {
        let (length, from) = match self.socket.recv_from(&mut self.buffer) {
            Ok(received) => received,
            Err(error) if is_nothing(&error) => return None,
            // An earlier datagram found no process at its receiver.
            Err(_) => return Some(Vec::new()),
        };
        let Some(sender) = self.cluster.peer_at(from) else {
            self.sealer.refuse_stranger();
            return Some(Vec::new());
        };
        let messages = self.sealer.open(now, sender, &self.buffer[..length]);
        self.send_sealed();
        for peer in self.sealer.take_disagreeing() {
            let member = self.cluster.members().find(|member| member.peer == peer);
            if let (Some(member), Some(handler)) = (member, &mut self.on_notice) {
                handler(&ClusterNotice::OtherSettings(member.clone()));
            }
        }
        Some(messages.into_iter().map(|message| (sender, message)).collect())
    }

    /// Sends messages. What cannot be sent is lost, as in the network.
    pub fn send(&mut self, now: Time, messages: &[(Peer, StoreMessage)]) {
        self.sealer.send(now, messages);
        self.send_sealed();
    }

    /// Returns the counts of datagrams that were refused.
    pub fn refused(&self) -> RefusedDatagrams {
        self.sealer.refused()
    }

    fn send_sealed(&mut self) {
        for (to, datagram) in self.sealer.take_outgoing() {
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
