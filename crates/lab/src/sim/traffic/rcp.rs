//! Sends datagrams at the rate that RCP* allows ([`tpp::rcp`]).

use std::any::Any;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::Socket;
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;
use tpp::TinyProgram;
use tpp::probe::{Echo, Prober};
use tpp::rcp::{RcpController, RcpCounts, RcpSettings};
use wire::tpp::UDP_PORT;

use super::pacing::Pacer;
use super::udp::{HEADERS, STAMP, open_socket, stamped};
use crate::sim::{App, Io};

/// Interval between two discoveries of the path.
const DISCOVER_NS: u64 = 2_000_000_000;

/// Share of the rate that programs may take where links are nearly busy, and the longest interval that this makes.
const PROGRAM_SHARE: f64 = 0.03;
const MAX_INTERVAL_NS: u64 = 200_000_000;

/// Time after which a program without an echo is lost.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Maximum number of samples and discoveries whose echoes are awaited.
const MAX_AWAITED: usize = 64;

/// Maximum length of a datagram with a program, in bytes.
const PROGRAM_BYTES: usize = 600;

/// Maximum number of datagrams that are sent at one moment.
const MAX_AT_ONCE: usize = 64;

/// Bytes that programs and their frames may take from the datagrams at a time: they are part of the flow's rate.
const MAX_DEBT: f64 = 10_000.0;

/// The programs of a sample or of a discovery, which were sent together.
struct AwaitedProbes {
    /// The sender of each program, and its echo.
    probes: Vec<(Prober, Option<Echo>)>,
    is_discovery: bool,
}

impl AwaitedProbes {
    /// Whether a datagram is the last echo that was missing.
    fn is_completed_by(&mut self, now_ns: u64, datagram: &[u8]) -> bool {
        let mut missing = self.probes.iter_mut().filter(|(_, echo)| echo.is_none());
        let found = missing.find_map(|(prober, echo)| Some(echo.insert(prober.receive(now_ns, datagram)?)).map(|_| ()));
        found.is_some() && self.probes.iter().all(|(_, echo)| echo.is_some())
    }

    /// Returns the longest round trip in nanoseconds, and the programs that came back.
    fn echoes(self) -> (u64, Vec<TinyProgram>) {
        let echoes: Vec<Echo> = self.probes.into_iter().filter_map(|(_, echo)| echo).collect();
        let longest_ns = echoes.iter().map(|echo| echo.rtt_ns).max().unwrap_or(0);
        (longest_ns, echoes.into_iter().map(|echo| echo.program).collect())
    }
}

/// Sends datagrams at the rate of an [`RcpController`].
pub struct RcpSender {
    flow: u32,
    to: (Ipv4Addr, u16),
    payload: usize,
    interval_ns: u64,
    controller: RcpController,
    /// Times of the next program, of the next discovery, and of the end.
    next_program: Time,
    next_discovery: Time,
    stop: Time,
    /// The programs whose echoes are awaited.
    awaited: VecDeque<AwaitedProbes>,
    pacer: Pacer,
    sockets: Option<(SocketHandle, SocketHandle)>,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of the frames with programs that were sent.
    pub program_bytes: u64,
    /// Those since the latest sample began.
    round_bytes: u64,
}

impl RcpSender {
    /// Creates a sender of frames of `frame_bytes` to an address and port, from `start` until `stop`, which collects a
    /// sample of its links every `interval_ns` nanoseconds. `flow` identifies the flow at the sink.
    pub fn new(
        flow: u32,
        to: (Ipv4Addr, u16),
        frame_bytes: u64,
        (settings, interval_ns): (RcpSettings, u64),
        start: Time,
        stop: Time,
    ) -> RcpSender {
        RcpSender {
            flow,
            to,
            payload: (frame_bytes.saturating_sub(HEADERS) as usize).max(STAMP),
            interval_ns: interval_ns.max(1_000),
            controller: RcpController::new(settings),
            next_program: start,
            next_discovery: start,
            stop,
            awaited: VecDeque::new(),
            pacer: Pacer::new(start),
            sockets: None,
            sent: 0,
            program_bytes: 0,
            round_bytes: 0,
        }
    }

    /// Returns the counts of the controller.
    pub fn counts(&self) -> RcpCounts {
        self.controller.counts()
    }

    /// Returns the sockets for datagrams and for programs.
    fn sockets(&mut self, io: &mut Io<'_>) -> (SocketHandle, SocketHandle) {
        let payload = self.payload;
        *self.sockets.get_or_insert_with(|| (open_socket(io, payload), open_socket(io, PROGRAM_BYTES)))
    }

    /// Accepts an echo, and returns the programs that update the links.
    fn accept(&mut self, now_ns: u64, datagram: &[u8]) -> Vec<TinyProgram> {
        let completed = self.awaited.iter_mut().position(|awaited| awaited.is_completed_by(now_ns, datagram));
        // Older ones would bring older samples.
        let awaited = completed.and_then(|at| self.awaited.drain(..=at).next_back());
        let Some(awaited) = awaited else { return Vec::new() };
        let is_discovery = awaited.is_discovery;
        let (rtt_ns, echoes) = awaited.echoes();
        if is_discovery {
            if self.controller.discovered(&echoes) {
                self.next_program = Time::from_ns(now_ns);
            }
            return Vec::new();
        }
        let updates = self.controller.collected(now_ns, rtt_ns, &echoes);
        if !self.controller.has_path() {
            (self.next_discovery, self.next_program) = (Time::from_ns(now_ns), Time::from_ns(now_ns));
        }
        updates
    }

    /// Sends a program, whose bytes count towards the flow's rate.
    fn send_program(&mut self, socket: &mut Socket<'_>, datagram: &[u8]) {
        let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), UDP_PORT);
        if socket.send_slice(datagram, to).is_ok() {
            let bytes = datagram.len() as u64 + HEADERS;
            self.program_bytes += bytes;
            self.round_bytes += bytes;
            self.pacer.owe(bytes as f64, MAX_DEBT);
        }
    }

    /// Sends programs that are due.
    fn programs(&mut self, io: &mut Io<'_>, handle: SocketHandle) {
        let (now, now_ns) = (io.now, io.now.as_ns());
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        let mut updates = Vec::new();
        while let Ok((datagram, _)) = socket.recv() {
            updates.extend(self.accept(now_ns, datagram));
        }
        for update in updates {
            // Nobody waits for its echo.
            self.send_program(socket, &update.packet(&[]));
        }
        if now < self.next_program {
            return;
        }
        let round_bytes = std::mem::take(&mut self.round_bytes);
        let interval_ns = self.program_interval_ns(round_bytes);
        let is_discovery = !self.controller.has_path() || now >= self.next_discovery;
        let programs = if is_discovery { self.controller.discovery() } else { self.controller.collection() };
        let mut probes = Vec::with_capacity(programs.len());
        for program in programs {
            let mut prober = Prober::new(program, io.random.next_u64(), TIMEOUT_NS);
            if let Some(datagram) = prober.send(now_ns) {
                self.send_program(socket, &datagram);
            }
            probes.push((prober, None));
        }
        self.awaited.push_back(AwaitedProbes { probes, is_discovery });
        if self.awaited.len() > MAX_AWAITED {
            self.awaited.pop_front();
        }
        if is_discovery {
            self.next_discovery = now.after_ns(DISCOVER_NS);
        }
        // Simultaneous senders would go on sampling simultaneously.
        let jitter = io.random.below(interval_ns / 8 + 1);
        self.next_program = now.after_ns(interval_ns - interval_ns / 16 + jitter);
    }

    /// Returns the time from one sample to the next: longer if the programs would take more than a share of the rate on
    /// links that are nearly busy. `round_bytes` is what the latest ones took.
    fn program_interval_ns(&self, round_bytes: u64) -> u64 {
        let rate = self.controller.rate();
        if !self.controller.is_loaded() || rate < 1.0 {
            return self.interval_ns;
        }
        let fair_ns = round_bytes as f64 / (rate * PROGRAM_SHARE) * 1e9;
        self.interval_ns.max((fair_ns as u64).min(MAX_INTERVAL_NS))
    }

    /// Sends the datagrams that the rate allows, and returns the time of the next one.
    fn datagrams(&mut self, io: &mut Io<'_>, handle: SocketHandle) -> Option<Time> {
        let (rate, frame) = (self.controller.rate(), self.payload as f64 + HEADERS as f64);
        self.pacer.earn(io.now, rate, frame);
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        for _ in 0..MAX_AT_ONCE {
            if !self.pacer.take(frame) {
                break;
            }
            let payload = stamped(self.payload, self.flow, self.sent, io.true_now);
            let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), self.to.1);
            self.sent += u64::from(socket.send_slice(&payload, to).is_ok());
        }
        self.pacer.next(io.now, rate, frame)
    }
}

impl App for RcpSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let (datagrams, programs) = self.sockets(io);
        if io.now >= self.stop {
            return None;
        }
        if io.now < self.next_program && self.program_bytes == 0 {
            return Some(self.next_program);
        }
        self.programs(io, programs);
        let next = self.datagrams(io, datagrams);
        Some(next.map_or(self.next_program, |next| next.min(self.next_program)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
