//! Sends datagrams of several flows over paths that the sender chooses ([`tpp::conga`]), or that their ports do (ECMP).

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::Socket;
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;
use tpp::conga::{CongaBalancer, CongaCounts, CongaSettings};
use tpp::probe::Prober;
use wire::tpp::UDP_PORT;

use super::departures::{Departures, Pattern};
use super::udp::{HEADERS, MAX_AT_ONCE, STAMP, numbered, open_socket, stamped};
use crate::sim::{App, Io};

/// Time after which a program without an echo is lost.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Maximum number of programs of a path whose echoes are awaited.
const MAX_AWAITED: usize = 64;

/// The way in which a sender uses the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// Each flow has a source port of its own, and stays on the path that the switches select for it.
    Ecmp,
    /// Each path has a source port, and new flowlets take the least loaded path. Paths are sampled every `interval_ns`
    /// nanoseconds.
    LeastLoaded {
        /// Parameters of the balancer.
        settings: CongaSettings,
        /// Nanoseconds from one sample to the next.
        interval_ns: u64,
    },
}

/// Flows of a sender: all have the same pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPattern {
    /// Number of flows.
    pub flows: u32,
    /// Size of a frame in bytes, 62 at least.
    pub frame_bytes: u64,
    /// Departures of each flow.
    pub pattern: Pattern,
}

/// A path, and the programs that sample it.
struct PathProbes {
    awaited: VecDeque<Prober>,
    /// Time of the next program.
    next: Time,
}

/// Sends the datagrams of several flows.
pub struct CongaSender {
    /// Number by which the sink identifies the sender.
    number: u32,
    to: (Ipv4Addr, u16),
    payload: usize,
    /// The departures of each flow, and the datagrams that it sent.
    flows: Vec<(Departures, u64)>,
    /// The time of the next datagram of each flow.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    stop: Time,
    balancer: Option<CongaBalancer>,
    interval_ns: u64,
    paths: Vec<PathProbes>,
    /// Sockets by flow or, with a balancer, by path.
    sockets: Vec<SocketHandle>,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of the frames with programs that were sent.
    pub program_bytes: u64,
}

impl CongaSender {
    /// Creates a sender to an address and port, from `start` until `stop`. `number` identifies it at the sink.
    pub fn new(
        number: u32,
        to: (Ipv4Addr, u16),
        flows: FlowPattern,
        balancing: Balancing,
        start: Time,
        stop: Time,
    ) -> CongaSender {
        let FlowPattern { flows, frame_bytes, pattern } = flows;
        let (balancer, interval_ns, paths) = match balancing {
            Balancing::Ecmp => (None, 0, 0),
            Balancing::LeastLoaded { settings, interval_ns } => {
                (Some(CongaBalancer::new(settings)), interval_ns.max(1_000), settings.paths)
            }
        };
        // Flows with constant intervals would otherwise send at the same moments.
        let begin = |flow: u32| start.after_ns(pattern.mean_interval_ns() / u64::from(flows.max(1)) * u64::from(flow));
        let flows: Vec<_> = (0..flows).map(|flow| (Departures::new(pattern, begin(flow)), 0)).collect();
        CongaSender {
            number,
            to,
            payload: (frame_bytes.saturating_sub(HEADERS) as usize).max(STAMP),
            due: flows.iter().enumerate().map(|(at, (flow, _))| Reverse((flow.due(), at))).collect(),
            flows,
            stop,
            balancer,
            interval_ns,
            paths: (0..paths).map(|_| PathProbes { awaited: VecDeque::new(), next: start }).collect(),
            sockets: Vec::new(),
            sent: 0,
            program_bytes: 0,
        }
    }

    /// Returns the counts of the balancer; zeros without one.
    pub fn counts(&self) -> CongaCounts {
        self.balancer.as_ref().map(CongaBalancer::counts).unwrap_or_default()
    }

    fn open(&mut self, io: &mut Io<'_>) {
        let count = if self.balancer.is_some() { self.paths.len() } else { self.flows.len() };
        while self.sockets.len() < count {
            self.sockets.push(open_socket(io, self.payload.max(600)));
        }
    }

    /// Accepts echoes, and sends programs that are due.
    fn programs(&mut self, io: &mut Io<'_>) {
        let (now, now_ns) = (io.now, io.now.as_ns());
        let Some(balancer) = &mut self.balancer else { return };
        for (number, (path, handle)) in self.paths.iter_mut().zip(&self.sockets).enumerate() {
            let socket = io.sockets.get_mut::<Socket<'_>>(*handle);
            while let Ok((datagram, _)) = socket.recv() {
                let echo = path
                    .awaited
                    .iter_mut()
                    .enumerate()
                    .find_map(|(at, prober)| Some((at, prober.receive(now_ns, datagram)?)));
                let Some((at, echo)) = echo else { continue };
                // Older ones would bring older samples.
                path.awaited.drain(..=at);
                if balancer.echoed(number, now_ns, echo.rtt_ns, &echo.program) {
                    path.next = now;
                }
            }
            if now < path.next {
                continue;
            }
            let mut prober = Prober::new(balancer.program(number, now_ns), io.random.next_u64(), TIMEOUT_NS);
            let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), UDP_PORT);
            if let Some(datagram) = prober.send(now_ns)
                && socket.send_slice(&datagram, to).is_ok()
            {
                self.program_bytes += datagram.len() as u64 + HEADERS;
            }
            path.awaited.push_back(prober);
            if path.awaited.len() > MAX_AWAITED {
                path.awaited.pop_front();
            }
            // Simultaneous senders would go on sampling simultaneously.
            let wait_ns = balancer.wait_ns(number, self.interval_ns);
            let jitter = io.random.below(wait_ns / 8 + 1);
            path.next = now.after_ns(wait_ns - wait_ns / 16 + jitter);
        }
    }

    /// Sends the datagrams that are due.
    fn datagrams(&mut self, io: &mut Io<'_>) {
        let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), self.to.1);
        for _ in 0..MAX_AT_ONCE {
            let Some(Reverse((due, flow))) = self.due.peek().copied() else { return };
            if due > io.now {
                return;
            }
            self.due.pop();
            if due >= self.stop {
                continue;
            }
            let bytes = self.payload as u64 + HEADERS;
            let balancer = self.balancer.as_mut();
            let socket = balancer.map_or(flow, |balancer| balancer.choose(flow as u64, bytes, io.now.as_ns()));
            let (departures, sent) = &mut self.flows[flow];
            let payload = stamped(self.payload, self.number, numbered(flow, *sent), io.true_now);
            *sent += 1;
            let socket = io.sockets.get_mut::<Socket<'_>>(self.sockets[socket]);
            self.sent += u64::from(socket.send_slice(&payload, to).is_ok());
            departures.advance(io.random);
            self.due.push(Reverse((departures.due(), flow)));
        }
    }
}

impl App for CongaSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        if io.now >= self.stop {
            return None;
        }
        self.open(io);
        self.programs(io);
        self.datagrams(io);
        let datagram = self.due.peek().map(|Reverse((due, _))| *due);
        self.paths.iter().map(|path| path.next).chain(datagram).min()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
