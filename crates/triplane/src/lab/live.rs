//! Implements the subcommands of `triplane lab` for live networks. [`lab_live`] runs the networks; this module
//! translates command-line options into its arguments and prints its results.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use compiler::Architecture;
use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use ir::Program;
use lab::scenario::Scenario;
use lab::{KernelUse, Topology};
use lab_live::client::CaptureError;
use lab_live::kernel_part::{KernelNotes, KernelPart, KernelPlan, KernelPort};
use lab_live::traffic::{self, ReplayedFrames, TrafficProcess};
use lab_live::{
    ControllerEndpoint, DaemonConnection, DaemonSettings, LabError, LabLifetime, LabRequest, LiveNetwork, RequestError,
    RunDirectory, StartedLab, client,
};
use p4runtime_server::Pipeline;
use resilient_switch::replicated_groups;
use switch::BuildError;
use v1model::{Executor, Switch};
use v1model_runtime::LiveSwitch;

use super::args::{
    DaemonArgs, DownArgs, LinkArgs, LinkState, LiveArgs, NameArgs, NodeArgs, PcapArgs, RunArgs, SwitchMainArgs, UpArgs,
};
use super::members;
use super::network::Network;
use super::relaunch::ChildArguments;
use super::wanted::{Live, Wanted};
use super::{report, shims, simulate};
use crate::control::{FIXED_BY_MEMORY, FIXED_BY_STORES};
use crate::load::{self, ARCHITECTURE};
use crate::output::{Failure, Output};
use crate::signals::flag_signals;

impl From<LabError> for Failure {
    fn from(error: LabError) -> Failure {
        match error {
            LabError::ParentExited(source) => Failure::from(source),
            error if error.is_usage() => Failure::Usage(error.sentence()),
            error => Failure::Environment(error.into()),
        }
    }
}

impl LiveNetwork for Network {
    type Switch = LiveSwitch<Switch>;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn endpoint(&self, switch: usize) -> Option<ControllerEndpoint> {
        self.endpoints[switch]
    }

    fn architecture(&self) -> &'static dyn Architecture {
        ARCHITECTURE
    }

    fn kernel_plan(&self, switch: usize) -> KernelPlan {
        self.kernel.of(switch)
    }

    fn attach_kernel(
        &self,
        switch: usize,
        running: &mut LiveSwitch<Switch>,
        ports: Vec<KernelPort>,
        notes: KernelNotes,
    ) -> Result<Box<dyn KernelPart<LiveSwitch<Switch>>>, String> {
        Network::attach_kernel(self, switch, running, ports, &notes)
    }

    fn create_cluster(&self, directory: &Path) -> Result<bool, LabError> {
        let Some(replication) = &self.replication else { return Ok(false) };
        members::create_cluster(&self.topology, replication, directory)?;
        Ok(true)
    }

    fn read_cluster(&self, directory: &Path) -> Result<(), LabError> {
        if self.replication.is_some() { Network::read_cluster(self, directory) } else { Ok(()) }
    }

    fn switch(&self, switch: usize, seed: u64) -> LiveSwitch<Switch> {
        self.live_switch(switch, seed)
    }

    fn switch_for(&self, at: usize, seed: u64, program: Arc<Program>) -> Result<LiveSwitch<Switch>, BuildError> {
        if self.remote_tables.has(at) {
            return Err(FIXED_BY_MEMORY.into());
        }
        match &self.replication {
            Some(replication) if replication.has(at) => return Err(FIXED_BY_STORES.into()),
            Some(_) if replicated_groups(&program).is_ok() => {
                return Err("the stores of this lab do not know the switch: its program had no resilient state".into());
            }
            _ => {}
        }
        Ok(LiveSwitch::first(self.connect(at, Network::switch_for(self, at, seed, program)?)))
    }

    fn pipeline(&self, switch: usize) -> Option<Pipeline> {
        Network::pipeline(self, switch)
    }
}

/// Loads a network for live use, with the executor of its processes.
pub fn load_network(
    args: &LiveArgs,
    executor: Executor,
    only: Option<&str>,
    output: &Output,
) -> Result<Network, Failure> {
    let kernel = args.kernel.map(KernelUse::from);
    let live = Live { p4runtime: args.p4runtime, kernel, interpret: args.interpret, only };
    let wanted = Wanted { executor, live: Some(live) };
    Network::load_for(&args.topology, &wanted, output)
}

/// Reads the network and every file that it names, and reports every mistake, before anything is created.
fn check(args: &UpArgs, output: &Output) -> Result<Network, Failure> {
    let network = load_network(&args.live, Executor::Interpreter, None, output);
    // The user should know about an obstacle together with the mistakes. Without mistakes the start reports it.
    if network.is_err()
        && let Some(obstacle) = lab_live::obstacle(&ChildArguments::network(&args.live))
    {
        output.note(&format!("also, no live network can be created here: {obstacle}"));
    }
    network
}

/// Starts a network that has been checked. Returns its name.
fn start(
    args: &UpArgs,
    lifetime: LabLifetime,
    stop: &AtomicBool,
    output: &Output,
) -> Result<(String, StartedLab), Failure> {
    let name = lab_live::lab_name(&args.live.topology.topology, args.name.as_deref())?;
    let arguments = ChildArguments::network(&args.live);
    let started = lab_live::start(&name, lifetime, &arguments, stop, &mut |note| output.note(note));
    let started = started.inspect_err(|error| {
        if matches!(error, LabError::Interrupted) {
            output.note("interrupted; everything was cleaned up");
        }
    })?;
    Ok((name, started))
}

/// Warns of every switch whose controllers may come from other machines.
fn note_reachable_endpoints(network: &Network, output: &Output) {
    for (switch, endpoint) in network.topology.switches.iter().zip(&network.endpoints) {
        if let Some(ControllerEndpoint { address, device_id }) = endpoint
            && !address.ip().is_loopback()
        {
            let name = &switch.name;
            output.note(&format!(
                "{name}: P4Runtime on {address}, device {device_id}, without TLS: any client that reaches this address \
                 controls the switch"
            ));
        }
    }
}

/// Notes what runs in the kernel and what does not.
fn note_kernel_ports(name: &str, network: &Network, output: &Output) -> Result<(), Failure> {
    network.kernel.notes.iter().for_each(|note| output.note(note));
    if network.kernel.has_any()
        && let Some(lab) = RunDirectory::find(name)?
    {
        let status = client::request(&lab, &LabRequest::Status)?;
        report::kernel_notes(&status).iter().for_each(|note| output.note(note));
    }
    Ok(())
}

/// Runs `triplane lab up`.
pub fn up(args: &UpArgs, output: &Output) -> Result<(), Failure> {
    let network = check(args, output)?;
    let stop = flag_signals()?;
    let (name, started) = start(args, LabLifetime::Independent, &stop, output)?;
    output.print(&format!("lab {name}: {} up in {:.2} s\n", network.describe(), started.took.as_secs_f64()))?;
    for (switch, endpoint) in network.topology.switches.iter().zip(&network.endpoints) {
        if let Some(ControllerEndpoint { address, device_id }) = endpoint {
            output.print(&format!("{}: P4Runtime on {address}, device {device_id}\n", switch.name))?;
        }
    }
    if let Some(stores) = members::describe(&network) {
        output.print(&format!("{stores}\n"))?;
    }
    if let Some(shims) = shims::describe(&network.topology) {
        output.print(&format!("{shims}\n"))?;
    }
    note_kernel_ports(&name, &network, output)?;
    note_reachable_endpoints(&network, output);
    let first = network.topology.hosts.first().map_or("h1", |host| host.name.as_str());
    output.note(&format!("try: triplane lab exec {first} ip addr; triplane lab status; triplane lab down"));
    Ok(())
}

/// Runs `triplane lab run`: starts a network, plays a scenario, and tears the network down whatever happens.
pub fn run(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let network = check(&args.up, output)?;
    let LoadedScenario { scenario, .. } = LoadedScenario::read(args, &network, output)?;
    if !scenario.captures.is_empty() {
        output.note("the scenario's captures are ignored; `triplane lab pcap` captures on a live network");
    }
    let mut args = args.clone();
    args.up.live.seed.get_or_insert(scenario.seed);
    // If this process is killed, the network ends with it.
    let stop = flag_signals()?;
    let (name, started) = start(&args.up, LabLifetime::Bound, &stop, output)?;
    output.note(&format!("lab {name}: {} up in {:.2} s", network.describe(), started.took.as_secs_f64()));
    note_kernel_ports(&name, &network, output)?;
    note_reachable_endpoints(&network, output);
    let played = traffic::play_in_process(&name, &ChildArguments::scenario(&args), &stop);
    if let Some(lab) = RunDirectory::find(&name)? {
        lab.end()?;
    }
    drop(started);
    match played?.code() {
        Some(0) => Ok(()),
        // That process has printed the reason.
        Some(code @ 1..=3) => std::process::exit(code),
        _ => Err(anyhow!("the scenario did not run to completion").into()),
    }
}

/// A scenario, the source map of its file, and the captures that it replays.
struct LoadedScenario {
    scenario: Scenario,
    map: SourceMap,
    replays: ReplayedFrames,
}

impl LoadedScenario {
    /// Reads the scenario and refuses what a live network cannot play.
    fn read(args: &RunArgs, network: &Network, output: &Output) -> Result<LoadedScenario, Failure> {
        let (scenario, map) = simulate::scenario(args.scenario.as_deref(), &network.topology, output)?;
        let mut diagnostics = Diagnostics::new();
        traffic::check_supported(&scenario, &network.topology, args.up.live.isolate, &mut diagnostics);
        output.diagnostics(&map, &diagnostics);
        match diagnostics.error_count() {
            0 => {
                let replays = simulate::replays(args.scenario.as_deref(), &scenario, &map, output)?;
                Ok(LoadedScenario { scenario, map, replays })
            }
            count => Err(Failure::Input(load::mistakes(count))),
        }
    }
}

/// Runs the hidden `triplane lab play`: plays a scenario on a network that is up.
pub fn play(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let process = TrafficProcess::enter(args.up.name.as_deref())?;
    // `lab run` has read the same files and printed the findings.
    let quiet = output.quiet();
    let network = check(&args.up, &quiet)?;
    let LoadedScenario { scenario, map, replays } = LoadedScenario::read(args, &network, &quiet)?;
    let seed = args.up.live.seed();
    let results = process.play(&network.topology, &scenario, &replays, seed)?;
    if args.json {
        output.print(&format!("{:#}\n", report::json(&network.topology, &results, seed)))?;
    } else {
        output.print(&report::traffic(&results.traffic))?;
        output.print(&report::values(&results.traffic))?;
    }
    if results.unmet.is_empty() {
        return Ok(());
    }
    let mut diagnostics = Diagnostics::new();
    for unmet in &results.unmet {
        diagnostics.push(Diagnostic::error("expectation", unmet.span, unmet.message.clone()));
    }
    output.diagnostics(&map, &diagnostics);
    Err(Failure::Input(match results.unmet.len() {
        1 => "1 expectation not met".to_owned(),
        count => format!("{count} expectations not met"),
    }))
}

/// Runs the hidden `triplane lab daemon`: the daemon of a network.
pub fn daemon(args: &DaemonArgs, output: &Output) -> Result<(), Failure> {
    let DaemonArgs { live, name, bound } = args;
    // An isolated switch is compiled in its own process.
    let executor = if live.interpret || live.isolate { Executor::Interpreter } else { Executor::Auto };
    // `check` has read the same files and printed the findings.
    let network = Arc::new(load_network(live, executor, None, &output.quiet())?);
    let settings = DaemonSettings { name: name.clone(), seed: live.seed(), isolate: live.isolate, is_bound: *bound };
    Ok(v1model_runtime::run_lab_daemon(
        network,
        &settings,
        Arc::new(ChildArguments::network(live)),
        &mut std::io::stdout(),
    )?)
}

/// Runs the hidden `triplane lab switch`: the process of one switch.
pub fn switch(args: &SwitchMainArgs, output: &Output) -> Result<(), Failure> {
    let daemon = DaemonConnection::from_stdout()?;
    let DaemonArgs { live, name, .. } = &args.daemon;
    let executor = if live.interpret { Executor::Interpreter } else { Executor::Auto };
    let network = Arc::new(load_network(live, executor, Some(&args.switch), &output.quiet())?);
    Ok(v1model_runtime::run_lab_switch(daemon, network, name, &args.switch, live.seed())?)
}

/// Runs `triplane lab down`.
pub fn down(args: &DownArgs, output: &Output) -> Result<(), Failure> {
    let names = match (args.all, args.name()) {
        (true, _) => RunDirectory::names()?,
        // A lab that crashed leaves its directory behind, and possibly processes that still run on its hosts.
        (false, Some(name)) if RunDirectory::names()?.iter().any(|known| known == name) => vec![name.to_owned()],
        (false, None) if RunDirectory::all()?.is_empty() && !RunDirectory::crashed()?.is_empty() => {
            RunDirectory::crashed()?
        }
        (false, name) => vec![RunDirectory::choose(name)?.name],
    };
    for name in names {
        match RunDirectory::find(&name)? {
            Some(lab) => {
                lab.end()?;
                output.print(&format!("lab {name}: down\n"))?;
            }
            None => {
                RunDirectory::sweep(&name)?;
                output.print(&format!("lab {name}: had crashed; cleaned up what it left behind\n"))?;
            }
        }
    }
    Ok(())
}

/// Returns the selected network, or the only one that is up.
fn choose(args: &NameArgs) -> Result<RunDirectory, Failure> {
    Ok(RunDirectory::choose(args.lab.as_deref())?)
}

/// Runs `triplane lab exec` and `triplane lab shell`: replaces this process with the command on a host.
pub fn exec(lab: &NameArgs, host: &str, command: &[String]) -> Result<(), Failure> {
    match lab_live::exec_in_host(&choose(lab)?, host, command)? {}
}

/// Runs `triplane lab status`.
pub fn status(args: &NameArgs, json: bool, output: &Output) -> Result<(), Failure> {
    let lab = choose(args)?;
    let mut status = client::request(&lab, &LabRequest::Status)?;
    members::add_roles(&lab.name, &mut status);
    report::add_tiny_counts(&mut status);
    output.print(&if json { format!("{status:#}\n") } else { report::status(&lab.name, &status) })
}

/// Runs `triplane lab fail` and `triplane lab heal`.
pub fn fail(args: &NodeArgs, failed: bool, output: &Output) -> Result<(), Failure> {
    let request = LabRequest::Fail { node: args.node.clone(), failed };
    let changed = client::request(&choose(&args.lab)?, &request)? == true;
    let state = match (failed, changed) {
        (true, true) => "is down; its state is lost",
        (true, false) => "was already down",
        (false, true) => "restarted in its initial state",
        (false, false) => "is already running",
    };
    output.print(&format!("{} {state}\n", args.node))
}

/// Runs `triplane lab suspend` and `triplane lab resume`.
pub fn suspend(args: &NodeArgs, is_suspended: bool, output: &Output) -> Result<(), Failure> {
    let request = LabRequest::Suspend { node: args.node.clone(), is_suspended };
    match client::request(&choose(&args.lab)?, &request) {
        Err(LabError::Refused(error @ RequestError::NoProcess(_))) => {
            return Err(Failure::Usage(format!("{error}: start the lab with --isolate")));
        }
        result => _ = result?,
    }
    output.print(&format!("{} {}\n", args.node, if is_suspended { "is suspended" } else { "continues" }))
}

/// Runs `triplane lab link`.
pub fn link(args: &LinkArgs, output: &Output) -> Result<(), Failure> {
    let up = args.state == LinkState::Up;
    let request = LabRequest::Link { one: args.one.clone(), other: args.other.clone(), up };
    client::request(&choose(&args.lab)?, &request)?;
    output.print(&format!("the link between {} and {} is {}\n", args.one, args.other, if up { "up" } else { "down" }))
}

/// Runs `triplane lab pcap`: captures the frames that pass through a port, until Ctrl-C.
pub fn pcap(args: &PcapArgs, output: &Output) -> Result<(), Failure> {
    let lab = choose(&args.lab)?;
    let to_stdout = args.file.as_os_str() == "-";
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "refusing to write a binary capture to a terminal: redirect it or name a file".to_owned(),
        ));
    }
    // A refused capture leaves the file as it is.
    let capture = client::capture(&lab, &args.port)?;
    let mut sink: Box<dyn Write> = if to_stdout {
        Box::new(std::io::stdout().lock())
    } else {
        let shown = args.file.display();
        Box::new(std::fs::File::create(&args.file).with_context(|| format!("cannot write {shown}"))?)
    };
    output.note(&format!("capturing {}; press Ctrl-C to stop", args.port));
    match capture.copy_to(&mut *sink) {
        Ok(()) => Ok(()),
        Err(CaptureError::Lab(error)) => Err(error.into()),
        Err(CaptureError::Write(error)) if to_stdout => Err(error.into()),
        Err(CaptureError::Write(error)) => {
            Ok(Err(error).with_context(|| format!("cannot write {}", args.file.display()))?)
        }
    }
}
