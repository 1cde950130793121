//! Runs TCP/IP (smoltcp) on a host, and the applications on it.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};

use smoltcp::iface::{Config, Context, Interface, PollResult, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address, Ipv4Cidr};
use switch::Time;
use tpp::shim::{CollectedProgram, Shim};

use super::host::{Host, HostProgram};
use super::int::IntSource;
use super::neighbours::{Neighbours, Received};
use super::transport::Transport;
use crate::random::Random;

/// Maximum number of rounds of stack and applications at one moment; the remaining work waits for the next microsecond.
const MAX_ROUNDS: usize = 64;

/// An application on a host's stack.
pub trait App: Send {
    /// Does all pending work. Called when the host starts, when something arrived, and at the time that the last call
    /// returned. Returns the latest time of the next call.
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time>;

    /// Returns the application itself, for callers that know its concrete type.
    fn as_any(&self) -> &dyn Any;
}

/// The interface between an application and its host.
pub struct Io<'a> {
    /// Time that the host's clock shows.
    pub now: Time,
    /// The simulation's own time, for measurements.
    pub true_now: Time,
    /// The host's random number generator.
    pub random: &'a mut Random,
    /// The stack's sockets.
    pub sockets: &'a mut SocketSet<'static>,
    /// smoltcp's context, which connecting a socket requires.
    pub context: &'a mut Context,
    /// Complete frames to send unchanged.
    pub raw: &'a mut Vec<Vec<u8>>,
    /// Frames that arrived and are neither IP nor ARP; every application sees each of them once.
    pub frames: &'a [Vec<u8>],
    /// Tiny packet programs that arrived in packets; every application sees each of them once.
    pub programs: &'a [CollectedProgram],
    /// The host's shim, which inserts programs into the packets of the stack. Frames in `raw` pass it by.
    pub shim: &'a mut Shim,
    next_port: &'a mut u16,
}

impl Io<'_> {
    /// Returns a local port that no other application of this host received recently.
    pub fn free_port(&mut self) -> u16 {
        *self.next_port = if *self.next_port == u16::MAX { FIRST_FREE_PORT } else { *self.next_port + 1 };
        *self.next_port
    }
}

/// First dynamic port for applications (RFC 6335 section 6).
const FIRST_FREE_PORT: u16 = 49_152;

/// A host program with TCP/IP and applications. It answers ARP requests and pings, and takes tiny packet programs out
/// of the packets that arrive.
pub struct Stack {
    mtu: usize,
    apps: Vec<Box<dyn App>>,
    running: Option<Running>,
    /// Congestion control, loss recovery and ECN between the stack and the link.
    pub transport: Transport,
    /// Inserts tiny packet programs into packets, and takes them out again.
    pub shim: Shim,
    /// Whether packets do not pass the shim. Those that arrive with a program are then of a protocol that the stack
    /// does not know.
    pub lacks_shim: bool,
    /// Adds INT headers to packets.
    pub int: IntSource,
}

/// What arrived at a host, other than packets for its stack.
#[derive(Clone, Copy, Default)]
struct Arrived<'a> {
    frames: &'a [Vec<u8>],
    programs: &'a [CollectedProgram],
}

struct Running {
    interface: Interface,
    sockets: SocketSet<'static>,
    wire: Wire,
    neighbours: Neighbours,
    /// Time at which each application wants its next call.
    wanted: Vec<Option<Time>>,
    /// Pending timers.
    timers: BTreeSet<u64>,
    next_port: u16,
}

impl Stack {
    /// Creates a stack for a link with this MTU, in bytes of an IP packet.
    pub fn new(mtu: u32) -> Stack {
        let (transport, mtu) = (Transport::new(mtu), mtu as usize);
        let (shim, int) = (Shim::new(mtu), IntSource::new(mtu));
        Stack { mtu, apps: Vec::new(), running: None, transport, shim, lacks_shim: false, int }
    }

    /// Adds an application.
    pub fn add(&mut self, app: Box<dyn App>) {
        self.apps.push(app);
    }

    /// Returns the applications in the order in which they were added.
    pub fn apps(&self) -> impl Iterator<Item = &dyn App> {
        self.apps.iter().map(|app| &**app)
    }

    /// Lets the stack and the applications do all work that is pending now.
    fn drive(&mut self, host: &mut Host, arrived: Arrived<'_>) {
        let Some(running) = &mut self.running else { return };
        let (now, true_now) = (host.now(), host.true_now());
        let instant = Instant::from_micros(now.as_us() as i64);
        let Running { interface, sockets, wire, neighbours, wanted, timers, next_port } = running;
        timers.retain(|timer| *timer > now.as_ns());
        let mut raw = Vec::new();
        for round in 0..MAX_ROUNDS {
            let changed = interface.poll(instant, wire, sockets) == PollResult::SocketStateChanged;
            let context = interface.context();
            let Arrived { frames, programs } = if round == 0 { arrived } else { Arrived::default() };
            let (random, raw, shim) = (&mut host.random, &mut raw, &mut self.shim);
            let mut io =
                Io { now, true_now, random, sockets, context, raw, frames, programs, shim, next_port: &mut *next_port };
            let mut acted = false;
            for (app, wanted) in self.apps.iter_mut().zip(&mut *wanted) {
                if changed || round == 0 || wanted.is_some_and(|at| at <= now) {
                    *wanted = app.poll(&mut io);
                    acted = true;
                }
            }
            if !acted && wire.received.is_empty() {
                break;
            }
        }
        for packet in wire.sent.drain(..) {
            self.transport.sent(now.as_ns(), packet);
        }
        let (packets, again) = self.transport.poll(now.as_ns());
        packets.into_iter().for_each(|packet| neighbours.send(host, packet));
        host.out.iter_mut().for_each(|frame| self.int.sent(frame));
        if !self.lacks_shim {
            host.send_through(&mut self.shim);
        }
        raw.into_iter().for_each(|frame| host.send(frame));
        let asking = neighbours.poll(host);
        let stack = interface.poll_at(instant, sockets).map(|at| Time::from_us(at.total_micros().max(0) as u64));
        let next = wanted.iter().flatten().copied().chain(stack).chain(asking).chain(again.map(Time::from_ns)).min();
        if let Some(next) = next {
            let at = next.max(now.after_ns(1));
            let at = if next <= now { now.after_ns(1_000) } else { at };
            if timers.first().is_none_or(|first| at.as_ns() < *first) {
                timers.insert(at.as_ns());
                host.set_timer(at, at.as_ns());
            }
        }
    }
}

impl HostProgram for Stack {
    fn on_start(&mut self, host: &mut Host) {
        let mut wire = Wire { received: VecDeque::new(), sent: VecDeque::new(), mtu: self.mtu };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = host.random.next_u64();
        let instant = Instant::from_micros(host.now().as_us() as i64);
        let mut interface = Interface::new(config, &mut wire, instant);
        if let Some((address, bits)) = host.address {
            interface.update_ip_addrs(|addresses| {
                let pushed = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(address, bits)));
                debug_assert!(pushed.is_ok(), "a host has one address");
            });
        }
        // The stack does not choose the next hop of a packet; `Neighbours` does.
        let added = interface.routes_mut().add_default_ipv4_route(Ipv4Address::UNSPECIFIED);
        debug_assert!(added.is_ok(), "a host has one route");
        let wanted = self.apps.iter().map(|_| Some(Time::ZERO)).collect();
        let sockets = SocketSet::new(Vec::new());
        let next_port = FIRST_FREE_PORT - 1 + host.random.below(8192) as u16;
        let neighbours = Neighbours::new(host);
        self.running =
            Some(Running { interface, sockets, wire, neighbours, wanted, timers: BTreeSet::new(), next_port });
        self.drive(host, Arrived::default());
    }

    fn on_packet(&mut self, host: &mut Host, mut frame: Vec<u8>) {
        let Some(running) = &mut self.running else { return };
        let mut programs = Vec::new();
        let is_packet = self.lacks_shim || self.shim.received(&mut frame, |program| programs.push(program));
        let (programs, frames) = (&programs[..], &[][..]);
        if !is_packet {
            return self.drive(host, Arrived { frames, programs });
        }
        match running.neighbours.receive(host, &frame) {
            Received::Packet(packet) => {
                self.transport.arrived(host.now().as_ns(), &packet);
                running.wire.received.push_back(packet);
                self.drive(host, Arrived { frames, programs });
            }
            Received::Nothing => self.drive(host, Arrived { frames, programs }),
            Received::Other => self.drive(host, Arrived { frames: &[frame], programs }),
        }
    }

    fn on_timer(&mut self, host: &mut Host, timer: u64) {
        // A clock that was set back shows less than the timer's time; the timer has expired all the same.
        if let Some(running) = &mut self.running {
            running.timers.remove(&timer);
        }
        self.drive(host, Arrived::default());
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Queues of IP packets between the host and its stack.
struct Wire {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    mtu: usize,
}

struct Taken(Vec<u8>);

impl RxToken for Taken {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Given<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Given<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Taken;
    type TxToken<'a> = Given<'a>;

    fn receive(&mut self, _timestamp: Instant) -> Option<(Taken, Given<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Taken(frame), Given(&mut self.sent)))
    }

    fn transmit(&mut self, _timestamp: Instant) -> Option<Given<'_>> {
        Some(Given(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}
