//! The connections of a switch with one memory server: they are opened again whenever they fail.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use switch::Time;
use wire::checksum::Addresses;
use wire::ethernet;
use wire::roce::Mtu;

use crate::endpoint::{QpEndpoint, QpNumber};
use crate::frame::Receipt;
use crate::path::FramePath;
use crate::random::NumberSource;
use crate::requester::{
    FailureReason, MemoryRange, RequestOutcome, RequestRefusal, Requester, RequesterConfig, RequesterCounts,
};
use crate::setup::{self, ConnectRefusal, ConnectReply, ConnectRequest, MemoryGrant, RENEW_NS, SetupFrame};
use crate::sink::FrameSink;

/// Number of `retry_ns` that pass before memory is requested again from a server that has refused it, or damaged it.
const REFUSAL_RETRIES: u64 = 8;

/// Addresses and times of a session.
#[derive(Clone, Copy, Debug)]
pub struct MemorySessionConfig {
    /// Ethernet address of the switch.
    pub mac: ethernet::Address,
    /// IP address of the switch.
    pub address: Ipv4Addr,
    /// IP address of the server.
    pub server: Ipv4Addr,
    /// Maximum payload of a packet.
    pub mtu: Mtu,
    /// The server's number of the first connection. Sessions with a server at the same time have different numbers.
    pub first_slot: u32,
    /// Time after which a request for memory is repeated, in nanoseconds.
    pub retry_ns: u64,
    /// Limits of requests.
    pub requester: RequesterConfig,
}

/// An event of a connection, which its slot names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// It is open, with zeroed memory.
    Up(u32),
    /// It failed, with all requests that have not completed. It is opened again.
    Down(u32),
    /// A request completed: slot and token.
    Completed(u32, u64),
}

/// A READ or WRITE that its queue pair has no room for.
#[derive(Debug)]
enum WaitingRequest {
    Read { token: u64, address: u64, len: u32 },
    Write { token: u64, address: u64, data: Vec<u8> },
}

/// A request for memory. The switch's queue pair is open.
#[derive(Clone, Copy, Debug)]
struct SlotRequest {
    nonce: u64,
    endpoint: QpEndpoint,
    /// The loan to replace, as far as it is known.
    replaces: u64,
}

#[derive(Clone, Copy, Debug)]
enum ConnectionState {
    /// There is no reply. The request is repeated at this time.
    Asking { request: SlotRequest, at: Time },
    /// The request is repeated at this time, so that the server keeps the connection.
    Up { request: SlotRequest, grant: MemoryGrant, at: Time },
    /// Opened again at this time.
    Down { until: Time },
}

#[derive(Debug)]
struct SessionSlot {
    bytes: u64,
    state: ConnectionState,
    waiting: VecDeque<WaitingRequest>,
}

impl SessionSlot {
    /// Returns the number of the queue pair of an open connection.
    fn open_number(&self) -> Option<QpNumber> {
        match self.state {
            ConnectionState::Up { request, .. } => Some(request.endpoint.number),
            ConnectionState::Asking { .. } | ConnectionState::Down { .. } => None,
        }
    }
}

/// The connections of a switch with one memory server.
#[derive(Debug)]
pub struct MemorySession {
    config: MemorySessionConfig,
    requester: Requester,
    connections: Vec<SessionSlot>,
    /// Frames with requests for memory.
    setup_frames: VecDeque<Vec<u8>>,
    /// Connections that came up or went down.
    changes: VecDeque<SessionEvent>,
    refusal: Option<ConnectRefusal>,
    answer: Vec<u8>,
}

impl MemorySession {
    /// Creates a session with a connection for each of these sizes of memory, in bytes.
    pub fn new(config: MemorySessionConfig, sizes: &[u64]) -> MemorySession {
        let state = ConnectionState::Down { until: Time::ZERO };
        let connections = sizes.iter().map(|bytes| SessionSlot { bytes: *bytes, state, waiting: VecDeque::new() });
        MemorySession {
            config,
            requester: Requester::new(config.requester),
            connections: connections.collect(),
            setup_frames: VecDeque::new(),
            changes: VecDeque::new(),
            refusal: None,
            answer: Vec::new(),
        }
    }

    /// Returns the address of the server.
    pub fn server(&self) -> Ipv4Addr {
        self.config.server
    }

    /// Returns the number of open connections.
    pub fn open_connections(&self) -> usize {
        self.connections.iter().filter(|it| matches!(it.state, ConnectionState::Up { .. })).count()
    }

    /// Whether a connection is open.
    pub fn is_open(&self, slot: u32) -> bool {
        self.connections.get(slot as usize).is_some_and(|it| matches!(it.state, ConnectionState::Up { .. }))
    }

    /// Returns the reason of the last refusal, if the server has not lent memory since.
    pub fn refusal(&self) -> Option<ConnectRefusal> {
        self.refusal
    }

    /// Returns the counts of requests.
    pub fn counts(&self) -> &RequesterCounts {
        self.requester.counts()
    }

    /// Requests to read memory of a connection. Nothing happens if it is not open.
    pub fn read(&mut self, slot: u32, token: u64, address: u64, len: u32) {
        self.submit(slot, WaitingRequest::Read { token, address, len });
    }

    /// Requests to write memory of a connection, as [`MemorySession::read`].
    pub fn write(&mut self, slot: u32, token: u64, address: u64, data: Vec<u8>) {
        self.submit(slot, WaitingRequest::Write { token, address, data });
    }

    fn submit(&mut self, slot: u32, request: WaitingRequest) {
        let Some(connection) = self.connections.get_mut(slot as usize) else { return };
        if matches!(connection.state, ConnectionState::Up { .. }) {
            connection.waiting.push_back(request);
            submit_waiting(&mut self.requester, connection);
        }
    }

    /// Performs due work: retransmits or fails READs and WRITEs, repeats requests for memory, and opens connections.
    pub fn tick(&mut self, now: Time, rng: &mut dyn NumberSource) {
        self.requester.tick(now);
        for slot in 0..self.connections.len() {
            match self.connections[slot].state {
                ConnectionState::Up { request, grant, at } if at <= now => {
                    let at = now.after_ns(RENEW_NS);
                    self.connections[slot].state = ConnectionState::Up { request, grant, at };
                    self.send_request(slot, request);
                }
                ConnectionState::Down { until } if until <= now => self.open(now, slot, rng),
                ConnectionState::Asking { request, at } if at <= now => self.ask(now, slot, request),
                ConnectionState::Up { .. } | ConnectionState::Down { .. } | ConnectionState::Asking { .. } => {}
            }
        }
    }

    fn open(&mut self, now: Time, slot: usize, rng: &mut dyn NumberSource) {
        let MemorySessionConfig { mac, address, server, mtu, .. } = self.config;
        let path = FramePath::new(mac, ethernet::Address::BROADCAST, Addresses::V4(address, server), mtu);
        // There is a place: a session has few connections, and closes those that failed.
        if let Ok(endpoint) = self.requester.open(rng, path) {
            self.ask(now, slot, SlotRequest { nonce: rng.next_u64(), endpoint, replaces: 0 });
        }
    }

    fn ask(&mut self, now: Time, slot: usize, request: SlotRequest) {
        let at = now.after_ns(self.config.retry_ns);
        self.connections[slot].state = ConnectionState::Asking { request, at };
        self.send_request(slot, request);
    }

    fn send_request(&mut self, slot: usize, request: SlotRequest) {
        let frame = self.request_frame(slot, request, self.connections[slot].bytes);
        self.setup_frames.push_back(frame);
    }

    fn request_frame(&self, slot: usize, request: SlotRequest, bytes: u64) -> Vec<u8> {
        let MemorySessionConfig { mac, address, server, mtu, first_slot, .. } = self.config;
        let SlotRequest { nonce, endpoint, replaces } = request;
        let request = ConnectRequest { nonce, slot: first_slot + slot as u32, endpoint, mtu, bytes, replaces };
        let destination = ethernet::Address::BROADCAST;
        let ethernet = ethernet::Repr { destination, source: mac, ethertype: ethernet::IPV4 };
        setup::frame(ethernet, address, server, &request.to_bytes())
    }

    /// Ends the session. Returns frames that release its memory; the server reclaims it later if they are lost.
    pub fn end(self) -> Vec<Vec<u8>> {
        let requests = self.connections.iter().enumerate().filter_map(|(slot, connection)| match connection.state {
            ConnectionState::Asking { request, .. } | ConnectionState::Up { request, .. } => Some((slot, request)),
            ConnectionState::Down { .. } => None,
        });
        requests.map(|(slot, request)| self.request_frame(slot, request, 0)).collect()
    }

    /// Processes a received frame.
    pub fn on_frame(&mut self, now: Time, frame: &[u8]) -> Receipt {
        if let Receipt::Ours = self.requester.on_frame(now, frame) {
            return Receipt::Ours;
        }
        let Some(received) = SetupFrame::parse(frame) else { return Receipt::NotOurs };
        if (received.source, received.destination) != (self.config.server, self.config.address) {
            return Receipt::NotOurs;
        }
        let Some(reply) = ConnectReply::parse(received.payload) else { return Receipt::NotOurs };
        self.on_reply(now, received.ethernet_source, &reply)
    }

    /// Processes the reply to a request of this session. There may be other sessions with the server.
    fn on_reply(&mut self, now: Time, server: ethernet::Address, reply: &ConnectReply) -> Receipt {
        let is_asked = |it: &SessionSlot| match it.state {
            ConnectionState::Up { request, .. } | ConnectionState::Asking { request, .. } => {
                request.nonce == reply.nonce
            }
            ConnectionState::Down { .. } => false,
        };
        if !self.connections.iter().any(is_asked) {
            return Receipt::NotOurs;
        }
        let renewed = self.connections.iter().position(|connection| match connection.state {
            // The server has forgotten the connection that was to be renewed.
            ConnectionState::Up { request, grant, .. } => {
                request.nonce == reply.nonce && has_lost_connection(grant, reply)
            }
            ConnectionState::Asking { .. } | ConnectionState::Down { .. } => false,
        });
        if let Some(slot) = renewed {
            self.close_connection(slot, now);
            return Receipt::Ours;
        }
        let asked = self.connections.iter_mut().enumerate().find_map(|(slot, connection)| match connection.state {
            ConnectionState::Asking { request, .. } if request.nonce == reply.nonce => {
                Some((slot, connection, request))
            }
            _ => None,
        });
        let Some((slot, connection, request)) = asked else { return Receipt::Ours };
        let endpoint = request.endpoint;
        match reply.result {
            Ok(grant) => {
                self.requester.set_destination(endpoint.number, server);
                if self.requester.connect(endpoint.number, grant.endpoint).is_ok() {
                    connection.state = ConnectionState::Up { request, grant, at: now.after_ns(RENEW_NS) };
                    self.refusal = None;
                    self.changes.push_back(SessionEvent::Up(slot as u32));
                }
            }
            Err(ConnectRefusal::Occupied { loan }) => {
                // Another reply to the same attempt is a copy.
                if loan != request.replaces {
                    self.ask(now, slot, SlotRequest { replaces: loan, ..request });
                }
            }
            Err(refusal) => {
                self.refusal = Some(refusal);
                self.requester.close(endpoint.number);
                connection.state =
                    ConnectionState::Down { until: now.after_ns(REFUSAL_RETRIES * self.config.retry_ns) };
            }
        }
        Receipt::Ours
    }

    /// Removes and returns the next event. The bytes of a completed READ are in [`MemorySession::answer`].
    pub fn next_event(&mut self, now: Time) -> Option<SessionEvent> {
        if let Some(change) = self.changes.pop_front() {
            return Some(change);
        }
        while let Some(completion) = self.requester.next_completion() {
            let (number, token) = (completion.number, completion.token);
            self.answer.clear();
            if let RequestOutcome::Read(bytes) = completion.outcome {
                self.answer.extend_from_slice(bytes);
            }
            let failure = match completion.outcome {
                RequestOutcome::Failed(failure) => Some(failure),
                _ => None,
            };
            let is_of = |it: &SessionSlot| it.open_number() == Some(number);
            // Requests that fail with their connection complete after it, and its failure has reported them.
            let Some(slot) = self.connections.iter().position(is_of) else { continue };
            if let Some(failure) = failure {
                // A server that does not answer is dead, or has forgotten all connections.
                let is_dead = failure == FailureReason::NoAnswer;
                for other in (0..self.connections.len()).filter(|other| is_dead || *other == slot) {
                    self.close_connection(other, now.after_ns(self.config.retry_ns));
                }
                return self.changes.pop_front();
            }
            return Some(SessionEvent::Completed(slot as u32, token));
        }
        None
    }

    /// Closes a connection whose memory is damaged. Another one, with new memory, is opened after the delay that
    /// follows a refusal.
    pub fn give_up(&mut self, now: Time, slot: u32) {
        if (slot as usize) < self.connections.len() {
            self.close_connection(slot as usize, now.after_ns(REFUSAL_RETRIES * self.config.retry_ns));
        }
    }

    /// Closes all open connections at once. The next [`MemorySession::tick`] asks for new ones, so the owner calls it
    /// only while the server can be reached.
    pub fn close_all(&mut self) {
        self.setup_frames.clear();
        for slot in 0..self.connections.len() {
            if let ConnectionState::Asking { at, .. } = &mut self.connections[slot].state {
                *at = Time::ZERO;
            }
            self.close_connection(slot, Time::ZERO);
        }
    }

    /// Closes an open connection, and opens another one at `until`.
    fn close_connection(&mut self, slot: usize, until: Time) {
        let connection = &mut self.connections[slot];
        let Some(number) = connection.open_number() else { return };
        connection.state = ConnectionState::Down { until };
        connection.waiting.clear();
        self.requester.close(number);
        self.changes.push_back(SessionEvent::Down(slot as u32));
    }

    /// Returns the bytes of the READ that [`MemorySession::next_event`] returned last; none after another event.
    pub fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Writes frames to `sink` until there is no room or nothing may be sent now.
    pub fn transmit(&mut self, now: Time, sink: &mut impl FrameSink) {
        for connection in &mut self.connections {
            submit_waiting(&mut self.requester, connection);
        }
        while let Some(frame) = self.setup_frames.front() {
            let Some(room) = sink.room(frame.len()) else { return };
            room[..frame.len()].copy_from_slice(frame);
            sink.commit(frame.len());
            self.setup_frames.pop_front();
        }
        self.requester.transmit(now, sink);
    }

    /// Returns the time at which [`MemorySession::tick`] or [`MemorySession::transmit`] has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        let of_connection = |connection: &SessionSlot| match connection.state {
            ConnectionState::Asking { at, .. } | ConnectionState::Up { at, .. } => at,
            ConnectionState::Down { until } => until,
        };
        self.connections.iter().map(of_connection).chain(self.requester.next_event()).min()
    }
}

/// Whether a reply to a renewal shows that the server no longer has the connection. An `Occupied` reply does not: it is
/// a late copy from before the connection was opened.
fn has_lost_connection(grant: MemoryGrant, reply: &ConnectReply) -> bool {
    reply.result != Ok(grant) && !matches!(reply.result, Err(ConnectRefusal::Occupied { .. }))
}

/// Submits waiting requests in order, as long as the requester has room.
fn submit_waiting(requester: &mut Requester, connection: &mut SessionSlot) {
    let ConnectionState::Up { request: open, grant, .. } = connection.state else { return };
    let (number, key) = (open.endpoint.number, grant.key);
    while let Some(request) = connection.waiting.front() {
        let result = match request {
            WaitingRequest::Read { token, address, len } => {
                requester.read(number, *token, MemoryRange { address: *address, key, len: *len })
            }
            WaitingRequest::Write { token, address, data } => requester.write(number, *token, *address, key, data),
        };
        match result {
            Err(RequestRefusal::Full) => return,
            // If the queue pair has failed, its failure is among the completions.
            _ => _ = connection.waiting.pop_front(),
        }
    }
}
