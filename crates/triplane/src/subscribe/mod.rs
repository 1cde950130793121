//! Runs `triplane subscribe`: rules over the contents of messages, compiled into a program's tables.

pub mod args;
mod diff;
mod document;
mod entry_set;
mod explain;
mod json;
mod live;
mod load;
mod memory;
mod network;
mod order;
mod packet;
mod replication;
mod report;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use subscribe_p4::entries::Installer;

use crate::output::{Failure, Output};
use args::{CompileArgs, ProgramArgs, RulesArgs, SubscribeArgs, SubscribeCommand};
use load::Loaded;
use replication::{options_for, options_without_program, options_without_rules, ports};

/// Runs `triplane subscribe`.
pub fn run(args: &SubscribeArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        SubscribeCommand::Check(args) => check(args, output),
        SubscribeCommand::Program(args) => program(args, output),
        SubscribeCommand::Compile(args) => compile(args, output),
        SubscribeCommand::Network(args) => network::network(args, output),
        SubscribeCommand::Explain(args) => explain::explain(args, output),
        SubscribeCommand::Diff(args) => diff::diff(args, output),
        SubscribeCommand::Serve(args) => live::serve(args, output),
        SubscribeCommand::Add(args) => live::add(args, output),
        SubscribeCommand::Remove(args) => live::remove(args, output),
        SubscribeCommand::List(args) => live::list(args, output),
        SubscribeCommand::Watch(args) => live::watch(args, output),
    }
}

fn check(args: &RulesArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.format, output)?;
    let compiled = loaded.compile(&args.rules, &options_without_program(), output)?;
    covered(&compiled, &loaded, MAX_CHECKED, output);
    output.note(&compiled.summary());
    Ok(())
}

/// Reports rules that add nothing to the others, and rules that only `drop` messages which another rule delivers. The
/// search takes bounded time. Reports at most `most` of each kind.
fn covered(compiled: &load::Compiled, loaded: &Loaded, most: usize, output: &Output) {
    let possible = loaded.rules.possible(&loaded.format);
    let covered = compiled.subscriptions.lint_covered(&possible);
    let vetoes = compiled.subscriptions.lint_ineffective_drops(&possible);
    let mut findings = diagnostics::Diagnostics::new();
    let shown = covered.found.iter().take(most).chain(vetoes.iter().take(most));
    for finding in shown.filter_map(|useless| useless.diagnostic(&compiled.subscriptions, loaded.map())) {
        findings.push(finding);
    }
    output.diagnostics(loaded.map(), &findings);
    let more = covered.found.len().saturating_sub(most);
    if more > 0 {
        let what = report::counted(more, "more rule is", "more rules are");
        output.note(&format!("{what} redundant"));
    }
    if !covered.is_complete {
        output.note("there are too many rules, or they overlap too much, to find all redundant ones");
    }
}

fn program(args: &ProgramArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.format, output)?;
    let rules = loaded.parse(&args.rules, output)?;
    loaded.choose_order(&rules);
    let options = match rules.is_empty() {
        true => options_without_rules(&args.shape, &loaded),
        false => options_for(&args.shape, ports(&rules), v1model::CPU_PORT),
    };
    deliver(&loaded.program(&options), args.output.as_deref(), output)
}

fn compile(args: &CompileArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.rules.format, output)?;
    loaded.rules.format.controller_port = Some(args.cpu_port);
    // An existing program was made without rules: with the order of the annotations, and for a number of ports.
    let made = options_without_rules(&args.shape, &loaded);
    if args.program.is_none() {
        loaded.limit_ports(&made);
    }
    let rules = loaded.parse(&args.rules.rules, output)?;
    let options = match args.program {
        Some(_) => {
            loaded.choose_order(&rules);
            options_for(&args.shape, ports(&rules), args.cpu_port)
        }
        None => made,
    };
    let suggestion = order::OrderSuggestion::search(&loaded, &rules, args.program.is_some());
    let compiled = match loaded.merge(rules, &options, output) {
        Ok(compiled) => compiled,
        Err(failure) => {
            suggestion.print(&loaded, options.target, None, args.program.is_some(), output);
            return Err(failure);
        }
    };
    covered(&compiled, &loaded, MAX_COMPILED, output);
    let mut installer = Installer::new(&loaded.format, &loaded.rules, &loaded.layout, &options, args.cpu_port);
    let updates = installer.install(&compiled.tables).map_err(|many| Failure::Input(many.to_string()))?;
    deliver_with(args.output.as_deref(), output, |out| document::write(&updates, out))?;
    if let Some(path) = &args.program {
        deliver(&loaded.program(&options), Some(path), output)?;
    }
    if let Some(path) = &args.dot {
        let drawn = compiled.subscriptions.dot(MAX_DRAWN).ok_or_else(|| {
            Failure::Usage(format!("the diagram has more than {MAX_DRAWN} nodes, too many to draw: omit --dot"))
        })?;
        deliver(&drawn, Some(path), output)?;
    }
    output.note(&compiled.summary());
    if args.stats {
        let stages = subscribe_p4::stage_tables(&loaded.rules, &loaded.layout, &options);
        output.note(&report::tables(&stages, &updates));
        output.note(&report::kinds(&compiled.subscriptions, &args.shape));
        output.note(&report::stats(&compiled.subscriptions.stats()));
        output.note(&order::describe_order(&loaded));
    }
    suggestion.print(&loaded, options.target, Some(compiled.tables.entries.len()), args.program.is_some(), output);
    Ok(())
}

/// Maximum number of rules without effect that `check` reports. `compile`, whose main task is another, reports at most
/// [`MAX_COMPILED`].
const MAX_CHECKED: usize = 100;
const MAX_COMPILED: usize = 5;

/// Maximum number of nodes of a diagram that is drawn.
const MAX_DRAWN: usize = 2_000;

/// Writes the text to the file, or prints it if there is none.
fn deliver(text: &str, path: Option<&Path>, output: &Output) -> Result<(), Failure> {
    deliver_with(path, output, |out| out.write_all(text.as_bytes()))
}

/// Lets `write` write to the file, or to standard output if there is none.
fn deliver_with(
    path: Option<&Path>,
    output: &Output,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let Some(path) = path else { return output.print_with(write) };
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}
