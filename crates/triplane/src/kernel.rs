//! Runs programs in the kernel for `triplane run`: the ports `N=kernel:INTERFACE`.

use anyhow::anyhow;
use clap::ValueEnum;
use ports::{PortKind, PortSpec};
use runtime::{RunConfig, RunReport};
use serde_json::{Value, json};
use v1model::Switch;
use v1model_runtime::hooks;
use v1model_runtime::kernel::{KernelPorts, KernelRun, KernelSummary, NotInKernel};

use crate::cli::RunArgs;
use crate::output::{Failure, Output, counted};

/// Whether `kernel:` ports run the program in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KernelMode {
    /// Where that is possible; elsewhere they are AF_XDP ports, and a note gives the reason.
    #[default]
    Auto,
    /// Yes, or the run fails.
    Require,
    /// No: they are AF_XDP ports.
    Off,
}

/// Whether a port is to run the program in the kernel.
fn is_kernel_port(spec: &PortSpec) -> bool {
    matches!(&spec.kind, PortKind::Xdp { settings, .. } if settings.in_kernel)
}

/// Runs the program in the kernel on the ports that ask for it, and notes what does and what does not. Called before
/// the process gives up its privileges.
pub fn attach(
    args: &RunArgs,
    specs: &[PortSpec],
    is_placeholder: bool,
    config: &mut RunConfig<Switch>,
    output: &Output,
) -> Result<Option<KernelRun>, Failure> {
    let is_wanted = args.kernel != KernelMode::Off && specs.iter().any(is_kernel_port);
    if !is_wanted {
        return Ok(None);
    }
    let result = match obstacle(args, is_placeholder) {
        Some(obstacle) => Err(obstacle.to_owned()),
        None => attach_ports(specs, config).map_err(|error| error.to_string()),
    };
    match result {
        Ok(run) => {
            describe(args, specs, &run.summary, output)?;
            Ok(Some(run))
        }
        Err(reason) if args.kernel == KernelMode::Require => {
            Err(Failure::Environment(anyhow!("the program cannot run in the kernel: {reason}")))
        }
        Err(reason) => {
            output.note(&format!("no packets are processed in the kernel, all by the switch: {reason}"));
            Ok(None)
        }
    }
}

/// Notes what runs in the kernel and what does not.
fn describe(args: &RunArgs, specs: &[PortSpec], summary: &KernelSummary, output: &Output) -> Result<(), Failure> {
    output.note(&summary.to_string());
    for (port, name) in &summary.not_sent_to {
        output.note(&format!(
            "port {port}: packets to `{name}` leave through AF_XDP: the device accepts no redirected frames; on a veth, \
             `ethtool -K PEER gro on` at the other end lets it"
        ));
    }
    if !summary.without_tags.is_empty() {
        let ports: Vec<String> = summary.without_tags.iter().map(ToString::to_string).collect();
        output.note(&format!(
            "the program does not see VLAN tags that senders at port {} keep beside their frames: write \
             N=kernel:INTERFACE,gpl if it is offered under the GPL, or see docs/kernel.md",
            ports.join(", ")
        ));
    }
    if !summary.counts_losses {
        output.note("frames that a device loses after the kernel sent them are not counted: this kernel cannot");
    }
    let is_in_kernel = |spec: &&PortSpec| summary.ports.iter().any(|(id, _)| id.0 == u32::from(spec.number));
    let others = specs.iter().filter(|spec| is_kernel_port(spec)).filter(|spec| !is_in_kernel(spec));
    let others: Vec<String> = others.map(|spec| spec.number.to_string()).collect();
    match (&others[..], args.kernel) {
        ([], _) => Ok(()),
        (_, KernelMode::Require) => Err(Failure::Environment(anyhow!("--kernel require: {}", not_in_driver(&others)))),
        _ => {
            output.note(&not_in_driver(&others));
            Ok(())
        }
    }
}

fn not_in_driver(ports: &[String]) -> String {
    let (noun, verb) = if ports.len() == 1 { ("port", "does") } else { ("ports", "do") };
    format!("{noun} {} {verb} not use AF_XDP in the driver, so the switch processes all its packets", ports.join(", "))
}

/// Returns the option with which no packet may be processed in the kernel.
fn obstacle(args: &RunArgs, is_placeholder: bool) -> Option<&'static str> {
    let obstacles = [
        (is_placeholder, "there is no program yet, and a pipeline that a controller sets runs over AF_XDP"),
        (args.tpp.is_some(), "--tpp executes programs in packets, which only the switch can"),
        (args.store.is_some(), "--store replicates state, which only the switch can"),
        (!args.memory.is_empty(), "--memory keeps tables in servers, which only the switch can ask"),
        (args.interpret, "--interpret asks for the interpreter"),
    ];
    obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
}

fn attach_ports(specs: &[PortSpec], config: &mut RunConfig<Switch>) -> Result<KernelRun, NotInKernel> {
    let mut kernel_ports = KernelPorts::default();
    let is_gpl = |spec: &PortSpec| matches!(&spec.kind, PortKind::Xdp { settings, .. } if settings.is_gpl);
    kernel_ports.set_gpl(specs.iter().any(is_gpl));
    for (spec, port) in specs.iter().zip(&config.ports).filter(|(spec, _)| is_kernel_port(spec)) {
        debug_assert_eq!(u32::from(spec.number), port.id.0, "ports are opened in their order");
        if let Some(attachment) = port.drivers.first().and_then(|driver| driver.attachment()) {
            kernel_ports.add(port.id, attachment);
        }
    }
    let (hook, run) = kernel_ports.attach(&mut config.switch)?;
    config.hooks.push(hooks::kernel(hook));
    Ok(run)
}

/// Counts of packets by where they were processed.
struct Shares {
    in_kernel: u64,
    by_switch: u64,
}

impl Shares {
    fn of(report: &RunReport<Switch>) -> Option<Shares> {
        let registry = report.switch.registry();
        let received = |id| registry.get(&format!("port.{id}.rx.packets")).unwrap_or(0);
        let all: u64 = report.ports.iter().map(|port| received(port.id)).sum();
        let in_kernel: u64 = report.ports.iter().map(|port| report.switch.kernel_count(port.id).received.packets).sum();
        report.switch.has_kernel_code().then_some(Shares { in_kernel, by_switch: all.saturating_sub(in_kernel) })
    }
}

/// Returns the line of the summary about the kernel; empty if the program did not run there.
pub fn summary_text(report: &RunReport<Switch>) -> String {
    let Some(Shares { in_kernel, by_switch }) = Shares::of(report) else { return String::new() };
    let all = in_kernel + by_switch;
    let share = if all == 0 { 0.0 } else { in_kernel as f64 * 100.0 / all as f64 };
    format!(
        "{} in the kernel ({share:.1} %), {by_switch} by the switch\n",
        counted(in_kernel as usize, "packet", "packets")
    )
}

/// Returns the counts for the summary as JSON; null if the program did not run in the kernel.
pub fn summary_json(report: &RunReport<Switch>) -> Value {
    let Some(Shares { in_kernel, by_switch }) = Shares::of(report) else { return Value::Null };
    json!({ "packets": in_kernel, "switch_packets": by_switch })
}
