//! Runs `triplane bench`: measures how fast a program is with a user's own entries and traffic, and where the time
//! goes.

mod live;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ir::Program;
use v1model::{Executor, Switch};
use v1model_runtime::bench::memory::{self, Bench, Counts, Instrumentation, Limit, Measured};
use v1model_runtime::bench::sampler;

use crate::bench::traffic::Traffic;
use crate::bench::{Results, breakdown, json, report};
use crate::cli::BenchArgs;
use crate::load::{self, Loader, ProgramArgs};
use crate::output::{Failure, Output};
use crate::progress::{self, Progress};

/// Number of rounds that share the time. The spread between rounds shows the effect of other load on the machine.
const ROUNDS: u32 = 7;

/// Benchmarks.
pub fn run(args: &BenchArgs, output: &Output) -> Result<(), Failure> {
    let traffic = args.traffic.as_deref().map(|text| Traffic::read(text, output)).transpose()?;
    if let Some(ends) = &args.live {
        return live::run(args, ends, traffic, output);
    }
    let Some(program) = &args.program else {
        return Err(Failure::Usage("a program is required: triplane bench PROG.p4".to_owned()));
    };
    let limit = limit(args)?;
    let results = in_memory(args, program, traffic, limit, output)?;
    output.print(&if args.json { json::render(&results) } else { report::render(&results, output) })
}

/// Returns the limit that the arguments set.
fn limit(args: &BenchArgs) -> Result<Limit, Failure> {
    match (args.packets, args.seconds) {
        (Some(0), _) => Err(Failure::Usage("--packets must be at least 1, for example 1000000".to_owned())),
        (Some(packets), _) => Ok(Limit::Packets(packets)),
        (None, seconds) => {
            let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
            let time = time.filter(|time| *time <= Duration::from_secs(24 * 3600));
            time.map(Limit::Time).ok_or_else(|| {
                Failure::Usage(format!(
                    "--seconds {seconds} is not a valid duration: expected seconds, such as 2 or 0.5"
                ))
            })
        }
    }
}

/// Returns a limit divided by `divisor`.
fn part(limit: Limit, divisor: u32) -> Limit {
    match limit {
        Limit::Time(time) => Limit::Time(time / divisor),
        Limit::Packets(packets) => Limit::Packets(packets.div_ceil(u64::from(divisor))),
    }
}

/// Makes switches of one program with the same entries.
struct Maker<'a> {
    program: Arc<Program>,
    loader: Loader,
    /// Names and texts of the entries files.
    entries: Vec<(String, String)>,
    output: &'a Output,
    reported: bool,
}

impl Maker<'_> {
    fn switch(&mut self, executor: Executor, probe: Option<v1model::Probe>) -> Result<Switch, Failure> {
        let made = progress::with_compile_progress(|| memory::switch(&self.program, executor, probe));
        let mut switch = made.map_err(|error| Failure::Input(error.to_string()))?;
        if !self.entries.is_empty() {
            self.loader.diagnostics = diagnostics::Diagnostics::new();
            for (name, text) in &self.entries {
                self.loader.fill(name, text, &mut switch);
            }
            // What is found is the same for each switch.
            if !std::mem::replace(&mut self.reported, true) {
                self.loader.report(self.output)?;
            }
        }
        Ok(switch)
    }
}

fn in_memory(
    args: &BenchArgs,
    program: &ProgramArgs,
    traffic: Option<Traffic>,
    limit: Limit,
    output: &Output,
) -> Result<Results, Failure> {
    let mut loader = Loader::open(program)?;
    let compiled = loader.program(output)?;
    let read = |path: &PathBuf| Ok((path.display().to_string(), load::read(path, entries_file::MAX_FILE_BYTES)?));
    let entries = args.entries.iter().map(read).collect::<Result<_, Failure>>()?;
    let mut maker = Maker { program: compiled, loader, entries, output, reported: false };
    let executor = if args.interpret { Executor::Interpreter } else { Executor::Auto };
    let switch = maker.switch(executor, None)?;
    let is_compiled = switch.is_compiled();
    let why_interpreted = switch.why_interpreted().map(str::to_owned);
    let traffic = match traffic {
        Some(traffic) => traffic,
        None => Traffic::derived(&switch)?,
    };
    let mut progress = Progress::new();
    let mut bench = Bench::new(switch, traffic.generator(), Instrumentation::None);
    let mut other = match args.against {
        Some(_) if is_compiled => {
            Some(Bench::new(maker.switch(Executor::Interpreter, None)?, traffic.generator(), Instrumentation::None))
        }
        Some(_) => {
            output.note("the program already runs on the interpreter: nothing to compare it with");
            None
        }
        None => None,
    };

    bench.run(part(limit, 10), &mut |_, _| progress.say(|| "warming up".to_owned()));
    let before = bench.counts();
    let (mut measured, mut interpreter, mut rounds) = (Measured::default(), Measured::default(), Vec::new());
    for round in 0..ROUNDS {
        let one = bench.run(part(limit, ROUNDS), &mut |done, so_far| {
            let done = (f64::from(round) + done) / f64::from(ROUNDS) * 100.0;
            progress.say(|| format!("measuring  {done:3.0} %  {} packets/s", report::rate(so_far.median_ns())));
        });
        rounds.push(one.median_ns());
        measured.merge(&one);
        if let Some(other) = &mut other {
            // As long as the other, and not as many packets.
            let limit = match part(limit, ROUNDS) {
                Limit::Packets(packets) => Limit::Packets(packets.div_ceil(20)),
                time => time,
            };
            let slow = other.run(limit, &mut |_, so_far| {
                progress.say(|| format!("interpreter      {} packets/s", report::rate(so_far.median_ns())));
            });
            interpreter.merge(&slow);
        }
    }
    let counts = since(&before, bench.counts());
    drop(bench);

    let instrumentation = if is_compiled { Instrumentation::Probed } else { Instrumentation::Watched };
    let probe: Option<v1model::Probe> = (instrumentation == Instrumentation::Probed).then_some(sampler::probe);
    let mut probed = Bench::new(maker.switch(executor, probe)?, traffic.generator(), instrumentation);
    let program = maker.program.clone();
    probed.run(part(limit, 20), &mut |_, _| {});
    let cost_ns = sampler::Sampler::calibrate();
    sampler::install(sampler::Sampler::new(program.bodies.len(), program.tables.len()));
    let with_probes = probed.run(part(limit, 2), &mut |done, _| {
        progress.say(|| format!("where the time goes  {:3.0} %", done * 100.0));
    });
    let sampler = sampler::take();
    progress.clear();
    let breakdown =
        breakdown::breakdown(&program, &sampler, instrumentation, with_probes.packets, measured.median_ns(), cost_ns);
    Ok(Results {
        program: args.program.as_ref().map(|program| program.program.display().to_string()).unwrap_or_default(),
        compiled: is_compiled,
        why_interpreted,
        traffic: traffic.to_string(),
        counts,
        rounds,
        interpreter: other.map(|_| interpreter),
        breakdown,
        probed_ns: with_probes.median_ns(),
        measured,
    })
}

/// Returns the difference between two counts.
fn since(before: &Counts, mut after: Counts) -> Counts {
    after.sent -= before.sent;
    after.forwarded -= before.forwarded;
    after.dropped -= before.dropped;
    after.copies = after.copies.saturating_sub(before.copies);
    after.to_controller -= before.to_controller;
    // Packets that wait now may have waited before, so `waiting` stays as it is.
    for site in &mut after.drops {
        let earlier = before.drops.iter().find(|other| other.reason == site.reason && other.place == site.place);
        site.packets -= earlier.map_or(0, |earlier| earlier.packets);
    }
    after.drops.retain(|site| site.packets > 0);
    for count in &mut after.paths {
        let earlier = before.paths.iter().find(|other| (other.path, other.reason) == (count.path, count.reason));
        count.packets -= earlier.map_or(0, |earlier| earlier.packets);
    }
    after.paths.retain(|count| count.packets > 0);
    after
}
