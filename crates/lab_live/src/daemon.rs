//! Runs the daemon of a lab: it creates the network, runs its switches or the processes that do, and serves requests
//! until it is asked to end.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::Topology;
use ports::namespace::{Namespace, NamespaceError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::LabError;
use crate::controller::{self, ControllerListener};
use crate::error::failed_to;
use crate::host_namespace::HostNamespace;
use crate::live_network::LiveNetwork;
use crate::member_process::{MemberKind, MemberProcess};
use crate::neighbours::Neighbours;
use crate::relaunch::ProcessArguments;
use crate::run_directory::{ProcessTable, RunDirectory};
use crate::server::{NodeHandle, RequestHandler, SWITCH_TIMEOUT};
use crate::shim_process::ShimProcess;
use crate::socket::SocketLimits;
use crate::switch_process::SwitchProcess;
use crate::switch_thread::{SwitchCommand, SwitchThread};
use crate::{host_processes, socket, veth_links};

/// The line that the daemon writes when the network is ready.
pub(crate) const READY: &str = "ready";

/// The prefix of a line with a note for the user who started the network.
pub(crate) const NOTE: &str = "note: ";

/// Interval at which the daemon checks whether its run directory still exists.
const DIRECTORY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Settings of a lab's daemon.
#[derive(Clone, Debug)]
pub struct DaemonSettings {
    /// Name of the lab.
    pub name: String,
    /// Seed of link losses and of the programs' random numbers.
    pub seed: u64,
    /// Whether each switch runs in a process of its own.
    pub isolate: bool,
    /// Whether the lab ends when standard input does, which happens when the process at its other end ends.
    pub is_bound: bool,
}

/// Runs the daemon of a lab until a request or a signal ends it. `starter` is read by the process that started this
/// one: it gets notes, and a line when the network is ready. The calling process must have one thread only.
///
/// # Errors
/// Returns an error if the network cannot be created. Everything that was created has been removed then.
pub fn run_daemon<N: LiveNetwork + ?Sized>(
    network: Arc<N>,
    settings: &DaemonSettings,
    arguments: Arc<dyn ProcessArguments>,
    starter: &mut dyn Write,
) -> Result<(), LabError> {
    // These sockets stay in the namespace in which they were opened: that of all other programs of this machine.
    let switches = 0..network.topology().switches.len();
    let listeners = switches.map(|at| network.endpoint(at).as_ref().map(controller::bind).transpose());
    let listeners: Vec<Option<TcpListener>> = listeners.collect::<Result<_, _>>()?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(failed_to("handle signals"))?;
    }
    // In a user namespace this process would have another user id.
    let processes = Arc::new(RunDirectory::prepare(&settings.name)?);
    let create = || {
        let namespace = create_namespace()?;
        namespace.disable_ipv6()?;
        if settings.is_bound {
            end_with_input(Arc::clone(&ended)).map_err(failed_to("watch standard input"))?;
        }
        let daemon = LabDaemon { settings, arguments, network, namespace, ended, processes };
        daemon.run(listeners, starter)
    };
    let result = create();
    RunDirectory::close(&settings.name);
    result
}

/// Moves this process, which must have one thread, into a namespace of its own: a network namespace for root, and a
/// user namespace with a network namespace for anyone else.
fn create_namespace() -> Result<Namespace, LabError> {
    Ok(Namespace::new_own().or_else(|_| Namespace::new_user())?)
}

/// Checks whether this process may create networks. It is in another namespace afterwards.
///
/// # Errors
/// Returns the reason why it may not.
pub fn check_permission() -> Result<(), LabError> {
    create_namespace().map(drop)
}

/// Sets `ended` at the end of standard input, which comes even if the process at its other end is killed.
fn end_with_input(ended: Arc<AtomicBool>) -> io::Result<()> {
    let wait = move || {
        // Nothing is ever written to it.
        let _ = io::stdin().lock().read(&mut [0]);
        ended.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("starter".to_owned()).spawn(wait).map(drop)
}

/// A daemon in the namespace of its switches.
struct LabDaemon<'a, N: ?Sized> {
    settings: &'a DaemonSettings,
    arguments: Arc<dyn ProcessArguments>,
    network: Arc<N>,
    namespace: Namespace,
    ended: Arc<AtomicBool>,
    processes: Arc<ProcessTable>,
}

/// The switches of a network, the processes that serve them, the shims of its hosts, and the threads that run or
/// supervise them.
#[derive(Default)]
struct RunningSwitches {
    switches: Vec<NodeHandle>,
    members: Vec<NodeHandle>,
    shims: Vec<NodeHandle>,
    threads: Vec<JoinHandle<()>>,
}

impl<N: LiveNetwork + ?Sized> LabDaemon<'_, N> {
    fn topology(&self) -> &Topology {
        self.network.topology()
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Creates the network, serves requests, and ends what it started.
    fn run(&self, listeners: Vec<Option<TcpListener>>, starter: &mut dyn Write) -> Result<(), LabError> {
        let topology = self.topology();
        let hosts = topology.hosts.iter().map(HostNamespace::new);
        let hosts: Vec<HostNamespace> = hosts.collect::<Result<_, _>>()?;
        // Before any process runs on a host.
        self.processes.set_namespaces(hosts.iter().map(HostNamespace::identity).collect::<Result<_, _>>()?)?;
        veth_links::create(topology, &self.namespace, &hosts, &|| self.has_ended())?;
        self.expect_wanted()?;
        for at in 0..topology.switches.len() {
            veth_links::prepare_hosts(topology, at, &self.network.kernel_plan(at).ports, &hosts)?;
        }
        for (at, (namespace, host)) in hosts.iter().zip(&topology.hosts).enumerate() {
            if topology.uplink(at).is_some() {
                namespace.configure(host)?;
            }
        }
        let start = Instant::now();
        // Their files and sockets must exist before a switch asks for rows.
        let members = self.start_members(&hosts)?;
        let mut running = if self.settings.isolate {
            self.start_processes(listeners)?
        } else {
            self.start_threads(listeners, start)?
        };
        self.release_hosts(&running, &hosts)?;
        for (name, member) in members {
            let (sender, commands) = channel();
            running.run(&name, move || member.supervise(&commands))?;
            running.members.push(NodeHandle { name, commands: sender, socket: None, fault: Arc::default() });
        }
        let result = self.serve(&hosts, &mut running, start, starter);
        // A shim that ends with its host would be started again.
        for shim in &running.shims {
            let _ = shim.commands.send(SwitchCommand::Stop);
        }
        host_processes::terminate_in_namespaces(&hosts);
        for node in running.switches.iter().chain(&running.members) {
            // It may have ended already.
            let _ = node.commands.send(SwitchCommand::Stop);
        }
        for thread in running.threads {
            thread.join().map_err(|_| LabError::SwitchPanicked)?;
        }
        result
    }

    /// Finds the ports that were to be kernel ports and are ordinary ones, and lets their hosts be ordinary hosts.
    fn release_hosts(&self, running: &RunningSwitches, hosts: &[HostNamespace]) -> Result<(), NamespaceError> {
        for (at, switch) in running.switches.iter().enumerate() {
            let mut planned = self.network.kernel_plan(at).ports;
            if planned.is_empty() {
                continue;
            }
            let (sender, status) = channel();
            // A switch that has just ended has no kernel ports.
            let _ = switch.commands.send(SwitchCommand::Status(sender));
            let kernel = status.recv_timeout(SWITCH_TIMEOUT).ok().and_then(|status| status.kernel);
            let kernel_ports = kernel.map(|kernel| kernel.ports).unwrap_or_default();
            planned.retain(|port| !kernel_ports.contains(port));
            veth_links::release_hosts(self.topology(), at, &planned, hosts)?;
        }
        Ok(())
    }

    /// Creates the files of the stores. Returns false if there are no stores, or they have nothing to keep.
    fn create_cluster(&self) -> Result<bool, LabError> {
        if self.topology().stores().is_empty() {
            return Ok(false);
        }
        let directory = RunDirectory::cluster(&self.settings.name);
        RunDirectory::create_part(&directory)?;
        if !self.network.create_cluster(&directory)? {
            return Ok(false);
        }
        self.network.read_cluster(&directory)?;
        Ok(true)
    }

    /// Starts the stores, their operator and the memory servers, each in a process of its own, and waits until they
    /// serve.
    fn start_members(&self, hosts: &[HostNamespace]) -> Result<Vec<(String, MemberProcess)>, LabError> {
        let (topology, lab) = (self.topology(), &self.settings.name);
        let mut kinds = Vec::new();
        if self.create_cluster()? {
            let store = |at: usize| (at, MemberKind::Store { is_durable: topology.hosts[at].is_durable });
            kinds.extend(topology.stores().map(store));
            kinds.extend(topology.operator().map(|at| (at, MemberKind::Operator)));
        }
        kinds.extend(topology.all_memory_servers().filter_map(|at| {
            let host = &topology.hosts[at];
            let (address, _) = host.address?;
            Some((at, MemberKind::Memory { address, size: host.memory? }))
        }));
        let mut members = Vec::new();
        for (at, kind) in kinds {
            let host = &topology.hosts[at];
            let (arguments, table) = (Arc::clone(&self.arguments), Arc::clone(&self.processes));
            let namespace = Arc::clone(&hosts[at].namespace);
            let mut member = MemberProcess::new((lab, &host.name, kind), namespace, arguments, table);
            member.start()?;
            members.push((host.name.clone(), member));
        }
        for (_, member) in &mut members {
            self.expect_wanted()?;
            member.wait_until_ready()?;
        }
        Ok(members)
    }

    /// Starts the shims of hosts, each in a process of its own, and waits until they pass packets.
    fn start_shims(&self, hosts: &[HostNamespace], running: &mut RunningSwitches) -> Result<(), LabError> {
        let mut shims = Vec::new();
        for at in self.topology().shims() {
            let host = &hosts[at];
            let (arguments, table) = (Arc::clone(&self.arguments), Arc::clone(&self.processes));
            let lab = self.settings.name.as_str();
            let mut shim = ShimProcess::new((lab, &host.name), Arc::clone(&host.namespace), arguments, table);
            shim.start()?;
            shims.push((host.name.clone(), shim));
        }
        for (name, mut shim) in shims {
            self.expect_wanted()?;
            shim.wait_until_ready()?;
            let (sender, commands) = channel();
            running.run(&name, move || shim.supervise(&commands))?;
            running.shims.push(NodeHandle { name, commands: sender, socket: None, fault: Arc::default() });
        }
        Ok(())
    }

    /// Returns a channel of commands for each switch.
    fn command_channels(&self) -> (Vec<Sender<SwitchCommand>>, Vec<Receiver<SwitchCommand>>) {
        self.topology().switches.iter().map(|_| channel()).unzip()
    }

    /// Runs every switch in a thread of this process.
    fn start_threads(&self, listeners: Vec<Option<TcpListener>>, start: Instant) -> Result<RunningSwitches, LabError> {
        let mut running = RunningSwitches::default();
        let (ready, all_ready) = channel();
        let seed = self.settings.seed;
        let (senders, receivers) = self.command_channels();
        let open = |at| veth_links::switch_ports(self.topology(), at, &self.network.kernel_plan(at), seed);
        // A kernel port sends only to devices with a program, so the neighbours' ports are opened first.
        let opened: Vec<_> = (0..self.topology().switches.len()).map(open).collect::<Result<_, _>>()?;
        let switches = listeners.into_iter().zip(receivers).zip(opened).enumerate();
        for (at, ((listener, commands), ports)) in switches {
            let network = Arc::clone(&self.network);
            let listener = listener.zip(network.endpoint(at)).map(|(listener, endpoint)| {
                ControllerListener::new(listener, Arc::clone(&network), at, seed, endpoint)
            });
            let neighbours = Neighbours::new(self.topology(), at, &senders);
            // The threads compile their programs in parallel.
            let ready = ready.clone();
            running.add(&self.topology().switches[at].name, senders[at].clone(), None, move || {
                let created = SwitchThread::new((network, at, seed), listener, neighbours, ports, commands, start);
                let created = created.map(|mut thread| {
                    thread.start_services();
                    thread
                });
                // The daemon may have ended already.
                match created {
                    Ok(thread) => {
                        let _ = ready.send(Ok(()));
                        thread.run();
                    }
                    Err(error) => _ = ready.send(Err(error)),
                }
            })?;
        }
        drop(ready);
        for _ in &running.switches {
            self.expect_wanted()?;
            all_ready.recv().map_err(|_| LabError::SwitchPanicked)??;
        }
        Ok(running)
    }

    /// Runs every switch in a process of its own.
    fn start_processes(&self, listeners: Vec<Option<TcpListener>>) -> Result<RunningSwitches, LabError> {
        let (topology, lab) = (self.topology(), &self.settings.name);
        let (senders, receivers) = self.command_channels();
        let mut processes = Vec::new();
        for (at, listener) in listeners.into_iter().enumerate() {
            let name = &topology.switches[at].name;
            let files = (RunDirectory::switch_socket(lab, at), RunDirectory::log(lab, name));
            let ports = topology.ports(at).into_iter().map(|(port, _)| port);
            let has_kernel_ports = !self.network.kernel_plan(at).ports.is_empty();
            let interfaces = veth_links::host_interfaces(topology, at);
            let around = (Neighbours::new(topology, at, &senders), interfaces, has_kernel_ports);
            let (arguments, table) = (Arc::clone(&self.arguments), Arc::clone(&self.processes));
            let mut process = SwitchProcess::new((lab, name), arguments, table, files, listener, ports, around);
            process.start()?;
            processes.push(process);
        }
        let mut running = RunningSwitches::default();
        for (at, (mut process, commands)) in processes.into_iter().zip(receivers).enumerate() {
            self.expect_wanted()?;
            process.wait_until_ready()?;
            let socket = Some(RunDirectory::switch_socket(lab, at));
            let name = &topology.switches[at].name;
            running.add(name, senders[at].clone(), socket, move || process.supervise(&commands))?;
        }
        Ok(running)
    }

    /// Runs the hosts' commands, reports that the network is ready, and serves requests until the end.
    fn serve(
        &self,
        hosts: &[HostNamespace],
        running: &mut RunningSwitches,
        start: Instant,
        starter: &mut dyn Write,
    ) -> Result<(), LabError> {
        let listener = socket::listen(&RunDirectory::socket(&self.settings.name))?;
        let token = self.processes.token();
        let descriptors = hosts.iter().map(|host| (host.name.clone(), host.namespace.raw_descriptor())).collect();
        for (namespace, host) in hosts.iter().zip(&self.topology().hosts) {
            let log = RunDirectory::log(&self.settings.name, &host.name);
            let mut written = Ok(());
            namespace.run_commands(host, &log, &token, &|| self.has_ended(), &mut |note| {
                if written.is_ok() {
                    written = write_line(starter, &format!("{NOTE}{}", note.replace('\n', " ")));
                }
            });
            written?;
            self.expect_wanted()?;
        }
        // Commands may have added routes, and no packet of a user must be without its program.
        self.start_shims(hosts, running)?;
        self.processes.set_ready(descriptors)?;
        write_line(starter, READY)?;
        let (switches, members, shims) = (running.switches.clone(), running.members.clone(), running.shims.clone());
        let network = Arc::clone(&self.network);
        let handler = RequestHandler { network, switches, members, shims, start, switch_timeout: SWITCH_TIMEOUT };
        let mut checked = Instant::now();
        let ended = || {
            if self.has_ended() || checked.elapsed() < DIRECTORY_CHECK_INTERVAL {
                return self.has_ended();
            }
            checked = Instant::now();
            // A network without its run directory cannot be reached.
            !self.processes.is_listed()
        };
        socket::serve(&listener, SocketLimits::default(), ended, move |request| handler.handle(request));
        Ok(())
    }

    /// Fails if the daemon was asked to end.
    fn expect_wanted(&self) -> Result<(), LabError> {
        if self.has_ended() { Err(LabError::EndedWhileStarting) } else { Ok(()) }
    }
}

impl RunningSwitches {
    fn add(
        &mut self,
        name: &str,
        commands: Sender<SwitchCommand>,
        socket: Option<PathBuf>,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), LabError> {
        self.run(name, run)?;
        self.switches.push(NodeHandle { name: name.to_owned(), commands, socket, fault: Arc::default() });
        Ok(())
    }

    /// Starts a thread.
    fn run(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), LabError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads.push(thread.map_err(failed_to("start a thread"))?);
        Ok(())
    }
}

/// Writes a line for the process that started the lab.
fn write_line(starter: &mut dyn Write, line: &str) -> Result<(), LabError> {
    writeln!(starter, "{line}").and_then(|()| starter.flush()).map_err(LabError::ParentExited)
}
