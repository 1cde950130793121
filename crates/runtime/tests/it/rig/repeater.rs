//! A switch written by hand: what arrives at port 1 leaves by port 2, and the other way round.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use engine::Objects;
use switch::{
    CompileJob, CompiledCode, Device, DropReason, DropSite, Egress, Frame, FrameMut, MirrorSession, MirrorSessions,
    MulticastGroup, MulticastGroups, Notification, PacketSwitch, PortId, Ports, Registry, SwitchControl, Takeover,
    Time,
};

pub use ir::Program;

/// Frames whose byte 12 has this value are also reported to the control plane.
pub const REPORTED: u8 = 0xcc;

/// The switch panics at a frame whose byte 12 has this value.
pub const FATAL: u8 = 0xdd;

/// Counts of a repeater and its workers.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames that were forwarded.
    pub forwarded: AtomicU64,
    /// Frames that drivers could not send.
    pub taken_back: AtomicU64,
    /// Batches that are processed at the moment.
    pub running: AtomicU32,
}

/// The switch. All workers of a program share its counts.
pub struct Repeater {
    program: Arc<Program>,
    objects: Objects,
    groups: MulticastGroups,
    sessions: MirrorSessions,
    ports: Ports,
    registry: Registry,
    notifications: Vec<Notification>,
    pub counts: Arc<Counts>,
    /// The compilation of its program, if it has one. Its code is the name of a program.
    job: Option<CompileJob>,
    /// Times of the steps with frames.
    pub times: Vec<(Time, u8)>,
}

/// A program without content, known by its name.
pub fn program(name: &str) -> Arc<Program> {
    Arc::new(Program { arch: name.to_owned(), ..Program::default() })
}

impl Repeater {
    pub fn new(program: Arc<Program>) -> Repeater {
        let mut registry = Registry::default();
        let ports = Ports::new(&[PortId(1), PortId(2)], &mut registry).expect("the ports differ");
        Repeater {
            objects: Objects::new(&program),
            program,
            groups: MulticastGroups::default(),
            sessions: MirrorSessions::default(),
            ports,
            registry,
            notifications: Vec::new(),
            counts: Arc::default(),
            job: None,
            times: Vec::new(),
        }
    }

    /// A repeater that runs while its program is compiled.
    pub fn with_job(program: Arc<Program>, job: CompileJob) -> Repeater {
        Repeater { job: Some(job), ..Repeater::new(program) }
    }

    fn forward(&mut self, now: Time, port: PortId, bytes: &[u8]) -> PortId {
        assert_ne!(bytes[12], FATAL, "a fatal frame");
        self.counts.forwarded.fetch_add(1, Ordering::Relaxed);
        self.times.push((now, bytes[12]));
        if bytes[12] == REPORTED {
            self.notifications.push(Notification::PacketIn { port, data: bytes.to_vec(), time: now });
        }
        PortId(3 - port.0)
    }
}

impl Device for Repeater {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        for frame in input.drain(..) {
            let port = self.forward(now, frame.port, &frame.data);
            output.push(Frame { port, data: frame.data });
        }
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl PacketSwitch for Repeater {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        for (index, frame) in batch.iter_mut().enumerate() {
            let (buffer, start) = frame.headroom();
            let port = self.forward(now, port, &buffer[start..]);
            output.push(Egress::InPlace { index, port });
        }
        self.counts.running.fetch_sub(1, Ordering::SeqCst);
    }

    fn take_back_sent(&mut self, _: PortId, frames: &[(DropReason, u64)], _: u64) {
        self.counts.taken_back.fetch_add(frames.iter().map(|(_, count)| count).sum(), Ordering::Relaxed);
    }

    fn waiting(&self) -> usize {
        0
    }

    fn has_notifications(&self) -> bool {
        !self.notifications.is_empty()
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.notifications)
    }

    fn workers(&mut self, count: u32) -> Vec<Repeater> {
        let worker = |_| Repeater { counts: Arc::clone(&self.counts), ..Repeater::new(Arc::clone(&self.program)) };
        (0..count).map(worker).collect()
    }

    fn is_clear(&self) -> bool {
        true
    }

    fn rest(&mut self) {}

    fn take_compile_job(&mut self) -> Option<CompileJob> {
        self.job.take()
    }

    fn install(&mut self, code: CompiledCode) -> Takeover {
        match code.into_inner::<String>() {
            Some(name) if name == self.program.arch => Takeover::Compiled,
            _ => Takeover::OtherProgram,
        }
    }
}

impl SwitchControl for Repeater {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn objects_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }

    fn multicast_groups(&self) -> &MulticastGroups {
        &self.groups
    }

    fn set_multicast_group(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        self.groups.set(id, group)
    }

    fn mirror_sessions(&self) -> &MirrorSessions {
        &self.sessions
    }

    fn set_mirror_session(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        self.sessions.set(id, session)
    }

    fn ports(&self) -> &Ports {
        &self.ports
    }

    fn cpu_port(&self) -> Option<PortId> {
        None
    }

    fn set_port_up(&mut self, port: PortId, up: bool) -> bool {
        self.ports.set_up(port, up)
    }

    fn set_port_rate(&mut self, _: PortId, _: Option<u64>) {}

    fn set_port_bandwidth(&mut self, _: PortId, _: Option<u64>) {}

    fn set_queue_rate(&mut self, _: PortId, _: Option<usize>, _: Option<u64>) {}

    fn set_queue_depth(&mut self, _: PortId, _: Option<usize>, _: usize) {}

    fn queue(&self, _: PortId) -> (u64, u64) {
        (0, 0)
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn continue_counts(&mut self, before: &Registry) {
        self.registry.add_all(before, |_| true);
    }

    fn drop_sites(&self) -> Vec<DropSite> {
        Vec::new()
    }

    fn summary(&self) -> String {
        String::new()
    }

    fn drain(&mut self, _: Time, _: &mut Vec<Frame>) {}

    fn publish(&mut self) {}

    fn swap_with(&mut self, other: &mut dyn SwitchControl) {
        let other: &mut dyn Any = other;
        std::mem::swap(self, other.downcast_mut().expect("switches of different types are never exchanged"));
    }
}
