//! Defines the part of a live switch that runs in the kernel, independent of its architecture.
//!
//! ```text
//!  link without shape ─> kernel port: the program at XDP ─┬─> device of another kernel port
//!                                                         ├─> drop
//!                                                         └─> thread of the switch
//!  shaped link ────────> ordinary port ───────────────────────> thread of the switch ─> links
//! ```
//!
//! The thread of a switch shapes, slows and captures the frames of its ports, so frames that need this must pass it.
//! Links that are shaped have ordinary ports. A kernel port is [diverted](KernelPart::divert) while it is captured or
//! its host is slow, and it is down in the switch while its link is down.

use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ports::XdpAttachment;
use runtime::Hook;
use switch::PortId;

/// Maximum number of notes that are kept.
const MAX_NOTES: usize = 16;

/// The ports of a switch that are to run its program in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelPlan {
    /// The numbers of the ports.
    pub ports: Vec<u32>,
    /// Whether the switch must not start if one of them cannot.
    pub is_required: bool,
}

/// A kernel port.
pub struct KernelPort {
    /// Its number.
    pub id: PortId,
    /// Its program in the kernel.
    pub attachment: XdpAttachment,
    /// Whether all its packets are handed over from the start, as [`KernelPart::divert`] would do.
    pub is_diverted: bool,
}

/// The part of a switch that runs in the kernel. It has to be ended before it is dropped: dropping it leaves the code
/// attached, with its gate as it is.
pub trait KernelPart<S>: Send {
    /// Removes and returns the hook that keeps the code up to date. It is polled before all others.
    fn take_hook(&mut self) -> Option<Box<dyn Hook<S>>>;

    /// Whether packets are processed in the kernel at present.
    fn is_active(&self, switch: &S) -> bool;

    /// Returns the ports that run the program; while none does, those that are to run the next one.
    fn ports(&self) -> Vec<PortId>;

    /// Has the hook look in its next turn to which devices the kernel can send.
    fn check_devices(&self);

    /// Returns the packets of a port that did not reach the switch, as collected so far.
    fn packets(&self, switch: &S, port: PortId) -> KernelPackets;

    /// Hands over all packets that a port receives or sends, or stops to do so.
    fn divert(&self, switch: &mut S, port: PortId, is_diverted: bool);

    /// Ends the code. Its ports hand over all frames, and the switch has all counts.
    fn end(&mut self, switch: &mut S);
}

/// Returns the reason why this process has no kernel ports: the lab was not started by root, so its processes are in a
/// user namespace.
pub fn obstacle() -> Option<&'static str> {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_initial = map.split_whitespace().eq(["0", "0", "4294967295"]);
    (!is_initial).then_some("the lab is in a user namespace, where no BPF program can be loaded; start it as root")
}

/// Counts of the packets of a port that did not reach the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPackets {
    /// Packets that the port received.
    pub received: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets that left by the port.
    pub sent: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets that were dropped on receive, since the switch was behind with their flow.
    pub crowded: u64,
}

impl AddAssign for KernelPackets {
    fn add_assign(&mut self, more: KernelPackets) {
        self.received += more.received;
        self.received_bytes += more.received_bytes;
        self.sent += more.sent;
        self.sent_bytes += more.sent_bytes;
        self.crowded += more.crowded;
    }
}

/// Notes for the user about a switch's program in the kernel, in the order in which they were made. Only the last 16
/// are kept. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KernelNotes(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    notes: Vec<String>,
    /// The last note about the reason why no packet is processed in the kernel, unless packets are.
    reason: Option<String>,
}

impl Noted {
    fn add(&mut self, note: &str) {
        // A switch that alternates between two states repeats itself.
        self.notes.retain(|known| known != note);
        self.notes.push(note.to_owned());
        if self.notes.len() > MAX_NOTES {
            self.notes.remove(0);
        }
    }
}

impl KernelNotes {
    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note, one sentence.
    pub fn add(&self, note: &str) {
        self.lock().add(note);
    }

    /// Adds a note that packets are processed in the kernel, or about the reason why none is.
    pub fn add_state(&self, note: &str, is_active: bool) {
        let mut noted = self.lock();
        noted.add(note);
        noted.reason = (!is_active).then(|| note.to_owned());
    }

    /// Removes all notes, when the switch starts again.
    pub fn clear(&self) {
        *self.lock() = Noted::default();
    }

    /// Returns the notes.
    pub fn to_vec(&self) -> Vec<String> {
        self.lock().notes.clone()
    }

    /// Returns the reason why no packet is processed in the kernel, as noted last.
    pub fn reason(&self) -> Option<String> {
        self.lock().reason.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_not_the_last_note() {
        let notes = KernelNotes::default();
        notes.add_state("it is too large", false);
        notes.add("losses are not counted");
        assert_eq!(notes.reason().as_deref(), Some("it is too large"));
        notes.add_state("it runs", true);
        assert_eq!(notes.reason(), None);
        assert_eq!(notes.to_vec(), ["it is too large", "losses are not counted", "it runs"]);
    }
}
