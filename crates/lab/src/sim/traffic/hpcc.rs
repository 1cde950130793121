//! Sends datagrams in the window that HPCC allows ([`tpp::hpcc`]).

use std::any::Any;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::Socket;
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;
use tpp::TinyProgram;
use tpp::hpcc::{HpccController, HpccCounts, HpccSettings, SampleMark};
use tpp::probe::Prober;
use wire::tpp::UDP_PORT;

use super::pacing::Pacer;
use super::udp::{HEADERS, STAMP, open_socket, stamped};
use crate::sim::{App, Io};

/// Interval between two discoveries of the path, and of one that is unknown.
const DISCOVER_NS: u64 = 2_000_000_000;
const DISCOVER_AGAIN_NS: u64 = 100_000_000;

/// Time after which a program without an echo is lost.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Maximum number of programs whose echoes are awaited.
const MAX_AWAITED: usize = 256;

/// Maximum length of a datagram with a program, in bytes.
const PROGRAM_BYTES: usize = 600;

/// Maximum number of datagrams that are sent at one moment.
const MAX_AT_ONCE: usize = 64;

/// The window of a flow over the time in which its path was known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowTrace {
    /// Time in nanoseconds, and the sum of the windows in bytes over it.
    open_ns: f64,
    byte_ns: f64,
    /// Greatest window in bytes.
    pub max: f64,
}

impl WindowTrace {
    /// Counts a window of some bytes over some time.
    fn count(&mut self, window: f64, ns: u64) {
        if window > 0.0 {
            self.open_ns += ns as f64;
            self.byte_ns += window * ns as f64;
            self.max = self.max.max(window);
        }
    }

    /// Adds the window of another flow.
    pub fn add(&mut self, other: &WindowTrace) {
        self.open_ns += other.open_ns;
        self.byte_ns += other.byte_ns;
        self.max = self.max.max(other.max);
    }

    /// Returns the mean window of a flow in bytes; 0 if no path was known.
    pub fn mean(&self) -> f64 {
        if self.open_ns > 0.0 { self.byte_ns / self.open_ns } else { 0.0 }
    }
}

/// Sends datagrams in the window of an [`HpccController`].
pub struct HpccSender {
    flow: u32,
    to: (Ipv4Addr, u16),
    payload: usize,
    controller: HpccController,
    start: Time,
    stop: Time,
    next_discovery: Time,
    /// The programs whose echoes are awaited, in the order of sending: discoveries have no mark.
    awaited: VecDeque<(Prober, Option<SampleMark>)>,
    pacer: Pacer,
    sockets: Option<(SocketHandle, SocketHandle)>,
    /// The window up to a time.
    windows: (WindowTrace, Time),
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of the frames with programs that were sent.
    pub program_bytes: u64,
}

impl HpccSender {
    /// Creates a sender of frames of `frame_bytes` to an address and port, from `start` until `stop`. `flow` identifies
    /// the flow at the sink.
    pub fn new(
        flow: u32,
        to: (Ipv4Addr, u16),
        frame_bytes: u64,
        settings: HpccSettings,
        start: Time,
        stop: Time,
    ) -> HpccSender {
        HpccSender {
            flow,
            to,
            payload: (frame_bytes.saturating_sub(HEADERS) as usize).max(STAMP),
            controller: HpccController::new(settings),
            start,
            stop,
            next_discovery: start,
            awaited: VecDeque::new(),
            pacer: Pacer::new(start),
            sockets: None,
            windows: (WindowTrace::default(), start),
            sent: 0,
            program_bytes: 0,
        }
    }

    /// Returns the counts of the controller.
    pub fn counts(&self) -> HpccCounts {
        self.controller.counts()
    }

    /// Returns the window over time, up to the latest event of the flow.
    pub fn windows(&self) -> WindowTrace {
        self.windows.0
    }

    /// Returns the sockets for datagrams and for programs.
    fn sockets(&mut self, io: &mut Io<'_>) -> (SocketHandle, SocketHandle) {
        let payload = self.payload;
        *self.sockets.get_or_insert_with(|| (open_socket(io, payload), open_socket(io, PROGRAM_BYTES)))
    }

    /// Accepts a datagram that may be an echo.
    fn accept(&mut self, now: Time, datagram: &[u8]) {
        let now_ns = now.as_ns();
        let mut awaited = self.awaited.iter_mut().enumerate();
        let found = awaited.find_map(|(at, (prober, mark))| Some((at, *mark, prober.receive(now_ns, datagram)?)));
        let Some((at, mark, echo)) = found else { return };
        let is_changed = match mark {
            Some(mark) => {
                // Older samples would bring older words.
                self.awaited.drain(..=at);
                self.controller.echoed(now_ns, echo.rtt_ns, mark, &echo.program)
            }
            None => {
                self.awaited.remove(at);
                let was_known = self.controller.has_path();
                if self.controller.discovered(echo.rtt_ns, &echo.program) && !was_known {
                    self.next_discovery = now.after_ns(DISCOVER_NS);
                    self.pacer.skip(now);
                }
                false
            }
        };
        if is_changed {
            self.next_discovery = now;
        }
    }

    /// Sends a program.
    fn send_program(&mut self, io: &mut Io<'_>, socket: SocketHandle, program: TinyProgram, mark: Option<SampleMark>) {
        let mut prober = Prober::new(program, io.random.next_u64(), TIMEOUT_NS);
        let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), UDP_PORT);
        let Some(datagram) = prober.send(io.now.as_ns()) else { return };
        if io.sockets.get_mut::<Socket<'_>>(socket).send_slice(&datagram, to).is_ok() {
            self.program_bytes += datagram.len() as u64 + HEADERS;
        }
        self.awaited.push_back((prober, mark));
        if self.awaited.len() > MAX_AWAITED {
            self.awaited.pop_front();
        }
    }

    /// Sends a sample if one is due.
    fn sample(&mut self, io: &mut Io<'_>, socket: SocketHandle) {
        if self.controller.is_sample_due(io.now.as_ns()) {
            let (mark, program) = self.controller.sample(io.now.as_ns());
            self.send_program(io, socket, program, Some(mark));
        }
    }

    /// Sends the datagrams that window and rate allow, and the samples behind them. Returns the time at which the rate
    /// allows the next datagram; `None` while the window does not.
    fn datagrams(&mut self, io: &mut Io<'_>, (datagrams, programs): (SocketHandle, SocketHandle)) -> Option<Time> {
        let (rate, frame) = (self.controller.rate(), self.payload as f64 + HEADERS as f64);
        self.pacer.earn(io.now, rate, frame);
        for _ in 0..MAX_AT_ONCE {
            if !self.controller.may_send() || !self.pacer.take(frame) {
                break;
            }
            let payload = stamped(self.payload, self.flow, self.sent, io.true_now);
            let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), self.to.1);
            if io.sockets.get_mut::<Socket<'_>>(datagrams).send_slice(&payload, to).is_ok() {
                self.sent += 1;
                self.controller.sent(self.payload as u64 + HEADERS);
            }
            self.sample(io, programs);
        }
        self.pacer.next(io.now, rate, frame).filter(|_| self.controller.may_send())
    }
}

impl App for HpccSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let (datagrams, programs) = self.sockets(io);
        if io.now >= self.stop {
            return None;
        }
        if io.now < self.start {
            return Some(self.start);
        }
        let (windows, until) = &mut self.windows;
        windows.count(self.controller.window(), io.now.since_ns(*until));
        *until = io.now;
        let mut echoes = Vec::new();
        let socket = io.sockets.get_mut::<Socket<'_>>(programs);
        while let Ok((datagram, _)) = socket.recv() {
            echoes.push(datagram.to_vec());
        }
        echoes.iter().for_each(|datagram| self.accept(io.now, datagram));
        self.controller.poll(io.now.as_ns());
        if io.now >= self.next_discovery {
            let wait_ns = if self.controller.has_path() { DISCOVER_NS } else { DISCOVER_AGAIN_NS };
            self.next_discovery = io.now.after_ns(wait_ns);
            let program = self.controller.discovery();
            self.send_program(io, programs, program, None);
        }
        let next = self.datagrams(io, (datagrams, programs));
        self.sample(io, programs);
        let deadline = self.controller.next_deadline().map(Time::from_ns);
        [next, deadline, Some(self.next_discovery)].into_iter().flatten().min()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
