//! `triplane subscribe`: rules over the contents of messages, compiled into a program's tables.

pub mod args;
mod document;
mod explain;
pub mod fit;
mod live;
mod load;
mod network;
mod report;

use std::path::Path;

use anyhow::Context;
use subscribe_p4::entries::Installer;

use crate::output::{Failure, Output};
use args::{CompileArgs, ProgramArgs, RulesArgs, ShapeArgs, SubscribeArgs, SubscribeCommand};
use load::Loaded;

/// Does what `triplane subscribe` was asked for.
pub fn run(args: &SubscribeArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        SubscribeCommand::Check(args) => check(args, output),
        SubscribeCommand::Program(args) => program(args, output),
        SubscribeCommand::Compile(args) => compile(args, output),
        SubscribeCommand::Network(args) => network::network(args, output),
        SubscribeCommand::Explain(args) => explain::explain(args, output),
        SubscribeCommand::Diff(args) => explain::diff(args, output),
        SubscribeCommand::Serve(args) => live::serve(args, output),
        SubscribeCommand::Add(args) => live::add(args, output),
        SubscribeCommand::Remove(args) => live::remove(args, output),
        SubscribeCommand::List(args) => live::list(args, output),
        SubscribeCommand::Watch(args) => live::watch(args, output),
    }
}

fn check(args: &RulesArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.format, output)?;
    let mut compiled = loaded.compile(&args.rules, &options(None), output)?;
    covered(&mut compiled, &loaded, output);
    output.note(&compiled.summary());
    Ok(())
}

/// Shows rules that others make superfluous, as far as that is found in bounded time.
fn covered(compiled: &mut load::Compiled, loaded: &Loaded, output: &Output) {
    /// Comparisons of two rules: a second or so of ordinary ones.
    const STEPS: usize = 200_000;
    // What is too large to be compared is let be.
    let found = compiled.subscriptions.covered(STEPS).unwrap_or_default();
    let mut findings = source::Diagnostics::new();
    for finding in found.iter().filter_map(|useless| useless.diagnostic(&compiled.subscriptions, loaded.map())) {
        findings.push(finding);
    }
    output.diagnostics(loaded.map(), &findings);
}

fn program(args: &ProgramArgs, output: &Output) -> Result<(), Failure> {
    let loaded = Loaded::format(&args.format, output)?;
    deliver(&loaded.program(&options(Some(&args.shape))), args.output.as_deref(), output)
}

fn compile(args: &CompileArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.rules.format, output)?;
    loaded.rules.format.controller_port = Some(args.cpu_port);
    let options = options(Some(&args.shape));
    let compiled = loaded.compile(&args.rules.rules, &options, output)?;
    let mut installer = Installer::new(&loaded.format, &loaded.rules, &loaded.layout, &options, args.cpu_port);
    let updates = installer.install(&compiled.tables).map_err(|many| Failure::Input(many.to_string()))?;
    deliver(&document::text(&updates), args.output.as_deref(), output)?;
    if let Some(path) = &args.program {
        deliver(&loaded.program(&options), Some(path), output)?;
    }
    if let Some(path) = &args.dot {
        let drawn = compiled.subscriptions.dot(MOST_DRAWN).ok_or_else(|| {
            Failure::Usage(format!("the diagram has more than {MOST_DRAWN} nodes, too many to draw: leave out --dot"))
        })?;
        deliver(&drawn, Some(path), output)?;
    }
    output.note(&compiled.summary());
    if args.stats {
        let stages = subscribe_p4::stage_tables(&loaded.rules, &loaded.layout, &options);
        output.note(&report::tables(&stages, &updates));
        output.note(&report::kinds(&compiled.subscriptions, &args.shape));
        output.note(&report::stats(&compiled.subscriptions.stats()));
    }
    Ok(())
}

/// Nodes of the largest diagram that is drawn.
const MOST_DRAWN: usize = 2_000;

/// How programs are written unless the user says otherwise.
fn options(shape: Option<&ShapeArgs>) -> subscribe_p4::Options {
    let default = subscribe_p4::Options::default();
    subscribe_p4::Options {
        target: shape.map_or(default.target, ShapeArgs::target),
        messages_per_pass: shape.and_then(|shape| shape.messages_per_pass),
        ..default
    }
}

/// Writes to the file, or prints.
fn deliver(text: &str, path: Option<&Path>, output: &Output) -> Result<(), Failure> {
    match path {
        None => output.print(text),
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
            Ok(())
        }
    }
}
