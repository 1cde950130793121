//! Runs the shims of a live lab's hosts, which insert tiny packet programs and take them out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ::privileges::KeptAccess;
use ::tpp::map::MemoryMap;
use ::tpp::shim::InsertionRule;
use anyhow::anyhow;
use diagnostics::{Diagnostic, Diagnostics};
use lab::{HostShim, Topology};
use lab_live::DaemonConnection;
use serde_json::Value;
use v1model::Executor;

use super::args::ShimMainArgs;
use super::live::load_network;
use super::minions;
use super::network::reason;
use super::report::process_state;
use crate::output::{Failure, Output, aligned, counted, grouped};
use crate::tpp::shim::{ShimReporter, ShimRules, open_relay, read_policy};
use crate::tpp::shim_reports::{is_silent, silence};
use crate::{privileges, signals};

/// Names of the interface of every host, and of the device of its shim.
const INTERFACE: &str = "eth0";
const DEVICE: &str = "tpp0";

/// Reads the files that the shims of a topology name, and reports what is wrong with them.
pub fn check(topology: &Topology, folder: &Path, map: &MemoryMap, output: &Output, diagnostics: &mut Diagnostics) {
    let mut checked: Vec<&HostShim> = Vec::new();
    for shim in topology.hosts.iter().map(|host| &host.shim) {
        // Hosts share the rules of `[defaults]`.
        if checked.contains(&shim) {
            continue;
        }
        checked.push(shim);
        let policy = shim.policy.as_ref().map(|(name, span)| (folder.join(name), *span));
        if let Some((path, span)) = &policy
            && let Err(failure) = read_policy(path, map, output)
        {
            diagnostics.push(Diagnostic::error("shim", *span, reason(&failure)));
            continue;
        }
        let policy = policy.as_ref().map(|(path, _)| path.as_path());
        for rule in &shim.insert {
            if rule.rule.filter.names_ipv6() {
                let message = "hosts of a lab have no IPv6: write an IPv4 address or prefix";
                diagnostics.push(Diagnostic::error("shim", rule.span, message));
                continue;
            }
            let one = vec![(rule.text.clone(), located(&rule.rule, folder))];
            if let Err(failure) = ShimRules::of_host(one, &[], policy, map, output) {
                diagnostics.push(Diagnostic::error("shim", rule.span, reason(&failure)));
            }
        }
    }
}

/// Returns a rule whose file is in a folder.
fn located(rule: &InsertionRule, folder: &Path) -> InsertionRule {
    InsertionRule { file: folder.join(&rule.file).display().to_string(), ..rule.clone() }
}

/// Reads the rules of a host. It also collects the programs that other hosts insert.
fn rules_of(
    topology: &Topology,
    host: usize,
    folder: &Path,
    map: &MemoryMap,
    output: &Output,
) -> Result<ShimRules, Failure> {
    let shim = &topology.hosts[host].shim;
    let own = shim.insert.iter().map(|rule| (rule.text.clone(), located(&rule.rule, folder))).collect();
    let all = topology.hosts.iter().flat_map(|host| &host.shim.insert);
    let mut files: BTreeSet<PathBuf> = all.map(|rule| folder.join(&rule.rule.file)).collect();
    shim.insert.iter().for_each(|rule| _ = files.remove(&folder.join(&rule.rule.file)));
    let policy = shim.policy.as_ref().map(|(name, _)| folder.join(name));
    ShimRules::of_host(own, &files.into_iter().collect::<Vec<_>>(), policy.as_deref(), map, output)
}

/// Runs the hidden `triplane lab shim`: the process of one host's shim.
pub fn run(args: &ShimMainArgs, output: &Output) -> Result<(), Failure> {
    let mut daemon = DaemonConnection::from_stdout()?;
    let live = &args.daemon.live;
    // `lab up` has read the same files and printed the findings.
    let quiet = output.quiet();
    let network = load_network(live, Executor::Interpreter, None, &quiet)?;
    let host = network.topology.hosts.iter().position(|host| host.name == args.host);
    let host = host.ok_or_else(|| Failure::Environment(anyhow!("the host {} is gone", args.host)))?;
    let map = minions::memory_of(&network);
    let folder = live.topology.topology.parent().unwrap_or(Path::new(""));
    let rules = rules_of(&network.topology, host, folder, &map, &quiet)?;
    // The programs of the network take memory, and each host has such a process.
    drop(network);
    let mut shim = open_relay(INTERFACE, DEVICE, &rules)?;
    privileges::restrict(&KeptAccess::default(), false, output)?;
    let stop = signals::stop_on_signals()?;
    daemon.report_ready()?;
    let mut reports = daemon.into_reports();
    let mut reporter = ShimReporter::new(map, rules, move |report: &Value| reports.send(report));
    Ok(shim.relay.run_in_periods(&stop, &mut reporter)?)
}

/// Describes the shims of a network that is up; `None` without shims.
pub fn describe(topology: &Topology) -> Option<String> {
    let shims = topology.shims();
    let inserting = shims.iter().filter(|host| !topology.hosts[**host].shim.insert.is_empty()).count();
    let what = counted(shims.len(), "host has a shim", "hosts have shims");
    (!shims.is_empty()).then(|| format!("{what}; {inserting} insert programs: triplane tpp top"))
}

/// Formats the shims of a live network.
pub fn status(shims: &[Value]) -> String {
    if shims.is_empty() {
        return String::new();
    }
    let mut rows = vec![["shim of", "", "process", "inserted", "collected", ""].map(str::to_owned)];
    for shim in shims {
        let (report, restarts) = (&shim["report"], shim["restarts"].as_u64().unwrap_or(0));
        let is_up = shim["failed"] != true && shim["suspended"] != true;
        let state = if is_up && is_silent(shim) { "silent" } else { process_state(shim) };
        let number = |value: &Value| value.as_u64().map_or_else(String::new, grouped);
        let mut notes = Vec::new();
        if restarts > 0 {
            notes.push(format!("started again {}", counted(restarts as usize, "time", "times")));
        }
        notes.extend(silence(shim));
        rows.push([
            shim["host"].as_str().unwrap_or_default().to_owned(),
            state.to_owned(),
            shim["pid"].as_u64().map_or_else(String::new, |pid| pid.to_string()),
            number(&report["inserted"]),
            number(&report["collected"]),
            notes.join(": "),
        ]);
    }
    aligned(&rows, &[2, 3, 4])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shim_counts_as_up_only_while_it_reports() {
        let shim = |age_s: Value, why: Value, is_suspended: bool| {
            json!({
                "host": "h1", "failed": false, "suspended": is_suspended, "why": why, "pid": 7, "restarts": 0,
                "age_s": age_s, "report": { "inserted": 1_000, "collected": 2 },
            })
        };
        let lines = |shim: Value| status(&[shim]).lines().nth(1).map(|line| line.trim_end().to_owned());
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(lines(shim(json!(0.4), Value::Null, false)), line("h1       up        7     1,000          2"));
        let expected = "h1       silent        7     1,000          2  its last report is 9 s old";
        assert_eq!(lines(shim(json!(9.2), Value::Null, false)), line(expected));
        let expected = "h1       silent        7     1,000          2  it has not reported yet";
        assert_eq!(lines(shim(Value::Null, Value::Null, false)), line(expected));
        let expected = "h1       silent        7     1,000          2  its report exceeds 256 KiB";
        assert_eq!(lines(shim(json!(9.2), json!("its report exceeds 256 KiB"), false)), line(expected));
        let expected = "h1       suspended        7     1,000          2  its last report is 9 s old";
        assert_eq!(lines(shim(json!(9.2), Value::Null, true)), line(expected));
    }
}
