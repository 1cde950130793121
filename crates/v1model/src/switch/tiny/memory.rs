//! The memory of the switch, as tiny packet programs see it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cranelift_entity::{EntityRef, PrimaryMap};
use engine::Objects;
use ir::{RegisterId, TableId};
use switch::{EgressQueues, PRIORITIES, PortId, Ports, Registry, Stat};
use tpp::SwitchMemory;
use tpp::map::Namespace;

use super::entry_notes::MatchedEntry;
use super::{APPLICATION_WORDS, TinyPacket, TinyPrograms, VENDOR, offset};
use crate::switch::packet::{Leaving, Packet};

/// The memory of the switch as one packet sees it.
pub(super) struct PacketMemory<'a> {
    pub programs: &'a TinyPrograms,
    pub registry: &'a Registry,
    pub ports: &'a Ports,
    pub queues: &'a EgressQueues<Box<Packet>>,
    pub objects: &'a Objects,
    pub tables: &'a PrimaryMap<TableId, ir::Table>,
    /// Whether the registry has all counts. The registry of one of several workers has only its own.
    pub has_all_counts: bool,
    pub packet: &'a TinyPacket,
    pub input: PortId,
    pub leaving: Leaving,
    pub length: usize,
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

    /// Returns the register and the element at an address, if it has at most `bits` bits and is no part of a row under
    /// ownership, which another switch may have.
    fn register(&self, address: u32, bits: u32) -> Option<(RegisterId, u64)> {
        let place = self.programs.registers.find(address, bits)?;
        self.objects.check_not_in_rows(place.0).ok().map(|()| place)
    }

    fn of_register(&self, address: u32) -> Option<u64> {
        let (register, index) = self.register(address, 64)?;
        Some(self.objects.register_word(register, index))
    }

    fn of_switch(&self, offset: u16) -> Option<u64> {
        Some(match offset {
            offset::SWITCH_ID => self.programs.switch_id.into(),
            offset::SWITCH_VERSION => self.objects.version().into(),
            offset::SWITCH_CLOCK => self.leaving.at.as_ns(),
            offset::SWITCH_CLOCK_FREQUENCY => 1_000_000_000,
            offset::SWITCH_VENDOR_ID => VENDOR,
            offset::SWITCH_PORTS => self.programs.ports.len() as u64,
            offset::SWITCH_REGISTER_MAP => self.programs.registers.number.into(),
            _ => return None,
        })
    }

    /// Returns the value of a counter; `None` if there are several workers, as each has only a part of the counts.
    fn count(&self, stat: Stat) -> Option<u64> {
        self.has_all_counts.then(|| self.registry.value(stat))
    }

    /// Returns the sum of counters; `None` if there are several workers.
    fn sum(&self, stats: impl Iterator<Item = Stat>) -> Option<u64> {
        self.has_all_counts.then(|| stats.map(|stat| self.registry.value(stat)).sum())
    }

    /// Returns the sum over the queues of a port. `None` if none has a rate: then frames wait in the driver, and the
    /// switch does not know how many.
    fn waiting(&self, port: PortId, of_queue: impl Fn(usize) -> u64) -> Option<u64> {
        let has_rate = (0..PRIORITIES).any(|priority| self.queues.has_rate(port, priority));
        (has_rate && self.has_all_counts).then(|| (0..PRIORITIES).map(of_queue).sum())
    }

    fn of_link(&self, port: PortId, offset: u16) -> Option<u64> {
        let stats = self.programs.ports.get(&port)?;
        let at = self.leaving.at;
        match offset {
            offset::LINK_ID => Some(port.0.into()),
            offset::LINK_STATUS => Some(self.ports.is_up(port).into()),
            offset::LINK_CAPACITY => self.queues.bandwidth(port).map(|bps| bps / 8),
            offset::LINK_QUEUED_PACKETS => self.waiting(port, |priority| self.queues.depth(port, priority) as u64),
            offset::LINK_QUEUED_BYTES => self.waiting(port, |priority| self.queues.bytes(port, priority)),
            offset::LINK_TX_PACKETS => self.count(stats.tx[0]),
            offset::LINK_TX_BYTES => self.count(stats.tx[1]),
            offset::LINK_TX_UTILIZATION => self.queues.sent_share(port, at).map(u64::from),
            offset::LINK_RX_PACKETS => self.sum(stats.queues.iter().flat_map(|it| [it.entered[0], it.dropped[0]])),
            offset::LINK_RX_BYTES if (0..PRIORITIES).any(|priority| !self.queues.has_rate(port, priority)) => None,
            offset::LINK_RX_BYTES => self.sum(stats.queues.iter().flat_map(|it| [it.entered[1], it.dropped[1]])),
            offset::LINK_RX_UTILIZATION => self.queues.offered_share(port, at).map(u64::from),
            offset::LINK_DROP_PACKETS => self.sum(stats.queues.iter().map(|it| it.dropped[0])),
            offset::LINK_DROP_BYTES => self.sum(stats.queues.iter().map(|it| it.dropped[1])),
            offset::LINK_ERROR_PACKETS => self.count(stats.errors[0]),
            offset::LINK_ERROR_BYTES => self.count(stats.errors[1]),
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
        let depth = self.queues.depth(port, priority) as u64;
        let bytes = self.queues.bytes(port, priority);
        let has_rate = self.queues.has_rate(port, priority);
        match offset {
            // Without a rate, frames wait in the driver, and bytes of the packets that pass are not counted.
            offset::QUEUE_OCCUPANCY
            | offset::QUEUE_QUEUED_BYTES
            | offset::QUEUE_RX_BYTES
            | offset::QUEUE_TX_BYTES
            | offset::QUEUE_CAPACITY
                if !has_rate || !self.has_all_counts =>
            {
                None
            }
            offset::QUEUE_OCCUPANCY => Some(depth),
            offset::QUEUE_QUEUED_BYTES => Some(bytes),
            offset::QUEUE_ID | offset::QUEUE_PRIORITY => Some(priority as u64),
            offset::QUEUE_CAPACITY => Some(self.queues.capacity(port, priority) as u64),
            offset::QUEUE_RATE => self.queues.rate(port, priority),
            offset::QUEUE_TX_PACKETS => self.count(stats.entered[0]).map(|entered| entered.saturating_sub(depth)),
            offset::QUEUE_TX_BYTES => self.count(stats.entered[1]).map(|entered| entered.saturating_sub(bytes)),
            offset::QUEUE_RX_PACKETS => self.count(stats.entered[0]),
            offset::QUEUE_RX_BYTES => self.count(stats.entered[1]),
            offset::QUEUE_DROP_PACKETS => self.count(stats.dropped[0]),
            offset::QUEUE_DROP_BYTES => self.count(stats.dropped[1]),
            _ => None,
        }
    }

    fn of_stage(&self, stage: usize, offset: u16) -> Option<u64> {
        let table = TableId::new(stage);
        self.tables.get(table)?;
        match offset {
            offset::STAGE_VERSION => Some(self.objects.table_version(table).into()),
            offset::STAGE_ENTRIES => Some(self.objects.entry_count(table) as u64),
            _ => None,
        }
    }

    /// Returns a value of the entry that the packet matched in a table. Of an entry that was removed since, only the
    /// handle exists.
    fn of_entry(&self, stage: usize, offset: u16) -> Option<u64> {
        let table = TableId::new(stage);
        let handle = self.packet.matched_in(table).filter(|_| !self.objects.has_ledger(table))?;
        let stats = self.objects.entry_stats(table, handle);
        let counter = || stats?.counter.filter(|_| self.has_all_counts);
        match offset {
            offset::ENTRY_ID => Some(handle.number.into()),
            offset::ENTRY_GENERATION => Some(handle.generation.into()),
            offset::ENTRY_INSERT_CLOCK => Some(stats?.written_ns),
            offset::ENTRY_MATCH_PACKETS => Some(counter()?.packets),
            offset::ENTRY_MATCH_BYTES => Some(counter()?.bytes),
            _ => None,
        }
    }

    /// Returns the last match of the packet in a table whose entries have lasting numbers.
    fn last_match(&self) -> Option<MatchedEntry> {
        self.packet.matches().rev().find(|matched| !self.objects.has_ledger(matched.table))
    }

    fn of_packet(&self, offset: u16) -> Option<u64> {
        let (at, queued) = (self.leaving.at, self.packet.queued);
        Some(match offset {
            offset::PACKET_INPUT_PORT => self.input.0.into(),
            offset::PACKET_OUTPUT_PORT => self.leaving.port.0.into(),
            offset::PACKET_QUEUE_ID => queued?.priority as u64,
            offset::PACKET_MATCHED_ENTRY => self.last_match()?.handle.number.into(),
            offset::PACKET_MATCHED_STAGE => self.last_match()?.table.index() as u64,
            offset::PACKET_ENQUEUE_DEPTH => queued?.depth as u64,
            offset::PACKET_DEQUEUE_DEPTH => queued.map(|_| self.leaving.depth as u64)?,
            offset::PACKET_INGRESS_TIME => self.packet.arrived.as_ns(),
            offset::PACKET_EGRESS_TIME => at.as_ns(),
            offset::PACKET_HOP_LATENCY => at.since_ns(self.packet.arrived),
            offset::PACKET_QUEUE_TIME => at.since_ns(queued?.at),
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
            0x1000..0x2000 => {
                let offset = offset(Namespace::Stage);
                self.of_stage(usize::from(offset >> 6), offset & 0x3f)
            }
            0x2000..0x3000 => {
                let offset = offset(Namespace::FlowEntry);
                self.of_entry(usize::from(offset >> 6), offset & 0x3f)
            }
            0x3000..0x3400 => self.of_link(self.leaving.port, offset(Namespace::Link)),
            0x3c00..0x4000 => self.of_input(offset(Namespace::InputLink)),
            0x4000..0x4800 => self.of_packet(offset(Namespace::PacketMetadata)),
            0x8000..0xb000 => self.of_register(address.into()),
            0xb000..0xb040 => self.of_queue(self.leaving.port, self.packet.queued?.priority, offset(Namespace::Queue)),
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
            (2, _) => self.of_register(address),
            _ => None,
        }
    }

    fn write(&mut self, address: u16, value: u32) -> Option<()> {
        if let Some((register, index)) = self.register(address.into(), 32) {
            self.objects.set_register_word(register, index, value.into());
            return Some(());
        }
        self.word(address).map(|word| word.store(value, Relaxed))
    }

    fn swap(&mut self, address: u16, old: u32, new: u32) -> Option<u32> {
        if let Some((register, index)) = self.register(address.into(), 32) {
            return Some(self.objects.exchange_register_word(register, index, old.into(), new.into()) as u32);
        }
        let (Ok(prior) | Err(prior)) = self.word(address)?.compare_exchange(old, new, Relaxed, Relaxed);
        Some(prior)
    }
}
