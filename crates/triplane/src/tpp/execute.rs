//! Executes programs on the switches of one path or of many, and prints what they wrote.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ::tpp::executor::{
    ExecutedProgram, ExecutionOptions, ExecutionPlan, ExecutorSettings, RequestOutcome, ScatterTarget, StoreVerdict,
};
use ::tpp::map::MemoryMap;
use ::tpp::{CheckFinding, TinyProgram};
use anyhow::anyhow;
use diagnostics::{FileId, Span};
use serde_json::{Value, json};
use tpp_host::ExecutorSockets;
use wire::tpp::Status;

use super::args::{RunArgs, TargetArgs};
use super::probe::{NOT_EXECUTED, no_echo_failure};
use super::{SourceProgram, memory_map, read_large_program, report};
use crate::output::{Failure, Output, counted, duration};
use crate::signals;

/// Note on packets of a program that passed different numbers of switches.
pub const PATHS_DIFFER: &str =
    "the packets of the program passed different numbers of switches: their words may be of different paths";

/// Note on writes that a switch did not execute.
const NOT_PERMITTED: &str = "a switch did not permit a write: programs may write words of applications, such as \
                             `Link:AppSpecific_0`, at switches with `triplane run --tpp-writes`, or tpp = \"write\" \
                             below [defaults] of a lab; registers need `--tpp-register-writes`, or \
                             \"write-registers\"";

/// The same for a program that forbids it.
const READ_ONLY: &str = "no switch executes the writes of this program: it has `.readonly`, which permits none";

/// Longest time between two tries, unless the first one is longer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(8);

/// Maximum number of hosts and switches of a command.
const MAX_TARGETS: usize = 4096;

/// A host, and the only switch that executes the program.
struct Target {
    host: String,
    switch: Option<u32>,
    address: IpAddr,
}

impl Target {
    /// Returns the name in outputs.
    fn name(&self) -> String {
        match self.switch {
            Some(switch) => format!("{}, switch {switch}", self.host),
            None => self.host.clone(),
        }
    }
}

fn settings(timeout: f64) -> ExecutorSettings {
    let timeout = Duration::from_secs_f64(timeout);
    let nanoseconds = |time: Duration| time.as_nanos() as u64;
    ExecutorSettings {
        timeout_ns: nanoseconds(timeout),
        longest_timeout_ns: nanoseconds(timeout.max(LONGEST_TIMEOUT)),
        ..ExecutorSettings::default()
    }
}

/// Executes a program of this command on the path to a host, and returns it with the words of the switches.
pub fn execute_once(target: &TargetArgs, program: &TinyProgram) -> Result<ExecutedProgram, Failure> {
    let plan = ExecutionPlan::new(program, &ExecutionOptions::default());
    let plan = Arc::new(plan.map_err(|findings| Failure::Usage(findings[0].message.clone()))?);
    let mut sockets = ExecutorSockets::new(settings(target.timeout));
    let target = Target { address: sockets.open(&target.host)?, host: target.host.clone(), switch: None };
    let time = Duration::from_secs(3600);
    let outcome = gather(&mut sockets, &[(target.address, plan)], time)?.remove(0);
    executed(&sockets, &target, outcome, program.repr.is_reflective)
}

/// Executes plans until all have an outcome, or until Ctrl-C.
fn gather(
    sockets: &mut ExecutorSockets,
    plans: &[(IpAddr, Arc<ExecutionPlan>)],
    time: Duration,
) -> Result<Vec<Option<RequestOutcome>>, Failure> {
    let stop = signals::stop_on_signals()?;
    let targets = plans.iter().map(|(to, plan)| ScatterTarget { to: *to, plan: Arc::clone(plan) }).collect();
    sockets.gather::<Failure>(targets, time, &stop, |_, _| Ok(ControlFlow::Continue(())))
}

/// Returns the reason why a target has no words; `None` if it has.
fn failure_reason(outcome: Option<&RequestOutcome>, problem: Option<&io::Error>) -> Option<String> {
    let (why, sent, echoed) = match outcome {
        Some(RequestOutcome::Executed(_)) => return None,
        None => return Some("interrupted".to_owned()),
        Some(RequestOutcome::TooLate { sent: 0, .. }) => {
            return Some("no time was left to send the program".to_owned());
        }
        Some(RequestOutcome::Unanswered { sent, echoed }) => ("no echo", sent, echoed),
        Some(RequestOutcome::TooLate { sent, echoed }) => ("no echo before the deadline", sent, echoed),
    };
    let packets = counted(*sent as usize, "packet was sent", "packets were sent");
    let parts = match echoed {
        (_, 1) => String::new(),
        (echoed, all) => format!(", and {echoed} of {all} parts came back"),
    };
    let problem = match problem {
        None => String::new(),
        Some(problem) if problem.kind() == ErrorKind::ConnectionRefused => {
            "; it has no receiver of programs".to_owned()
        }
        Some(problem) => format!("; {problem}"),
    };
    Some(format!("{why}; {packets}{parts}{problem}"))
}

/// Returns what the switches did for a target, or its failure.
fn executed(
    sockets: &ExecutorSockets,
    target: &Target,
    outcome: Option<RequestOutcome>,
    is_reflective: bool,
) -> Result<ExecutedProgram, Failure> {
    let host = &target.host;
    let problem = sockets.problem(target.address);
    let is_refused = problem.is_some_and(|problem| problem.kind() == ErrorKind::ConnectionRefused);
    Err(match outcome {
        Some(RequestOutcome::Executed(found)) => return Ok(found),
        None => Failure::Environment(anyhow!("interrupted before an echo of {host} came")),
        Some(_) if is_reflective => {
            let may_end = "; a switch at which a `CEXEC` or `CSTORE` ends the program does not reflect it, so stores may \
                           have been made: without --reflect, `triplane tpp echo` on the host returns it in all cases";
            Failure::Environment(anyhow!(
                "no switch on the way to {host} reflected the program, or it was lost{may_end}"
            ))
        }
        Some(_) => match problem {
            Some(problem) if !is_refused => Failure::Environment(anyhow!("cannot send a program to {host}: {problem}")),
            _ => no_echo_failure(host, is_refused),
        },
    })
}

/// Executes a program and prints what the switches wrote.
pub fn run(args: &RunArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let mut source = read_large_program(&args.file, &map, output)?;
    source.program.mark_absent();
    let switches: Vec<Option<u32>> =
        if args.switch.is_empty() { vec![None] } else { args.switch.iter().copied().map(Some).collect() };
    if args.hosts.len() * switches.len() > MAX_TARGETS {
        return Err(Failure::Usage(format!("a command has at most {MAX_TARGETS} pairs of hosts and switches")));
    }
    let plans = plans(args, &mut source, &switches, output)?;
    let mut sockets = ExecutorSockets::new(settings(args.timeout));
    let (mut targets, mut requests) = (Vec::new(), Vec::new());
    for host in &args.hosts {
        let address = sockets.open(host)?;
        for (switch, plan) in switches.iter().zip(&plans) {
            targets.push(Target { host: host.clone(), switch: *switch, address });
            requests.push((address, Arc::clone(plan)));
        }
    }
    let is_reflective = source.program.repr.is_reflective || args.reflect;
    let time = Duration::from_secs_f64(args.deadline);
    let mut outcomes = gather(&mut sockets, &requests, time)?;
    if let ([target], [outcome]) = (&targets[..], &mut outcomes[..]) {
        let found = executed(&sockets, target, outcome.take(), is_reflective)?;
        if args.json {
            output.print(&format!("{:#}\n", found_json(&found, &map, target)))?;
        } else {
            notes(&[&found], output);
            output.print(&found_text(&found, &map, target, ""))?;
        }
        return not_executed(&found, target).map_or(Ok(()), |reason| Err(Failure::Environment(anyhow!(reason))));
    }
    let found: Vec<(&Target, &ExecutedProgram)> = targets.iter().zip(&outcomes).filter_map(echoed).collect();
    let answered = found.len();
    if args.json {
        let row = |(target, outcome): (&Target, &Option<RequestOutcome>)| {
            target_json(outcome.as_ref(), sockets.problem(target.address), &map, target)
        };
        let rows: Vec<Value> = targets.iter().zip(&outcomes).map(row).collect();
        output.print(&format!("{:#}\n", json!({ "targets": rows, "answered": answered })))?;
    } else {
        let mut text = String::new();
        notes(&found.iter().map(|(_, found)| *found).collect::<Vec<_>>(), output);
        for (target, outcome) in targets.iter().zip(&outcomes) {
            if let Some(reason) = failure_reason(outcome.as_ref(), sockets.problem(target.address)) {
                output.note(&format!("{}: {reason}", target.name()));
            }
            let Some(RequestOutcome::Executed(found)) = outcome else { continue };
            text += &format!("{}: {}", target.host, found_text(found, &map, target, "  "));
        }
        output.print(&format!("{text}{answered} of {} answered\n", targets.len()))?;
    }
    if answered == 0 {
        return Err(Failure::Environment(anyhow!(
            "none of the hosts echoed the program: run `triplane tpp echo` there"
        )));
    }
    let reasons: Vec<String> = found.iter().filter_map(|(target, found)| not_executed(found, target)).collect();
    match reasons.into_iter().next() {
        Some(reason) if found.iter().all(|(target, found)| not_executed(found, target).is_some()) => {
            Err(Failure::Environment(anyhow!(reason)))
        }
        _ => Ok(()),
    }
}

/// Returns a target whose program came back.
fn echoed<'a>(
    (target, outcome): (&'a Target, &'a Option<RequestOutcome>),
) -> Option<(&'a Target, &'a ExecutedProgram)> {
    match outcome {
        Some(RequestOutcome::Executed(found)) => Some((target, found)),
        _ => None,
    }
}

/// Returns a plan for each switch. What cannot be executed so is printed.
fn plans(
    args: &RunArgs,
    source: &mut SourceProgram,
    switches: &[Option<u32>],
    output: &Output,
) -> Result<Vec<Arc<ExecutionPlan>>, Failure> {
    let (mut plans, mut wrong): (Vec<_>, Option<Vec<CheckFinding>>) = (Vec::new(), None);
    for switch in switches {
        let (reflects, tries, owns_values) = (args.reflect, args.tries, args.own_values);
        let options = ExecutionOptions { switch: *switch, reflects, tries, owns_values };
        match ExecutionPlan::new(&source.program, &options) {
            Ok(plan) => plans.push(Arc::new(plan)),
            // The findings of all switches are the same.
            Err(findings) => wrong = Some(findings),
        }
    }
    for finding in wrong.iter().flatten().map(with_options) {
        source.diagnostics.push(finding.diagnostic(&source.program, Span::new(FileId(0), 0, 0)));
    }
    output.diagnostics(&source.sources, &source.diagnostics);
    match wrong {
        Some(findings) => Err(Failure::Input(counted(findings.len(), "error", "errors"))),
        None => Ok(plans),
    }
}

/// Adds the options of this command to the remedy of a finding.
fn with_options(finding: &CheckFinding) -> CheckFinding {
    let named = |help: &String| {
        let once = help.replace("send the program once", "send the program once (`--tries 1`)");
        once.replace("on one switch", "on one switch (`--switch`)")
    };
    CheckFinding { help: finding.help.as_ref().map(named), ..finding.clone() }
}

/// Notes why words may be missing.
fn notes(found: &[&ExecutedProgram], output: &Output) {
    if found.iter().any(|found| found.paths_differ) {
        output.note(PATHS_DIFFER);
    }
    let refused = found.iter().find(|found| found.program.repr.status.contains(Status::SUPPRESSED));
    if let Some(refused) = refused {
        output.note(if refused.program.repr.is_read_only { READ_ONLY } else { NOT_PERMITTED });
    }
}

/// Returns the reason why no switch executed a program that came back; `None` if one did.
fn not_executed(found: &ExecutedProgram, target: &Target) -> Option<String> {
    let hop = found.program.repr.hop;
    match target.switch {
        Some(switch) if hop == 0 => Some(not_executed_by(switch, &target.host)),
        None if hop < 0 => {
            let left = counted(usize::from(hop.unsigned_abs()), "more switch", "more switches");
            Some(format!("no switch executed the program: it waits for {left}; let it begin earlier with `.hop`"))
        }
        None if hop == 0 => Some(NOT_EXECUTED.to_owned()),
        _ => None,
    }
}

fn not_executed_by(switch: u32, host: &str) -> String {
    format!(
        "switch {switch} did not execute the program: it is not on the way to {host} (`triplane tpp trace {host}` lists \
         the switches), executes no programs (`triplane run --tpp {switch}`, or tpp = \"read\" in a lab), has reached its \
         limit (count `tpp.limited`), or a `CEXEC` ended the program there"
    )
}

/// Formats what the switches did. Lines after the first have a prefix.
fn found_text(found: &ExecutedProgram, map: &MemoryMap, target: &Target, prefix: &str) -> String {
    let repr = &found.program.repr;
    // Every echo is done.
    let status = match Status(repr.status.0 & !Status::DONE.0).to_string() {
        none if none.is_empty() => none,
        status => format!(", status {status}"),
    };
    let who = match target.switch {
        Some(switch) if repr.hop == 0 => format!("switch {switch} did not execute the program"),
        Some(switch) => format!("switch {switch}"),
        None => counted(usize::try_from(repr.hop).unwrap_or(0), "switch", "switches"),
    };
    let mut text = format!("{who}, round trip {}{status}\n", duration(found.rtt_ns));
    if repr.hop > 0 {
        let words = report::ProgramWords::of_marked(&found.program, map);
        text += &report::words_from(found.place.map_or(0, usize::from), &words, prefix);
    }
    for store in &found.stores {
        let hop = store.hop.map_or_else(String::new, |hop| format!("hop {hop}: "));
        text += &format!("{prefix}{hop}CSTORE {}: {}\n", store.instruction + 1, verdict_text(store.verdict));
    }
    text
}

fn verdict_text(verdict: StoreVerdict) -> String {
    match verdict {
        StoreVerdict::Stored => "stored".to_owned(),
        StoreVerdict::StoredEarlier => "stored earlier: the word has the new value".to_owned(),
        StoreVerdict::HasNewValue { may_have_stored: true } => {
            "the word has the new value: an earlier try stored it, or somebody else (`--own-values` if nobody can)"
                .to_owned()
        }
        StoreVerdict::HasNewValue { may_have_stored: false } => {
            "the word has the new value already: an earlier command stored it, or somebody else".to_owned()
        }
        StoreVerdict::Other { found, may_have_stored: false } => format!("not stored: the word is {found}"),
        StoreVerdict::Other { found, may_have_stored: true } => {
            format!("the word is {found}; an earlier try may have stored before that")
        }
        StoreVerdict::Denied => "not permitted by the switch".to_owned(),
        StoreVerdict::Absent => "the switch has no such word".to_owned(),
        StoreVerdict::NotReached => "not reached".to_owned(),
        StoreVerdict::Unclear => "stored, or not reached: the words do not show it".to_owned(),
    }
}

fn verdict_json(verdict: StoreVerdict) -> Value {
    match verdict {
        StoreVerdict::Stored => json!("stored"),
        StoreVerdict::StoredEarlier => json!("stored_earlier"),
        StoreVerdict::HasNewValue { .. } => json!("has_new_value"),
        StoreVerdict::Other { may_have_stored: false, .. } => json!("not_stored"),
        StoreVerdict::Other { may_have_stored: true, .. } => json!("not_stored_now"),
        StoreVerdict::Denied => json!("denied"),
        StoreVerdict::Absent => json!("absent"),
        StoreVerdict::NotReached => json!("not_reached"),
        StoreVerdict::Unclear => json!("unclear"),
    }
}

/// Returns what the switches did as JSON.
fn found_json(found: &ExecutedProgram, map: &MemoryMap, target: &Target) -> Value {
    let words = report::ProgramWords::of_marked(&found.program, map);
    let mut json = report::program_json(&found.program, map, words);
    json["rtt_ns"] = found.rtt_ns.into();
    json["sent"] = found.sent.into();
    json["paths_differ"] = found.paths_differ.into();
    if let Some(switch) = target.switch {
        json["switch"] = switch.into();
        let is_executed = found.program.repr.hop > 0;
        json["is_executed"] = is_executed.into();
        if !is_executed {
            json["hops"] = json!([]);
        }
        json["place"] = json!(found.place);
    }
    let stores = found.stores.iter().map(|store| {
        let value = match store.verdict {
            StoreVerdict::Other { found, .. } => Some(found),
            _ => None,
        };
        json!({ "instruction": store.instruction, "hop": store.hop, "verdict": verdict_json(store.verdict),
                "found": value })
    });
    json["stores"] = stores.collect();
    json
}

/// Returns the outcome of one of several targets as JSON.
fn target_json(
    outcome: Option<&RequestOutcome>,
    problem: Option<&io::Error>,
    map: &MemoryMap,
    target: &Target,
) -> Value {
    let mut json = match outcome {
        Some(RequestOutcome::Executed(found)) => found_json(found, map, target),
        failed => json!({ "error": failure_reason(failed, problem), "switch": target.switch }),
    };
    json["host"] = target.host.clone().into();
    json
}
