//! Runs programs in the kernel for `triplane run`: the ports `N=kernel:INTERFACE`.

use anyhow::anyhow;
use clap::ValueEnum;
use lab::KernelUse;
use ports::{PortKind, PortSpec};
use runtime::{RunConfig, RunReport};
use serde_json::{Value, json};
use v1model::Switch;
use v1model_runtime::hooks;
use v1model_runtime::kernel::{KernelPorts, KernelRun, KernelSummary, NotInKernel, RestrictLoader, not_in_kernel};

use crate::output::{Failure, Output, counted};

/// Whether `kernel:` ports run the program in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KernelMode {
    /// If possible; otherwise the switch processes all packets, and a note gives the reason.
    #[default]
    Auto,
    /// Always: fail if the program cannot run in the kernel on every kernel: port.
    Require,
    /// Never: treat kernel: ports as AF_XDP ports.
    Off,
}

impl From<KernelMode> for KernelUse {
    fn from(mode: KernelMode) -> KernelUse {
        match mode {
            KernelMode::Auto => KernelUse::Auto,
            KernelMode::Require => KernelUse::Require,
            KernelMode::Off => KernelUse::Off,
        }
    }
}

/// Where the programs of a run come from.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSource {
    /// The program only drops packets until a controller sets a pipeline.
    pub is_placeholder: bool,
    /// Controllers may set pipelines.
    pub may_change: bool,
}

/// Whether a port is to run the program in the kernel.
fn is_kernel_port(spec: &PortSpec) -> bool {
    matches!(&spec.kind, PortKind::Xdp { settings, .. } if settings.in_kernel)
}

/// Runs the program in the kernel on the ports that ask for it, and notes what does and what does not. Called before
/// the process gives up its privileges. `obstacle` is the reason why no packet may be processed there, if the run has
/// one.
pub fn attach(
    (mode, obstacle): (KernelMode, Option<&str>),
    specs: &[PortSpec],
    source: ProgramSource,
    config: &mut RunConfig<Switch>,
    output: &Output,
) -> Result<Option<KernelRun>, Failure> {
    let is_wanted = mode != KernelMode::Off && specs.iter().any(is_kernel_port);
    if !is_wanted {
        return Ok(None);
    }
    let attached = match obstacle {
        Some(obstacle) => Err(obstacle.to_owned()),
        None => attach_ports(specs, source, config, output).map_err(|error| error.to_string()),
    };
    for (port, reason) in attached.iter().flat_map(|run| &run.beyond).filter(|_| mode == KernelMode::Auto) {
        output.note(&format!("port {port} does not run the program in the kernel: {reason}"));
    }
    let reason = match attached {
        Ok(run) if mode == KernelMode::Require && !run.beyond.is_empty() => {
            let (port, reason) = &run.beyond[0];
            format!("port {port}: {reason}")
        }
        Ok(run) => match &run.summary {
            Ok(summary) => {
                describe(mode, specs, &run, summary, output)?;
                return Ok(Some(run));
            }
            Err(NotInKernel::NoProgram) => return Ok(Some(run)),
            Err(error) if mode == KernelMode::Require => error.to_string(),
            Err(error) => {
                output.note(&not_in_kernel(error));
                return Ok(Some(run));
            }
        },
        Err(reason) => reason,
    };
    if mode == KernelMode::Require {
        return Err(Failure::Environment(anyhow!("the program cannot run in the kernel: {reason}")));
    }
    output.note(&not_in_kernel(&reason));
    Ok(None)
}

/// Notes what runs in the kernel and what does not.
fn describe(
    mode: KernelMode,
    specs: &[PortSpec],
    run: &KernelRun,
    summary: &KernelSummary,
    output: &Output,
) -> Result<(), Failure> {
    output.note(&summary.to_string());
    for (port, name) in &summary.not_sent_to {
        output.note(&format!(
            "port {port}: `{name}` does not accept redirected frames, so the switch sends all packets to it; if it is a \
             veth, run `ethtool -K PEER gro on` for its peer"
        ));
    }
    if !run.without_tags.is_empty() {
        let ports: Vec<String> = run.without_tags.iter().map(ToString::to_string).collect();
        output.note(&format!(
            "on port {}, the program does not see VLAN tags that were stripped from frames (VLAN offload): write \
             N=kernel:INTERFACE,gpl if its licence is GPL-compatible, or see docs/kernel.md",
            ports.join(", ")
        ));
    }
    if let Some(error) = &run.losses_error {
        output.note(&format!("frames that a device drops after a redirect are not counted: {error}"));
    }
    for (port, reason) in &summary.refused {
        output.note(&format!("port {port} does not run the program in the kernel: {reason}"));
    }
    let known = || summary.ports.iter().chain(&summary.refused).chain(&run.beyond);
    let is_known = |spec: &&PortSpec| known().any(|(id, _)| id.0 == u32::from(spec.number));
    let others = specs.iter().filter(|spec| is_kernel_port(spec)).filter(|spec| !is_known(spec));
    let others: Vec<String> = others.map(|spec| spec.number.to_string()).collect();
    if !others.is_empty() {
        output.note(&not_in_driver(&others));
    }
    match mode {
        KernelMode::Require if !(others.is_empty() && summary.refused.is_empty()) => Err(Failure::Environment(
            anyhow!("--kernel require: not every kernel: port runs the program in the kernel"),
        )),
        _ => Ok(()),
    }
}

fn not_in_driver(ports: &[String]) -> String {
    let (noun, verb, whose) = if ports.len() == 1 { ("port", "does", "its") } else { ("ports", "do", "their") };
    let ports = ports.join(", ");
    format!(
        "{noun} {ports} {verb} not run XDP in the driver (native mode), so the switch processes all {whose} packets"
    )
}

fn attach_ports(
    specs: &[PortSpec],
    source: ProgramSource,
    config: &mut RunConfig<Switch>,
    output: &Output,
) -> Result<KernelRun, NotInKernel> {
    let mut kernel_ports = KernelPorts::default();
    let is_gpl = |spec: &PortSpec| matches!(&spec.kind, PortKind::Xdp { settings, .. } if settings.is_gpl);
    kernel_ports.set_gpl(specs.iter().any(is_gpl));
    for (spec, port) in specs.iter().zip(&config.ports).filter(|(spec, _)| is_kernel_port(spec)) {
        debug_assert_eq!(u32::from(spec.number), port.id.0, "ports are opened in their order");
        if let Some(attachment) = port.drivers.first().and_then(|driver| driver.attachment()) {
            kernel_ports.add(port.id, attachment);
        }
    }
    let live_output = *output;
    let on_note = Box::new(move |note: &str, _| live_output.note(note));
    let restrict = source.may_change.then(loader_restriction);
    let (hook, run) = kernel_ports.attach(&mut config.switch, source.is_placeholder, restrict, on_note)?;
    config.hooks.push(hooks::kernel(hook));
    Ok(run)
}

/// Returns the function that restricts the thread that loads the pipelines of controllers.
pub fn loader_restriction() -> RestrictLoader {
    Box::new(restrict_loader)
}

/// Leaves the thread that loads programs with the capabilities for that.
fn restrict_loader() -> Result<(), String> {
    ::privileges::restrict_program_loader().map_err(|error| error.to_string())
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

/// Formats the numbers of packets by where they were processed.
pub fn share_text(in_kernel: u64, by_switch: u64) -> String {
    let all = in_kernel + by_switch;
    let share = if all == 0 { 0.0 } else { in_kernel as f64 * 100.0 / all as f64 };
    let packets = counted(in_kernel as usize, "packet", "packets");
    format!("{packets} in the kernel ({share:.1} %), {by_switch} in the switch")
}

/// Returns the line of the summary about the kernel; empty if the program did not run there.
pub fn summary_text(report: &RunReport<Switch>) -> String {
    let Some(Shares { in_kernel, by_switch }) = Shares::of(report) else { return String::new() };
    let mut text = format!("{}\n", share_text(in_kernel, by_switch));
    for port in &report.ports {
        let crowded = report.switch.kernel_count(port.id).crowded.packets;
        if crowded > 0 {
            text += &format!(
                "port {} ({}): {crowded} were dropped on receive: the switch was behind with their flows\n",
                port.id, port.name
            );
        }
    }
    text
}

/// Returns the counts for the summary as JSON; null if the program did not run in the kernel.
pub fn summary_json(report: &RunReport<Switch>) -> Value {
    let Some(Shares { in_kernel, by_switch }) = Shares::of(report) else { return Value::Null };
    json!({ "packets": in_kernel, "switch_packets": by_switch })
}
