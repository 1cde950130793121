//! A market data feed filtered in the switch, against filtered in the subscriber: the workloads of the talk
//! "High-Throughput Publish/Subscribe in the Forwarding Plane".
//!
//! ```text
//! cargo bench -p triplane --bench delivery [-- [rounds=3] [seconds=1] [rates=2000,5000,...] [at=20000] [ports=xdp|packet]
//!     [realtime=yes] [svg=DIR]]
//! ```
//!
//! The exchange, the switch (`triplane run`) and the subscriber are processes in network namespaces made for it, on veth
//! pairs; it needs root. Rates are datagrams a second. Where the subscriber filters the switch runs a program that
//! forwards everything; where the switch filters, what `triplane subscribe` makes of the same condition. Both take turns in
//! every round, so that a busy machine is busy for both. With `realtime=yes` the three go before all others of the machine
//! (`chrt`). Ages are from the exchange's time stamp to the subscriber's program, after its filter; all on one machine, so that
//! clocks agree.

mod network;
mod picture;
#[path = "../../tests/support/mod.rs"]
mod support;
mod trial;

use std::error::Error;
use std::path::{Path, PathBuf};

use market::Workload;
use network::Network;
use picture::Shares;
use support::Directory;
use trial::{Programs, Setting, Trial, Where, trial};

struct Settings {
    rounds: usize,
    seconds: f64,
    rates: Vec<f64>,
    /// The rate whose ages are drawn.
    at: f64,
    ports: String,
    realtime: bool,
    svg: Option<PathBuf>,
}

impl Settings {
    fn read() -> Result<Settings, Box<dyn Error>> {
        let rates = vec![2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 200e3];
        let mut this =
            Settings { rounds: 3, seconds: 1.0, rates, at: 20e3, ports: "xdp:".to_owned(), realtime: false, svg: None };
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("rounds", value)) => this.rounds = value.parse::<usize>()?.max(1),
                Some(("seconds", value)) => this.seconds = value.parse()?,
                Some(("rates", values)) => this.rates = values.split(',').map(str::parse).collect::<Result<_, _>>()?,
                Some(("at", value)) => this.at = value.parse()?,
                Some(("ports", "xdp")) => this.ports = "xdp:".to_owned(),
                Some(("ports", "packet")) => this.ports = String::new(),
                Some(("realtime", value)) => this.realtime = value == "yes",
                Some(("svg", path)) => this.svg = Some(path.into()),
                _ => {}
            }
        }
        Ok(this)
    }
}

/// All trials of one workload, one who filters, and one rate.
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

    fn share(&self) -> f64 {
        self.got() as f64 / self.asked().max(1) as f64
    }

    /// The median over rounds of a quantile, in us.
    fn quantile(&self, at: usize) -> f64 {
        median(self.trials.iter().filter(|trial| trial.got > 0).map(|trial| trial.quantiles[at] as f64 / 1e3))
    }

    /// Which share of all trials' messages was no older than so many us.
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

fn main() -> Result<(), Box<dyn Error>> {
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
    for workload in Workload::ALL {
        for &rate in &settings.rates {
            points.extend(measure(&settings, &network, &programs, workload, rate)?);
        }
        report(workload, &points, &settings);
    }
    if let Some(folder) = &settings.svg {
        draw(folder, &points, &settings)?;
    }
    Ok(())
}

/// Both ways at one rate, in turns.
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

/// A table in Markdown.
fn report(workload: Workload, points: &[Point], settings: &Settings) {
    println!(
        "\n{}, {} rounds of {} s; ages of wanted messages in us",
        workload.name(),
        settings.rounds,
        settings.seconds
    );
    println!("\n| datagrams/s asked for | sent | filter in | wanted | delivered | p50 | p99 | p99.9 |");
    println!("|---|---|---|---|---|---|---|---|");
    for point in points.iter().filter(|point| point.workload == workload) {
        let sent = median(point.trials.iter().map(|trial| trial.sent));
        println!(
            "| {:.0} | {sent:.0} | {} | {} | {:.2} % | {:.0} | {:.0} | {:.0} |",
            point.rate,
            point.filters.name(),
            point.asked(),
            100.0 * point.share(),
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
    let name = |filters: Where| match filters {
        Where::Subscriber => "filter in the subscriber",
        Where::Switch => "filter in the switch",
    };
    let fields = |line: &dyn Fn(Workload, Where) -> Vec<(f64, f64)>| -> Vec<(&'static str, Vec<picture::Line>)> {
        let lines = |workload| Where::BOTH.map(|filters| (name(filters), line(workload, filters))).to_vec();
        Workload::ALL.map(|workload| (workload.name(), lines(workload))).to_vec()
    };
    let ages = fields(&|workload, filters| {
        of(workload, filters).filter(|point| point.rate == settings.at).flat_map(Point::distribution).collect()
    });
    let x = format!("age at {:.0} datagrams a second, us", settings.at);
    picture::draw(&folder.join("delivery-latency.svg"), &x, ("share no older", Shares::Tail), 5.0..100_000.0, &ages)?;
    let shares = fields(&|workload, filters| of(workload, filters).map(|point| (point.rate, point.share())).collect());
    let (least, most) =
        (settings.rates.iter().copied().fold(f64::MAX, f64::min), settings.rates.iter().copied().fold(0.0, f64::max));
    let delivered = ("delivered", Shares::Linear);
    picture::draw(&folder.join("delivery-rates.svg"), "datagrams a second", delivered, least..most, &shares)
}

/// The middle one; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
