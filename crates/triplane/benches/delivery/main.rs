//! Compares a market data feed that the switch filters with one that the subscriber filters, on the workloads of the
//! talk "High-Throughput Publish/Subscribe in the Forwarding Plane", or of figure 7 of the paper "Packet Subscriptions
//! for Programmable ASICs".
//!
//! ```text
//! cargo bench -p triplane --bench delivery [-- [rounds=3] [seconds=1] [rates=20000,50000,...] [at=200000]
//!     [ports=xdp|packet] [realtime=yes] [workloads=talk|figure-7] [svg=DIR]]
//! ```
//!
//! The exchange, the switch (`triplane run`) and the subscriber are processes in network namespaces that the benchmark
//! creates, connected by veth pairs; it needs root. Rates are the datagrams a second requested of the exchange; results
//! use the number that it sent. Where the subscriber filters, the switch runs a program that forwards everything; where
//! the switch filters, it runs the program that `triplane subscribe` generates from the same condition. Both variants
//! take turns in every round, so that other load on the machine affects both. With `realtime=yes` the three processes
//! have priority over all others on the machine (`chrt`). Ages are measured from the exchange's time stamp to the
//! subscriber's program, after its filter. All processes run on one machine, so their clocks agree.

mod network;
#[path = "../../src/market/picture.rs"]
mod picture;
mod rates;
#[path = "../../tests/it/support/mod.rs"]
mod support;
mod trial;

use std::error::Error;
use std::path::{Path, PathBuf};

use network::Network;
use picture::{Line, Panel};
use support::Directory;
use trial::{Programs, Setting, Trial, Where, Workload, trial};

struct Settings {
    rounds: usize,
    seconds: f64,
    rates: Vec<f64>,
    /// The requested rate whose ages are drawn.
    at: f64,
    ports: String,
    realtime: bool,
    workloads: Vec<Workload>,
    /// Name of the picture of ages.
    picture: &'static str,
    svg: Option<PathBuf>,
}

impl Settings {
    fn read() -> Result<Settings, Box<dyn Error>> {
        let rates = vec![20e3, 50e3, 100e3, 200e3, 300e3, 400e3];
        let mut this = Settings {
            rounds: 3,
            seconds: 1.0,
            rates,
            at: 200e3,
            ports: "xdp:".to_owned(),
            realtime: false,
            workloads: Workload::TALK.to_vec(),
            picture: "delivery-latency.svg",
            svg: None,
        };
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("rounds", value)) => this.rounds = value.parse::<usize>()?.max(1),
                Some(("seconds", value)) => this.seconds = value.parse()?,
                Some(("rates", values)) => this.rates = values.split(',').map(str::parse).collect::<Result<_, _>>()?,
                Some(("at", value)) => this.at = value.parse()?,
                Some(("ports", "xdp")) => this.ports = "xdp:".to_owned(),
                Some(("ports", "packet")) => this.ports = String::new(),
                Some(("realtime", value)) => this.realtime = value == "yes",
                Some(("workloads", "figure-7")) => {
                    (this.workloads, this.picture) = (Workload::FIGURE_7.to_vec(), "delivery-figure-7.svg");
                }
                Some(("svg", path)) => this.svg = Some(path.into()),
                _ => {}
            }
        }
        Ok(this)
    }
}

/// All trials of one workload, one place of the filter, and one rate.
struct Point {
    workload: Workload,
    filters: Where,
    rate: f64,
    trials: Vec<Trial>,
}

impl Point {
    fn asked(&self) -> u64 {
        self.trials.iter().map(|trial| trial.asked).sum()
    }

    fn got(&self) -> u64 {
        self.trials.iter().map(|trial| trial.got).sum()
    }

    fn seconds(&self) -> f64 {
        self.trials.iter().map(|trial| trial.seconds).sum()
    }

    /// Returns the datagrams a second that were sent.
    fn sent(&self) -> f64 {
        self.trials.iter().map(|trial| trial.datagrams).sum::<u64>() as f64 / self.seconds()
    }

    /// Returns the wanted messages a second that were sent, and those that arrived.
    fn wanted(&self) -> (f64, f64) {
        (self.asked() as f64 / self.seconds(), self.got() as f64 / self.seconds())
    }

    fn share(&self) -> f64 {
        self.got() as f64 / self.asked().max(1) as f64
    }

    /// Returns the median of a quantile over all rounds, in us.
    fn quantile(&self, at: usize) -> f64 {
        median(self.trials.iter().filter(|trial| trial.got > 0).map(|trial| trial.quantiles[at] as f64 / 1e3))
    }

    /// Returns the share of messages that were no older than this age in us.
    fn within(&self, bound: f64) -> f64 {
        self.distribution().into_iter().take_while(|(age, _)| *age <= bound).last().map_or(0.0, |(_, share)| share)
    }

    /// Returns the cumulative distribution of message ages over all trials: each age in us, and the share of messages
    /// that were no older.
    fn distribution(&self) -> Vec<(f64, f64)> {
        let mut ages: Vec<u64> = self.trials.iter().flat_map(|trial| &trial.ages).map(|(age, _)| *age).collect();
        ages.sort_unstable();
        ages.dedup();
        let of = |trial: &Trial, age: u64| {
            trial.ages.iter().take_while(|(known, _)| *known <= age).last().map_or(0.0, |(_, share)| *share)
        };
        let all = self.got().max(1) as f64;
        let share = |age: u64| self.trials.iter().map(|trial| of(trial, age) * trial.got as f64).sum::<f64>() / all;
        ages.into_iter().map(|age| (age as f64 / 1e3, share(age))).collect()
    }
}

/// Ages in us. For each, tables have the share of messages that were no older.
const BOUNDS_US: [f64; 5] = [20.0, 50.0, 100.0, 300.0, 500.0];

fn main() -> Result<(), Box<dyn Error>> {
    let begun = std::time::Instant::now();
    let settings = Settings::read()?;
    let network = match Network::new() {
        Ok(network) => network,
        Err(error) => {
            println!("nothing was measured: {error}");
            return Ok(());
        }
    };
    let programs = Programs::new(Directory::new(), &settings.ports, settings.realtime);
    let mut points = Vec::new();
    for &workload in &settings.workloads {
        for &rate in &settings.rates {
            points.extend(measure(&settings, &network, &programs, workload, rate)?);
        }
        report(workload, &points, &settings);
    }
    if let Some(folder) = &settings.svg {
        draw(folder, &points, &settings)?;
    }
    println!("\nall of it took {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Measures both places of the filter at one rate, in turns.
fn measure(
    settings: &Settings,
    network: &Network,
    programs: &Programs,
    workload: Workload,
    rate: f64,
) -> Result<[Point; 2], Box<dyn Error>> {
    let mut both = Where::BOTH.map(|filters| Point { workload, filters, rate, trials: Vec::new() });
    for round in 0..settings.rounds {
        for point in &mut both {
            let seed = round as u64 + 1;
            let setting = Setting { workload, filters: point.filters, rate, seconds: settings.seconds, seed };
            point.trials.push(trial(network, programs, &setting)?);
        }
    }
    Ok(both)
}

/// Prints a workload's results as a table in Markdown.
fn report(workload: Workload, points: &[Point], settings: &Settings) {
    println!(
        "\n{}, {} rounds of {} s; ages of wanted messages in us",
        workload.name, settings.rounds, settings.seconds
    );
    let bounds: String = BOUNDS_US.iter().map(|bound| format!(" within {bound} us |")).collect();
    println!(
        "\n| datagrams/s asked for | sent | filter in | wanted/s | delivered/s | lost | p50 | p99 | p99.9 |{bounds}"
    );
    println!("|---|---|---|---|---|---|---|---|---|{}", "---|".repeat(BOUNDS_US.len()));
    for point in points.iter().filter(|point| point.workload == workload) {
        let (wanted, delivered) = point.wanted();
        let within: String =
            BOUNDS_US.iter().map(|bound| format!(" {:.2} % |", 100.0 * point.within(*bound))).collect();
        println!(
            "| {:.0} | {:.0} | {} | {wanted:.0} | {delivered:.0} | {:.2} % | {:.0} | {:.0} | {:.0} |{within}",
            point.rate,
            point.sent(),
            point.filters.name(),
            100.0 * (1.0 - point.share()),
            point.quantile(0),
            point.quantile(1),
            point.quantile(2)
        );
    }
}

fn draw(folder: &Path, points: &[Point], settings: &Settings) -> Result<(), Box<dyn Error>> {
    let of = |workload: Workload, filters: Where| {
        points.iter().filter(move |point| point.workload == workload && point.filters == filters)
    };
    let panels = |line: &dyn Fn(Workload, Where) -> Line| -> Vec<Panel> {
        let lines = |workload| Where::BOTH.map(|filters| line(workload, filters)).to_vec();
        let panel = |workload: &Workload| Panel { title: workload.name.to_owned(), lines: lines(*workload) };
        settings.workloads.iter().map(panel).collect()
    };
    let ages = panels(&|workload, filters| {
        let point = of(workload, filters).find(|point| point.rate == settings.at);
        let sent = point.map_or(String::new(), |point| format!(", {} sent", picture::short(point.sent())));
        let name = format!("filter in the {}{sent}", filters.name());
        Line { name, points: point.map(Point::distribution).unwrap_or_default(), bound: Vec::new() }
    });
    let x = format!("age in us, {} datagrams a second asked for", picture::short(settings.at));
    std::fs::write(folder.join(settings.picture), picture::ages(&x, 5.0..100_000.0, &ages)?)?;
    if settings.workloads != Workload::TALK {
        return Ok(());
    }
    let rates = panels(&|workload, filters| {
        let pick = |of_point: fn((f64, f64)) -> f64| {
            of(workload, filters).map(|point| (point.sent(), of_point(point.wanted()))).collect()
        };
        let name = format!("filter in the {}", filters.name());
        Line { name, points: pick(|(_, delivered)| delivered), bound: pick(|(wanted, _)| wanted) }
    });
    Ok(std::fs::write(folder.join("delivery-rates.svg"), rates::rates(&rates)?)?)
}

/// Returns the median of the values; 0 if there are none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
