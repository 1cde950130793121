//! Measures resilient state live: `triplane run --store` and `triplane store run`, compared with the plain program, a
//! bare relay and a bare echo.
//!
//! ```text
//! cargo bench -p triplane --bench resilient [-- [rounds=9] [seconds=0.3] [gap_us=200]
//!     [only=latency|store|programs|curve] [programs=nat,gateway,...] [verbose=yes]]
//! ```
//!
//! Everything runs in network namespaces that the benchmark creates, on veth pairs with AF_XDP ports, and needs root.
//! Compared variants alternate in each round, so that other load on the machine affects all. Ratios are taken
//! within a round. With several processors, the client, the load and its stores run on the first, and the switch
//! runs on the second. A server whose latency or rate is measured runs on the second, too. All of it takes about four
//! minutes.

mod applications;
mod echo;
#[path = "../shared/figures.rs"]
mod figures;
mod latency;
#[path = "../shared/load.rs"]
mod load;
#[path = "../shared/process.rs"]
mod process;
mod site;
mod store;
mod throughput;
#[path = "../../../resilient_store/benches/wire_client/mod.rs"]
mod wire_client;

use std::error::Error;
use std::time::Duration;

use applications::Programs;
use figures::Directory;

struct Settings {
    rounds: usize,
    seconds: f64,
    /// Time between two frames whose latency is measured.
    gap: Duration,
    only: Option<String>,
    programs: Option<String>,
    is_verbose: bool,
}

impl Settings {
    fn read() -> Result<Settings, Box<dyn Error>> {
        let mut this = Settings {
            rounds: 9,
            seconds: 0.3,
            gap: Duration::from_micros(200),
            only: None,
            programs: None,
            is_verbose: false,
        };
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("rounds", value)) => this.rounds = value.parse::<usize>()?.max(1),
                Some(("seconds", value)) => this.seconds = value.parse()?,
                Some(("gap_us", value)) => this.gap = Duration::from_micros(value.parse()?),
                Some(("only", value)) => this.only = Some(value.to_owned()),
                Some(("programs", value)) => this.programs = Some(value.to_owned()),
                Some(("verbose", value)) => this.is_verbose = value == "yes",
                _ => {}
            }
        }
        Ok(this)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    fn has(&self, program: &str) -> bool {
        self.programs.as_deref().is_none_or(|programs| programs.split(',').any(|name| name == program))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some(echo::ECHO) => return echo::echo(),
        Some(echo::RELAY) => return echo::relay(),
        Some(load::LOAD) => return applications::run_load(),
        _ => {}
    }
    if process::ran_pinned()? {
        return Ok(());
    }
    let settings = Settings::read()?;
    let directory = Directory::new("resilient")?;
    if let Err(error) = site::Site::new(directory.0.join("first")) {
        println!("nothing was measured: {error}");
        return Ok(());
    }
    let programs = Programs::copy(directory.0.join("programs"))?;
    println!("{} rounds of {} s each; load averages {}", settings.rounds, settings.seconds, load_averages());
    if settings.wants("latency") {
        latency::measure(&settings, &programs, &directory.0)?;
    }
    if settings.wants("store") {
        store::measure(&settings, &directory.0)?;
    }
    if settings.wants("programs") {
        throughput::applications(&settings, &programs, &directory.0)?;
    }
    if settings.wants("curve") {
        throughput::curve(&settings, &programs, &directory.0)?;
    }
    println!("\nload averages at the end {}", load_averages());
    Ok(())
}

/// Returns the machine's load averages of 1, 5 and 15 minutes.
fn load_averages() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(", ")
}
