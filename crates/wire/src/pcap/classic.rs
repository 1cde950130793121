//! Reads classic pcap: a file header of 24 bytes, then a header of 16 bytes in front of each frame.

use std::io::Read;

use super::read::{Input, Order, require_ethernet};
use super::{Captured, PcapError};

const NS_PER_S: u64 = 1_000_000_000;

/// The file header.
pub(super) struct FileHeader {
    order: Order,
    /// Nanoseconds per unit of a timestamp's second half: 1000 or 1.
    unit_ns: u64,
}

/// Reads the rest of the header after the magic number.
pub(super) fn header<R: Read>(input: &mut Input<R>, order: Order, unit_ns: u64) -> Result<FileHeader, PcapError> {
    let mut rest = [0; 20];
    input.fill(&mut rest)?;
    let (major, minor) = (order.u16(&rest, 0), order.u16(&rest, 2));
    if major != 2 {
        return Err(PcapError::Version { format: "pcap", major, minor, known: "2.x" });
    }
    require_ethernet(order.u32(&rest, 16))?;
    Ok(FileHeader { order, unit_ns })
}

impl FileHeader {
    pub(super) fn read<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Captured>, PcapError> {
        let mut record = [0; 16];
        if !input.fill_or_end(&mut record)? {
            return Ok(None);
        }
        let seconds = u64::from(self.order.u32(&record, 0));
        let fraction = u64::from(self.order.u32(&record, 4));
        let data = input.frame(self.order.u32(&record, 8))?;
        // The factors have 32 and fewer than 30 bits: the sum stays far below 64 bits.
        let time_ns = seconds * NS_PER_S + fraction * self.unit_ns;
        Ok(Some(Captured { original_len: self.order.u32(&record, 12).max(data.len() as u32), data, time_ns }))
    }
}
