//! Measures the forwarding rate with annotations and stores, compared with the plain program.
//!
//! All variants of a program run at the same time, and wait while another one is measured.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use ports::load::Sink;

use crate::Settings;
use crate::applications::{APPLICATIONS, Application, KEY_VALUE, Programs};
use crate::figures::{median, sorted};
use crate::load::{self, LOAD, Load, Rate};
use crate::site::{LOAD_PROCESSOR, Site};

/// Shares of 64 requests that update a value.
const UPDATES: [u32; 6] = [0, 6, 16, 32, 48, 64];

/// Time after the start of a switch within which it has its machine code.
const COMPILE_TIME: Duration = Duration::from_millis(1500);

/// Time for which frames pass before measurements.
const WARM_UP: f64 = 0.3;

/// A running program.
struct Variant {
    site: Site,
    counter: Sink,
    /// Number of stores; none without annotations.
    stores: u8,
}

impl Variant {
    fn start(
        application: &Application,
        stores: u8,
        programs: &Programs,
        directory: &Path,
    ) -> Result<Variant, Box<dyn Error>> {
        let mut site = Site::new(directory.join(format!("{}-{stores}", application.name)))?;
        if stores > 0 {
            site.start_stores(stores, "1s", LOAD_PROCESSOR)?;
        }
        let is_plain = stores == 0;
        site.start_switch(&programs.path(application, is_plain), application.entries(is_plain).as_deref())?;
        let counted = if application.answers { &site.client } else { &site.sink };
        let counter = counted.enter(|| Sink::open("eth0"))??;
        Ok(Variant { site, counter, stores })
    }

    /// Offers a load for a time. `updates` of each 64 frames write.
    fn measure(
        &self,
        application: &Application,
        updates: u32,
        share: u32,
        seconds: f64,
    ) -> Result<Rate, Box<dyn Error>> {
        let mut command = self.site.client.command(std::env::current_exe()?)?;
        command.args([LOAD, application.name, &updates.to_string(), &share.to_string()]);
        let mut load = Load::start(&mut command)?;
        load::rate(&mut load, &self.counter, seconds, || self.site.switch_cpu())
    }

    /// Fetches the rows.
    fn warm_up(&self, application: &Application) -> Result<(), Box<dyn Error>> {
        self.measure(application, application.first_share(), 1, WARM_UP)?;
        let rate = self.measure(application, application.usual_share(), 64, WARM_UP)?;
        if rate.arrived > 0.0 { Ok(()) } else { Err(format!("{}: no frame arrives", application.name).into()) }
    }

    /// Ends the program, and returns the reasons of drops.
    fn stop(mut self) -> Result<String, Box<dyn Error>> {
        let summary: serde_json::Value = serde_json::from_str(&self.site.stop_switch()?)?;
        let drops = summary.get("dropped").and_then(|drops| drops.as_object()).into_iter().flatten();
        let told = |(reason, count): (&String, &serde_json::Value)| format!("{reason} {count}");
        Ok(drops.map(told).collect::<Vec<_>>().join(", "))
    }
}

/// Starts a program with each number of stores.
fn start(
    application: &Application,
    stores: &[u8],
    programs: &Programs,
    directory: &Path,
) -> Result<Vec<Variant>, Box<dyn Error>> {
    let variant = |stores: &u8| Variant::start(application, *stores, programs, directory);
    let variants: Vec<Variant> = stores.iter().map(variant).collect::<Result<_, _>>()?;
    std::thread::sleep(COMPILE_TIME);
    for variant in &variants {
        variant.warm_up(application)?;
    }
    Ok(variants)
}

/// Measures all variants in turn, in each round. Returns their rates by round.
fn rounds(
    application: &Application,
    variants: &[Variant],
    updates: u32,
    settings: &Settings,
) -> Result<Vec<Vec<Rate>>, Box<dyn Error>> {
    let measure = |variant: &Variant| variant.measure(application, updates, 64, settings.seconds);
    (0..settings.rounds).map(|_| variants.iter().map(measure).collect()).collect()
}

/// Returns a rate as text: its median, and its range.
fn told(rounds: &[Vec<Rate>], at: usize) -> String {
    let rates = sorted(rounds.iter().map(|round| round[at].arrived));
    let cpu = median(rounds.iter().filter_map(|round| round[at].cpu_ns));
    let (middle, last) = (rates[rates.len() / 2], rates[rates.len() - 1]);
    format!("{middle:.3} ({:.3} to {last:.3}), {cpu:.0}", rates[0])
}

/// Returns the ratio to the first as text: its median, and its range.
fn ratio(rounds: &[Vec<Rate>], at: usize) -> String {
    let ratios = sorted(rounds.iter().map(|round| round[at].arrived / round[0].arrived));
    format!("**{:.3}** ({:.3} to {:.3})", ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1])
}

/// Measures the programs with a bound.
pub fn applications(settings: &Settings, programs: &Programs, directory: &Path) -> Result<(), Box<dyn Error>> {
    println!("\nForwarded of a flood, Mpps: median (range) of the rounds; processor time of the switch, ns a frame\n");
    println!("| program | plain | one store | ratio | wanted |\n|---|---|---|---|---|");
    for application in APPLICATIONS.iter().filter(|application| settings.has(application.name)) {
        let variants = start(application, &[0, 1], programs, directory)?;
        let rounds = rounds(application, &variants, application.usual_share(), settings)?;
        let Application { name, bound, .. } = application;
        if settings.is_verbose {
            println!("  offered {:.3}", median(rounds.iter().flatten().map(|rate| rate.offered)));
        }
        println!("| {name} | {} | {} | {} | {bound} |", told(&rounds, 0), told(&rounds, 1), ratio(&rounds, 1));
        for variant in variants {
            let stores = variant.stores;
            let drops = variant.stop()?;
            if settings.is_verbose {
                println!("  dropped with {stores} stores: {drops}");
            }
        }
    }
    Ok(())
}

/// Measures the key-value store with shares of updates, and one and three stores.
pub fn curve(settings: &Settings, programs: &Programs, directory: &Path) -> Result<(), Box<dyn Error>> {
    println!("\nKey-value store: answered of a flood, Mpps, by the share of updates; as above\n");
    println!("| updates | plain | one store | ratio | three stores | ratio |\n|---|---|---|---|---|---|");
    let variants = start(&KEY_VALUE, &[0, 1, 3], programs, directory)?;
    for updates in UPDATES {
        let rounds = rounds(&KEY_VALUE, &variants, updates, settings)?;
        println!(
            "| {:.0} % | {} | {} | {} | {} | {} |",
            f64::from(updates) * 100.0 / 64.0,
            told(&rounds, 0),
            told(&rounds, 1),
            ratio(&rounds, 1),
            told(&rounds, 2),
            ratio(&rounds, 2)
        );
    }
    Ok(())
}
