//! Runs `triplane lab sim`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use lab::Topology;
use lab::scenario::{Results, Run, Scenario, ScenarioFiles, TrafficKind, prepare, run_seeds};
use lab::sim::Capture;
use lab_live::traffic::ReplayedFrames;
use serde_json::json;
use wire::pcap;

use super::args::SimArgs;
use super::network::{Network, WIDEST_PORT, reason};
use super::remote_tables::RemoteTables;
use super::simulated_operator::SimulatedOperator;
use super::simulated_store::SimulatedStore;
use super::timeline::{Timeline, TimelineRecorder};
use super::writes::{self, Writes};
use super::{int, minions, plot, remote_tables, report, series, tables, timeline_svg};
use crate::load;
use crate::output::{Failure, Output, counted};
use crate::progress::Progress;

/// The most frames of one capture that a scenario replays, and the most bytes of all captures.
const MAX_REPLAYED: usize = 10_000_000;
const MAX_REPLAYED_BYTES: usize = 1 << 30;

/// Runs a scenario, with one seed or many.
pub fn run(args: &SimArgs, output: &Output) -> Result<(), Failure> {
    let executor = if args.interpret { v1model::Executor::Interpreter } else { v1model::Executor::Auto };
    let network = Arc::new(Network::load(&args.topology, executor, output)?);
    let (scenario, mut map) = scenario(args.scenario.as_deref(), &network.topology, output)?;
    let writes = Writes::load(&network, &scenario, args.scenario.as_deref(), &mut map, output)?;
    let replays = replays(args.scenario.as_deref(), &scenario, &map, output)?;
    let memory = minions::memory_of(&network);
    let programs = minions::programs(args.scenario.as_deref(), (&network.topology, &scenario), &memory, &map, output)?;
    minions::warn_of_idle(&network.topology, &scenario, output);
    int::warn_of_missing_sinks(&network.topology, &scenario, output);
    let (programs, large_programs) = programs;
    let files = ScenarioFiles { replays, programs, large_programs, memory };
    let seed = args.seed.unwrap_or(scenario.seed);
    let played = Played { network, scenario, writes: Arc::new(writes), files };
    match args.seeds {
        Some(count) => many(args, &played, seed, count, output),
        None => one(args, &played, &map, seed, output),
    }
}

/// Reads the scenario, or creates the default one if there is no file.
pub fn scenario(path: Option<&Path>, topology: &Topology, output: &Output) -> Result<(Scenario, SourceMap), Failure> {
    let mut map = SourceMap::new();
    let Some(path) = path else { return Ok((Scenario::all_ping(&topology.traffic_hosts()), map)) };
    let text = load::read_regular(path, lab::read::MAX_BYTES as u64)?;
    let file = map.add(&path.display().to_string(), text.as_str());
    let mut diagnostics = Diagnostics::new();
    let scenario = lab::scenario::read(file, &text, topology, WIDEST_PORT, &mut diagnostics);
    output.diagnostics(&map, &diagnostics);
    match scenario {
        Some(scenario) => Ok((scenario, map)),
        None => Err(Failure::Input(load::mistakes(diagnostics.error_count()))),
    }
}

/// Reads the captures that a scenario replays, which lie beside its file. Diagnostics have been printed when this
/// returns.
pub fn replays(
    file: Option<&Path>,
    scenario: &Scenario,
    map: &SourceMap,
    output: &Output,
) -> Result<ReplayedFrames, Failure> {
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let mut replays = ReplayedFrames::new();
    let mut diagnostics = Diagnostics::new();
    let mut bytes = 0;
    for traffic in &scenario.traffic {
        let TrafficKind::Replay(name) = &traffic.kind else { continue };
        match frames(&folder.join(name), &mut bytes) {
            Ok(frames) => _ = replays.insert(name.clone(), frames),
            Err(failure) => diagnostics.push(Diagnostic::error("replay", traffic.span, reason(&failure))),
        }
    }
    output.diagnostics(map, &diagnostics);
    match diagnostics.error_count() {
        0 => Ok(replays),
        count => Err(Failure::Input(load::mistakes(count))),
    }
}

/// Returns the frames of a capture and their times; `bytes` is the running total over all captures.
fn frames(path: &Path, bytes: &mut usize) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
    let file = load::open_regular(path)?;
    let wrong = |source| Failure::from(ports::PortError::Capture { path: path.to_owned(), source });
    let mut reader = pcap::Reader::new(BufReader::new(file)).map_err(wrong)?;
    let mut frames = Vec::new();
    while let Some(captured) = reader.read().map_err(wrong)? {
        *bytes += captured.data.len();
        frames.push((captured.time_ns, captured.data));
        if frames.len() > MAX_REPLAYED || *bytes > MAX_REPLAYED_BYTES {
            let (path, most) = (path.display(), MAX_REPLAYED_BYTES);
            let message = format!(
                "{path} is too large: at most {MAX_REPLAYED} frames, and {most} bytes over all captures, can be \
                 replayed"
            );
            return Err(Failure::Input(message));
        }
    }
    Ok(frames)
}

/// A scenario and every file that it names.
struct Played {
    network: Arc<Network>,
    scenario: Scenario,
    writes: Arc<Writes>,
    files: ScenarioFiles,
}

impl Played {
    fn prepare(&self, seed: u64) -> Run {
        let Played { network, scenario, writes, files } = self;
        let topology = &network.topology;
        let mut run = prepare(topology, scenario, seed, files, network.elements(seed, writes));
        for (number, host) in topology.stores().enumerate() {
            if let Some(replication) = &network.replication {
                let store = SimulatedStore::new(Arc::clone(replication), number, seed);
                run.simulation.run_program(host, switch::Time::ZERO, Box::new(store));
            }
        }
        RemoteTables::start_servers(topology, &mut run);
        if let Some((host, replication)) = topology.operator().zip(network.replication.as_ref()) {
            let operator = SimulatedOperator::new(Arc::clone(replication), seed);
            run.simulation.run_program(host, switch::Time::ZERO, Box::new(operator));
        }
        run
    }
}

/// Returns the error of a simulation that was flooded.
fn flooded(at: switch::Time) -> String {
    let most = lab::sim::MAX_HELD_BYTES >> 30;
    format!(
        "more than {most} GiB of frames were in flight at {at}, so the simulation was aborted: is there a forwarding \
         loop that multiplies them?"
    )
}

/// Runs one seed and reports its results in full.
fn one(args: &SimArgs, played: &Played, map: &SourceMap, seed: u64, output: &Output) -> Result<(), Failure> {
    let Played { network, scenario, .. } = played;
    let mut run = played.prepare(seed);
    let captures = captures(args, scenario, &mut run, output)?;
    let replication = network.replication.as_ref();
    let timeline = args.timeline.as_ref();
    let timeline = timeline.map(|_| TimelineRecorder::start(&network.topology, scenario, replication, &mut run));
    let timeline = timeline.transpose()?;
    let began = Instant::now();
    let mut progress = Progress::new();
    run.run(args.threads.into(), &mut |share| progress.say(|| simulated(share)));
    drop(progress);
    let took = began.elapsed();
    let results = run.results(&network.topology, scenario);
    // Results are reported even if they cannot be written.
    let written = write(args, &network.topology, &results, captures);
    let remote = network.remote_tables.results(&network.topology, &mut run);
    if args.json {
        let mut report = report::json(&network.topology, &results, seed);
        report["memory"] = remote;
        output.print(&format!("{report:#}\n"))?;
    } else {
        output.print(&report::text(network, &results, seed, took))?;
        output.print(&remote_tables::text(&remote))?;
    }
    written?;
    if let (Some(recorder), Some(path)) = (timeline, &args.timeline) {
        draw_timeline(&recorder.finish(), path, args.json, output)?;
    }
    for message in writes::refused(&network.topology, scenario, &results.refused) {
        output.note(&message);
    }
    if let Some(at) = results.flooded {
        return Err(Failure::Input(flooded(at)));
    }
    if results.unmet.is_empty() {
        return Ok(());
    }
    let mut diagnostics = Diagnostics::new();
    for unmet in &results.unmet {
        diagnostics.push(Diagnostic::error("expectation", unmet.span, unmet.message.clone()));
    }
    output.diagnostics(map, &diagnostics);
    Err(Failure::Input(format!("{} not met", counted(results.unmet.len(), "expectation", "expectations"))))
}

/// Writes the drawing of a failover, and prints its steps.
fn draw_timeline(timeline: &Timeline, path: &Path, is_json: bool, output: &Output) -> Result<(), Failure> {
    std::fs::write(path, timeline_svg::draw(timeline)).with_context(|| format!("cannot write {}", path.display()))?;
    if timeline.is_cut {
        output.note("the run has too many frames: the timeline omits the last ones");
    }
    if is_json { Ok(()) } else { output.print(&timeline.text()) }
}

/// Writes the files that `--out` and `--plot` request.
fn write(
    args: &SimArgs,
    topology: &Topology,
    results: &Results,
    captures: Vec<(String, Writer)>,
) -> Result<(), Failure> {
    for (name, capture) in captures {
        let mut writer = capture.lock().expect("nobody panics while writing");
        writer.flush().map_err(|error| anyhow::anyhow!("cannot write {name}: {error}"))?;
    }
    let Some(folder) = &args.out else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    series::write(folder, &tables::tables(topology, results))?;
    if args.plot {
        plot::write(folder, topology, results)?;
    }
    Ok(())
}

/// Formats the progress of a simulation.
fn simulated(share: f64) -> String {
    format!("{:3.0} % simulated", share.clamp(0.0, 1.0) * 100.0)
}

/// Runs many seeds and reports those that miss an expectation, each with the command that replays it.
fn many(args: &SimArgs, played: &Played, first: u64, count: u64, output: &Output) -> Result<(), Failure> {
    let Played { network, scenario, .. } = played;
    let mut failed: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut finished = 0_u64;
    let mut progress = Progress::new();
    let seeds = (0..count).map(|number| first.wrapping_add(number));
    let topology = &network.topology;
    run_seeds(
        topology,
        scenario,
        seeds,
        args.threads.into(),
        |seed| played.prepare(seed),
        |seed, results| {
            let messages = results.unmet.into_iter().map(|unmet| unmet.message);
            let messages: Vec<String> = messages.chain(results.flooded.map(flooded)).collect();
            if !messages.is_empty() {
                failed.insert(seed, messages);
            }
            finished += 1;
            progress.say(|| simulated(finished as f64 / count as f64));
        },
    );
    drop(progress);
    if args.json {
        let failing: Vec<_> = failed
            .iter()
            .map(|(seed, unmet)| json!({ "seed": seed, "unmet": unmet, "again": again(args, *seed) }))
            .collect();
        output.print(&format!("{:#}\n", json!({ "seeds": count, "first": first, "failing": failing })))?;
    } else {
        const SHOWN: usize = 10;
        for (seed, unmet) in failed.iter().take(SHOWN) {
            output.print(&format!("seed {seed}\n"))?;
            for message in unmet {
                output.print(&format!("  {message}\n"))?;
            }
            output.print(&format!("  to reproduce: {}\n", again(args, *seed)))?;
        }
        if failed.len() > SHOWN {
            output.print(&format!("and {} more; --json lists them all\n", failed.len() - SHOWN))?;
        }
        let well = count - failed.len() as u64;
        output.print(&format!("{well} of {} met every expectation\n", counted(count as usize, "seed", "seeds")))?;
        if scenario.expect.is_empty() {
            output.note("the scenario has no expectations: add [[expect]] sections");
        }
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(Failure::Input(format!("{} did not meet an expectation", counted(failed.len(), "seed", "seeds")))),
    }
}

/// Returns the command that runs a seed again.
fn again(args: &SimArgs, seed: u64) -> String {
    let path = |path: &PathBuf| word(&path.display().to_string());
    let mut words = vec!["triplane lab sim".to_owned(), path(&args.topology.topology)];
    let mut option = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("--{name} {value}")));
    option("program", args.topology.program.as_ref().map(path));
    args.topology.include.iter().for_each(|directory| option("include", Some(path(directory))));
    args.topology.define.iter().for_each(|define| option("define", Some(word(define))));
    option("scenario", args.scenario.as_ref().map(path));
    option("seed", Some(seed.to_string()));
    words.join(" ")
}

/// Quotes a text as one shell word.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '=' | ':' | ',' | '@');
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

type Writer = Arc<Mutex<pcap::Writer<BufWriter<File>>>>;

/// Opens the files of the scenario's captures.
fn captures(
    args: &SimArgs,
    scenario: &Scenario,
    run: &mut Run,
    output: &Output,
) -> Result<Vec<(String, Writer)>, Failure> {
    let Some(folder) = &args.out else {
        if !scenario.captures.is_empty() {
            output.note("the scenario's captures are not written: pass --out DIR");
        }
        return Ok(Vec::new());
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut writers = Vec::new();
    for (end, name) in &scenario.captures {
        let path = folder.join(name);
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let writer =
            pcap::Writer::new(BufWriter::new(file)).with_context(|| format!("cannot write {}", path.display()))?;
        let writer = Arc::new(Mutex::new(writer));
        let shared = Arc::clone(&writer);
        run.simulation.capture(
            *end,
            Capture::new(move |now, _, frame| {
                // A write error such as a full disk is reported when the file is flushed.
                let _ = shared.lock().expect("nobody panics while writing").write(now.as_ns(), frame);
            }),
        );
        writers.push((path.display().to_string(), writer));
    }
    Ok(writers)
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        assert_eq!(word("labs/lab-1.toml"), "labs/lab-1.toml");
        assert_eq!(word("my lab.toml"), "'my lab.toml'");
        assert_eq!(word("it's; rm"), r"'it'\''s; rm'");
    }
}
