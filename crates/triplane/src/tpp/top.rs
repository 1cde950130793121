//! Shows what the programs in the packets of a live lab's hosts see, port by port.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use anyhow::anyhow;
use lab_live::{RunDirectory, client};
use serde_json::{Value, json};

use super::args::TopArgs;
use super::shim_reports;
use crate::output::{Failure, Output, aligned, counted, grouped, three_digits};
use crate::signals;

/// Clears a terminal, and moves the cursor to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Lets a terminal cut lines that are too long for it, or wrap them (DECAWM).
const CUT: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// Shows tables until Ctrl-C.
pub fn run(args: &TopArgs, output: &Output) -> Result<(), Failure> {
    let lab = RunDirectory::choose(args.lab.as_deref())?;
    let stop = signals::stop_on_signals()?;
    let clears = std::io::stdout().is_terminal();
    client::watch(&lab, (Duration::from_secs_f64(args.interval), args.count), &stop, |status| {
        let Some(top) = Top::of(&status) else {
            return Err(Failure::Environment(anyhow!(
                "no host of lab {} inserts programs: write tpp = \"read\" and shim = {{ insert = [\"FILE to PREFIX\"] }} \
                 below [defaults] of its file",
                lab.name
            )));
        };
        if args.json {
            return output.print(&format!("{}\n", top.json()));
        }
        let text = top.text(&lab.name, clears);
        output.print(&if clears { format!("{CLEAR}{text}") } else { format!("{text}\n") })
    })
}

/// A word of the packets that left by a port.
#[derive(Debug, Default, PartialEq)]
struct TopWord {
    name: String,
    count: u64,
    sum: u64,
    max: u64,
}

/// The packets that left by a port.
#[derive(Debug, Default, PartialEq)]
struct TopPort {
    programs_per_s: f64,
    words: Vec<TopWord>,
}

/// Sums of the last reports of all shims.
#[derive(Debug, Default)]
struct Top {
    shims: usize,
    programs_per_s: f64,
    /// Number of programs in the last periods that name no switch.
    unplaced: u64,
    /// Number of packets that had no room, since the start.
    too_long: u64,
    /// By number of the switch and port.
    ports: BTreeMap<(u64, Option<u64>), TopPort>,
    /// Names of switches, and what is at the other end of their ports.
    names: BTreeMap<u64, (String, BTreeMap<u64, String>)>,
    /// Shims that do not report, with the reasons.
    silent: Vec<String>,
}

impl Top {
    /// Adds up the reports in the state of a lab; `None` if it has no shims.
    fn of(status: &Value) -> Option<Top> {
        let shims = status["shims"].as_array()?;
        let mut top = Top { shims: shims.len(), names: names(status), ..Top::default() };
        for shim in shims {
            let (host, report) = (text(&shim["host"]), &shim["report"]);
            top.too_long += number(&report["too_long"]);
            if shim_reports::is_silent(shim) {
                let why = shim_reports::silence(shim).unwrap_or_default();
                top.silent.push(format!("{host}: {why}"));
                continue;
            }
            let period = &report["period"];
            let Some(length) = period["length_s"].as_f64().filter(|length| *length > 0.0) else { continue };
            top.programs_per_s += number(&period["programs"]) as f64 / length;
            top.unplaced += number(&period["unplaced"]);
            for port in period["ports"].as_array().into_iter().flatten() {
                top.add(port, length);
            }
        }
        Some(top)
    }

    /// Adds a port of a report.
    fn add(&mut self, port: &Value, length: f64) {
        let at = self.ports.entry((number(&port["switch"]), port["port"].as_u64())).or_default();
        at.programs_per_s += number(&port["programs"]) as f64 / length;
        for word in port["words"].as_array().into_iter().flatten() {
            let name = text(&word["name"]);
            let known = at.words.iter().position(|known| known.name == name).unwrap_or_else(|| {
                at.words.push(TopWord { name, ..TopWord::default() });
                at.words.len() - 1
            });
            let sum = &mut at.words[known];
            (sum.count, sum.sum) = (sum.count + number(&word["count"]), sum.sum + number(&word["sum"]));
            sum.max = sum.max.max(number(&word["max"]));
        }
    }

    /// Returns the name of a switch, and what is at the other end of a port.
    fn names_of(&self, switch: u64, port: Option<u64>) -> (String, String) {
        let Some((name, ends)) = self.names.get(&switch) else { return (switch.to_string(), String::new()) };
        let end = port.and_then(|port| ends.get(&port));
        (name.clone(), end.cloned().unwrap_or_default())
    }

    /// Formats the table and the notes. On a terminal that is narrow, lines of the table are cut, and notes wrapped.
    fn text(&self, lab: &str, is_terminal: bool) -> String {
        let mut rows = vec![["switch", "port", "to", "programs/s", "", "mean", "max"].map(str::to_owned)];
        for ((switch, port), sums) in &self.ports {
            let (name, to) = self.names_of(*switch, *port);
            let first = [
                name,
                port.map_or_else(|| "-".to_owned(), |port| port.to_string()),
                to,
                grouped(sums.programs_per_s.round() as u64),
            ];
            let mut head = first.into_iter().chain(std::iter::repeat(String::new()));
            let mut row = |word: [String; 3]| {
                let [a, b, c, d] = std::array::from_fn(|_| head.next().unwrap_or_default());
                let [name, mean, max] = word;
                rows.push([a, b, c, d, name, mean, max]);
            };
            for word in &sums.words {
                let value = |value: String| if word.count == 0 { "-".to_owned() } else { value };
                let mean = word.sum as f64 / word.count as f64;
                row([word.name.clone(), value(three_digits(mean)), value(grouped(word.max))]);
            }
            if sums.words.is_empty() {
                row(Default::default());
            }
        }
        let rate = grouped(self.programs_per_s.round() as u64);
        let mut text = format!("lab {lab}: {}, {rate} programs/s\n", counted(self.shims, "shim", "shims"));
        if rows.len() > 1 {
            let table = aligned(&rows, &[1, 3, 5, 6]);
            text += &if is_terminal { format!("\n{CUT}{table}{WRAP}") } else { format!("\n{table}") };
        }
        let mut notes = self.silent.iter().map(|shim| format!("shim of {shim}\n")).collect::<String>();
        if self.unplaced > 0 {
            let count = grouped(self.unplaced);
            notes += &format!(
                "{count} programs do not identify a switch: add PUSH [Switch:ID] to them, and set tpp = \"read\" \
                 below [defaults]\n"
            );
        }
        if self.too_long > 0 {
            notes += &format!("{} packets had no room for a program\n", grouped(self.too_long));
        }
        if notes.is_empty() { text } else { format!("{text}\n{notes}") }
    }

    fn json(&self) -> Value {
        let word = |word: &TopWord| {
            let has_values = word.count > 0;
            json!({
                "name": word.name,
                "mean": has_values.then(|| word.sum as f64 / word.count as f64),
                "max": has_values.then_some(word.max),
            })
        };
        let port = |((switch, port), sums): (&(u64, Option<u64>), &TopPort)| {
            let (name, to) = self.names_of(*switch, *port);
            json!({
                "switch": name,
                "id": switch,
                "port": port,
                "to": to,
                "programs_per_s": sums.programs_per_s,
                "words": sums.words.iter().map(word).collect::<Vec<_>>(),
            })
        };
        json!({
            "programs_per_s": self.programs_per_s,
            "ports": self.ports.iter().map(port).collect::<Vec<_>>(),
            "unplaced": self.unplaced,
            "too_long": self.too_long,
            "silent": self.silent,
        })
    }
}

/// Returns the names of the switches and the other ends of their ports, by number. The switches of a lab are numbered
/// in the order of its file, from 1.
fn names(status: &Value) -> BTreeMap<u64, (String, BTreeMap<u64, String>)> {
    let ends = |switch: &Value| {
        let ports = switch["ports"].as_array().into_iter().flatten();
        ports.map(|port| (number(&port["port"]), text(&port["to"]))).collect()
    };
    let switches = status["switches"].as_array().into_iter().flatten();
    (1..).zip(switches.map(|switch| (text(&switch["name"]), ends(switch)))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state of a lab with two switches and two shims. The second one has this age.
    fn status(age_s: Value) -> Value {
        let word = |count: u64, sum: u64, max: u64| json!({ "name": "Queue", "count": count, "sum": sum, "max": max });
        let period = |programs: u64, words: [Value; 2]| {
            let ports = [(1, 2), (2, 1)].iter().zip(words).map(|((switch, port), word)| {
                json!({ "switch": switch, "port": port, "programs": programs, "words": [word] })
            });
            json!({ "length_s": 0.5, "programs": programs, "unplaced": 1, "ports": ports.collect::<Vec<_>>() })
        };
        let shim = |host: &str, age_s: Value, period: Value| {
            let report = json!({ "too_long": 3, "period": period });
            json!({ "host": host, "failed": false, "why": null, "age_s": age_s, "report": report })
        };
        json!({
            "switches": [
                { "name": "left", "ports": [{ "port": 2, "to": "right:2" }] },
                { "name": "right", "ports": [{ "port": 1, "to": "h2" }] },
            ],
            "shims": [
                shim("h1", json!(0.1), period(100, [word(100, 600, 20), word(0, 0, 0)])),
                shim("h2", age_s, period(50, [word(50, 900, 30), word(0, 0, 0)])),
            ],
        })
    }

    #[test]
    fn the_reports_of_all_hosts_are_added_up() {
        let top = Top::of(&status(json!(0.2))).expect("there are shims");
        let json = top.json();
        let queue = json!([{ "name": "Queue", "mean": 10.0, "max": 30 }]);
        assert_eq!((&json["programs_per_s"], &json["unplaced"]), (&json!(300.0), &json!(2)));
        assert_eq!(
            json["ports"][0],
            json!({ "switch": "left", "id": 1, "port": 2, "to": "right:2", "programs_per_s": 300.0, "words": queue })
        );
        let absent = json!([{ "name": "Queue", "mean": null, "max": null }]);
        assert_eq!((&json["ports"][1]["words"], &json["ports"][1]["to"]), (&absent, &json!("h2")));
        let expected = "lab l: 2 shims, 300 programs/s\n\n\
            switch  port  to       programs/s         mean  max\n\
            left       2  right:2         300  Queue  10.0   30\n\
            right      1  h2              300  Queue     -    -\n\n\
            2 programs do not identify a switch: add PUSH [Switch:ID] to them, and set tpp = \"read\" below \
            [defaults]\n\
            6 packets had no room for a program\n";
        assert_eq!(top.text("l", false), expected);
    }

    #[test]
    fn a_terminal_cuts_lines_of_the_table_only() {
        let top = Top::of(&status(Value::Null)).expect("there are shims");
        let text = top.text("l", true);
        let (head, rest) = text.split_once(CUT).expect("it cuts the table");
        let (table, notes) = rest.split_once(WRAP).expect("it wraps notes");
        assert_eq!((head, table.lines().count()), ("lab l: 2 shims, 200 programs/s\n\n", 3));
        assert!(table.starts_with("switch  port") && notes.starts_with("\nshim of h2: "), "{text}");
        assert_eq!(format!("{head}{table}{notes}"), top.text("l", false));
    }

    #[test]
    fn means_have_separated_thousands_as_maxima_have() {
        let sum = json!({ "name": "Link", "count": 2, "sum": 20_000, "max": 12_345 });
        let port = json!({ "switch": 1, "port": 2, "programs": 2, "words": [sum] });
        let period = json!({ "length_s": 0.5, "programs": 2, "unplaced": 0, "ports": [port] });
        let shim = json!({ "host": "h1", "failed": false, "age_s": 0.0, "report": { "period": period } });
        let text = Top::of(&json!({ "shims": [shim] })).expect("there are shims").text("l", false);
        assert!(text.contains("Link  10,000  12,345"), "{text}");
    }

    #[test]
    fn a_shim_that_does_not_report_is_named_and_not_counted() {
        for (age_s, why) in
            [(json!(2.5), "h2: its last report is 2 s old"), (Value::Null, "h2: it has not reported yet")]
        {
            let json = Top::of(&status(age_s)).expect("there are shims").json();
            assert_eq!((&json["programs_per_s"], &json["silent"]), (&json!(200.0), &json!([why])));
            assert_eq!(json["ports"][0]["words"][0]["max"], 20);
        }
        assert!(Top::of(&json!({ "switches": [] })).is_none());
    }
}
