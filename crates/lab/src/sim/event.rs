//! Defines the events at a node, and their order.

use std::cmp::Ordering;

use switch::Time;

use super::Fault;

/// An event at a node.
#[derive(Debug)]
pub struct Event {
    pub at: u64,
    /// The link that the event arrives by, or [`OWN`], which sorts first, for an event that the node scheduled for
    /// itself.
    source: u64,
    /// Sequence number among the events of that link, or among the node's own events.
    pub number: u64,
    pub what: What,
}

const OWN: u64 = 0;

#[derive(Debug)]
pub enum What {
    /// The node's program starts.
    Start,
    /// A frame arrives at a port; it was handed to the link at `sent`.
    Frame { port: u32, sent: u64, data: Vec<u8> },
    /// A slow host processes a frame that arrived earlier.
    Served { data: Vec<u8> },
    /// A timer of a host's program expires.
    Timer(u64),
    /// A fault begins or ends.
    Fault(Fault),
    /// The change with this number is applied to a switch's entries.
    Write(usize),
}

/// A frame on its way to another node.
#[derive(Debug)]
pub struct Message {
    pub to: usize,
    pub event: Event,
}

impl Event {
    /// Creates an event that a node schedules for itself; the node assigns its sequence number.
    pub fn own(at: Time, what: What) -> Event {
        Event { at: at.as_ns(), source: OWN, number: 0, what }
    }

    /// Creates the event of the `number`th frame that a link carries.
    pub fn carried(at: u64, link: u64, number: u64, what: What) -> Event {
        Event { at, source: link + 1, number, what }
    }

    /// Returns the approximate number of bytes that the event occupies until it happens.
    pub fn held(&self) -> u64 {
        // Size of an event, two or three times because a heap may just have doubled, plus the allocator's rounding of a
        // frame.
        const ITSELF: u64 = 320;
        match &self.what {
            What::Frame { data, .. } | What::Served { data } => ITSELF + data.len() as u64,
            _ => ITSELF,
        }
    }

    pub fn is_own(&self) -> bool {
        self.source == OWN
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Orders the earliest event as the greatest, because a binary heap pops the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.source, other.number).cmp(&(self.at, self.source, self.number))
    }
}
