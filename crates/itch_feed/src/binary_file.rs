//! Reads and writes Nasdaq's BinaryFILE (version 1.00): a day's messages, each behind its length in two bytes.
//!
//! ```text
//! length 2 | that many bytes | length 2 | ... | 0 0
//! ```
//!
//! A length of 0 ends the session; files that were cut end without it. A file of many GB is read as a stream, a message
//! at a time.

use std::io::{self, Read, Write};

use wire::itch::{HEADER_LEN, TIMESTAMP, message_len};

/// A file that cannot be read, or is not a BinaryFILE of ITCH 5.0 messages. `offset` is the place of the record's
/// length in the file, in bytes.
#[derive(Debug, thiserror::Error)]
pub enum BinaryFileError {
    /// The file cannot be read.
    #[error("cannot read the record at byte {offset}")]
    Read {
        /// Place of the record.
        offset: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file ends within a record.
    #[error("byte {offset}: the file ends within this record")]
    Truncated {
        /// Place of the record.
        offset: u64,
    },
    /// A message is shorter than its header.
    #[error("byte {offset}: a message of {len} bytes, but the header of ITCH 5.0 alone has {HEADER_LEN}{}", hint(.offset))]
    NoHeader {
        /// Place of the record.
        offset: u64,
        /// Length of the message in bytes.
        len: usize,
    },
    /// The length of a message is not that of its type.
    #[error(
        "byte {offset}: a message of type `{}` with {len} bytes, but ITCH 5.0 has {expected}{}",
        .letter.escape_ascii(), hint(.offset)
    )]
    Length {
        /// Place of the record.
        offset: u64,
        /// Type of the message.
        letter: u8,
        /// Length of the message in bytes.
        len: usize,
        /// Length of the type's messages in bytes.
        expected: usize,
    },
    /// A message does not fit a datagram.
    #[error("byte {offset}: a message of {len} bytes does not fit a datagram of {room} bytes{}", hint(.offset))]
    TooLong {
        /// Place of the record.
        offset: u64,
        /// Length of the message in bytes.
        len: usize,
        /// Maximum payload of a datagram in bytes.
        room: usize,
    },
}

/// Returns the remedy for a file that is wrong from its first record on.
fn hint(offset: &u64) -> &'static str {
    if *offset == 0 {
        "; is this a BinaryFILE of ITCH 5.0? A compressed file has to be unpacked first: `zcat FILE | …`, with `-`"
    } else {
        ""
    }
}

/// A message of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMessage {
    /// Place of the record in the file, in bytes.
    pub offset: u64,
    /// The message.
    pub bytes: Vec<u8>,
}

impl RecordedMessage {
    /// Returns the message's timestamp, in ns since midnight.
    pub fn timestamp_ns(&self) -> u64 {
        self.bytes[TIMESTAMP].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// A reader of a file's messages.
#[derive(Debug)]
pub struct BinaryFileReader<R> {
    input: R,
    offset: u64,
    is_over: bool,
}

impl<R: Read> BinaryFileReader<R> {
    /// Creates a reader; a buffered input is faster.
    pub fn new(input: R) -> BinaryFileReader<R> {
        BinaryFileReader { input, offset: 0, is_over: false }
    }

    /// Reads the next message, or `None` at the end of the session or of the file. What follows the end of the session
    /// is not read. Messages of a type that ITCH 5.0 does not have may have any length from their header's on.
    ///
    /// # Errors
    /// If the file cannot be read, ends within a record, or has a message of a wrong length.
    pub fn read(&mut self) -> Result<Option<RecordedMessage>, BinaryFileError> {
        if self.is_over {
            return Ok(None);
        }
        let offset = self.offset;
        let mut length = [0; 2];
        match self.fill(&mut length)? {
            0 => {
                self.is_over = true;
                return Ok(None);
            }
            2 => {}
            _ => return Err(BinaryFileError::Truncated { offset }),
        }
        let len = usize::from(u16::from_be_bytes(length));
        if len == 0 {
            self.is_over = true;
            return Ok(None);
        }
        if len < HEADER_LEN {
            return Err(BinaryFileError::NoHeader { offset, len });
        }
        let mut bytes = vec![0; len];
        if self.fill(&mut bytes)? < len {
            return Err(BinaryFileError::Truncated { offset });
        }
        let letter = bytes[0];
        if let Some(expected) = message_len(letter).filter(|expected| *expected != len) {
            return Err(BinaryFileError::Length { offset, letter, len, expected });
        }
        self.offset += (length.len() + len) as u64;
        Ok(Some(RecordedMessage { offset, bytes }))
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes read.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, BinaryFileError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(BinaryFileError::Read { offset: self.offset, source }),
            }
        }
        Ok(filled)
    }
}

/// Writes a message as a record.
///
/// # Errors
/// If the output fails.
///
/// # Panics
/// If the message has more than 65535 bytes.
pub fn write_record(output: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let len = u16::try_from(message.len()).expect("a message has at most 65535 bytes");
    output.write_all(&len.to_be_bytes())?;
    output.write_all(message)
}

/// Writes the end of the session.
///
/// # Errors
/// If the output fails.
pub fn write_end(output: &mut impl Write) -> io::Result<()> {
    output.write_all(&[0, 0])
}

#[cfg(test)]
mod tests {
    use wire::itch::LETTERS;

    use super::*;

    fn message(letter: u8, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        bytes[0] = letter;
        bytes
    }

    fn file(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| write_record(&mut bytes, message).unwrap());
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut reader = BinaryFileReader::new(bytes);
        let next = || reader.read().transpose();
        std::iter::from_fn(next).map(|read| read.map(|read| read.bytes).map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn all_types_and_unknown_ones_round_trip_up_to_the_end_of_the_session() {
        let mut messages: Vec<_> =
            LETTERS.iter().map(|letter| message(*letter, message_len(*letter).unwrap())).collect();
        messages.push(message(b'~', 77));
        let mut bytes = file(&messages);
        assert_eq!(read(&bytes), Ok(messages.clone()), "a file without an end");
        write_end(&mut bytes).unwrap();
        bytes.extend(b"what follows");
        assert_eq!(read(&bytes), Ok(messages));
    }

    #[test]
    fn every_wrong_record_is_an_error_with_its_place() {
        let good = file(&[message(b'D', 19), message(b'A', 36)]);
        for cut in 22..good.len() {
            assert_eq!(read(&good[..cut]), Err("byte 21: the file ends within this record".to_owned()), "{cut}");
        }
        for (wrong, said) in [
            (message(b'A', 35), "byte 21: a message of type `A` with 35 bytes, but ITCH 5.0 has 36"),
            (message(b'~', 10), "byte 21: a message of 10 bytes, but the header of ITCH 5.0 alone has 11"),
        ] {
            assert_eq!(read(&file(&[message(b'D', 19), wrong])), Err(said.to_owned()));
        }
        let compressed = read(&[0x1f, 0x8b, 8, 0, 0, 0]).unwrap_err();
        assert!(compressed.contains("byte 0: the file ends"), "{compressed}");
    }

    #[test]
    fn a_timestamp_is_48_bits_in_network_order() {
        let mut bytes = message(b'D', 19);
        bytes[5..11].copy_from_slice(&[1, 0, 0, 0, 0, 2]);
        assert_eq!(RecordedMessage { offset: 0, bytes }.timestamp_ns(), (1 << 40) + 2);
    }
}
