//! Runs `triplane check`: reports every mistake in a program, and in its entries file if one is given.

mod elastic;
mod kernel;
mod resilient;

use std::sync::Arc;

use serde_json::json;
use v1model::{Config, Executor, Switch};

use crate::cli::CheckArgs;
use crate::load::{Checked, Loader, NotRunnable};
use crate::output::{Failure, Output, counted, diagnostic_json};

/// Checks.
pub fn run(args: &CheckArgs, output: &Output) -> Result<(), Failure> {
    let mut loader = Loader::open(&args.program)?;
    let (program, other) = match loader.compile_or_check() {
        Some(Checked::Program(compiled)) => (Some(Arc::new(compiled.ir)), None),
        Some(Checked::Other(other)) => (None, Some(other)),
        None => (None, None),
    };
    if let Some(program) = program.as_ref().filter(|_| !args.entries.is_empty()) {
        // A switch that no packet comes to says what it would not take: a table that is full, for one.
        let config = Config { executor: Executor::Interpreter, ..Config::default() };
        let made = Switch::new(program.clone(), config);
        let mut switch = made.map_err(|error| Failure::Input(error.to_string()))?;
        for path in &args.entries {
            let text = crate::load::read(path, entries_file::MAX_FILE_BYTES)?;
            loader.fill(&path.display().to_string(), &text, &mut switch);
        }
    }
    if args.json {
        let findings: Vec<_> =
            loader.diagnostics.in_order().into_iter().map(|finding| diagnostic_json(finding, &loader.map)).collect();
        let mut found = json!({ "findings": findings, "dropped": loader.diagnostics.dropped() });
        if let Some(program) = &program {
            found["resilient"] = resilient::to_json(program);
            found["elastic"] = elastic::to_json(program);
            if args.kernel {
                found["kernel"] = kernel::KernelReport::new(program).to_json();
            }
        }
        output.print(&format!("{found:#}\n"))?;
    } else {
        output.diagnostics(&loader.map, &loader.diagnostics);
    }
    if let Some(summary) = loader.summary() {
        let found = summary.split(';').next().unwrap_or_default().to_owned();
        return Err(Failure::Input(found));
    }
    if !args.json {
        let found = program.as_deref().map(describe).or(other.map(describe_other)).unwrap_or_default();
        output.print(&format!("{}: {found}\n", args.program.program.display()))?;
        output.print(&program.as_deref().map(resilient::to_text).unwrap_or_default())?;
        output.print(&program.as_deref().map(elastic::to_text).unwrap_or_default())?;
        if let Some(program) = program.as_deref().filter(|_| args.kernel) {
            output.print(&kernel::KernelReport::new(program).to_text())?;
        }
    }
    if let (None, Some(path)) = (&program, args.entries.first()) {
        let path = path.display();
        return Err(Failure::Usage(format!("{path} cannot be checked: the program is not a v1model program")));
    }
    Ok(())
}

/// Describes a source that has no errors and cannot run, and what it lacks.
fn describe_other(other: NotRunnable) -> String {
    const REMEDY: &str = "`triplane check --help` shows how a program ends";
    match other {
        NotRunnable::Foreign(package) => {
            format!("no language errors; `main` is a `{package}`, and only programs for v1model (`V1Switch`) can run")
        }
        NotRunnable::Empty => format!("the file is empty, so there is no `main` to run; {REMEDY}"),
        NotRunnable::Format => {
            format!("no language errors; there is no `main`; {}", crate::load::FORMAT_HELP)
        }
        NotRunnable::Library => {
            format!("no language errors; there is no `main`, so it is a library for programs to include; {REMEDY}")
        }
    }
}

/// Describes a program's contents in one line.
fn describe(program: &ir::Program) -> String {
    let objects = [
        (program.headers.values().filter(|header| !header.local).count(), "header"),
        (program.tables.len(), "table"),
        (program.actions.len(), "action"),
        (program.counters.len(), "counter"),
        (program.registers.len(), "register"),
        (program.meters.len(), "meter"),
    ];
    let parts =
        objects.iter().filter(|(number, _)| *number > 0).map(|(number, one)| counted(*number, one, &format!("{one}s")));
    format!("no errors ({} for {})", parts.collect::<Vec<_>>().join(", "), program.arch).replace("( for", "(for")
}
