//! Requests that packets of a batch set aside for the caller, which acts on them when all packets have run.

use engine::Requested;
use ir::{FieldListItem, LocId};

use crate::layout::SlotLayout;
use crate::packet::Packet;

/// A request of a packet of a batch that the caller may act on later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingRequest {
    /// Index of the packet in the batch.
    pub packet: usize,
    /// The step of the unit at which it was set aside.
    pub step: usize,
    /// The request.
    pub request: Requested,
    /// Its place in the source.
    pub loc: LocId,
    /// Index of the first preserved word.
    pub(crate) preserved: usize,
}

/// Requests that were set aside, in the order of their packets, and the slots that field lists preserve.
#[derive(Debug, Default)]
pub struct WaitingRequests {
    pub(crate) requests: Vec<WaitingRequest>,
    /// The input words of frames ([`FrameLayout::inputs`]).
    pub(crate) preserved: Vec<u64>,
}

impl WaitingRequests {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.preserved.clear();
    }

    /// Returns the requests, from which those of each packet are taken in turn.
    #[inline]
    pub fn by_packet(&self) -> RequestsByPacket<'_> {
        RequestsByPacket { requests: &self.requests, preserved: &self.preserved }
    }
}

/// Requests that have not been taken yet.
#[derive(Debug)]
pub struct RequestsByPacket<'w> {
    requests: &'w [WaitingRequest],
    preserved: &'w [u64],
}

impl<'w> RequestsByPacket<'w> {
    /// Takes the requests of a packet; those of earlier ones have been taken.
    #[inline]
    pub fn take(&mut self, packet: usize) -> WaitingOfPacket<'w> {
        let count = self.requests.iter().take_while(|request| request.packet == packet).count();
        let (requests, others) = self.requests.split_at(count);
        self.requests = others;
        WaitingOfPacket { packet, requests, preserved: self.preserved }
    }
}

/// The requests that one packet of a batch set aside. Of each kind, the last counts.
#[derive(Clone, Copy, Debug)]
pub struct WaitingOfPacket<'w> {
    packet: usize,
    requests: &'w [WaitingRequest],
    preserved: &'w [u64],
}

impl<'w> WaitingOfPacket<'w> {
    /// Returns the index of the packet in its batch.
    #[inline]
    pub fn packet(&self) -> usize {
        self.packet
    }

    /// Returns all requests with their places in the source.
    pub fn all(&self) -> impl Iterator<Item = (Requested, LocId)> {
        self.requests.iter().map(|waiting| (waiting.request.clone(), waiting.loc))
    }

    /// Returns the last request that `chosen` accepts, with the slots that field lists preserve.
    fn last<T>(&self, chosen: impl Fn(&WaitingRequest) -> Option<T>) -> Option<(T, PreservedSlots<'w>)> {
        let found = self.requests.iter().rev().find_map(|waiting| Some((chosen(waiting)?, waiting.preserved)));
        found.map(|(found, at)| (found, PreservedSlots { words: &self.preserved[at..] }))
    }

    /// Returns the clone that was requested before a step: its session, its field list, and the preserved slots.
    #[inline]
    pub fn clone_before(&self, step: usize) -> Option<(u32, Option<u32>, PreservedSlots<'w>)> {
        let found = self.last(|waiting| match waiting.request {
            Requested::Clone { session, keep, .. } if waiting.step < step => Some((session, keep)),
            _ => None,
        });
        found.map(|((session, keep), preserved)| (session, keep, preserved))
    }

    /// Returns the resubmission that was requested before a step: its field list and the preserved slots.
    #[inline]
    pub fn resubmission_before(&self, step: usize) -> Option<(Option<u32>, PreservedSlots<'w>)> {
        self.last(|waiting| match waiting.request {
            Requested::Resubmit(keep) if waiting.step < step => Some(keep),
            _ => None,
        })
    }

    /// Returns the recirculation that was requested at a step or later: its field list and the preserved slots.
    #[inline]
    pub fn recirculation_from(&self, step: usize) -> Option<(Option<u32>, PreservedSlots<'w>)> {
        self.last(|waiting| match waiting.request {
            Requested::Recirculate(keep) if waiting.step >= step => Some(keep),
            _ => None,
        })
    }
}

/// The slots of a packet that field lists preserve.
#[derive(Clone, Copy, Debug)]
pub struct PreservedSlots<'w> {
    words: &'w [u64],
}

impl Packet {
    /// Takes the values of a field list from slots that were set aside.
    ///
    /// # Panics
    /// Panics if the field list has headers.
    #[inline]
    pub fn keep_preserved(&mut self, preserved: PreservedSlots<'_>, items: &[FieldListItem]) {
        let first = self.template.layout.inputs.0 as usize;
        for item in items {
            let FieldListItem::Slot(slot) = item else { panic!("no headers are set aside") };
            let SlotLayout { word, width, .. } = self.template.layout.slots[slot.as_u32() as usize];
            let words = word as usize..(word + width.div_ceil(64)) as usize;
            let from = words.start - first..words.end - first;
            self.frame[words].copy_from_slice(&preserved.words[from]);
        }
    }
}
