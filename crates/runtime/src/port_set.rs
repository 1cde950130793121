//! The ports of a switch: drivers, the frames that they did not send, and their losses.
//!
//! ```text
//! send_by ─> driver ─> flush: the driver's drop counts ─> PacketSwitch::take_back_sent
//! ```
//!
//! A switch counts a frame as sent when it leaves. A driver may drop the frame at once, drop it in a later flush, or be
//! lost. Every such frame is converted back into a drop, so the switch's counters account for it.

use std::os::fd::RawFd;

use ports::{Port, PortError, PortStats, Sent};
use switch::{DropReason, PacketSwitch, PortId};

/// A port of the switch and its driver.
pub struct AttachedPort {
    /// The port.
    pub id: PortId,
    /// The driver.
    pub driver: Box<dyn Port>,
    /// The error that ended the use of the driver.
    pub failure: Option<PortError>,
    /// Counts of the driver that the switch knows.
    settled: PortStats,
    /// Whether frames may wait in the driver for a flush.
    is_touched: bool,
}

impl AttachedPort {
    fn new(id: PortId, driver: Box<dyn Port>) -> AttachedPort {
        AttachedPort { id, driver, failure: None, settled: PortStats::default(), is_touched: false }
    }

    /// Replaces the driver. The counts of the new one begin anew.
    pub fn replace_driver(&mut self, driver: Box<dyn Port>) {
        (self.driver, self.settled) = (driver, PortStats::default());
    }

    /// Whether the driver can be used.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether the driver can be used and its device has a link.
    pub fn has_link(&self) -> bool {
        self.is_live() && self.driver.has_link()
    }
}

/// Called at once when a port can be used no longer.
pub type PortLossCallback = Box<dyn FnMut(PortId, &PortError) + Send>;

/// The ports of a switch. The switch is an argument of each call that may change its counters or its port states.
pub struct PortSet {
    ports: Vec<AttachedPort>,
    on_loss: PortLossCallback,
}

impl PortSet {
    /// Returns the ports with these drivers, in this order.
    pub fn new(ports: Vec<(PortId, Box<dyn Port>)>) -> PortSet {
        let ports = ports.into_iter().map(|(id, driver)| AttachedPort::new(id, driver)).collect();
        PortSet { ports, on_loss: Box::new(|_, _| ()) }
    }

    /// Sets the callback for a port that can be used no longer.
    pub fn set_on_loss(&mut self, on_loss: PortLossCallback) {
        self.on_loss = on_loss;
    }

    /// Returns the ports.
    #[inline]
    pub fn as_slice(&self) -> &[AttachedPort] {
        &self.ports
    }

    /// Returns the ports, to use their drivers.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [AttachedPort] {
        &mut self.ports
    }

    /// Ends the set and returns the ports.
    pub fn into_vec(self) -> Vec<AttachedPort> {
        self.ports
    }

    /// Returns the descriptors that are readable when a frame can be received.
    pub fn poll_fds(&self) -> impl Iterator<Item = RawFd> {
        self.ports.iter().filter(|port| port.is_live()).filter_map(|port| port.driver.poll_fd())
    }

    /// Passes a frame of `len` bytes to the driver of a port by calling `send`. The frame counts as dropped if the port
    /// is lost. A frame for a port outside the set is ignored. [`flush`](PortSet::flush) completes the transmission.
    #[inline]
    pub fn send_by<S: PacketSwitch>(
        &mut self,
        switch: &mut S,
        port: PortId,
        len: usize,
        send: impl FnOnce(&mut dyn Port) -> Result<Sent, PortError>,
    ) {
        let Some(index) = self.ports.iter().position(|attached| attached.id == port) else { return };
        let attached = &mut self.ports[index];
        if !attached.is_live() {
            return switch.take_back_sent(port, &[(DropReason::PortLost, 1)], len as u64);
        }
        attached.is_touched = true;
        if let Err(error) = send(&mut *attached.driver) {
            switch.take_back_sent(port, &[(DropReason::PortLost, 1)], len as u64);
            self.fail(switch, index, error);
        }
    }

    /// Flushes the drivers that got frames since the last call, and counts the frames that they could not send.
    #[inline]
    pub fn flush<S: PacketSwitch>(&mut self, switch: &mut S) {
        for index in 0..self.ports.len() {
            if std::mem::take(&mut self.ports[index].is_touched) && self.ports[index].is_live() {
                if let Err(error) = self.ports[index].driver.flush() {
                    self.fail(switch, index, error);
                }
                self.settle(switch, index);
            }
        }
    }

    /// Reports the frames that a driver could not send to the switch.
    #[inline]
    fn settle<S: PacketSwitch>(&mut self, switch: &mut S, index: usize) {
        let port = &mut self.ports[index];
        let (now, before) = (port.driver.counted(), port.settled);
        if now.tx_dropped() == before.tx_dropped() {
            return;
        }
        port.settled = now;
        let lost = [
            (DropReason::PortFull, now.tx_queue_full - before.tx_queue_full),
            (DropReason::PortLength, now.tx_bad_length - before.tx_bad_length),
            (DropReason::PortLost, now.tx_link_down - before.tx_link_down),
        ];
        switch.take_back_sent(port.id, &lost, now.tx_dropped_bytes - before.tx_dropped_bytes);
    }

    /// Ends the use of a driver and takes its port down in the switch.
    pub fn fail<S: PacketSwitch>(&mut self, switch: &mut S, index: usize, error: PortError) {
        switch.set_port_up(self.ports[index].id, false);
        self.lose(index, error);
    }

    /// Ends the use of a driver while there is no switch.
    pub fn lose(&mut self, index: usize, error: PortError) {
        let port = &mut self.ports[index];
        (self.on_loss)(port.id, &error);
        port.failure = Some(error);
    }

    /// Checks that the devices of the ports still exist, since not every driver learns of their end.
    pub fn check<S: PacketSwitch>(&mut self, switch: &mut S) {
        for index in 0..self.ports.len() {
            if self.ports[index].is_live()
                && let Err(error) = self.ports[index].driver.check()
            {
                self.fail(switch, index, error);
            }
        }
    }
}
