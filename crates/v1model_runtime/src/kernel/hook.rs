//! Keeps the program of a run in the kernel.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use ir::Program;
use runtime::{Hook, HookContext};
use switch::Time;
use v1model::Switch;

use super::load::{KernelLoader, LoadedCode, compile};
use super::{KernelNoteCallback, KernelPorts, Losses, NotInKernel, not_in_kernel};

/// Interval between checks of the devices in nanoseconds.
const CHECK_NS: u64 = 1_000_000_000;
/// Interval between turns while a load or a packet to the switch is under way, in nanoseconds.
const BUSY_NS: u64 = 2_000_000;

/// Keeps a program in the kernel, and the switch's view of it up to date.
pub struct KernelHook {
    ports: KernelPorts,
    /// Loads the pipelines that controllers set, if there may be any.
    loader: Option<KernelLoader>,
    /// The program whose code is attached, or is being loaded, or cannot run in the kernel.
    program: Arc<Program>,
    loading: Option<Receiver<Result<LoadedCode, NotInKernel>>>,
    losses: Option<Arc<Losses>>,
    /// The failure that was noted.
    failure: Option<bpf::RegionError>,
    on_note: KernelNoteCallback,
    /// Time of the kernel's clock at the start of the run in nanoseconds; a little too late, see
    /// [`KernelHook::set_clock`].
    clock_origin_ns: u64,
    /// Time of the last check of the devices, and of the last turn.
    checked: Time,
    polled: Time,
}

impl KernelHook {
    pub(super) fn new(
        ports: KernelPorts,
        loader: Option<KernelLoader>,
        switch: &Switch,
        losses: Option<Arc<Losses>>,
        on_note: KernelNoteCallback,
    ) -> KernelHook {
        let (checked, polled) = (Time::ZERO, Time::ZERO);
        KernelHook {
            ports,
            loader,
            program: Arc::clone(switch.program()),
            loading: None,
            losses,
            failure: switch.kernel_failure().filter(|_| !switch.is_in_kernel()).cloned(),
            on_note,
            clock_origin_ns: u64::MAX,
            checked,
            polled,
        }
    }

    /// Returns the loader of later pipelines, if there may be any.
    pub(super) fn loader(&self) -> Option<KernelLoader> {
        self.loader.clone()
    }

    /// Has the new program of the switch compiled and loaded, beside the packets.
    fn begin_load(&mut self, switch: &Switch) {
        self.program = Arc::clone(switch.program());
        let Some(loader) = self.loader.clone() else { return };
        let (answer, answered) = channel();
        let (program, config) = (Arc::clone(&self.program), switch.config().clone());
        let (number, cpus) = (loader.announce(), self.ports.cpus);
        let run = move || {
            // The hook may have turned to another program.
            let _ = answer.send(loader.load(compile(&program, &config, cpus), number));
        };
        match std::thread::Builder::new().name("kernel-compiler".to_owned()).spawn(run) {
            Ok(_) => self.loading = Some(answered),
            Err(error) => (self.on_note)(&not_in_kernel(&error), false),
        }
    }

    /// Installs the code that was loaded, if it is.
    fn end_load(&mut self, context: &mut HookContext<'_, Switch>) {
        let Some(loading) = &self.loading else { return };
        let result = match loading.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => Err(NotInKernel::Program("its compilation failed".to_owned())),
        };
        self.loading = None;
        // Registers move to the memory that is shared with the kernel.
        context.quiesce();
        match result.and_then(|loaded| self.ports.install(context.switch, loaded)) {
            Ok(summary) => {
                self.set_clock(context);
                self.failure = None;
                (self.on_note)(&summary.to_string(), true);
            }
            Err(error) => {
                self.failure = context.switch.kernel_failure().cloned();
                (self.on_note)(&not_in_kernel(&error), false);
            }
        }
    }

    /// Gives the code the time of the run. A turn begins a little after its time was taken, so the least difference is
    /// the best one.
    fn set_clock(&mut self, context: &mut HookContext<'_, Switch>) {
        let origin = ports::kernel_time_ns().saturating_sub(context.now.as_ns());
        self.clock_origin_ns = self.clock_origin_ns.min(origin);
        context.switch.set_kernel_clock(self.clock_origin_ns);
    }

    /// Notes that packets, or some of them, stopped running in the kernel, or do so again.
    fn note_failure(&mut self, switch: &Switch) {
        if switch.kernel_failure() == self.failure.as_ref() {
            return;
        }
        self.failure = switch.kernel_failure().cloned();
        match &self.failure {
            Some(error) if switch.is_in_kernel() => {
                (self.on_note)(&format!("packets that apply a full table go to the switch: {error}"), true);
            }
            Some(error) => {
                let note = format!("no packets run in the kernel any more, the switch processes them all: {error}");
                (self.on_note)(&note, false);
            }
            None => (self.on_note)("packets run in the kernel again", true),
        }
    }
}

impl Hook<Switch> for KernelHook {
    fn poll(&mut self, context: &mut HookContext<'_, Switch>) {
        self.polled = context.now;
        if !Arc::ptr_eq(&self.program, context.switch.program()) {
            self.begin_load(context.switch);
        }
        self.end_load(context);
        let is_first = self.clock_origin_ns == u64::MAX;
        let is_asked = self.ports.check.swap(false, Ordering::Relaxed);
        if is_first || is_asked || context.now.since_ns(self.checked) >= CHECK_NS {
            self.checked = context.now;
            self.set_clock(context);
            for (state, (port, _)) in self.ports.device_states().zip(&self.ports.ports) {
                context.switch.set_kernel_device(*port, state);
            }
            if let Some(losses) = &self.losses {
                losses.count(context.switch);
            }
        }
        // What other hooks and the worker changed: ports that were lost, for example.
        context.switch.publish();
        self.note_failure(context.switch);
    }

    fn next_deadline(&self) -> Option<Time> {
        let check = self.checked.after_ns(CHECK_NS);
        let is_busy = self.loading.is_some() || self.ports.ports.iter().any(|(_, port)| port.is_outstanding());
        Some(if is_busy { check.min(self.polled.after_ns(BUSY_NS)) } else { check })
    }
}
