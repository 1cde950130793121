//! The connections of a switch with its memory servers, and the ports that lead there.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use elastic::routes::ServerId;
use rdma::setup::SETUP_PORT;
use rdma::{FrameList, MemorySession, MemorySessionConfig, NumberSource, Receipt};
use switch::{Frame, PortId, Time};
use wire::{ethernet, ipv4, roce};

use crate::hold_down::HoldDown;
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
    /// Whether frames are sent and accepted. Not so behind a port that is down, or that is held down.
    is_in_use: bool,
    hold_down: HoldDown,
    pub session: MemorySession,
    /// READs of tables.
    pub reads: u64,
}

/// The sessions with all servers, by the numbers under which the tables know their loans.
#[derive(Debug)]
pub(crate) struct ServerSessions {
    own: SwitchAddress,
    sessions: BTreeMap<ServerId, ServerSession>,
    /// Whether a server behind a port that is down could not be spared.
    is_one_unspared: bool,
    meters: ReadMeters,
}

impl ServerSessions {
    pub fn new(own: SwitchAddress, meters: ReadMeters) -> ServerSessions {
        ServerSessions { own, sessions: BTreeMap::new(), is_one_unspared: false, meters }
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
        let (session, hold_down) = (MemorySession::new(config, sizes), HoldDown::default());
        self.sessions.insert(id, ServerSession { port, is_in_use: true, hold_down, session, reads: 0 });
    }

    /// Ends a session. Its last frames release the memory.
    pub fn end(&mut self, id: ServerId, frames: &mut Vec<Frame>) {
        self.meters.remove(id);
        if let Some(ServerSession { port, session, is_in_use: true, .. }) = self.sessions.remove(&id) {
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

    /// Gives up the connections of servers behind ports that are down, and opens them again when the ports are up and
    /// their hold-down is over, or when no other server is in use.
    ///
    /// `can_spare` says whether the tables have everything that a server holds on those other servers for which its
    /// argument holds. A server that cannot be spared stays in use: its copies would be lost, and there are no others.
    /// If its port stays down, timeouts decide. Returns whether a server was given up.
    pub fn update_ports(
        &mut self,
        now: Time,
        is_up: impl Fn(PortId) -> bool,
        can_spare: impl Fn(ServerId, &dyn Fn(ServerId) -> bool) -> bool,
    ) -> bool {
        let is_reachable = |of_server: &ServerSession| of_server.is_in_use && is_up(of_server.port);
        self.is_one_unspared = false;
        if self.sessions.values().all(is_reachable) {
            return false;
        }
        let reachable = self.sessions.iter().filter(|(_, of_server)| is_reachable(of_server)).map(|(id, _)| *id);
        let reachable: Vec<ServerId> = reachable.collect();
        let mut is_one_given_up = false;
        for (id, of_server) in &mut self.sessions {
            match (of_server.is_in_use, is_up(of_server.port)) {
                (true, true) => {}
                (true, false) => {
                    if can_spare(*id, &|other| reachable.contains(&other)) {
                        of_server.is_in_use = false;
                        of_server.hold_down.lose(now);
                        of_server.session.close_all();
                        is_one_given_up = true;
                    } else {
                        self.is_one_unspared = true;
                    }
                }
                (false, false) => of_server.hold_down.lose(now),
                (false, true) => {
                    let until = of_server.hold_down.regain(now);
                    of_server.is_in_use = now >= until || reachable.is_empty();
                }
            }
        }
        is_one_given_up
    }

    /// Whether a server behind a port that is down is in use, as it could not be spared.
    pub fn is_one_unspared(&self) -> bool {
        self.is_one_unspared
    }

    /// Does the due work of sessions in use.
    pub fn tick(&mut self, now: Time, random: &mut dyn NumberSource) {
        let in_use = self.sessions.values_mut().filter(|of_server| of_server.is_in_use);
        in_use.for_each(|of_server| of_server.session.tick(now, random));
    }

    /// Returns all sessions, to change, with their numbers, and the meters of the ports.
    pub fn parts(&mut self) -> (impl Iterator<Item = (ServerId, &mut MemorySession)>, &mut ReadMeters) {
        let sessions = self.sessions.iter_mut().map(|(id, of_server)| (*id, &mut of_server.session));
        (sessions, &mut self.meters)
    }

    /// Returns the time at which a session has something to do, or is used again.
    pub fn next_deadline(&self) -> Option<Time> {
        let of_server = |of_server: &ServerSession| match of_server.is_in_use {
            true => of_server.session.next_deadline(),
            false => of_server.hold_down.until(),
        };
        self.sessions.values().filter_map(of_server).min()
    }

    /// Takes a frame that arrived on a port, if it has the form of a memory server's frame to this switch. Returns
    /// whether it has. Late frames of earlier connections and frames from ports without a server are taken, too, so
    /// that they do not reach the program. Frames of a server are accepted only on its own port.
    #[inline]
    pub fn take(&mut self, now: Time, port: PortId, frame: &[u8]) -> bool {
        if !self.is_own(frame) {
            return false;
        }
        let of_port = |of_server: &&mut ServerSession| of_server.port == port && of_server.is_in_use;
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
        for ServerSession { port, session, .. } in self.sessions.values_mut().filter(|of_server| of_server.is_in_use) {
            session.transmit(now, &mut list);
            while let Some(data) = list.pop() {
                frames.push(Frame { port: *port, data });
            }
        }
    }
}
