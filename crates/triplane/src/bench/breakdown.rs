//! Breaks a packet's time down: maps a sampler's measurements to the parts of a P4 program.

use ir::{BodyId, Op, Program, TableId};
use v1model::ProbedPart;

use v1model_runtime::bench::memory::Instrumentation;
use v1model_runtime::bench::sampler::{Sampler, Tally};

/// The part of the work that a share of the time belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// The parser.
    Parser,
    /// A table: its key, its lookup and its action.
    Table(String),
    /// The work of ingress outside its tables.
    Ingress,
    /// The work of egress outside its tables.
    Egress,
    /// Verifying and computing checksums.
    Checksums,
    /// The deparser.
    Deparser,
    /// The switch's own work around the program: ports, queues, counters and the rest.
    Switch,
}

impl PartKind {
    /// Returns the stable name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            PartKind::Parser => "parser",
            PartKind::Table(_) => "table",
            PartKind::Ingress => "ingress",
            PartKind::Egress => "egress",
            PartKind::Checksums => "checksums",
            PartKind::Deparser => "deparser",
            PartKind::Switch => "switch",
        }
    }

    /// Returns the name for people.
    pub fn label(&self) -> String {
        match self {
            PartKind::Parser => "parser".into(),
            PartKind::Table(name) => format!("table {name}"),
            PartKind::Ingress => "rest of ingress".into(),
            PartKind::Egress => "rest of egress".into(),
            PartKind::Checksums => "checksums".into(),
            PartKind::Deparser => "deparser".into(),
            PartKind::Switch => "ports, queues, counters".into(),
        }
    }
}

/// A share of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The part of the work.
    pub kind: PartKind,
    /// Nanoseconds a packet.
    pub ns: f64,
    /// Mean number of times that a packet reaches the part; only for tables in machine code.
    pub packets: Option<f64>,
}

/// The time by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown {
    /// The shares, in the order in which a packet meets the parts. Their sum is the whole time.
    pub shares: Vec<Share>,
    /// Tables that no packet reached.
    pub unused: Vec<String>,
    /// The sum of the sampled times before scaling to the whole, in nanoseconds a packet.
    pub sampled_ns: f64,
}

/// Returns the tables that a block's body applies, in the order of the code.
fn tables(program: &Program, role: &str) -> Vec<TableId> {
    let Some(body) = program.blocks.get(role).map(|body| &program.bodies[*body]) else { return Vec::new() };
    let mut found = Vec::new();
    for instr in body.blocks.values().flat_map(|block| &block.instrs) {
        if let Op::Apply { table, .. } = &instr.op
            && !found.contains(table)
        {
            found.push(*table);
        }
    }
    found
}

/// Combines a sampler's measurements of `packets` packets, and scales them to a sum of `whole_ns` nanoseconds a packet.
/// `cost_ns` is the cost of timing a part.
pub fn breakdown(
    program: &Program,
    sampler: &Sampler,
    instrumentation: Instrumentation,
    packets: u64,
    whole_ns: f64,
    cost_ns: f64,
) -> Breakdown {
    let packets = packets.max(1) as f64;
    let share = |kind: PartKind, tallies: &[Tally]| {
        let ns = |tally: &Tally| match tally.timed {
            0 => 0.0,
            timed => (tally.ns as f64 / timed as f64 - cost_ns).max(0.0) * tally.runs as f64 / packets,
        };
        Share { kind, ns: tallies.iter().map(ns).sum(), packets: None }
    };
    let bodies = |roles: &[&str]| -> Vec<Tally> {
        let mut ids: Vec<BodyId> = roles.iter().filter_map(|role| program.blocks.get(*role).copied()).collect();
        ids.dedup();
        ids.into_iter().map(|body| sampler.tally(ProbedPart::Body(body))).collect()
    };
    let mut shares = vec![share(PartKind::Parser, &bodies(&["parser"]))];
    let mut unused = Vec::new();
    let mut listed = Vec::new();
    for (role, rest) in [("ingress", PartKind::Ingress), ("egress", PartKind::Egress)] {
        for table in tables(program, role) {
            if listed.contains(&table) {
                continue;
            }
            listed.push(table);
            let (name, tally) = (program.tables[table].name.clone(), sampler.tally(ProbedPart::Table(table)));
            match tally.runs {
                0 => unused.push(name),
                runs => {
                    // The interpreter reports every step of an action, so its runs do not count packets.
                    let part = (instrumentation == Instrumentation::Probed).then(|| runs as f64 / packets);
                    shares.push(Share { packets: part, ..share(PartKind::Table(name), &[tally]) });
                }
            }
        }
        shares.push(share(rest, &bodies(&[role])));
    }
    shares.push(share(PartKind::Checksums, &bodies(&["verify_checksum", "compute_checksum"])));
    shares.push(share(PartKind::Deparser, &bodies(&["deparser"])));
    shares.push(share(PartKind::Switch, &sampler.switch()));
    let sampled_ns: f64 = shares.iter().map(|share| share.ns).sum();
    if sampled_ns > 0.0 {
        shares.iter_mut().for_each(|share| share.ns *= whole_ns / sampled_ns);
    }
    Breakdown { shares, unused, sampled_ns }
}
