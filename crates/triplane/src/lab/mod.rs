//! Runs `triplane lab`: networks of several switches and hosts.
//!
//! [`network`] brings a topology, its programs and entries together; [`simulate`] runs it in virtual time, and
//! [`report`], [`series`] (of [`tables`]) and [`plot`] (also as [`picture`]s) show the results. [`live`] runs it with
//! namespaces and real links.

pub mod args;
mod int;
mod kernel_plan;
mod link_counts;
mod live;
mod members;
mod minions;
mod narrow_links;
mod network;
#[cfg(feature = "parquet")]
mod parquet;
mod picture;
mod plot;
mod relaunch;
mod remote_tables;
mod replication;
mod report;
mod series;
mod shims;
mod simulate;
mod simulated_memory;
mod simulated_operator;
mod simulated_store;
mod tables;
mod timeline;
mod timeline_svg;
mod tiny;
mod wanted;
mod windows;
mod writes;

use lab::Shape;
use lab::generate::{NetworkKind, generate};

use crate::memory;
use crate::output::{Failure, Output};
use args::{LabArgs, LabCommand, NewArgs, NewKind};

/// Runs the given subcommand of `triplane lab`.
pub fn run(args: &LabArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        LabCommand::New(args) => new(args, output),
        LabCommand::Check(args) => {
            let network = network::Network::load(&args.topology, v1model::Executor::Interpreter, output)?;
            output.note(&network.describe());
            Ok(())
        }
        LabCommand::Sim(args) => simulate::run(args, output),
        LabCommand::Up(args) => live::up(args, output),
        LabCommand::Run(args) => live::run(args, output),
        LabCommand::Play(args) => live::play(args, output),
        LabCommand::Down(args) => live::down(args, output),
        LabCommand::Exec(args) => live::exec(&args.lab, &args.host, &args.command),
        LabCommand::Shell(args) => live::exec(&args.lab, &args.host, &[]),
        LabCommand::Status { lab, json } => live::status(lab, *json, output),
        LabCommand::Fail(args) => live::fail(args, true, output),
        LabCommand::Heal(args) => live::fail(args, false, output),
        LabCommand::Suspend(args) => live::suspend(args, true, output),
        LabCommand::Resume(args) => live::suspend(args, false, output),
        LabCommand::Link(args) => live::link(args, output),
        LabCommand::Pcap(args) => live::pcap(args, output),
        LabCommand::Allowed => Ok(lab_live::check_permission()?),
        LabCommand::Daemon(args) => live::daemon(args, output),
        LabCommand::Switch(args) => live::switch(args, output),
        LabCommand::Store(args) => members::run_store(args, output),
        LabCommand::Operator(args) => members::run_operator(args, output),
        LabCommand::Shim(args) => shims::run(args, output),
        LabCommand::Memory(args) => memory::run_lab_server(args, output),
    }
}

fn new(args: &NewArgs, output: &Output) -> Result<(), Failure> {
    let default = Shape { rate: Some(lab::Rate::from_bps(1_000_000_000)), ..Shape::default() };
    let shape = Shape {
        rate: args.rate.map_or(default.rate, |rate| rate.0),
        delay: args.delay.unwrap_or(default.delay),
        queue: args.queue.unwrap_or(default.queue),
        ..default
    };
    let mut middle = shape;
    let kind = match args.kind {
        NewKind::Line { switches, hosts } => NetworkKind::Line { switches, hosts },
        NewKind::Ring { switches, hosts } => NetworkKind::Ring { switches, hosts },
        NewKind::Star { hosts } => NetworkKind::Star { hosts },
        NewKind::LeafSpine { leaves, spines, hosts } => NetworkKind::LeafSpine { leaves, spines, hosts },
        NewKind::FatTree { k } => NetworkKind::FatTree { k },
        NewKind::Dumbbell { hosts, middle_rate, middle_delay } => {
            middle.rate = middle_rate.map_or(middle.rate, |rate| rate.0);
            middle.delay = middle_delay.unwrap_or(middle.delay);
            NetworkKind::Dumbbell { hosts }
        }
        NewKind::Random { switches, extra, hosts, seed } => NetworkKind::Random { switches, extra, hosts, seed },
    };
    let topology = generate(kind, shape, middle, network::MAX_PORT)
        .map_err(|impossible| Failure::Usage(impossible.to_string()))?;
    output.print(&lab::emit(&topology))
}
