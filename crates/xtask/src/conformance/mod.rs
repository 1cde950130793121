//! Runs `cargo xtask conformance`: the project on the test data of p4lang/p4c, which is not part of the project.
//!
//! Each criterion is a module that returns a [`Row`]: the number of programs, and the reasons why some fail.

mod cases;
mod check;
mod p4info;
mod programs;
mod speed;
mod stf;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use compiler::Source;
use diagnostics::{Diagnostics, Severity, SourceMap};
use v1model::V1Model;

use cases::FailedSample;

pub const HELP: &str = "\
Usage: cargo xtask conformance --p4c DIR [--p4c-bm2-ss FILE [--p4test FILE]] [--only ROW] [--name TEXT] [--all]

Runs the project on the test data in a checkout of https://github.com/p4lang/p4c and prints a row for each criterion:
the number of programs, the number that meet it, and the names of those that do not.

  --p4c DIR          The checkout.
  --p4c-bm2-ss FILE  p4c's compiler for BMv2, which the row `programs` needs: has it compile the programs for packet
                     subscriptions that the formats in `examples` become, one message a pass, for every kind of tables.
  --p4test FILE      p4c's compiler for no target: `programs` has it compile those that match all messages in one pass.
  --only ROW         Only this row: check, errors, speed, stf, p4info, programs.
  --name TEXT        Only programs whose path contains this.
  --all              Print the whole reason of a failure, not only its first line.
";

/// The result of a criterion.
pub struct Row {
    name: &'static str,
    what: &'static str,
    /// The share of programs that is required, in percent.
    required: f64,
    total: usize,
    /// Programs that are known to fail, and why; the share is computed as if they passed.
    expected_failures: Vec<(String, String)>,
    failures: Vec<FailedSample>,
}

impl Row {
    fn share(&self) -> f64 {
        match self.total {
            0 => 0.0,
            total => 100.0 * (total - self.failures.len()) as f64 / total as f64,
        }
    }

    fn is_met(&self) -> bool {
        self.total > 0 && self.share() >= self.required
    }
}

/// The parsed command line.
pub struct Request {
    /// The checkout.
    p4c: PathBuf,
    /// p4c's compiler for BMv2.
    compiler: Option<PathBuf>,
    /// p4c's compiler for no target.
    no_target: Option<PathBuf>,
    /// The only criterion to check, if any.
    only: Option<String>,
    /// Text that the paths of programs must contain.
    name: String,
    /// Whether all details of a failure are printed.
    all: bool,
}

impl Request {
    /// Returns a request with the checkout but no other option, for functions that run on several threads.
    fn checkout_only(&self) -> Request {
        Request { p4c: self.p4c.clone(), compiler: None, no_target: None, only: None, name: String::new(), all: true }
    }
}

/// A criterion's name and the function that returns its row.
type Criterion = (&'static str, fn(&Request) -> Result<Row>);

const CRITERIA: &[Criterion] = &[
    ("check", check::accepted),
    ("errors", check::refused),
    ("speed", speed::row),
    ("stf", stf::row),
    ("p4info", p4info::row),
    ("programs", programs::row),
];

/// Prints the rows. Returns false if a criterion is not met.
pub fn run(arguments: &[String]) -> Result<bool> {
    let request = request(arguments)?;
    let has_all = |name: &str| name != "programs" || request.compiler.is_some();
    let wanted = |(name, _): &&Criterion| request.only.as_deref().map_or(has_all(name), |only| only == *name);
    let mut rows = Vec::new();
    for (name, row) in CRITERIA.iter().filter(wanted) {
        eprintln!("{name} ...");
        rows.push(row(&request)?);
    }
    if rows.is_empty() {
        let names: Vec<&str> = CRITERIA.iter().map(|(name, _)| *name).collect();
        bail!("unknown row; the rows are {}", names.join(", "));
    }
    for row in &rows {
        for FailedSample { name, reason } in &row.failures {
            let reason = if request.all { reason.trim_end() } else { reason.lines().next().unwrap_or_default() };
            println!("{}: {name}: {reason}", row.name);
        }
        for (name, reason) in &row.expected_failures {
            println!("{}: {name}: expected failure: {reason}", row.name);
        }
    }
    println!("\n{:<8} {:>6} {:>6} {:>8} {:>8} {:>8}  what", "", "total", "good", "expected", "share", "needed");
    for row in &rows {
        println!(
            "{:<8} {:>6} {:>6} {:>8} {:>7.1}% {:>7.1}%  {}{}",
            row.name,
            row.total,
            row.total - row.failures.len() - row.expected_failures.len(),
            row.expected_failures.len(),
            row.share(),
            row.required,
            row.what,
            if row.is_met() { "" } else { "  <-- not met" }
        );
    }
    Ok(rows.iter().all(Row::is_met))
}

fn request(arguments: &[String]) -> Result<Request> {
    let mut request =
        Request { p4c: PathBuf::new(), compiler: None, no_target: None, only: None, name: String::new(), all: false };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().cloned().ok_or_else(|| anyhow::anyhow!("`{argument}` needs a value"));
        match argument.as_str() {
            "--p4c" => request.p4c = value()?.into(),
            "--p4c-bm2-ss" => request.compiler = Some(value()?.into()),
            "--p4test" => request.no_target = Some(value()?.into()),
            "--only" => request.only = Some(value()?),
            "--name" => request.name = value()?,
            "--all" => request.all = true,
            other => bail!("there is no option `{other}`\n\n{HELP}"),
        }
    }
    if !request.p4c.join("testdata/p4_16_samples").is_dir() {
        bail!("`{}` is not a checkout of p4c: name one with --p4c DIR", request.p4c.display());
    }
    Ok(request)
}

/// A P4 source of the corpus, and the directories that are searched for included files.
struct Sample {
    name: String,
    text: String,
    include_dirs: Vec<PathBuf>,
}

impl Sample {
    /// Reads a file. The error is the reason why there is nothing to check.
    fn read(request: &Request, path: &Path) -> Result<Sample, String> {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        let beside = path.parent().map(Path::to_owned);
        Ok(Sample {
            name: path.display().to_string(),
            text: String::from_utf8_lossy(&text).into_owned(),
            include_dirs: beside.into_iter().chain([request.p4c.join("p4include")]).collect(),
        })
    }

    fn source(&self) -> Source<'_> {
        Source { include_dirs: &self.include_dirs, ..Source::new(&self.name, &self.text) }
    }
}

/// Returns a checked program, if it has no mistake, and the front end's findings.
fn front_end(
    request: &Request,
    path: &Path,
    map: &mut SourceMap,
) -> Result<(Option<p4::typed::Program>, Diagnostics), String> {
    let sample = Sample::read(request, path)?;
    let mut diagnostics = Diagnostics::new();
    let typed = compiler::check(&sample.source(), &V1Model, map, &mut diagnostics);
    Ok((typed, diagnostics))
}

/// Returns a checked program; the error is the rendered findings of the front end.
fn checked(request: &Request, path: &Path, map: &mut SourceMap) -> Result<p4::typed::Program, String> {
    let (typed, diagnostics) = front_end(request, path, map)?;
    typed.ok_or_else(|| errors(map, &diagnostics))
}

/// Returns a program's pipeline IR; the error is the rendered findings.
fn compiled(request: &Request, path: &Path, map: &mut SourceMap) -> Result<Arc<ir::Program>, String> {
    let sample = Sample::read(request, path)?;
    let mut diagnostics = Diagnostics::new();
    let program = compiler::lower(&sample.source(), &V1Model, map, &mut diagnostics);
    program.map(Arc::new).ok_or_else(|| errors(map, &diagnostics))
}

/// The errors as text: a line that says what the first is, and then all of them in full.
fn errors(map: &SourceMap, diagnostics: &Diagnostics) -> String {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let Some(first) = errors.next() else { return "no result, and no reason".to_owned() };
    let place = map.position(first.primary.span);
    let file = Path::new(&place.file).file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{}: {} ({file}:{})\n", first.code, first.message, place.line);
    for diagnostic in std::iter::once(first).chain(errors) {
        text += &diagnostic.render(map, false);
        text.push('\n');
    }
    text
}
