//! Sends requests and their answers over one TCP connection.

use std::any::Any;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;

use super::measure::{Measured, Measurement};
use super::tcp::WINDOW;
use crate::sim::{App, Io};

/// Bytes of the header of a request: the request's length and the answer's.
const HEAD: usize = 16;

/// Sends requests one after the other, each after the answer to the last one and a think time.
pub struct RequestClient {
    to: (Ipv4Addr, u16),
    request: u64,
    response: u64,
    think_ns: f64,
    next: Time,
    stop: Time,
    socket: Option<SocketHandle>,
    /// Bytes of the request left to write, bytes of the answer left to read, and the time at which the request began;
    /// `None` while thinking.
    under_way: Option<(u64, u64, Time)>,
    measured: Measured,
}

impl RequestClient {
    /// Creates a client with requests of `request` bytes (16 at least), answers of `response` bytes, and a mean think
    /// time of `think_ns`.
    pub fn new(
        to: (Ipv4Addr, u16),
        request: u64,
        response: u64,
        think_ns: f64,
        start: Time,
        stop: Time,
    ) -> RequestClient {
        RequestClient {
            to,
            request: request.max(HEAD as u64),
            response: response.max(1),
            think_ns,
            next: start,
            stop,
            socket: None,
            under_way: None,
            measured: Measured::default(),
        }
    }
}

impl App for RequestClient {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        if io.now < self.next && self.under_way.is_none() {
            return Some(self.next);
        }
        let handle = *self.socket.get_or_insert_with(|| {
            let mut socket = Socket::new(SocketBuffer::new(vec![0; WINDOW]), SocketBuffer::new(vec![0; WINDOW]));
            socket.set_nagle_enabled(false);
            let port = io.free_port();
            let connected = socket.connect(io.context, IpEndpoint::new(IpAddress::Ipv4(self.to.0), self.to.1), port);
            debug_assert!(connected.is_ok(), "a fresh socket can connect to an address");
            io.sockets.add(socket)
        });
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        if self.under_way.is_none() {
            if self.next >= self.stop {
                socket.close();
                return None;
            }
            self.under_way = Some((self.request, self.response, io.true_now));
            self.measured.sent += 1;
        }
        let (to_write, to_read, began) = self.under_way.as_mut().expect("one is under way");
        while *to_write > 0 && socket.can_send() {
            let at = (self.request - *to_write) as usize;
            let head = [self.request.to_be_bytes(), self.response.to_be_bytes()].concat();
            let filled = socket.send(|buffer| {
                let len = buffer.len().min(*to_write as usize);
                buffer[..len].fill(0);
                let rest = head.get(at..).unwrap_or_default();
                let headed = rest.len().min(len);
                buffer[..headed].copy_from_slice(&rest[..headed]);
                (len, len)
            });
            let Ok(filled @ 1..) = filled else { break };
            *to_write -= filled as u64;
        }
        while *to_read > 0 && socket.can_recv() {
            let Ok(taken @ 1..) = socket.recv(|buffer| {
                let len = buffer.len().min(*to_read as usize);
                (len, len)
            }) else {
                break;
            };
            *to_read -= taken as u64;
            self.measured.arrived(io.true_now, taken as u64);
        }
        if *to_read == 0 {
            self.measured.received += 1;
            self.measured.took(io.true_now.since_ns(*began));
            self.under_way = None;
            self.next = io.now.after_ns(io.random.exponential_ns(self.think_ns).max(1));
            return Some(self.next);
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for RequestClient {
    fn measured(&self) -> &Measured {
        &self.measured
    }
}

/// Answers the requests of [`RequestClient`]s.
pub struct RequestServer {
    port: u16,
    serving: Vec<Serving>,
}

struct Serving {
    handle: SocketHandle,
    head: Vec<u8>,
    /// Bytes of the current request that were read.
    read: u64,
    /// Bytes of answers left to write.
    to_write: u64,
}

/// Number of sockets that listen for connections at the same time.
const LISTENING: usize = 4;

impl RequestServer {
    /// Creates a server at a port.
    pub fn new(port: u16) -> RequestServer {
        RequestServer { port, serving: Vec::new() }
    }
}

impl Serving {
    fn serve(&mut self, socket: &mut Socket<'_>) {
        while socket.can_recv() {
            let (head, read) = (&mut self.head, self.read);
            let taken = socket.recv(|buffer| {
                let missing = HEAD.saturating_sub(head.len()).min(buffer.len());
                if missing > 0 {
                    head.extend_from_slice(&buffer[..missing]);
                    return (missing, missing);
                }
                let total = u64::from_be_bytes(head[..8].try_into().expect("eight bytes"));
                let len = buffer.len().min(total.saturating_sub(read) as usize);
                (len, len)
            });
            let Ok(taken) = taken else { break };
            self.read += taken as u64;
            if self.head.len() < HEAD {
                continue;
            }
            let total = u64::from_be_bytes(self.head[..8].try_into().expect("eight bytes"));
            if self.read >= total {
                let response = u64::from_be_bytes(self.head[8..].try_into().expect("eight bytes"));
                self.to_write = self.to_write.saturating_add(response);
                self.head.clear();
                self.read = 0;
            }
        }
        while self.to_write > 0 && socket.can_send() {
            let to_write = self.to_write;
            let Ok(filled @ 1..) = socket.send(|buffer| {
                let len = buffer.len().min(usize::try_from(to_write).unwrap_or(usize::MAX));
                buffer[..len].fill(0);
                (len, len)
            }) else {
                break;
            };
            self.to_write -= filled as u64;
        }
    }
}

impl App for RequestServer {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        self.serving.retain_mut(|one| {
            let socket = io.sockets.get_mut::<Socket<'_>>(one.handle);
            one.serve(socket);
            if socket.state() == State::CloseWait && one.to_write == 0 {
                socket.close();
            }
            let over = matches!(socket.state(), State::Closed | State::TimeWait);
            if over {
                io.sockets.remove(one.handle);
            }
            !over
        });
        let listening = |one: &&Serving| io.sockets.get::<Socket<'_>>(one.handle).is_listening();
        let missing = LISTENING - self.serving.iter().filter(listening).count().min(LISTENING);
        for _ in 0..missing {
            let mut socket = Socket::new(SocketBuffer::new(vec![0; WINDOW]), SocketBuffer::new(vec![0; WINDOW]));
            socket.set_nagle_enabled(false);
            let listening = socket.listen(self.port);
            debug_assert!(listening.is_ok(), "a fresh socket can listen");
            self.serving.push(Serving { handle: io.sockets.add(socket), head: Vec::new(), read: 0, to_write: 0 });
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
