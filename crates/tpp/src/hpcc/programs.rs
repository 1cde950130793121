//! The words that the programs of HPCC collect.

use super::LinkPlace;
use crate::asm::TinyProgram;
use crate::hop_words::{PROGRAM_HOPS, discovered_link, rows};

/// Words that a discovery pushes at a switch.
pub const DISCOVERED: [&str; 5] =
    ["Switch:ID", "Link:ID", "Link:Capacity", "Link:Capacity.High", "PacketMetadata:QueueTime"];

/// Words that a sample pushes at a switch. The identity comes first.
pub const SAMPLED: [&str; 5] = ["Switch:ID", "Link:ID", "Switch:Clock", "Link:TX-Bytes", "Link:Queued-Bytes"];

/// What a program collected at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkWords {
    /// Low 32 bits of the switch's clock, in nanoseconds.
    pub clock_ns: u32,
    /// Low 32 bits of the bytes sent.
    pub sent_bytes: u32,
    /// Bytes that wait.
    pub queued_bytes: u32,
}

/// A link that a discovery passed.
#[derive(Clone, Copy, Debug)]
pub struct FoundLink {
    pub place: LinkPlace,
    /// Bytes a second; 0 for a link without a limit.
    pub capacity: f64,
    /// Time that the program waited for the link, in nanoseconds.
    pub queue_ns: u32,
}

/// Returns the links that this echo of a discovery passed; `None` if there was no switch, or more than the program has
/// memory for.
pub fn discovered(echo: &TinyProgram) -> Option<Vec<FoundLink>> {
    let hops = usize::try_from(echo.repr.hop).ok().filter(|hops| (1..=PROGRAM_HOPS).contains(hops))?;
    let links = rows(echo, 0, hops, hops, DISCOVERED.len())?;
    let link = |words: Vec<u32>| {
        let (place, capacity) = discovered_link(&words);
        FoundLink { place, capacity, queue_ns: words[4] }
    };
    Some(links.map(link).collect())
}

/// Returns what the echo of a sample collected at the links of a path with `hops` switches; `None` if it passed another
/// number of switches.
pub fn sampled(echo: &TinyProgram, hops: usize) -> Option<Vec<(LinkPlace, LinkWords)>> {
    let links = rows(echo, 0, hops, hops, SAMPLED.len())?;
    let link = |words: Vec<u32>| {
        let place = LinkPlace { switch: words[0], port: words[1] };
        (place, LinkWords { clock_ns: words[2], sent_bytes: words[3], queued_bytes: words[4] })
    };
    Some(links.map(link).collect())
}
