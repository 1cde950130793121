//! Reads capture files: detects a file's format and yields its frames.

use std::io::{ErrorKind, Read};

use super::{Captured, MAX_FRAME, PcapError, classic, link_type, ng};

/// The byte order of a file: that of the machine that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// Returns the 16-bit number at `at`; zero where `bytes` is too short, which callers exclude.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let array = bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).unwrap_or([0; 2]);
        match self {
            Order::Little => u16::from_le_bytes(array),
            Order::Big => u16::from_be_bytes(array),
        }
    }

    /// Returns the 32-bit number at `at`; zero where `bytes` is too short, which callers exclude.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let array = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).unwrap_or([0; 4]);
        match self {
            Order::Little => u32::from_le_bytes(array),
            Order::Big => u32::from_be_bytes(array),
        }
    }
}

/// The input with a count of packets, so that every error can name its position.
pub(super) struct Input<R> {
    source: R,
    /// Number of packets yielded so far.
    pub(super) packets: u64,
}

impl<R: Read> Input<R> {
    /// Fills `buffer`, or returns an error that the file ends inside a packet.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<(), PcapError> {
        match self.source.read_exact(buffer) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(PcapError::CutShort { packet: self.packets + 1 })
            }
            other => Ok(other?),
        }
    }

    /// Fills `buffer` and returns true, or returns false if the input ends right here.
    pub(super) fn fill_or_end(&mut self, buffer: &mut [u8]) -> Result<bool, PcapError> {
        let mut have = 0;
        while have < buffer.len() {
            match self.source.read(&mut buffer[have..]) {
                Ok(0) if have == 0 => return Ok(false),
                Ok(0) => return Err(PcapError::CutShort { packet: self.packets + 1 }),
                Ok(count) => have += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Reads the `len` bytes of a frame.
    pub(super) fn frame(&mut self, len: u32) -> Result<Vec<u8>, PcapError> {
        if len > MAX_FRAME {
            return Err(self.too_long("a frame", len.into(), MAX_FRAME.into()));
        }
        let mut data = vec![0; len as usize];
        self.fill(&mut data)?;
        Ok(data)
    }

    /// Skips `len` bytes.
    pub(super) fn skip(&mut self, len: u64) -> Result<(), PcapError> {
        let skipped = std::io::copy(&mut self.source.by_ref().take(len), &mut std::io::sink())?;
        if skipped < len { Err(PcapError::CutShort { packet: self.packets + 1 }) } else { Ok(()) }
    }

    pub(super) fn too_long(&self, what: &'static str, len: u64, limit: u64) -> PcapError {
        PcapError::TooLong { packet: self.packets + 1, what, len, limit }
    }

    pub(super) fn damaged(&self, what: &'static str) -> PcapError {
        PcapError::Damaged { packet: self.packets + 1, what }
    }
}

/// Returns an error for any link type but Ethernet. The upper half of the word describes frame check sequences.
pub(super) fn require_ethernet(link_type: u32) -> Result<(), PcapError> {
    let link_type = link_type & 0xffff;
    if link_type == link_type::ETHERNET {
        return Ok(());
    }
    Err(PcapError::LinkType { link_type, name: link_type::name(link_type) })
}

enum FileFormat {
    Classic(classic::FileHeader),
    Ng(ng::Section),
}

/// Reads the frames of a capture, one by one. Wrap files into a [`std::io::BufReader`]: the reader requests few bytes
/// at a time.
pub struct Reader<R> {
    input: Input<R>,
    format: FileFormat,
    truncated: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// Returns an error if the input is not a capture, has an unsupported version or, in classic pcap, does not have
    /// Ethernet frames. A pcapng file defines link types along the way, so there the first frame that is not Ethernet
    /// is an error of [`read`](Self::read).
    pub fn new(source: R) -> Result<Self, PcapError> {
        let mut input = Input { source, packets: 0 };
        let mut magic = [0; 4];
        if !input.fill_or_end(&mut magic)? {
            return Err(PcapError::Empty);
        }
        let format = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => FileFormat::Classic(classic::header(&mut input, Order::Little, 1000)?),
            [0xa1, 0xb2, 0xc3, 0xd4] => FileFormat::Classic(classic::header(&mut input, Order::Big, 1000)?),
            [0x4d, 0x3c, 0xb2, 0xa1] => FileFormat::Classic(classic::header(&mut input, Order::Little, 1)?),
            [0xa1, 0xb2, 0x3c, 0x4d] => FileFormat::Classic(classic::header(&mut input, Order::Big, 1)?),
            [0x0a, 0x0d, 0x0d, 0x0a] => FileFormat::Ng(ng::Section::begin(&mut input)?),
            _ => return Err(PcapError::NotPcap { magic, hint: guess(magic) }),
        };
        Ok(Reader { input, format, truncated: 0, ended: false })
    }

    /// Returns the next frame, or `None` at the end of the file.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or cannot be read; after an error there are no more frames.
    pub fn read(&mut self) -> Result<Option<Captured>, PcapError> {
        if self.ended {
            return Ok(None);
        }
        let result = match &mut self.format {
            FileFormat::Classic(header) => header.read(&mut self.input),
            FileFormat::Ng(section) => section.read(&mut self.input),
        };
        match &result {
            Ok(Some(frame)) => {
                self.input.packets += 1;
                self.truncated += u64::from(frame.is_truncated());
            }
            Ok(None) | Err(_) => self.ended = true,
        }
        result
    }

    /// Returns the number of frames read.
    pub fn packets(&self) -> u64 {
        self.input.packets
    }

    /// Returns the number of frames that the capture's snapshot length truncated.
    pub fn truncated(&self) -> u64 {
        self.truncated
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Captured, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Returns the probable format of a file that is not a capture.
fn guess(magic: [u8; 4]) -> &'static str {
    match magic {
        [0x1f, 0x8b, ..] => "; it is compressed with gzip, decompress it first",
        [0x28, 0xb5, 0x2f, 0xfd] => "; it is compressed with zstd, decompress it first",
        [0xfd, b'7', b'z', b'X'] => "; it is compressed with xz, decompress it first",
        [0x34, 0xcd, 0xb2, 0xa1] => "; it is a pcap of the modified kind, convert it with `editcap -F nsecpcap`",
        [b's', b'n', b'o', b'o'] => "; it is a snoop capture, convert it with `editcap -F nsecpcap`",
        _ => "",
    }
}
