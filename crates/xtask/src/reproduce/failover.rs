//! Figure 5.16: goodput of a TCP flow through the NAT while its switch fails and returns.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Settings;
use super::app_lab::LabCommand;
use super::application::Application;
use super::figure::{Cell, Chart, FigureClock, PaperFigure};

/// Interval of `flows.csv`.
const STEP_MS: u64 = 10;
/// Interval of the figure.
const SHOWN_MS: u64 = 100;

const END_MS: u64 = 10_000;
/// The first moment of the failure.
const FAIL_MS: u64 = 2_000;
/// The switch runs again.
const RESTART_MS: u64 = 6_000;
/// Packets use it again.
const RETURN_MS: u64 = 6_500;
/// Time until the links to the failed switch are down, so that the edge switches use their backup ports.
const DETECTION_MS: u64 = 10;

/// Files with the entries of `examples/nat`.
const FILES: [&str; 3] = ["nat.json", "inside.json", "outside.json"];

/// Dynamic ports from which a simulated host begins to count.
const PORTS: std::ops::Range<u32> = 49_152..57_360;

/// Times of the failure, with different remaining leases.
const OFFSETS_MS: [u64; 5] = [0, 100, 200, 300, 400];

/// A run of the experiment.
struct Variant {
    name: &'static str,
    /// The lease; `None` for a program without annotations in a lab without stores.
    lease: Option<&'static str>,
    does_fail: bool,
    paper: &'static str,
}

const VARIANTS: [Variant; 4] = [
    Variant { name: "no failure", lease: Some("1s"), does_fail: false, paper: "" },
    Variant { name: "plain", lease: None, does_fail: true, paper: "never" },
    Variant { name: "lease 1 s", lease: Some("1s"), does_fail: true, paper: "0.9 and 1.0" },
    Variant { name: "lease 50 ms", lease: Some("50ms"), does_fail: true, paper: "" },
];

/// Returns the topology of `examples/nat` with this lease, or without stores.
fn topology(text: &str, program: &str, lease: Option<&str>) -> String {
    let is_of_stores = |section: &&str| {
        let names = ["a", "b", "c"].map(|name| (format!("[stores.{name}]"), format!("ends = [\"{name}\",")));
        names.iter().any(|(store, link)| section.contains(store) || section.contains(link))
    };
    let kept: Vec<&str> = text.split("\n\n").filter(|section| lease.is_some() || !is_of_stores(section)).collect();
    let text = kept.join("\n\n").replace("program = \"nat.p4\"", &format!("program = \"{program}\""));
    match lease {
        Some(lease) => text.replace("lease = \"50ms\"", &format!("lease = \"{lease}\"")),
        None => text.replace("lease = \"50ms\"\n", ""),
    }
}

/// Returns the scenario with a failure at this time.
fn scenario(variant: &Variant, fail_ms: u64) -> String {
    let mut text = format!(
        "duration = \"{END_MS}ms\"\n\n[[traffic]]\nname = \"upload\"\nkind = \"tcp\"\nfrom = \"client\"\nto = \
         \"server\"\nstart = \"100ms\"\n"
    );
    if variant.lease.is_none() {
        text += "\n[[writes]]\nat = \"1ms\"\nswitch = \"nat1\"\nentries = \"mappings.json\"\n";
    }
    if variant.does_fail {
        text += &format!("\n[[faults]]\nat = \"{fail_ms}ms\"\ncrash = \"nat1\"\n");
        text += &format!("\n[[faults]]\nat = \"{RESTART_MS}ms\"\nrestart = \"nat1\"\n");
        for (at, key) in [(fail_ms + DETECTION_MS, "down"), (RETURN_MS, "up")] {
            for edge in ["inside", "outside"] {
                text += &format!("\n[[faults]]\nat = \"{at}ms\"\n{key} = [\"nat1\", \"{edge}\"]\n");
            }
        }
    }
    text
}

/// Returns mappings for the first connections of the client, which a controller would make at the switch.
fn mappings() -> Value {
    let entries = PORTS.flat_map(|port| {
        [
            json!({
                "table": "NatIngress.outbound", "action_name": "NatIngress.translate_source",
                "match": { "hdr.ipv4.protocol": 6, "hdr.ipv4.src": "10.0.0.1", "meta.src_port": port },
                "action_params": { "port": port },
            }),
            json!({
                "table": "NatIngress.inbound", "action_name": "NatIngress.translate_destination",
                "match": { "meta.dst_port": port },
                "action_params": { "protocol": 6, "address": "10.0.0.1", "port": port },
            }),
        ]
    });
    json!({ "table_entries": entries.collect::<Vec<_>>() })
}

/// Simulates a variant. Returns the bytes that arrived in each interval of [`STEP_MS`].
fn simulate(command: &LabCommand, variant: &Variant, fail_ms: u64) -> Result<Vec<u64>> {
    let example = crate::root().join("examples/nat");
    let read = |file: &str| fs::read_to_string(example.join(file)).with_context(|| format!("cannot read {file}"));
    let program = command.program(Application::Nat, variant.lease.is_none())?;
    command.write("failover/lab.toml", &topology(&read("lab.toml")?, &program, variant.lease))?;
    command.write("failover/scenario.toml", &scenario(variant, fail_ms))?;
    command.write("failover/mappings.json", &mappings().to_string())?;
    for file in FILES {
        command.write(&format!("failover/{file}"), &read(file)?)?;
    }
    command.simulate("failover", &format!("{}, failure at {fail_ms} ms", variant.name))?;
    let text = command.read("failover/out/flows.csv")?;
    let mut bytes = vec![0; (END_MS / STEP_MS) as usize];
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let row = cells
            .get(3)
            .zip(cells.get(4))
            .and_then(|(time, bytes)| Some((time.parse::<f64>().ok()?, bytes.parse::<u64>().ok()?)));
        let (time_s, received) = row.with_context(|| format!("`{line}` in flows.csv"))?;
        let at = (time_s * 1e3 / STEP_MS as f64).round() as usize;
        if let Some(sum) = bytes.get_mut(at) {
            *sum += received;
        }
    }
    Ok(bytes)
}

/// Returns the milliseconds from an event until the first interval that carries 90 % of `steady` bytes and begins a
/// second with 90 % in all; `None` if there is none.
fn recovery_ms(bytes: &[u64], event_ms: u64, steady: f64) -> Option<u64> {
    let first = (event_ms / STEP_MS) as usize;
    let second = (1000 / STEP_MS) as usize;
    let is_well = |at: usize| {
        let window = bytes.get(at..at + second)?;
        let sum: u64 = window.iter().sum();
        (bytes[at] as f64 >= 0.9 * steady && sum as f64 >= 0.9 * steady * second as f64).then_some(at)
    };
    let at = (first..bytes.len()).find_map(is_well)?;
    Some((at - first) as u64 * STEP_MS)
}

/// Returns the milliseconds without any byte after an event, until the next one or the end.
fn silence_ms(bytes: &[u64], event_ms: u64, until_ms: u64) -> u64 {
    let range = (event_ms / STEP_MS) as usize..(until_ms / STEP_MS) as usize;
    bytes[range].iter().filter(|bytes| **bytes == 0).count() as u64 * STEP_MS
}

/// Formats the smallest and largest of some times; "never" if one is missing.
fn range(times: &[Option<u64>]) -> Cell {
    match times.iter().copied().collect::<Option<Vec<u64>>>() {
        None => "never".into(),
        Some(times) => match (times.iter().min(), times.iter().max()) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most}").into(),
            (Some(least), _) => Cell::whole(*least),
            _ => Cell::Empty,
        },
    }
}

/// Figure 5.16.
pub fn goodput(command: &LabCommand, _: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for variant in &VARIANTS {
        let offsets = if variant.lease.is_some() && variant.does_fail { &OFFSETS_MS[..] } else { &OFFSETS_MS[..1] };
        let (mut silent, mut failed, mut returned, mut rate) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
        for offset in offsets {
            let fail_ms = FAIL_MS + offset;
            let bytes = simulate(command, variant, fail_ms)?;
            let before = &bytes[(1000 / STEP_MS) as usize..(FAIL_MS / STEP_MS) as usize];
            let steady = before.iter().sum::<u64>() as f64 / before.len() as f64;
            rate = steady * 8.0 / STEP_MS as f64 / 1e3;
            if variant.does_fail {
                silent.push(Some(silence_ms(&bytes, fail_ms, RETURN_MS)));
                failed.push(recovery_ms(&bytes, fail_ms, steady));
                returned.push(recovery_ms(&bytes, RETURN_MS, steady));
            }
            if *offset > 0 {
                continue;
            }
            let shown = bytes.chunks((SHOWN_MS / STEP_MS) as usize).enumerate();
            let point = |(at, chunk): (usize, &[u64])| {
                let mbps = chunk.iter().sum::<u64>() as f64 * 8.0 / SHOWN_MS as f64 / 1e3;
                ((at as u64 * SHOWN_MS) as f64 / 1e3, mbps)
            };
            lines.push((variant.name.to_owned(), shown.map(point).collect()));
        }
        rows.push(vec![
            variant.name.into(),
            variant.paper.into(),
            Cell::Number(rate, 1),
            range(&silent),
            range(&failed),
            range(&returned),
        ]);
    }
    let moments = OFFSETS_MS.map(|offset| format!("{:.1}", (FAIL_MS + offset) as f64 / 1e3)).join(", ");
    Ok(PaperFigure {
        name: "5.16",
        title: "A TCP flow while its switch fails and returns",
        clock: FigureClock::Simulated,
        columns: vec![
            "NAT",
            "paper, s",
            "before, Mbit/s",
            "silent after the failure, ms",
            "90 % again, ms",
            "90 % again after the return, ms",
        ],
        rows,
        notes: vec![format!(
            "`examples/nat` (links of 100 Mbit/s and 20 us, chain of 3), one TCP flow (CUBIC) from inside. The switch \
             fails after {moments} s, in a run each; {DETECTION_MS} ms later the edge switches use the other one. It runs \
             again after {} s, and is used again after {} s. \"90 % again\": the first 10 ms with 90 % of the rate \
             before, at the beginning of a second with as much. Plain: a controller made the mappings at the first \
             switch, and nobody makes them again.",
            RESTART_MS / 1000,
            RETURN_MS as f64 / 1e3
        )],
        chart: Chart::Lines { x: "time, s", y: "goodput, Mbit/s", lines },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_the_beginning_of_a_good_second() {
        let mut bytes = vec![100; 600];
        bytes[200..260].fill(0);
        bytes[230] = 100;
        assert_eq!(recovery_ms(&bytes, 2000, 100.0), Some(600));
        assert_eq!(silence_ms(&bytes, 2000, 6000), 590);
        bytes[200..].fill(0);
        assert_eq!(recovery_ms(&bytes, 2000, 100.0), None);
    }

    #[test]
    fn a_range_of_times_needs_all_of_them() {
        assert_eq!(range(&[Some(3), Some(1), Some(2)]), "1 to 3".into());
        assert_eq!(range(&[Some(3), Some(3)]), Cell::whole(3));
        assert_eq!(range(&[Some(3), None]), "never".into());
        assert_eq!(range(&[]), Cell::Empty);
    }

    #[test]
    fn the_files_of_the_example_are_there() {
        let example = crate::root().join("examples/nat");
        for file in FILES.iter().chain(&["lab.toml", "nat.p4"]) {
            assert!(example.join(file).is_file(), "examples/nat lacks {file}");
        }
    }

    #[test]
    fn the_example_runs_with_another_lease_or_without_stores() {
        let text = fs::read_to_string(crate::root().join("examples/nat/lab.toml")).expect("the example is there");
        let second = topology(&text, "x.p4", Some("1s"));
        assert!(second.contains("lease = \"1s\"") && second.contains("[stores.a]") && second.contains("\"x.p4\""));
        let plain = topology(&text, "x.p4", None);
        for part in ["lease", "stores", "[\"a\"", "[\"b\"", "[\"c\""] {
            assert!(!plain.contains(part), "{plain} has {part}");
        }
        assert!(plain.contains("ends = [\"client\", \"inside:1\"]"));
    }
}
