//! Runs the program of a live lab's switch in the kernel.

use lab_live::kernel_part::{KernelNotes, KernelPackets, KernelPart, KernelPort};
use resilient_switch::InBandSwitch;
use runtime::{Hook, HookContext};
use switch::{PortId, Time};
use v1model::{KernelPortCount, Switch};

use super::load::KernelLoader;
use super::{KernelHook, KernelPorts, KernelRun, NotInKernel, RestrictLoader, not_in_kernel};
use crate::LiveSwitch;

/// The source of a switch's program, and what it must do.
pub struct LiveProgram {
    /// It only drops packets until a controller sets a pipeline.
    pub is_placeholder: bool,
    /// Gives up the privileges of the thread that loads the pipelines of controllers; `None` if there are none.
    pub restrict_loader: Option<RestrictLoader>,
    /// It must run in the kernel on every port.
    pub is_required: bool,
}

/// The program of a switch in the kernel.
struct LiveKernel {
    ports: KernelPorts,
    /// Loads the pipelines of controllers, if there are any.
    loader: Option<KernelLoader>,
    run: Option<KernelRun>,
    hook: Option<KernelHook>,
}

/// Runs the program of a new switch in the kernel, on these ports, and notes what does and what does not.
///
/// # Errors
/// Returns the reason why no packet is processed there, and none will be; or if the program must run on every port, why
/// one does not.
pub fn attach_live(
    switch: &mut LiveSwitch<Switch>,
    kernel_ports: Vec<KernelPort>,
    program: LiveProgram,
    notes: &KernelNotes,
) -> Result<Box<dyn KernelPart<LiveSwitch<Switch>>>, String> {
    let Some(switch) = plain_mut(switch) else {
        return Err(not_in_kernel(&"the switch keeps state elsewhere, or passes on messages about it"));
    };
    let mut ports = KernelPorts::default();
    for KernelPort { id, attachment, is_diverted } in kernel_ports {
        if !attachment.is_native() && program.is_required {
            return Err(format!("port {id} does not run XDP in the driver (native mode)"));
        }
        switch.divert_kernel_port(id, is_diverted);
        ports.add(id, attachment);
    }
    let LiveProgram { is_placeholder, restrict_loader, is_required } = program;
    let may_change = restrict_loader.is_some();
    let later = notes.clone();
    let on_note = Box::new(move |note: &str, is_running| later.add_state(note, is_running));
    let attached = ports.clone().attach(switch, is_placeholder, restrict_loader, on_note);
    let (hook, run) = attached.map_err(|error| not_in_kernel(&error))?;
    let mut kernel = LiveKernel { ports, loader: hook.loader(), run: None, hook: None };
    if let Err(reason) = describe(&run, is_required, may_change, notes) {
        run.end(switch);
        kernel.ports.restore();
        return Err(reason);
    }
    (kernel.run, kernel.hook) = (Some(run), Some(hook));
    Ok(Box::new(kernel))
}

/// Notes what runs in the kernel and what does not. Returns an error if that is not enough.
fn describe(run: &KernelRun, is_required: bool, may_change: bool, notes: &KernelNotes) -> Result<(), String> {
    for (port, reason) in &run.beyond {
        if is_required {
            return Err(format!("port {port}: {reason}"));
        }
        notes.add(&format!("port {port} does not run the program in the kernel: {reason}"));
    }
    match &run.summary {
        Ok(summary) => {
            if let Some((port, reason)) = summary.refused.first().filter(|_| is_required) {
                return Err(format!("port {port}: {reason}"));
            }
            notes.add_state(&summary.to_string(), true);
            for (port, reason) in &summary.refused {
                notes.add(&format!("port {port} does not run the program in the kernel: {reason}"));
            }
        }
        Err(NotInKernel::NoProgram) => notes.add_state(&not_in_kernel(&NotInKernel::NoProgram), false),
        Err(error) if is_required => return Err(error.to_string()),
        // Other entries may fit, and another program may run there.
        Err(error) if may_change || matches!(error, NotInKernel::Entries(_)) => {
            notes.add_state(&not_in_kernel(error), false);
        }
        Err(error) => return Err(not_in_kernel(error)),
    }
    if let Some(error) = &run.losses_error {
        notes.add(&format!("frames that a device drops after a redirect are not counted: {error}"));
    }
    Ok(())
}

impl KernelPart<LiveSwitch<Switch>> for LiveKernel {
    fn take_hook(&mut self) -> Option<Box<dyn Hook<LiveSwitch<Switch>>>> {
        let hook = self.hook.take()?;
        Some(Box::new(InnerHook(hook)))
    }

    fn is_active(&self, switch: &LiveSwitch<Switch>) -> bool {
        switch.as_first().and_then(InBandSwitch::as_plain).is_some_and(Switch::is_in_kernel)
    }

    fn ports(&self) -> Vec<PortId> {
        self.ports.running()
    }

    fn check_devices(&self) {
        self.ports.check_devices();
    }

    fn packets(&self, switch: &LiveSwitch<Switch>, port: PortId) -> KernelPackets {
        let plain = switch.as_first().and_then(InBandSwitch::as_plain);
        let KernelPortCount { received, sent, crowded } = plain.map_or_else(Default::default, |s| s.kernel_count(port));
        KernelPackets {
            received: received.packets,
            received_bytes: received.bytes,
            sent: sent.packets,
            sent_bytes: sent.bytes,
            crowded: crowded.packets,
        }
    }

    fn divert(&self, switch: &mut LiveSwitch<Switch>, port: PortId, is_diverted: bool) {
        if let Some(switch) = plain_mut(switch) {
            switch.divert_kernel_port(port, is_diverted);
        }
    }

    fn end(&mut self, switch: &mut LiveSwitch<Switch>) {
        if let (Some(run), Some(switch)) = (self.run.take(), plain_mut(switch)) {
            run.end(switch);
        }
        // A pipeline that was just set may still be loaded. Its code must not replace that of a restarted switch.
        self.loader.iter().for_each(KernelLoader::retire);
        self.ports.restore();
    }
}

/// Returns the switch whose packets can be processed in the kernel.
fn plain_mut(switch: &mut LiveSwitch<Switch>) -> Option<&mut Switch> {
    switch.as_first_mut().and_then(InBandSwitch::as_plain_mut)
}

/// The hook of the switch inside.
struct InnerHook(KernelHook);

impl Hook<LiveSwitch<Switch>> for InnerHook {
    fn poll(&mut self, context: &mut HookContext<'_, LiveSwitch<Switch>>) {
        let HookContext { now, switch, output, injected, stop_others } = context;
        if let Some(switch) = plain_mut(switch) {
            self.0.poll(&mut HookContext { now: *now, switch, output, injected, stop_others: *stop_others });
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.0.next_deadline()
    }
}
