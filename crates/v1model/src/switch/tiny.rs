//! Executes tiny packet programs beside the P4 program (docs/design/tpp.md).
//!
//! A transparent program is taken out of a received frame, so that the P4 program sees the ordinary packet, and put
//! back when a copy leaves. It is then executed, as are standalone programs: once per copy, after the switch has
//! counted the frame, and never for drops, recirculation or resubmission. Frames with programs are copied into memory
//! of the switch; the path of other frames does not change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use switch::{EgressQueues, PRIORITIES, PortId, Ports, Registry, Stat, Time};
use tpp::map::{Namespace, row_of};
use tpp::{AccessRights, SwitchMemory, Tcpu};
use wire::checksum;
use wire::tpp as wire_format;

use super::Switch;
use super::packet::{Leaving, Packet};

mod offset;

/// Words of applications, of the switch and of each port (the rows `AppSpecific` of the map).
const APPLICATION_WORDS: usize = 16;
/// `Switch:VendorID`.
const VENDOR: u64 = 0x5452_4950;

/// The settings of tiny packet programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TinySettings {
    /// `Switch:ID`.
    pub switch_id: u32,
    /// The rights of programs.
    pub rights: AccessRights,
}

impl TinySettings {
    /// Returns the settings of a switch whose programs read everything, and write the words of applications if they
    /// may.
    pub fn new(switch_id: u32, may_write: bool) -> TinySettings {
        let rights = if may_write { AccessRights::all() } else { AccessRights::read_only() };
        TinySettings { switch_id, rights }
    }
}

/// The state of a switch for tiny packet programs.
#[derive(Clone, Debug)]
pub(super) struct TinyPrograms {
    settings: TinySettings,
    /// The words of the switch, then those of its ports; all workers share them.
    words: Arc<[AtomicU32]>,
    ports: BTreeMap<PortId, PortStats>,
}

/// The counters of a port.
#[derive(Clone, Copy, Debug)]
struct PortStats {
    /// Index of its first word.
    first_word: usize,
    tx: [Stat; 2],
    rx: [Stat; 2],
    /// Packets that entered each queue, and those dropped there.
    queues: [[Stat; 2]; PRIORITIES],
}

/// The program of a packet within the switch, and facts that it may read.
#[derive(Clone, Debug)]
pub(super) struct TinyPacket {
    /// The transparent program that was taken out; empty if the frame still contains its program.
    program: Vec<u8>,
    /// Number of VLAN tags that followed it.
    tags_behind: usize,
    arrived: Time,
    /// The priority of the queue, and its depth when the packet arrived; `None` if the queue has no rate.
    queued: Option<(usize, usize)>,
}

impl Switch {
    /// Sets whether tiny packet programs are executed, and with which rights. Without settings, frames with programs
    /// are ordinary frames. Words of applications start at 0.
    pub fn set_tiny_programs(&mut self, settings: Option<TinySettings>) {
        self.config.tiny_programs.clone_from(&settings);
        self.tiny = settings.map(|settings| {
            let mut stat = |(namespace, name), port: PortId, queue: usize| {
                let (port, queue) = (port.to_string(), queue.to_string());
                let name = row_of(namespace, name).registry.replace("{queue}", &queue);
                self.registry.register(name.replace("{port}", &port).replace("{in}", &port))
            };
            let ports = self.ports.ids().enumerate().map(|(at, id)| {
                let tx = ["TX-Packets", "TX-Bytes"].map(|name| stat((Namespace::Link, name), id, 0));
                let rx = ["RX-Packets", "RX-Bytes"].map(|name| stat((Namespace::InputLink, name), id, 0));
                let queues = std::array::from_fn(|priority| {
                    ["RX-Packets", "Drop-Packets"].map(|name| stat((Namespace::Queue, name), id, priority))
                });
                (id, PortStats { first_word: (at + 1) * APPLICATION_WORDS, tx, rx, queues })
            });
            let ports: BTreeMap<_, _> = ports.collect();
            let words = (0..(ports.len() + 1) * APPLICATION_WORDS).map(|_| AtomicU32::new(0)).collect();
            Box::new(TinyPrograms { settings, words, ports })
        });
    }

    /// Whether a frame has a program that this switch executes.
    #[inline]
    pub(super) fn has_tiny_program(&self, frame: &[u8]) -> bool {
        self.tiny.is_some() && wire_format::find(frame).is_some()
    }

    /// Takes the program out of a received frame.
    pub(super) fn peel(&self, data: &mut Vec<u8>, now: Time) -> Option<Box<TinyPacket>> {
        self.tiny.as_ref()?;
        let place = wire_format::find(data)?;
        let mut tiny = TinyPacket { program: Vec::new(), tags_behind: 0, arrived: now, queued: None };
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
        Some(Box::new(tiny))
    }

    /// Records the queue of a packet and the depth of the queue at its arrival.
    #[inline]
    pub(super) fn note_queue(&self, packet: &mut Packet, port: PortId, priority: usize, depth: usize) {
        if let Some(tiny) = &mut packet.tiny {
            tiny.queued = Some((priority, depth)).filter(|_| !self.queues.is_open(port, priority));
        }
    }

    /// Executes the program of a frame that leaves. Returns the port to which it is sent.
    pub(super) fn run_tiny(&mut self, packet: &TinyPacket, input: PortId, data: &mut [u8], leaving: Leaving) -> PortId {
        let (Some(programs), Some(place)) = (&self.tiny, wire_format::find(data)) else { return leaving.port };
        let length = data.len();
        let mut memory = PacketMemory {
            programs,
            registry: &self.registry,
            ports: &self.ports,
            queues: &self.queues,
            counts_alone: !self.role.is_shared(),
            packet,
            input,
            leaving,
            length,
        };
        let program = &mut data[place.start..place.end];
        let execution = Tcpu::execute(program, &mut memory, &programs.settings.rights);
        let can_leave = self.config.cpu_port != Some(input) && self.obstacle(input, length).is_none();
        if !execution.reflect || !can_leave {
            return leaving.port;
        }
        wire_format::reflect(data, place);
        self.ports.take_back_tx(&mut self.registry, leaving.port, 1, length as u64);
        self.ports.count_tx(&mut self.registry, input, length);
        input
    }
}

impl TinyPacket {
    /// Puts the program back into a frame that leaves, before as many tags as followed it. A frame without an EtherType,
    /// which only truncation leaves behind, leaves without it.
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

/// The memory of the switch as one packet sees it.
struct PacketMemory<'a> {
    programs: &'a TinyPrograms,
    registry: &'a Registry,
    ports: &'a Ports,
    queues: &'a EgressQueues<Box<Packet>>,
    /// Whether the registry has all counts. The registry of one of several workers has only its own.
    counts_alone: bool,
    packet: &'a TinyPacket,
    input: PortId,
    leaving: Leaving,
    length: usize,
}

impl PacketMemory<'_> {
    fn word(&self, address: u16) -> Option<&AtomicU32> {
        const OF_SWITCH: u16 = Namespace::Switch.base() + offset::SWITCH_APP_SPECIFIC;
        const OF_LINK: u16 = Namespace::Link.base() + offset::LINK_APP_SPECIFIC;
        let (first, start) = match address & 0xf800 {
            OF_SWITCH => (0, OF_SWITCH),
            OF_LINK => (self.programs.ports.get(&self.leaving.port)?.first_word, OF_LINK),
            _ => return None,
        };
        let index = usize::from(address - start) / 2;
        self.programs.words.get(first + index).filter(|_| index < APPLICATION_WORDS)
    }

    fn of_switch(&self, offset: u16) -> Option<u64> {
        Some(match offset {
            offset::SWITCH_ID => self.programs.settings.switch_id.into(),
            offset::SWITCH_CLOCK => self.leaving.at.as_ns(),
            offset::SWITCH_CLOCK_FREQUENCY => 1_000_000_000,
            offset::SWITCH_VENDOR_ID => VENDOR,
            offset::SWITCH_PORTS => self.programs.ports.len() as u64,
            _ => return None,
        })
    }

    /// Returns a counter, unless other workers count, too.
    fn count(&self, stat: Stat) -> Option<u64> {
        self.counts_alone.then(|| self.registry.value(stat))
    }

    fn of_link(&self, port: PortId, offset: u16) -> Option<u64> {
        let stats = self.programs.ports.get(&port)?;
        match offset {
            offset::LINK_ID => Some(port.0.into()),
            offset::LINK_STATUS => Some(self.ports.is_up(port).into()),
            offset::LINK_QUEUED_PACKETS => {
                let has_rate = (0..PRIORITIES).any(|priority| !self.queues.is_open(port, priority));
                let depths = (0..PRIORITIES).map(|priority| self.queues.depth(port, priority) as u64);
                (has_rate && self.counts_alone).then(|| depths.sum())
            }
            offset::LINK_TX_PACKETS => self.count(stats.tx[0]),
            offset::LINK_TX_BYTES => self.count(stats.tx[1]),
            _ => None,
        }
    }

    fn of_input(&self, offset: u16) -> Option<u64> {
        let stats = self.programs.ports.get(&self.input)?;
        match offset {
            offset::INPUT_ID => Some(self.input.0.into()),
            offset::INPUT_STATUS => Some(self.ports.is_up(self.input).into()),
            offset::INPUT_RX_PACKETS => self.count(stats.rx[0]),
            offset::INPUT_RX_BYTES => self.count(stats.rx[1]),
            _ => None,
        }
    }

    fn of_queue(&self, port: PortId, priority: usize, offset: u16) -> Option<u64> {
        let stats = self.programs.ports.get(&port)?.queues.get(priority)?;
        match offset {
            // Without a rate, frames wait in the driver, and the switch does not know how many.
            offset::QUEUE_OCCUPANCY if self.queues.is_open(port, priority) || !self.counts_alone => None,
            offset::QUEUE_OCCUPANCY => Some(self.queues.depth(port, priority) as u64),
            offset::QUEUE_ID => Some(priority as u64),
            offset::QUEUE_RX_PACKETS => self.count(stats[0]),
            offset::QUEUE_DROP_PACKETS => self.count(stats[1]),
            _ => None,
        }
    }

    fn of_packet(&self, offset: u16) -> Option<u64> {
        let latency = self.leaving.at.as_ns().saturating_sub(self.packet.arrived.as_ns());
        Some(match offset {
            offset::PACKET_INPUT_PORT => self.input.0.into(),
            offset::PACKET_OUTPUT_PORT => self.leaving.port.0.into(),
            offset::PACKET_QUEUE_ID => self.packet.queued?.0 as u64,
            offset::PACKET_ENQUEUE_DEPTH => self.packet.queued?.1 as u64,
            offset::PACKET_DEQUEUE_DEPTH => self.packet.queued.map(|_| self.leaving.depth as u64)?,
            offset::PACKET_INGRESS_TIME => self.packet.arrived.as_ns(),
            offset::PACKET_EGRESS_TIME => self.leaving.at.as_ns(),
            offset::PACKET_HOP_LATENCY => latency,
            offset::PACKET_LENGTH => self.length as u64,
            _ => return None,
        })
    }

    fn direct(&self, address: u16) -> Option<u64> {
        if let Some(word) = self.word(address) {
            return Some(word.load(Relaxed).into());
        }
        let offset = |namespace: Namespace| address - namespace.base();
        match address {
            0x0000..0x0800 => self.of_switch(offset(Namespace::Switch)),
            0x3000..0x3400 => self.of_link(self.leaving.port, offset(Namespace::Link)),
            0x3c00..0x4000 => self.of_input(offset(Namespace::InputLink)),
            0x4000..0x4800 => self.of_packet(offset(Namespace::PacketMetadata)),
            0xb000..0xb040 => self.of_queue(self.leaving.port, self.packet.queued?.0, offset(Namespace::Queue)),
            _ => None,
        }
    }
}

impl SwitchMemory for PacketMemory<'_> {
    fn read(&mut self, address: u32) -> Option<u64> {
        let (port, direct) = (PortId(address >> 16 & 0xfff), address as u16);
        match (address >> 28, direct) {
            (0, _) if address <= 0xffff => self.direct(direct),
            (1, 0x3000..0x3400) => self.of_link(port, direct - Namespace::Link.base()),
            (1, 0xb000..0xc000) => {
                let (queue, offset) = ((direct >> 6 & 0x3f).into(), direct & 0x3f);
                self.of_queue(port, queue, offset)
            }
            _ => None,
        }
    }

    fn write(&mut self, address: u16, value: u32) -> Option<()> {
        self.word(address).map(|word| word.store(value, Relaxed))
    }

    fn swap(&mut self, address: u16, old: u32, new: u32) -> Option<u32> {
        let (Ok(prior) | Err(prior)) = self.word(address)?.compare_exchange(old, new, Relaxed, Relaxed);
        Some(prior)
    }
}
