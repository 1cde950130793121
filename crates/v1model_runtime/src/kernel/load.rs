//! Compiles programs for the kernel, and loads and attaches the code.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use bpf::asm::Links;
use bpf::{KernelCode, KernelOptions};
use ir::Program;
use ports::{HandOverOrder, KernelProgram, KernelRegion, RedirectMap, XdpAttachment};
use switch::PortId;
use v1model::Config;

use super::{KernelPorts, NotInKernel, RestrictLoader, system};

/// Error number of a device whose MTU is too large for XDP programs without multi-buffer support.
const ERANGE: i32 = 34;

/// Maximum number of processors with scratch memory, which takes up to 32 KiB for each. Packets on others take the
/// switch.
const MAX_CPUS: u32 = 1024;

/// Code that runs on all ports. Its gate is closed: it hands all packets over.
pub(super) struct LoadedCode {
    pub code: KernelCode,
    pub region: Arc<KernelRegion>,
    /// The ports whose frames it processes, with their interfaces.
    pub ports: Vec<(PortId, String)>,
    /// Ports whose interfaces refuse it, with the reasons.
    pub refused: Vec<(PortId, String)>,
    /// Number of instructions of the code.
    pub instructions: usize,
}

/// The code of a program.
pub(super) struct CompiledProgram {
    program: Arc<Program>,
    code: KernelCode,
}

/// Returns the reason why a port with this number can run no program in the kernel.
pub(super) fn beyond(port: PortId) -> Option<String> {
    let last = KernelOptions::default().ports - 1;
    (port.0 > last).then(|| format!("the kernel's ports have the numbers to {last}"))
}

/// Returns the number of processors that get scratch memory, of those that there may ever be.
pub(super) fn cpus(possible: usize) -> u32 {
    u32::try_from(possible).unwrap_or(MAX_CPUS).clamp(1, MAX_CPUS).next_power_of_two()
}

/// Compiles a program, with scratch memory for this number of processors.
pub(super) fn compile(program: &Arc<Program>, config: &Config, cpus: u32) -> Result<CompiledProgram, NotInKernel> {
    let pipeline = v1model::kernel_pipeline(program).map_err(|error| NotInKernel::Program(error.to_string()))?;
    let widest = config.ports.iter().map(|port| port.0).max().unwrap_or(0);
    let ports = widest.saturating_add(1).min(KernelOptions::default().ports).next_power_of_two();
    let options = KernelOptions { cpus, ports };
    let code = bpf::compile(program, &pipeline, options);
    let code = code.map_err(|error| NotInKernel::Program(error.to_string()))?;
    if code.can_forward || code.can_drop {
        Ok(CompiledProgram { program: Arc::clone(program), code })
    } else {
        Err(NotInKernel::NoPacket)
    }
}

impl KernelPorts {
    /// Loads code and attaches it to all ports.
    pub(super) fn load(&self, compiled: CompiledProgram) -> Result<LoadedCode, NotInKernel> {
        let code = &compiled.code;
        let region = KernelRegion::new(code.layout.bytes()).map_err(system("cannot create the shared memory"))?;
        let devices =
            RedirectMap::devices(self.ports.len() as u32).map_err(system("cannot create the map of devices"))?;
        for (at, (_, attachment)) in (0..).zip(&self.ports) {
            // Nothing is sent to a device that has gone: its port is slow.
            let _ = devices.set_device(at, attachment.index());
        }
        let load = |port: PortId, attachment: &XdpAttachment| {
            load(&compiled, (&region, &devices), port, attachment, self.is_gpl)
        };
        let programs: Vec<(KernelProgram, usize)> =
            self.ports.iter().map(|(port, attachment)| load(*port, attachment)).collect::<Result<_, _>>()?;
        let region = Arc::new(region);
        for (port, attachment) in &self.ports {
            let words = (0..attachment.queues()).filter_map(|queue| code.layout.order_words(port.0, queue));
            let (memory, words) = (Arc::clone(&region), words.collect());
            attachment.set_order(HandOverOrder { memory, mark: bpf::HAND_OVER_MARK, words });
        }
        let (mut attached, mut refused, mut last) = (Vec::new(), Vec::new(), None);
        for ((port, attachment), (program, _)) in self.ports.iter().zip(&programs) {
            match attachment.run(program) {
                Ok(()) => attached.push((*port, attachment.interface().to_owned())),
                Err(error) => {
                    // Its frames are those of the switch. A port that has gone has none.
                    let _ = attachment.restore();
                    refused.push((*port, why_refused(&error)));
                    last = Some(error);
                }
            }
        }
        if let Some(error) = last.filter(|_| attached.is_empty()) {
            let (port, reason) = refused.swap_remove(0);
            return Err(match error.raw_os_error() {
                Some(ERANGE) => NotInKernel::Port { port, reason },
                _ => system("cannot attach the program")(error),
            });
        }
        self.set_running(Some(attached.iter().map(|(port, _)| *port).collect()));
        Ok(LoadedCode { ports: attached, refused, instructions: programs[0].1, region, code: compiled.code })
    }
}

/// Returns the reason why an interface refuses the code.
fn why_refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(ERANGE) => "the interface's MTU is too large for XDP".to_owned(),
        _ => error.to_string(),
    }
}

/// Loads the code for one port. Returns it with the number of its instructions.
fn load(
    CompiledProgram { program, code }: &CompiledProgram,
    (region, devices): (&KernelRegion, &RedirectMap),
    port: PortId,
    attachment: &XdpAttachment,
    is_gpl: bool,
) -> Result<(KernelProgram, usize), NotInKernel> {
    let links = Links {
        region: region.descriptor(),
        devices: devices.descriptor(),
        sockets: attachment.sockets(),
        port: port.0,
        has_local_senders: attachment.has_local_senders(),
    };
    let words = code.encode(&links, true).map_err(|error| NotInKernel::Program(error.to_string()))?;
    match attachment.load(&words, is_gpl) {
        Ok(program) => Ok((program, words.len())),
        Err(rejected) if rejected.log.is_empty() => {
            Err(NotInKernel::System { what: "cannot load the program", source: rejected.error })
        }
        Err(rejected) => {
            let place = rejected.instruction().and_then(|at| code.place_of(at, true));
            let place = place.map(|loc| program.locs[loc].to_string());
            Err(NotInKernel::Rejected { place, reason: rejected.reason().to_owned() })
        }
    }
}

/// Code to load, or none to run the ports' own programs; the number of its program; and the way of the result.
type LoadRequest = (Result<CompiledProgram, NotInKernel>, u64, Sender<Result<LoadedCode, NotInKernel>>);

/// A thread that keeps the privileges to load and attach code. It ends when this value and its clones are dropped.
#[derive(Clone)]
pub(super) struct KernelLoader {
    requests: Sender<LoadRequest>,
    /// The number of the latest program. Code of earlier ones is not attached any more.
    latest: Arc<AtomicU64>,
}

impl KernelLoader {
    /// Starts the thread, and waits until it has given up the privileges that it does not need.
    pub fn start(ports: KernelPorts, restrict: RestrictLoader) -> Result<KernelLoader, NotInKernel> {
        let (requests, received): (Sender<LoadRequest>, Receiver<LoadRequest>) = channel();
        let latest = Arc::new(AtomicU64::new(0));
        let newest = Arc::clone(&latest);
        let (restricted, is_restricted) = channel();
        let run = move || {
            let result = restrict();
            let is_over = result.is_err();
            // The caller waits.
            let _ = restricted.send(result);
            if is_over {
                return;
            }
            for (code, number, answer) in received {
                if number == newest.load(Ordering::Acquire) {
                    // The caller may be gone.
                    let _ = answer.send(code.and_then(|code| ports.load(code)).inspect_err(|_| ports.restore()));
                }
            }
        };
        let thread = std::thread::Builder::new().name("kernel-loader".to_owned()).spawn(run);
        thread.map_err(system("cannot start a thread"))?;
        let result = is_restricted.recv().unwrap_or_else(|_| Err("the thread has ended".to_owned()));
        result.map_err(NotInKernel::Loader)?;
        Ok(KernelLoader { requests, latest })
    }

    /// Announces the next program, and returns its number.
    pub fn announce(&self) -> u64 {
        self.latest.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Loads code of the program with a number and attaches it, or runs the ports' own programs if there is none,
    /// unless another program has been announced since, and waits for the result.
    pub fn load(&self, code: Result<CompiledProgram, NotInKernel>, number: u64) -> Result<LoadedCode, NotInKernel> {
        let gone = || NotInKernel::Program("the loader has ended".to_owned());
        let (answer, answered) = channel();
        self.requests.send((code, number, answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }

    /// Runs the ports' own programs. Code that is being loaded is waited for, and what was to be loaded is not.
    pub fn retire(&self) {
        // The result is the given error, or that of a thread that has ended.
        let _ = self.load(Err(NotInKernel::NoProgram), self.announce());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_that_may_be_there_has_scratch_memory() {
        for (possible, cpus) in [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128), (1000, 1024), (1024, 1024)] {
            assert_eq!(super::cpus(possible), cpus, "{possible} processors");
        }
        // The memory is bounded, whatever the system says.
        assert_eq!([0, 1025, 4096, usize::MAX].map(super::cpus), [1, 1024, 1024, 1024]);
    }

    #[test]
    fn a_loader_that_retired_attaches_no_code_of_before() {
        let loader = KernelLoader::start(KernelPorts::default(), Box::new(|| Ok(()))).expect("a thread");
        let is_alive =
            || matches!(loader.load(Err(NotInKernel::NoPacket), loader.announce()), Err(NotInKernel::NoPacket));
        let number = loader.announce();
        loader.retire();
        let late = loader.load(Err(NotInKernel::NoPort), number).err().expect("there is no code");
        assert_eq!(late.to_string(), "the loader has ended", "the request was ignored");
        assert!(is_alive());
    }
}
