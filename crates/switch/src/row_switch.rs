//! Defines switches whose packets can wait: for a row that the switch does not own yet, and for the acknowledgement of
//! what they wrote.

use engine::{Dependency, StateRow};

use crate::{DropReason, Frame, Notification, PacketSwitch, PortId};

/// A row that a packet began to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedRow {
    /// The row.
    pub row: StateRow,
    /// The row for which the packet, or the one that caused it, had waited just before.
    pub after: Option<StateRow>,
}

/// Something that a packet sent and that must not be seen yet.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOutput {
    /// The condition for which it waits.
    pub dependency: Dependency,
    /// The output.
    pub output: Output,
}

/// The outputs of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A frame. It is counted as sent.
    Frame(Frame),
    /// A notification of the control plane.
    Notification(Notification),
}

/// A switch that runs programs with rows (`@resilient`). Until [`RowSwitch::own_rows`] is called, registers are those
/// of this switch alone, and packets wait for nothing.
///
/// A wrapper decides which rows the switch owns, in [`SwitchControl::objects_mut`](crate::SwitchControl::objects_mut).
/// After each step it takes the rows for which packets wait, the writes, and the outputs that must wait for them.
pub trait RowSwitch: PacketSwitch {
    /// Puts the rows of the program under ownership. `max_parked` is the maximum number of packets that wait for rows;
    /// further ones are dropped ([`DropReason::RowQueueFull`]).
    fn own_rows(&mut self, max_parked: usize);

    /// Counts a frame that the wrapper received on a port, and that the program does not see.
    fn count_received(&mut self, port: PortId, bytes: usize);

    /// Counts a frame that the wrapper sends on a port.
    fn count_sent(&mut self, port: PortId, bytes: usize);

    /// Whether packets began to wait for rows, or outputs are held, since both were taken.
    fn has_waiting(&self) -> bool;

    /// Exchanges the rows that packets began to wait for since the last call for an empty list, whose memory is used
    /// for the next. An entry of an `@elastic` table is there once for each packet that does, other rows only for the
    /// first one.
    fn swap_awaited(&mut self, into: &mut Vec<AwaitedRow>);

    /// Removes and returns these rows.
    fn take_awaited(&mut self) -> Vec<StateRow> {
        let mut awaited = Vec::new();
        self.swap_awaited(&mut awaited);
        awaited.into_iter().map(|awaited| awaited.row).collect()
    }

    /// Returns the number of packets that wait for a row.
    fn parked(&self, row: StateRow) -> usize;

    /// Returns the number of packets that wait for rows.
    fn all_parked(&self) -> usize;

    /// Lets the packets that wait for a row run in the next step, before any other packet.
    fn resume(&mut self, row: StateRow);

    /// Lets packets that wait for a row run in the next step although there is no such row: at most `most`, those that
    /// have waited longest. Its tables then have a miss.
    fn resume_without(&mut self, row: StateRow, most: usize);

    /// Drops the packets that wait for a row.
    fn drop_parked(&mut self, row: StateRow, reason: DropReason);

    /// Drops all packets that wait for rows.
    fn drop_all_parked(&mut self, reason: DropReason);

    /// Exchanges the outputs since the last call that depend on writes of rows, oldest first, for an empty list, whose
    /// memory is used for the next.
    fn swap_held(&mut self, into: &mut Vec<HeldOutput>);

    /// Queues a notification that was held, for the control plane. Beyond the maximum number, it counts as lost.
    fn release_notification(&mut self, notification: Notification);

    /// Counts a held notification that is dropped.
    fn count_lost_notification(&mut self);

    /// Removes and returns the outputs since the last call that depend on writes of rows, oldest first.
    fn take_held(&mut self) -> Vec<HeldOutput> {
        let mut held = Vec::new();
        self.swap_held(&mut held);
        held
    }
}
