//! Reads packets from the command line: a capture file or hexadecimal digits.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context;
use wire::pcap;

use crate::output::Failure;

/// The packets of `--packet`, with their times.
pub enum PacketSource<'a> {
    /// The packets of a capture, in order.
    Capture { name: &'a str, reader: pcap::Reader<BufReader<File>> },
    /// One packet in hexadecimal digits, until it is taken.
    Given(Option<Vec<u8>>),
}

impl<'a> PacketSource<'a> {
    /// Parses the value of `--packet`: a capture file or hexadecimal digits.
    pub fn open(text: &'a str) -> Result<Self, Failure> {
        if Path::new(text).is_file() {
            let file = File::open(text).with_context(|| format!("cannot read {text}"))?;
            let reader = pcap::Reader::new(BufReader::new(file)).map_err(|error| wrong(text, error))?;
            return Ok(PacketSource::Capture { name: text, reader });
        }
        let digits: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, ':' | '-' | '.')).collect();
        let digits = digits.strip_prefix("0x").unwrap_or(&digits);
        let is_hex =
            !digits.is_empty() && digits.len().is_multiple_of(2) && digits.chars().all(|c| c.is_ascii_hexdigit());
        if !is_hex {
            let shown: String = text.chars().take(60).collect();
            return Err(Failure::Usage(format!(
                "--packet `{shown}` is neither a capture file nor an even number of hexadecimal digits"
            )));
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or(0);
        Ok(PacketSource::Given(Some((0..digits.len()).step_by(2).map(byte).collect())))
    }

    /// Returns the next packet and its time in nanoseconds.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        match self {
            PacketSource::Given(packet) => Ok(packet.take().map(|data| (0, data))),
            PacketSource::Capture { name, reader } => {
                let captured = reader.read().map_err(|error| wrong(name, error))?;
                Ok(captured.map(|captured| (captured.time_ns, captured.data)))
            }
        }
    }
}

fn wrong(name: &str, error: pcap::PcapError) -> Failure {
    ports::PortError::Capture { path: name.into(), source: error }.into()
}
