//! `triplane run`: a program on ports, until Ctrl-C or the end of its captures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use p4runtime_server::Listening;
use ports::{PortKind, PortSpec};
use serde_json::json;
use switch::PortId;
use v1model::{Config, Executor, Switch};

use crate::cli::RunArgs;
use crate::forward::{Control, Forwarder};
use crate::messages::Messages;
use crate::output::{Failure, Output, is_damaged_capture};
use crate::progress;
use crate::state::{Program, State};

/// Runs.
pub fn run(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let specs = PortSpec::parse_all(&args.ports).map_err(|error| Failure::Usage(error.to_string()))?;
    let program = args.program.as_ref().map(|program| program.program.as_path());
    let reads = program.into_iter().chain(args.entries.as_deref());
    if let Some(clash) = crate::clash::clash(&specs).or_else(|| crate::clash::overwrites(&specs, reads)) {
        return Err(Failure::Usage(clash));
    }
    let limit = match args.duration {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::Usage(format!("--duration {seconds} is not a time: give seconds, such as 10 or 0.5"))
        })?),
        None => None,
    };
    let offline = specs.iter().all(|spec| matches!(spec.kind, PortKind::Pcap { .. }));
    if offline && args.control.p4runtime.is_some() {
        return Err(Failure::Usage("--p4runtime needs a port that is live; captures run in their own time".to_owned()));
    }
    let state = args.control.state_dir.as_deref().map(State::open).transpose()?;
    let is_served = args.control.p4runtime.is_some();
    let Program { program, pipeline, loader, name } =
        crate::state::program(args.program.as_ref(), state.as_ref(), is_served, output)?;
    if offline && args.metrics.is_some() {
        return Err(Failure::Usage("--metrics needs a port that is live; captures run in their own time".to_owned()));
    }
    let config = Config {
        ports: specs.iter().map(|spec| PortId(u32::from(spec.number))).collect(),
        cpu_port: Some(PortId(args.control.cpu_port)),
        seed: args.seed,
        executor: if args.interpret { Executor::Interpreter } else { Executor::Auto },
        ..Config::default()
    };
    let made = progress::compiling(|| Switch::new(program, config));
    let mut switch = made.map_err(|error| Failure::Input(error.to_string()))?;
    tell_if_interpreted(&switch, output);
    let is_kept = state.as_ref().is_some_and(|state| state.kept.is_some());
    match (&args.entries, loader) {
        (Some(path), _) if is_kept => {
            output.note(&format!("{} is left out: what was written since then is kept", path.display()));
        }
        (Some(path), Some(mut loader)) => loader.apply(path, &mut switch, output)?,
        _ => {}
    }
    let workers = count_workers(args, &specs, output);
    let opened = match workers {
        1 => PortSpec::open_all(&specs)?.into_iter().map(|driver| vec![driver]).collect(),
        _ => PortSpec::open_for_workers(&specs, workers)?,
    };
    let mut drivers = Vec::new();
    for (spec, of_port) in specs.iter().zip(opened) {
        for note in of_port.iter().filter_map(|driver| driver.note()) {
            output.note(&format!("port {}: {note}", spec.number));
        }
        if workers > of_port.len() {
            output.note(&format!("port {}: {}", spec.number, one_receives(spec, workers)));
        }
        drivers.push((PortId(u32::from(spec.number)), of_port));
    }
    let messages = match &args.messages {
        Some(path) => Messages::to_file(path)?,
        None => Messages::default(),
    };
    let (served, messages) = match pipeline {
        Some(pipeline) => {
            let served = crate::control::serve(&args.control, pipeline, state, &mut switch, output)?;
            let messages = messages.and_tell(served.teller);
            (Some((served.listening, served.turns)), messages)
        }
        None => (None, messages),
    };
    let forwarder = match workers {
        1 => Forwarder::new(
            switch,
            drivers.into_iter().flat_map(|(id, of_port)| of_port.into_iter().map(move |driver| (id, driver))).collect(),
        ),
        _ => Forwarder::with_workers(switch, drivers, workers).context("cannot make a pair of sockets")?,
    };
    let mut forwarder = forwarder.with_messages(messages);
    let (listening, mut control) = match served {
        Some((listening, turns)) => (Some(listening), Some(Box::new(turns) as Box<dyn Control>)),
        None => (None, None),
    };
    let metrics = match args.metrics {
        Some(address) => {
            let (metrics, gauge) = crate::metrics::listen(address)?;
            let address = metrics.address();
            output.note(&match address.ip().is_loopback() {
                true => format!("metrics on http://{address}/metrics, for this machine only"),
                false => format!("metrics on http://{address}/metrics: whoever reaches this address reads them"),
            });
            control = Some(Box::new(gauge.with(control)));
            Some(metrics)
        }
        None => None,
    };
    if let Some(control) = control {
        forwarder = forwarder.with_control(control);
    }
    let start = Instant::now();
    if offline {
        forwarder.run_offline();
    } else {
        let stop = stop_on_signals()?;
        let names: Vec<_> = forwarder.port_stats().map(|(id, name, _)| format!("{id}={name}")).collect();
        output.note(&format!("running {name} on {}; Ctrl-C ends", names.join(", ")));
        let told = *output;
        forwarder = forwarder.on_loss(Box::new(move |id, error| {
            told.note(&format!("port {id} was lost, the others go on: {error}"));
        }));
        forwarder.run_live(&stop, limit);
    }
    if let Some(dropped) = listening.as_ref().map(Listening::dropped).filter(|dropped| *dropped > 0) {
        output.note(&format!("{dropped} messages to controllers were dropped: they did not take them"));
    }
    drop((listening, metrics));
    let seconds = start.elapsed().as_secs_f64();
    output.print(&if args.json { json_summary(&forwarder, seconds) } else { summary(&forwarder, seconds, offline) })?;
    forwarder.messages_mut().finish()?;
    report_failures(&forwarder, offline)
}

/// Says that packets are interpreted, and why, where they could be expected to run as machine code.
pub fn tell_if_interpreted(switch: &Switch, output: &Output) {
    if let Some(why) = switch.why_interpreted() {
        output.note(&format!("{why}: the interpreter runs packets, which is many times slower"));
    }
}

/// How many workers there can be: captures have one order of frames, which one worker keeps.
fn count_workers(args: &RunArgs, specs: &[PortSpec], output: &Output) -> usize {
    let capture = specs.iter().find(|spec| matches!(spec.kind, PortKind::Pcap { .. }));
    match capture {
        Some(spec) if args.workers > 1 => {
            output.note(&format!("port {} is a capture, whose frames have one order: one worker runs", spec.number));
            1
        }
        _ => args.workers,
    }
}

/// Why the workers share a driver, and what would spare them that.
fn one_receives(spec: &PortSpec, workers: usize) -> String {
    let dealt = "one worker receives and deals frames out by flow";
    match &spec.kind {
        PortKind::Xdp { interface, .. } => format!(
            "`{interface}` has fewer queues than there are workers, so {dealt}; `ethtool -L {interface} combined {workers}` \
             (on a veth `rx {workers} tx {workers}`) gives each its own where the device has as many"
        ),
        _ => format!("{dealt}; ports through AF_PACKET are split by the kernel"),
    }
}

/// A flag that Ctrl-C or a termination request sets; a second Ctrl-C ends the process at once.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("cannot listen for Ctrl-C")?;
    }
    debug_assert!(!stop.load(Ordering::Relaxed));
    Ok(stop)
}

/// What came, left and was dropped, for people.
pub fn summary(forwarder: &Forwarder, seconds: f64, offline: bool) -> String {
    let mut text = forwarder.switch().summary();
    for (id, name, stats) in forwarder.port_stats() {
        let lines = [
            (stats.rx_dropped, "arrived while the switch was busy and were lost"),
            (stats.rx_unusable, "were too damaged to be used"),
            (stats.rx_truncated, "stand in the capture with their beginning only"),
            (stats.tx_queue_full, "did not leave: the interface's queue was full"),
            (stats.tx_bad_length, "did not leave: too long for the interface, or too short for a frame"),
            (stats.tx_link_down, "did not leave: the interface is down"),
        ];
        for (count, what) in lines.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!("port {id} ({name}): {count} {what}\n"));
        }
    }
    for (what, count) in forwarder.messages().counts() {
        text.push_str(&format!("{count} messages to the control plane: {what}\n"));
    }
    let received = total(forwarder, "rx");
    if !offline && seconds > 0.0 {
        text.push_str(&format!("\n{received} packets in {seconds:.1} s\n"));
    }
    text
}

fn total(forwarder: &Forwarder, direction: &str) -> u64 {
    let registry = forwarder.switch().registry();
    let ports = forwarder.port_stats();
    ports.filter_map(|(id, ..)| registry.get(&format!("port.{id}.{direction}.packets"))).sum()
}

fn json_summary(forwarder: &Forwarder, seconds: f64) -> String {
    let drops: Vec<_> = forwarder
        .switch()
        .drop_sites()
        .iter()
        .map(|site| {
            let place = site.place.as_ref();
            json!({
                "reason": site.reason.name(),
                "packets": site.packets,
                "place": place.map(|(place, _)| place.to_string()),
                "body": place.map(|(_, body)| body),
            })
        })
        .collect();
    let ports: Vec<_> = forwarder
        .port_stats()
        .map(|(id, name, stats)| {
            json!({
                "port": id.0, "name": name,
                "rx_packets": stats.rx_packets, "rx_bytes": stats.rx_bytes, "rx_dropped": stats.rx_dropped,
                "rx_unusable": stats.rx_unusable, "rx_truncated": stats.rx_truncated,
                "tx_packets": stats.tx_packets, "tx_bytes": stats.tx_bytes, "tx_dropped": stats.tx_dropped(),
            })
        })
        .collect();
    let registry = forwarder.switch().registry().to_json();
    let messages: serde_json::Map<_, _> =
        forwarder.messages().counts().map(|(what, count)| (what.to_owned(), count.into())).collect();
    let summary = json!({
        "seconds": seconds, "ports": ports, "drops": drops, "messages": messages, "counters": registry,
    });
    format!("{summary:#}\n")
}

/// Ports that went away make the run a failure, told after its summary.
fn report_failures(forwarder: &Forwarder, offline: bool) -> Result<(), Failure> {
    let tell = |(id, error): (PortId, &ports::PortError)| match offline {
        true => format!("port {id} was lost: {error}"),
        // Why was told when it happened.
        false => format!("port {id} was lost during the run"),
    };
    let failures: Vec<_> = forwarder.failures().map(tell).collect();
    if failures.is_empty() {
        return Ok(());
    }
    let failures = failures.join("; ");
    match forwarder.failures().all(|(_, error)| is_damaged_capture(error)) {
        true => Err(Failure::Input(failures)),
        false => Err(anyhow!("{failures}").into()),
    }
}
