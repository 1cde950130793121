//! Runs `triplane bench --live`: offers frames to one interface and counts them on another.

use std::time::Duration;

use anyhow::{Context, anyhow};
use ports::PortSpec;
use ports::load::{LoadError, LoadPath, ThroughputTest, best_trial};
use runtime::{PortDrivers, RunConfig, RunHandle};
use switch::PortId;
use v1model::{Config, Executor, Switch};

use crate::bench::live::{self, Latency, report};
use crate::bench::report::amount;
use crate::bench::traffic::Traffic;
use crate::cli::BenchArgs;
use crate::load::{Loader, ProgramArgs};
use crate::output::{Failure, Output};
use crate::progress::{self, Progress};

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let facts = error.to_string();
        match error {
            LoadError::Port(error) => error.into(),
            LoadError::Spec(_) => Failure::Usage(facts),
            LoadError::Down { .. } => anyhow!("{facts}").into(),
            LoadError::TooLong { longest, from, .. } => anyhow!(
                "{facts}: send smaller ones (--traffic …,size=64), or raise its MTU with `ip link set {from} mtu \
                 {longest}`"
            )
            .into(),
            LoadError::NothingArrived { .. } => anyhow!(
                "{facts}; start the switch between them, and check with its summary or `triplane trace` whether it \
                 forwards such frames"
            )
            .into(),
        }
    }
}

/// Benchmarks what is between two interfaces.
pub fn run(args: &BenchArgs, ends: &str, traffic: Option<Traffic>, output: &Output) -> Result<(), Failure> {
    let path = LoadPath::parse(ends).ok_or_else(|| {
        Failure::Usage(format!("--live {ends} does not name two interfaces: expected A:B, such as gen0:sink0"))
    })?;
    let time =
        Duration::try_from_secs_f64(args.trial).ok().filter(|time| (0.01..=3600.0).contains(&time.as_secs_f64()));
    let time = time.ok_or_else(|| {
        Failure::Usage(format!("--trial {} is not a valid duration: expected 0.01 to 3600 seconds", args.trial))
    })?;
    if !(0.0..100.0).contains(&args.loss) {
        return Err(Failure::Usage(format!(
            "--loss {} is out of range: expected 0 to less than 100 percent",
            args.loss
        )));
    }
    let tolerated = args.loss / 100.0;
    let switch = args.program.as_ref().map(|program| switch(args, program, output)).transpose()?;
    let traffic = match (traffic, &switch) {
        (Some(traffic), _) => traffic,
        (None, Some(switch)) => Traffic::derived(switch)?,
        (None, None) => {
            let what = "specify the frames with --traffic: a specification such as udp,flows=1000,dst=10.0.0.0/16, or \
                        a capture";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    let running = match switch {
        Some(switch) if !args.ports.is_empty() => Some(start(switch, &args.ports, output)?),
        _ => None,
    };
    let result = measure(args, &path, &traffic, time, tolerated, running.is_some(), output);
    if let Some(running) = running {
        running.stop().context("cannot run the switch")?;
    }
    result
}

fn measure(
    args: &BenchArgs,
    path: &LoadPath,
    traffic: &Traffic,
    time: Duration,
    tolerated: f64,
    runs_here: bool,
    output: &Output,
) -> Result<(), Failure> {
    let mut test = ThroughputTest::open(path, live::frames(&mut traffic.generator()))?;
    if let Some(note) = test.note() {
        output.note(&format!("{}: {note}", path.from));
    }
    if !args.json {
        let between = match (&args.program, runs_here) {
            (Some(program), true) => program.program.display().to_string(),
            _ => "an external device".to_owned(),
        };
        let title = output.bold(&format!("{} -> {}, through {between}", path.from, path.to));
        output.print(&format!("{title}\n\n  {:12}{traffic}\n\n{}", "traffic", report::head()))?;
    }
    let mut progress = Progress::new();
    progress.say(|| "sending at the maximum rate".to_owned());
    let (mut printed, mut done) = (Ok(()), Vec::new());
    let trials = test.search(time, tolerated, &mut |trial| {
        progress.clear();
        if !args.json && printed.is_ok() {
            printed = output.print(&report::line(trial));
        }
        done.push(*trial);
        progress.say(|| match best_trial(&done, tolerated) {
            Some(best) => format!("the best so far is {} packets/s; searching above", amount(best.sent_pps())),
            None => format!("searching below {} packets/s", amount(trial.sent_pps())),
        });
    })?;
    printed?;
    progress.clear();
    progress.say(|| "measuring latency at low load".to_owned());
    // The sink stays, so that no stack answers the frames; it takes them after the receiver has seen them.
    let latency = Latency::measure(path, &mut traffic.generator(), time)?;
    progress.clear();
    output.print(&if args.json {
        report::json(path, &traffic.to_string(), &trials, tolerated, Some(&latency))
    } else {
        report::verdict(&trials, tolerated, Some(&latency))
    })
}

/// The switch to run between the interfaces, with its entries.
fn switch(args: &BenchArgs, program: &ProgramArgs, output: &Output) -> Result<Switch, Failure> {
    let specs =
        PortSpec::parse_all(&args.ports, v1model::WIDEST_PORT).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut loader = Loader::open(program)?;
    let config = Config {
        ports: specs.iter().map(|spec| PortId(u32::from(spec.number))).collect(),
        seed: 1,
        executor: if args.interpret { Executor::Interpreter } else { Executor::Auto },
        ..Config::default()
    };
    let program = loader.program(output)?;
    config.check_ports(&program).map_err(|error| Failure::Usage(error.to_string()))?;
    let made = progress::with_compile_progress(|| Switch::new(program, config));
    let mut switch = made.map_err(|error| Failure::Input(error.to_string()))?;
    for path in &args.entries {
        loader.apply(path, &mut switch, output)?;
    }
    Ok(switch)
}

/// Runs the switch on its ports, in a thread of its own.
fn start(switch: Switch, ports: &[String], output: &Output) -> Result<RunHandle<Switch>, Failure> {
    let specs = PortSpec::parse_all(ports, v1model::WIDEST_PORT).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut ports = Vec::new();
    for (spec, driver) in specs.iter().zip(PortSpec::open_all(&specs)?) {
        if let Some(note) = driver.note() {
            output.note(&format!("port {}: {note}", spec.number));
        }
        ports.push(PortDrivers { id: PortId(u32::from(spec.number)), drivers: vec![driver] });
    }
    Ok(v1model_runtime::spawn_live(RunConfig::new(switch, ports), "switch").context("cannot start a thread")?)
}
