//! A port of a live switch: the directions of its link, and its counts.

use lab::sim::Cable;
use runtime::AttachedPort;

use crate::capture::CaptureSender;
use crate::kernel_part::KernelPackets;
use crate::link_direction::LinkDirection;
use crate::switch_status::PortStatus;

/// A port: the directions of its link.
pub struct SwitchPort {
    pub number: u32,
    /// Direction to the other end.
    pub out: LinkDirection,
    /// Direction from the host at the other end. Another switch shapes what it sends itself.
    pub back: Option<LinkDirection>,
    /// Whether the switch at the other end runs, if there is one.
    pub far_end_runs: bool,
    pub captures: Vec<CaptureSender>,
    /// Frames that the switch received, and those that arrived after it crashed.
    pub received: u64,
    lost_while_failed: u64,
    /// Packets that the kernel processed before the last crash.
    pub before_crash: KernelPackets,
    /// Whether the process of the switch is about to be suspended, so the kernel must not go on without it.
    pub is_held: bool,
    /// Whether the kernel hands over all packets of the port.
    pub is_diverted: bool,
}

impl SwitchPort {
    /// Returns a port with the cables of its link.
    pub fn new(number: u32, out: Cable, back: Option<Cable>) -> SwitchPort {
        SwitchPort {
            number,
            out: LinkDirection::new(out),
            back: back.map(LinkDirection::new),
            far_end_runs: true,
            captures: Vec::new(),
            received: 0,
            lost_while_failed: 0,
            before_crash: KernelPackets::default(),
            is_held: false,
            is_diverted: false,
        }
    }

    /// Whether its link carries frames and the other end runs.
    pub fn is_up(&self) -> bool {
        self.out.cable.is_up() && self.far_end_runs
    }

    /// Counts and captures a frame that arrives at the switch.
    pub fn arrive(&mut self, now: u64, frame: &[u8], is_failed: bool) {
        *(if is_failed { &mut self.lost_while_failed } else { &mut self.received }) += 1;
        self.capture(now, frame);
    }

    pub fn capture(&mut self, now: u64, frame: &[u8]) {
        self.captures.retain(CaptureSender::is_open);
        self.captures.iter().for_each(|to| to.send(now, frame));
    }

    /// Whether frames of the port must pass the thread: they are captured, or the host at the other end is slow; or the
    /// thread is about to be suspended.
    pub fn needs_thread(&mut self) -> bool {
        self.captures.retain(CaptureSender::is_open);
        self.is_held || !self.captures.is_empty() || self.out.is_slow()
    }

    /// Returns the state of the port. `kernel` are the packets that the present code in the kernel processed.
    pub fn status(&self, driver: &AttachedPort, kernel: KernelPackets) -> PortStatus {
        let mut all = self.before_crash;
        all += kernel;
        let back = self.back.as_ref();
        PortStatus {
            port: self.number,
            up: self.is_up(),
            received: self.received + all.received,
            lost_while_failed: self.lost_while_failed,
            sent: self.out.cable.stats.carried + all.sent,
            sent_bytes: self.out.cable.stats.carried_bytes + all.sent_bytes,
            dropped: self.out.dropped(),
            from_host: back.map(|direction| direction.cable.stats.carried + all.received),
            from_host_bytes: back.map(|direction| direction.cable.stats.carried_bytes + all.received_bytes),
            from_host_dropped: back.map(LinkDirection::dropped),
            failure: driver.failure.as_ref().map(ToString::to_string),
        }
    }
}
