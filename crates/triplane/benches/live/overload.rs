//! Measures whether overload reduces the rate that is forwarded.
//!
//! A ladder of loads finds the best rate, and the highest rate with almost no loss; then three times each is offered.
//! The sender is the kernel's own flood, thinned to a share of each 64 frames. The highest load is therefore as fast as
//! anything on this machine can be, and lower loads are not slower than requested.

use std::error::Error;
use std::path::Path;

use crate::Settings;
use crate::figures::median;
use crate::forwarder::ForwarderKind;
use crate::load::{self, Rate};
use crate::network::Network;

/// The ladder of loads: the number of frames that leave of each 64 that the kernel could send.
const SHARES: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64];

/// The final load, as a multiple of the rate that can be carried.
const OVERLOAD: f64 = 3.0;

/// Share of a rate that must arrive for the rate to count as carried whole.
const WHOLE: f64 = 0.98;

/// Measures the ladder for each forwarder and prints the results.
pub fn ladder(settings: &Settings, network: &Network, directory: &Path) -> Result<(), Box<dyn Error>> {
    println!("\noverload: what is forwarded of rising loads, Mpps (medians)");
    for kind in
        settings.kinds.iter().copied().filter(|kind| [ForwarderKind::Bare, ForwarderKind::Triplane].contains(kind))
    {
        let climb = |shares: &[u32]| climb(kind, shares, settings, network, directory);
        let rungs = climb(&SHARES)?;
        let best = rungs.iter().map(|rung| rung.arrived).fold(0.0, f64::max);
        let whole = rungs.iter().filter(|rung| rung.arrived >= WHOLE * rung.offered);
        let whole = whole.map(|rung| rung.arrived).fold(0.0, f64::max);
        println!("  {}", kind.name());
        for rung in &rungs {
            println!("    {}", told(rung, best));
        }
        for (what, rate) in [("its best rate", best), ("what it carries almost whole", whole)] {
            let share = share_for(OVERLOAD * rate, &rungs);
            let rung = climb(&[share])?.remove(0);
            println!("  at {OVERLOAD} times {what}, {rate:.3} ({:.2} times in fact)", rung.offered / rate);
            println!("    {}", told(&rung, best));
        }
    }
    Ok(())
}

fn told(rung: &Rate, best: f64) -> String {
    let Rate { offered, arrived, .. } = rung;
    format!("offered {offered:6.3}  forwarded {arrived:6.3}, {:.2} of the best", arrived / best)
}

/// Returns the rate that is forwarded at each load, as the median of all rounds. The loads take turns in each round.
fn climb(
    kind: ForwarderKind,
    shares: &[u32],
    settings: &Settings,
    network: &Network,
    directory: &Path,
) -> Result<Vec<Rate>, Box<dyn Error>> {
    let mut rungs = vec![Vec::new(); shares.len()];
    for _ in 0..settings.rounds {
        for (share, rates) in shares.iter().zip(&mut rungs) {
            let sink = network.sink()?;
            let running = kind.start(network, directory)?;
            let mut load = network.load(settings.len, *share, None)?;
            rates.push(load::rate(&mut load, &sink, settings.seconds, || running.cpu())?);
            drop(load);
            running.stop()?;
        }
    }
    let medians = rungs.iter().map(|rates| {
        let of = |what: fn(&Rate) -> f64| median(rates.iter().map(what));
        Rate { offered: of(|rate| rate.offered), arrived: of(|rate| rate.arrived), cpu_ns: None }
    });
    Ok(medians.collect())
}

/// Returns the share of 64 frames that offers about this rate, interpolated between the shares that were tried.
fn share_for(offered: f64, rungs: &[Rate]) -> u32 {
    let points = SHARES.iter().map(|share| f64::from(*share)).zip(rungs.iter().map(|rung| rung.offered));
    let (mut low, mut high) = ((0.0, 0.0), (64.0, f64::INFINITY));
    for point in points {
        if point.1 <= offered {
            low = point;
        } else if point.1 < high.1 {
            high = point;
        }
    }
    let share = if high.1.is_finite() { low.0 + (high.0 - low.0) * (offered - low.1) / (high.1 - low.1) } else { 64.0 };
    (share.round() as u32).clamp(1, 64)
}
