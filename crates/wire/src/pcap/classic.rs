//! Classic pcap: a header of 24 bytes, then a header of 16 bytes before each frame.

use std::io::Read;

use super::read::{Input, Order, require_ethernet};
use super::{Captured, PcapError};

const NS_PER_S: u64 = 1_000_000_000;

/// What the file's header says.
pub(super) struct Header {
    order: Order,
    /// Nanoseconds in one unit of a time's second half: 1000 or 1.
    unit_ns: u64,
}

/// Reads what follows the magic number.
pub(super) fn header<R: Read>(input: &mut Input<R>, order: Order, unit_ns: u64) -> Result<Header, PcapError> {
    let mut rest = [0; 20];
    input.fill(&mut rest)?;
    let (major, minor) = (order.u16(&rest, 0), order.u16(&rest, 2));
    if major != 2 {
        return Err(PcapError::Version { format: "pcap", major, minor, known: "2.x" });
    }
    require_ethernet(order.u32(&rest, 16))?;
    Ok(Header { order, unit_ns })
}

impl Header {
    pub(super) fn read<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Captured>, PcapError> {
        let mut record = [0; 16];
        if !input.fill_or_end(&mut record)? {
            return Ok(None);
        }
        let seconds = u64::from(self.order.u32(&record, 0));
        let fraction = u64::from(self.order.u32(&record, 4));
        let data = input.frame(self.order.u32(&record, 8))?;
        // Both factors have 32 bits and less than 30: the sum stays far below 64.
        let time_ns = seconds * NS_PER_S + fraction * self.unit_ns;
        Ok(Some(Captured { original_len: self.order.u32(&record, 12).max(data.len() as u32), data, time_ns }))
    }
}
