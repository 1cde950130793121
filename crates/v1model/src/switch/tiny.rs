//! Executes tiny packet programs beside the P4 program (docs/design/tpp.md).
//!
//! A transparent program is taken out of a received frame, so that the P4 program sees the ordinary packet, and put
//! back when a copy leaves. It is then executed, as are standalone programs: once per copy, after the switch has
//! counted the frame, and never for drops, recirculation or resubmission. Frames with programs are copied into memory
//! of the switch; the path of other frames does not change. Packets with INT take the same way ([`int`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use switch::{PRIORITIES, PortId, Registry, Stat, Time};
use tpp::map::{Namespace, row_of};
use tpp::{AccessRights, Execution, ProgramVerdict, StripError, Tcpu};
use wire::tpp as wire_format;
use wire::tpp::ProgramPlace;
use wire::{FrameMarks, checksum};

use super::Switch;
use super::packet::{Leaving, Packet};

mod entry_notes;
mod int;
mod limit;
mod memory;
mod offset;
mod registers;

use entry_notes::{MatchedEntry, reads_entries};
pub use int::{INT_MTU, IntSettings};
use int::{IntHop, IntStats};
use limit::{ExecutionRate, TokenBucket};
use memory::PacketMemory;
pub use registers::memory_map;
use registers::{RegisterPlaces, writes_registers};

/// Words of applications, of the switch and of each port (the rows `AppSpecific` of the map).
const APPLICATION_WORDS: usize = 16;
/// `Switch:VendorID`.
const VENDOR: u64 = 0x5452_4950;

/// Default maximum number of executions a second for the packets of a port.
pub const EXECUTIONS_PER_SECOND: u32 = 1_000_000;

/// Maximum number of packets a second from a port that are interpreted, as their programs read entries.
const INTERPRETED_PER_SECOND: u32 = 100_000;

/// The settings of tiny packet programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TinySettings {
    /// `Switch:ID`.
    pub switch_id: u32,
    /// The rights of programs.
    pub rights: AccessRights,
    /// Maximum number of executions a second for packets that arrived on the same port, over all workers. 0 counts as
    /// 1. A burst is at most the executions of 100 ms. Programs beyond the limit pass unexecuted.
    pub executions_per_second: u32,
    /// The edge of the network to hosts without a shim: ports at which transparent programs are taken out of the frames
    /// that leave, after their execution.
    pub stripping: BTreeSet<PortId>,
    /// The edge of the network to hosts that are not trusted: ports at which frames that arrive with a program are
    /// dropped.
    pub refusing: BTreeSet<PortId>,
}

impl TinySettings {
    /// Returns the settings of a switch whose programs read everything, and write the words of applications if they
    /// may, with the default limit of executions.
    pub fn new(switch_id: u32, may_write: bool) -> TinySettings {
        let rights = if may_write { AccessRights::words() } else { AccessRights::read_only() };
        let (stripping, refusing) = Default::default();
        TinySettings { switch_id, rights, executions_per_second: EXECUTIONS_PER_SECOND, stripping, refusing }
    }
}

/// The state of a switch for tiny packet programs and INT.
#[derive(Clone, Debug)]
pub(super) struct TinyPrograms {
    /// The marks of frames with a program that this switch executes, or with INT.
    pub marks: FrameMarks,
    /// `Switch:ID`.
    switch_id: u32,
    /// The rights of programs; `None` if they are not executed.
    rights: Option<AccessRights>,
    /// The node of an INT domain, if the switch is one.
    int: Option<IntHop>,
    rate: ExecutionRate,
    /// Rate of packets that are interpreted.
    interpreted_rate: ExecutionRate,
    /// The words of the switch, then those of its ports; all workers share them.
    words: Arc<[AtomicU32]>,
    ports: BTreeMap<PortId, TinyPort>,
    registers: Arc<RegisterPlaces>,
}

/// The counters of a port.
#[derive(Clone, Debug)]
struct TinyPort {
    /// Index of its first word.
    first_word: usize,
    /// Whether transparent programs are taken out of frames that leave.
    strips: bool,
    /// Whether frames that arrive with a program are dropped.
    refuses: bool,
    /// The executions that packets from this port may still cause; all workers share it.
    bucket: Arc<TokenBucket>,
    /// The packets from this port that may still be interpreted; all workers share it.
    interpreted: Arc<TokenBucket>,
    /// The packets with INT from this port that may still get metadata or be reported; all workers share it.
    int_bucket: Arc<TokenBucket>,
    /// Programs of packets from this port.
    programs: ProgramStats,
    /// Packets with INT from this port, if the switch is a node.
    int: Option<IntStats>,
    tx: [Stat; 2],
    rx: [Stat; 2],
    /// Packets and bytes that the driver could not send.
    errors: [Stat; 2],
    queues: [QueueStats; PRIORITIES],
}

/// The counters of a queue. Bytes of packets that pass a queue without a rate are not counted.
#[derive(Clone, Copy, Debug)]
struct QueueStats {
    /// Packets and bytes that entered the queue.
    entered: [Stat; 2],
    /// Packets and bytes that the full queue dropped.
    dropped: [Stat; 2],
}

impl TinyPort {
    /// Registers the counters of the port with this index.
    fn new(registry: &mut Registry, at: usize, id: PortId, has_int: bool) -> TinyPort {
        let mut stat = |(namespace, name), queue: usize| {
            let (port, queue) = (id.to_string(), queue.to_string());
            let name = row_of(namespace, name).registry.replace("{queue}", &queue);
            registry.register(name.replace("{port}", &port).replace("{in}", &port))
        };
        let tx = ["TX-Packets", "TX-Bytes"].map(|name| stat((Namespace::Link, name), 0));
        let rx = ["RX-Packets", "RX-Bytes"].map(|name| stat((Namespace::InputLink, name), 0));
        let errors = ["Error-Packets", "Error-Bytes"].map(|name| stat((Namespace::Link, name), 0));
        let queues = std::array::from_fn(|priority| {
            let mut pair = |names: [&'static str; 2]| names.map(|name| stat((Namespace::Queue, name), priority));
            QueueStats { entered: pair(["RX-Packets", "RX-Bytes"]), dropped: pair(["Drop-Packets", "Drop-Bytes"]) }
        });
        let mut count = |result: &str| registry.register(format!("port.{id}.tpp.{result}"));
        let programs = ProgramStats {
            executed: count("executed"),
            refused: count("refused"),
            limited: count("limited"),
            stripped: count("stripped"),
        };
        let int = has_int.then(|| IntStats::new(registry, id));
        TinyPort {
            first_word: (at + 1) * APPLICATION_WORDS,
            strips: false,
            refuses: false,
            bucket: Arc::default(),
            interpreted: Arc::default(),
            int_bucket: Arc::default(),
            programs,
            int,
            tx,
            rx,
            errors,
            queues,
        }
    }
}

/// The counters of the programs of packets from a port: each program of a copy that leaves is in at most one of the
/// first three.
#[derive(Clone, Copy, Debug)]
struct ProgramStats {
    /// Executed programs, including those that ended early.
    executed: Stat,
    /// Malformed programs, and programs with a wrong checksum.
    refused: Stat,
    /// Programs beyond the limit.
    limited: Stat,
    /// Programs that were taken out at the port by which their packet left.
    stripped: Stat,
}

impl ProgramStats {
    /// Returns the counter of a verdict; `None` for programs that are done, which travel like payload.
    fn of(&self, verdict: ProgramVerdict) -> Option<Stat> {
        match verdict {
            ProgramVerdict::Completed | ProgramVerdict::Ended | ProgramVerdict::Waiting => Some(self.executed),
            ProgramVerdict::WrongChecksum | ProgramVerdict::Malformed(_) => Some(self.refused),
            ProgramVerdict::Done => None,
        }
    }
}

/// The program of a packet within the switch, and facts that it may read.
#[derive(Clone, Debug)]
pub(super) struct TinyPacket {
    /// The transparent program that was taken out; empty if the frame still contains its program.
    program: Vec<u8>,
    /// Number of VLAN tags that followed it.
    tags_behind: usize,
    /// Whether the packet arrived with the marker of INT.
    has_int: bool,
    /// The Ethernet addresses of the frame that arrived: destination, source.
    ethernet: [[u8; 6]; 2],
    arrived: Time,
    /// Its arrival in the queue; `None` if the queue has no rate.
    queued: Option<QueueArrival>,
    /// The entries that the packet has matched, in the order of the last application of their tables; `None` if the
    /// program does not read them.
    matched: Option<Vec<MatchedEntry>>,
}

/// The arrival of a packet in a queue.
#[derive(Clone, Copy, Debug)]
struct QueueArrival {
    priority: usize,
    /// Number of packets that the packet found there.
    depth: usize,
    at: Time,
}

impl Switch {
    /// Sets whether tiny packet programs are executed, and with which rights. Without settings, frames with programs
    /// are ordinary frames. Words of applications start at 0.
    pub fn set_tiny_programs(&mut self, settings: Option<TinySettings>) {
        self.config.tiny_programs = settings;
        self.prepare_tiny();
    }

    /// Sets whether the switch is a node of an INT domain. Without settings, packets with INT are ordinary packets.
    /// Words of applications start at 0.
    pub fn set_int(&mut self, settings: Option<IntSettings>) {
        self.config.int = settings;
        self.prepare_tiny();
    }

    /// Makes the state for the settings of the configuration.
    pub(super) fn prepare_tiny(&mut self) {
        let (programs, int) = (self.config.tiny_programs.clone(), self.config.int.clone());
        let switch_id = programs.as_ref().map(|it| it.switch_id).or(int.as_ref().map(|it| it.node_id));
        self.tiny = switch_id.map(|switch_id| {
            let (registry, ids) = (&mut self.registry, self.ports.ids().enumerate());
            let is_in = |of: fn(&TinySettings) -> &BTreeSet<PortId>, id| {
                programs.as_ref().is_some_and(|it| of(it).contains(&id))
            };
            let port = |(at, id)| {
                let (strips, refuses) = (is_in(|it| &it.stripping, id), is_in(|it| &it.refusing, id));
                (id, TinyPort { strips, refuses, ..TinyPort::new(registry, at, id, int.is_some()) })
            };
            let ports: BTreeMap<_, _> = ids.map(port).collect();
            let words = (0..(ports.len() + 1) * APPLICATION_WORDS).map(|_| AtomicU32::new(0)).collect();
            let per_second = programs.as_ref().map_or(EXECUTIONS_PER_SECOND, |it| it.executions_per_second);
            let rate = ExecutionRate::new(per_second);
            let interpreted_rate = ExecutionRate::new(per_second.min(INTERPRETED_PER_SECOND));
            let (rights, int) = (programs.map(|it| it.rights), int.map(IntHop::new));
            let registers = Arc::new(RegisterPlaces::new(&self.program));
            let marks = FrameMarks::new(rights.is_some(), int.as_ref().map(|hop: &IntHop| hop.node.marker()));
            Box::new(TinyPrograms { marks, switch_id, rights, int, rate, interpreted_rate, words, ports, registers })
        });
    }

    /// Whether a frame that arrived has a program that this switch executes or refuses, or INT.
    #[inline]
    pub(super) fn has_tiny_program(&self, port: PortId, frame: &[u8]) -> bool {
        self.tiny.as_deref().is_some_and(|tiny| tiny.has_any(frame)) || self.refuses_program(port, frame)
    }

    /// Whether a frame that arrived is dropped, as its port refuses programs and it may have one, here or at a later
    /// switch.
    pub(super) fn refuses_program(&self, port: PortId, frame: &[u8]) -> bool {
        let tiny = self.tiny.as_deref().filter(|tiny| tiny.marks.may_be_in(frame));
        let refusing = tiny.filter(|tiny| tiny.ports.get(&port).is_some_and(|port| port.refuses));
        refusing.is_some_and(|tiny| {
            wire_format::may_carry(frame) || tiny.int.as_ref().is_some_and(|hop| hop.may_restore_program(frame))
        })
    }

    /// Returns the frame that leaves by a port that strips programs, and the number of programs that were taken out.
    /// `None` if the port does not strip, or there is no transparent program.
    pub(super) fn stripped(&self, port: PortId, frame: &[u8]) -> Option<Result<(Vec<u8>, usize), StripError>> {
        let stripping = self.tiny.as_deref().filter(|tiny| tiny.ports.get(&port).is_some_and(|port| port.strips))?;
        let place = stripping.program_place(frame)?;
        (place.carriage == wire_format::Carriage::Transparent).then(|| {
            let mut rest = frame.to_vec();
            tpp::strip(&mut rest).map(|count| (rest, count))
        })
    }

    /// Counts programs that were taken out of a packet that arrived on a port.
    pub(super) fn count_stripped(&mut self, input: PortId, programs: usize) {
        let Some(port) = self.tiny.as_deref().and_then(|tiny| tiny.ports.get(&input)) else { return };
        self.registry.add(port.programs.stripped, programs as u64);
    }

    /// Takes the program out of a received frame.
    pub(super) fn peel(&self, data: &mut Vec<u8>, port: PortId, now: Time) -> Option<Box<TinyPacket>> {
        let programs = self.tiny.as_deref()?;
        let place = programs.program_place(data);
        let has_int = place.is_none() && programs.has_int(data);
        if place.is_none() && !has_int {
            return None;
        }
        let (destination, rest) = data.split_first_chunk()?;
        let mut tiny = TinyPacket {
            program: Vec::new(),
            tags_behind: 0,
            has_int,
            ethernet: [*destination, *rest.first_chunk()?],
            arrived: now,
            queued: None,
            matched: None,
        };
        let Some(place) = place else { return Some(Box::new(tiny)) };
        // Packets that the P4 program drops take no token of executions.
        let rate = programs.interpreted_rate;
        let may_run = || programs.ports.get(&port).is_some_and(|from| from.interpreted.take(now, rate));
        if reads_entries(&data[place.start..place.end]) && may_run() {
            tiny.matched = Some(Vec::new());
        }
        if place.carriage == wire_format::Carriage::Transparent
            && let Ok(packet) = wire_format::Packet::new_checked(&data[place.start..])
            && packet.encapsulated() != 0
        {
            let (end, inner) = (place.start + packet.length(), packet.encapsulated());
            tiny.program.extend_from_slice(&data[place.start..end]);
            data[place.start - 2..place.start].copy_from_slice(&inner.to_be_bytes());
            data.drain(place.start..end);
            tiny.tags_behind = wire_format::count_tags(data, place.start);
        }
        tiny.has_int = programs.has_int(data);
        Some(Box::new(tiny))
    }

    /// Records the queue of a packet, and the depth of the queue at its arrival.
    #[inline]
    pub(super) fn note_queue(&self, packet: &mut Packet, port: PortId, priority: usize, (at, depth): (Time, usize)) {
        if let Some(tiny) = &mut packet.tiny {
            let arrival = QueueArrival { priority, depth, at };
            tiny.queued = Some(arrival).filter(|_| !self.queues.is_open(port, priority));
        }
    }

    /// Counts the bytes of a packet that entered a queue with a rate (`accepted`) or found it full.
    pub(super) fn count_offered(&mut self, port: PortId, priority: usize, accepted: bool, bytes: usize) {
        let Some(stats) = self.tiny.as_ref().and_then(|tiny| tiny.ports.get(&port)) else { return };
        let queue = &stats.queues[priority];
        let stat = match accepted {
            true if self.queues.has_rate(port, priority) => queue.entered[1],
            // Another queue of the port delays the packet. Without one, packets of this queue pass uncounted.
            true => return,
            false => queue.dropped[1],
        };
        self.registry.add(stat, bytes as u64);
    }

    /// Counts frames that the driver could not send.
    pub(super) fn count_unsent(&mut self, port: PortId, frames: u64, bytes: u64) {
        let Some(stats) = self.tiny.as_ref().and_then(|tiny| tiny.ports.get(&port)) else { return };
        self.registry.add(stats.errors[0], frames);
        self.registry.add(stats.errors[1], bytes);
    }

    /// Executes the program of a frame that leaves, unless the limit of its input port is reached. `counted` bytes were
    /// counted as sent. Returns the port to which it is sent.
    pub(super) fn run_tiny(
        &mut self,
        packet: &TinyPacket,
        input: PortId,
        data: &mut [u8],
        counted: usize,
        leaving: Leaving,
    ) -> PortId {
        let place = self.tiny.as_deref().and_then(|tiny| tiny.program_place(data));
        let Some(place) = place else { return leaving.port };
        let length = data.len();
        let program = &mut data[place.start..place.end];
        let Some(execution) = self.execute_tiny(packet, input, program, length, leaving) else { return leaving.port };
        if !execution.reflect {
            return leaving.port;
        }
        // No program but a standalone one leaves by a port that strips them.
        let strips = self.tiny.as_deref().and_then(|tiny| tiny.ports.get(&input)).is_some_and(|port| port.strips);
        let may_leave = !strips || place.carriage != wire_format::Carriage::Transparent;
        if !may_leave || self.config.cpu_port == Some(input) || self.obstacle(input, length).is_some() {
            // The packet continues, so its program is not done: later switches execute it or take it out.
            if let Ok(mut program) = wire_format::Packet::new_checked(&mut data[place.start..place.end]) {
                program.clear_status(wire_format::Status::DONE);
            }
            return leaving.port;
        }
        // A router has rewritten the addresses for the next hop.
        data[..12].copy_from_slice(packet.ethernet.as_flattened());
        wire_format::reflect(data, place);
        self.ports.take_back_tx(&mut self.registry, leaving.port, 1, counted as u64);
        self.ports.count_tx(&mut self.registry, input, length);
        input
    }

    /// Returns the memory of the switch as a packet of `length` bytes sees it when it leaves.
    fn packet_memory<'a>(
        &'a self,
        programs: &'a TinyPrograms,
        packet: &'a TinyPacket,
        input: PortId,
        length: usize,
        leaving: Leaving,
    ) -> PacketMemory<'a> {
        PacketMemory {
            programs,
            registry: &self.registry,
            ports: &self.ports,
            queues: &self.queues,
            objects: &self.objects,
            tables: &self.program.tables,
            has_all_counts: !self.role.is_shared(),
            packet,
            input,
            leaving,
            length,
        }
    }

    /// Executes a program and counts it. Returns `None` if it is beyond the limit.
    fn execute_tiny(
        &mut self,
        packet: &TinyPacket,
        input: PortId,
        program: &mut [u8],
        length: usize,
        leaving: Leaving,
    ) -> Option<Execution> {
        let programs = self.tiny.as_deref()?;
        let rights = programs.rights.as_ref()?;
        let TinyPort { bucket, programs: counts, .. } = programs.ports.get(&input)?;
        if !bucket.take(leaving.at, programs.rate) {
            self.registry.add(counts.limited, 1);
            return None;
        }
        // A packet in an `@atomic` block does not overwrite what the program writes meanwhile.
        let waits = writes_registers(program, rights);
        if waits {
            self.objects.begin_atomic();
        }
        let mut memory = self.packet_memory(programs, packet, input, length, leaving);
        let execution = Tcpu::execute(program, &mut memory, rights);
        if waits {
            self.objects.end_atomic();
        }
        if let Some(count) = counts.of(execution.verdict) {
            self.registry.add(count, 1);
        }
        Some(execution)
    }
}

impl TinyPrograms {
    /// Returns the place of a program that this switch executes.
    #[inline]
    fn program_place(&self, frame: &[u8]) -> Option<ProgramPlace> {
        self.rights.as_ref().and_then(|_| wire_format::find(frame))
    }

    /// Whether a frame has a program that this switch executes, or INT.
    fn has_any(&self, frame: &[u8]) -> bool {
        self.program_place(frame).is_some() || self.has_int(frame)
    }

    /// Whether a frame has the marker of INT and this switch is a node.
    #[inline]
    fn has_int(&self, frame: &[u8]) -> bool {
        self.int.as_ref().is_some_and(|hop| hop.node.is_marked(frame))
    }
}

impl TinyPacket {
    /// Returns the length of the program that was taken out, in bytes.
    pub fn program_len(&self) -> usize {
        self.program.len()
    }

    /// Puts the program back into a frame that leaves, before as many tags as followed it. A frame without an
    /// EtherType, which only truncation leaves behind, leaves without it.
    pub fn put_back(&self, data: &mut Vec<u8>) {
        if self.program.is_empty() {
            return;
        }
        let Some((inner, at)) = wire_format::place_among_tags(data, self.tags_behind) else { return };
        let mut program = self.program.clone();
        // The P4 program may have changed the type, for example by pushing a label.
        let old = u16::from_be_bytes([program[8], program[9]]);
        let sum = u16::from_be_bytes([program[6], program[7]]);
        program[8..10].copy_from_slice(&inner.to_be_bytes());
        if old != inner {
            program[6..8].copy_from_slice(&checksum::update(sum, old, inner).to_be_bytes());
        }
        data[at - 2..at].copy_from_slice(&wire_format::ETHERTYPE.to_be_bytes());
        data.splice(at..at, program);
    }
}
