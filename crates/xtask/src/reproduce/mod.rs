//! Runs `cargo xtask reproduce`: repeats the experiments of published papers, with a table and a chart for each figure.
//! docs/reproduction.md compares the results with those of the papers.
//!
//! [`trace`] generates packets, [`application`] turns them into frames of the example programs, and [`app_lab`] sends
//! them through a simulated lab. A figure is a module with a function that returns a [`PaperFigure`].

mod app_lab;
mod application;
mod bandwidth;
mod benches;
mod chart;
mod failover;
mod fair_rates;
mod figure;
mod flowlets;
mod held_bytes;
mod latency;
mod micro_bursts;
mod percentiles;
mod remote;
mod snapshots;
mod trace;
mod update_ratio;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::step::{Step, clock};
use app_lab::LabCommand;
use figure::PaperFigure;

pub const HELP: &str = "\
Usage: cargo xtask reproduce [FIGURE...] [--out DIR] [--json] [--packets N] [--triplane FILE] [--profile NAME]

Repeats the experiments of papers, prints a table for each figure, and draws it. Without FIGUREs, all are repeated.

Kim et al., RedPlane (SIGCOMM 2021; chapter 5 of Kim's thesis, whose numbers of figures are used):

  5.10  round-trip times of packets through the NAT      simulated
  5.11  round-trip times of each application             simulated
  5.12  share of the replication in all bytes            simulated
  5.13  bandwidth of snapshots                           simulated
  5.14  rate of packets beside the plain program         CPU time: `cargo bench -p resilient_switch --bench rows`
  5.15  key-value store by its share of updates          simulated
  5.16  a TCP flow while its switch fails and returns    simulated
  5.17  bytes that wait in the switch                    simulated
  t5.2  resources: memory of rows, compile time          CPU time and allocated bytes: `--bench resources`

Kim et al., TEA (SIGCOMM 2020; chapter 3 of the same thesis):

  3.9   time and rate of lookups with one server         simulated
  3.10a loads of eight servers, with and without a cache simulated
  3.10b rates with 1 to 8 servers                        simulated
  3.11  rate while a server fails and returns            simulated
  3.12  times of packets in the NAT                      simulated
  t3.2  memory of 10 million entries                     computed by `triplane check`
  t3.3  network functions with one server                simulated; CPU time of the local table
  t3.4  resources: memory of entries, machine code       allocated bytes: `--bench resources`
  tea-share  packets that the cache answers over time    simulated

Jeyakumar et al., Millions of Little Minions (SIGCOMM 2014):

  tpp-1 queues that packets report                       simulated
  tpp-2 fair rates that senders compute (RCP*)           simulated
  tpp-4 flowlets on the least loaded path (CONGA*)       simulated

Simulated figures are the same on every machine. CPU times depend on the machine and its load.

  --out DIR        Directory of the pictures, FIGURE.svg (target/reproduce)
  --json           Print JSON instead of tables
  --packets N      Packets of each simulation, from 1000 to 1000000 (100000)
  --triplane FILE  The command that simulates; without it, the command is built first
  --profile NAME   Cargo's profile for the command and the benchmarks (release)
";

/// Settings of a run.
pub struct Settings {
    /// Directory of the pictures.
    out: PathBuf,
    /// Directory of the labs.
    work: PathBuf,
    is_json: bool,
    /// Packets of a simulation.
    pub packets: usize,
    triplane: Option<PathBuf>,
    /// Cargo's profile.
    pub profile: String,
}

/// A figure: its name, and its function.
struct Known {
    name: &'static str,
    paper: &'static str,
    /// Whether it runs `triplane`, and no benchmarks.
    is_simulated: bool,
    draw: fn(&LabCommand, &Settings) -> Result<PaperFigure>,
}

const REDPLANE: &str = "RedPlane, SIGCOMM 2021";
const TEA: &str = "TEA, SIGCOMM 2020";
const MINIONS: &str = "Millions of Little Minions, SIGCOMM 2014";

const FIGURES: &[Known] = &[
    Known { name: "5.10", paper: REDPLANE, is_simulated: true, draw: latency::nat },
    Known { name: "5.11", paper: REDPLANE, is_simulated: true, draw: latency::applications },
    Known { name: "5.12", paper: REDPLANE, is_simulated: true, draw: bandwidth::shares },
    Known { name: "5.13", paper: REDPLANE, is_simulated: true, draw: snapshots::bandwidth },
    Known { name: "5.14", paper: REDPLANE, is_simulated: false, draw: |_, settings| benches::rates(settings) },
    Known { name: "5.15", paper: REDPLANE, is_simulated: true, draw: update_ratio::curve },
    Known { name: "5.16", paper: REDPLANE, is_simulated: true, draw: failover::goodput },
    Known { name: "5.17", paper: REDPLANE, is_simulated: true, draw: held_bytes::figure },
    Known { name: "t5.2", paper: REDPLANE, is_simulated: false, draw: |_, settings| benches::resources(settings) },
    Known { name: "3.9", paper: TEA, is_simulated: true, draw: remote::single_server },
    Known { name: "3.10a", paper: TEA, is_simulated: true, draw: remote::loads },
    Known { name: "3.10b", paper: TEA, is_simulated: true, draw: remote::rates },
    Known { name: "3.11", paper: TEA, is_simulated: true, draw: remote::over_time },
    Known { name: "3.12", paper: TEA, is_simulated: true, draw: remote::times },
    Known { name: "t3.2", paper: TEA, is_simulated: true, draw: remote::memory },
    Known { name: "t3.3", paper: TEA, is_simulated: true, draw: remote::functions },
    Known { name: "t3.4", paper: TEA, is_simulated: false, draw: |_, settings| benches::remote_resources(settings) },
    Known { name: "tea-share", paper: TEA, is_simulated: true, draw: remote::shares },
    Known { name: "tpp-1", paper: MINIONS, is_simulated: true, draw: micro_bursts::queues },
    Known { name: "tpp-2", paper: MINIONS, is_simulated: true, draw: fair_rates::shares },
    Known { name: "tpp-4", paper: MINIONS, is_simulated: true, draw: flowlets::balance },
];

/// Repeats the figures. Returns true: a benchmark or simulation that fails is an error.
pub fn run(arguments: &[String]) -> Result<bool> {
    let (settings, wanted) = parse(arguments)?;
    for directory in [&settings.out, &settings.work] {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let wanted: Vec<&Known> =
        FIGURES.iter().filter(|known| wanted.is_empty() || wanted.contains(&known.name)).collect();
    let command = LabCommand::new(command(&settings, &wanted)?, settings.work.canonicalize()?)?;
    let mut all = Vec::new();
    for (number, known) in wanted.iter().enumerate() {
        let began = Instant::now();
        let what = format!("{}, {} of {}", known.name, number + 1, wanted.len());
        command.begin(&what);
        let figure = (known.draw)(&command, &settings).with_context(|| format!("figure {}", known.name))?;
        command.clear();
        let picture = settings.out.join(format!("{}.svg", known.name));
        chart::draw(&picture, &figure)?;
        if settings.is_json {
            let mut json = figure.json();
            json["paper"] = known.paper.into();
            all.push(json);
        } else {
            println!("{}\n{}\n", figure.text(), picture.display());
        }
        eprintln!("{what}: done after {}", clock(began.elapsed()));
    }
    if settings.is_json {
        println!("{:#}", json!({ "packets": settings.packets, "figures": all }));
    }
    Ok(true)
}

/// Returns the path of `triplane`, which is built unless it is given or no figure is simulated.
fn command(settings: &Settings, wanted: &[&Known]) -> Result<PathBuf> {
    if let Some(triplane) = &settings.triplane {
        return triplane.canonicalize().with_context(|| format!("cannot find {}", triplane.display()));
    }
    if !wanted.iter().any(|known| known.is_simulated) {
        return Ok(PathBuf::new());
    }
    let target = crate::target();
    // Standard output is for the results.
    let arguments = ["build", "--quiet", "--package", "triplane", "--profile", &settings.profile];
    eprintln!("building triplane with profile {}", settings.profile);
    Step::cargo("triplane", &arguments).output()?;
    let directory = if settings.profile == "dev" { "debug" } else { &settings.profile };
    Ok(target.join(directory).join("triplane"))
}

fn parse(arguments: &[String]) -> Result<(Settings, Vec<&'static str>)> {
    let target = crate::target();
    let work = target.join("reproduce");
    let mut settings = Settings {
        out: work.clone(),
        work,
        is_json: false,
        packets: 100_000,
        triplane: None,
        profile: "release".to_owned(),
    };
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("`{argument}` requires a value"));
        match argument.as_str() {
            "--out" => settings.out = value()?.into(),
            "--json" => settings.is_json = true,
            "--packets" => {
                let text = value()?;
                let packets = text.parse().ok().filter(|packets| (1_000..=1_000_000).contains(packets));
                settings.packets = packets.with_context(|| format!("--packets {text}: use 1000 to 1000000"))?;
            }
            "--triplane" => settings.triplane = Some(value()?.into()),
            "--profile" => settings.profile = value()?.clone(),
            name => match FIGURES.iter().find(|known| known.name == name) {
                Some(known) => wanted.push(known.name),
                None if name.starts_with('-') => bail!("unknown option `{name}`\n\n{HELP}"),
                None => {
                    let known: Vec<&str> = FIGURES.iter().map(|known| known.name).collect();
                    bail!("unknown figure `{name}`: use one of {}", known.join(", "))
                }
            },
        }
    }
    Ok((settings, wanted))
}

/// Shows a line on standard error that the next one replaces, if it is a terminal.
fn show(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[2K{text}");
        let _ = stderr.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<(Settings, Vec<&'static str>)> {
        parse(&arguments.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_figures_and_options() {
        let (settings, wanted) = parsed("5.15 --packets 2000 --json --out pictures t5.2").expect("they are right");
        assert_eq!(wanted, ["5.15", "t5.2"]);
        assert_eq!((settings.packets, settings.is_json, settings.out), (2000, true, PathBuf::from("pictures")));
    }

    #[test]
    fn wrong_arguments_are_refused_with_what_is_right() {
        for (arguments, part) in [
            ("5.9", "use one of 5.10, 5.11"),
            ("--packets 999", "use 1000 to 1000000"),
            ("--packets", "requires a value"),
            ("--fast", "unknown option"),
        ] {
            let error = parsed(arguments).err().unwrap_or_else(|| panic!("{arguments} is refused"));
            assert!(format!("{error:#}").contains(part), "{error:#} lacks {part}");
        }
    }
}
