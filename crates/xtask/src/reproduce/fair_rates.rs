//! Figure 2 of Jeyakumar et al. (SIGCOMM 2014): fair rates that senders compute and keep in the switches.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Settings;
use super::app_lab::LabCommand;
use super::figure::{Cell, Chart, ChartLine, FigureClock, PaperFigure};

const LAB: &str = "fair-rates";

/// Duration of a simulation, and the time from which rates are measured, in seconds.
const END_S: f64 = 3.0;
const FROM_S: f64 = 1.0;

/// Capacity of the links in Mbit/s; bytes of a frame, and of the payload in it.
const CAPACITY: f64 = 100.0;
const FRAME: f64 = 1000.0;
const PAYLOAD: f64 = 958.0;

/// Number of seeds of each row.
const SEEDS: u32 = 3;

/// Interval of `flows.csv`, and of the picture, in seconds.
const STEP_S: f64 = 0.01;
const SHOWN_STEPS: usize = 5;

/// An allocation, with the shares of the flows a, b and c in the closed form.
const ALLOCATIONS: [(&str, [f64; 3]); 2] =
    [("max-min", [0.5, 0.5, 0.5]), ("proportional", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0])];

/// Names of the traffic.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Returns the scenario with this number of flows.
fn scenario(fairness: &str, flows: usize, seed: u32) -> String {
    let traffic = NAMES.map(|name| {
        let list = |host: String| format!("{:?}", vec![host; flows / NAMES.len()]);
        let (from, to) = (list(format!("{name}1")), list(format!("{name}2")));
        format!(
            "\n[[traffic]]\nname = \"{name}\"\nkind = \"rcp\"\nfrom = {from}\nto = {to}\nsize = {FRAME}\nfairness = \
             \"{fairness}\"\ninterval = \"5ms\"\n"
        )
    });
    format!("duration = \"{END_S}s\"\nseed = {seed}\n{}", traffic.concat())
}

/// Returns the payload of each traffic in each interval of `flows.csv`, in bytes.
fn series(text: &str) -> Result<[Vec<f64>; 3]> {
    let intervals = (END_S / STEP_S).round() as usize + 1;
    let mut series = NAMES.map(|_| vec![0.0; intervals]);
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let [name, _, _, time_s, bytes] = columns[..] else { anyhow::bail!("flows.csv has the line `{line}`") };
        let Some(traffic) = NAMES.iter().position(|known| *known == name) else { continue };
        let at = (time_s.parse::<f64>()? / STEP_S).round() as usize;
        if let Some(sum) = series[traffic].get_mut(at) {
            *sum += bytes.parse::<f64>()?;
        }
    }
    Ok(series)
}

/// Shares of a link that the traffic has after the first second.
#[derive(Clone, Copy, Debug, Default)]
struct MeasuredShares {
    data: [f64; 3],
    programs: [f64; 3],
    /// Jain's index of the flows, the least of the three kinds of traffic.
    jain: f64,
}

impl MeasuredShares {
    fn of(results: &Value, series: &[Vec<f64>; 3]) -> MeasuredShares {
        let from = (FROM_S / STEP_S).round() as usize;
        let mbps = |bytes: f64, seconds: f64| bytes * 8e-6 / seconds;
        let data = series
            .each_ref()
            .map(|bytes| mbps(bytes[from..].iter().sum::<f64>(), END_S - FROM_S) * FRAME / PAYLOAD / CAPACITY);
        let all = results["traffic"].as_array();
        let of = |name: &str| all.into_iter().flatten().find(|traffic| traffic["traffic"] == name);
        let bytes = |name: &str| of(name).and_then(|traffic| traffic["rcp"]["program_bytes"].as_f64()).unwrap_or(0.0);
        let programs = NAMES.map(|name| mbps(bytes(name), END_S) / CAPACITY);
        let jain = NAMES.map(|name| {
            let pairs = results["pairs"].as_array().into_iter().flatten().filter(|pair| pair["traffic"] == name);
            jain(&pairs.filter_map(|pair| pair["received"].as_f64()).collect::<Vec<_>>())
        });
        MeasuredShares { data, programs, jain: jain.into_iter().fold(f64::INFINITY, f64::min) }
    }
}

/// Returns Jain's fairness index.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), one| (sum + one, squares + one * one));
    if squares == 0.0 { 0.0 } else { sum * sum / (values.len() as f64 * squares) }
}

/// Returns the rates of one kind of traffic over time, in Mbit/s.
fn line(name: String, bytes: &[f64]) -> ChartLine {
    let seconds = STEP_S * SHOWN_STEPS as f64;
    let rate = |bytes: &[f64]| bytes.iter().sum::<f64>() * 8e-6 / seconds * FRAME / PAYLOAD;
    let points = bytes.chunks_exact(SHOWN_STEPS).enumerate();
    (name, points.map(|(at, bytes)| (at as f64 * seconds, rate(bytes))).take_while(|(at, _)| *at < FROM_S).collect())
}

/// Figure 2: shares of the flows for two allocations, and 3, 30 and 99 flows.
pub fn shares(command: &LabCommand, _: &Settings) -> Result<PaperFigure> {
    let lab = crate::root().join("examples").join(LAB).join("lab.toml");
    let text = fs::read_to_string(&lab).with_context(|| format!("cannot read {}", lab.display()))?;
    command.write(&format!("{LAB}/lab.toml"), &text)?;
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for (fairness, expected) in ALLOCATIONS {
        for flows in [3, 30, 99] {
            let mut all = Vec::new();
            for seed in 1..=SEEDS {
                command.write(&format!("{LAB}/scenario.toml"), &scenario(fairness, flows, seed))?;
                let results = command.simulate(LAB, &format!("{fairness}, {flows} flows, seed {seed}"))?;
                let series = series(&command.read(&format!("{LAB}/out/flows.csv"))?)?;
                all.push(MeasuredShares::of(&results, &series));
                if flows == 3 && seed == 1 {
                    let named = NAMES.iter().zip(&series);
                    lines.extend(named.map(|(name, bytes)| line(format!("{name}, {fairness}"), bytes)));
                }
            }
            rows.push(row(fairness, flows, expected, &all));
        }
    }
    Ok(PaperFigure {
        name: "tpp-2",
        title: "Fair rates that senders compute",
        clock: FigureClock::Simulated,
        columns: vec![
            "allocation",
            "flows",
            "closed form, %",
            "here, %",
            "largest error, %",
            "programs, %",
            "Jain's index",
        ],
        rows,
        notes: vec![format!(
            "`examples/fair-rates`: a crosses two links of {CAPACITY} Mbit/s, b and c one each; a third of the flows are \
             of each kind. Shares of a link with data and programs after {FROM_S} s, averages of {SEEDS} seeds; the error \
             is the largest of all kinds and seeds, relative to the closed form. Programs are part of the shares."
        )],
        chart: Chart::Lines { x: "time, s", y: "data frames, Mbit/s", lines },
    })
}

fn row(fairness: &str, flows: usize, expected: [f64; 3], all: &[MeasuredShares]) -> Vec<Cell> {
    let mean = |of: &dyn Fn(&MeasuredShares) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let shares = [0, 1, 2].map(|at| mean(&|one| one.data[at] + one.programs[at]));
    let errors = all
        .iter()
        .flat_map(|one| (0..NAMES.len()).map(|at| ((one.data[at] + one.programs[at]) / expected[at] - 1.0).abs()));
    let text = |shares: [f64; 3]| shares.map(|share| format!("{:.1}", share * 100.0)).join(", ");
    // Programs of a and b share a link.
    let programs = mean(&|one| one.programs[0] + one.programs[1].max(one.programs[2]));
    vec![
        fairness.into(),
        Cell::whole(flows as i64),
        text(expected).into(),
        text(shares).into(),
        Cell::Number(errors.fold(0.0, f64::max) * 100.0, 1),
        Cell::Number(programs * 100.0, 1),
        Cell::Number(all.iter().map(|one| one.jain).fold(f64::INFINITY, f64::min), 4),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_flows_are_fair_and_a_greedy_one_is_not() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[6.0, 0.0, 0.0]), 1.0 / 3.0);
        assert_eq!(jain(&[0.0]), 0.0);
    }

    #[test]
    fn shares_are_those_after_the_first_second() {
        let text = "traffic,from,to,time_s,bytes\na,a1,a2,0.5,999\na,a1,a2,1.5,1197500\na,a1,a2,2,11975000\n";
        let series = series(text).expect("it is right");
        let results = serde_json::json!({
            "traffic": [{ "traffic": "a", "rcp": { "program_bytes": 375_000 } }],
            "pairs": [{ "traffic": "a", "received": 5 }],
        });
        let shares = MeasuredShares::of(&results, &series);
        assert!((shares.data[0] - 0.55).abs() < 1e-9 && shares.data[1] == 0.0, "{shares:?}");
        assert!((shares.programs[0] - 0.01).abs() < 1e-9, "{shares:?}");
    }
}
