//! Counts packets by the path on which the switch processed them, with the reason where it was not the fastest.
//!
//! Packets of a batch run together, in the driver's memory. Some programs and states of the switch need each packet to
//! run alone, still in place. A packet that the switch must keep, replicate or move is copied. Only packets that a
//! driver offers in batches are counted; what they cause later (copies, further passes) is not.

use std::fmt;

/// A path through the switch, from the fastest to the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// Up to 32 packets run together, in place.
    Batched,
    /// The packet runs alone, in place.
    Single,
    /// The packet is copied into memory of the switch.
    Copied,
}

impl Path {
    /// Returns the name of the path: `batched`, `single` or `copied`.
    pub fn name(self) -> &'static str {
        match self {
            Path::Batched => "batched",
            Path::Single => "single",
            Path::Copied => "copied",
        }
    }
}

/// The reason for which a packet was not processed in a batch to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReason {
    /// A queue or a port has a rate, so every packet may have to wait between ingress and egress.
    Rate,
    /// The packet ended its batch early: an assertion failed, or a body ran out of fuel.
    Stopped,
    /// There is no machine code.
    Interpreted,
    /// The ingress port is down, or the limit of passes is 1.
    PortDown,
    /// The frame is shorter or longer than the switch accepts.
    FrameLength,
    /// The packet has a tiny packet program or INT.
    TinyProgram,
    /// The program cloned the packet.
    Cloned,
    /// The program resubmitted the packet.
    Resubmitted,
    /// The program recirculated the packet.
    Recirculated,
    /// The program truncated the packet or sent a digest, and the packet ran alone anyway.
    Requested,
    /// The packet went to a multicast group.
    Multicast,
    /// The packet had to wait in a queue.
    Queued,
    /// The outgoing packet could not be assembled in its buffer.
    Moved,
    /// The packet waited for its row of resilient state, or wrote it, or read what was not acknowledged, outside a
    /// batch.
    Resilient,
}

impl fmt::Display for PathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathReason::Rate => "a queue or a port has a rate",
            PathReason::Stopped => "an assert or assume was false, or a loop did not end",
            PathReason::Interpreted => "the interpreter runs the program",
            PathReason::PortDown => "the ingress port is down",
            PathReason::TinyProgram => "the packet has a tiny packet program or INT",
            PathReason::FrameLength => "the frame is shorter or longer than the switch accepts",
            PathReason::Cloned => "the program called clone",
            PathReason::Resubmitted => "the program called resubmit",
            PathReason::Recirculated => "the program called recirculate",
            PathReason::Requested => "the program called truncate or digest",
            PathReason::Multicast => "the program set mcast_grp",
            PathReason::Queued => "the packet waited in a queue with a rate",
            PathReason::Moved => "the headers that the program added do not fit in front of the packet",
            PathReason::Resilient => "the packet wrote resilient state, or waited for it",
        })
    }
}

impl PathReason {
    /// Returns the change of a program, or of its entries, that lets such packets take the fastest path.
    pub fn remedy(self) -> &'static str {
        match self {
            PathReason::Rate | PathReason::Queued => {
                "without rates (`queue_entries`, bandwidths of links), packets do not wait"
            }
            PathReason::Stopped => "`triplane trace` shows the line; such packets are dropped",
            PathReason::Interpreted => "run the program as machine code",
            PathReason::PortDown => "bring the port up",
            PathReason::FrameLength => "send frames of 1 to 10,240 bytes",
            PathReason::TinyProgram => "put programs into a sample of the packets",
            PathReason::Cloned | PathReason::Resubmitted | PathReason::Recirculated | PathReason::Requested => {
                "the call takes a packet out of its batch: make it only for the packets that need it"
            }
            PathReason::Multicast => {
                "for packets with one receiver set egress_spec, which keeps them in the batch, and mcast_grp only for \
                 others"
            }
            PathReason::Moved => "emit at most 256 bytes more than the packet had",
            PathReason::Resilient => "use such state in ingress only: packets that write it stay in their batch then",
        }
    }
}

/// Number of packets that took a path for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCount {
    /// The path.
    pub path: Path,
    /// The reason; `None` for the fastest path.
    pub reason: Option<PathReason>,
    /// Number of packets.
    pub packets: u64,
}

/// Counts packets by path and reason.
#[derive(Clone, Debug, Default)]
pub(super) struct PathCounts {
    counts: Vec<(Path, Option<PathReason>, u64)>,
    /// Whether the packets that run now have been counted.
    is_suspended: bool,
}

impl PathCounts {
    /// Counts packets.
    #[inline]
    pub fn add(&mut self, path: Path, reason: Option<PathReason>, packets: u64) {
        if self.is_suspended {
            return;
        }
        let row = self.counts.iter_mut().find(|row| (row.0, row.1) == (path, reason));
        match row {
            Some(row) => row.2 += packets,
            None if packets > 0 => self.counts.push((path, reason, packets)),
            None => {}
        }
    }

    /// Stops counting, or goes on.
    pub fn suspend(&mut self, is_suspended: bool) {
        self.is_suspended = is_suspended;
    }

    /// Returns the counts, from the fastest path to the slowest and from many packets to few.
    pub fn all(&self) -> Vec<PathCount> {
        let row = |&(path, reason, packets): &(Path, Option<PathReason>, u64)| PathCount { path, reason, packets };
        let mut all: Vec<PathCount> = self.counts.iter().map(row).collect();
        all.sort_by_key(|count| (count.path, std::cmp::Reverse(count.packets)));
        all
    }
}
