//! A scenario in real time: the traffic and the faults that a simulated network would have, on a live one.
//!
//! ```text
//!  lab run ── starts the network ──> play: a thread for each sender and receiver, in their hosts' namespaces
//!                                      └ tells the holder what goes wrong, when it is time
//! ```
//!
//! A sender and its receiver are threads of one process, so latencies are differences of one clock.

mod faults;
mod meaning;
mod tcp;
mod udp;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use lab::Topology;
use lab::scenario::{FlowResult, Results, Scenario, Traffic, TrafficKind};
use lab::sim::traffic::Measured;
use ports::namespace::{Answer, Namespace};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use source::{Diagnostic, Diagnostics};
use switch::Time;

use super::super::args::RunArgs;
use super::super::network::Network;
use super::super::{report, simulate};
use super::room::Room;
use super::{start, up};
use crate::output::{Failure, Output};

/// Time that all threads have to begin before the scenario does.
const READY_IN: Duration = Duration::from_millis(100);

/// `triplane lab run`: starts a network, plays a scenario, and ends the network, whatever came of it.
pub fn run(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let network = up::check(&args.up, output)?;
    read(args, &network, output)?;
    let (name, took) = up::start(&args.up, output)?;
    output.note(&format!("lab {name}: {} up in {:.2} s", network.describe(), took.as_secs_f64()));
    let played = play_apart(args, &name);
    if let Some(room) = Room::find(&name)? {
        room.end()?;
    }
    match played?.code() {
        Some(0) => Ok(()),
        // It said why.
        Some(code @ 1..=3) => std::process::exit(code),
        _ => Err(anyhow!("the scenario was not played to its end").into()),
    }
}

/// Plays in a process that is in the network's user namespace, which only one of a single thread can enter.
fn play_apart(args: &RunArgs, name: &str) -> Result<std::process::ExitStatus, Failure> {
    // Ctrl-C ends the process that plays; this one goes on and ends the network.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot listen for Ctrl-C")?;
    }
    let words: Vec<_> = start::process("play", name, None, &args.up.live).get_args().map(ToOwned::to_owned).collect();
    let mut command = start::own();
    command.args(&words[..2]);
    if let Some(scenario) = &args.scenario {
        command.arg("--scenario").arg(scenario);
    }
    if args.json {
        command.arg("--json");
    }
    command.args(&words[2..]);
    let mut child = command.spawn().context("cannot start the process that plays")?;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the process that plays")? {
            return Ok(status);
        }
        if stop.swap(false, Ordering::Relaxed) {
            // A terminal tells it too; a signal to this process alone does not.
            let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The scenario, with what it cannot mean on a live network refused.
fn read(args: &RunArgs, network: &Network, output: &Output) -> Result<(Scenario, source::SourceMap), Failure> {
    let topology = &network.topology;
    let (scenario, map) = simulate::scenario(args.scenario.as_deref(), topology, output)?;
    let mut diagnostics = Diagnostics::new();
    meaning::check(&scenario, topology, &mut diagnostics);
    if !scenario.captures.is_empty() {
        output.note("the scenario's captures are left out; `triplane lab pcap` captures on a live network");
    }
    output.diagnostics(&map, &diagnostics);
    match diagnostics.error_count() {
        0 => Ok((scenario, map)),
        1 => Err(Failure::Input("1 mistake found; nothing was run".to_owned())),
        count => Err(Failure::Input(format!("{count} mistakes found; nothing was run"))),
    }
}

/// `triplane lab play`: plays a scenario on a network that is up.
pub fn play(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let room = Room::choose(args.up.name.as_deref())?;
    ports::namespace::join_user(room.holder.pid).map_err(anyhow::Error::from)?;
    let quiet = output.quiet();
    let network = up::check(&args.up, &quiet)?;
    let (scenario, map) = read(args, &network, &quiet)?;
    let topology = &network.topology;
    let hosts = topology.hosts.iter().map(|host| {
        let descriptor = room.hosts.get(&host.name).with_context(|| format!("there is no host `{}`", host.name))?;
        Ok(Arc::new(Namespace::held(room.holder.pid, *descriptor, &host.name)?))
    });
    let hosts: Vec<Arc<Namespace>> = hosts.collect::<Result<_, anyhow::Error>>()?;
    let seed = args.up.live.seed;
    let clock = Clock { begin: Instant::now() + READY_IN, end: Duration::from_nanos(scenario.duration.as_ns()) };
    let mut flows = Vec::new();
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        flows.extend(begin(number, traffic, topology, &hosts, clock, seed)?);
    }
    let told = faults::play(&scenario.schedule(topology, seed), topology, &room, clock);
    std::thread::sleep(clock.left());
    let mut results = Results { end: Time::from_ns(scenario.duration.as_ns()), ..Results::default() };
    for flow in flows {
        results.pairs.push(flow.finish(topology)?);
    }
    told?;
    for traffic in &scenario.traffic {
        results.traffic.push(sum(traffic, &results.pairs));
    }
    results.unmet = lab::scenario::unmet(&scenario, topology, &results);
    match args.json {
        true => output.print(&format!("{:#}\n", report::json(topology, &results, seed)))?,
        false => output.print(&report::traffic(&results.traffic))?,
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

/// The scenario's time, on the machine's clock.
#[derive(Clone, Copy)]
struct Clock {
    begin: Instant,
    end: Duration,
}

impl Clock {
    /// Nanoseconds since the scenario began; 0 before.
    fn now(self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Waits until so many nanoseconds of the scenario are over.
    fn wait_until(self, ns: u64) {
        std::thread::sleep((self.begin + Duration::from_nanos(ns)).saturating_duration_since(Instant::now()));
    }

    /// What is left of the scenario.
    fn left(self) -> Duration {
        (self.begin + self.end).saturating_duration_since(Instant::now())
    }

    /// Whether the scenario is over. What is still on its way then has not arrived, as in a simulation.
    fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

/// A thread within a host.
type Thread = std::thread::JoinHandle<std::io::Result<std::io::Result<Measured>>>;

/// A sender and a receiver that play their parts.
struct Flow {
    name: String,
    from: usize,
    to: usize,
    unit: &'static str,
    threads: Vec<Thread>,
}

/// Begins the flows of some traffic.
fn begin(
    number: usize,
    traffic: &Traffic,
    topology: &Topology,
    hosts: &[Arc<Namespace>],
    clock: Clock,
    seed: u64,
) -> Result<Vec<Flow>, Failure> {
    let mut flows = Vec::new();
    for (at, (from, to)) in traffic.pairs.iter().enumerate() {
        let count = if matches!(traffic.kind, TrafficKind::Ping { .. }) { to.len() } else { 1 };
        for to in to.iter().copied().take(count) {
            let (address, _) = topology.hosts[to].address.expect("traffic goes to hosts with an address");
            let (sender, receiver) = (&hosts[*from], &hosts[to]);
            let (start, stop) = (traffic.start.as_ns(), traffic.stop.as_ns());
            let (unit, threads) = match traffic.kind {
                TrafficKind::Udp { size, rate_bps, timing } => {
                    let random = lab::Random::new(seed, ((number as u64) << 32 | at as u64) << 8 | 9);
                    let sends = udp::Sends { size, rate_bps, timing, start, stop, random };
                    ("datagrams", udp::begin(sender, receiver, address, sends, clock)?)
                }
                TrafficKind::Tcp { bytes, .. } => {
                    ("flows", tcp::begin(sender, receiver, address, bytes, start, clock)?)
                }
                TrafficKind::Ping { count, interval } => {
                    let (namespace, interval) = (Arc::clone(sender), interval.as_ns());
                    let pings = move || ping(&namespace, address, count, start, interval, clock);
                    ("echoes", vec![sender.spawn(pings).map_err(anyhow::Error::from)?])
                }
                _ => unreachable!("it was refused"),
            };
            flows.push(Flow { name: traffic.name.clone(), from: *from, to, unit, threads });
        }
    }
    Ok(flows)
}

/// Sends echo requests, each at its time, and waits for what comes back.
fn ping(
    namespace: &Namespace,
    address: std::net::Ipv4Addr,
    count: u32,
    start: u64,
    interval: u64,
    clock: Clock,
) -> std::io::Result<Measured> {
    let mut measured = Measured::default();
    for number in 0..u64::from(count) {
        let at = start + number * interval;
        if Duration::from_nanos(at) >= clock.end {
            break;
        }
        clock.wait_until(at);
        measured.sent += 1;
        let patience = Duration::from_secs(1).min(clock.left());
        // No route and no answer come to the same.
        if let Ok(Answer::Reply { time, .. }) = namespace.ping(address, number as u16, patience) {
            measured.received += 1;
            measured.arrived(Time::from_ns(clock.now()), 56);
            measured.took(time.as_nanos() as u64);
        }
    }
    Ok(measured)
}

impl Flow {
    /// Waits for its end, and says what came of it.
    fn finish(self, topology: &Topology) -> Result<FlowResult, Failure> {
        let mut measured = Measured::default();
        for thread in self.threads {
            let ended = thread.join().map_err(|_| anyhow!("a sender or receiver ended by itself; this is a bug"))?;
            let from = &topology.hosts[self.from].name;
            measured.add(&ended.and_then(|ended| ended).with_context(|| format!("`{}` from {from}", self.name))?);
        }
        let name = |host: usize| topology.hosts[host].name.clone();
        Ok(FlowResult {
            name: self.name,
            from: name(self.from),
            to: name(self.to),
            unit: self.unit,
            measured,
            marks: Default::default(),
            values: Vec::new(),
        })
    }
}

/// All of some traffic.
fn sum(traffic: &Traffic, pairs: &[FlowResult]) -> FlowResult {
    let own: Vec<&FlowResult> = pairs.iter().filter(|pair| pair.name == traffic.name).collect();
    let mut measured = Measured::default();
    own.iter().for_each(|pair| measured.add(&pair.measured));
    let names = |name: fn(&FlowResult) -> &str| {
        let mut all: Vec<&str> = own.iter().map(|pair| name(pair)).collect();
        all.sort_unstable();
        all.dedup();
        if let [one] = all[..] { one.to_owned() } else { format!("{} hosts", all.len()) }
    };
    FlowResult {
        name: traffic.name.clone(),
        from: names(|pair| &pair.from),
        to: names(|pair| &pair.to),
        unit: own.first().map_or("", |pair| pair.unit),
        measured,
        marks: Default::default(),
        values: Vec::new(),
    }
}
