//! Figure 4 of Jeyakumar et al. (SIGCOMM 2014): flowlets on the least loaded path, and flows on hashed paths.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Settings;
use super::app_lab::LabCommand;
use super::figure::{Cell, Chart, ChartLine, FigureClock, PaperFigure};

const LAB: &str = "flowlets";

/// Files of the example beside its scenarios.
const FILES: [&str; 7] =
    ["lab.toml", "fabric.p4", "leaf0.json", "leaf1.json", "leaf2.json", "spine0.json", "spine1.json"];

/// Names of the traffic, in the order of the scenarios.
const NAMES: [&str; 2] = ["L0:L2", "L1:L2"];

/// Sending ends of the links to the receiver's leaf.
const LINKS: [&str; 2] = ["spine0:3", "spine1:3"];

/// Time of the sending in the scenarios in seconds, bytes of a frame, and capacity of a link in Mbit/s.
const SENDING_S: f64 = 9.99;
const FRAME: f64 = 1000.0;
const CAPACITY: f64 = 100.0;

/// Number of seeds of each row.
const SEEDS: u32 = 5;

/// Samples of the queues in a point of the picture, and the last point in seconds.
const SHOWN_SAMPLES: usize = 2;
const SHOWN_S: f64 = 1.0;

/// A row: its name, its scenario, and changes of the text.
struct Balance {
    name: &'static str,
    scenario: &'static str,
    changes: &'static [(&'static str, &'static str)],
    is_drawn: bool,
}

const BALANCES: [Balance; 4] = [
    Balance { name: "ECMP", scenario: "ecmp.toml", changes: &[], is_drawn: true },
    Balance { name: "CONGA*, samples every 2 ms", scenario: "conga.toml", changes: &[], is_drawn: true },
    Balance {
        name: "CONGA*, every 1 ms",
        scenario: "conga.toml",
        changes: &[("interval = \"2ms\"", "interval = \"1ms\"")],
        is_drawn: false,
    },
    Balance {
        name: "CONGA*, sum of the loads",
        scenario: "conga.toml",
        changes: &[("paths = 2", "paths = 2\nmetric = \"sum\"")],
        is_drawn: false,
    },
];

/// Results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct MeasuredBalance {
    /// Frames that arrived, in Mbit/s.
    rates: [f64; 2],
    /// Load of the busiest link between switches, in percent.
    busiest: f64,
    /// Share of the programs in all frames that were sent, in percent.
    programs: f64,
    /// Share of the datagrams that arrived out of order, in percent.
    late: f64,
}

impl MeasuredBalance {
    fn of(results: &Value) -> MeasuredBalance {
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let traffic = |at: usize| &results["traffic"][at];
        let mbps = |bytes: f64, seconds: f64| bytes * 8e-6 / seconds;
        let rates = [0, 1].map(|at| mbps(number(&traffic(at)["received"]) * FRAME, SENDING_S));
        let sent: f64 = [0, 1].iter().map(|at| number(&traffic(*at)["sent"]) * FRAME).sum();
        let balanced = &traffic(1)["conga"];
        let seconds = number(&results["end_ns"]) / 1e9;
        let links = results["links"].as_array().into_iter().flatten();
        let inner = links.filter(|link| ["from", "to"].iter().any(|end| link[end].to_string().contains("spine")));
        let loads = inner.map(|link| mbps(number(&link["carried_bytes"]), seconds) / CAPACITY * 100.0);
        MeasuredBalance {
            rates,
            busiest: loads.fold(0.0, f64::max),
            programs: number(&balanced["program_bytes"]) / sent.max(1.0) * 100.0,
            late: number(&balanced["late"]) / number(&traffic(1)["received"]).max(1.0) * 100.0,
        }
    }
}

/// Returns the load of a link over time from `queues.csv`, in percent.
fn load(text: &str, link: &str) -> Result<Vec<(f64, f64)>> {
    let mut samples: Vec<(f64, f64)> = Vec::new();
    for line in text.lines().skip(1).filter(|line| line.split(',').next() == Some(link)) {
        let columns: Vec<&str> = line.split(',').collect();
        let [_, time_s, _, carried, _] = columns[..] else { anyhow::bail!("queues.csv has the line `{line}`") };
        samples.push((time_s.parse()?, carried.parse()?));
    }
    let shown: Vec<(f64, f64)> = samples.into_iter().step_by(SHOWN_SAMPLES).collect();
    let points = shown.windows(2).map(|pair| {
        let [(from_s, before), (to_s, after)] = pair else { unreachable!("windows have two samples") };
        (*to_s, (after - before) * 8e-6 / (to_s - from_s) / CAPACITY * 100.0)
    });
    Ok(points.take_while(|(at, _)| *at <= SHOWN_S).collect())
}

/// Figure 4: rates of both flows and the load of the busiest link.
pub fn balance(command: &LabCommand, _: &Settings) -> Result<PaperFigure> {
    let example = crate::root().join("examples").join(LAB);
    let read = |name: &str| {
        let path = example.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    for name in FILES {
        command.write(&format!("{LAB}/{name}"), &read(name)?)?;
    }
    let (mut rows, mut lines) = (Vec::new(), Vec::<ChartLine>::new());
    for balance in BALANCES {
        let mut text = read(balance.scenario)?;
        // Expectations are those of the unchanged scenario and its seed.
        text.truncate(text.find("\n[[expect]]").unwrap_or(text.len()));
        for (from, to) in balance.changes {
            text = text.replace(from, to);
        }
        let mut all = Vec::new();
        for seed in 1..=SEEDS {
            command.write(&format!("{LAB}/scenario.toml"), &format!("seed = {seed}\n{text}"))?;
            let results = command.simulate(LAB, &format!("{}, seed {seed}", balance.name))?;
            all.push(MeasuredBalance::of(&results));
            if balance.is_drawn && seed == 1 {
                let samples = command.read(&format!("{LAB}/out/queues.csv"))?;
                for (at, link) in LINKS.iter().enumerate() {
                    let kind = balance.name.split(',').next().unwrap_or_default();
                    lines.push((format!("spine {at}, {kind}"), load(&samples, link)?));
                }
            }
        }
        rows.push(row(balance.name, &all));
    }
    Ok(PaperFigure {
        name: "tpp-4",
        title: "Flowlets on the least loaded path",
        clock: FigureClock::Simulated,
        columns: vec![
            "balance",
            "L0:L2, Mbit/s",
            "L1:L2, Mbit/s",
            "busiest link, %",
            "largest of all seeds, %",
            "programs, %",
            "out of order, %",
        ],
        rows,
        notes: vec![format!(
            "`examples/flowlets`: {} sends 50 Mbit/s over spine 0, {} sends 120 Mbit/s in 12 flows over both spines; \
             links of {CAPACITY} Mbit/s. Rates of frames that arrived and loads over 10 s, averages of {SEEDS} seeds. \
             Programs are part of the loads, and a share of all frames that were sent.",
            NAMES[0], NAMES[1]
        )],
        chart: Chart::Lines { x: "time, s", y: "load of the link to leaf 2, %", lines },
    })
}

fn row(name: &str, all: &[MeasuredBalance]) -> Vec<Cell> {
    let mean = |of: &dyn Fn(&MeasuredBalance) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    vec![
        name.into(),
        Cell::Number(mean(&|one| one.rates[0]), 1),
        Cell::Number(mean(&|one| one.rates[1]), 1),
        Cell::Number(mean(&|one| one.busiest), 1),
        Cell::Number(all.iter().map(|one| one.busiest).fold(0.0, f64::max), 1),
        Cell::Number(mean(&|one| one.programs), 2),
        Cell::Number(mean(&|one| one.late), 3),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_link_is_one_between_switches() {
        let results = serde_json::json!({
            "end_ns": 1e9,
            "traffic": [
                { "sent": 1000, "received": 999 },
                { "sent": 3000, "received": 2000, "conga": { "program_bytes": 40_000, "late": 20 } },
            ],
            "links": [
                { "from": "leaf2:1", "to": "h2", "carried_bytes": 99e6 },
                { "from": "leaf1:2", "to": "spine0:2", "carried_bytes": 5e6 },
                { "from": "spine0:3", "to": "leaf2:2", "carried_bytes": 10e6 },
            ],
        });
        let measured = MeasuredBalance::of(&results);
        assert_eq!((measured.busiest, measured.programs, measured.late), (80.0, 1.0, 1.0));
        assert!((measured.rates[1] - 16.0 / SENDING_S).abs() < 1e-9, "{measured:?}");
    }

    #[test]
    fn loads_are_differences_of_counters() {
        let text = "from,time_s,waiting,carried_bytes,queue_full\nspine0:3,0,0,0,0\nspine1:3,0,0,9,0\n\
                    spine0:3,0.01,3,1,0\nspine0:3,0.02,0,125000,0\nspine0:3,0.03,0,0,0\nspine0:3,0.04,0,375000,0\n";
        assert_eq!(load(text, "spine0:3").expect("it is right"), [(0.02, 50.0), (0.04, 100.0)]);
        assert!(load("x\nspine0:3,1\n", "spine0:3").is_err());
    }
}
