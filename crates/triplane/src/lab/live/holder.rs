//! The process that holds a network: it makes it, runs its switches or the processes that do, and answers questions until
//! it is told to end.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use ports::namespace::Namespace;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use v1model::Executor;

use super::super::args::HoldArgs;
use super::super::network::{Live, Network, Wanted};
use super::answering::{Answering, Reach};
use super::cell::Cell;
use super::controlled::{self, Door};
use super::hosts::Standing;
use super::room::{Room, Roster};
use super::station::{Order, Station};
use super::{residents, socket, wires};
use crate::output::{Failure, Output};

/// What the holder says when the network stands.
pub const READY: &str = "ready";

/// What stands before something that whoever started the network should know.
pub const NOTE: &str = "note: ";

/// How often the holder looks whether the network's directory is there.
const LOOK: Duration = Duration::from_secs(1);

/// Holds a network until it is told to end, by a request or a signal.
pub fn hold(args: &HoldArgs, output: &Output) -> Result<(), Failure> {
    let live = &args.live;
    let executor = if live.interpret || live.isolate { Executor::Interpreter } else { Executor::Auto };
    let wanted = Wanted { executor, live: Some(Live { p4runtime: live.p4runtime, only: None }) };
    let network = Arc::new(Network::load_for(&live.topology, &wanted, output)?);
    // These stay where they were opened: where everybody else on this machine is.
    let listeners = network.endpoints.iter().map(|served| served.as_ref().map(controlled::bind).transpose());
    let listeners: Vec<Option<TcpListener>> = listeners.collect::<Result<_, _>>()?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).context("cannot be told to end")?;
    }
    // Before it goes into a namespace, where it would be somebody else.
    let roster = Room::prepare(&args.name)?;
    let result = enter(args, network, roster, ended, listeners, output);
    Room::close(&args.name);
    result
}

/// A namespace for this process, which has one thread: root takes a network namespace, anyone else a user namespace as well.
fn namespace() -> Result<Namespace, Failure> {
    Ok(Namespace::new_own().or_else(|_| Namespace::new_user()).map_err(anyhow::Error::from)?)
}

/// Whether this process may make a network; it is somewhere else afterwards.
///
/// # Errors
/// The reason why not.
pub fn allowed() -> Result<(), Failure> {
    namespace().map(|_| ())
}

/// Goes where the network is to be, and makes it there.
fn enter(
    args: &HoldArgs,
    network: Arc<Network>,
    roster: Roster,
    ended: Arc<AtomicBool>,
    listeners: Vec<Option<TcpListener>>,
    output: &Output,
) -> Result<(), Failure> {
    let own = namespace()?;
    own.disable_ipv6().map_err(anyhow::Error::from)?;
    if args.tied {
        end_with_input(Arc::clone(&ended)).context("cannot watch who started this")?;
    }
    let holder = Holder { args, network, own, ended, roster: Arc::new(roster) };
    holder.stand(listeners, output)
}

/// Has the network end when standard input does: whoever has its other end is gone then, also if he was killed.
fn end_with_input(ended: Arc<AtomicBool>) -> std::io::Result<()> {
    let wait = move || {
        // Nothing is ever said.
        let _ = std::io::stdin().lock().read(&mut [0]);
        ended.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("starter".to_owned()).spawn(wait).map(drop)
}

struct Holder<'a> {
    args: &'a HoldArgs,
    network: Arc<Network>,
    own: Namespace,
    ended: Arc<AtomicBool>,
    roster: Arc<Roster>,
}

/// The switches of a network that stands, and the threads that run or look after them.
#[derive(Default)]
struct Crew {
    switches: Vec<Reach>,
    threads: Vec<JoinHandle<()>>,
}

impl Holder<'_> {
    fn stand(&self, listeners: Vec<Option<TcpListener>>, output: &Output) -> Result<(), Failure> {
        let topology = &self.network.topology;
        let ended = || self.ended.load(Ordering::Relaxed);
        let hosts = topology.hosts.iter().map(Standing::new);
        let hosts: Vec<Standing> = hosts.collect::<Result<_, _>>().map_err(anyhow::Error::from)?;
        wires::make(topology, &self.own, &hosts, &ended).map_err(anyhow::Error::from)?;
        self.go_on()?;
        for (at, (standing, host)) in hosts.iter().zip(&topology.hosts).enumerate() {
            if topology.uplink(at).is_some() {
                standing.configure(host).map_err(anyhow::Error::from)?;
            }
        }
        let start = Instant::now();
        let crew = match self.args.live.isolate {
            true => self.processes(listeners)?,
            false => self.threads(listeners, start)?,
        };
        let result = self.answer(&hosts, &crew, start, output);
        residents::end(&hosts);
        for switch in &crew.switches {
            // One that has ended already needs no telling.
            let _ = switch.orders.send(Order::Stop);
        }
        for thread in crew.threads {
            thread.join().map_err(|_| anyhow!("a switch ended by itself; this is a bug"))?;
        }
        result
    }

    /// Runs every switch in a thread of this process.
    fn threads(&self, listeners: Vec<Option<TcpListener>>, start: Instant) -> Result<Crew, Failure> {
        let mut crew = Crew::default();
        let (begun, all) = channel();
        for (at, listener) in listeners.into_iter().enumerate() {
            let (network, seed) = (Arc::clone(&self.network), self.args.live.seed());
            let served = network.endpoints[at];
            let door = listener
                .zip(served)
                .map(|(listener, served)| Door::new(listener, Arc::clone(&network), at, seed, served));
            let places = wires::places(&network.topology, at, seed)?;
            let (sender, orders) = channel();
            let name = network.topology.switches[at].name.clone();
            // Programs are compiled side by side.
            let begun = begun.clone();
            crew.add(&name, sender, None, move || {
                let make = Box::new(move || network.switch(at, seed));
                let station = Station::new(make, door, places, orders, start);
                // The holder may have ended already.
                let _ = begun.send(());
                station.run();
            })?;
        }
        drop(begun);
        for _ in &crew.switches {
            self.go_on()?;
            all.recv().map_err(|_| anyhow!("a switch did not begin; this is a bug"))?;
        }
        Ok(crew)
    }

    /// Runs every switch in a process of its own.
    fn processes(&self, listeners: Vec<Option<TcpListener>>) -> Result<Crew, Failure> {
        let topology = &self.network.topology;
        let mut cells = Vec::new();
        for (at, listener) in listeners.into_iter().enumerate() {
            let name = &topology.switches[at].name;
            let files = (Room::switch_socket(&self.args.name, at), Room::log(&self.args.name, name));
            let ports = topology.ports(at).into_iter().map(|(port, _)| port);
            let args = Arc::new(HoldArgs { live: self.args.live.clone(), name: self.args.name.clone(), tied: false });
            let mut cell = Cell::new(name, args, Arc::clone(&self.roster), files, listener, ports);
            cell.begin()?;
            cells.push(cell);
        }
        let mut crew = Crew::default();
        for (at, mut cell) in cells.into_iter().enumerate() {
            self.go_on()?;
            cell.wait()?;
            let (sender, orders) = channel();
            let socket = Some(Room::switch_socket(&self.args.name, at));
            crew.add(&topology.switches[at].name, sender, socket, move || cell.run(&orders))?;
        }
        Ok(crew)
    }

    /// Tells everyone that the network stands, and answers until the end.
    fn answer(&self, hosts: &[Standing], crew: &Crew, start: Instant, output: &Output) -> Result<(), Failure> {
        let topology = &self.network.topology;
        let ended = || self.ended.load(Ordering::Relaxed);
        let listener = socket::listen(&Room::socket(&self.args.name))?;
        let token = self.roster.token();
        let descriptors = hosts.iter().map(|host| (host.name.clone(), host.namespace.raw_descriptor())).collect();
        for (standing, host) in hosts.iter().zip(&topology.hosts) {
            let log = Room::log(&self.args.name, &host.name);
            let mut told = Ok(());
            standing.run_commands(host, &log, &token, &ended, &mut |line| {
                if told.is_ok() {
                    told = output.print(&format!("{NOTE}{}\n", line.replace('\n', " ")));
                }
            });
            told?;
            self.go_on()?;
        }
        self.roster.open(descriptors)?;
        output.print(&format!("{READY}\n"))?;
        let answering = Answering { network: Arc::clone(&self.network), switches: crew.switches.clone(), start };
        let mut looked = Instant::now();
        let ended = || {
            if looked.elapsed() < LOOK {
                return ended();
            }
            looked = Instant::now();
            // Nobody can reach a network whose directory is gone.
            ended() || !self.roster.is_listed()
        };
        socket::serve(&listener, ended, |request, stream| answering.answer(request, stream))
    }

    /// Fails if the network is not wanted any more.
    fn go_on(&self) -> Result<(), Failure> {
        match self.ended.load(Ordering::Relaxed) {
            true => Err(anyhow!("it was told to end while it started").into()),
            false => Ok(()),
        }
    }
}

impl Crew {
    fn add(
        &mut self,
        name: &str,
        orders: Sender<Order>,
        socket: Option<std::path::PathBuf>,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), Failure> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads.push(thread.context("cannot start a switch")?);
        self.switches.push(Reach { orders, socket });
        Ok(())
    }
}
