//! Reads requests for the execution of tiny packet programs.

use std::sync::Arc;

use diagnostics::Span;
use toml::de::DeTable;
use tpp::executor::{ExecutionOptions, ExecutionPlan};
use tpp::{CheckFinding, TinyProgram};

use super::TrafficKind;
use crate::read::document::Reader;
use crate::sim::traffic::ExecutionTimes;
use crate::topology::{Delay, Node, Topology};

/// Maximum number of requests of a round, of one sender.
const MAX_REQUESTS: usize = 4096;

/// The way in which a program is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRequests {
    /// The program's file; relative names are relative to the scenario's.
    pub file: String,
    /// Number of rounds.
    pub count: u32,
    /// Indexes of the switches that execute it, each for itself; all on the path if there are none.
    pub switches: Vec<usize>,
    /// Whether the first switch that reaches the end of the program sends it back.
    pub reflects: bool,
    /// Maximum number of times that each packet is sent.
    pub tries: u32,
    /// When what is sent.
    pub times: ExecutionTimes,
}

impl ProgramRequests {
    /// Returns the plans of a program: one, or one for each switch.
    ///
    /// # Errors
    /// Returns what cannot be split or retried. It is the same for all switches.
    pub fn plans(&self, program: &TinyProgram) -> Result<Vec<Arc<ExecutionPlan>>, Vec<CheckFinding>> {
        let options = ExecutionOptions { reflects: self.reflects, tries: self.tries, ..ExecutionOptions::default() };
        let plan = |switch| ExecutionPlan::new(program, &ExecutionOptions { switch, ..options }).map(Arc::new);
        if self.switches.is_empty() {
            return Ok(vec![plan(None)?]);
        }
        // The first switch has the number 1.
        self.switches.iter().map(|switch| plan(Some(*switch as u32 + 1))).collect()
    }
}

impl Reader<'_> {
    /// Reports a sender with more requests than its executor accepts at a time.
    pub(super) fn bounded(&mut self, span: Span, kind: &TrafficKind, pairs: &[(usize, Vec<usize>)]) {
        let TrafficKind::Execute(execution) = kind else { return };
        let switches = execution.switches.len().max(1);
        let receivers = pairs.iter().map(|(_, to)| to.len()).max().unwrap_or(0);
        if receivers.saturating_mul(switches) > MAX_REQUESTS {
            let message = format!(
                "{receivers} receivers and {switches} switches are more than {MAX_REQUESTS} requests of a sender at a \
                 time: divide them among several senders"
            );
            self.wrong(span, message);
        }
    }

    /// Reads requests for the execution of a program.
    pub(super) fn execution(&mut self, table: &DeTable<'_>, span: Span, topology: &Topology) -> Option<TrafficKind> {
        let Some((file, _)) = self.text(table, "file") else {
            self.wrong(span, "the execution of a program needs its file: file = \"path.tpp\"");
            return None;
        };
        let file = file.to_owned();
        let mut switches = Vec::new();
        for (name, span) in self.names(table, "switches").unwrap_or_default() {
            match self.place((name, span), topology) {
                Some(Node::Switch(switch)) if switches.contains(&switch) => {
                    self.wrong(span, format!("`{name}` is listed twice"));
                }
                Some(Node::Switch(switch)) => switches.push(switch),
                Some(Node::Host(_)) => self.wrong(span, format!("`{name}` is a host, which executes no programs")),
                None => {}
            }
        }
        let mut time = |key: &str, usual_ms: u64| {
            let found: Option<Delay> = self.parsed(table, key);
            found.unwrap_or(Delay::from_ms(usual_ms)).as_ns().max(1)
        };
        let interval_ns = time("interval", 100);
        let times =
            ExecutionTimes { interval_ns, timeout_ns: time("timeout", 20), deadline_ns: time("deadline", 1_000) };
        Some(TrafficKind::Execute(ProgramRequests {
            file,
            count: self.integer(table, "count", 1..=1_000_000).unwrap_or(5),
            switches,
            reflects: self.boolean(table, "reflect").unwrap_or(false),
            tries: self.integer(table, "tries", 1..=16).unwrap_or(3),
            times,
        }))
    }
}
