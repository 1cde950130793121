//! Executes tiny packet programs reliably: the executor of `tpp` on a simulated host (paper, section 4.4).

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::Socket;
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;
use tpp::TinyProgram;
use tpp::executor::{ExecutionPlan, ExecutorSettings, ProgramExecutor, RequestOutcome, ScatterGather, ScatterTarget};
use wire::tpp::UDP_PORT;

use super::measure::{Measured, Measurement};
use super::minion::{MAX_KEPT, MAX_KEPT_BYTES, own_socket};
use crate::sim::{App, Io};

/// Times of a client of programs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionTimes {
    /// Time from one round of requests to the next, unless the requests of a round take longer.
    pub interval_ns: u64,
    /// Time after which a packet is sent again. It doubles with each try.
    pub timeout_ns: u64,
    /// Time that the requests of a round may take.
    pub deadline_ns: u64,
}

/// A program that switches executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedRequest {
    /// Time at which the last echo of the request arrived.
    pub at: Time,
    /// Address to which its packets were sent.
    pub to: Option<Ipv4Addr>,
    /// The program with the words that the switches wrote.
    pub program: TinyProgram,
}

/// Requests by their outcomes, and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    /// Requests whose packets all came back.
    pub executed: u64,
    /// Requests with a packet that did not come back in all its tries.
    pub unanswered: u64,
    /// Requests whose deadline passed.
    pub too_late: u64,
    /// Packets that were sent, with retries.
    pub packets: u64,
}

impl ExecutionCounts {
    /// Adds the counts of another client.
    pub fn add(&mut self, other: &ExecutionCounts) {
        let ExecutionCounts { executed, unanswered, too_late, packets } = other;
        self.executed += executed;
        self.unanswered += unanswered;
        self.too_late += too_late;
        self.packets += packets;
    }
}

/// Executes plans in rounds: a request for each address and plan, all with one deadline.
pub struct ProgramClient {
    targets: Vec<ScatterTarget>,
    times: ExecutionTimes,
    left: u64,
    next: Time,
    stop: Time,
    executor: ProgramExecutor,
    round: Option<ScatterGather>,
    socket: Option<SocketHandle>,
    measured: Measured,
    /// The outcomes so far.
    pub counts: ExecutionCounts,
    /// The first requests that were executed: at most a million, and 64 MiB.
    pub executed: Vec<ExecutedRequest>,
    kept_bytes: usize,
}

impl ProgramClient {
    /// Creates a client of `rounds` rounds, from `start` until `stop`. Each executes all plans at all addresses.
    pub fn new(
        addresses: &[Ipv4Addr],
        plans: &[Arc<ExecutionPlan>],
        rounds: u64,
        times: ExecutionTimes,
        (start, stop): (Time, Time),
    ) -> ProgramClient {
        let of_address =
            |address: &Ipv4Addr| plans.iter().map(|plan| (IpAddr::V4(*address), Arc::clone(plan))).collect::<Vec<_>>();
        let targets = addresses.iter().flat_map(of_address).map(|(to, plan)| ScatterTarget { to, plan }).collect();
        let longest_timeout_ns = times.timeout_ns.saturating_mul(8);
        let settings = ExecutorSettings { timeout_ns: times.timeout_ns, longest_timeout_ns, ..Default::default() };
        ProgramClient {
            targets,
            times: ExecutionTimes { interval_ns: times.interval_ns.max(1), ..times },
            left: rounds,
            next: start,
            stop,
            executor: ProgramExecutor::new(settings),
            round: None,
            socket: None,
            measured: Measured::default(),
            counts: ExecutionCounts::default(),
            executed: Vec::new(),
            kept_bytes: 0,
        }
    }

    /// Takes the outcomes of the round, and begins the next one if it is time.
    fn advance(&mut self, now: Time, true_now: Time) {
        loop {
            if let Some(mut round) = self.round.take() {
                let new = round.poll(&mut self.executor, now.as_ns()).0;
                for target in new {
                    self.count(target, &round, true_now);
                }
                if !round.is_complete() {
                    self.round = Some(round);
                    return;
                }
            }
            if self.left == 0 || self.next > now || self.next >= self.stop || self.targets.is_empty() {
                return;
            }
            let deadline = now.after_ns(self.times.deadline_ns);
            self.round = Some(ScatterGather::new(self.targets.clone(), deadline.as_ns()));
            self.measured.sent += self.targets.len() as u64;
            self.left -= 1;
            // Rounds that a longer one has delayed are delayed, not made up for.
            self.next = now.after_ns(self.times.interval_ns);
        }
    }

    /// Counts the outcome of a target.
    fn count(&mut self, target: usize, round: &ScatterGather, true_now: Time) {
        match &round.outcomes()[target] {
            Some(RequestOutcome::Executed(found)) => {
                let bytes = found.program.memory.len();
                self.counts.executed += 1;
                self.measured.received += 1;
                self.measured.arrived(true_now, bytes as u64);
                self.measured.took(found.rtt_ns);
                self.kept_bytes = self.kept_bytes.saturating_add(bytes);
                if self.executed.len() < MAX_KEPT && self.kept_bytes <= MAX_KEPT_BYTES {
                    let to = match self.targets[target].to {
                        IpAddr::V4(address) => Some(address),
                        IpAddr::V6(_) => None,
                    };
                    self.executed.push(ExecutedRequest { at: true_now, to, program: found.program.clone() });
                }
            }
            Some(RequestOutcome::Unanswered { .. }) => self.counts.unanswered += 1,
            Some(RequestOutcome::TooLate { .. }) => self.counts.too_late += 1,
            None => {}
        }
    }
}

impl App for ProgramClient {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let handle = own_socket(&mut self.socket, io);
        let now_ns = io.now.as_ns();
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        while let Ok((datagram, metadata)) = socket.recv() {
            let IpAddress::Ipv4(from) = metadata.endpoint.addr;
            self.executor.receive(now_ns, (IpAddr::V4(from), metadata.endpoint.port), datagram);
        }
        self.advance(io.now, io.true_now);
        while let Some(outgoing) = self.executor.send(now_ns, || io.random.next_u64()) {
            let IpAddr::V4(to) = outgoing.to else { continue };
            self.counts.packets += 1;
            // A full buffer loses the packet, as the network might.
            let _ = socket.send_slice(&outgoing.datagram, IpEndpoint::new(IpAddress::Ipv4(to), UDP_PORT));
        }
        let next_round = self.round.is_none() && self.left > 0 && self.next < self.stop;
        let deadlines = [self.executor.next_deadline().map(Time::from_ns), next_round.then_some(self.next)];
        deadlines.into_iter().flatten().min()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for ProgramClient {
    fn measured(&self) -> &Measured {
        &self.measured
    }
}
