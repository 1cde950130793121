//! Runs the `triplane` command. Everything that people see is printed here and in the modules below; the crates it
//! stands on return values.

mod authorize;
mod bench;
mod bmv2;
mod cli;
mod commands;
mod control;
mod ctl;
mod demo;
mod entries;
mod kernel;
mod lab;
mod load;
mod market;
mod memory;
mod messages;
mod metrics;
mod output;
mod packet_source;
mod port_conflicts;
mod privileges;
mod progress;
mod rows;
mod server_options;
mod signals;
mod state;
mod store;
mod subscribe;
mod summary;
mod telemetry;
mod tiny_counts;
mod tls_files;
mod tpp;
mod types;
mod warning_kinds;

use std::process::ExitCode;

use clap::Parser;

use bmv2::Tool;
use cli::{Cli, Command};
use output::{Failure, Output};

fn main() -> ExitCode {
    if let Some(asked) = ctl::complete::asked() {
        // A shell that receives no candidates completes by the command line's grammar.
        let _ = ctl::complete::run(&asked, &Output::new(output::Color::Never));
        return ExitCode::SUCCESS;
    }
    let mut words = std::env::args_os();
    if let Some(tool) = words.next().and_then(|name| Tool::called_as(&name)) {
        return bmv2::run(tool, &words.collect::<Vec<_>>(), &Output::new(output::Color::Auto));
    }
    let cli = match Cli::try_parse_from(ctl::args::with_options_first(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return Output::new(output::Color::Auto).refusal(&error),
    };
    let output = Output::new(cli.color);
    let result = match &cli.command {
        Command::Demo(args) => commands::demo::run(args, &output),
        Command::Run(args) => commands::run::run(args, &output),
        Command::Ctl(args) => ctl::run(args, &output),
        Command::Bench(args) => commands::bench::run(args, &output),
        Command::Check(args) => commands::check::run(args, &output),
        Command::Build(args) => commands::build::run(args, &output),
        Command::Lab(args) => lab::run(args, &output),
        Command::Store(args) => store::run(args, &output),
        Command::Memory(args) => memory::run(args, &output),
        Command::Resilient(args) => rows::run(args, &output),
        Command::Subscribe(args) => subscribe::run(args, &output),
        Command::Tpp(args) => tpp::run(args, &output),
        Command::Market(args) => market::run(args, &output),
        Command::Dump(args) => commands::dump::run(args, &output),
        Command::Trace(args) => commands::trace::run(args, &output),
        Command::Stf(args) => commands::stf::run(args, &output),
        Command::P4Info(args) => commands::p4info::run(args, &output),
        Command::SimpleSwitchGrpc(args) => return bmv2::run(Tool::SimpleSwitchGrpc, &args.words, &output),
        Command::SimpleSwitch(args) => return bmv2::run(Tool::SimpleSwitch, &args.words, &output),
        Command::P4c(args) => return bmv2::run(Tool::P4c, &args.words, &output),
        Command::P4cBm2Ss(args) => return bmv2::run(Tool::P4cBm2Ss, &args.words, &output),
        Command::Shims(args) => bmv2::shims::run(args, &output),
        Command::Completions { shell } => commands::completions::run(*shell, &output),
    };
    match result {
        Ok(()) => ExitCode::from(output::exit::OK),
        Err(Failure::Closed) => ExitCode::from(output::exit::OK),
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}
