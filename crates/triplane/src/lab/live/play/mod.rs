//! A scenario in real time: the traffic and the faults that a simulated network would have, on a live one.
//!
//! ```text
//!  lab run ── starts the network ──> play: a thread for each sender and receiver, in their hosts' namespaces
//!                                      └ tells the holder what goes wrong, when it is time
//! ```
//!
//! A sender and its receiver are threads of one process, so latencies are differences of one clock.

mod cast;
mod clock;
mod faults;
mod frames;
mod meaning;
mod outcome;
mod ping;
mod requests;
mod tally;
mod tcp;
mod udp;

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use lab::scenario::Scenario;
use ports::namespace::Namespace;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::super::args::RunArgs;
use super::super::network::Network;
use super::super::{report, simulate};
use super::asking::ask;
use super::protocol::Request;
use super::room::Room;
use super::up::{Life, Started};
use super::{start, up};
use crate::output::{Failure, Output};
use cast::Cast;
use clock::Clock;
use simulate::Replays;

/// Time from when all threads are there to the beginning of the scenario: they are then at their clocks.
const READY_IN: Duration = Duration::from_millis(20);

/// `triplane lab run`: starts a network, plays a scenario, and ends the network, whatever came of it.
pub fn run(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let network = up::check(&args.up, output)?;
    let Script { scenario, .. } = read(args, &network, output)?;
    if !scenario.captures.is_empty() {
        output.note("the scenario's captures are left out; `triplane lab pcap` captures on a live network");
    }
    let mut args = args.clone();
    args.up.live.seed.get_or_insert(scenario.seed);
    // Should this process be killed, the network ends with it.
    let Started { name, took, life } = up::start(&args.up, Life::Ours, output)?;
    output.note(&format!("lab {name}: {} up in {:.2} s", network.describe(), took.as_secs_f64()));
    let played = play_apart(&args, &name);
    if let Some(room) = Room::find(&name)? {
        room.end()?;
    }
    drop(life);
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
    let words: Vec<_> = start::process("play", name, &[], &args.up.live).get_args().map(ToOwned::to_owned).collect();
    let mut command = start::own();
    command.args(&words[..2]);
    if let Some(scenario) = &args.scenario {
        command.arg("--scenario").arg(scenario);
    }
    if args.json {
        command.arg("--json");
    }
    command.args(&words[2..]);
    // It ends when its input does: with this process.
    let mut child = command.stdin(Stdio::piped()).spawn().context("cannot start the process that plays")?;
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

/// A scenario, where its lines are, and the captures that it replays.
struct Script {
    scenario: Scenario,
    map: SourceMap,
    replays: Replays,
}

/// Reads the scenario, and refuses what it cannot mean on a live network.
fn read(args: &RunArgs, network: &Network, output: &Output) -> Result<Script, Failure> {
    let topology = &network.topology;
    let (scenario, map) = simulate::scenario(args.scenario.as_deref(), topology, output)?;
    let mut diagnostics = Diagnostics::new();
    meaning::check(&scenario, topology, &mut diagnostics);
    output.diagnostics(&map, &diagnostics);
    match diagnostics.error_count() {
        0 => {
            let replays = simulate::replays(args.scenario.as_deref(), &scenario, &map, output)?;
            Ok(Script { scenario, map, replays })
        }
        1 => Err(Failure::Input("1 mistake found; nothing was run".to_owned())),
        count => Err(Failure::Input(format!("{count} mistakes found; nothing was run"))),
    }
}

/// `triplane lab play`: plays a scenario on a network that is up.
pub fn play(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let room = Room::choose(args.up.name.as_deref())?;
    ports::namespace::join_user(room.holder.pid).map_err(anyhow::Error::from)?;
    std::thread::spawn(|| {
        // Nothing is ever said: this waits for the end of whoever started it.
        let _ = std::io::stdin().lock().read(&mut [0]);
        std::process::exit(3);
    });
    let quiet = output.quiet();
    let network = up::check(&args.up, &quiet)?;
    let Script { scenario, map, replays } = read(args, &network, &quiet)?;
    let topology = &network.topology;
    let hosts = topology.hosts.iter().map(|host| {
        let descriptor = room.hosts.get(&host.name).with_context(|| format!("there is no host `{}`", host.name))?;
        Ok(Arc::new(Namespace::held(room.holder.pid, *descriptor, &host.name)?))
    });
    let hosts: Vec<Arc<Namespace>> = hosts.collect::<Result<_, anyhow::Error>>()?;
    let seed = args.up.live.seed();
    let clock = Clock::new(Duration::from_nanos(scenario.duration.as_ns()));
    let mut cast = Cast::new(topology, &hosts, &replays, clock.clone(), seed);
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        cast.add(number, traffic)?;
    }
    let schedule = scenario.schedule(topology, seed);
    let later = faults::begin(&schedule, topology, &room)?;
    clock.begin_in(READY_IN);
    faults::play(later, topology, &room, &clock)?;
    std::thread::sleep(clock.left());
    let status = ask(&room, &Request::Status)?;
    let (flows, tally) = cast.finish()?;
    let results = outcome::results(topology, &scenario, &flows, tally, &status);
    match args.json {
        true => output.print(&format!("{:#}\n", report::json(topology, &results, seed)))?,
        false => {
            output.print(&report::traffic(&results.traffic))?;
            output.print(&report::values(&results.traffic))?;
        }
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
