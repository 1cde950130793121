//! Runs `triplane stf`: packet tests.

use std::path::Path;
use std::sync::Arc;

use ::stf::{Report, RunOptions};
use diagnostics::{Diagnostic, Diagnostics, Span};

use crate::cli::StfArgs;
use crate::load::{self, Loader};
use crate::output::{Failure, Output};

/// Runs the tests, each on its own switch, and reports which pass.
pub fn run(args: &StfArgs, output: &Output) -> Result<(), Failure> {
    let mut loader = Loader::open(&args.program)?;
    let program = loader.program(output)?;
    let mut failed = 0;
    for path in &args.tests {
        let report = test(args, path, &program, &mut loader, output)?;
        failed += usize::from(!report.is_some_and(|report| report.passed()));
    }
    match failed {
        0 => Ok(()),
        1 if args.tests.len() == 1 => Err(Failure::Input("the packet test failed".to_owned())),
        failed => Err(Failure::Input(format!("{failed} of {} packet tests failed", args.tests.len()))),
    }
}

/// Runs one test and prints its result; `None` if the script cannot be run, which has been said then.
fn test(
    args: &StfArgs,
    path: &Path,
    program: &Arc<ir::Program>,
    loader: &mut Loader,
    output: &Output,
) -> Result<Option<Report>, Failure> {
    let text = load::read(path, ::stf::MAX_FILE_BYTES)?;
    let shown = path.display().to_string();
    let file = loader.map.add(&shown, text);
    let mut diagnostics = Diagnostics::new();
    let script = ::stf::parse(&loader.map, file, &mut diagnostics);
    if script.as_ref().is_some_and(::stf::Script::is_empty) {
        let message = "the file has no commands, so it tests nothing";
        let remedy = "write packets and what is expected of them: `packet 0 00 aa`, `expect 1 00 aa`";
        diagnostics.push(Diagnostic::warning("no-tests", Span::new(file, 0, 0), message).help(remedy));
    }
    let test = script.and_then(|script| ::stf::bind(&script, program, &mut diagnostics));
    output.diagnostics(&loader.map, &diagnostics);
    let Some(test) = test else {
        if args.json {
            output.print(&format!("{}\n", serde_json::json!({ "test": shown, "passed": false })))?
        } else {
            output.print(&format!("{} {shown}\n", output.bold("FAIL")))?
        }
        return Ok(None);
    };
    let options = RunOptions { seed: args.seed, ..RunOptions::default() };
    let mut report = test.run(program, &options).map_err(|error| Failure::Input(error.to_string()))?;
    for trace in report.packets.iter_mut().filter_map(|packet| packet.trace.as_mut()) {
        trace.show_source(&loader.map);
    }
    if args.json {
        let mut json = report.to_json(&loader.map, args.trace);
        json["test"] = serde_json::Value::String(shown);
        output.print(&format!("{json}\n"))?;
        return Ok(Some(report));
    }
    if args.trace {
        for (number, packet) in (1..).zip(&report.packets) {
            let title = format!("packet {number}, {}", loader.map.position(packet.at));
            output.print(&format!("{}\n", output.bold(&title)))?;
            let trace = packet.trace.as_ref().map_or("not traced\n".to_owned(), |trace| trace.render());
            output.print(&format!("{trace}\n"))?;
        }
    }
    // What the script asked to be read is worth showing where someone looks closer.
    if args.trace || !report.passed() {
        for reading in &report.readings {
            output.print(&format!("{}: {}\n", loader.map.position(reading.at), reading.text))?;
        }
    }
    let verdict = if report.passed() { "PASS" } else { "FAIL" };
    output.print(&format!("{} {shown}\n", output.bold(verdict)))?;
    if !report.passed() {
        output.print(&indented(&report.render(&loader.map)))?;
        if !args.trace {
            output.print("  --trace shows what happened to the packets, step by step.\n")?;
        }
    }
    Ok(Some(report))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}
