//! Compares Triplane between two interfaces with a bare AF_XDP forwarder, the kernel's routing, Open vSwitch and
//! DPDK's testpmd.
//!
//! ```text
//! cargo bench -p triplane --bench live [-- [rounds=7] [seconds=0.5] [len=60] [kinds=bare,triplane,...]
//!     [only=rate|overload|latency|workers|kernel|applications|elastic] [xdp=FILE[:SECTION] [entries=COMMAND]]]
//! ```
//!
//! `xdp` adds a row to `kernel`: an XDP program in an object file, see [`xdp_object`].
//!
//! Everything runs in network namespaces that the benchmark creates, on veth pairs, and needs root. All kinds take
//! turns in every round, so that other load on the machine affects all of them. Ratios are taken within a round, and
//! medians are printed. With several processors, the load runs on the first and the forwarder on the second.

mod applications;
mod elastic;
#[path = "../shared/figures.rs"]
mod figures;
mod forwarder;
mod in_kernel;
#[path = "../shared/load.rs"]
mod load;
mod measure;
mod network;
mod overload;
#[path = "../shared/process.rs"]
mod process;
mod workers;
mod xdp_object;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use figures::{Directory, median, sorted};
use forwarder::ForwarderKind;
use load::Rate;
use network::Network;
use xdp_object::XdpObject;

struct Settings {
    rounds: usize,
    seconds: f64,
    len: usize,
    only: Option<String>,
    kinds: Vec<ForwarderKind>,
    object: Option<XdpObject>,
}

impl Settings {
    fn read() -> Result<Settings, Box<dyn Error>> {
        let mut this = Settings {
            rounds: 7,
            seconds: 0.5,
            len: 60,
            only: None,
            kinds: ForwarderKind::ALL.map(|(kind, _)| kind).to_vec(),
            object: None,
        };
        let (mut object, mut entries) = (None, None);
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("rounds", value)) => this.rounds = value.parse::<usize>()?.max(1),
                Some(("seconds", value)) => this.seconds = value.parse()?,
                Some(("len", value)) => this.len = value.parse()?,
                Some(("xdp", value)) => object = Some(value.to_owned()),
                Some(("entries", value)) => entries = Some(value.to_owned()),
                Some(("only", value)) => this.only = Some(value.to_owned()),
                Some(("kinds", names)) => {
                    let named = |(_, name): &(ForwarderKind, &str)| names.split(',').any(|wanted| wanted == *name);
                    this.kinds = ForwarderKind::ALL.into_iter().filter(named).map(|(kind, _)| kind).collect();
                }
                _ => {}
            }
        }
        this.object = object.map(|named| XdpObject::new(&named, entries));
        Ok(this)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(forwarder::BARE) {
        return forwarder::bare();
    }
    if std::env::args().nth(1).as_deref() == Some(load::LOAD) {
        return network::run_load();
    }
    if std::env::args().nth(1).as_deref() == Some(elastic::LOAD) {
        return elastic::run_load();
    }
    if std::env::args().nth(1).as_deref() == Some(in_kernel::WRITER) {
        return in_kernel::run_writer();
    }
    if process::ran_pinned()? {
        return Ok(());
    }
    let settings = Settings::read()?;
    let network = match Network::new(1) {
        Ok(network) => network,
        Err(error) => {
            println!("nothing was measured: {error}");
            return Ok(());
        }
    };
    let directory = Directory::new("live")?;
    std::fs::write(directory.0.join("entries.json"), network::entries())?;
    println!("frames of {} bytes, {} rounds of {} s each", settings.len, settings.rounds, settings.seconds);
    if settings.wants("rate") {
        throughput(&settings, &network, &directory.0)?;
    }
    if settings.wants("overload") {
        overload::ladder(&settings, &network, &directory.0)?;
    }
    if settings.wants("latency") {
        latency(&settings, &network, &directory.0)?;
    }
    if settings.wants("kernel") {
        in_kernel::compare(&settings, &network, &directory.0)?;
    }
    if settings.wants("applications") {
        applications::compare(&settings, &network, &directory.0)?;
    }
    if settings.wants("elastic") {
        elastic::compare(&settings, &directory.0)?;
    }
    if settings.wants("workers") {
        workers::compare(&settings, &directory.0)?;
    }
    Ok(())
}

/// Returns the wanted kinds that work on this machine.
fn kinds(network: &Network, directory: &Path, wanted: &[ForwarderKind]) -> Vec<ForwarderKind> {
    let works = |kind: &ForwarderKind| match kind.start(network, directory).and_then(forwarder::Running::stop) {
        Ok(_) => true,
        Err(error) => {
            println!("{}: left out, {error}", kind.name());
            false
        }
    };
    wanted.iter().copied().filter(works).collect()
}

/// Measures the rate that arrives at the highest load that can be offered.
fn throughput(settings: &Settings, network: &Network, directory: &Path) -> Result<(), Box<dyn Error>> {
    let kinds = kinds(network, directory, &settings.kinds);
    let mut rounds: Vec<Vec<Rate>> = Vec::new();
    for _ in 0..settings.rounds {
        let mut round = Vec::new();
        for kind in &kinds {
            round.push(flooded(*kind, settings, network, directory)?);
        }
        rounds.push(round);
    }
    println!("\nforwarded of a flood, Mpps: median (least to most), against the first of the same round; offered; the");
    println!("forwarder's processor time for a frame");
    for (at, kind) in kinds.iter().enumerate() {
        let arrived = sorted(rounds.iter().map(|round| round[at].arrived));
        let ratio = median(rounds.iter().map(|round| round[at].arrived / round[0].arrived));
        let offered = median(rounds.iter().map(|round| round[at].offered));
        let cpu: Vec<f64> = rounds.iter().filter_map(|round| round[at].cpu_ns).collect();
        let cpu = if cpu.is_empty() { String::new() } else { format!("  {:5.0} ns", median(cpu.into_iter())) };
        println!(
            "  {:35} {:6.3} ({:.3} to {:.3})  {ratio:5.2}  offered {offered:5.2}{cpu}",
            kind.name(),
            arrived[arrived.len() / 2],
            arrived[0],
            arrived[arrived.len() - 1]
        );
    }
    Ok(())
}

fn flooded(
    kind: ForwarderKind,
    settings: &Settings,
    network: &Network,
    directory: &Path,
) -> Result<Rate, Box<dyn Error>> {
    let sink = network.sink()?;
    let running = kind.start(network, directory)?;
    let mut load = network.load(settings.len, 64, None)?;
    let rate = load::rate(&mut load, &sink, settings.seconds, || running.cpu())?;
    drop(load);
    running.stop()?;
    Ok(rate)
}

/// Measures the latency of single frames.
fn latency(settings: &Settings, network: &Network, directory: &Path) -> Result<(), Box<dyn Error>> {
    const COUNT: usize = 1000;
    let kinds = kinds(network, directory, &settings.kinds);
    let mut all: Vec<Vec<[u64; 2]>> = vec![Vec::new(); kinds.len()];
    for _ in 0..settings.rounds {
        for (kind, results) in kinds.iter().zip(&mut all) {
            let running = kind.start(network, directory)?;
            let mut times =
                measure::latency(network, &Network::frames(settings.len), COUNT, Duration::from_micros(200))?;
            running.stop()?;
            times.sort_unstable();
            let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0);
            results.push([at(0.5), at(0.99)]);
        }
    }
    println!("\nlatency under light load, microseconds from host to host (medians of the rounds)");
    for (kind, rounds) in kinds.iter().zip(&all) {
        let of = |which: usize| median(rounds.iter().map(|round| round[which] as f64 / 1000.0));
        println!("  {:35} p50 {:6.1}  p99 {:6.1}", kind.name(), of(0), of(1));
    }
    Ok(())
}
