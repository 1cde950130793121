//! The connections of a switch with its memory servers, and the ports that lead there.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use elastic::routes::ServerId;
use rdma::setup::SETUP_PORT;
use rdma::{FrameList, MemorySession, MemorySessionConfig, NumberSource, Receipt};
use switch::{Frame, PortId, Time};
use wire::{ethernet, ipv4, roce};

use crate::read_rate::ReadMeters;

/// The addresses of a switch in the network of its memory servers. Frames to them do not reach the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchAddress {
    /// Ethernet address.
    pub mac: ethernet::Address,
    /// IP address.
    pub address: Ipv4Addr,
}

impl SwitchAddress {
    /// Returns an IP address with an Ethernet address that is derived from it and locally administered. Memory servers
    /// derive theirs in the same way.
    pub fn of(address: Ipv4Addr) -> SwitchAddress {
        let [a, b, c, d] = address.octets();
        SwitchAddress { mac: ethernet::Address([0x02, 0x72, a, b, c, d]), address }
    }
}

/// A memory server, and the port of the switch that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryServerPort {
    /// Its IP address.
    pub address: Ipv4Addr,
    /// The port.
    pub port: PortId,
}

/// A session with a server, for the loans of one division.
#[derive(Debug)]
pub(crate) struct ServerSession {
    port: PortId,
    /// Whether the port is up. Nothing is sent otherwise.
    is_port_up: bool,
    pub session: MemorySession,
    /// READs of tables.
    pub reads: u64,
}

/// The sessions with all servers, by the numbers under which the tables know their loans.
#[derive(Debug)]
pub(crate) struct ServerSessions {
    own: SwitchAddress,
    sessions: BTreeMap<ServerId, ServerSession>,
    meters: ReadMeters,
}

impl ServerSessions {
    pub fn new(own: SwitchAddress, meters: ReadMeters) -> ServerSessions {
        ServerSessions { own, sessions: BTreeMap::new(), meters }
    }

    /// Returns the meters of the ports.
    pub fn meters(&mut self) -> &mut ReadMeters {
        &mut self.meters
    }

    /// Whether it is time to meter the traffic of others.
    #[inline]
    pub fn is_sample_due(&self, now: Time) -> bool {
        self.meters.is_sample_due(now)
    }

    /// Begins a session with a connection for each table, which needs this many bytes of the server's memory.
    pub fn begin(&mut self, id: ServerId, port: PortId, config: MemorySessionConfig, sizes: &[u64]) {
        self.meters.add(id, port);
        self.sessions
            .insert(id, ServerSession { port, is_port_up: true, session: MemorySession::new(config, sizes), reads: 0 });
    }

    /// Ends a session. Its last frames release the memory.
    pub fn end(&mut self, id: ServerId, frames: &mut Vec<Frame>) {
        self.meters.remove(id);
        if let Some(ServerSession { port, session, is_port_up: true, .. }) = self.sessions.remove(&id) {
            frames.extend(session.end().into_iter().map(|data| Frame { port, data }));
        }
    }

    /// Returns a session, unless it has ended.
    pub fn get(&self, id: ServerId) -> Option<&ServerSession> {
        self.sessions.get(&id)
    }

    /// Returns a session, to change.
    pub fn get_mut(&mut self, id: ServerId) -> Option<&mut ServerSession> {
        self.sessions.get_mut(&id)
    }

    /// Whether there is a session with this number.
    pub fn has(&self, id: ServerId) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Gives up the connections of servers behind ports that are down. They are opened again when the port is up. If
    /// the ports of all servers are down, none is given up: the copies would be lost, and there are no others.
    pub fn update_ports(&mut self, is_up: impl Fn(PortId) -> bool) {
        if !self.sessions.values().any(|of_server| is_up(of_server.port)) {
            return;
        }
        for of_server in self.sessions.values_mut() {
            let was_up = std::mem::replace(&mut of_server.is_port_up, is_up(of_server.port));
            if was_up && !of_server.is_port_up {
                of_server.session.close_all();
            }
        }
    }

    /// Does the due work of sessions whose ports are up.
    pub fn tick(&mut self, now: Time, random: &mut dyn NumberSource) {
        let up = self.sessions.values_mut().filter(|of_server| of_server.is_port_up);
        up.for_each(|of_server| of_server.session.tick(now, random));
    }

    /// Returns all sessions, to change, with their numbers, and the meters of the ports.
    pub fn parts(&mut self) -> (impl Iterator<Item = (ServerId, &mut MemorySession)>, &mut ReadMeters) {
        let sessions = self.sessions.iter_mut().map(|(id, of_server)| (*id, &mut of_server.session));
        (sessions, &mut self.meters)
    }

    /// Returns the time at which a session has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        let up = self.sessions.values().filter(|of_server| of_server.is_port_up);
        up.filter_map(|of_server| of_server.session.next_deadline()).min()
    }

    /// Takes a frame that arrived on a port, if it has the form of a memory server's frame to this switch. Returns
    /// whether it has. Late frames of earlier connections and frames from ports without a server are taken, too, so
    /// that they do not reach the program. Frames of a server are accepted only on its own port.
    #[inline]
    pub fn take(&mut self, now: Time, port: PortId, frame: &[u8]) -> bool {
        if !self.is_own(frame) {
            return false;
        }
        let of_port = |of_server: &&mut ServerSession| of_server.port == port && of_server.is_port_up;
        for of_server in self.sessions.values_mut().filter(of_port) {
            if of_server.session.on_frame(now, frame) == Receipt::Ours {
                self.meters.count_received(port, frame.len());
                break;
            }
        }
        true
    }

    /// Whether a frame is for the address of the switch, and for a UDP port of memory servers. The ports follow an
    /// IP header of 20 bytes: memory servers send no options.
    #[inline(always)]
    pub fn is_own(&self, frame: &[u8]) -> bool {
        const IP: usize = ethernet::HEADER_LEN;
        const HEAD: usize = IP + ipv4::HEADER_LEN + 4;
        let Some(head) = frame.first_chunk::<HEAD>() else { return false };
        // Nearly all frames are for another address, so this comes first.
        if head[IP + 16..IP + 20] != self.own.address.octets() {
            return false;
        }
        let port = u16::from_be_bytes([head[IP + 22], head[IP + 23]]);
        head[12..14] == ethernet::IPV4.to_be_bytes()
            && head[IP + 9] == ipv4::UDP
            && (port == roce::PORT || port == SETUP_PORT)
    }

    /// Sends what may be sent now.
    pub fn transmit(&mut self, now: Time, frames: &mut Vec<Frame>) {
        let mut list = FrameList::default();
        for ServerSession { port, session, .. } in self.sessions.values_mut().filter(|of_server| of_server.is_port_up) {
            session.transmit(now, &mut list);
            while let Some(data) = list.pop() {
                frames.push(Frame { port: *port, data });
            }
        }
    }
}
