//! Writes capture files: classic pcap, little-endian, nanoseconds, Ethernet.

use std::io::Write;

use super::{MAX_FRAME, PcapError};

/// Writes frames to a capture file. Wrap files into a [`std::io::BufWriter`] and [`flush`](Self::flush) at the end.
pub struct Writer<W> {
    output: W,
    packets: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    /// Returns an error if the output fails.
    pub fn new(mut output: W) -> Result<Self, PcapError> {
        let mut header = Vec::with_capacity(24);
        header.extend(0xa1b2_3c4d_u32.to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(4u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(MAX_FRAME.to_le_bytes());
        header.extend(1u32.to_le_bytes());
        output.write_all(&header)?;
        Ok(Writer { output, packets: 0 })
    }

    /// Appends a frame seen at `time_ns` (since 1970; times past 2106 do not fit the format and are written as its
    /// last second).
    ///
    /// # Errors
    /// Returns an error if the frame is longer than [`MAX_FRAME`] or the output fails.
    pub fn write(&mut self, time_ns: u64, frame: &[u8]) -> Result<(), PcapError> {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.packets += 1;
        if len > MAX_FRAME {
            let (len, limit) = (frame.len() as u64, MAX_FRAME.into());
            return Err(PcapError::TooLong { packet: self.packets, what: "a frame", len, limit });
        }
        let mut header = [0; 16];
        let seconds = u32::try_from(time_ns / 1_000_000_000).unwrap_or(u32::MAX);
        header[0..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&len.to_le_bytes());
        header[12..16].copy_from_slice(&len.to_le_bytes());
        self.output.write_all(&header)?;
        Ok(self.output.write_all(frame)?)
    }

    /// Hands everything to the output's own destination.
    ///
    /// # Errors
    /// Returns an error if the output fails.
    pub fn flush(&mut self) -> Result<(), PcapError> {
        Ok(self.output.flush()?)
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}
