//! Reads pcapng: sections of blocks; blocks that describe interfaces or hold frames are read, others skipped.
//!
//! ```text
//! block   = type u32, length u32, body, padding to 4 bytes, length u32 again
//! section = section header block (defines the byte order), then any blocks until the next section header
//! ```
//!
//! Each frame names the interface on which it was captured, and the interface defines its link type and time unit.

use std::io::Read;

use super::read::{Input, Order, require_ethernet};
use super::{Captured, MAX_FRAME, PcapError};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Size of a block's type and both lengths, in bytes.
const FRAME_OF_BLOCK: u32 = 12;
/// Maximum size of an interface block that is parsed, in bytes: its options are few and short.
const MAX_INTERFACE_BODY: u32 = 4096;
/// Maximum number of interfaces in a section; a machine has fewer, and a hostile file must not fill the memory.
const MAX_INTERFACES: usize = 4096;

/// An interface description block.
struct Interface {
    link_type: u16,
    /// Maximum length of a captured frame; 0 for no limit.
    snaplen: u32,
    resolution: Resolution,
    /// Seconds to add to every time.
    offset_s: i64,
}

/// The resolution of an interface's clock, as a fraction of a second.
#[derive(Clone, Copy)]
enum Resolution {
    /// 10 to the power of minus this.
    Decimal(u8),
    /// 2 to the power of minus this.
    Binary(u8),
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> u64 {
        let scaled = u128::from(ticks) * 1_000_000_000;
        let ns = match self.resolution {
            Resolution::Decimal(digits) => 10u128.checked_pow(digits.into()).map_or(0, |unit| scaled / unit),
            Resolution::Binary(bits) => scaled >> bits,
        };
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let sum = i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(offset);
        u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
    }
}

/// The section that is being read.
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

impl Section {
    /// Reads a section header block whose type has been read.
    pub(super) fn begin<R: Read>(input: &mut Input<R>) -> Result<Self, PcapError> {
        let mut head = [0; 12];
        input.fill(&mut head)?;
        let order = match head[4..8] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err(input.damaged("a section header without the byte-order mark 1a2b3c4d")),
        };
        let (major, minor) = (order.u16(&head, 8), order.u16(&head, 10));
        if major != 1 {
            return Err(PcapError::Version { format: "pcapng", major, minor, known: "1.x" });
        }
        let section = Section { order, interfaces: Vec::new() };
        let len = order.u32(&head, 0);
        section.check_length(input, len, 28)?;
        section.finish(input, len, 8)?;
        Ok(section)
    }

    pub(super) fn read<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Captured>, PcapError> {
        loop {
            let mut kind = [0; 4];
            if !input.fill_or_end(&mut kind)? {
                return Ok(None);
            }
            let kind = self.order.u32(&kind, 0);
            if kind == SECTION_HEADER {
                *self = Self::begin(input)?;
                continue;
            }
            let mut len = [0; 4];
            input.fill(&mut len)?;
            let len = self.order.u32(&len, 0);
            self.check_length(input, len, FRAME_OF_BLOCK)?;
            match kind {
                INTERFACE => self.interface(input, len)?,
                ENHANCED_PACKET | OBSOLETE_PACKET => return self.packet(input, len, kind).map(Some),
                SIMPLE_PACKET => return self.simple_packet(input, len).map(Some),
                _ => self.finish(input, len, 0)?,
            }
        }
    }

    fn check_length<R: Read>(&self, input: &Input<R>, len: u32, least: u32) -> Result<(), PcapError> {
        if len < least || !len.is_multiple_of(4) {
            return Err(input.damaged("a block whose length is too short or not a multiple of four"));
        }
        Ok(())
    }

    /// Skips the rest of a block after `consumed` bytes of its body, and its second length.
    fn finish<R: Read>(&self, input: &mut Input<R>, len: u32, consumed: u32) -> Result<(), PcapError> {
        let left = u64::from(len).checked_sub(u64::from(FRAME_OF_BLOCK) + u64::from(consumed));
        let Some(left) = left else {
            return Err(input.damaged("a block that is shorter than its contents"));
        };
        input.skip(left)?;
        let mut again = [0; 4];
        input.fill(&mut again)?;
        if self.order.u32(&again, 0) != len {
            return Err(input.damaged("a block whose two lengths differ"));
        }
        Ok(())
    }

    fn interface<R: Read>(&mut self, input: &mut Input<R>, len: u32) -> Result<(), PcapError> {
        self.check_length(input, len, FRAME_OF_BLOCK + 8)?;
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(input.damaged("more interfaces than a capture can have"));
        }
        let looked_at = (len - FRAME_OF_BLOCK).min(MAX_INTERFACE_BODY);
        let mut body = vec![0; looked_at as usize];
        input.fill(&mut body)?;
        let mut interface = Interface {
            link_type: self.order.u16(&body, 0),
            snaplen: self.order.u32(&body, 4),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        let mut options = &body[8..];
        while let [_, _, _, _, rest @ ..] = options {
            let (code, size) = (self.order.u16(options, 0), usize::from(self.order.u16(options, 2)));
            let Some(value) = rest.get(..size) else { break };
            match (code, value) {
                (0, _) => break,
                (9, [bits]) if bits & 0x80 != 0 => interface.resolution = Resolution::Binary(bits & 0x7f),
                (9, [digits]) => interface.resolution = Resolution::Decimal(*digits),
                (14, bytes) if bytes.len() == 8 => {
                    let (first, second) = (self.order.u32(bytes, 0), self.order.u32(bytes, 4));
                    let (high, low) = if self.order == Order::Big { (first, second) } else { (second, first) };
                    interface.offset_s = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                }
                _ => {}
            }
            options = rest.get(size.next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(interface);
        self.finish(input, len, looked_at)
    }

    fn packet<R: Read>(&self, input: &mut Input<R>, len: u32, kind: u32) -> Result<Captured, PcapError> {
        self.check_length(input, len, FRAME_OF_BLOCK + 20)?;
        let mut head = [0; 20];
        input.fill(&mut head)?;
        let index = match kind {
            OBSOLETE_PACKET => u32::from(self.order.u16(&head, 0)),
            _ => self.order.u32(&head, 0),
        };
        let Some(interface) = self.interfaces.get(index as usize) else {
            return Err(input.damaged("a frame of an interface that was not described before"));
        };
        require_ethernet(interface.link_type.into())?;
        let ticks = u64::from(self.order.u32(&head, 4)) << 32 | u64::from(self.order.u32(&head, 8));
        let (kept, original_len) = (self.order.u32(&head, 12), self.order.u32(&head, 16));
        let data = self.data(input, len, 20, kept)?;
        Ok(Captured { original_len: original_len.max(kept), data, time_ns: interface.time_ns(ticks) })
    }

    fn simple_packet<R: Read>(&self, input: &mut Input<R>, len: u32) -> Result<Captured, PcapError> {
        self.check_length(input, len, FRAME_OF_BLOCK + 4)?;
        let Some(interface) = self.interfaces.first() else {
            return Err(input.damaged("a simple frame before any interface was described"));
        };
        require_ethernet(interface.link_type.into())?;
        let mut head = [0; 4];
        input.fill(&mut head)?;
        let original_len = self.order.u32(&head, 0);
        let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
        let kept = original_len.min(limit).min(len - FRAME_OF_BLOCK - 4);
        Ok(Captured { data: self.data(input, len, 4, kept)?, time_ns: 0, original_len })
    }

    /// Reads a frame of `kept` bytes after `consumed` bytes of a block's body, and the rest of the block.
    fn data<R: Read>(&self, input: &mut Input<R>, len: u32, consumed: u32, kept: u32) -> Result<Vec<u8>, PcapError> {
        if kept > MAX_FRAME {
            return Err(input.too_long("a frame", kept.into(), MAX_FRAME.into()));
        }
        if kept > len - FRAME_OF_BLOCK - consumed {
            return Err(input.damaged("a frame that is longer than its block"));
        }
        let data = input.frame(kept)?;
        self.finish(input, len, consumed + kept)?;
        Ok(data)
    }
}
