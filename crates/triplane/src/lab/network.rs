//! Loads a topology with the programs and entries of its switches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use compiler::CompiledProgram;
use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use elastic_switch::MAX_SERVERS;
use lab::routes::ShortestPaths;
use lab::{End, Entries, Node, SwitchProgram, Topology};
use lab_live::{ControllerEndpoint, LabError};
use p4runtime_server::Pipeline;
use resilient_store::Cluster;
use resilient_switch::{InBandSwitch, replicated_groups};
use switch::PortId;
use v1model::{CPU_PORT, Config, Executor, Image, Switch};
use v1model_runtime::{LiveSwitch, simulated};

use super::args::TopologyArgs;
use super::kernel_plan::KernelPlans;
use super::narrow_links::narrow_links;
use super::remote_tables::{RemoteTables, UndersizedServer, oversized};
use super::replication::{Replication, Unreachable};
use super::wanted::{Live, Wanted};
use super::writes::Writes;
use super::{members, minions, shims};
use crate::load::{self, Loader, PLACEHOLDER, ProgramArgs};
use crate::memory;
use crate::output::{Failure, Output, counted};

/// The largest port number of a switch.
pub const MAX_PORT: u32 = v1model::MAX_PORT as u32;
/// Largest port number of any program.
pub const WIDEST_PORT: u32 = v1model::WIDEST_PORT as u32;

/// A network, ready to run: everything in it has been checked.
pub struct Network {
    pub topology: Topology,
    /// P4Runtime endpoints of live switches, in the order of the topology.
    pub endpoints: Vec<Option<ControllerEndpoint>>,
    switches: BTreeMap<usize, Ready>,
    /// The replication of resilient state, if there are stores.
    pub replication: Option<Arc<Replication>>,
    /// The switches whose tables lie in the memory of servers.
    pub remote_tables: RemoteTables,
    /// The ports of a live lab that are to run the programs in the kernel.
    pub kernel: KernelPlans,
    /// The stores of a live lab and the switches with resilient state, once their files are read.
    cluster: OnceLock<Cluster>,
}

/// A switch's program and entries.
struct Ready {
    program: Arc<ir::Program>,
    image: SharedImage,
    config: Config,
    entries: entries_file::Entries,
    /// The program as a controller sees it; `None` for a switch that waits for its controller to send one.
    pipeline: Option<Pipeline>,
}

/// A program that several switches may run.
struct Loaded {
    program: Arc<ir::Program>,
    /// The program as controllers see it, if any switch serves them.
    pipeline: Option<Pipeline>,
    image: SharedImage,
    map: SourceMap,
}

/// The compiled image that all switches of one program share. The first switch that starts creates it; the others wait
/// for it.
type SharedImage = Arc<OnceLock<Image>>;

impl Network {
    /// Returns the programs of the switches.
    pub fn programs(&self) -> impl Iterator<Item = &ir::Program> {
        self.switches.values().map(|ready| &*ready.program)
    }

    /// Reads a topology and every file that it names. Diagnostics have been printed when this returns.
    pub fn load(args: &TopologyArgs, executor: Executor, output: &Output) -> Result<Network, Failure> {
        Network::load_for(args, &Wanted { executor, live: None }, output)
    }

    /// Does the same as [`Network::load`] for a network that may be live.
    pub fn load_for(args: &TopologyArgs, wanted: &Wanted<'_>, output: &Output) -> Result<Network, Failure> {
        let text = load::read_regular(&args.topology, lab::read::MAX_BYTES as u64)?;
        let mut map = SourceMap::new();
        let mut diagnostics = Diagnostics::new();
        let file = map.add(&args.topology.display().to_string(), text.as_str());
        let topology = lab::read::read_partly(file, &text, WIDEST_PORT, &mut diagnostics);
        let topology = if diagnostics.has_errors() { Err(topology) } else { Ok(topology) };
        let folder = args.topology.parent().unwrap_or(Path::new("")).to_owned();
        let endpoints = match (&topology, wanted.live) {
            (Ok(topology), Some(live)) => lab_live::assign_endpoints(topology, live.p4runtime, &mut diagnostics),
            (Ok(topology), None) => {
                // Nothing is served, but an address conflict is still a mistake.
                lab_live::assign_endpoints(topology, None, &mut diagnostics);
                vec![None; topology.switches.len()]
            }
            (Err(_), _) => Vec::new(),
        };
        let mut reader = Reader { folder, args, programs: BTreeMap::new(), map, diagnostics, wrong: 0 };
        let switches = match &topology {
            Ok(topology) => Some(reader.switches(topology, &endpoints, wanted, output)?),
            // Reports the mistakes in the files that it names together with its own.
            Err(partly) => {
                reader.files(partly, wanted, output);
                None
            }
        };
        let replication = match (&topology, &switches) {
            (Ok(topology), Some(switches)) => reader.replication(topology, switches, wanted.live.is_some()),
            _ => None,
        };
        let remote_tables = match (&topology, &switches) {
            (Ok(topology), Some(switches)) => reader.remote_tables(topology, switches, wanted.live.is_some()),
            _ => RemoteTables::default(),
        };
        let kernel = match (&topology, wanted.live) {
            (Ok(topology), Some(live)) => reader.kernel(topology, live, &remote_tables),
            _ => KernelPlans::default(),
        };
        if let (Ok(topology), Some(switches)) = (&topology, &switches) {
            let map = minions::common_map(switches.values().map(|ready| &*ready.program));
            shims::check(topology, &reader.folder, &map, output, &mut reader.diagnostics);
        }
        output.diagnostics(&reader.map, &reader.diagnostics);
        let wrong = reader.wrong + reader.diagnostics.error_count();
        match (topology, switches) {
            (Ok(mut topology), Some(switches)) if wrong == 0 => {
                if let (Some(replication), Some(_)) = (&replication, wanted.live) {
                    replication.address_hosts(&mut topology);
                }
                let (replication, cluster) = (replication.map(Arc::new), OnceLock::new());
                Ok(Network { topology, endpoints, switches, replication, remote_tables, kernel, cluster })
            }
            _ => Err(Failure::Input(load::mistakes(wrong))),
        }
    }

    /// Returns the function that creates the switches.
    pub fn elements(self: &Arc<Self>, seed: u64, writes: &Arc<Writes>) -> lab::sim::MakeElement {
        let (network, writes) = (Arc::clone(self), Arc::clone(writes));
        let lives: Vec<AtomicU64> = self.topology.switches.iter().map(|_| AtomicU64::new(0)).collect();
        Arc::new(move |at| {
            let (switch, writes) = (network.switch(at, seed), Arc::clone(&writes));
            if network.remote_tables.has(at) {
                let life = lives[at].fetch_add(1, Ordering::Relaxed);
                let wrapped = network.remote_tables.wrap(at, switch, (seed, life), &writes.joining(at));
                return simulated::elastic(wrapped, writes);
            }
            match network.replication.as_deref() {
                Some(replication) if replication.has(at) => {
                    let life = lives[at].fetch_add(1, Ordering::Relaxed);
                    let switch = InBandSwitch::resilient(replication.wrap(at, switch, (seed, life)));
                    simulated::in_band(switch, writes)
                }
                replication => {
                    let routes = replication.and_then(|replication| replication.in_band(at)).cloned();
                    simulated::in_band(InBandSwitch::plain(switch, routes), writes)
                }
            }
        })
    }

    /// Returns the program of a switch.
    pub fn program(&self, at: usize) -> &ir::Program {
        &self.switches[&at].program
    }

    /// Creates a switch in its initial state.
    pub fn switch(&self, at: usize, seed: u64) -> Switch {
        let Ready { program, image, config, entries, .. } = &self.switches[&at];
        let make = || Image::new(Arc::clone(program), config.executor);
        let image = image.get_or_init(|| make().expect("the program was tried before"));
        let switch = Switch::from_image(image, self.config(at, seed)).expect("its ports were tried before");
        let mut switch = self.wired(at, switch);
        let mut refused = Diagnostics::new();
        entries_file::apply(&mut switch, entries, &mut refused);
        assert!(!refused.has_errors(), "the entries were tried before");
        switch
    }

    /// Creates a switch of a live lab in its initial state, connected to the stores.
    pub fn live_switch(&self, at: usize, seed: u64) -> LiveSwitch<Switch> {
        let switch = self.switch(at, seed);
        match self.remote_tables.config(at) {
            Some(config) => LiveSwitch::second(
                memory::wrap(switch, config).unwrap_or_else(|error| panic!("it was planned: {error}")),
            ),
            None => LiveSwitch::first(self.connect(at, switch)),
        }
    }

    /// Connects a switch of a live lab to its stores.
    pub fn connect(&self, at: usize, switch: Switch) -> InBandSwitch<Switch> {
        let node = (at, self.topology.switches[at].name.as_str());
        members::connect(node, switch, self.replication.as_deref(), self.cluster.get())
    }

    /// Reads the files that the stores of a live lab share with its switches.
    pub fn read_cluster(&self, directory: &Path) -> Result<(), LabError> {
        let cluster = members::read_cluster(directory)?;
        // The same files have been read before.
        let _ = self.cluster.set(cluster);
        Ok(())
    }

    /// Returns the program of a switch as controllers see it; `None` if the switch waits for one.
    pub fn pipeline(&self, at: usize) -> Option<Pipeline> {
        self.switches[&at].pipeline.clone()
    }

    /// Creates a switch of the network that is to run another program, without entries.
    pub fn switch_for(&self, at: usize, seed: u64, program: Arc<ir::Program>) -> Result<Switch, v1model::LoadError> {
        let config = self.config(at, seed);
        config.check_ports(&program)?;
        Ok(self.wired(at, Switch::new(program, config)?))
    }

    /// Returns the configuration with which a switch is created.
    fn config(&self, at: usize, seed: u64) -> Config {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(at as u64);
        let number = u32::try_from(at + 1).expect("a topology has at most 20,000 nodes");
        let tiny_programs = super::tiny::settings(&self.topology, at, number);
        let int = super::tiny::int_settings(&self.topology, at, number);
        Config { seed, tiny_programs, int, ..self.switches[&at].config.clone() }
    }

    /// Connects a switch to its links. Frames queue for the links inside the switch, where programs can read the queue
    /// depth, and not after it.
    fn wired(&self, at: usize, mut switch: Switch) -> Switch {
        let ready = &self.switches[&at];
        for link in &self.topology.links {
            for end in link.ends.iter().filter(|end| end.node == Node::Switch(at)) {
                switch.set_port_bandwidth(PortId(end.port), link.shape.rate.map(lab::Rate::bps));
                if ready.entries.queues.is_empty() && link.shape.rate.is_some() {
                    switch.set_queue_depth(PortId(end.port), None, link.shape.queue as usize);
                }
            }
        }
        switch
    }

    /// Summarizes the network: `4 hosts, 2 switches, 5 links`.
    pub fn describe(&self) -> String {
        let Topology { switches, links, .. } = &self.topology;
        let stores = match self.topology.stores().len() {
            0 => String::new(),
            stores => format!("{}, ", counted(stores, "store", "stores")),
        };
        format!(
            "{}, {}, {stores}{}",
            counted(self.topology.machines(), "host", "hosts"),
            counted(switches.len(), "switch", "switches"),
            counted(links.len(), "link", "links")
        )
    }
}

struct Reader<'a> {
    folder: PathBuf,
    args: &'a TopologyArgs,
    programs: BTreeMap<PathBuf, Option<Loaded>>,
    map: SourceMap,
    diagnostics: Diagnostics,
    /// Number of mistakes in programs and entries; they have been printed.
    wrong: usize,
}

/// Returns the location of the first link at a port of a switch that is larger than `max`.
fn widest_end(topology: &Topology, at: usize, max: u32) -> Option<Span> {
    let is_beyond = |end: &End| end.node == Node::Switch(at) && end.port > max;
    topology.links.iter().find(|link| link.ends.iter().any(is_beyond)).map(|link| link.span)
}

impl Reader<'_> {
    /// Plans the replication of resilient state.
    fn replication(
        &mut self,
        topology: &Topology,
        switches: &BTreeMap<usize, Ready>,
        is_live: bool,
    ) -> Option<Replication> {
        for (span, message) in narrow_links(topology, is_live) {
            self.finding(span, message, "omit `mtu`, or use a larger one");
        }
        let Some(store) = topology.hosts.get(topology.stores().start) else {
            self.warn_of_empty_tables(topology, switches);
            return None;
        };
        if !is_live {
            self.warn_of_durable_stores(topology);
        }
        let is_resilient = |(_, ready): &(&usize, &Ready)| replicated_groups(&ready.program).is_ok();
        let resilient: BTreeSet<usize> = switches.iter().filter(is_resilient).map(|(at, _)| *at).collect();
        match Replication::plan(topology, &resilient) {
            Ok(Some(planned)) => return Some(planned),
            Ok(None) => {
                let message = "no program of this topology has resilient state, so the stores have nothing to keep";
                let warning = Diagnostic::warning("idle-store", store.span, message);
                self.diagnostics.push(warning.help("write @resilient before a register or table"));
            }
            Err(unreachable) => {
                for Unreachable { switch, store } in unreachable {
                    let (switch, store) = (&topology.switches[switch], &topology.hosts[store].name);
                    let message = format!("there is no way from `{}` to the store `{store}`", switch.name);
                    let help = "link them over switches, which pass the messages on";
                    self.finding(switch.span, message, help);
                }
            }
        }
        None
    }

    /// Plans the tables in the memory of servers.
    fn remote_tables(&mut self, topology: &Topology, switches: &BTreeMap<usize, Ready>, is_live: bool) -> RemoteTables {
        let mut planned = RemoteTables::default();
        let Some(first) = topology.hosts.iter().find(|host| host.memory.is_some()) else { return planned };
        if !topology.stores().is_empty() {
            let help = "use two labs: one with stores, the other with memory servers";
            self.finding(first.span, "a lab cannot have stores and memory servers together yet".to_owned(), help);
            return planned;
        }
        for (at, ready) in switches {
            let is_elastic = ready.program.tables.values().any(ir::Table::is_elastic);
            let servers = topology.memory_servers(*at);
            match (is_elastic, servers.first()) {
                (false, Some((_, host))) => {
                    let message = format!("`{}` lends memory that nobody uses", topology.hosts[*host].name);
                    let warning = Diagnostic::warning("idle-memory", topology.hosts[*host].span, message);
                    let help = "write @elastic before a table of the switch at its link";
                    self.diagnostics.push(warning.help(help));
                }
                (true, Some(_)) if servers.len() > MAX_SERVERS => {
                    let message =
                        format!("the switch has {} memory servers; there can be {MAX_SERVERS}", servers.len());
                    self.finding(topology.switches[*at].span, message, "remove `memory` from some hosts at its links");
                }
                (true, Some(_)) => {
                    for error in oversized(&ready.program, &ready.entries) {
                        let help = "a prefix counts as the cells that it may take (docs/elastic.md)";
                        self.finding(topology.switches[*at].span, error.to_string(), help);
                    }
                    for UndersizedServer { host, needed } in
                        planned.add(topology, *at, &ready.program).err().unwrap_or_default()
                    {
                        let (host, kib) = (&topology.hosts[host], needed.div_ceil(1024));
                        let message = format!("the @elastic tables take {needed} bytes of each memory server");
                        self.finding(host.span, message, &format!("write memory = \"{kib}KiB\" or more"));
                    }
                }
                (_, None) => {}
            }
        }
        if is_live {
            planned.set_live_times();
        }
        planned
    }

    /// Plans the kernel ports.
    fn kernel(&mut self, topology: &Topology, live: Live<'_>, remote_tables: &RemoteTables) -> KernelPlans {
        let mut plans = KernelPlans::new(topology, live, |at| remote_tables.has(at));
        for (span, message, help) in std::mem::take(&mut plans.mistakes) {
            self.finding(span, message, &help);
        }
        plans
    }

    /// Warns of stores whose rows would survive a crash in a live lab, and do not here.
    fn warn_of_durable_stores(&mut self, topology: &Topology) {
        for store in topology.hosts.iter().filter(|host| host.is_durable) {
            let message = format!("`{}` loses its rows in a crash: simulated stores have no disks", store.name);
            let warning = Diagnostic::warning("no-disk", store.span, message);
            self.diagnostics.push(warning.help("run the lab with `triplane lab up`, where `durable` has an effect"));
        }
    }

    /// Warns of tables whose entries only stores create.
    fn warn_of_empty_tables(&mut self, topology: &Topology, switches: &BTreeMap<usize, Ready>) {
        for (at, ready) in switches {
            if let Some(table) = ready.program.tables.values().find(|table| table.is_resilient()) {
                let message = format!("the @resilient table `{}` stays empty: the lab has no stores", table.name);
                let warning = Diagnostic::warning("no-store", topology.switches[*at].span, message);
                self.diagnostics.push(warning.help("add a section such as [stores.a], and a link to it"));
            }
        }
    }

    fn switches(
        &mut self,
        topology: &Topology,
        endpoints: &[Option<ControllerEndpoint>],
        wanted: &Wanted<'_>,
        output: &Output,
    ) -> Result<BTreeMap<usize, Ready>, Failure> {
        let executor = wanted.executor;
        // The routes of messages to stores depend on which programs have resilient state.
        let only = wanted.live.and_then(|live| live.only).filter(|_| topology.stores().is_empty());
        let computed = topology.switches.iter().any(|switch| switch.entries == Entries::ShortestPaths);
        let computed = computed.then(|| ShortestPaths::new(topology));
        let mut ready = BTreeMap::new();
        for (at, switch) in topology.switches.iter().enumerate() {
            if only.is_some_and(|only| only != switch.name) {
                continue;
            }
            let served = endpoints[at].is_some();
            let (path, span) = match self.named(switch) {
                Some(named) => named,
                // Its controller sends one, as the tutorials' controllers do.
                None if served => (PathBuf::from(PLACEHOLDER.0), switch.span),
                None => {
                    self.unsaid(switch);
                    continue;
                }
            };
            self.load(&path, span, endpoints.iter().any(Option::is_some), output);
            let Some(Some(loaded)) = self.programs.get(&path) else { continue };
            let ports = topology.ports(at).into_iter().map(|(port, _)| PortId(port)).collect();
            let cpu_port = switch.cpu_port.or(served.then_some(CPU_PORT)).map(PortId);
            let config = Config { ports, cpu_port, executor, ..Config::default() };
            // A controller's program may have wider ports than the one that waits for it.
            let is_awaited = served && path == Path::new(PLACEHOLDER.0);
            if !is_awaited && let Err(error) = config.check_ports(&loaded.program) {
                let max = u32::from(v1model::max_port(&loaded.program));
                let place = widest_end(topology, at, max).unwrap_or(switch.span);
                let help = "use smaller numbers, or a program that declares wider ports in its own v1model.p4";
                self.finding(place, format!("`{}` cannot run `{}`: {error}", switch.name, path.display()), help);
                continue;
            }
            let (pipeline, image) = (loaded.pipeline.clone(), Arc::clone(&loaded.image));
            // A trial run needs no machine code.
            let tried = Config { executor: Executor::Interpreter, ..config.clone() };
            let mut made = match Switch::new(Arc::clone(&loaded.program), tried) {
                Ok(made) => made,
                Err(error) => {
                    self.finding(span, format!("`{}` cannot run this program: {error}", switch.name), "");
                    continue;
                }
            };
            let mut map = loaded.map.clone();
            let text = match &switch.entries {
                Entries::None => None,
                Entries::ShortestPaths => {
                    computed.as_ref().map(|paths| ("shortest-paths".to_owned(), paths.entries(at).to_string()))
                }
                Entries::File(name, span) => {
                    let path = self.place(name);
                    match load::read_regular(&path, entries_file::MAX_FILE_BYTES) {
                        Ok(text) => Some((path.display().to_string(), text)),
                        Err(failure) => {
                            self.refused(*span, &failure);
                            continue;
                        }
                    }
                }
            };
            let mut diagnostics = Diagnostics::new();
            let parsed = text.map(|(name, text)| {
                let file: FileId = map.add(&name, text.as_str());
                crate::entries::parse(&map, file, made.program(), &mut diagnostics)
            });
            let parsed = parsed.unwrap_or_else(|| Some(entries_file::Entries::default()));
            if let Some(parsed) = &parsed {
                entries_file::apply(&mut made, parsed, &mut diagnostics);
            }
            output.diagnostics(&map, &diagnostics);
            self.wrong += diagnostics.error_count();
            if let (Some(entries), false) = (parsed, diagnostics.has_errors()) {
                ready.insert(at, Ready { program: Arc::clone(made.program()), image, config, entries, pipeline });
            }
        }
        Ok(ready)
    }

    /// Returns the program of a switch and the place that names it; `None` if no program is named.
    fn named(&self, switch: &lab::TopologySwitch) -> Option<(PathBuf, Span)> {
        match &switch.program {
            SwitchProgram::Router => Some((PathBuf::from(ROUTER), switch.span)),
            SwitchProgram::File(name, span) => Some((self.place(name), *span)),
            SwitchProgram::Unsaid => self.args.program.clone().map(|path| (path, switch.span)),
        }
    }

    /// Checks the programs and entries that an incorrect topology names.
    fn files(&mut self, partly: &Topology, wanted: &Wanted<'_>, output: &Output) {
        for switch in &partly.switches {
            let served = wanted.live.is_some_and(|live| live.p4runtime.is_some() || switch.p4runtime.is_some());
            let path = self.named(switch);
            match &path {
                Some((path, span)) => self.load(path, *span, false, output),
                None if served => {}
                None => self.unsaid(switch),
            }
            let Entries::File(name, span) = &switch.entries else { continue };
            let file = self.place(name);
            let loaded = path.and_then(|(path, _)| self.programs.get(&path)?.as_ref());
            match (load::read_regular(&file, entries_file::MAX_FILE_BYTES), loaded) {
                (Err(failure), _) => self.refused(*span, &failure),
                // It is unknown whether they fit the switch's ports, but known whether they fit its program.
                (Ok(text), Some(loaded)) => {
                    let (mut map, mut found) = (loaded.map.clone(), Diagnostics::new());
                    let file = map.add(&file.display().to_string(), text.as_str());
                    let _ = crate::entries::parse(&map, file, &loaded.program, &mut found);
                    output.diagnostics(&map, &found);
                    self.wrong += found.error_count();
                }
                (Ok(_), None) => {}
            }
        }
    }

    /// Reports a switch for which no program is named.
    fn unsaid(&mut self, switch: &lab::TopologySwitch) {
        let message = format!("the topology specifies no program for `{}`", switch.name);
        self.finding(switch.span, message, "specify one with --program");
    }

    /// Resolves the path of a file that the topology names. The tutorials name their files relative to the exercise,
    /// which keeps the topologies in folders of their own.
    fn place(&self, name: &str) -> PathBuf {
        let beside = self.folder.join(name);
        let above = self.folder.parent().map(|folder| folder.join(name));
        match above {
            Some(above) if !beside.exists() && above.exists() => above,
            _ => beside,
        }
    }

    /// Reads a program, once.
    fn load(&mut self, path: &Path, span: Span, is_served: bool, output: &Output) {
        if self.programs.contains_key(path) {
            return;
        }
        let builtin = [(ROUTER, lab::routes::ROUTER), PLACEHOLDER];
        let mut loader = match builtin.iter().find(|(name, _)| path == Path::new(name)) {
            Some((name, text)) => Loader::builtin(name, text),
            None => match Loader::open(&self.program_args(path)) {
                Ok(loader) => loader,
                Err(failure) => {
                    self.refused(span, &failure);
                    self.programs.insert(path.to_owned(), None);
                    return;
                }
            },
        };
        // A switch that waits for its controller's program shows controllers no program of its own.
        let is_described = is_served && path != Path::new(PLACEHOLDER.0);
        let compiled = loader.compile();
        output.diagnostics(&loader.map, &loader.diagnostics);
        self.wrong += loader.diagnostics.error_count();
        let described = compiled.as_ref().filter(|_| is_described);
        if let Some(error) = described.and_then(|compiled| compiler::check_names(&compiled.p4info).err()) {
            self.finding(span, error, "");
        }
        let loaded = compiled.map(|CompiledProgram { ir, p4info }| {
            let program = Arc::new(ir);
            let pipeline = is_described.then(|| Pipeline::new(Arc::clone(&program), p4info, loader.bytes().to_vec()));
            Loaded { program, pipeline, image: SharedImage::default(), map: loader.map.clone() }
        });
        self.programs.insert(path.to_owned(), loaded);
    }

    /// Returns a program and how to read it.
    fn program_args(&self, path: &Path) -> ProgramArgs {
        let TopologyArgs { include, define, .. } = self.args;
        let (program, allow) = (path.to_owned(), Vec::new());
        ProgramArgs { program, include: include.clone(), define: define.clone(), allow }
    }

    fn finding(&mut self, span: Span, message: String, help: &str) {
        let finding = Diagnostic::error("topology", span, message);
        self.diagnostics.push(if help.is_empty() { finding } else { finding.help(help) });
    }

    /// Reports that a file named by the topology cannot be read.
    fn refused(&mut self, span: Span, failure: &Failure) {
        self.finding(span, reason(failure), "");
    }
}

/// Returns the reason why a file cannot be read.
pub fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Environment(error) => format!("{error:#}"),
        Failure::Input(text) | Failure::Usage(text) | Failure::Different(text) | Failure::Trouble(text) => text.clone(),
        Failure::Closed => unreachable!("only what is printed is closed by its reader"),
    }
}

/// Name of the built-in router, used in place of a program's name.
const ROUTER: &str = "builtin:router";
