//! Renders the results of a simulation as text and as JSON.

use std::time::Duration;

use lab::Topology;
use lab::scenario::{FlowResult, Results};
use serde_json::{Value, json};
use switch::DropReason;

use super::network::Network;
use super::{int, kernel_plan, link_counts, minions, windows};
use crate::output::{aligned, duration, grouped, three_digits};
use crate::tiny_counts::TinyCounts;

/// Maximum number of links that are listed.
const LINKS: usize = 10;

/// Formats the results as text.
pub fn text(network: &Network, results: &Results, seed: u64, took: Duration) -> String {
    let (describe, end, digest) = (network.describe(), duration(results.end.as_ns()), results.digest);
    let mut text = format!("{describe}; {end} simulated, seed {seed}, run {digest:016x}\n\n");
    text.push_str(&traffic(&results.traffic));
    let silent: Vec<&FlowResult> = results
        .pairs
        .iter()
        .filter(|pair| pair.measured.sent > 0 && pair.delivered() < 1.0 && pair.unit == "echoes")
        .collect();
    if !silent.is_empty() {
        text.push_str("\nUnanswered\n");
        for pair in silent.iter().take(LINKS) {
            let missing = pair.measured.sent - pair.measured.received;
            text.push_str(&format!("  {} -> {}: {missing} of {}\n", pair.from, pair.to, pair.measured.sent));
        }
        if silent.len() > LINKS {
            text.push_str(&format!("  and {} more pairs\n", silent.len() - LINKS));
        }
    }
    text.push_str(&values(&results.traffic));
    text.push_str(&minions::text(&network.topology, results));
    text.push_str(&int::text(results));
    text.push_str(&simulated_counts(&network.topology, results));
    text.push_str(&link_counts::text(&network.topology, results));
    text.push_str(&minions::flowlets(&network.topology, results));
    text.push_str(&windows::text(results));
    text.push_str(&links(&network.topology, results));
    if results.totals.lost_on_arrival > 0 {
        let lost = grouped(results.totals.lost_on_arrival);
        text.push_str(&format!(
            "\n{lost} frames were lost on arrival: at a node that was down, on a link that went down, or at a slow \
             host with a full queue\n"
        ));
    }
    let seconds = took.as_secs_f64().max(1e-9);
    let totals = results.totals;
    text.push_str(&format!(
        "\n{} switch hops and {} deliveries in {:.2} s: {} hops/s\n",
        grouped(totals.switch_hops),
        grouped(totals.delivered),
        seconds,
        grouped((totals.switch_hops as f64 / seconds) as u64),
    ));
    text
}

/// Formats the results of each traffic.
pub fn traffic(traffic: &[FlowResult]) -> String {
    if traffic.is_empty() {
        return "no traffic\n".to_owned();
    }
    let heads = ["traffic", "from", "to", "sent", "arrived", "", "rate", "p50", "p99", "max", "marked"];
    let mut rows = vec![heads.map(str::to_owned)];
    // Without ECN there are no marks to report.
    if traffic.iter().all(|flow| flow.marks.capable == 0) {
        rows[0][10].clear();
    }
    for flow in traffic {
        let measured = &flow.measured;
        let latency = |share| {
            if measured.latency.is_empty() {
                String::new()
            } else {
                duration(measured.latency.value_at_quantile(share))
            }
        };
        let rate = measured.rate_bps();
        // Flows without end are counted neither as sent nor as received.
        let count =
            |count: u64| if flow.unit == "flows" && measured.sent == 0 { String::new() } else { grouped(count) };
        rows.push([
            flow.name.clone(),
            flow.from.clone(),
            flow.to.clone(),
            count(measured.sent),
            count(measured.received),
            flow.unit.to_owned(),
            if rate > 0.0 { bits(rate) } else { String::new() },
            latency(0.5),
            latency(0.99),
            latency(1.0),
            match flow.marks.capable {
                0 => String::new(),
                capable => format!("{:.1} %", flow.marks.marked as f64 / capable as f64 * 100.0),
            },
        ]);
    }
    aligned(&rows, &[3, 4, 6, 7, 8, 9, 10])
}

/// Formats the values that probes read.
pub fn values(traffic: &[FlowResult]) -> String {
    let mut rows = vec![["values of probes", "", "values", "min", "mean", "max", "last"].map(str::to_owned)];
    for (flow, value) in traffic.iter().flat_map(|flow| flow.values.iter().map(move |value| (flow, value))) {
        let all = || value.points.iter().map(|(_, value)| *value);
        let mean = all().sum::<f64>() / value.points.len() as f64;
        let numbers = [
            all().fold(f64::NAN, f64::min),
            mean,
            all().fold(f64::NAN, f64::max),
            all().next_back().unwrap_or(f64::NAN),
        ];
        let [least, mean, most, last] = numbers.map(|number| {
            if number.is_nan() {
                String::new()
            } else if number.abs() >= 1000.0 {
                let sign = if number < 0.0 { "-" } else { "" };
                format!("{sign}{}", grouped(number.abs().round() as u64))
            } else {
                three_digits(number)
            }
        });
        let count = grouped(value.points.len() as u64);
        rows.push([flow.name.clone(), value.name.clone(), count, least, mean, most, last]);
    }
    if rows.len() > 1 { format!("\n{}", aligned(&rows, &[2, 3, 4, 5, 6])) } else { String::new() }
}

/// Lists the links that dropped the most frames.
fn links(topology: &Topology, results: &Results) -> String {
    let mut worst: Vec<_> = results.links.iter().filter(|link| link.stats.dropped() > 0).collect();
    worst.sort_by_key(|link| std::cmp::Reverse(link.stats.dropped()));
    if worst.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["link", "offered", "queue full", "lost", "down", "too large", "longest queue"].map(str::to_owned)];
    for link in worst.iter().take(LINKS) {
        let stats = &link.stats;
        rows.push([
            format!("{} -> {}", topology.end_name(link.from), topology.end_name(link.to)),
            grouped(stats.offered),
            grouped(stats.queue_full),
            grouped(stats.lost),
            grouped(stats.link_down),
            grouped(stats.too_large),
            grouped(stats.longest_queue),
        ]);
    }
    let more = worst.len().saturating_sub(LINKS);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("\nDropped frames by link\n{}{more}", aligned(&rows, &[1, 2, 3, 4, 5, 6]))
}

/// Formats the state of a network that is up.
pub fn status(name: &str, status: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let mut rows = vec![["switch", "", "port", "to", "", "received", "sent", "lost on the link"].map(str::to_owned)];
    let (mut drops, mut notes, mut programs) = (String::new(), String::new(), String::new());
    for switch in &list(&status["switches"]) {
        let state = if switch["failed"] == true { "failed" } else { "up" };
        let mut about = Vec::new();
        about.extend(switch["pid"].as_u64().map(|pid| format!("process {pid}")));
        about.extend(switch["p4runtime"].as_object().map(|served| {
            format!("P4Runtime on {}, device {}", text(&served["address"]), number(&served["device_id"]))
        }));
        about.extend(switch["why"].as_str().map(str::to_owned));
        if !about.is_empty() {
            notes.push_str(&format!("{}  {}\n", text(&switch["name"]), about.join(", ")));
        }
        if let Some(state) = kernel_state(switch) {
            notes.push_str(&format!("{}  {state}\n", text(&switch["name"])));
        }
        for (at, port) in list(&switch["ports"]).iter().enumerate() {
            let first = at == 0;
            let lost = number(&port["dropped"]) + number(&port["from_host_dropped"]);
            rows.push([
                if first { text(&switch["name"]) } else { String::new() },
                if first { state.to_owned() } else { String::new() },
                port["port"].to_string(),
                text(&port["to"]),
                if port["up"] == true { "up".to_owned() } else { "down".to_owned() },
                grouped(number(&port["received"])),
                grouped(number(&port["sent"])),
                grouped(lost),
            ]);
            let missed = number(&port["lost_while_failed"]);
            if missed > 0 {
                let (name, number) = (text(&switch["name"]), &port["port"]);
                let missed = grouped(missed);
                drops.push_str(&format!("{name}  {missed} lost at port {number} while the switch was down\n"));
            }
            if let Some(failure) = port["failure"].as_str() {
                drops.push_str(&format!("{}:{} cannot be used: {failure}\n", text(&switch["name"]), port["port"]));
            }
        }
        let crowded = number(&switch["kernel"]["crowded"]);
        if crowded > 0 {
            let (name, crowded) = (text(&switch["name"]), grouped(crowded));
            drops.push_str(&format!(
                "{name}  {crowded} were dropped on receive: the switch was behind with their flows\n"
            ));
        }
        for line in drop_lines(&switch["counters"]) {
            drops.push_str(&format!("{}  {line}\n", text(&switch["name"])));
        }
        for line in tiny_counts(switch).lines() {
            programs.push_str(&format!("{}  {line}\n", text(&switch["name"])));
        }
    }
    let stores = stores(&list(&status["stores"]));
    let memory = memory_servers(&list(&status["memory"]));
    let hosts: Vec<String> = list(&status["hosts"])
        .iter()
        .map(|host| format!("{}  {}  at {}\n", text(&host["name"]), text(&host["address"]), text(&host["at"])))
        .collect();
    let up = status["up_s"].as_f64().unwrap_or(0.0);
    let mut all = format!("lab {name}, up for {}\n\n{}", duration((up * 1e9) as u64), aligned(&rows, &[2, 5, 6, 7]));
    let shims = super::shims::status(&list(&status["shims"]));
    for part in [stores, memory, shims, notes, drops, programs].iter().filter(|part| !part.is_empty()) {
        all.push_str(&format!("\n{part}"));
    }
    format!("{all}\n{}", hosts.concat())
}

/// Returns the notes of a network that is up about programs in the kernel. Switches with the same note share it.
pub fn kernel_notes(status: &Value) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for switch in status["switches"].as_array().into_iter().flatten() {
        let name = switch["name"].as_str().unwrap_or_default();
        for note in switch["kernel"]["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, names)) => names.push(name),
                None => notes.push((note.to_owned(), vec![name])),
            }
        }
    }
    notes.into_iter().map(|(note, names)| format!("{}: {note}", names.join(", "))).collect()
}

/// Formats the state of a switch with kernel ports: the shares of the packets, or why no packet is processed in the
/// kernel.
fn kernel_state(switch: &Value) -> Option<String> {
    let kernel = &switch["kernel"];
    let ports = kernel["ports"].as_array()?;
    // JSON has the counts of a switch that crashed.
    if switch["failed"] == true {
        return None;
    }
    if kernel["is_active"] != true {
        let reason = kernel["reason"].as_str().unwrap_or("no packet is processed in the kernel at present");
        return Some(reason.to_owned());
    }
    let ports: Vec<u32> = ports.iter().filter_map(|port| port.as_u64()?.try_into().ok()).collect();
    let number = |key: &str| kernel[key].as_u64().unwrap_or(0);
    let share = crate::kernel::share_text(number("packets"), number("switch_packets"));
    Some(format!("kernel {}: {share}", kernel_plan::numbers(&ports)))
}

/// Formats the stores of a live network and their operator.
fn stores(stores: &[Value]) -> String {
    if stores.is_empty() {
        return String::new();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut rows = vec![["store", "", "role", "rows", "process", "address", "at", ""].map(str::to_owned)];
    for store in stores {
        let state = process_state(store);
        let number = |value: &Value| value.as_u64().map_or_else(String::new, grouped);
        let pid = store["pid"].as_u64().map_or_else(String::new, |pid| pid.to_string());
        rows.push([
            text(&store["name"]),
            state.to_owned(),
            text(&store["role"]),
            number(&store["rows"]),
            pid,
            text(&store["address"]),
            text(&store["at"]),
            text(&store["why"]),
        ]);
    }
    aligned(&rows, &[3, 4])
}

/// Formats the memory servers of a live network.
fn memory_servers(servers: &[Value]) -> String {
    if servers.is_empty() {
        return String::new();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut rows = vec![["memory server", "", "lends", "process", "address", "at", ""].map(str::to_owned)];
    for server in servers {
        let pid = server["pid"].as_u64().map_or_else(String::new, |pid| pid.to_string());
        let (state, why) = (process_state(server).to_owned(), text(&server["why"]));
        let [name, memory, address, at] = ["name", "memory", "address", "at"].map(|key| text(&server[key]));
        rows.push([name, state, memory, pid, address, at, why]);
    }
    aligned(&rows, &[2, 3])
}

/// Returns the state of a store, an operator or a memory server.
pub fn process_state(process: &Value) -> &'static str {
    match (process["failed"] == true, process["suspended"] == true) {
        (true, _) => "failed",
        (false, true) => "suspended",
        (false, false) => "up",
    }
}

/// Formats the programs and the packets with INT of a simulation: all, and those of switches that did not execute or
/// fill some.
fn simulated_counts(topology: &Topology, results: &Results) -> String {
    let counters =
        |counters: &[(String, u64)]| TinyCounts::of(counters.iter().map(|(name, count)| (name.as_str(), *count)));
    let mut text: String =
        counters(&results.tiny_counters.concat()).lines().iter().map(|line| format!("{line}\n")).collect();
    let lossy = topology.switches.iter().zip(&results.tiny_counters).filter(|(_, of)| counters(of).has_losses());
    let lossy: Vec<_> = lossy.collect();
    for (switch, of) in lossy.iter().take(LINKS) {
        counters(of).lines().iter().for_each(|line| text.push_str(&format!("  {}: {line}\n", switch.name)));
    }
    if lossy.len() > LINKS {
        text.push_str(&format!("  and {} more switches\n", lossy.len() - LINKS));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Returns the counts of each switch of a simulation as JSON.
fn simulated_json(topology: &Topology, results: &Results) -> Value {
    let switch = |(switch, counters): (&lab::TopologySwitch, &Vec<(String, u64)>)| {
        let counts = TinyCounts::of(counters.iter().map(|(name, count)| (name.as_str(), *count)));
        json!({ "name": switch.name, "tiny_programs": counts.json(), "int": counts.int_json() })
    };
    topology.switches.iter().zip(&results.tiny_counters).map(switch).collect()
}

/// Returns the counts of tiny packet programs of a switch.
fn tiny_counts(switch: &Value) -> TinyCounts {
    let counters = switch["counters"].as_object().into_iter().flatten();
    TinyCounts::of(counters.map(|(name, count)| (name.as_str(), count.as_u64().unwrap_or(0))))
}

/// Adds the counts of tiny packet programs to each switch of a status.
pub fn add_tiny_counts(status: &mut Value) {
    for switch in status["switches"].as_array_mut().into_iter().flatten() {
        let counts = tiny_counts(switch);
        (switch["tiny_programs"], switch["int"]) = (counts.json(), counts.int_json());
    }
}

/// Describes the drops of a switch by reason and place, as the summary of `triplane run` does.
fn drop_lines(counters: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let mut lines = Vec::new();
    for reason in DropReason::ALL {
        let (name, sentence) = (format!("drop.{}", reason.name()), reason.sentence());
        let mut left = number(&counters[&name]);
        let places = format!("{name}.at.");
        for (counter, value) in counters.as_object().into_iter().flatten() {
            // Frames that no line of the program dropped have no place.
            let Some(place) = counter.strip_prefix(&places).filter(|place| *place != "unknown") else { continue };
            left = left.saturating_sub(number(value));
            lines.push(format!("{} dropped {sentence} at {place}", grouped(number(value))));
        }
        if left > 0 {
            lines.push(format!("{} dropped {sentence}", grouped(left)));
        }
    }
    lines
}

/// Formats a rate: `12.3 Mbit/s`.
pub fn bits(bps: f64) -> String {
    let (value, unit) = match bps {
        ..1e3 => (bps, "bit/s"),
        ..1e6 => (bps / 1e3, "kbit/s"),
        ..1e9 => (bps / 1e6, "Mbit/s"),
        _ => (bps / 1e9, "Gbit/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Returns the results as JSON, with times in nanoseconds and rates in bit/s.
pub fn json(topology: &Topology, results: &Results, seed: u64) -> Value {
    let flow = |flow: &FlowResult| {
        let measured = &flow.measured;
        let latency = if measured.latency.is_empty() {
            Value::Null
        } else {
            json!({
                "min": measured.latency.min(), "p50": measured.latency.value_at_quantile(0.5),
                "p99": measured.latency.value_at_quantile(0.99), "max": measured.latency.max(),
                "mean": measured.latency.mean(),
            })
        };
        let mut value = json!({
            "traffic": flow.name, "from": flow.from, "to": flow.to, "unit": flow.unit, "sent": measured.sent,
            "received": measured.received, "bytes": measured.bytes, "rate_bps": measured.rate_bps(),
            "latency_ns": latency,
        });
        if let Some(hpcc) = &flow.hpcc {
            value["hpcc"] = windows::json(hpcc);
        }
        value
    };
    let traffic = |result: &FlowResult| {
        let mut value = flow(result);
        let marks = result.marks;
        if marks.capable > 0 {
            value["ecn"] = json!({ "capable": marks.capable, "marked": marks.marked });
        }
        if !result.values.is_empty() {
            let read = result.values.iter().map(|values| {
                let points = values.points.iter().map(|(at, value)| json!([at.as_ns(), value]));
                (values.name.clone(), points.collect::<Value>())
            });
            value["values"] = read.collect();
        }
        if let Some(found) = &result.int {
            value["int"] = int::json(topology, found);
        }
        if let Some(minion) = &result.minion {
            value["minion"] = minions::json(topology, minion);
        }
        if let Some(rcp) = &result.rcp {
            value["rcp"] = minions::rcp_json(rcp);
        }
        if let Some(conga) = &result.conga {
            value["conga"] = minions::conga_json(conga);
        }
        value
    };
    let links: Vec<Value> = results
        .links
        .iter()
        .map(|link| {
            let stats = &link.stats;
            json!({
                "from": topology.end_name(link.from), "to": topology.end_name(link.to), "offered": stats.offered,
                "carried": stats.carried, "carried_bytes": stats.carried_bytes, "queue_full": stats.queue_full,
                "lost": stats.lost, "link_down": stats.link_down, "too_large": stats.too_large,
                "longest_queue": stats.longest_queue,
            })
        })
        .collect();
    let refused = results.refused.iter();
    let refused =
        refused.map(|(at, number, why)| json!({ "at_ns": at.as_ns(), "write": number, "why": why.to_string() }));
    let refused: Vec<Value> = refused.collect();
    let unmet: Vec<&str> = results.unmet.iter().map(|unmet| unmet.message.as_str()).collect();
    let mut value = json!({
        "seed": seed, "run": format!("{:016x}", results.digest), "end_ns": results.end.as_ns(),
        "traffic": results.traffic.iter().map(traffic).collect::<Vec<_>>(),
        "pairs": results.pairs.iter().map(flow).collect::<Vec<_>>(),
        "links": links, "switches": simulated_json(topology, results),
        "totals": {
            "switch_hops": results.totals.switch_hops, "delivered": results.totals.delivered,
            "sent": results.totals.sent, "dropped": results.totals.dropped,
            "lost_on_arrival": results.totals.lost_on_arrival, "events": results.totals.events,
        },
        "refused_writes": refused, "unmet": unmet,
    });
    if let Some(index) = windows::fairness(&results.pairs) {
        value["hpcc"] = json!({ "jain": index });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_described_by_reason_and_place() {
        let counters = json!({
            "drop.ingress.program": 12, "drop.ingress.program.at.router.p4:88:9": 10, "drop.tx.port-down": 1_500,
            "drop.tx.no-such-port": 0, "port.1.rx.packets": 7,
        });
        let expected = [
            "10 dropped in ingress by the program at router.p4:88:9",
            "2 dropped in ingress by the program",
            "1,500 dropped on sending: the port is down",
        ];
        assert_eq!(drop_lines(&counters), expected);
    }
}
