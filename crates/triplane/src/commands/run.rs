//! Runs `triplane run`: a program on ports, until Ctrl-C or the end of its captures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ::privileges::{KeptAccess, directory_of};
use anyhow::{Context, anyhow};
use p4runtime_server::{BoundServer, Listening, OperationHook, Pipeline};
use ports::{Port, PortError, PortKind, PortSpec, RecordedPort};
use resilient_store::RowsSocket;
use runtime::{Hook, LinkCallback, PortDrivers, RunConfig, RunReport};
use switch::{PacketSwitch, PortId, Takeover};
use v1model::{Config, Executor, Switch};
use v1model_runtime::hooks;
use v1model_runtime::memory_socket::MemorySocket;

use crate::cli::{RunArgs, RunProfile};
use crate::control::{BoundControl, ControlArgs};
use crate::kernel::ProgramSource;
use crate::load::Loader;
use crate::memory::ServerNotices;
use crate::messages::MessageLog;
use crate::output::{Failure, Output, is_damaged_capture};
use crate::state::{InitialProgram, State};
use crate::store::StoreConnection;
use crate::{control, kernel, memory, metrics, port_conflicts, privileges, progress, signals, state, summary};

/// Maximum number of notes about the link of a port, until it has not changed for some time.
const MAX_LINK_NOTES: u32 = 20;
const QUIET_LINK: Duration = Duration::from_secs(60);

/// Runs a program and prints the summary.
pub fn run(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let specs = parse_ports(args)?;
    let limit = args.duration.map(parse_duration).transpose()?;
    let is_offline = !specs.is_empty() && specs.iter().all(|spec| matches!(spec.kind, PortKind::Pcap { .. }));
    check_offline(args, is_offline)?;
    let is_served = args.control.p4runtime.is_some();
    let control = is_served.then(|| control::read_files(&args.control, output)).transpose()?;
    let state = args.control.state_dir.as_deref().map(State::open).transpose()?;
    let InitialProgram { program, pipeline, loader, name, is_placeholder } =
        state::program(args.program.as_ref(), state.as_ref(), is_served, output)?;
    if let (Some(files), Some(pipeline)) = (&control, &pipeline) {
        files.warn_of_unmatched(pipeline, output);
    }
    if is_placeholder && !args.entries.is_empty() {
        return Err(Failure::Usage("--entries requires a program (PROG.p4)".to_owned()));
    }
    refuse("--socket", [(args.socket.is_some() && args.store.is_none() && args.memory.is_empty(), SOCKET_USER)])?;
    check_store(args, is_offline, is_placeholder)?;
    check_memory(args, &specs, is_offline, is_placeholder)?;
    args.telemetry.check(&specs)?;
    args.telemetry.note_lost_reports(args.messages.is_some(), output);
    let is_checked = !is_placeholder;
    let mut switch = build_switch(args, &specs, program, is_checked, output)?;
    let is_restored = state.as_ref().is_some_and(|state| state.committed().is_some());
    apply_entries(&args.entries, loader, is_restored, &mut switch, output)?;
    let workers = count_workers(args, &specs, output);
    let ports = open_ports(args, &specs, workers, output)?;
    if is_offline {
        compile(&mut switch, output);
    }
    let log = Arc::new(args.messages.as_deref().map_or_else(|| Ok(MessageLog::default()), MessageLog::to_file)?);
    let mut config = RunConfig { workers, limit, sinks: vec![log.clone()], ..RunConfig::new(switch, ports) };
    config.sinks.extend(args.telemetry.reports()?);
    let in_kernel = (args.kernel, kernel_obstacle(args));
    let source = ProgramSource { is_placeholder, may_change: is_served };
    let in_kernel = kernel::attach(in_kernel, &specs, source, &mut config, output)?;
    let store = args.store.as_deref().zip(args.switch.as_deref());
    let store = store.map(|(cluster, name)| StoreConnection::open(cluster, name)).transpose()?;
    let socket = args.socket.as_deref();
    let rows_socket = socket.filter(|_| args.store.is_some()).map(RowsSocket::open).transpose()?;
    let memory_socket = socket.filter(|_| !args.memory.is_empty()).map(MemorySocket::open).transpose()?;
    let control = control.map(|files| control::bind(&args.control, files)).transpose()?;
    let metrics = args.metrics.map(metrics::bind).transpose()?;
    // Everything is open now. The threads that parse packets and serve controllers start without privileges.
    privileges::restrict(&kept_access(args), args.show_privileges, output)?;
    let what = if is_placeholder {
        "waiting for a controller to set a pipeline, until then dropping all packets,".to_owned()
    } else {
        format!("running {name}")
    };
    let services = BoundServices { control, pipeline, metrics };
    if !args.memory.is_empty() {
        return run_elastic(args, config, services, (memory_socket, &log), output);
    }
    if let Some(store) = store {
        return run_resilient(args, config, services, (store, rows_socket, &what), &log, output);
    }
    let BoundServices { control, pipeline, metrics } = services;
    let p4runtime = control.map(|control| serve(args, control, pipeline, state, &mut config, output)).transpose()?;
    let metrics =
        metrics.map(|bound| export_metrics(bound, |_, _| Vec::new(), &mut config.hooks, output)).transpose()?;
    if config.switch.program().tables.values().any(ir::Table::is_resilient) {
        output.note("the program has @resilient tables, which stay empty without --store");
    }
    let mut report = if is_offline { v1model_runtime::run_offline(config) } else { run_live(config, &what, output)? };
    if let Some(run) = in_kernel {
        run.end(&mut report.switch);
    }
    note_dropped_messages(p4runtime.as_ref(), output);
    let stored = p4runtime.as_ref().map_or(Ok(()), |server| server.store_last(&report.switch));
    drop((p4runtime, metrics));
    summarize(args, &report, &log, (is_offline, ""), output)?;
    stored.map_err(|error| anyhow!("the last registers and counters could not be kept: {error}"))?;
    fail_on_lost_ports(&report, is_offline)
}

/// Parses the ports. Two ports that cannot be opened together are an error before anything is opened.
fn parse_ports(args: &RunArgs) -> Result<Vec<PortSpec>, Failure> {
    let specs =
        PortSpec::parse_all(&args.ports, v1model::WIDEST_PORT).map_err(|error| Failure::Usage(error.to_string()))?;
    let program = args.program.as_ref().map(|program| program.program.as_path());
    let inputs = program.into_iter().chain(args.entries.iter().map(PathBuf::as_path));
    let conflict = port_conflicts::find_conflict(&specs)
        .or_else(|| {
            args.profile.has_cpu_port().then(|| port_conflicts::uses_cpu_port(&specs, args.control.cpu_port))?
        })
        .or_else(|| port_conflicts::overwrites(&specs, inputs));
    match conflict {
        Some(conflict) => Err(Failure::Usage(conflict)),
        None => Ok(specs),
    }
}

fn parse_duration(seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::Usage(format!("--duration {seconds} is not a valid duration: expected seconds, such as 10 or 0.5"))
    })
}

/// Refuses options that need a live port if every port is a capture.
fn check_offline(args: &RunArgs, is_offline: bool) -> Result<(), Failure> {
    let live_options = [("--p4runtime", args.control.p4runtime.is_some()), ("--metrics", args.metrics.is_some())];
    live_options.into_iter().try_for_each(|(option, is_set)| refuse(option, [(is_offline && is_set, LIVE_PORT)]))
}

/// Refuses options that do not go with replicated state.
fn check_store(args: &RunArgs, is_offline: bool, is_placeholder: bool) -> Result<(), Failure> {
    if args.store.is_none() {
        return Ok(());
    }
    refuse(
        "--store",
        [
            (is_offline, LIVE_PORT),
            (is_placeholder, PROGRAM),
            (args.control.state_dir.is_some(), "a run without --state-dir: the stores keep the state"),
            (args.workers > 1, "--workers 1: a row is written in one order"),
        ],
    )
}

/// Refuses options that do not go with tables in the memory of servers.
fn check_memory(args: &RunArgs, specs: &[PortSpec], is_offline: bool, is_placeholder: bool) -> Result<(), Failure> {
    if args.memory.is_empty() {
        return Ok(());
    }
    refuse(
        "--memory",
        [
            (is_offline, LIVE_PORT),
            (is_placeholder, PROGRAM),
            (args.workers > 1, "--workers 1: the entries of one key are looked up in order"),
            (args.control.state_dir.is_some(), "a run without --state-dir: a kept program could have other tables"),
        ],
    )?;
    for (at, server) in args.memory.iter().enumerate() {
        if !specs.iter().any(|spec| u32::from(spec.number) == server.port) {
            return Err(Failure::Usage(format!("--memory names port {}, which no --port has", server.port)));
        }
        if args.memory[..at].iter().any(|other| other.address == server.address) {
            return Err(Failure::Usage(format!("--memory names the server {} twice", server.address)));
        }
    }
    Ok(())
}

/// The need of options that act in real time.
const LIVE_PORT: &str = "a live port; captures are not processed in real time";
/// The need of the socket.
const SOCKET_USER: &str = "--store FILE or --memory ADDRESS@PORT: other runs have nothing to answer";
/// The need of options that depend on the program.
const PROGRAM: &str = "a program (PROG.p4)";

/// Refuses an option if one of these conflicts applies. Each has what the option requires.
fn refuse<const N: usize>(option: &str, conflicts: [(bool, &str); N]) -> Result<(), Failure> {
    match conflicts.into_iter().find(|(applies, _)| *applies) {
        Some((_, needed)) => Err(Failure::Usage(format!("{option} requires {needed}"))),
        None => Ok(()),
    }
}

/// Builds the switch, without machine code yet. Its ports are checked against the program unless a controller is to
/// send another one.
fn build_switch(
    args: &RunArgs,
    specs: &[PortSpec],
    program: Arc<ir::Program>,
    is_checked: bool,
    output: &Output,
) -> Result<Switch, Failure> {
    let config = Config {
        bandwidths: if args.profile.is_bmv2() { read_bandwidths(specs) } else { Vec::new() },
        ports: specs.iter().map(|spec| PortId(u32::from(spec.number))).collect(),
        cpu_port: args.profile.has_cpu_port().then_some(PortId(args.control.cpu_port)),
        seed: args.seed,
        executor: if args.interpret { Executor::Interpreter } else { Executor::Auto },
        tiny_programs: args.telemetry.tiny_programs(),
        int: args.telemetry.int(),
        ..Config::default()
    };
    if is_checked {
        check_drop_port(&args.profile, &program, output)?;
        config.check_ports(&program).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    // The placeholder is compiled at once: it is small, and no line should report its takeover.
    let built = if is_checked { Switch::deferred(program, config) } else { Switch::new(program, config) };
    built.map_err(|error| Failure::Input(error.to_string()))
}

/// Compiles the program before the first packet, for captures: they are not processed in real time.
fn compile(switch: &mut Switch, output: &Output) {
    if let Some(job) = switch.take_compile_job() {
        let code = progress::with_compile_progress(|| job.run(&AtomicBool::new(false)));
        switch.install(code);
    }
    output.note_if_interpreted(switch.why_interpreted());
}

/// Checks the drop port that a command line of BMv2 asks for. BMv2 drops at port 511 whatever the width of the ports.
fn check_drop_port(profile: &RunProfile, program: &ir::Program, output: &Output) -> Result<(), Failure> {
    let RunProfile::Bmv2 { drop_port, .. } = profile else { return Ok(()) };
    let meant = v1model::drop_port(program);
    let differs = format!("in this program, whose ports have {} bits, port {meant} means drop", meant.count_ones());
    match drop_port {
        Some(port) if *port != meant => Err(Failure::Usage(format!(
            "--drop-port {port} is not supported: {differs}; pass --drop-port {meant} or omit the option"
        ))),
        None if meant != v1model::DROP_PORT => {
            output.note(&format!("{differs}, and {} is a port like others, unlike in BMv2", v1model::DROP_PORT));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the bandwidths of the ports whose interfaces have a queueing discipline with a rate, as links of Mininet
/// have. Ports bypass it. An interface that is missing is reported when it is opened.
fn read_bandwidths(specs: &[PortSpec]) -> Vec<(PortId, u64)> {
    let rate = |spec: &PortSpec| match &spec.kind {
        PortKind::AfPacket { interface } => {
            let rate = ports::shaped_rate_bps(interface).ok().flatten()?;
            Some((PortId(u32::from(spec.number)), rate))
        }
        _ => None,
    };
    specs.iter().filter_map(rate).collect()
}

/// Applies the entries file, unless a state directory restores newer entries.
fn apply_entries(
    entries: &[PathBuf],
    loader: Option<Loader>,
    is_restored: bool,
    switch: &mut Switch,
    output: &Output,
) -> Result<(), Failure> {
    if is_restored {
        for path in entries {
            output.note(&format!("{} is ignored: the state directory has newer entries", path.display()));
        }
        return Ok(());
    }
    let Some(mut loader) = loader else { return Ok(()) };
    entries.iter().try_for_each(|path| loader.apply(path, switch, output))
}

/// Returns the reason why no packet of the run may be processed in the kernel.
fn kernel_obstacle(args: &RunArgs) -> Option<&'static str> {
    let obstacles = [
        (args.telemetry.int.is_some(), "--int adds metadata to packets, which only the switch can do"),
        (args.telemetry.tpp.is_some(), "--tpp executes tiny packet programs, which only the switch can do"),
        (args.store.is_some(), "--store replicates state, which only the switch can do"),
        (!args.memory.is_empty(), "--memory keeps tables on memory servers, which only the switch can query"),
        (args.interpret, "--interpret asks for the interpreter"),
    ];
    obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
}

/// Returns the number of workers. Captures have one order of frames, which only one worker keeps.
fn count_workers(args: &RunArgs, specs: &[PortSpec], output: &Output) -> usize {
    let capture = specs.iter().find(|spec| matches!(spec.kind, PortKind::Pcap { .. }));
    match capture {
        Some(spec) if args.workers > 1 => {
            output.note(&format!(
                "port {} is a capture, whose frames must be processed in order: using one worker",
                spec.number
            ));
            1
        }
        _ => args.workers,
    }
}

/// Opens the ports, each with one driver or with one for each worker.
fn open_ports(
    args: &RunArgs,
    specs: &[PortSpec],
    workers: usize,
    output: &Output,
) -> Result<Vec<PortDrivers>, Failure> {
    let opened = match workers {
        1 => PortSpec::open_all(specs)?.into_iter().map(|driver| vec![driver]).collect(),
        _ => PortSpec::open_for_workers(specs, workers)?,
    };
    let mut ports = Vec::new();
    for (spec, mut drivers) in specs.iter().zip(opened) {
        if args.profile.is_bmv2() {
            output.print(&format!("Adding interface {} as port {}\n", drivers[0].name(), spec.number))?;
        }
        if let Some(directory) = args.profile.recordings() {
            drivers = drivers.into_iter().map(|driver| record(driver, directory)).collect::<Result<_, _>>()?;
        }
        for note in drivers.iter().filter_map(|driver| driver.note()) {
            output.note(&format!("port {}: {note}", spec.number));
        }
        if workers > drivers.len() {
            output.note(&format!("port {}: {}", spec.number, shared_driver_note(spec, workers)));
        }
        ports.push(PortDrivers { id: PortId(u32::from(spec.number)), drivers });
    }
    Ok(ports)
}

/// Returns a driver that also writes its frames to capture files.
fn record(driver: Box<dyn Port>, directory: &Path) -> Result<Box<dyn Port>, Failure> {
    Ok(Box::new(RecordedPort::create(driver, directory)?))
}

/// Says that the workers share a driver, and how each can have its own.
fn shared_driver_note(spec: &PortSpec, workers: usize) -> String {
    let dealt = "one worker receives and distributes frames by flow";
    match &spec.kind {
        PortKind::Xdp { interface, .. } => format!(
            "`{interface}` has fewer queues than there are workers, so {dealt}; if the device supports it, `ethtool -L \
             {interface} combined {workers}` (on a veth `rx {workers} tx {workers}`) gives each worker its own queue"
        ),
        _ => format!("{dealt}; on AF_PACKET ports the kernel distributes them"),
    }
}

/// Returns the files that a running switch may still open: those of its state directory, and the directory of its
/// socket, which is removed at the end. Captures are already open.
fn kept_access(args: &RunArgs) -> KeptAccess {
    let directories = args.control.state_dir.as_deref().into_iter().chain(args.socket.as_deref().map(directory_of));
    directories.fold(KeptAccess::default(), KeptAccess::writing)
}

/// Starts the P4Runtime server and adds its hook and its sink to the run.
fn serve(
    args: &RunArgs,
    control: BoundControl,
    pipeline: Option<Pipeline>,
    state: Option<State>,
    config: &mut RunConfig<Switch>,
    output: &Output,
) -> Result<Listening, Failure> {
    let served = control::serve(&args.control, control, pipeline, state, &mut config.switch, None, output)?;
    config.hooks.push(hooks::operations(served.hook));
    config.sinks.push(Arc::new(served.sink));
    if args.profile.is_bmv2() {
        output.print(&format!("Server listening on {}\n", served.listening.address()))?;
    }
    Ok(served.listening)
}

/// Starts the metrics listener and adds its hook to the run.
fn export_metrics<S: PacketSwitch + 'static>(
    bound: BoundServer,
    families: metrics::SwitchFamilies<S>,
    hooks: &mut Vec<Box<dyn Hook<S>>>,
    output: &Output,
) -> Result<metrics::MetricsServer, Failure> {
    let (server, hook) = metrics::listen(bound, families)?;
    hooks.push(Box::new(hook));
    output.note(&metrics::note(&server));
    Ok(server)
}

fn run_live(config: RunConfig<Switch>, what: &str, output: &Output) -> Result<RunReport<Switch>, Failure> {
    let stop = signals::stop_on_signals()?;
    let config = announced(config, what, output);
    Ok(v1model_runtime::run_live(config, &stop).context("cannot open a socket")?)
}

/// The servers of a run. They are bound, and do not answer yet.
struct BoundServices {
    control: Option<BoundControl>,
    /// The pipeline that controllers find.
    pipeline: Option<Pipeline>,
    metrics: Option<BoundServer>,
}

impl BoundServices {
    /// Starts the P4Runtime server, if there is one, of a switch that is about to be wrapped. Controllers that set
    /// another pipeline get `reason` as the error. Returns the server, and the hook that processes its requests.
    fn serve_fixed_program(
        &mut self,
        args: &ControlArgs,
        config: &mut RunConfig<Switch>,
        reason: &'static str,
        output: &Output,
    ) -> Result<Option<(Listening, OperationHook)>, Failure> {
        let Some(control) = self.control.take() else { return Ok(None) };
        let pipeline = self.pipeline.take();
        let served = control::serve(args, control, pipeline, None, &mut config.switch, Some(reason), output)?;
        config.sinks.push(Arc::new(served.sink));
        Ok(Some((served.listening, served.hook)))
    }
}

/// Runs a switch whose state is replicated, and prints the summary.
fn run_resilient(
    args: &RunArgs,
    mut config: RunConfig<Switch>,
    mut services: BoundServices,
    (store, socket, what): (StoreConnection, Option<RowsSocket>, &str),
    log: &MessageLog,
    output: &Output,
) -> Result<(), Failure> {
    let stop = signals::stop_on_signals()?;
    let served = services.serve_fixed_program(&args.control, &mut config, control::FIXED_BY_STORES, output)?;
    let (p4runtime, operations) = served.unzip();
    let mut hooks: Vec<_> = operations.map(hooks::resilient_operations).into_iter().collect();
    let RunConfig { switch, ports, limit, sinks, .. } = config;
    let (switch, hook) = store.connect(switch, output)?;
    // The messages of moves leave in the same turn.
    hooks.extend(socket.map(hooks::rows));
    hooks.push(hooks::stores(hook));
    let metrics = services.metrics;
    let metrics = metrics.map(|bound| export_metrics(bound, metrics::resilient::families, &mut hooks, output));
    let metrics = metrics.transpose()?;
    let config = RunConfig { hooks, limit, sinks, ..RunConfig::new(switch, ports) };
    let config = announced(config, what, output);
    let report = v1model_runtime::run_resilient(config, &stop).context("cannot open a socket")?;
    note_dropped_messages(p4runtime.as_ref(), output);
    drop((p4runtime, metrics));
    let RunReport { switch, ports, elapsed } = report;
    let report = RunReport { switch: switch.into_inner(), ports, elapsed };
    summarize(args, &report, log, (false, ""), output)?;
    fail_on_lost_ports(&report, false)
}

/// Runs a switch whose tables lie in the memory of servers, and prints the summary.
fn run_elastic(
    args: &RunArgs,
    mut config: RunConfig<Switch>,
    mut services: BoundServices,
    (socket, log): (Option<MemorySocket>, &MessageLog),
    output: &Output,
) -> Result<(), Failure> {
    let stop = signals::stop_on_signals()?;
    let served = services.serve_fixed_program(&args.control, &mut config, control::FIXED_BY_MEMORY, output)?;
    let (p4runtime, operations) = served.unzip();
    let mut hooks: Vec<_> = operations.map(hooks::elastic_operations).into_iter().collect();
    let RunConfig { switch, ports, limit, sinks, .. } = config;
    let switch = memory::connect(switch, (args.memory_address, args.memory_rate), &args.memory)?;
    let metrics = services.metrics;
    let metrics = metrics.map(|bound| export_metrics(bound, metrics::elastic::families, &mut hooks, output));
    let metrics = metrics.transpose()?;
    hooks.extend(socket.map(hooks::memory));
    hooks.push(Box::new(ServerNotices::new(output)));
    let config = RunConfig { hooks, limit, sinks, ..RunConfig::new(switch, ports) };
    let config = announced(config, "running the program, its @elastic tables in the memory of servers,", output);
    let report = v1model_runtime::run_elastic(config, &stop).context("cannot open a socket")?;
    note_dropped_messages(p4runtime.as_ref(), output);
    drop((p4runtime, metrics));
    let RunReport { switch, ports, elapsed } = report;
    let tables = memory::summary(&switch);
    let report = RunReport { switch: switch.into_inner(), ports, elapsed };
    summarize(args, &report, log, (false, &tables), output)?;
    fail_on_lost_ports(&report, false)
}

/// Prints the summary of a run, with `more` after that for people, and ends its log.
fn summarize(
    args: &RunArgs,
    report: &RunReport<Switch>,
    log: &MessageLog,
    (is_offline, more): (bool, &str),
    output: &Output,
) -> Result<(), Failure> {
    let (seconds, counts) = (report.elapsed.as_secs_f64(), log.counts());
    output.print(&if args.json {
        summary::json(report, &counts, seconds)
    } else {
        summary::text(report, &counts, (!is_offline).then_some(seconds)) + &kernel::summary_text(report) + more
    })?;
    log.finish()
}

/// Says what runs, and completes the run with notes about its ports and its code.
fn announced<S: PacketSwitch>(config: RunConfig<S>, what: &str, output: &Output) -> RunConfig<S> {
    let names: Vec<_> = config.ports.iter().map(|port| format!("{}={}", port.id, port.drivers[0].name())).collect();
    output.note(&format!("{what} on {}; press Ctrl-C to stop", names.join(", ")));
    let live_output = *output;
    let on_port_loss = Box::new(move |id: PortId, error: &PortError| {
        live_output.note(&format!("port {id} was lost, the others continue: {error}"));
    });
    let on_link_change = link_notes(*output);
    let on_takeover = Box::new(move |takeover: &Takeover, elapsed: Duration| match takeover {
        Takeover::Compiled => {
            let ms = elapsed.as_millis();
            live_output.note(&format!("machine code has taken over from the interpreter after {ms} ms"));
        }
        Takeover::Interpreted(why) => live_output.note_if_interpreted(Some(why)),
        Takeover::OtherProgram => {}
    });
    RunConfig { on_port_loss, on_link_change, on_takeover, ..config }
}

/// Says which ports have lost their links, and which have them again. A link that comes and goes fills no terminal.
fn link_notes(output: Output) -> LinkCallback {
    let mut changes = BTreeMap::<PortId, (u32, Instant)>::new();
    Box::new(move |id, is_up| {
        let now = Instant::now();
        let (number, last) = changes.entry(id).or_insert((0, now));
        if now.duration_since(std::mem::replace(last, now)) > QUIET_LINK {
            *number = 0;
        }
        *number += 1;
        let more = match *number {
            ..MAX_LINK_NOTES => "",
            MAX_LINK_NOTES => "; more changes of its link are not shown until it is quiet for a minute",
            _ => return,
        };
        let state = if is_up { "has a link again" } else { "has no link, and is down" };
        output.note(&format!("port {id} {state}{more}"));
    })
}

fn note_dropped_messages(p4runtime: Option<&Listening>, output: &Output) {
    if let Some(dropped) = p4runtime.map(Listening::dropped).filter(|dropped| *dropped > 0) {
        output.note(&format!("{dropped} messages to controllers were dropped: the controllers read too slowly"));
    }
}

/// Fails if a port was lost, after the summary.
fn fail_on_lost_ports(report: &RunReport<Switch>, is_offline: bool) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (id, error) in report.failures() {
        failures.push(if is_offline {
            format!("port {id} was lost: {error}")
        } else {
            // The error was printed when the port was lost.
            format!("port {id} was lost during the run")
        });
    }
    if failures.is_empty() {
        return Ok(());
    }
    let failures = failures.join("; ");
    if report.failures().all(|(_, error)| is_damaged_capture(error)) {
        Err(Failure::Input(failures))
    } else {
        Err(anyhow!("{failures}").into())
    }
}
