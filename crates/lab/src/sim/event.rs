//! What happens at a node, and in which order.

use std::cmp::Ordering;

use switch::Time;

use super::Fault;

/// Something that happens at a node.
#[derive(Debug)]
pub struct Event {
    pub at: u64,
    /// Which link it comes by; [`OWN`] for what the node does to itself, which comes first.
    source: u64,
    /// The number of what came by that link, or of what the node did to itself.
    pub number: u64,
    pub what: What,
}

const OWN: u64 = 0;

#[derive(Debug)]
pub enum What {
    /// The node's program starts.
    Start,
    /// A frame arrives by a port; it was handed to the link at `sent`.
    Frame { port: u32, sent: u64, data: Vec<u8> },
    /// A host that is slow gets to a frame that arrived earlier.
    Served { data: Vec<u8> },
    /// A timer of a host's program.
    Timer(u64),
    /// Something goes wrong, or right again.
    Fault(Fault),
    /// A switch's entries change: the change with this number.
    Write(usize),
}

/// A frame on its way to another node.
#[derive(Debug)]
pub struct Message {
    pub to: usize,
    pub event: Event,
}

impl Event {
    /// Something that a node does to itself; the node gives it its number.
    pub fn own(at: Time, what: What) -> Event {
        Event { at: at.as_ns(), source: OWN, number: 0, what }
    }

    /// The `number`th frame that a link carries.
    pub fn carried(at: u64, link: u64, number: u64, what: What) -> Event {
        Event { at, source: link + 1, number, what }
    }

    /// Bytes that it takes until it happens, about.
    pub fn held(&self) -> u64 {
        // An event, twice or three times where a heap has just doubled, and what an allocator rounds a frame up to.
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
    /// The earliest is the greatest, for a heap that gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.source, other.number).cmp(&(self.at, self.source, self.number))
    }
}
