//! Runs the program in the kernel beside the switch: describes the pipeline, keeps the tables of the kernel's region
//! equal to those of the switch, and adds the counts of the packets there to the switch's own.
//!
//! ```text
//! write ─> objects ─ publish ─> region ─> packets in the kernel ─ counts ─ collect ─> registry, objects
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpf::{CountSink, EntryHits, KernelCode, PortState, RegionError, RegionWriter, WaitForPacket};
use engine::{CounterValue, EntryHandle, MayWait, Objects};
use ir::{CounterId, LocId, Program, TableId};
use switch::{DropReason, Drops, PRIORITIES, PortId, Ports, Registry};

use super::Switch;
use super::layout::{Layout, LoadError};
use super::state::{result, whole_steps};
use super::stats::Stats;

/// Returns the steps of a packet through the whole pipeline: received, processed, and sent by one port or dropped.
/// Everything else that the switch does for a packet is handed over.
///
/// # Errors
/// If the program is not a v1model program.
pub fn kernel_pipeline(program: &Program) -> Result<bpf::KernelPipeline, LoadError> {
    let layout = Layout::new(program)?;
    let (steps, egress_begins) = whole_steps(program, &layout, [MayWait::default(); 2]);
    let standard = layout.standard;
    Ok(bpf::KernelPipeline {
        steps,
        egress_begins,
        ingress_port: standard.ingress_port,
        egress_port: result::EGRESS_PORT,
        drop_site: standard.drop_site,
        arrival_time: standard.ingress_global_timestamp,
    })
}

/// Memory that the kernel's code and the switch share: the words of a region.
pub type KernelMemory = engine::SharedWords;

/// The packets that a port received and sent in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPortCount {
    /// Packets that the port received, and that were sent or dropped in the kernel.
    pub received: CounterValue,
    /// Packets that left by the port.
    pub sent: CounterValue,
    /// Packets that were dropped without effects, as the switch was behind with earlier ones of their flow.
    pub crowded: CounterValue,
}

/// The code of a program in the kernel, as the switch sees it.
pub(super) struct KernelLink {
    writer: RegionWriter,
    memory: KernelMemory,
    /// The devices of ports. Packets to other ports are handed over.
    devices: BTreeMap<PortId, PortState>,
    /// The port states in the region, as last written.
    written: BTreeMap<PortId, (PortState, bool)>,
    /// Whether something besides tables has changed since the last update.
    ports_changed: bool,
    /// Whether the gate is closed until the next update.
    is_suspended: bool,
    /// Set when the program is replaced or the run ends. The gate stays closed then.
    has_left: bool,
    failure: Option<RegionError>,
}

/// The packets that ports received and sent in the kernel, in all programs so far.
pub(super) type KernelCounts = BTreeMap<PortId, KernelPortCount>;

/// Ports whose packets, in both directions, are handed over by every program.
pub(super) type DivertedPorts = BTreeSet<PortId>;

/// Adds the counts of the kernel to those of the switch.
struct Collector<'s> {
    objects: &'s mut Objects,
    registry: &'s mut Registry,
    ports: &'s Ports,
    drops: &'s mut Drops,
    stats: &'s Stats,
    counts: &'s mut KernelCounts,
}

impl CountSink for Collector<'_> {
    fn received(&mut self, port: u32, count: CounterValue) {
        self.ports.count_many_rx(self.registry, PortId(port), count.packets, count.bytes);
        add(&mut self.counts.entry(PortId(port)).or_default().received, count);
    }

    fn sent(&mut self, port: u32, count: CounterValue) {
        self.ports.count_passed(self.registry, (PortId(port), 0), count.packets, [count.packets, count.bytes]);
        add(&mut self.counts.entry(PortId(port)).or_default().sent, count);
    }

    fn unsent(&mut self, port: u32, count: CounterValue) {
        self.drops.count_many(self.registry, DropReason::PortLost, 0, count.packets);
        self.ports.take_back_tx(self.registry, PortId(port), count.packets, count.bytes);
        let sent = &mut self.counts.entry(PortId(port)).or_default().sent;
        sent.packets = sent.packets.saturating_sub(count.packets);
        sent.bytes = sent.bytes.saturating_sub(count.bytes);
    }

    fn crowded(&mut self, port: u32, count: CounterValue) {
        add(&mut self.counts.entry(PortId(port)).or_default().crowded, count);
    }

    fn dropped(&mut self, is_by_egress: bool, place: LocId, packets: u64) {
        let reason = if is_by_egress { DropReason::EgressProgram } else { DropReason::IngressProgram };
        self.drops.count_many(self.registry, reason, place.as_u32(), packets);
    }

    fn parser_errors(&mut self, packets: u64) {
        self.registry.add(self.stats.parser_errors, packets);
    }

    fn counted(&mut self, counter: CounterId, index: u32, count: CounterValue) {
        self.objects.add_to_counter(counter, index.into(), count);
    }

    fn hit(&mut self, table: TableId, entry: EntryHandle, hits: EntryHits) {
        self.objects.add_hits(table, entry, hits.count, hits.last_ns);
    }
}

/// Returns the failure of a table whose entries do not fit.
fn full_table(writer: &RegionWriter, program: &Program) -> Option<RegionError> {
    writer.full_table().map(|table| RegionError::TableFull { table: program.tables[table].name.clone() })
}

fn add(to: &mut CounterValue, more: CounterValue) {
    to.packets = to.packets.wrapping_add(more.packets);
    to.bytes = to.bytes.wrapping_add(more.bytes);
}

impl KernelLink {
    /// Notes that ports, queues or their rates have changed.
    pub fn note_ports_changed(&mut self) {
        self.ports_changed = true;
    }
}

impl Switch {
    /// Gives the code of this switch's program the present entries. Packets in the kernel see later changes with
    /// [`Switch::publish`], all at once. All ports are slow at first: see [`Switch::set_kernel_device`].
    ///
    /// `memory` is the region that the code was loaded with, all zeros. The caller attaches the code, and gives the
    /// switch the frames that it hands over. `waits` waits for packets that run in the kernel. Registers, meters, and
    /// the lock of `@atomic` blocks lie in the region from now on, so no worker may run packets meanwhile.
    ///
    /// # Errors
    /// If the members of an action profile do not fit into the region: then all packets are handed over until a change
    /// makes room. Entries that do not fit are no error, see [`Switch::kernel_failure`]. Or if the registers or meters
    /// lie in the region of earlier code.
    ///
    /// # Panics
    /// If the code is of another program, or the memory is smaller than the region.
    pub fn attach_kernel(
        &mut self,
        code: &KernelCode,
        memory: KernelMemory,
        waits: WaitForPacket,
    ) -> Result<(), RegionError> {
        for (register, first) in code.layout.registers() {
            if !self.objects.share_register(register, Arc::clone(&memory), first) {
                return Err(RegionError::Shared);
            }
        }
        for (meter, first) in code.layout.meters() {
            if !self.objects.share_meter(meter, Arc::clone(&memory), first) {
                return Err(RegionError::Shared);
            }
        }
        for (table, first, count) in code.layout.direct_meters() {
            if !self.objects.share_direct_meter(table, Arc::clone(&memory), first, count) {
                return Err(RegionError::Shared);
            }
        }
        if let Some(at) = code.layout.atomic_lock()
            && !self.objects.share_atomic_lock(Arc::clone(&memory), at)
        {
            return Err(RegionError::Shared);
        }
        let mut writer = RegionWriter::new(&code.layout, waits);
        let filled = writer.fill((*memory).as_ref(), &self.program, &self.objects);
        let failure = filled.clone().err().or_else(|| full_table(&writer, &self.program));
        self.objects.record_changes();
        self.kernel = Some(Box::new(KernelLink {
            writer,
            memory,
            devices: BTreeMap::new(),
            written: BTreeMap::new(),
            ports_changed: true,
            is_suspended: false,
            has_left: false,
            failure,
        }));
        filled
    }

    /// Sets the device by which packets in the kernel leave a port; they are handed over without one, and while the
    /// port is down or has a rate. Takes effect with [`Switch::publish`].
    pub fn set_kernel_device(&mut self, port: PortId, device: PortState) {
        if let Some(link) = &mut self.kernel {
            link.devices.insert(port, device);
            link.ports_changed = true;
        }
    }

    /// Hands over all packets that a port receives or sends, or stops to do so. Takes effect with [`Switch::publish`],
    /// and applies to code that is attached later, too, also to that of another program.
    pub fn divert_kernel_port(&mut self, port: PortId, is_diverted: bool) {
        let diverted = &mut self.kernel_diverted;
        let has_changed = if is_diverted { diverted.insert(port) } else { diverted.remove(&port) };
        if let Some(link) = &mut self.kernel {
            link.ports_changed |= has_changed;
        }
    }

    /// Sets the time of the kernel's monotonic clock at the time 0 of this switch, in nanoseconds. Before that, packets
    /// that read the time are handed over.
    pub fn set_kernel_clock(&mut self, origin_ns: u64) {
        if let Some(link) = &self.kernel {
            bpf::set_clock_origin(link.writer.layout(), (*link.memory).as_ref(), origin_ns);
        }
    }

    /// Whether packets run, or ran, in the kernel.
    pub fn has_kernel_code(&self) -> bool {
        self.kernel.is_some() || !self.kernel_counts.is_empty()
    }

    /// Whether packets run in the kernel.
    pub fn is_in_kernel(&self) -> bool {
        self.kernel.as_ref().is_some_and(|link| link.writer.is_open())
    }

    /// Returns the reason why no more packets run in the kernel although the code is attached; or the reason why some
    /// do not, if it is [`RegionError::TableFull`].
    pub fn kernel_failure(&self) -> Option<&RegionError> {
        self.kernel.as_ref()?.failure.as_ref()
    }

    /// Returns the packets that a port received and sent in the kernel, as collected so far.
    pub fn kernel_count(&self, port: PortId) -> KernelPortCount {
        self.kernel_counts.get(&port).copied().unwrap_or_default()
    }

    /// Hands over all packets until the next [`Switch::publish`], and waits for those that run in the kernel, for 50 ms
    /// at most: a packet that runs longer, on a processor that was taken away, is not waited for.
    pub fn suspend_kernel(&mut self) {
        if let Some(link) = self.kernel.as_mut() {
            let memory = (*link.memory).as_ref();
            if link.writer.is_open() {
                link.writer.close(memory);
                link.is_suspended = true;
            }
            // A packet that has not finished by then is reported by the update, if it still has not.
            let _ = link.writer.wait_for_packets(memory);
        }
    }

    /// Writes everything that has changed to the region.
    #[inline]
    pub(super) fn update_kernel(&mut self) {
        if self.kernel.as_ref().is_some_and(|link| link.ports_changed || link.is_suspended)
            || self.objects.has_changes()
        {
            self.update_region();
        }
    }

    #[cold]
    fn update_region(&mut self) {
        let changes = self.objects.take_changes();
        let Some(mut link) = self.kernel.take_if(|link| !link.has_left) else { return };
        link.ports_changed = false;
        let was_suspended = std::mem::take(&mut link.is_suspended);
        // A packet that had not finished has done so by now; entries that did not fit fit only after another change.
        if !changes.is_empty() || was_suspended || link.failure == Some(RegionError::Stuck) {
            self.update_tables(&mut link, &changes);
        }
        for (port, device) in &link.devices {
            let may_wait = (0..PRIORITIES).any(|priority| !self.queues.is_open(*port, priority));
            let receives = self.ports.is_up(*port) && !self.kernel_diverted.contains(port);
            let state = (if may_wait || !receives { PortState::Slow } else { *device }, receives);
            if link.written.insert(*port, state) != Some(state) {
                bpf::set_port(link.writer.layout(), (*link.memory).as_ref(), port.0, state.0, receives);
            }
        }
        self.kernel = Some(link);
    }

    fn update_tables(&mut self, link: &mut KernelLink, changes: &BTreeSet<engine::ChangedEntry>) {
        // The update borrows the objects, so hits are added after it. Those of removed entries are ignored.
        let mut hits = Vec::new();
        let memory = Arc::clone(&link.memory);
        let result =
            link.writer.update((*memory).as_ref(), &self.program, &self.objects, changes, &mut HitList(&mut hits));
        link.failure = result.err().or_else(|| full_table(&link.writer, &self.program));
        self.add_hits(hits);
    }

    fn add_hits(&mut self, hits: Vec<(TableId, EntryHandle, EntryHits)>) {
        for (table, entry, EntryHits { count, last_ns }) in hits {
            self.objects.add_hits(table, entry, count, last_ns);
        }
    }

    /// Adds the hits of a table's entries in the kernel to those of the switch. Looks at no other part of the region.
    pub(super) fn collect_hits(&mut self, table: TableId) {
        let Some(link) = &self.kernel else { return };
        let mut hits = Vec::new();
        link.writer.collect_hits((*link.memory).as_ref(), table, &mut HitList(&mut hits));
        self.add_hits(hits);
    }

    /// Adds what packets in the kernel have counted since the last call to the counts of the switch.
    pub fn collect_counts(&mut self) {
        let Some(mut link) = self.kernel.take() else { return };
        let memory = Arc::clone(&link.memory);
        let (counts, stats) = (&mut self.kernel_counts, &self.stats);
        let (objects, registry, ports, drops) = (&mut self.objects, &mut self.registry, &self.ports, &mut self.drops);
        link.writer
            .collect_counts((*memory).as_ref(), &mut Collector { objects, registry, ports, drops, stats, counts });
        self.kernel = Some(link);
    }

    /// Counts frames that left by a port in the kernel and that its device then lost. Their lengths are not known;
    /// each counts with the average length of the frames sent by the port.
    pub fn count_lost_in_kernel(&mut self, port: PortId, frames: u64) {
        self.collect_counts();
        let Some(count) = self.kernel_counts.get_mut(&port) else { return };
        let frames = frames.min(count.sent.packets);
        let bytes = count.sent.bytes.checked_div(count.sent.packets).unwrap_or(0) * frames;
        count.sent.packets -= frames;
        count.sent.bytes -= bytes;
        self.take_back_sent(port, &[(DropReason::PortFull, frames)], bytes);
    }

    /// Counts frames whose redirect to a device failed at once: it is down, or accepts no redirected frames any more.
    /// The kernel does not say which device, so they stay among the sent frames, too.
    pub fn count_failed_in_kernel(&mut self, frames: u64) {
        self.drops.count_many(&mut self.registry, DropReason::PortLost, 0, frames);
    }

    /// Hands over all packets from now on, waits for those that run in the kernel, and collects what they counted.
    pub fn leave_kernel(&mut self) {
        if let Some(link) = &mut self.kernel {
            let memory = Arc::clone(&link.memory);
            link.writer.close((*memory).as_ref());
            link.has_left = true;
            link.failure = link.writer.wait_for_packets((*memory).as_ref()).err();
            self.collect_counts();
        }
    }
}

/// Notes the hits of entries while the objects are read.
struct HitList<'h>(&'h mut Vec<(TableId, EntryHandle, EntryHits)>);

impl CountSink for HitList<'_> {
    fn hit(&mut self, table: TableId, entry: EntryHandle, hits: EntryHits) {
        self.0.push((table, entry, hits));
    }
}
