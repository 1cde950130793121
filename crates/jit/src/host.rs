//! The context in which compiled code runs: what it borrows from its caller.

use engine::{BitString, Colour, Objects, Requested};
use ir::{LocId, Program};

use crate::layout::FrameLayout;
use crate::packet::{DeferredRequest, Packet, PacketTemplate};
use crate::waiting::WaitingRequests;

/// The context that a run lends to the runtime functions.
pub(crate) struct Host<'a> {
    pub program: &'a Program,
    pub layout: &'a FrameLayout,
    pub objects: &'a mut Objects,
    /// The packet's request list, which is read by others between runs.
    pub requests: *mut Vec<(Requested, LocId)>,
    pub deferred: *mut Vec<DeferredRequest>,
    pub waiting: *mut WaitingRequests,
    pub colours: *mut Vec<Colour>,
    pub emitted: *mut BitString,
    pub replaced: *mut Vec<u8>,
    pub now_ns: u64,
    pub covered: *mut BitString,
    /// Scratch memory for headers that are being moved.
    pub moved: *mut Vec<u8>,
    pub saved: *mut Vec<u64>,
}

impl<'a> Host<'a> {
    /// Creates the host for runs on a packet.
    ///
    /// # Safety
    /// `packet` is valid, and only its frame is otherwise in use while code runs.
    #[inline]
    pub unsafe fn new(
        template: &'a PacketTemplate,
        packet: *mut Packet,
        objects: &'a mut Objects,
        now_ns: u64,
    ) -> Host<'a> {
        // SAFETY: `packet` is valid by the caller's promise; no reference is created.
        unsafe {
            Host {
                program: &template.program,
                layout: &template.layout,
                objects,
                requests: &raw mut (*packet).requests,
                deferred: &raw mut (*packet).deferred,
                waiting: &raw mut (*packet).waiting,
                colours: &raw mut (*packet).colours,
                emitted: &raw mut (*packet).emitted,
                replaced: &raw mut (*packet).replaced,
                now_ns,
                covered: &raw mut (*packet).covered,
                moved: &raw mut (*packet).moved,
                saved: &raw mut (*packet).saved,
            }
        }
    }
}

impl Host<'_> {
    /// Leaves an atomic section that a run did not end, so that no other worker waits for it.
    pub fn end_atomics(&mut self) {
        self.objects.end_all_atomics();
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.end_atomics();
    }
}
