//! Reads the tiny packet programs of a scenario, and renders what they collected.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ::tpp::TinyProgram;
use ::tpp::map::{MemoryMap, Unit};
use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use lab::scenario::{
    CongaResult, MinionResult, ProgramRequests, RcpResult, Results, Scenario, TrafficKind, switch_names,
};
use lab::sim::traffic::{Balancing, ExecutionCounts, link_words};
use lab::{TinyAccess, Topology};
use serde_json::{Value, json};
use wire::tpp::Status;

use super::link_counts;
use super::network::{Network, reason};
use super::report::bits;
use super::tables::{Column, ResultTable};
use crate::load;
use crate::output::{Failure, Output, aligned, grouped, three_digits};
use crate::tpp;

/// Maximum number of paths that are listed.
const PATHS: usize = 20;

/// Programs by their files.
type Programs = BTreeMap<String, TinyProgram>;

/// Reads the tiny packet programs of a scenario, which lie beside its file, by name: those that packets carry, and
/// those of any size that are executed. Diagnostics have been printed when this returns.
pub fn programs(
    file: Option<&Path>,
    (topology, scenario): (&Topology, &Scenario),
    memory: &MemoryMap,
    map: &SourceMap,
    output: &Output,
) -> Result<(Programs, Programs), Failure> {
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let (mut programs, mut large, mut diagnostics) = (Programs::new(), Programs::new(), Diagnostics::new());
    for traffic in &scenario.traffic {
        let mut senders = traffic.pairs.iter().map(|(from, _)| &topology.hosts[*from]);
        if let Some(host) = senders.find(|host| host.lacks_shim && traffic.minion.is_some()) {
            let message = format!("`{}` has no shim, which inserts programs into packets", host.name);
            let help = "remove `shim = false` of the host, or `minion`";
            diagnostics.push(Diagnostic::error("minion", traffic.span, message).help(help));
        }
        if let TrafficKind::Execute(execution) = &traffic.kind {
            let program = large_program(&folder.join(&execution.file), execution, memory, output);
            match program {
                Ok(program) => _ = large.insert(execution.file.clone(), program),
                Err(failure) => diagnostics.push(Diagnostic::error("execute", traffic.span, reason(&failure))),
            }
            continue;
        }
        let Some(name) = traffic.program().filter(|name| !programs.contains_key(*name)) else { continue };
        let program = tpp::program_of(&folder.join(name), memory, output).and_then(|program| {
            // A packet that a switch sends back does not arrive.
            let is_lost = traffic.minion.is_some() && program.repr.is_reflective;
            let message = format!("{name} is reflective: it would send the packets that carry it back");
            let is_done = program.repr.status.contains(Status::DONE);
            let counts = traffic.minion.as_ref().is_some_and(|minion| minion.count.is_some());
            let words = program.words_by_hop(memory);
            let names: Vec<&str> = words.iter().take(1).flatten().map(|(name, _)| name.as_str()).collect();
            match (is_lost, is_done) {
                (true, _) => Err(Failure::Input(message)),
                (_, true) => Err(Failure::Input(format!("{name} is marked as done: no switch would execute it"))),
                _ if counts && link_words(&names).is_none() => Err(Failure::Input(format!(
                    "{name} does not tell links, so nothing can be counted on them: let it PUSH [Switch:ID] and \
                     [PacketMetadata:OutputPort]"
                ))),
                _ => Ok(program),
            }
        });
        match program {
            Ok(program) => _ = programs.insert(name.to_owned(), program),
            Err(failure) => diagnostics.push(Diagnostic::error("minion", traffic.span, reason(&failure))),
        }
    }
    output.diagnostics(map, &diagnostics);
    match diagnostics.error_count() {
        0 => Ok((programs, large)),
        count => Err(Failure::Input(load::mistakes(count))),
    }
}

/// Reads a program of any size that can be executed as asked.
fn large_program(
    path: &Path,
    execution: &ProgramRequests,
    memory: &MemoryMap,
    output: &Output,
) -> Result<TinyProgram, Failure> {
    let mut program = tpp::large_program_of(path, memory, output)?;
    // Words that no switch writes have all bits set.
    program.mark_absent();
    match execution.plans(&program) {
        Ok(_) => Ok(program),
        Err(findings) => {
            let texts = findings.iter().map(|finding| {
                let help = finding.help.as_ref().map_or(String::new(), |help| format!(": {help}"));
                format!("{}{help}", finding.message)
            });
            Err(Failure::Input(texts.collect::<Vec<_>>().join("; ")))
        }
    }
}

/// Returns the map of the switches: with the registers of their P4 programs, if these are the same in all of them.
pub fn memory_of(network: &Network) -> MemoryMap {
    common_map(network.programs())
}

/// Returns the map of switches with these programs.
pub fn common_map<'a>(programs: impl Iterator<Item = &'a ir::Program>) -> MemoryMap {
    let mut maps = programs.map(v1model::memory_map);
    let first = maps.next().unwrap_or_default();
    if maps.all(|map| map.registers() == first.registers()) { first } else { MemoryMap::new() }
}

/// Warns of programs in a network whose switches do not execute them.
pub fn warn_of_idle(topology: &Topology, scenario: &Scenario, output: &Output) {
    let has_programs = scenario.traffic.iter().any(|traffic| {
        traffic.program().is_some()
            || matches!(traffic.kind, TrafficKind::Hpcc { .. })
            || matches!(traffic.kind, TrafficKind::Conga { balancing: Balancing::LeastLoaded { .. }, .. })
    });
    let stores_rates = scenario.traffic.iter().any(|traffic| matches!(traffic.kind, TrafficKind::Rcp { .. }));
    let message = match topology.tpp {
        TinyAccess::Off | TinyAccess::Read if stores_rates => "cannot store the rates of RCP*: add tpp = \"write\"",
        TinyAccess::Off if has_programs => "execute no tiny packet programs: add tpp = \"read\"",
        _ => return,
    };
    output.note(&format!("the switches {message} below [defaults] of the topology"));
}

/// Formats the words that programs collected, by traffic and hop.
pub fn text(topology: &Topology, results: &Results) -> String {
    let mut rows = vec![["words of programs", "hop", "", "programs", "min", "mean", "max"].map(str::to_owned)];
    let mut notes = String::new();
    for (name, minion) in results.minions() {
        let hops = minion.packets.iter().map(|packet| packet.hops.len()).max().unwrap_or(0);
        let map = MemoryMap::new();
        let words =
            minion.words.iter().map(|word| with_unit(word, map.find(word).map_or(Unit::None, |entry| entry.unit)));
        rows.extend(hop_rows(name, &words.collect::<Vec<_>>(), hops, |hop, index| {
            minion.packets.iter().filter_map(|packet| Some(u64::from(*packet.hops.get(hop)?.get(index)?))).collect()
        }));
        if let Some(requests) = &minion.requests {
            let ExecutionCounts { executed, unanswered, too_late, packets } = requests;
            let [executed, unanswered, too_late, packets] =
                [executed, unanswered, too_late, packets].map(|number| grouped(*number));
            notes.push_str(&format!(
                "{name}: {executed} requests executed, {unanswered} unanswered, {too_late} too late; {packets} packets \
                 sent\n"
            ));
        }
        let full = minion.packets.iter().filter(|packet| packet.status.contains(Status::FULL)).count() as u64;
        if full > 0 {
            notes.push_str(&format!(
                "{} packets of {name} passed more switches than their program has memory for: raise `.hops`\n",
                grouped(full)
            ));
        }
        if minion.too_long > 0 {
            notes.push_str(&format!(
                "{} packets of {name} were sent without program: the MTU left no room\n",
                grouped(minion.too_long)
            ));
        }
    }
    let table = if rows.len() > 1 { format!("\n{}", aligned(&rows, &[1, 3, 4, 5, 6])) } else { String::new() };
    table + &paths(topology, results) + &notes
}

/// Returns the name of a value with its unit: `Hop latency, ns`.
pub fn with_unit(name: &str, unit: Unit) -> String {
    match unit {
        Unit::None | Unit::Flags => name.to_owned(),
        unit => format!("{name}, {unit}"),
    }
}

/// Returns a row for each hop and field of some traffic: number, minimum, mean and maximum of its values.
pub fn hop_rows(
    name: &str,
    fields: &[impl AsRef<str>],
    hops: usize,
    values: impl Fn(usize, usize) -> Vec<u64>,
) -> Vec<[String; 7]> {
    let mut rows = Vec::new();
    for hop in 0..hops {
        for (index, field) in fields.iter().enumerate() {
            let all = values(hop, index);
            let (Some(least), Some(most)) = (all.iter().min(), all.iter().max()) else { continue };
            let mean = all.iter().map(|value| *value as f64).sum::<f64>() / all.len() as f64;
            let [count, least, most] = [all.len() as u64, *least, *most].map(grouped);
            let (hop, mean) = (hop.to_string(), three_digits(mean));
            rows.push([name.to_owned(), hop, field.as_ref().to_owned(), count, least, mean, most]);
        }
    }
    rows
}

/// Lists the paths that packets recorded.
fn paths(topology: &Topology, results: &Results) -> String {
    let mut rows = vec![["paths of programs", "from", "to", "packets", "first", "last", "switches"].map(str::to_owned)];
    let all = results.minions().flat_map(|(name, minion)| minion.paths().into_iter().map(move |path| (name, path)));
    let all: Vec<_> = all.collect();
    for (name, path) in all.iter().take(PATHS) {
        let host = |host: Option<usize>| host.map_or(String::new(), |host| topology.hosts[host].name.clone());
        let (count, switches) = (grouped(path.packets), switch_names(&path.switches, topology));
        let [first, last] = [path.first, path.last].map(|time| time.to_string());
        rows.push([(*name).to_owned(), host(path.from), host(path.to), count, first, last, switches]);
    }
    let more = all.len().saturating_sub(PATHS);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    if rows.len() > 1 { format!("\n{}{more}", aligned(&rows, &[3, 4, 5])) } else { String::new() }
}

/// Returns the programs of some traffic as JSON.
pub fn json(topology: &Topology, minion: &MinionResult) -> Value {
    let name = |host: Option<usize>| host.map(|host| topology.hosts[host].name.as_str());
    let packets = minion.packets.iter().map(|packet| {
        json!({
            "at_ns": packet.at.as_ns(), "from": name(packet.from), "to": name(packet.to),
            "status": packet.status.to_string(), "hops": packet.hops,
        })
    });
    let paths = minion.paths().into_iter().map(|path| {
        let switches = path.switches.iter().map(|switch| switch_names(&[*switch], topology));
        json!({
            "from": name(path.from), "to": name(path.to), "switches": switches.collect::<Vec<_>>(), "packets": path.packets,
            "first_ns": path.first.as_ns(), "last_ns": path.last.as_ns(),
        })
    });
    let mut value = json!({
        "file": minion.file, "inserted": minion.inserted, "too_long": minion.too_long, "arrived": minion.arrived,
        "words": minion.words, "paths": paths.collect::<Vec<_>>(), "packets": packets.collect::<Vec<_>>(),
    });
    if let Some(counts) = &minion.counts {
        value["counts"] = link_counts::json(topology, counts);
    }
    if let Some(ExecutionCounts { executed, unanswered, too_late, packets }) = minion.requests {
        value["requests"] =
            json!({ "executed": executed, "unanswered": unanswered, "too_late": too_late, "packets": packets });
    }
    value
}

/// Returns the counts of rate controllers as JSON.
pub fn rcp_json(rcp: &RcpResult) -> Value {
    let RcpResult { program_bytes, counts } = rcp;
    json!({
        "program_bytes": program_bytes, "samples": counts.samples, "updates": counts.updates,
        "first_rates": counts.first_rates, "lost": counts.lost,
    })
}

/// Formats the flowlets of senders that choose between paths, and the busiest link.
pub fn flowlets(topology: &Topology, results: &Results) -> String {
    let mut rows =
        vec![["flowlets of", "number", "moved", "datagrams out of order", "bytes of programs"].map(str::to_owned)];
    let balanced: Vec<_> = results.traffic.iter().filter_map(|flow| Some((flow, flow.conga?))).collect();
    for (flow, conga) in balanced.iter().filter(|(_, conga)| conga.counts.flowlets > 0) {
        let counts = [conga.counts.flowlets, conga.counts.moves, conga.late, conga.program_bytes];
        let [flowlets, moves, late, bytes] = counts.map(grouped);
        rows.push([flow.name.clone(), flowlets, moves, late, bytes]);
    }
    let table = if rows.len() > 1 { format!("\n{}", aligned(&rows, &[1, 2, 3, 4])) } else { String::new() };
    let seconds = results.end.as_ns().max(1) as f64 / 1e9;
    let busiest = results.links.iter().filter_map(|link| {
        let shape = topology.links.iter().find(|known| known.ends.contains(&link.from))?.shape;
        let (rate, capacity) = (link.stats.carried_bytes as f64 * 8.0 / seconds, shape.rate?.bps() as f64);
        Some((link, rate, rate / capacity * 100.0))
    });
    let busiest = busiest.filter(|_| !balanced.is_empty()).max_by(|one, other| one.2.total_cmp(&other.2));
    let busiest = busiest.map(|(link, rate, share)| {
        let [from, to] = [link.from, link.to].map(|end| topology.end_name(end));
        format!("\nbusiest link: {from} -> {to}, {} ({share:.1} % of its rate)\n", bits(rate))
    });
    table + &busiest.unwrap_or_default()
}

/// Returns the counts of balancers as JSON.
pub fn conga_json(conga: &CongaResult) -> Value {
    let CongaResult { program_bytes, counts, late } = conga;
    json!({
        "program_bytes": program_bytes, "samples": counts.samples, "changed_paths": counts.changed_paths,
        "flowlets": counts.flowlets, "moves": counts.moves, "late": late,
    })
}

/// Returns the table of all words.
pub fn table(topology: &Topology, results: &Results) -> ResultTable {
    let (mut traffic, mut packets, mut times, mut ends) =
        (Vec::new(), Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    let (mut hops, mut words, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let unknown = Arc::<str>::from("");
    let names: Vec<Arc<str>> = topology.hosts.iter().map(|host| host.name.as_str().into()).collect();
    for (name, minion) in results.minions() {
        let name = Arc::<str>::from(name);
        let known: Vec<Arc<str>> = minion.words.iter().map(|word| word.as_str().into()).collect();
        for (number, packet) in minion.packets.iter().enumerate() {
            for (hop, values_of_hop) in packet.hops.iter().enumerate() {
                for (index, value) in values_of_hop.iter().enumerate() {
                    traffic.push(Arc::clone(&name));
                    packets.push(number as u64);
                    times.push(packet.at.as_ns() as f64 / 1e9);
                    for (column, host) in ends.iter_mut().zip([packet.from, packet.to]) {
                        column.push(Arc::clone(host.map_or(&unknown, |host| &names[host])));
                    }
                    hops.push(hop as u64);
                    words.push(Arc::clone(known.get(index).unwrap_or(&unknown)));
                    values.push(u64::from(*value));
                }
            }
        }
    }
    let [from, to] = ends;
    ResultTable {
        name: "minions",
        columns: vec![
            ("traffic", Column::Text(traffic)),
            ("packet", Column::Whole(packets)),
            ("time_s", Column::Number(times)),
            ("from", Column::Text(from)),
            ("to", Column::Text(to)),
            ("hop", Column::Whole(hops)),
            ("word", Column::Text(words)),
            ("value", Column::Whole(values)),
        ],
    }
}
