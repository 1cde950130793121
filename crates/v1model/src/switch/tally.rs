//! Collects what the packets of a batch count. Packets in a row with the same port, or with the same reason for their
//! drop, change the counters of the switch once.

use switch::{DropReason, PortId};

use super::Switch;

/// Counts of a batch that are not yet in the counters of the switch.
#[derive(Debug, Default)]
pub(super) struct BatchTally {
    /// Number of received frames, and of their bytes.
    pub received: [u64; 2],
    pub parser_errors: u64,
    passed: PassedRun,
    dropped: DroppedRun,
}

/// Packets in a row that passed the same queue at once.
#[derive(Debug)]
struct PassedRun {
    port: PortId,
    priority: usize,
    queued: u64,
    /// Number of transmitted frames, and of their bytes.
    sent: [u64; 2],
    /// Whether a frame of a valid length that passes the queue leaves by the port.
    is_clear: bool,
}

impl Default for PassedRun {
    fn default() -> Self {
        PassedRun { port: PortId(u32::MAX), priority: 0, queued: 0, sent: [0; 2], is_clear: false }
    }
}

/// Packets dropped for the same reason at the same place.
#[derive(Debug)]
struct DroppedRun {
    reason: DropReason,
    site: u32,
    packets: u64,
}

impl Default for DroppedRun {
    fn default() -> Self {
        DroppedRun { reason: DropReason::IngressProgram, site: 0, packets: 0 }
    }
}

impl BatchTally {
    /// Counts a frame that leaves by the port of the last [`Switch::tally_queued`].
    #[inline(always)]
    pub fn sent(&mut self, bytes: usize) {
        self.passed.sent[0] += 1;
        self.passed.sent[1] += bytes as u64;
    }
}

impl Switch {
    /// Prefetches the counters of the ports that packets leave by, so that those of many ports do not stall.
    #[inline(always)]
    pub(super) fn prefetch_counters(&self, ports: impl Iterator<Item = PortId>) {
        let mut last = None;
        for port in ports {
            if last.replace(port) != Some(port) {
                self.ports.prefetch_passed(&self.registry, port);
            }
        }
    }

    /// Counts a packet that passes an open queue at once. Returns whether it leaves by the port if its length is valid:
    /// the port is up, and is not the one to the control plane.
    #[inline(always)]
    pub(super) fn tally_queued(&mut self, tally: &mut BatchTally, port: PortId, priority: usize) -> bool {
        let passed = &mut tally.passed;
        if (passed.port, passed.priority) != (port, priority) {
            self.count_passed(passed);
            let is_clear = self.ports.is_up(port) && self.config.cpu_port != Some(port);
            *passed = PassedRun { port, priority, queued: 0, sent: [0; 2], is_clear };
        }
        passed.queued += 1;
        passed.is_clear
    }

    /// Counts a packet that a statement of the program dropped.
    #[inline(always)]
    pub(super) fn tally_dropped(&mut self, tally: &mut BatchTally, reason: DropReason, site: u32) {
        let dropped = &mut tally.dropped;
        if (dropped.reason, dropped.site) != (reason, site) {
            self.count_dropped(dropped);
            *dropped = DroppedRun { reason, site, packets: 0 };
        }
        dropped.packets += 1;
    }

    #[inline(always)]
    fn count_passed(&mut self, passed: &PassedRun) {
        if passed.queued > 0 {
            self.ports.count_passed(&mut self.registry, (passed.port, passed.priority), passed.queued, passed.sent);
        }
    }

    #[inline(always)]
    fn count_dropped(&mut self, dropped: &DroppedRun) {
        if dropped.packets > 0 {
            self.drops.count_many(&mut self.registry, dropped.reason, dropped.site, dropped.packets);
        }
    }

    /// Adds everything to the counters of the switch. `port` received the batch.
    pub(super) fn count_batch(&mut self, tally: &BatchTally, port: PortId) {
        let [frames, bytes] = tally.received;
        self.ports.count_many_rx(&mut self.registry, port, frames, bytes);
        self.registry.add(self.stats.parser_errors, tally.parser_errors);
        self.count_passed(&tally.passed);
        self.count_dropped(&tally.dropped);
    }
}
