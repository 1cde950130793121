//! Figure 1 of Jeyakumar et al. (SIGCOMM 2014): queues that packets report, and bursts that polling misses.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Settings;
use super::app_lab::LabCommand;
use super::figure::{Cell, Chart, FigureClock, PaperFigure};

const LAB: &str = "micro-bursts";

/// Number of packets that make a queue a burst.
const BURST: u32 = 10;

/// Interval of the samples, and of the two kinds of polling.
const SAMPLE_US: u64 = 100;
const POLLS_US: [u64; 2] = [10_000, 1_000_000];

/// Hosts of each switch of the example; the port after theirs leads to the other switch.
const HOSTS: u64 = 3;

/// The name of a queue: a port of a switch, such as `s1:4`.
type QueueName = String;

/// Returns the scenario of the example for a longer time, with samples of the queues.
fn scenario(text: &str) -> String {
    let text = text.replace("duration = \"2s\"", "duration = \"5s\"").replace("stop = \"1900ms\"", "stop = \"4900ms\"");
    text.replace("sample = \"10ms\"", &format!("sample = \"{SAMPLE_US}us\""))
}

/// Returns the depths that packets reported, in ascending order, by queue.
fn reports(results: &Value) -> BTreeMap<QueueName, Vec<u32>> {
    let mut reports = BTreeMap::<QueueName, Vec<u32>>::new();
    let packets = results["traffic"][0]["minion"]["packets"].as_array().into_iter().flatten();
    for hop in packets.flat_map(|packet| packet["hops"].as_array().into_iter().flatten()) {
        let words = [0, 1, 2].map(|word| hop[word].as_u64().unwrap_or_default());
        reports.entry(format!("s{}:{}", words[0], words[1])).or_default().push(words[2] as u32);
    }
    reports.values_mut().for_each(|depths| depths.sort_unstable());
    reports
}

/// Returns the depths of each queue at all samples, from `queues.csv`.
fn samples(text: &str) -> Result<BTreeMap<QueueName, Vec<u32>>> {
    let mut samples = BTreeMap::<QueueName, Vec<u32>>::new();
    for line in text.lines().skip(1) {
        let mut columns = line.split(',');
        let (Some(from), Some(_), Some(waiting)) = (columns.next(), columns.next(), columns.next()) else {
            anyhow::bail!("queues.csv has the line `{line}`");
        };
        samples.entry(from.to_owned()).or_default().push(waiting.parse()?);
    }
    Ok(samples)
}

/// Returns the bursts in a series of depths, each with its first sample and the first one after it.
fn bursts(depths: &[u32]) -> Vec<(usize, usize)> {
    let mut bursts = Vec::new();
    let mut start = None;
    for (at, depth) in depths.iter().copied().chain([0]).enumerate() {
        match start {
            None if depth >= BURST => start = Some(at),
            Some(from) if depth < BURST => {
                bursts.push((from, at));
                start = None;
            }
            _ => {}
        }
    }
    bursts
}

/// Returns the number of bursts in which no sample is one of each `every`.
fn missed(bursts: &[(usize, usize)], every: usize) -> usize {
    bursts.iter().filter(|(from, to)| from.next_multiple_of(every) >= *to).count()
}

/// Figure 1: the depths of the queues to the hosts and between the switches.
pub fn queues(command: &LabCommand, _: &Settings) -> Result<PaperFigure> {
    let example = crate::root().join("examples").join(LAB);
    let read = |name: &str| {
        let path = example.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    for name in ["lab.toml", "burst.tpp"] {
        command.write(&format!("{LAB}/{name}"), &read(name)?)?;
    }
    command.write(&format!("{LAB}/scenario.toml"), &scenario(&read("scenario.toml")?))?;
    let results = command.simulate(LAB, "5 s of flows of 10 kB")?;
    let samples = samples(&command.read(&format!("{LAB}/out/queues.csv"))?)?;
    let reports = reports(&results);
    ensure!(!reports.is_empty(), "no packet reported a queue");
    Ok(figure(&reports, &samples))
}

fn figure(reports: &BTreeMap<QueueName, Vec<u32>>, samples: &BTreeMap<QueueName, Vec<u32>>) -> PaperFigure {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let (mut all, mut all_missed) = (0, [0; 2]);
    for (name, depths) in reports {
        let count = depths.len();
        let empty = depths.partition_point(|depth| *depth == 0) as f64 / count as f64 * 100.0;
        let sampled = samples.get(name).map_or(&[][..], Vec::as_slice);
        let bursts = bursts(sampled);
        let missed = POLLS_US.map(|poll| missed(&bursts, (poll / SAMPLE_US) as usize));
        all += bursts.len();
        all_missed.iter_mut().zip(missed).for_each(|(sum, missed)| *sum += missed);
        rows.push(vec![
            name.clone().into(),
            Cell::whole(count as i64),
            Cell::Number(empty, 1),
            Cell::whole(depths[count * 99 / 100]),
            Cell::whole(depths[count - 1]),
            Cell::whole(bursts.len() as i64),
            share(missed[0], bursts.len()),
            share(missed[1], bursts.len()),
        ]);
        lines.push((name.clone(), cumulative(depths)));
    }
    rows.push(vec![
        "all".into(),
        Cell::whole(reports.values().map(Vec::len).sum::<usize>() as i64),
        Cell::Empty,
        Cell::Empty,
        Cell::Empty,
        Cell::whole(all as i64),
        share(all_missed[0], all),
        share(all_missed[1], all),
    ]);
    PaperFigure {
        name: "tpp-1",
        title: "Queues that packets report",
        clock: FigureClock::Simulated,
        columns: vec![
            "queue",
            "packets",
            "found it empty, %",
            "depth, p99",
            "deepest",
            "bursts",
            "missed by polling at 10 ms, %",
            "at 1 s, %",
        ],
        rows,
        notes: vec![format!(
            "`examples/micro-bursts` for 5 s; s1:1 to s1:{HOSTS} and s2:1 to s2:{HOSTS} lead to hosts, s1:{0} and s2:{0} \
             to the other switch. A burst is the time in which at least {BURST} packets wait, in samples each {SAMPLE_US} \
             us; polling misses it if none of its polls falls into it.",
            HOSTS + 1
        )],
        chart: Chart::Lines { x: "packets that wait", y: "share of arrivals", lines },
    }
}

/// Returns a share in percent.
fn share(part: usize, whole: usize) -> Cell {
    if whole == 0 { Cell::Empty } else { Cell::Number(part as f64 / whole as f64 * 100.0, 1) }
}

/// Returns the share of depths that do not exceed each depth. They are in ascending order.
fn cumulative(depths: &[u32]) -> Vec<(f64, f64)> {
    let most = depths.last().copied().unwrap_or(0);
    let share = |depth: u32| depths.partition_point(|other| *other <= depth) as f64 / depths.len().max(1) as f64;
    (0..=most).map(|depth| (depth.into(), share(depth))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_end_and_polls_fall_into_them_or_not() {
        let depths = [0, 12, 10, 9, 3, 11, 0, 10];
        let found = bursts(&depths);
        assert_eq!(found, [(1, 3), (5, 6), (7, 8)]);
        assert_eq!([missed(&found, 1), missed(&found, 2), missed(&found, 7)], [0, 2, 2]);
    }

    #[test]
    fn reports_and_samples_are_read_by_queue() {
        let hops = serde_json::json!([[1, 4, 7], [2, 1, 0]]);
        let results = serde_json::json!({ "traffic": [{ "minion": { "packets": [{ "hops": hops }] } }] });
        assert_eq!(reports(&results), BTreeMap::from([("s1:4".to_owned(), vec![7]), ("s2:1".to_owned(), vec![0])]));
        let text = "from,time_s,waiting,carried_bytes,queue_full\ns1:4,0,3,0,0\nh1,0,1,0,0\ns1:4,0.0001,5,0,0\n";
        assert_eq!(samples(text).expect("it is right")["s1:4"], [3, 5]);
        assert_eq!(cumulative(&[0, 0, 2, 2]), [(0.0, 0.5), (1.0, 0.5), (2.0, 1.0)]);
    }
}
