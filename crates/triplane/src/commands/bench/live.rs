//! `triplane bench --live`: frames offered to one interface and counted on another.

use std::time::Duration;

use anyhow::Context;
use ports::PortSpec;
use runtime::{PortDrivers, RunConfig, RunHandle};
use switch::PortId;
use v1model::{Config, Executor, Switch};

use crate::bench::live::{Ends, Live, LiveError, latency, report};
use crate::bench::report::amount;
use crate::bench::traffic::Traffic;
use crate::cli::BenchArgs;
use crate::load::{Loader, ProgramArgs};
use crate::output::{Failure, Output};
use crate::progress::{self, Progress};

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Port(error) => error.into(),
            LiveError::Spec(error) => Failure::Usage(error.to_string()),
            nothing => Failure::Environment(nothing.into()),
        }
    }
}

/// Benchmarks what is between two interfaces.
pub fn run(args: &BenchArgs, ends: &str, traffic: Option<Traffic>, output: &Output) -> Result<(), Failure> {
    let ends = Ends::parse(ends).ok_or_else(|| {
        Failure::Usage(format!("--live {ends} does not name two interfaces: write A:B, such as gen0:sink0"))
    })?;
    let time =
        Duration::try_from_secs_f64(args.trial).ok().filter(|time| (0.01..=3600.0).contains(&time.as_secs_f64()));
    let time =
        time.ok_or_else(|| Failure::Usage(format!("--trial {} is no time: give 0.01 to 3600 seconds", args.trial)))?;
    if !(0.0..100.0).contains(&args.loss) {
        return Err(Failure::Usage(format!("--loss {} is no percentage below 100", args.loss)));
    }
    let tolerated = args.loss / 100.0;
    let switch = args.program.as_ref().map(|program| switch(args, program, output)).transpose()?;
    let traffic = match (traffic, &switch) {
        (Some(traffic), _) => traffic,
        (None, Some(switch)) => Traffic::derived(switch)?,
        (None, None) => {
            let what = "say what frames there are: --traffic udp,flows=1000,dst=10.0.0.0/16, or a capture";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    let running = match switch {
        Some(switch) if !args.ports.is_empty() => Some(start(switch, &args.ports, output)?),
        _ => None,
    };
    let result = measure(args, &ends, &traffic, time, tolerated, running.is_some(), output);
    if let Some(running) = running {
        running.stop().context("cannot run the switch")?;
    }
    result
}

fn measure(
    args: &BenchArgs,
    ends: &Ends,
    traffic: &Traffic,
    time: Duration,
    tolerated: f64,
    runs_here: bool,
    output: &Output,
) -> Result<(), Failure> {
    let mut live = Live::open(ends, &mut traffic.generator())?;
    if let Some(note) = live.note() {
        output.note(&format!("{}: {note}", ends.from));
    }
    if !args.json {
        let between = match (&args.program, runs_here) {
            (Some(program), true) => program.program.display().to_string(),
            _ => "whatever forwards".to_owned(),
        };
        let title = output.bold(&format!("{} -> {}, with {between} between them", ends.from, ends.to));
        output.print(&format!("{title}\n\n  {:12}{traffic}\n\n{}", "traffic", report::head()))?;
    }
    let mut progress = Progress::new();
    progress.say(|| "offering as many frames as can be sent".to_owned());
    let mut printed = Ok(());
    let trials = live.search(time, tolerated, &mut |trial| {
        progress.clear();
        if !args.json && printed.is_ok() {
            printed = output.print(&report::line(trial));
        }
        progress.say(|| format!("trying below {} packets/s", amount(trial.sent_pps())));
    })?;
    printed?;
    progress.clear();
    progress.say(|| "latency at a light load".to_owned());
    // The sink stays, so that no stack answers the frames; it takes them after the receiver has seen them.
    let latency = latency::measure(ends, &mut traffic.generator(), time)?;
    progress.clear();
    output.print(&match args.json {
        true => report::json(ends, &traffic.to_string(), &trials, tolerated, Some(&latency)),
        false => report::verdict(&trials, tolerated, Some(&latency)),
    })
}

/// The switch to run between the interfaces, with its entries.
fn switch(args: &BenchArgs, program: &ProgramArgs, output: &Output) -> Result<Switch, Failure> {
    let specs =
        PortSpec::parse_all(&args.ports, v1model::MAX_PORT).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut loader = Loader::open(program)?;
    let config = Config {
        ports: specs.iter().map(|spec| PortId(u32::from(spec.number))).collect(),
        seed: 1,
        executor: if args.interpret { Executor::Interpreter } else { Executor::Auto },
        ..Config::default()
    };
    let program = loader.program(output)?;
    let made = progress::compiling(|| Switch::new(program, config));
    let mut switch = made.map_err(|error| Failure::Input(error.to_string()))?;
    if let Some(path) = &args.entries {
        loader.apply(path, &mut switch, output)?;
    }
    Ok(switch)
}

/// Runs the switch on its ports, in a thread of its own.
fn start(switch: Switch, ports: &[String], output: &Output) -> Result<RunHandle<Switch>, Failure> {
    let specs = PortSpec::parse_all(ports, v1model::MAX_PORT).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut ports = Vec::new();
    for (spec, driver) in specs.iter().zip(PortSpec::open_all(&specs)?) {
        if let Some(note) = driver.note() {
            output.note(&format!("port {}: {note}", spec.number));
        }
        ports.push(PortDrivers { id: PortId(u32::from(spec.number)), drivers: vec![driver] });
    }
    Ok(RunConfig::new(switch, ports).spawn_live("switch").context("cannot start a thread")?)
}
